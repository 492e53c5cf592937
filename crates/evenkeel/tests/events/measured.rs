//! Figures, readiness and the log, as those who run a server see them.

use serde_json::{Value, json};

use crate::support::{Server, create_from_json, request, wait_for};

#[test]
fn everything_that_counts_is_counted() {
    let server = Server::start(&[]);
    let fails = json!({"name": "fails", "executor_type": "noop",
                       "executor_config": {"fail": "on purpose"}, "max_retries": 1,
                       "retry_backoff_seconds": 1});
    assert_eq!(create_from_json(&server, &fails).code, 0);
    server.json(&["job", "create", "--name", "well", "--noop"]);
    server.json(&["job", "create", "--name", "placed", "--every", "1h", "--noop"]);
    server.wait_for_run("well", "completed");
    server.wait_for_run("fails", "failed");
    let token = server.run(&["token", "create", "--role", "viewer"]).out;
    let header = format!("authorization: Bearer {}", token.trim());
    let wanted = [
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
    ];
    wait_for("all families", || {
        let (status, text) = request(&server.url(), "GET", "/metrics", &header, "");
        assert_eq!(status, 200);
        wanted.iter().all(|family| text.contains(family)).then_some(())
    });
}

#[test]
fn readiness_names_what_was_looked_at() {
    let server = Server::start(&[]);
    let (status, text) = request(&server.url(), "GET", "/readyz", "", "");
    assert_eq!(status, 200, "{text}");
    let ready: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<_> = ready["checks"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["store", "engine", "migrations", "listener"]);
}

#[test]
fn a_node_that_waits_for_its_database_says_so() {
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    // Found by asking for a free port and giving it back.
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
        json!({"name": "store", "ok": false, "detail": "is waited for"})
    );
    assert_eq!(request(&url, "GET", "/healthz", "", "").0, 200);
    let (status, text) = request(&url, "GET", "/api/v1/jobs", "", "");
    assert_eq!(status, 503);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["type"], "/problems/starting");
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn the_log_tells_of_runs_with_the_ids_of_their_jobs() {
    let server = Server::start(&["--log-format", "json"]);
    let fails = json!({"name": "fails", "executor_type": "noop", "max_retries": 0,
                       "executor_config": {"fail": "on purpose"}});
    let failing = create_from_json(&server, &fails).json();
    let well = json!({"name": "well", "executor_type": "noop", "source_name": "example.com"});
    let well = create_from_json(&server, &well).json();
    for (job, message, field) in [
        (&well, "executing job", "retry_attempt"),
        (&well, "job completed", "duration_ms"),
        (&failing, "job execution failed", "error"),
    ] {
        wait_for(message, || {
            let log = server.log();
            let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut of_job = lines.filter(|line| line["job_id"] == job["id"]);
            let told = |line: Value| {
                line["message"] == message
                    && !line[field].is_null()
                    && line["source_name"] == job["source_name"]
            };
            of_job.any(told).then_some(())
        });
    }
}
