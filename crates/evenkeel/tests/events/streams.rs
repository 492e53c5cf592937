//! Tests of `evenkeel events` and `evenkeel run logs`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::database::Database;
use crate::support::{Server, create_from_json, program};

/// A running `evenkeel` command, and the lines that it prints.
struct Listener {
    child: Child,
    lines: Receiver<String>,
}

impl Listener {
    fn start(server: &Server, args: &[&str]) -> Self {
        let mut child = program(server.folder.path())
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (send, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines() {
                let _ = send.send(line.unwrap());
            }
        });
        Self { child, lines }
    }

    /// Starts `evenkeel events` and waits until the server has accepted the stream. The command
    /// asks for an event from the past, so the server first sends a `gap` event.
    fn of_events(server: &Server, args: &[&str]) -> Self {
        let listener = Self::start(server, &[&["events", "--json", "--after", "1"], args].concat());
        assert_eq!(listener.event()["event"], "gap");
        listener
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(30)).expect("the command prints a line in time")
    }

    fn event(&self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Returns the next event of this kind; skips events of other kinds, such as joining nodes.
    fn event_of(&self, kind: &str) -> Value {
        loop {
            let event = self.event();
            if event["event"] == kind {
                return event;
            }
            assert_eq!(event["event"], "gap", "{event}");
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn events_follow_a_run_from_creation_to_end(database: &Database) {
    let mut server = database.serve(&[]);
    let listener = Listener::of_events(&server, &[]);
    let job =
        create_from_json(&server, &json!({"name": "followed", "executor_type": "noop"})).json();
    for kind in ["job.created", "run.started", "run.ended"] {
        let event = listener.event_of(kind);
        assert_eq!(event["job_id"], job["id"], "{event}");
        if kind == "run.ended" {
            assert_eq!(event["data"]["status"], "completed", "{event}");
            assert!(event["execution_id"].is_string() && event["id"].is_string(), "{event}");
        }
    }
    assert_eq!(server.run(&["job", "delete", "followed"]).code, 0);
    listener.event_of("job.deleted");
    // An open stream does not block the shutdown.
    server.signal(Signal::TERM);
    assert!(server.wait_for_exit().success());
    let log = server.log();
    assert!(!log.contains("did not finish before the shutdown"), "{log}");
}

#[test]
fn events_follow_a_run_on_sqlite() {
    events_follow_a_run_from_creation_to_end(&Database::sqlite());
}

#[test]
fn events_follow_a_run_on_postgres() {
    events_follow_a_run_from_creation_to_end(&Database::postgres());
}

#[test]
fn events_of_other_nodes_are_streamed() {
    let database = Database::postgres();
    let worker = database.serve(&["--node-name", "busy"]);
    let front = database.serve(&["--node-name", "front", "--roles", "api"]);
    let listener = Listener::of_events(&front, &["--kinds", "run.*"]);
    // All nodes notice within one second that a client listens for events.
    std::iter::repeat_with(|| {
        worker.json(&["job", "create", "--noop"]);
        listener.lines.recv_timeout(Duration::from_secs(1))
    })
    .take(30)
    .find_map(|line| {
        let event: Value = serde_json::from_str(&line.ok()?).unwrap();
        (event["event"] == "run.started" && event["data"]["node"] == "busy").then_some(())
    })
    .expect("the events of the other node arrive");
}

/// The output of a run, including standard error, can be read while it runs and after it ends. A
/// client that follows the log receives each line once.
#[test]
fn logs_follow_both_streams_and_are_kept_after_the_run() {
    let server = Database::sqlite().serve(&["--enable-shell", "--shell-unconfined"]);
    let go = server.folder.path().join("go");
    let wait = format!(
        "echo first; sleep 0.2; echo warning >&2; while [ ! -e {} ]; do sleep 0.05; done; \
         echo last; sleep 0.2; echo 'disk 7 full' >&2; exit $1",
        go.display()
    );
    for (name, code, status) in [("succeeds", "0", "completed"), ("fails", "3", "failed")] {
        let _ = std::fs::remove_file(&go);
        let config = json!({"argv": ["sh", "-c", wait, "sh", code]});
        let job = json!({"name": name, "executor_type": "shell", "executor_config": config,
                         "max_retries": 0});
        let result = create_from_json(&server, &job);
        assert_eq!(result.code, 0, "{result:?}");
        let run = server.wait_for_run(name, "running")["id"].as_str().unwrap().to_owned();
        let listener = Listener::start(&server, &["run", "logs", "--follow", &run]);
        assert_eq!((listener.line(), listener.line()), ("first".into(), "warning".into()));
        std::fs::write(&go, "").unwrap();
        assert_eq!((listener.line(), listener.line()), ("last".into(), "disk 7 full".into()));
        let run_shown = server.wait_for_run(name, status);
        let more = listener.lines.recv_timeout(Duration::from_secs(30));
        assert_eq!(more, Err(mpsc::RecvTimeoutError::Disconnected));
        let logs = |more: &[&str]| {
            let result = server.run(&[&["run", "logs", &run], more].concat());
            assert_eq!(result.code, 0, "{result:?}");
            result.out
        };
        assert_eq!(logs(&[]), "first\nwarning\nlast\ndisk 7 full\n");
        assert_eq!(logs(&["-n", "1"]), "disk 7 full\n");
        assert_eq!(logs(&["--stream", "stdout"]), "first\nlast\n");
        let stamped = logs(&["--stream", "stderr", "--timestamps"]);
        assert!(stamped.lines().all(|line| line.contains("Z stderr ")), "{stamped}");
        let lines: Vec<Value> =
            logs(&["--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines.len(), &lines[1]["stream"]), (5, &json!("stderr")));
        assert_eq!((&lines[4]["status"], &lines[4]["is_final"]), (&json!(status), &json!(true)));
        assert_eq!(run_shown["output"], "first\nlast\n");
        if code == "3" {
            let message = run_shown["error_message"].as_str().unwrap();
            assert!(message.starts_with("exit code 3: disk 7 full\n"), "{message}");
            let failed = server.json(&["failures", "--job", name])["failures"][0].clone();
            assert_eq!(
                (&failed["job_name"], &failed["error_message"]),
                (&json!(name), &json!(message))
            );
            let table = server.run(&["failures", "--job", name]).out;
            assert!(table.contains("exit code 3: disk 7 full") && table.contains(name), "{table}");
        }
    }
}
