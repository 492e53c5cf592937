//! Tests of the metrics, the readiness checks and the log of a server.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{Server, create_from_json, request, wait_for};

#[test]
fn metrics_contain_all_families() {
    let server = Server::start(&[]);
    let fails = json!({"name": "fails", "executor_type": "noop",
                       "executor_config": {"fail": "on purpose"}, "max_retries": 1,
                       "retry_backoff_seconds": 1});
    assert_eq!(create_from_json(&server, &fails).code, 0);
    server.json(&["job", "create", "--name", "succeeding", "--noop"]);
    server.json(&["job", "create", "--name", "placed", "--every", "1h", "--noop"]);
    server.wait_for_run("succeeding", "completed");
    server.wait_for_run("fails", "failed");
    let metrics = metrics_of(&server);
    let expected = [
        "evenkeel_runs_ended_total{outcome=\"completed\"}",
        "evenkeel_runs_ended_total{outcome=\"failed\"}",
        "evenkeel_run_duration_seconds_count{outcome=\"completed\"}",
        "evenkeel_retries_total",
        "evenkeel_lateness_seconds_count",
        "evenkeel_jobs{condition=\"ok\"}",
        "evenkeel_store_verb_seconds_count{verb=\"finish\"}",
        "# HELP evenkeel_store_verb_seconds",
        "scheduler_distribution_score 1",
        "scheduler_slot_job_count{hour=\"23\"}",
        "scheduler_peak_hour_job_count",
        "scheduler_placements_total{type=\"new\"} 1",
        "scheduler_placement_duration_seconds_count 1",
        "evenkeel_queue_depth{pool=\"default\",lane=\"standard\"} 0",
        "evenkeel_queue_oldest_seconds{pool=\"default\",lane=\"standard\"} 0",
        "evenkeel_queue_depth_is_lower_bound 0",
        "evenkeel_queue_priority{priority=\"90-99\"} 0",
        "evenkeel_queue_wait_seconds_bucket{lane=\"standard\",le=\"14400\"}",
        "evenkeel_due_waiting{lane=\"standard\"} 0",
        "evenkeel_pool_workers{pool=\"default\"} 1",
        "evenkeel_pool_unserved{pool=\"default\"} 0",
        "evenkeel_runs_succeeded_after_retry_total 0",
        "# HELP evenkeel_queue_depth",
    ];
    wait_for("all families", || {
        let text = metrics();
        expected.iter().all(|family| text.contains(family)).then_some(())
    });
}

/// Returns a function that reads the metrics with a token.
fn metrics_of(server: &Server) -> impl Fn() -> String {
    let token = server.run(&["token", "create", "--role", "viewer"]).out;
    let (url, header) = (server.url(), format!("authorization: Bearer {}", token.trim()));
    move || {
        let (status, text) = request(&url, "GET", "/metrics", &header, "");
        assert_eq!(status, 200);
        text
    }
}

/// Returns the result of the readiness check `pools`.
fn pools_of(server: &Server) -> Value {
    let (status, text) = request(&server.url(), "GET", "/readyz", "", "");
    assert_eq!(status, 200, "{text}");
    let ready: Value = serde_json::from_str(&text).unwrap();
    ready["checks"].as_array().unwrap().iter().find(|it| it["name"] == "pools").unwrap().clone()
}

#[test]
fn pool_without_workers_is_reported_everywhere() {
    let server = Server::start(&["--pools", "chrome, default", "--metrics-interval-seconds", "1"]);
    let nodes = server.json(&["nodes"]);
    assert_eq!(nodes["nodes"][0]["pools"], json!(["chrome", "default"]));
    assert_eq!(
        (&nodes["nodes"][0]["state"], nodes["nodes"].as_array().unwrap().len()),
        (&json!("live"), 1)
    );
    let shown = server.run(&["nodes"]).out;
    assert!(shown.contains("chrome, default") && shown.contains("live"), "{shown}");
    for (name, pool) in [("served", "chrome"), ("stranded", "gpu")] {
        let job = json!({"name": name, "executor_type": "noop", "pool": pool, "priority": 25});
        assert_eq!(create_from_json(&server, &job).code, 0);
    }
    server.wait_for_run("served", "completed");
    let why = server.json(&["job", "explain", "stranded"]);
    let reason = &why["reasons"][0];
    assert_eq!((&reason["code"], &reason["pool"]), (&json!("no_worker_for_pool"), &json!("gpu")));
    wait_for("the pool in the readiness check", || {
        let pools = pools_of(&server);
        // All other pools have workers, so the node stays ready.
        assert_eq!(pools["ok"], true);
        pools["detail"].as_str().unwrap().ends_with("without live nodes: gpu").then_some(())
    });
    let metrics = metrics_of(&server);
    let expected = [
        "evenkeel_pool_unserved{pool=\"gpu\"} 1",
        "evenkeel_pool_workers{pool=\"gpu\"} 0",
        "evenkeel_pool_workers{pool=\"chrome\"} 1",
        "evenkeel_queue_depth{pool=\"gpu\",lane=\"standard\"} 1",
        "evenkeel_queue_priority{priority=\"20-29\"} 1",
        "evenkeel_queue_wait_seconds_count{lane=\"standard\"} 1",
    ];
    let mut text = String::new();
    wait_for("the metrics of the pool", || {
        text = metrics();
        expected.iter().all(|line| text.contains(line)).then_some(())
    });
    // A pool without waiting runs is no longer reported.
    server.json(&["job", "cancel", "stranded"]);
    wait_for("the pool to disappear from the reports", || {
        let in_metrics = metrics().contains("evenkeel_pool_unserved{pool=\"gpu\"} 0");
        let is_ready = pools_of(&server)["detail"] == "all pools with waiting runs have workers";
        (in_metrics && is_ready).then_some(())
    });
}

