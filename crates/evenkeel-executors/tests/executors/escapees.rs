//! Bodies that try to outlive their run. None of their processes may.
//!
//! Every kind of body meets every way to end, with a control group and without. A process counts as
//! the body's by its environment, its command line or its folder: few escapees change all three.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Span;
use evenkeel_core::run::Outcome;
use evenkeel_executors::{
    CancelReason, CgroupUse, Containment, Executor, Invocation, Lease, ShellExecutor,
    ShellSettings, cancellation,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::shell::{executor_with, supervisor};
use crate::support::{eventually, invocation, is_alive, parent_of, pid_in, with};

/// What they are called, and scripts that write `ready` once all is in place; before them, the main
/// process has written its id to `main`. All of them end by themselves after 100 seconds: a test that
/// fails must not take the machine with it.
const KINDS: [(&str, &str); 16] = [
    ("stays", ": >ready; exec sleep 100"),
    ("ignores signals", "trap '' TERM HUP INT QUIT; : >ready; for i in $(seq 100); do sleep 1; done"),
    ("forks", "for i in 1 2 3 4 5; do sleep 100 & done; : >ready; wait"),
    ("forks twice", "( ( trap '' TERM; sleep 100 & : >ready ) & ); exec sleep 100"),
    (
        "leaves its session",
        "setsid sh -c 'trap \"\" TERM HUP; : >ready; for i in $(seq 100); do sleep 1; done' & exec sleep 100",
    ),
    (
        "daemonises",
        "perl -MPOSIX -e 'exit if fork; POSIX::setsid(); exit if fork; chdir \"/\"; umask 0;
            $SIG{$_} = \"IGNORE\" for qw(TERM HUP INT); open F, \">$ENV{READY}\"; close F;
            open STDIN, \"</dev/null\"; open STDOUT, \">/dev/null\"; open STDERR, \">&STDOUT\";
            sleep 100'; exec sleep 100",
    ),
    (
        "holds the pipes",
        "setsid sh -c 'trap \"\" TERM PIPE; : >ready; for i in $(seq 100); do echo noise; echo noise >&2; sleep 1
            done' & exec sleep 100 >/dev/null 2>&1",
    ),
    (
        "forks in a storm",
        "exec perl -e 'for (1..20) { next if fork; $SIG{TERM} = \"IGNORE\"; while (time - $^T < 100) {
                my $p = fork; next unless defined $p;
                if (!$p) { select undef, undef, undef, 0.01; exit } waitpid $p, 0 } }
            open F, \">ready\"; close F; sleep 100'",
    ),
    (
        "hops from process to process",
        "setsid perl -e '$SIG{TERM} = \"IGNORE\"; my $n = 0; while (time - $^T < 100) { my $p = fork; exit if $p;
            if (++$n == 50) { open F, \">ready\"; close F } select undef, undef, undef, 0.0005 }' &
            exec sleep 100",
    ),
    (
        "closes all descriptors",
        "setsid perl -MPOSIX -e 'open F, \">ready\"; close F; POSIX::close($_) for 0..1023;
            $SIG{TERM} = \"IGNORE\"; sleep 100' & exec sleep 100",
    ),
    (
        "is stopped under a tracer",
        "exec perl -MPOSIX -e 'my $ptrace = (POSIX::uname())[4] eq \"x86_64\" ? 101 : 117;
            my $p = fork; if (!$p) { syscall $ptrace, 0, 0, 0, 0; kill STOP => $$; sleep 100; exit }
            waitpid $p, WUNTRACED; open F, \">ready\"; close F; sleep 100'",
    ),
    ("stops itself", "setsid sh -c ': >ready; kill -STOP $$; sleep 100' & : ; kill -STOP $$"),
    (
        "forgets its environment",
        "cd /; env -i setsid perl -e 'open F, \">$ARGV[0]\"; close F; sleep 100' \"$READY\" \"$MARK\" &
            exec sleep 100",
    ),
    ("becomes another program", ": >ready; exec perl -e 'exec \"sleep\", \"600\"'"),
    (
        "disguises itself",
        "setsid perl -e '$0 = \") Z 1 (\"; $SIG{TERM} = \"IGNORE\"; open F, \">ready\"; close F;
            sleep 100' & exec sleep 100",
    ),
    (
        "takes in orphans of its own",
        "exec perl -e 'my $prctl = `uname -m` =~ /x86_64/ ? 157 : 167; syscall $prctl, 36, 1, 0, 0, 0;
            if (!fork) { if (!fork) { $SIG{TERM} = \"IGNORE\"; open F, \">ready\"; close F;
                sleep 100 } exit } sleep 100'",
    ),
];

