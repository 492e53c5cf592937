//! Jobs that are changed, and many at once.

use serde_json::{Value, json};

use crate::stub::{Stub, Trouble};
use crate::support::{Server, run};

#[test]
fn a_file_of_jobs_is_created_and_its_faults_are_told_by_line() {
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
    let said = server.run(&["job", "create", "--file", "jobs.ndjson"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("Created 5999 jobs."), "{}", said.out);
    assert!(said.err.contains("\n  line 6001: priority"), "{}", said.err);
    assert!(!said.err.contains('\u{fffd}'), "{}", said.err);
    let listed = server.json(&["job", "list", "-n", "1"]);
    assert_eq!(listed["total"], 5999);
    let said = server.run(&["job", "create", "--file", "nowhere.ndjson"]);
    assert_eq!(said.code, 2, "{said:?}");
}

#[test]
fn no_line_of_a_file_is_lost_while_the_server_is_in_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..5003).map(|n| format!("{{\"name\": \"job {n}\"}}\n")).collect();
    std::fs::write(folder.path().join("jobs.ndjson"), lines).unwrap();
    let stub = Stub::start(true);
    stub.fail(&[Trouble::Silent, Trouble::Out, Trouble::UnderWay]);
    let args = ["job", "create", "--file", "jobs.ndjson", "--url", &stub.url, "--token", "x"];
    let said = run(folder.path(), &args);
    assert!(said.code == 0 && said.out.contains("Created 5003 jobs."), "{said:?}");
    let asked = stub.end();
    assert_eq!((asked.jobs.len(), asked.requests), (5003, 5));
    assert!(asked.keys[..4].iter().all(|key| *key == asked.keys[0]), "{:?}", asked.keys);
}

#[test]
fn a_job_is_updated_and_keeps_its_rhythm() {
    let server = Server::start(&[]);
    let create = ["job", "create", "--name", "news", "--noop"];
    let later = ["--every", "6h", "--start-at", "+2h"];
    let before = server.json(&[&create[..], &later].concat());
    let said = server.run(&["job", "update", "news", "--priority", "9", "--set", "metadata.a=b"]);
    assert!(said.code == 0 && said.out.contains("generation 2"), "{said:?}");
    let after = server.json(&["job", "show", "news"]);
    assert_eq!((&after["priority"], &after["metadata"]), (&json!(9), &json!({"a": "b"})));
    assert_eq!(after["next_run_at"], before["next_run_at"]);
    let late = server.run(&["job", "update", "news", "--every", "1h", "--if-match", "1"]);
    assert_eq!(late.code, 4, "{late:?}");
    let change = ["job", "update", "news", "--every", "1h", "--unset", "start_at"];
    let changed = server.json(&[&change[..], &["--if-match", "2"]].concat());
    // It is placed afresh, within an hour.
    let time = |job: &Value| job["next_run_at"].as_str().unwrap().to_owned();
    assert!(time(&changed) < time(&before), "{changed}");
    let wrong = server.run(&["job", "update", "news", "--lane", "fast"]);
    assert!(wrong.code == 1 && wrong.err.contains("lane"), "{wrong:?}");
}

#[test]
fn many_jobs_are_commanded_by_name_and_by_filter() {
    let server = Server::start(&[]);
    for name in ["a", "b", "c"] {
        let later = ["--every", "6h", "--start-at", "+1h"];
        server.json(&[&["job", "create", "--name", name, "--noop"][..], &later].concat());
    }
    let counted = server.json(&["job", "pause", "--all", "--name-prefix", "a", "--dry-run"]);
    assert_eq!((&counted["matched"], &counted["dry_run"]), (&json!(1), &json!(true)));
    assert_eq!(server.json(&["job", "show", "a"])["status"], "scheduled");
    let said = server.run(&["job", "pause", "a", "b"]);
    assert!(said.code == 0 && said.out.contains("2 of 2"), "{said:?}");
    let said = server.run(&["job", "pause", "--all"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.out.contains("1 of 3") && said.err.contains("not_allowed_while_paused"));
    let said = server.run(&["job", "pause", "--all", "--json"]);
    assert_eq!(said.code, 4, "{said:?}");
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&told["done"], &told["refused"]["not_allowed_while_paused"]),
        (&json!(0), &json!(3))
    );
    assert!(said.err.contains("3 of 3 jobs refused"), "{said:?}");
    let counted = server.json(&["job", "pause", "--all", "--dry-run"]);
    assert_eq!(counted["done"], 0);
    assert_eq!(server.json(&["job", "resume", "--all"])["done"], 3);
    assert_eq!(server.json(&["job", "set-priority", "7", "--all"])["done"], 3);
    assert_eq!(server.json(&["job", "show", "c"])["priority"], 7);
    assert_eq!(server.run(&["job", "pause"]).code, 2);
    for verb in ["delete", "cancel"] {
        for more in [&[][..], &["--json"]] {
            let refused = server.run(&[&["job", verb, "--all"], more].concat());
            assert!(
                refused.code == 2 && refused.err.contains("nobody can be asked"),
                "{refused:?}"
            );
            assert!(refused.err.contains("--yes"), "{refused:?}");
        }
    }
    assert_eq!(server.json(&["job", "delete", "--all", "--dry-run"])["done"], 3);
    assert_eq!(server.json(&["job", "list"])["total"], 3);
    assert_eq!(server.json(&["job", "delete", "--all", "--yes"])["done"], 3);
    assert_eq!(server.json(&["job", "list"])["total"], 0);
}
