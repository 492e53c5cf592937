//! Tests programs that do not exit on their own.

use std::path::PathBuf;
use std::time::Duration;

use evenkeel_core::Span;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{
    CancelReason, Executor, Invocation, Lease, Report, ShellSettings, cancellation,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::shell::{executor, executor_with, supervisor};
use crate::support::{eventually, invocation, is_alive, parent_of, pid_in, with};

/// A program that writes its process ids to files in its directory.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn script(&self, script: &str) -> Invocation {
        let cwd = self.folder.path();
        invocation("shell", json!({"argv": ["sh", "-c", script], "cwd": cwd}))
    }

    async fn pid(&self, name: &str) -> i32 {
        pid_in(&self.file(name)).await
    }
}

/// A main process that ignores SIGTERM, a child that ignores it as well, and a grandchild in a
/// separate session without a parent. All processes exit on their own after about 100 s, in case
/// the test fails to end them.
const STUBBORN: &str = "trap '' TERM
    sh -c 'trap \"\" TERM; echo $$ >child; for i in $(seq 100); do sleep 1; done' &
    sh -c 'setsid sh -c \"trap : TERM HUP; echo \\$\\$ >escaped
        for i in \\$(seq 100); do sleep 1; done\" &'
    echo $$ >main
    for i in $(seq 100); do sleep 1; done";

#[expect(clippy::disallowed_methods, reason = "leases end on tokio's clock")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test]
async fn cancelled_program_ends_with_all_its_descendants() {
    let scene = Scene::new();
    let (handle, cancel) = cancellation();
    let run = tokio::spawn({
        let invocation = Invocation { cancel, ..scene.script(STUBBORN) };
        async move { executor().run(invocation).await }
    });
    let pids = [scene.pid("main").await, scene.pid("child").await, scene.pid("escaped").await];
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    handle.cancel(CancelReason::Requested);
    let report = run.await.unwrap();
    // The report of an attempt arrives after all its processes have ended.
    assert!(!pids.iter().any(|pid| is_alive(*pid)), "{pids:?}");
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert_eq!(report.error, Report::cancelled(CancelReason::Requested).error);
}

#[tokio::test]
async fn program_may_clean_up_after_sigterm() {
    let scene = Scene::new();
    let script = "trap 'echo bye; exit 0' TERM; echo $$ >main
        for i in $(seq 5000); do sleep 0.01; done";
    let (handle, cancel) = cancellation();
    let settings = ShellSettings::new(supervisor());
    let patient = executor_with(ShellSettings { kill_grace: Duration::from_secs(20), ..settings });
    let invocation = Invocation { cancel, ..scene.script(script) };
    let run = tokio::spawn(async move { patient.run(invocation).await });
    scene.pid("main").await;
    handle.cancel(CancelReason::TooLong);
    let report = run.await.unwrap();
    assert_eq!(report.outcome, Outcome::TimedOut);
    assert_eq!(report.output.as_deref(), Some("bye\n"));
}

#[tokio::test]
async fn attempt_cancelled_before_its_start_never_starts() {
    let scene = Scene::new();
    let (handle, cancel) = cancellation();
    handle.cancel(CancelReason::ShuttingDown);
    let invocation = Invocation { cancel, ..scene.script("echo $$ >main") };
    let report = executor().run(invocation).await;
    assert_eq!(report.error, Report::cancelled(CancelReason::ShuttingDown).error);
    assert!(!scene.file("main").exists());
}

#[tokio::test]
async fn remaining_processes_are_killed() {
    let scene = Scene::new();
    let script = "setsid sh -c 'echo $$ >left; exec sleep 600' >/dev/null 2>&1 &
        while [ ! -s left ]; do sleep 0.01; done; exit 0";
    let report = executor().run(scene.script(script)).await;
    assert_eq!(report.outcome, Outcome::Completed);
    assert!(!is_alive(scene.pid("left").await));
}