/// One body of a kind.
struct Escapee {
    kind: &'static str,
    script: &'static str,
    mark: String,
    folder: TempDir,
}

impl Escapee {
    fn new(n: usize, of: &str) -> Self {
        let (kind, script) = KINDS[n];
        let folder = TempDir::with_prefix("escapee-").unwrap();
        let mark = format!("{}-{of}-{n}", folder.path().file_name().unwrap().to_string_lossy());
        Self { kind, script, mark, folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> Value {
        let script = format!("echo $$ >main; {}", self.script);
        json!({"argv": ["sh", "-c", script], "cwd": self.folder.path(),
               "env": {"MARK": self.mark, "READY": self.file("ready")}})
    }

    fn invocation(&self) -> Invocation {
        with(invocation("shell", self.config()), |d| d.timeout = Span::from_secs(90))
    }

    /// Waits until it is all there; returns its main process.
    async fn ready(&self) -> i32 {
        let main = pid_in(&self.file("main")).await;
        let what = format!("a body that {} is ready", self.kind);
        eventually(&what, || self.file("ready").exists()).await;
        assert!(!self.processes().is_empty(), "a body that {} can't be found", self.kind);
        main
    }

    /// All its processes that live.
    fn processes(&self) -> Vec<i32> {
        let folder = self.folder.path();
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| is_marked(*pid, &self.mark, folder) && is_alive(*pid))
            .collect()
    }

    fn has_no_survivors(&self, when: &str) {
        let left = self.processes();
        assert!(left.is_empty(), "a body that {} has survived {when}: {left:?}", self.kind);
    }
}

impl Drop for Escapee {
    /// A test that fails leaves nothing behind either.
    fn drop(&mut self) {
        for pid in self.processes() {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
    }
}

fn is_marked(pid: i32, mark: &str, folder: &Path) -> bool {
    let holds = |file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(mark.len()).any(|window| window == mark.as_bytes())
    };
    let is_there =
        fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
    is_there || holds("environ") || holds("cmdline")
}

fn settings(cgroup: CgroupUse) -> ShellSettings {
    let kill_grace = Duration::from_millis(100);
    ShellSettings { kill_grace, cgroup, ..ShellSettings::new(supervisor()) }
}

/// Executors with and without control groups, as far as this machine allows.
fn executors() -> Vec<(&'static str, Arc<ShellExecutor>)> {
    let with = executor_with(settings(CgroupUse::Auto));
    let without = ("without a group", Arc::new(executor_with(settings(CgroupUse::Off))));
    match with.containment() {
        Containment::Cgroup { .. } => vec![("in a group", Arc::new(with)), without],
        Containment::ProcessTree { .. } => {
            println!("skipped with a group: {}", with.containment());
            vec![without]
        }
    }
}

/// Puts every kind of body through `end`, with and without a group.
async fn each<F: Future<Output = ()> + Send + 'static>(
    end: impl Fn(Escapee, Arc<ShellExecutor>, &'static str) -> F,
) {
    for (how, executor) in executors() {
        let mut all = JoinSet::new();
        for n in 0..KINDS.len() {
            all.spawn(end(Escapee::new(n, how), Arc::clone(&executor), how));
        }
        while let Some(done) = all.join_next().await {
            done.unwrap();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "leases end on tokio's clock")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test]
async fn nothing_survives_a_cancel() {
    each(|escapee, executor, how| async move {
        let (handle, cancel) = cancellation();
        let body = Invocation { cancel, ..escapee.invocation() };
        let run = tokio::spawn(async move { executor.run(body).await });
        escapee.ready().await;
        handle.cancel(CancelReason::Requested);
        run.await.unwrap();
        // The report comes when they are dead, not before.
        escapee.has_no_survivors(&format!("a cancel {how}"));
    })
    .await;
}

#[tokio::test]
async fn nothing_survives_a_time_out() {
    each(|escapee, executor, how| async move {
        let body = with(escapee.invocation(), |d| d.timeout = Span::from_secs(5));
        // Noise is no silence; such a body has to be told.
        let (handle, cancel) = cancellation();
        let run = tokio::spawn(async move { executor.run(Invocation { cancel, ..body }).await });
        escapee.ready().await;
        if escapee.kind == "holds the pipes" {
            handle.cancel(CancelReason::TooLong);
        }
        assert_eq!(run.await.unwrap().outcome, Outcome::TimedOut, "{}", escapee.kind);
        escapee.has_no_survivors(&format!("a time-out {how}"));
    })
    .await;
}

#[tokio::test]
async fn nothing_survives_the_loss_of_the_lease() {
    each(|escapee, executor, how| async move {
        let (sender, until) = watch::channel(now() + Duration::from_secs(60));
        let body = Invocation { lease: Lease::new(until), ..escapee.invocation() };
        let run = tokio::spawn(async move { executor.run(body).await });
        escapee.ready().await;
        sender.send(now()).unwrap();
        run.await.unwrap();
        escapee.has_no_survivors(&format!("the loss of the lease {how}"));
    })
    .await;
}

#[tokio::test]
async fn nothing_survives_a_run_that_is_dropped() {
    each(|escapee, executor, how| async move {
        let body = escapee.invocation();
        let run = tokio::spawn(async move { executor.run(body).await });
        escapee.ready().await;
        run.abort();
        let what = format!("{how}, nothing is left of a body that {}", escapee.kind);
        eventually(&what, || escapee.processes().is_empty()).await;
    })
    .await;
}

#[tokio::test]
async fn nothing_survives_the_main_process() {
    each(|escapee, executor, how| async move {
        let body = escapee.invocation();
        let run = tokio::spawn(async move { executor.run(body).await });
        let main = escapee.ready().await;
        kill_process(Pid::from_raw(main).unwrap(), Signal::KILL).unwrap();
        let report = run.await.unwrap();
        assert_eq!(report.error.unwrap().lines().next(), Some("ended by signal 9"));
        escapee.has_no_survivors(&format!("its main process {how}"));
    })
    .await;
}

#[tokio::test]
async fn nothing_survives_a_killed_node() {
    each(|escapee, executor, how| async move {
        let has_group = matches!(executor.containment(), Containment::Cgroup { .. });
        let mut node = Command::new(env!("CARGO_BIN_EXE_evenkeel-supervisor-test"))
            .args(["node", &escapee.config().to_string()])
            .arg(escapee.file("bodies.lock"))
            .arg(if has_group { "auto" } else { "off" })
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        escapee.ready().await;
        node.kill().unwrap();
        node.wait().unwrap();
        let what = format!("{how}, nothing is left of a body that {}", escapee.kind);
        eventually(&what, || escapee.processes().is_empty()).await;
    })
    .await;
}

#[tokio::test]
async fn nothing_in_a_group_survives_a_killed_supervisor() {
    each(|escapee, executor, how| async move {
        if matches!(executor.containment(), Containment::ProcessTree { .. }) {
            return;
        }
        let body = escapee.invocation();
        let run = tokio::spawn(async move { executor.run(body).await });
        let main = escapee.ready().await;
        kill_process(Pid::from_raw(parent_of(main)).unwrap(), Signal::KILL).unwrap();
        let report = run.await.unwrap();
        assert!(report.error.unwrap().starts_with("its supervisor was ended: signal: 9"));
        escapee.has_no_survivors(&format!("its supervisor {how}"));
    })
    .await;
}

/// A stranger that got hold of the pipes is nobody the supervisor could end.
#[tokio::test]
async fn a_pipe_that_stays_open_does_not_delay_the_report() {
    let folder = TempDir::new().unwrap();
    let script = "echo $$ >main; while [ ! -e enough ]; do sleep 0.02; done; echo done";
    let body = invocation("shell", json!({"argv": ["sh", "-c", script], "cwd": folder.path()}));
    let run = tokio::spawn(async move { executor_with(settings(CgroupUse::Auto)).run(body).await });
    let main = pid_in(&folder.path().join("main")).await;
    let open = |n| fs::File::options().write(true).open(format!("/proc/{main}/fd/{n}")).unwrap();
    let held = [open(1), open(2)];
    fs::write(folder.path().join("enough"), "").unwrap();
    let report = tokio::time::timeout(Duration::from_secs(30), run).await.unwrap().unwrap();
    assert_eq!(report.output.as_deref(), Some("done\n"));
    drop(held);
}
