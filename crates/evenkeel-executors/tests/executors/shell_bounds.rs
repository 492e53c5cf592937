//! Tests resource limits and users of programs.

use std::os::unix::fs::PermissionsExt;

use evenkeel_core::TenantNo;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{
    CancelReason, Executor, Invocation, Report, ShellExecutor, ShellSettings, cancellation,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shell::{executor, executor_with, supervisor};
use crate::support::{eventually, invocation, pid_in, with};

async fn limited(limits: Value, argv: &[&str]) -> Report {
    executor().run(invocation("shell", json!({"argv": argv, "limits": limits}))).await
}

#[tokio::test]
async fn limits_are_set_in_the_kernel() {
    let limits = json!({"cpu_seconds": 7, "open_files": 33, "file_size_mb": 2});
    let report = limited(limits, &["cat", "/proc/self/limits"]).await;
    let output = report.output.unwrap();
    let soft = |name: &str| {
        let line = output.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..].split_ascii_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(soft("Max cpu time"), "7");
    assert_eq!(soft("Max open files"), "33");
    assert_eq!(soft("Max file size"), "2097152");
}

#[tokio::test]
async fn cpu_limit_ends_the_program() {
    let script = "while :; do :; done";
    let report = limited(json!({"cpu_seconds": 1}), &["sh", "-c", script]).await;
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error.unwrap();
    assert_eq!(error, "ended by signal 24: it used more CPU time than limits.cpu_seconds");
}

#[tokio::test]
async fn memory_limit_applies_to_the_program() {
    let script = "my $x = 'x' x (200 * 1024 * 1024); print length $x";
    let report = limited(json!({"memory_mb": 64}), &["perl", "-e", script]).await;
    assert_eq!((report.outcome, report.output), (Outcome::Failed, None));
    let report = limited(json!({"memory_mb": 640}), &["perl", "-e", script]).await;
    assert_eq!(report.output.as_deref(), Some("209715200"), "{:?}", report.error);
}

#[tokio::test]
async fn file_size_limit_ends_the_program() {
    let folder = TempDir::new().unwrap();
    let argv = ["head", "-c", "3000000", "/dev/zero"];
    let script = format!("{} >file", argv.join(" "));
    let config = json!({"argv": ["sh", "-c", format!("exec {script}")],
        "cwd": folder.path(), "limits": {"file_size_mb": 1}});
    let report = executor().run(invocation("shell", config)).await;
    let error = report.error.unwrap();
    assert_eq!(error, "ended by signal 25: it wrote a larger file than limits.file_size_mb");
    assert_eq!(std::fs::metadata(folder.path().join("file")).unwrap().len(), 1024 * 1024);
}

#[tokio::test]
async fn stdin_none_gives_no_input() {
    let config = json!({"argv": ["wc", "-c"], "stdin": "none"});
    let body = with(invocation("shell", config), |d| d.payload = json!({"a": 1}));
    assert_eq!(executor().run(body).await.output.as_deref(), Some("0\n"));
}

#[tokio::test]
async fn variables_are_inherited_by_name() {
    let settings = ShellSettings::new(supervisor());
    let env_allow = vec!["PATH".to_owned(), "CARGO_MANIFEST_DIR".to_owned()];
    let generous = executor_with(ShellSettings { env_allow, ..settings });
    let body = || invocation("shell", json!({"argv": ["sh", "-c", "echo $CARGO_MANIFEST_DIR"]}));
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "\n");
    assert_eq!(generous.run(body()).await.output.as_deref(), Some(own));
    assert_eq!(executor().run(body()).await.output.as_deref(), Some("\n"));
}

/// The job's environment variables must not affect the process that starts the program, because
/// this process may still have the node's rights.
#[tokio::test]
async fn variables_of_a_job_do_not_reach_the_programs_before_it() {
    let config = json!({"argv": ["true"], "env": {"LD_PRELOAD": "/no/such/library.so"}});
    let body = invocation("shell", config);
    let live = body.live.clone();
    assert_eq!(executor().run(body).await.outcome, Outcome::Completed);
    let log = live.log_so_far().unwrap_or_default().text(None);
    // The dynamic loader reports the missing library once per program that it starts. The dynamic
    // loader of musl would end the program instead.
    assert_eq!(log.matches("/no/such/library.so").count(), 1, "{log}");
}

fn for_nobody() -> ShellExecutor {
    let users = vec!["nobody".to_owned(), "54321".to_owned(), "no-such-user".to_owned()];
    executor_with(ShellSettings { users, ..ShellSettings::new(supervisor()) })
}