#[tokio::test]
async fn remaining_processes_get_sigterm_first() {
    let settings = ShellSettings::new(supervisor());
    let executor = executor_with(ShellSettings { kill_grace: Duration::from_secs(20), ..settings });
    // The remaining process is in a separate session, outside the program's process group.
    let script = "setsid sh -c 'trap \"echo bye >said; exit\" TERM; echo $$ >left
            for i in $(seq 5000); do sleep 0.01; done' >/dev/null 2>&1 &
        for i in $(seq 1000); do [ -s left ] && exit; sleep 0.01; done";
    // The remaining process has half a second to write the file `said`, which may be too short on a
    // busy machine.
    for _ in 0..20 {
        let scene = Scene::new();
        let report = executor.run(scene.script(script)).await;
        assert_eq!(report.outcome, Outcome::Completed);
        assert!(!is_alive(scene.pid("left").await));
        if scene.file("said").exists() {
            return;
        }
    }
    panic!("nothing that was left behind was asked to end");
}

#[tokio::test]
async fn dropping_the_future_ends_the_program() {
    let scene = Scene::new();
    let invocation = scene.script(STUBBORN);
    let run = tokio::spawn(async move { executor().run(invocation).await });
    let pids = [scene.pid("main").await, scene.pid("child").await, scene.pid("escaped").await];
    run.abort();
    eventually("the body is gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn silence_times_out_and_output_does_not() {
    let scene = Scene::new();
    // The program runs for twice the timeout, but is never silent for long.
    let noisy = scene.script("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.25; done");
    let report = executor().run(with(noisy, |d| d.timeout = Span::from_secs(1))).await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:?}");

    let silent = scene.script("echo before >&2; echo $$ >main; exec sleep 600");
    let report = executor().run(with(silent, |d| d.timeout = Span::from_secs(1))).await;
    assert_eq!(report.outcome, Outcome::TimedOut);
    assert_eq!(report.error.as_deref(), Some("no output for 1s: before"));
    assert!(!is_alive(scene.pid("main").await));
}

#[tokio::test]
async fn program_ends_with_the_lease() {
    let scene = Scene::new();
    let (sender, until) = watch::channel(now() + Duration::from_secs(60));
    let invocation =
        Invocation { lease: Lease::new(until), ..scene.script("echo $$ >main; exec sleep 600") };
    let run = tokio::spawn(async move { executor().run(invocation).await });
    scene.pid("main").await;
    sender.send(now() + Duration::from_millis(200)).unwrap();
    let report = run.await.unwrap();
    assert_eq!(report.error, Report::cancelled(CancelReason::LeaseLost).error);
    assert!(!is_alive(scene.pid("main").await));
}

#[tokio::test]
async fn renewed_lease_keeps_the_program_running() {
    let scene = Scene::new();
    let (sender, until) = watch::channel(now() + Duration::from_secs(60));
    let script = "echo $$ >main; for i in $(seq 5000); do [ -e enough ] && exit; sleep 0.02; done
        exit 1";
    let invocation = Invocation { lease: Lease::new(until), ..scene.script(script) };
    let run = tokio::spawn(async move { executor().run(invocation).await });
    scene.pid("main").await;
    let first = now() + Duration::from_secs(1);
    sender.send(first).unwrap();
    tokio::task::yield_now().await;
    sender.send(first + Duration::from_secs(60)).unwrap();
    tokio::time::sleep_until(first + Duration::from_millis(500)).await;
    std::fs::write(scene.file("enough"), "").unwrap();
    assert_eq!(run.await.unwrap().outcome, Outcome::Completed);
}

#[tokio::test]
async fn killed_supervisor_ends_the_program() {
    let scene = Scene::new();
    let script = "sleep 600 & echo $! >child; echo $$ >main; wait";
    let invocation = scene.script(script);
    let run = tokio::spawn(async move { executor().run(invocation).await });
    let pids = [scene.pid("main").await, scene.pid("child").await];
    let supervisor = Pid::from_raw(parent_of(pids[0])).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    let report = run.await.unwrap();
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.error.unwrap().starts_with("the supervisor ended: signal: 9"));
    eventually("the body is gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
}

#[tokio::test]
async fn unresponsive_supervisor_is_killed() {
    let scene = Scene::new();
    let (handle, cancel) = cancellation();
    let invocation = Invocation { cancel, ..scene.script("echo $$ >main; exec sleep 600") };
    let run = tokio::spawn(async move { executor().run(invocation).await });
    let main = scene.pid("main").await;
    kill_process(Pid::from_raw(parent_of(main)).unwrap(), Signal::STOP).unwrap();
    handle.cancel(CancelReason::Requested);
    let report = run.await.unwrap();
    assert_eq!(report.outcome, Outcome::Cancelled);
    eventually("the body is gone", || !is_alive(main)).await;
}
