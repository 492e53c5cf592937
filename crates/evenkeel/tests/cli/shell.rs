//! Jobs that run programs.

use crate::support::{Server, request};

#[test]
fn shell_job_runs_if_enabled() {
    let server = Server::start(&["--enable-shell"]);
    let create = ["job", "create", "--name", "say", "--now", "--shell", "--payload", "[1]", "--"];
    let result = server
        .run(&[&create[..], &["sh", "-c", "cat; echo \" attempt $EVENKEEL_ATTEMPT\""]].concat());
    assert_eq!(result.code, 0, "{result:?}");
    let run = server.wait_for_run("say", "completed");
    assert_eq!(run["output"], "[1] attempt 1\n");
    let id = run["id"].as_str().unwrap();
    assert!(server.run(&["run", "show", id]).out.contains("output     [1] attempt 1"));
}

#[test]
fn program_may_use_huge_pages_although_the_server_does_not() {
    let server = Server::start(&["--enable-shell"]);
    let create = ["job", "create", "--name", "pages", "--now", "--shell", "--"];
    let read = ["sed", "-n", "s/^THP_enabled:[[:space:]]*/enabled /p", "/proc/self/status"];
    assert_eq!(server.run(&[&create[..], &read].concat()).code, 0);
    let run = server.wait_for_run("pages", "completed");
    // Kernels before 5.0 do not show the setting.
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let expected = if own.contains("THP_enabled") { "enabled 1\n" } else { "" };
    assert_eq!(run["output"].as_str().unwrap_or_default(), expected);
}

#[test]
fn shell_job_is_refused_if_not_enabled() {
    let server = Server::start(&[]);
    let result = server.run(&["job", "create", "--name", "say", "--now", "--shell", "--", "true"]);
    assert_eq!(result.code, 1, "{result:?}");
    assert!(result.err.contains("shell is off"), "{}", result.err);
    let header = server.header();
    let body = r#"{"executor_type": "shell", "executor_config": {"argv": ["true"]}}"#;
    let (status, _) = request(&server.url(), "POST", "/api/v1/jobs", &header, body);
    assert_eq!(status, 422);
}

#[test]
fn program_ends_with_its_killed_server_and_runs_again_after_the_restart() {
    let mut server = Server::start(&["--enable-shell", "--shell-unconfined"]);
    let marks = server.folder.path().join("marks");
    let script = format!("echo $$ >> {}; exec sleep 600", marks.display());
    let create = ["job", "create", "--name", "long", "--now", "--shell", "--"];
    assert_eq!(server.run(&[&create[..], &["sh", "-c", &script]].concat()).code, 0);
    let pids = || -> Vec<i32> {
        let text = std::fs::read_to_string(&marks).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    let first = crate::support::wait_for("the program", || pids().first().copied());
    server.signal(rustix::process::Signal::KILL);
    server.wait_for_exit();
    // The server starts only after the shell program of the killed server process has ended.
    server.restart();
    let first = rustix::process::Pid::from_raw(first).unwrap();
    assert!(rustix::process::test_kill_process(first).is_err(), "the program still runs");
    crate::support::wait_for("the program to run again", || pids().get(1).copied());
}