#[test]
fn user_must_be_allowed() {
    let config = |user: Value| json!({"argv": ["true"], "user": user});
    for (executor, user) in [(executor(), json!("nobody")), (for_nobody(), json!("root"))] {
        let fault = executor.check(TenantNo(1), &config(user), &Value::Null).unwrap_err();
        assert_eq!(fault.field, "executor_config.user");
        assert!(fault.message.contains("does not list"), "{fault}");
    }
    let checked = for_nobody().check(TenantNo(1), &config(json!(54321)), &Value::Null);
    if rustix::process::geteuid().is_root() {
        assert_eq!(checked, Ok(()));
    } else {
        assert!(checked.unwrap_err().message.contains("runs as root"));
    }
}

#[tokio::test]
async fn program_runs_as_its_user_and_ends_like_any_other() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can become another user");
    }
    let run = async |user: Value, script: &str| {
        let config = json!({"argv": ["sh", "-c", script], "user": user});
        for_nobody().run(invocation("shell", config)).await
    };
    let report = run(json!("nobody"), "id -un; id -Gn; echo $USER; echo x >/dev/stderr").await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
    let output = report.output.unwrap();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!((lines[0], lines[2]), ("nobody", "nobody"));
    assert!(!lines[1].contains("root"), "{output}");
    let output = run(json!(54321), "id -u; id -g; id -G").await.output;
    assert_eq!(output.as_deref(), Some("54321\n54321\n54321\n"));
    let error = run(json!("no-such-user"), "true").await.error.unwrap();
    assert!(error.contains("user no-such-user: there is no such user"), "{error}");
    // The program cannot switch back to root.
    let report = run(json!("nobody"), "perl -e '$> = 0; $< = 0; print $<, $>'").await;
    assert!(!report.output.unwrap().contains('0'));
}

#[tokio::test]
async fn directory_is_entered_with_the_rights_of_the_programs_user() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can become another user");
    }
    let folder = TempDir::new().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let config = json!({"argv": ["pwd"], "user": "nobody", "cwd": folder.path()});
    let report = for_nobody().run(invocation("shell", config)).await;
    let error = report.error.unwrap();
    assert!(error.contains("evenkeel: cwd ") && error.contains("Permission denied"), "{error}");
}

#[tokio::test]
async fn program_of_another_user_ends_with_its_supervisor() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can become another user");
    }
    let cgroup = evenkeel_executors::CgroupUse::Off;
    let users = vec!["nobody".to_owned()];
    let executor =
        executor_with(ShellSettings { users, cgroup, ..ShellSettings::new(supervisor()) });
    let config = json!({"argv": ["sh", "-c", "echo $$; exec sleep 600"], "user": "nobody"});
    let body = invocation("shell", config);
    let live = body.live.clone();
    let run = tokio::spawn(async move { executor.run(body).await });
    eventually("it has said who it is", || live.log_so_far().is_some()).await;
    let main: i32 = live.log_so_far().unwrap().text(None).trim().parse().unwrap();
    let parent = rustix::process::Pid::from_raw(crate::support::parent_of(main)).unwrap();
    rustix::process::kill_process(parent, rustix::process::Signal::KILL).unwrap();
    run.await.unwrap();
    eventually("the kernel has ended it", || !crate::support::is_alive(main)).await;
}

#[tokio::test]
async fn program_over_the_limit_reports_that_it_waits() {
    let folder = TempDir::new().unwrap();
    let settings = ShellSettings { bodies_max: 1, ..ShellSettings::new(supervisor()) };
    let executor = std::sync::Arc::new(executor_with(settings));
    let start = |script: &str| {
        let config = json!({"argv": ["sh", "-c", script], "cwd": folder.path()});
        let (handle, cancel) = cancellation();
        let body = Invocation { cancel, ..invocation("shell", config) };
        let (live, executor) = (body.live.clone(), std::sync::Arc::clone(&executor));
        (handle, live, tokio::spawn(async move { executor.run(body).await }))
    };
    let (_first, _, running) = start("echo $$ >main; while [ ! -e enough ]; do sleep 0.02; done");
    pid_in(&folder.path().join("main")).await;
    let (_second, live, waiting) = start("echo ran");
    let (third, third_wire, cancelled) = start("echo ran >third");
    let waits = |live: &evenkeel_executors::LiveReport| {
        live.progress_so_far().message.as_deref()
            == Some("waiting: the node runs as many programs as it may")
    };
    eventually("both say that they wait", || waits(&live) && waits(&third_wire)).await;
    third.cancel(CancelReason::Requested);
    assert_eq!(cancelled.await.unwrap().outcome, Outcome::Cancelled);
    std::fs::write(folder.path().join("enough"), "").unwrap();
    assert_eq!(waiting.await.unwrap().output.as_deref(), Some("ran\n"));
    assert_eq!(live.progress_so_far().message.as_deref(), Some(""));
    assert_eq!(running.await.unwrap().outcome, Outcome::Completed);
    assert!(!folder.path().join("third").exists());
}
