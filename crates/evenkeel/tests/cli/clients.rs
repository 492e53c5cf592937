//! Tests of commands that send requests to a server.

use serde_json::json;

use crate::support::{Server, create_from_json, program, run, wait_for};

/// Flags with which the first run of a job starts in 24 h. Without `--start-at`, the server could
/// choose any start time, even now.
const IN_A_DAY: [&str; 4] = ["--every", "24h", "--start-at", "+24h"];

#[test]
fn trigger_runs_outside_the_schedule() {
    let server = Server::start(&[]);
    server.json(&[&["job", "create", "--name", "rare", "--noop"][..], &IN_A_DAY].concat());
    let run_id = server.json(&["job", "trigger", "rare"])["run_id"].as_str().unwrap().to_owned();
    let shown = wait_for("the triggered run", || {
        let result = server.run(&["run", "show", &run_id, "--json"]);
        let run: serde_json::Value = serde_json::from_str(&result.out).ok()?;
        (run["status"] == "completed").then_some(run)
    });
    assert_eq!(shown["origin"], "trigger");
    let result = server.run(&["run", "show", &run_id]);
    assert!(result.out.contains("completed") && result.out.contains(&run_id), "{}", result.out);
}

#[test]
fn mistyped_name_is_answered_with_a_similar_name() {
    let server = Server::start(&[]);
    for name in ["news/daily", "report"] {
        server.json(&[&["job", "create", "--name", name, "--noop"][..], &IN_A_DAY].concat());
    }
    for args in [
        &["job", "show", "news/dialy"][..],
        &["job", "pause", "news/dialy"],
        &["job", "trigger", "nwes/daily"],
        &["run", "list", "--job", "news/day"],
        &["events", "--job", "News/daly", "-n", "1"],
    ] {
        let result = server.run(args);
        assert!(result.code == 3 && result.err.contains("did you mean news/daily?"), "{result:?}");
    }
    let other = server.run(&["job", "show", "invoice"]);
    assert!(other.code == 3 && other.err.contains("evenkeel job list"), "{other:?}");
    assert_eq!(server.json(&["job", "show", "news/daily"])["name"], "news/daily");
}

#[test]
fn run_list_of_a_new_job_names_its_first_run() {
    let server = Server::start(&[]);
    server.json(&[&["job", "create", "--name", "rare", "--noop"][..], &IN_A_DAY].concat());
    let result = server.run(&["run", "list", "--job", "rare"]);
    assert!(result.code == 0 && result.out.starts_with("rare has not run yet"), "{result:?}");
    assert!(result.out.contains("its first run is due in "), "{result:?}");
}

#[test]
fn each_kind_of_failure_has_its_exit_code() {
    let server = Server::start(&[]);
    let create = ["job", "create", "--name", "one", "--every", "1h", "--noop"];
    assert_eq!(server.run(&create).code, 0);
    let taken = server.run(&create);
    assert_eq!(taken.code, 4, "{taken:?}");
    assert!(taken.err.contains("evenkeel job show"), "{}", taken.err);
    let unknown = "019a8000-0000-7000-8000-000000000000";
    for args in [
        &["job", "show", "unknown"][..],
        &["job", "delete", unknown],
        &["job", "trigger", unknown],
        &["run", "show", unknown],
        &["run", "list", "--job", "unknown"],
    ] {
        assert_eq!(server.run(args).code, 3, "{args:?}");
    }
    for args in [
        &["job", "create", "--name", "x"][..],
        &["job", "fly"],
        &["job", "create", "--noop", "--payload", "{"],
        &["job", "list", "--url", "nonsense"],
    ] {
        assert_eq!(server.run(args).code, 2, "{args:?}");
    }
    let invalid = server.run(&["job", "create", "--noop", "--lane", "fast", "--overlap", "x"]);
    assert_eq!(invalid.code, 1, "{invalid:?}");
    assert!(invalid.err.contains("fix lane") && invalid.err.contains("fix overlap"));
    let unreachable = server.run(&["job", "--url", "http://127.0.0.1:1", "list"]);
    assert_eq!(unreachable.code, 5, "{unreachable:?}");
}

#[test]
fn json_output_is_the_response_of_the_server() {
    let server = Server::start(&[]);
    let job = create_from_json(
        &server,
        &json!({"name": "raw", "executor_type": "noop", "schedule": "@every 30m",
                "metadata": {"team": "blue"}}),
    )
    .json();
    assert_eq!(job["schedule"], json!({"kind": "interval", "every": "30m"}));
    assert_eq!(job["metadata"]["team"], "blue");
    let list = server.json(&["job", "list"]);
    assert_eq!((&list["total"], &list["limit"]), (&json!(1), &json!(50)));
    let result = server.run(&["run", "show", "unknown", "--json"]);
    let problem: serde_json::Value = serde_json::from_str(&result.err).unwrap();
    assert_eq!(problem["type"], "/problems/not-found");
    assert_eq!(result.out, "");
}

