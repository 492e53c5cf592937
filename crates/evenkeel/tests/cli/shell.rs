//! Jobs that run programs.

use crate::support::{Server, request};

#[test]
fn a_program_runs_where_it_is_allowed() {
    let server = Server::start(&["--enable-shell"]);
    let create = ["job", "create", "--name", "say", "--now", "--shell", "--payload", "[1]", "--"];
    let said = server
        .run(&[&create[..], &["sh", "-c", "cat; echo \" attempt $EVENKEEL_ATTEMPT\""]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    let run = server.wait_for_run("say", "completed");
    assert_eq!(run["output"], "[1] attempt 1\n");
    let id = run["id"].as_str().unwrap();
    assert!(server.run(&["run", "show", id]).out.contains("output     [1] attempt 1"));
}

#[test]
fn a_program_is_refused_where_it_is_not_allowed() {
    let server = Server::start(&[]);
    let said = server.run(&["job", "create", "--name", "say", "--now", "--shell", "--", "true"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("shell is off"), "{}", said.err);
    let token = std::fs::read_to_string(server.data_dir().join("token")).unwrap();
    let header = format!("authorization: Bearer {}", token.trim());
    let body = r#"{"executor_type": "shell", "executor_config": {"argv": ["true"]}}"#;
    let (status, _) = request(&server.url(), "POST", "/api/v1/jobs", &header, body);
    assert_eq!(status, 422);
}

#[test]
fn a_program_ends_with_a_server_that_is_killed_and_the_next_one_runs_it_again() {
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
    server.wait_until_it_ends();
    // It comes up only when the program of its former life is gone.
    server.restart();
    let first = rustix::process::Pid::from_raw(first).unwrap();
    assert!(rustix::process::test_kill_process(first).is_err(), "the program is still there");
    crate::support::wait_for("the program to run again", || pids().get(1).copied());
}
