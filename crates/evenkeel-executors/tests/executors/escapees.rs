//! Tests programs that try to outlive their attempt, and checks that none of their processes
//! survives.
//!
//! Each kind of program is ended in a control group, in a sandbox, and without either.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::Span;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{
    CancelReason, CgroupUse, Containment, Executor, Invocation, Lease, ShellExecutor,
    ShellSettings, cancellation, try_sandbox,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::escapee::{Escapee, KINDS};
use crate::shell::{executor_with, in_a_sandbox, supervisor};
use crate::support::{eventually, invocation, parent_of, pid_in, with};

fn settings(cgroup: CgroupUse) -> ShellSettings {
    let kill_grace = Duration::from_millis(100);
    ShellSettings { kill_grace, cgroup, ..ShellSettings::new(supervisor()) }
}

/// What keeps the processes of a program together: a control group, a sandbox, or neither.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kept {
    Group,
    Sandbox,
    Neither,
}

impl Kept {
    const fn words(self) -> &'static str {
        match self {
            Self::Group => "in a group",
            Self::Sandbox => "in a sandbox",
            Self::Neither => "without a group",
        }
    }

    const fn argument(self) -> &'static str {
        match self {
            Self::Group => "auto",
            Self::Sandbox => "sandbox",
            Self::Neither => "off",
        }
    }
}

/// Returns the executors that this machine supports, and the directory that the sandbox hides.
fn executors() -> (Vec<(Kept, Arc<ShellExecutor>)>, TempDir) {
    let hidden = TempDir::new().unwrap();
    let sandboxed = in_a_sandbox(settings(CgroupUse::Off), hidden.path());
    let grouped = executor_with(settings(CgroupUse::Auto));
    let mut executors = vec![(Kept::Neither, executor_with(settings(CgroupUse::Off)))];
    match try_sandbox(&sandboxed.supervisor, sandboxed.sandbox.as_ref().unwrap()) {
        Ok(()) => executors.push((Kept::Sandbox, executor_with(sandboxed))),
        Err(error) => println!("skipped in a sandbox: {error}"),
    }
    match grouped.containment() {
        Containment::Cgroup { .. } => executors.push((Kept::Group, grouped)),
        without @ Containment::ProcessTree { .. } => println!("skipped with a group: {without}"),
    }
    let shared = |(kept, executor)| (kept, Arc::new(executor));
    (executors.into_iter().map(shared).collect(), hidden)
}

/// Runs every kind of program with each executor, and ends the program with `end`.
async fn each<F: Future<Output = ()> + Send + 'static>(
    end: impl Fn(Escapee, Arc<ShellExecutor>, Kept) -> F,
) {
    let (executors, _hidden) = executors();
    for (kept, executor) in executors {
        let mut all = JoinSet::new();
        for n in 0..KINDS.len() {
            all.spawn(end(Escapee::new(n, kept.words()), Arc::clone(&executor), kept));
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
    each(|escapee, executor, kept| async move {
        let how = kept.words();
        let (handle, cancel) = cancellation();
        let body = Invocation { cancel, ..escapee.invocation() };
        let run = tokio::spawn(async move { executor.run(body).await });
        escapee.ready().await;
        handle.cancel(CancelReason::Requested);
        run.await.unwrap();
        // The report of an attempt arrives after all its processes have ended.
        escapee.has_no_survivors(&format!("a cancel {how}"));
    })
    .await;
}

#[tokio::test]
async fn nothing_survives_a_timeout() {
    each(|escapee, executor, kept| async move {
        let how = kept.words();
        let body = with(escapee.invocation(), |d| d.timeout = Span::from_secs(5));
        // Output restarts the job's timeout, so the test cancels programs that always print.
        let (handle, cancel) = cancellation();
        let mut run =
            tokio::spawn(async move { executor.run(Invocation { cancel, ..body }).await });
        // On a busy machine the timeout may elapse before all processes run, but even then no
        // process survives.
        let report = tokio::select! {
            report = &mut run => report,
            _ = escapee.ready() => {
                if escapee.kind == "holds the pipes" {
                    handle.cancel(CancelReason::TooLong);
                }
                run.await
            }
        };
        assert_eq!(report.unwrap().outcome, Outcome::TimedOut, "{}", escapee.kind);
        escapee.has_no_survivors(&format!("a time-out {how}"));
    })
    .await;
}

#[tokio::test]
async fn nothing_survives_the_loss_of_the_lease() {
    each(|escapee, executor, kept| async move {
        let how = kept.words();
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
    each(|escapee, executor, kept| async move {
        let how = kept.words();
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
    each(|escapee, executor, kept| async move {
        let how = kept.words();
        let body = escapee.invocation();
        let run = tokio::spawn(async move { executor.run(body).await });
        let main = escapee.ready().await;
        kill_process(Pid::from_raw(main).unwrap(), Signal::KILL).unwrap();
        let report = run.await.unwrap();
        let error = report.error.unwrap();
        assert!(error.starts_with("ended by signal 9"), "{error}");
        escapee.has_no_survivors(&format!("its main process {how}"));
    })
    .await;
}

#[tokio::test]
async fn nothing_survives_a_killed_node() {
    each(|escapee, executor, kept| async move {
        let how = kept.words();
        drop(executor);
        let mut node = Command::new(env!("CARGO_BIN_EXE_evenkeel-supervisor-test"))
            .args(["node", &escapee.config().to_string()])
            .arg(escapee.file("bodies.lock"))
            .arg(kept.argument())
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
async fn nothing_in_a_group_or_a_sandbox_survives_a_killed_supervisor() {
    each(|escapee, executor, kept| async move {
        let how = kept.words();
        if kept == Kept::Neither {
            return;
        }
        let body = escapee.invocation();
        let run = tokio::spawn(async move { executor.run(body).await });
        let main = escapee.ready().await;
        kill_process(Pid::from_raw(parent_of(main)).unwrap(), Signal::KILL).unwrap();
        let report = run.await.unwrap();
        assert!(report.error.unwrap().starts_with("the supervisor ended: signal: 9"));
        escapee.has_no_survivors(&format!("its supervisor {how}"));
    })
    .await;
}

/// The supervisor cannot end an unrelated process that holds the program's output pipes.
#[tokio::test]
async fn open_pipe_does_not_delay_the_report() {
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