#[test]
fn run_that_succeeds_after_a_retry_is_counted() {
    let server = Server::start(&["--enable-shell"]);
    let mends = json!({"name": "mends", "executor_type": "shell", "max_retries": 1,
                       "retry_backoff_seconds": 1,
                       "executor_config": {"argv": ["sh", "-c", "test $EVENKEEL_ATTEMPT != 1"]}});
    assert_eq!(create_from_json(&server, &mends).code, 0);
    server.wait_for_run("mends", "completed");
    let metrics = metrics_of(&server);
    wait_for("the count", || {
        let text = metrics();
        let counted = text.contains("evenkeel_runs_succeeded_after_retry_total 1")
            && text.contains("evenkeel_retries_total 1");
        counted.then_some(())
    });
}

#[test]
fn alert_rules_use_existing_metrics() {
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/alerts/evenkeel.rules.yml");
    let rules = std::fs::read_to_string(rules).unwrap();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_prose =
        |line: &&str| ["#", "summary", "description"].iter().any(|it| line.trim().starts_with(it));
    let lines = rules.lines().filter(|line| !is_prose(line));
    let expected: BTreeSet<&str> = lines
        .flat_map(|line| line.split(|c| !is_word(c)))
        .filter(|word| word.starts_with("evenkeel_"))
        .collect();
    assert!(expected.len() >= 10, "{expected:?}");
    let server = Server::start(&[]);
    server.json(&["job", "create", "--name", "succeeding", "--noop"]);
    server.wait_for_run("succeeding", "completed");
    let metrics = metrics_of(&server);
    let mut missing = Vec::new();
    wait_for("all metrics of the alert rules", || {
        let text = metrics();
        let is_there = |name: &str| {
            text.lines().any(|line| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
            })
        };
        missing = expected.iter().filter(|name| !is_there(name)).copied().collect();
        missing.is_empty().then_some(())
    });
    // The metrics also have the labels that the alert rules use.
    let text = metrics();
    for label in ["reason=\"misfire\"", "outcome=\"timed_out\"", "condition=\"error\""] {
        assert!(text.contains(label), "{label}");
    }
}

#[test]
fn readiness_lists_its_checks() {
    let server = Server::start(&[]);
    let (status, text) = request(&server.url(), "GET", "/readyz", "", "");
    assert_eq!(status, 200, "{text}");
    let ready: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<_> = ready["checks"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["store", "engine", "changes", "migrations", "listener", "pools"]);
}

#[test]
fn readiness_reports_a_missing_database() {
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    // The system chooses a free port. The listener is closed again, so that the server can use the
    // port.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let mut child = crate::support::program(folder.path())
        .args(["serve", "--listen", &listen, "--store", "postgres://nobody@127.0.0.1:1/none"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the port", || std::net::TcpStream::connect(&listen).ok());
    let url = format!("http://{listen}");
    let (status, text) = request(&url, "GET", "/readyz", "", "");
    assert_eq!(status, 503, "{text}");
    let ready: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        ready["checks"][0],
        json!({"name": "store", "ok": false, "detail": "is not reachable yet"})
    );
    assert_eq!(request(&url, "GET", "/healthz", "", "").0, 200);
    let (status, text) = request(&url, "GET", "/api/v1/jobs", "", "");
    assert_eq!(status, 503);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["type"], "/problems/starting");
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn log_lines_of_runs_have_the_job_id() {
    let server = Server::start(&["--log-format", "json"]);
    let fails = json!({"name": "fails", "executor_type": "noop", "max_retries": 0,
                       "executor_config": {"fail": "on purpose"}});
    let failing = create_from_json(&server, &fails).json();
    let succeeding =
        json!({"name": "succeeding", "executor_type": "noop", "source_name": "example.com"});
    let succeeding = create_from_json(&server, &succeeding).json();
    for (job, message, field) in [
        (&succeeding, "executing job", "retry_attempt"),
        (&succeeding, "job completed", "duration_ms"),
        (&failing, "job execution failed", "error"),
    ] {
        wait_for(message, || {
            let log = server.log();
            let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut of_job = lines.filter(|line| line["job_id"] == job["id"]);
            let matches = |line: Value| {
                line["message"] == message
                    && !line[field].is_null()
                    && line["source_name"] == job["source_name"]
            };
            of_job.any(matches).then_some(())
        });
    }
}