#[test]
fn job_document_can_come_from_standard_input() {
    use std::io::Write as _;
    let server = Server::start(&[]);
    let mut child = program(server.folder.path())
        .args(["job", "create", "--file", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let document = br#"{"name": "piped", "executor_type": "noop"}"#;
    child.stdin.take().unwrap().write_all(document).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    server.wait_for_run("piped", "completed");
}

#[test]
fn tokens_allow_only_what_their_role_allows() {
    let server = Server::start(&[]);
    let elsewhere = tempfile::tempdir().unwrap();
    let with = |token: &str, args: &[&str]| {
        let output = program(elsewhere.path())
            .env("EVENKEEL_URL", server.url())
            .env("EVENKEEL_TOKEN", token)
            .args(args)
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let token = |role: &str| {
        let result = server.run(&["token", "create", "--role", role]);
        assert_eq!(result.code, 0, "{result:?}");
        result.out.trim().to_owned()
    };
    let create = ["job", "create", "--name", "x", "--every", "1h", "--noop"];
    let viewer = token("viewer");
    assert_eq!(with(&viewer, &["job", "list"]).0, 0);
    let (code, result) = with(&viewer, &create);
    assert!(code == 1 && result.contains("role operator"), "{code} {result}");
    assert_eq!(with(&token("operator"), &create).0, 0);
    let (code, result) = with("nonsense", &["job", "list"]);
    assert!(code == 1 && result.contains("evenkeel token create"), "{code} {result}");
    let (code, _) = with("", &["job", "list"]);
    assert_eq!(code, 1, "the local token is not sent from elsewhere");
}

#[test]
fn tenants_do_not_see_each_other() {
    let server = Server::start(&[]);
    server.json(&["job", "create", "--name", "mine", "--every", "1h", "--noop"]);
    let result = server.run(&["token", "create", "--role", "admin", "--tenant", "other"]);
    let listed = server.run(&["job", "list", "--json", "--token", result.out.trim()]);
    assert_eq!(listed.json()["total"], 0);
}

#[test]
fn missing_server_is_reported_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let result = run(folder.path(), &["run", "list"]);
    assert_eq!(result.code, 5);
    assert!(result.err.contains("evenkeel serve"), "{}", result.err);
    assert!(!folder.path().join("evenkeel-data").exists(), "a client creates no data directory");
}

#[test]
fn job_is_paused_resumed_cancelled_and_purged() {
    let server = Server::start(&[]);
    server.json(&[&["job", "create", "--name", "rare", "--noop"][..], &IN_A_DAY].concat());
    let result = server.run(&["job", "pause", "rare"]);
    assert!(
        result.out.contains("Paused rare.") && result.out.contains("job resume rare"),
        "{result:?}"
    );
    let again = server.run(&["job", "pause", "rare"]);
    assert_eq!(again.code, 4, "{again:?}");
    assert!(again.err.contains("paused") && again.err.contains("resume"), "{}", again.err);
    let resumed = server.json(&["job", "resume", "rare"]);
    assert_eq!((&resumed["status"], &resumed["is_paused"]), (&json!("scheduled"), &json!(false)));
    assert_eq!(server.run(&["job", "retry", "rare"]).code, 4, "it has not failed");
    let result = server.run(&["job", "cancel", "rare"]);
    assert_eq!(result.out.trim(), "Cancelled rare for good.");
    assert_eq!(server.json(&["job", "show", "rare"])["status"], "cancelled");
    let deleted = server.run(&["job", "delete", "rare", "--purge"]);
    assert!(deleted.out.contains("0 executions of its history were deleted"), "{deleted:?}");
    assert_eq!(server.run(&["job", "show", "rare"]).code, 3);
}

#[test]
fn failed_job_is_retried_on_demand() {
    let server = Server::start(&[]);
    create_from_json(
        &server,
        &json!({"name": "fails", "executor_type": "noop", "executor_config": {"fail": "no"},
                "schedule_enabled": false, "max_retries": 0}),
    );
    server.wait_for_run("fails", "failed");
    let retried = server.json(&["job", "retry", "fails"]);
    assert_eq!(
        (&retried["status"], &retried["current_retry_count"]),
        (&json!("pending"), &json!(0))
    );
    let run = retried["run_id"].as_str().unwrap().to_owned();
    wait_for("the retried run", || {
        let result = server.run(&["run", "show", &run, "--json"]);
        let run: serde_json::Value = serde_json::from_str(&result.out).ok()?;
        (run["status"] == "failed").then_some(())
    });
}
