//! Commands that talk to a server.

use serde_json::json;

use crate::support::{Server, create_from_json, program, run, wait_for};

/// Its first run is not chosen by load, which might be any moment now.
const IN_A_DAY: [&str; 4] = ["--every", "24h", "--start-at", "+24h"];

#[test]
fn a_trigger_runs_beside_the_schedule() {
    let server = Server::start(&[]);
    server.json(&[&["job", "create", "--name", "rare", "--noop"][..], &IN_A_DAY].concat());
    let run_id = server.json(&["job", "trigger", "rare"])["run_id"].as_str().unwrap().to_owned();
    let shown = wait_for("the triggered run", || {
        let said = server.run(&["run", "show", &run_id, "--json"]);
        let run: serde_json::Value = serde_json::from_str(&said.out).ok()?;
        (run["status"] == "completed").then_some(run)
    });
    assert_eq!(shown["origin"], "trigger");
    let said = server.run(&["run", "show", &run_id]);
    assert!(said.out.contains("completed") && said.out.contains(&run_id), "{}", said.out);
}

#[test]
fn a_mistyped_name_is_answered_with_the_one_that_was_meant() {
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
        let said = server.run(args);
        assert!(said.code == 3 && said.err.contains("did you mean news/daily?"), "{said:?}");
    }
    let other = server.run(&["job", "show", "invoice"]);
    assert!(other.code == 3 && other.err.contains("evenkeel job list"), "{other:?}");
    assert_eq!(server.json(&["job", "show", "news/daily"])["name"], "news/daily");
}

#[test]
fn a_job_that_has_not_run_says_when_its_first_run_is_due() {
    let server = Server::start(&[]);
    server.json(&[&["job", "create", "--name", "rare", "--noop"][..], &IN_A_DAY].concat());
    let said = server.run(&["run", "list", "--job", "rare"]);
    assert!(said.code == 0 && said.out.starts_with("rare has not run yet"), "{said:?}");
    assert!(said.out.contains("its first run is due in "), "{said:?}");
}

#[test]
fn each_way_to_fail_has_its_exit_code() {
    let server = Server::start(&[]);
    let create = ["job", "create", "--name", "one", "--every", "1h", "--noop"];
    assert_eq!(server.run(&create).code, 0);
    let taken = server.run(&create);
    assert_eq!(taken.code, 4, "{taken:?}");
    assert!(taken.err.contains("evenkeel job show"), "{}", taken.err);
    let nobody = "019a8000-0000-7000-8000-000000000000";
    for args in [
        &["job", "show", "nobody"][..],
        &["job", "delete", nobody],
        &["job", "trigger", nobody],
        &["run", "show", nobody],
        &["run", "list", "--job", "nobody"],
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
    let unacceptable = server.run(&["job", "create", "--noop", "--lane", "fast", "--overlap", "x"]);
    assert_eq!(unacceptable.code, 1, "{unacceptable:?}");
    assert!(unacceptable.err.contains("mend lane") && unacceptable.err.contains("mend overlap"));
    let deaf = server.run(&["job", "--url", "http://127.0.0.1:1", "list"]);
    assert_eq!(deaf.code, 5, "{deaf:?}");
}

#[test]
fn a_program_gets_the_answer_and_the_problem_as_the_server_gave_them() {
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
    let said = server.run(&["run", "show", "nobody", "--json"]);
    let problem: serde_json::Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(problem["type"], "/problems/not-found");
    assert_eq!(said.out, "");
}

#[test]
fn a_document_can_come_from_standard_input() {
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
fn tokens_open_only_what_their_role_allows() {
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
        let said = server.run(&["token", "create", "--role", role]);
        assert_eq!(said.code, 0, "{said:?}");
        said.out.trim().to_owned()
    };
    let create = ["job", "create", "--name", "x", "--every", "1h", "--noop"];
    let viewer = token("viewer");
    assert_eq!(with(&viewer, &["job", "list"]).0, 0);
    let (code, said) = with(&viewer, &create);
    assert!(code == 1 && said.contains("role operator"), "{code} {said}");
    assert_eq!(with(&token("operator"), &create).0, 0);
    let (code, said) = with("nonsense", &["job", "list"]);
    assert!(code == 1 && said.contains("evenkeel token create"), "{code} {said}");
    let (code, _) = with("", &["job", "list"]);
    assert_eq!(code, 1, "the local token is not sent from elsewhere");
}

#[test]
fn tenants_do_not_see_each_other() {
    let server = Server::start(&[]);
    server.json(&["job", "create", "--name", "mine", "--every", "1h", "--noop"]);
    let said = server.run(&["token", "create", "--role", "admin", "--tenant", "other"]);
    let seen = server.run(&["job", "list", "--json", "--token", said.out.trim()]);
    assert_eq!(seen.json()["total"], 0);
}

#[test]
fn without_a_server_the_way_out_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(folder.path(), &["run", "list"]);
    assert_eq!(said.code, 5);
    assert!(said.err.contains("evenkeel serve"), "{}", said.err);
    assert!(!folder.path().join("evenkeel-data").exists(), "looking leaves nothing behind");
}

#[test]
fn a_job_is_paused_resumed_cancelled_and_forgotten() {
    let server = Server::start(&[]);
    server.json(&[&["job", "create", "--name", "rare", "--noop"][..], &IN_A_DAY].concat());
    let said = server.run(&["job", "pause", "rare"]);
    assert!(said.out.contains("Paused rare.") && said.out.contains("job resume rare"), "{said:?}");
    let again = server.run(&["job", "pause", "rare"]);
    assert_eq!(again.code, 4, "{again:?}");
    assert!(again.err.contains("paused") && again.err.contains("resume"), "{}", again.err);
    let resumed = server.json(&["job", "resume", "rare"]);
    assert_eq!((&resumed["status"], &resumed["is_paused"]), (&json!("scheduled"), &json!(false)));
    assert_eq!(server.run(&["job", "retry", "rare"]).code, 4, "it has not failed");
    let said = server.run(&["job", "cancel", "rare"]);
    assert_eq!(said.out.trim(), "Cancelled rare for good.");
    assert_eq!(server.json(&["job", "show", "rare"])["status"], "cancelled");
    let gone = server.run(&["job", "delete", "rare", "--purge"]);
    assert!(gone.out.contains("0 executions of its history were forgotten"), "{gone:?}");
    assert_eq!(server.run(&["job", "show", "rare"]).code, 3);
}

#[test]
fn a_failed_job_is_tried_again_on_demand() {
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
        let said = server.run(&["run", "show", &run, "--json"]);
        let run: serde_json::Value = serde_json::from_str(&said.out).ok()?;
        (run["status"] == "failed").then_some(())
    });
}
