//! Tests the supervisor without an executor, with a node that is frozen or has ended.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use evenkeel_executors::supervisor::EXIT_ABANDONED;
use rustix::fs::{FlockOperation, flock};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{eventually, is_alive, pid_in};

/// The node's side of the supervisor protocol.
struct Node {
    supervisor: Child,
    control: BufReader<UnixStream>,
}

impl Node {
    fn new(spec: &Value) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let supervisor = Command::new(env!("CARGO_BIN_EXE_evenkeel-supervisor-test"))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut node = Self { supervisor, control: BufReader::new(ours) };
        node.say(&spec.to_string());
        node
    }

    fn say(&mut self, line: &str) {
        writeln!(self.control.get_mut(), "{line}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.control.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or(Value::Null)
    }

    fn exit_code(&mut self) -> Option<i32> {
        self.supervisor.wait().unwrap().code()
    }
}

fn monotonic_ms() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

/// Returns the spec of a program that writes its process id and keeps running.
fn spec(folder: &Path, lease_ms: Option<i64>) -> Value {
    json!({
        "argv": ["sh", "-c", "echo $$ >main; exec sleep 600"],
        "env": {"PATH": "/usr/bin:/bin"},
        "cwd": folder,
        "payload": null,
        "bodies_lock": folder.join("bodies.lock"),
        "kill_grace_ms": 100,
        "lease_ms": lease_ms,
        "sent_ms": monotonic_ms(),
    })
}

fn started(spec: &Value) -> Node {
    let mut node = Node::new(spec);
    assert_eq!(node.hear(), "ready");
    node.say("go");
    assert!(node.hear()["started"]["pid"].is_i64());
    node
}

#[tokio::test]
async fn body_of_a_frozen_node_ends_with_the_lease() {
    let folder = TempDir::new().unwrap();
    let mut node = started(&spec(folder.path(), Some(60_000)));
    let main = pid_in(&folder.path().join("main")).await;
    assert!(is_alive(main));
    node.say("lease 300");
    assert_eq!(node.exit_code(), Some(EXIT_ABANDONED.into()));
    assert!(!is_alive(main));
    assert_eq!(node.hear()["ended"]["by"], "lease");
}

#[tokio::test]
async fn renewed_lease_keeps_the_body_until_it_is_stopped() {
    let folder = TempDir::new().unwrap();
    let mut node = started(&spec(folder.path(), Some(60_000)));
    let main = pid_in(&folder.path().join("main")).await;
    // Both leases are sent together, so that the first cannot end before the second arrives.
    node.say("lease 1500\nlease 60000");
    let start = monotonic_ms();
    eventually("the first lease is over", || monotonic_ms() > start + 2000).await;
    assert!(is_alive(main));
    node.say("stop");
    assert_eq!(node.hear()["ended"]["by"], "stop");
    assert_eq!(node.exit_code(), Some(128 + 15));
    assert!(!is_alive(main));
}

#[tokio::test]
async fn body_of_a_dead_node_ends() {
    let folder = TempDir::new().unwrap();
    let Node { mut supervisor, control } = started(&spec(folder.path(), None));
    let main = pid_in(&folder.path().join("main")).await;
    drop(control);
    assert_eq!(supervisor.wait().unwrap().code(), Some(EXIT_ABANDONED.into()));
    assert!(!is_alive(main));
}

#[tokio::test]
async fn body_does_not_start_without_a_node_or_a_lease() {
    let folder = TempDir::new().unwrap();
    let mut gone = Node::new(&spec(folder.path(), None));
    assert_eq!(gone.hear(), "ready");
    let Node { mut supervisor, control } = gone;
    drop(control);
    assert_eq!(supervisor.wait().unwrap().code(), Some(EXIT_ABANDONED.into()));

    let mut expired = Node::new(&spec(folder.path(), Some(0)));
    assert_eq!(expired.hear(), "ready");
    expired.say("go");
    assert_eq!(expired.exit_code(), Some(EXIT_ABANDONED.into()));
    assert!(!folder.path().join("main").exists());
}

#[tokio::test]
async fn lock_is_held_until_the_body_has_ended() {
    let folder = TempDir::new().unwrap();
    let mut spec = spec(folder.path(), None);
    // The program ignores SIGTERM, so that some time passes between the command `stop` and the end
    // of the program.
    spec["argv"][2] = "trap '' TERM; echo $$ >main; for i in $(seq 100); do sleep 1; done".into();
    let mut node = started(&spec);
    let main = pid_in(&folder.path().join("main")).await;
    let lock = File::open(folder.path().join("bodies.lock")).unwrap();
    let taken = || flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    assert!(!taken());
    node.say("stop");
    let mut alive_when_taken = None;
    eventually("the lock is free", || {
        let alive = is_alive(main);
        if taken() {
            alive_when_taken = Some(alive && is_alive(main));
        }
        alive_when_taken.is_some()
    })
    .await;
    assert_eq!(alive_when_taken, Some(false));
    node.exit_code();
}

