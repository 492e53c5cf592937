//! Tests of commands that update one job or many jobs at once.

use serde_json::{Value, json};

use crate::stub::{Fault, Stub};
use crate::support::{Server, run};

#[test]
fn bulk_create_reports_errors_by_line() {
    let server = Server::start(&[]);
    let lines: String = (0..6001)
        .map(|n| match n {
            5500 => "\n".into(),
            6000 => "{\"executor_type\": \"noop\", \"priority\": 500}".into(),
            n => format!(
                "{}\n",
                json!({"name": format!("job {n}"), "executor_type": "noop",
                                        "schedule": "24h"})
            ),
        })
        .collect();
    std::fs::write(server.folder.path().join("jobs.ndjson"), lines).unwrap();
    let result = server.run(&["job", "create", "--file", "jobs.ndjson"]);
    assert_eq!(result.code, 1, "{result:?}");
    assert!(result.out.contains("Created 5999 jobs."), "{}", result.out);
    assert!(result.err.contains("\n  line 6001: priority"), "{}", result.err);
    assert!(!result.err.contains('\u{fffd}'), "{}", result.err);
    let listed = server.json(&["job", "list", "-n", "1"]);
    assert_eq!(listed["total"], 5999);
    let result = server.run(&["job", "create", "--file", "nowhere.ndjson"]);
    assert_eq!(result.code, 2, "{result:?}");
}

#[test]
fn bulk_create_repeats_requests_after_temporary_failures() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..5003).map(|n| format!("{{\"name\": \"job {n}\"}}\n")).collect();
    std::fs::write(folder.path().join("jobs.ndjson"), lines).unwrap();
    let stub = Stub::start(true);
    stub.fail(&[Fault::Empty, Fault::StoreUnavailable, Fault::InProgress]);
    let args = ["job", "create", "--file", "jobs.ndjson", "--url", &stub.url, "--token", "x"];
    let result = run(folder.path(), &args);
    assert!(result.code == 0 && result.out.contains("Created 5003 jobs."), "{result:?}");
    let received = stub.end();
    assert_eq!((received.jobs.len(), received.requests), (5003, 5));
    assert!(received.keys[..4].iter().all(|key| *key == received.keys[0]), "{:?}", received.keys);
}

#[test]
fn job_update_keeps_the_phase() {
    let server = Server::start(&[]);
    let create = ["job", "create", "--name", "news", "--noop"];
    let later = ["--every", "6h", "--start-at", "+2h"];
    let before = server.json(&[&create[..], &later].concat());
    let result = server.run(&["job", "update", "news", "--priority", "9", "--set", "metadata.a=b"]);
    assert!(result.code == 0 && result.out.contains("generation 2"), "{result:?}");
    let after = server.json(&["job", "show", "news"]);
    assert_eq!((&after["priority"], &after["metadata"]), (&json!(9), &json!({"a": "b"})));
    assert_eq!(after["next_run_at"], before["next_run_at"]);
    let late = server.run(&["job", "update", "news", "--every", "1h", "--if-match", "1"]);
    assert_eq!(late.code, 4, "{late:?}");
    let change = ["job", "update", "news", "--every", "1h", "--unset", "start_at"];
    let changed = server.json(&[&change[..], &["--if-match", "2"]].concat());
    // The new schedule moves the next run of the job to an earlier time.
    let time = |job: &Value| job["next_run_at"].as_str().unwrap().to_owned();
    assert!(time(&changed) < time(&before), "{changed}");
    let wrong = server.run(&["job", "update", "news", "--lane", "fast"]);
    assert!(wrong.code == 1 && wrong.err.contains("lane"), "{wrong:?}");
}

#[test]
fn job_commands_apply_by_name_and_by_filter() {
    let server = Server::start(&[]);
    for name in ["a", "b", "c"] {
        let later = ["--every", "6h", "--start-at", "+1h"];
        server.json(&[&["job", "create", "--name", name, "--noop"][..], &later].concat());
    }
    let counted = server.json(&["job", "pause", "--all", "--name-prefix", "a", "--dry-run"]);
    assert_eq!((&counted["matched"], &counted["dry_run"]), (&json!(1), &json!(true)));
    assert_eq!(server.json(&["job", "show", "a"])["status"], "scheduled");
    let result = server.run(&["job", "pause", "a", "b"]);
    assert!(result.code == 0 && result.out.contains("2 of 2"), "{result:?}");
    let result = server.run(&["job", "pause", "--all"]);
    assert_eq!(result.code, 4, "{result:?}");
    assert!(result.out.contains("1 of 3") && result.err.contains("not_allowed_while_paused"));
    let result = server.run(&["job", "pause", "--all", "--json"]);
    assert_eq!(result.code, 4, "{result:?}");
    let report: Value = serde_json::from_str(&result.out).unwrap();
    assert_eq!(
        (&report["done"], &report["refused"]["not_allowed_while_paused"]),
        (&json!(0), &json!(3))
    );
    assert!(result.err.contains("3 of 3 jobs refused"), "{result:?}");
    let counted = server.json(&["job", "pause", "--all", "--dry-run"]);
    assert_eq!(counted["done"], 0);
    assert_eq!(server.json(&["job", "resume", "--all"])["done"], 3);
    assert_eq!(server.json(&["job", "set-priority", "7", "--all"])["done"], 3);
    assert_eq!(server.json(&["job", "show", "c"])["priority"], 7);
    assert_eq!(server.run(&["job", "pause"]).code, 2);
    for verb in ["delete", "cancel"] {
        for more in [&[][..], &["--json"]] {
            let refused = server.run(&[&["job", verb, "--all"], more].concat());
            assert!(refused.code == 2 && refused.err.contains("without a terminal"), "{refused:?}");
            assert!(refused.err.contains("--yes"), "{refused:?}");
        }
    }
    assert_eq!(server.json(&["job", "delete", "--all", "--dry-run"])["done"], 3);
    assert_eq!(server.json(&["job", "list"])["total"], 3);
    assert_eq!(server.json(&["job", "delete", "--all", "--yes"])["done"], 3);
    assert_eq!(server.json(&["job", "list"])["total"], 0);
}
