//! Tests programs in control groups, if this machine supports them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use evenkeel_core::Span;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{
    CgroupUse, Containment, Executor, LiveReport, ShellExecutor, ShellSettings,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shell::{executor_with, supervisor};
use crate::support::{eventually, invocation, is_alive, parent_of, pid_in};

/// Returns an executor and the parent of its control groups. If this machine has no control groups,
/// prints a note and returns `None`.
fn with_groups(bodies_lock: Option<PathBuf>) -> Option<(ShellExecutor, PathBuf)> {
    let settings = ShellSettings::new(supervisor());
    let executor = executor_with(ShellSettings { bodies_lock, ..settings });
    match executor.containment() {
        Containment::Cgroup { parent, .. } => {
            let parent = parent.clone();
            Some((executor, parent))
        }
        without @ Containment::ProcessTree { .. } => {
            println!("skipped: {without}");
            None
        }
    }
}

fn group_of(pid: i32, parent: &Path) -> PathBuf {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    parent.join(group.rsplit('/').next().unwrap())
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn executor_reports_missing_control_groups() {
    let off = |cgroup| ShellSettings { cgroup, ..ShellSettings::new(supervisor()) };
    let executor = executor_with(off(CgroupUse::Off));
    let reason = "programs run without control groups of their own: they are turned off";
    assert_eq!(executor.containment().to_string(), reason);
    // If control groups are required, they exist or the executor does not start.
    match ShellExecutor::new(off(CgroupUse::Required)) {
        Ok(executor) => assert!(matches!(executor.containment(), Containment::Cgroup { .. })),
        Err(error) => assert!(error.to_string().contains("as is required"), "{error}"),
    }
}

#[tokio::test]
async fn program_has_a_control_group_while_it_runs() {
    let Some((executor, parent)) = with_groups(None) else { return };
    let folder = TempDir::new().unwrap();
    let script = "sleep 600 & echo $! >child; echo $$ >main; \
                  while [ ! -e enough ]; do sleep 0.02; done";
    let config = json!({"argv": ["sh", "-c", script], "cwd": folder.path()});
    let run = tokio::spawn(async move { executor.run(invocation("shell", config)).await });
    let main = pid_in(&folder.path().join("main")).await;
    let child = pid_in(&folder.path().join("child")).await;
    let group = group_of(main, &parent);
    assert_ne!(group, parent);
    assert_eq!(group_of(child, &parent), group);
    assert_ne!(group_of(parent_of(main), &parent), group, "its supervisor is outside");
    assert!(group.join("cgroup.kill").exists(), "{}", group.display());
    fs::write(folder.path().join("enough"), "").unwrap();
    assert_eq!(run.await.unwrap().outcome, Outcome::Completed);
    assert!(!group.exists() && !is_alive(child));
}

#[tokio::test]
async fn processes_that_were_never_reaped_are_measured() {
    let Some((executor, _)) = with_groups(None) else { return };
    // No process waits for the children of this script, so no parent counts their CPU time.
    let script = "$SIG{CHLD} = 'IGNORE';
        pipe my $r, my $w; if (!fork) { my $n = 0; $n += $_ for 1..3_000_000; exit }
        close $w; <$r>; 1 while wait != -1;";
    let config = json!({"argv": ["perl", "-e", script]});
    let report = executor.run(invocation("shell", config)).await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
    assert!(report.cpu_time.unwrap() > Span::from_millis(30), "{report:?}");
}

/// A program whose child starts a new session, loses its parent and closes its file descriptors.
const ESCAPE: &str = "setsid perl -MPOSIX -e '
        open my $f, \">escaped\"; print $f \"$$\\n\"; close $f; POSIX::close($_) for 0..99; sleep 600' &
    echo $$ >main; exec sleep 600";

fn escape(folder: &Path) -> Value {
    json!({"argv": ["sh", "-c", ESCAPE], "cwd": folder})
}

#[tokio::test]
async fn killed_supervisor_leaves_no_process() {
    let Some((executor, parent)) = with_groups(None) else { return };
    let folder = TempDir::new().unwrap();
    let body = invocation("shell", escape(folder.path()));
    let run = tokio::spawn(async move { executor.run(body).await });
    let main = pid_in(&folder.path().join("main")).await;
    let escaped = pid_in(&folder.path().join("escaped")).await;
    let group = group_of(main, &parent);
    kill(parent_of(main));
    let report = run.await.unwrap();
    assert!(report.error.unwrap().starts_with("the supervisor ended: signal: 9"));
    // The report arrives after all processes of the program have ended, so the test does not wait.
    assert!(!is_alive(main) && !is_alive(escaped) && !group.exists());
}

/// A node in a separate process, which the test can kill.
struct Node(Child);

impl Node {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel-supervisor-test"));
        command.arg("node").arg(escape(folder).to_string()).arg(folder.join("bodies.lock"));
        Self(command.arg("auto").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn restarted_node_ends_programs_of_its_earlier_start() {
    if with_groups(None).is_none() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let mut node = Node::start(folder.path());
    let main = pid_in(&folder.path().join("main")).await;
    let escaped = pid_in(&folder.path().join("escaped")).await;
    let supervisor = parent_of(main);
    // The supervisor is stopped first, so that it cannot end the program when the node is killed.
    kill_process(Pid::from_raw(supervisor).unwrap(), Signal::STOP).unwrap();
    node.0.kill().unwrap();
    node.0.wait().unwrap();
    kill(supervisor);
    eventually("the kernel has ended the main process", || !is_alive(main)).await;
    assert!(is_alive(escaped));
    // The start of another node does not affect the program.
    let other = TempDir::new().unwrap();
    with_groups(Some(other.path().join("bodies.lock"))).unwrap();
    assert!(is_alive(escaped));

    let (executor, parent) = with_groups(Some(folder.path().join("bodies.lock"))).unwrap();
    assert!(!is_alive(escaped));
    let group_left = fs::read_dir(parent).unwrap().flatten().any(|entry| {
        let procs = fs::read_to_string(entry.path().join("cgroup.procs")).unwrap_or_default();
        procs.lines().any(|line| line == escaped.to_string())
    });
    assert!(!group_left);
    let body = invocation("shell", json!({"argv": ["true"]}));
    assert_eq!(executor.run(body).await.outcome, Outcome::Completed);
}

#[tokio::test]
async fn control_groups_made_by_a_program_are_removed() {
    let Some((executor, parent)) = with_groups(None) else { return };
    let folder = TempDir::new().unwrap();
    let script = "echo $$ >main; while [ ! -e enough ]; do sleep 0.02; done";
    let config = json!({"argv": ["sh", "-c", script], "cwd": folder.path()});
    let body = invocation("shell", config);
    let live: LiveReport = body.live.clone();
    let run = tokio::spawn(async move { executor.run(body).await });
    let main = pid_in(&folder.path().join("main")).await;
    let inner = group_of(main, &parent).join("made-by-the-body");
    fs::create_dir(&inner).unwrap();
    fs::write(folder.path().join("enough"), "").unwrap();
    assert_eq!(run.await.unwrap().outcome, Outcome::Completed);
    assert!(!inner.exists(), "groups inside are removed with it");
    assert_eq!(live.log_so_far(), None);
}