#[tokio::test]
async fn lock_outlasts_a_killed_supervisor_while_a_process_of_the_body_lives() {
    let folder = TempDir::new().unwrap();
    let mut spec = spec(folder.path(), None);
    spec["argv"][2] = "setsid sh -c 'echo $$ >escaped; exec sleep 600' &
        echo $$ >main; exec sleep 600"
        .into();
    let mut node = started(&spec);
    let main = pid_in(&folder.path().join("main")).await;
    let escaped = pid_in(&folder.path().join("escaped")).await;
    node.supervisor.kill().unwrap();
    node.supervisor.wait().unwrap();
    eventually("the kernel has ended the main process", || !is_alive(main)).await;
    let lock = File::open(folder.path().join("bodies.lock")).unwrap();
    let taken = || flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    assert!(is_alive(escaped) && !taken());
    let escaped = rustix::process::Pid::from_raw(escaped).unwrap();
    rustix::process::kill_process(escaped, rustix::process::Signal::KILL).unwrap();
    eventually("the lock is free", taken).await;
}

#[tokio::test]
async fn body_does_not_start_while_a_restarted_node_holds_the_lock() {
    let folder = TempDir::new().unwrap();
    let lock = File::create(folder.path().join("bodies.lock")).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut node = Node::new(&spec(folder.path(), None));
    let error = node.hear()["failed"]["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("the lock file of programs: "), "{error}");
    assert_ne!(node.exit_code(), Some(0));
    assert!(!folder.path().join("main").exists());
}

#[tokio::test]
async fn body_cannot_write_to_its_lock_file() {
    let folder = TempDir::new().unwrap();
    let mut node = started(&spec(folder.path(), None));
    let main = pid_in(&folder.path().join("main")).await;
    let lock = folder.path().join("bodies.lock");
    let held: Vec<String> = fs::read_dir(format!("/proc/{main}/fd"))
        .unwrap()
        .flatten()
        .filter(|fd| fs::read_link(fd.path()).is_ok_and(|file| file == lock))
        .map(|fd| fd.file_name().into_string().unwrap())
        .collect();
    assert_eq!(held.len(), 1, "{held:?}");
    let info = fs::read_to_string(format!("/proc/{main}/fdinfo/{}", held[0])).unwrap();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
    // The lowest two bits of the flags are the access mode of the descriptor: 0 is read-only.
    assert_eq!(i64::from_str_radix(flags, 8).unwrap() & 3, 0, "{info}");
    node.say("stop");
    node.exit_code();
}

#[test]
fn limits_apply_even_without_the_control_group() {
    let become_body = |required: bool| {
        let prelude = json!({
            "supervisor": std::process::id(), "user": null, "cwd": null,
            "group": {"path": "/no/such/group", "required": required},
            "limits": {}, "limits_alone": {"open_files": 33},
        });
        Command::new(env!("CARGO_BIN_EXE_evenkeel-supervisor-test"))
            .args(["--exec", &prelude.to_string(), "--", "/bin/sh", "-c", "ulimit -n"])
            .output()
            .unwrap()
    };
    let output = become_body(false);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "33\n", "{output:?}");
    let complaint = "evenkeel: running without a control group, which can't be joined: ";
    assert!(String::from_utf8_lossy(&output.stderr).starts_with(complaint), "{output:?}");
    assert!(!become_body(true).status.success());
}

#[tokio::test]
async fn missing_control_group_is_reported() {
    let folder = TempDir::new().unwrap();
    let mut spec = spec(folder.path(), None);
    spec["argv"][2] = "ulimit -n >limit".into();
    spec["limits"] = json!({"open_files": 33});
    spec["group"] = json!({"path": "/no/such/group", "required": false});
    let mut node = started(&spec);
    assert_eq!(node.hear()["ended"]["code"], 0);
    assert_eq!(node.exit_code(), Some(0));
    assert_eq!(fs::read_to_string(folder.path().join("limit")).unwrap(), "33\n");
    let mut said = String::new();
    node.supervisor.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(
        said.starts_with("evenkeel: running without a control group, which can't be"),
        "{said}"
    );
}
