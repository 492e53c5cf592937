//! Tests of starting, running and stopping a server.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;

use crate::support::{Server, create_from_json, request, run, wait_for};

#[test]
fn job_is_created_run_listed_and_deleted() {
    let server = Server::start(&[]);
    let result = server.run(&["job", "create", "--name", "hello", "--every", "1s", "--noop"]);
    assert_eq!(result.code, 0, "{result:?}");
    assert!(result.out.contains("Created job hello"), "{}", result.out);
    server.wait_for_run("hello", "completed");
    let listed = server.run(&["run", "list"]);
    assert!(listed.out.contains("hello  completed"), "{}", listed.out);
    assert!(server.run(&["job", "list"]).out.contains("every 1s"));

    let id = server.json(&["job", "show", "hello"])["id"].as_str().unwrap().to_owned();
    assert_eq!(server.run(&["job", "delete", "hello"]).code, 0);
    for deleted in ["hello", &id] {
        let result = server.run(&["job", "show", deleted]);
        assert_eq!(result.code, 3, "{result:?}");
        assert!(
            result.err.starts_with("error: ") && result.err.contains("try: "),
            "{}",
            result.err
        );
    }
}

#[test]
fn job_commands_show_next_times_explanation_and_condition() {
    let server = Server::start(&[]);
    for flags in [
        &["--name", "yearly", "--cron", "0 9 1 1 *", "--tz", "America/Toronto"][..],
        &["--name", "fresh", "--periodic", "24h", "--cooldown", "1h"],
        &["--name", "dark", "--every", "1h", "--start-at", "+1h", "--blackout", "00:00-23:59:59"],
    ] {
        let result = server.run(&[&["job", "create", "--noop"], flags].concat());
        assert_eq!(result.code, 0, "{result:?}");
        let is_warned = result.out.contains("\n  warning: blackout_periods: ");
        assert_eq!(is_warned, flags.contains(&"--blackout"), "{}", result.out);
    }
    server.wait_for_run("fresh", "completed");
    let fresh = server.json(&["job", "explain", "fresh"]);
    assert_eq!(fresh["reasons"][0]["code"], "cooling_down", "{fresh}");
    let dark = server.json(&["job", "explain", "dark"]);
    let codes: Vec<_> = dark["reasons"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert_eq!(codes, ["not_due", "blackout"]);
    let yearly = server.run(&["job", "explain", "yearly"]);
    assert!(yearly.out.contains("09:00 America/Toronto time"), "{}", yearly.out);
    assert!(server.run(&["job", "show", "yearly"]).out.contains("OK (never_ran)"));
    assert!(server.run(&["job", "list"]).out.contains("cron 0 9 1 1 *"));
    assert!(server.run(&["job", "conditions"]).out.starts_with("3 OK, 0 WARNING, 0 ERROR"));
    let result = server.run(&["job", "create", "--noop", "--now", "--max-runs", "3"]);
    assert!(result.code == 1 && result.err.contains("max_runs"), "{result:?}");
}

#[test]
fn jobs_without_a_free_worker_are_listed_as_pending() {
    let server = Server::start(&["--workers", "1"]);
    let document = |name: &str| {
        serde_json::json!({
            "name": name, "schedule": {"kind": "once"}, "executor_type": "noop",
            "executor_config": {"sleep_ms": 600_000},
        })
    };
    assert_eq!(create_from_json(&server, &document("runs")).code, 0);
    server.wait_for_run("runs", "running");
    for name in ["a", "b", "c"] {
        assert_eq!(create_from_json(&server, &document(name)).code, 0);
    }
    wait_for("the pending jobs", || {
        let listed = server.json(&["job", "list", "--status", "pending"]);
        (listed["total"] == 3).then_some(())
    });
    let listed = server.json(&["job", "list", "--status", "scheduled"]);
    assert_eq!(listed["total"], 0, "{listed}");
    assert_eq!(server.json(&["job", "show", "b"])["status"], "pending");
}

#[test]
fn failing_job_is_listed_as_at_risk() {
    let server = Server::start(&[]);
    let file = server.data_dir().join("fails.json");
    let document = serde_json::json!({
        "name": "fails", "interval_minutes": 60, "executor_type": "noop",
        "executor_config": {"fail_rate": 1.0},
    });
    std::fs::write(&file, document.to_string()).unwrap();
    let result = server.run(&["job", "create", "--file", file.to_str().unwrap()]);
    assert_eq!(result.code, 0, "{result:?}");
    server.run(&["job", "trigger", "fails"]);
    server.wait_for_run("fails", "failed");
    wait_for("the condition", || {
        let list = server.json(&["job", "conditions", "--level", "warning"]);
        let jobs = list["jobs"].as_array().unwrap();
        jobs.iter().find(|job| job["reason"] == "last_run_failed").cloned()
    });
}

#[test]
fn data_directory_is_private_and_contains_server_json() {
    let server = Server::start(&[]);
    let mode = |name: &str| {
        let path = server.data_dir().join(name);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode(""), 0o700);
    assert_eq!(mode("token"), 0o600);
    assert_eq!(mode("evenkeel.db"), 0o600);
    assert!(server.url().starts_with("http://127.0.0.1:"));
    let log = wait_for("the banner", || {
        Some(server.log()).filter(|log| log.contains("evenkeel job create"))
    });
    assert!(log.contains("Evenkeel is running at"), "{log}");
    let token = std::fs::read_to_string(server.data_dir().join("token")).unwrap();
    assert!(!log.contains(token.trim()), "the log holds the token");
}

#[test]
fn second_server_on_the_same_data_is_refused_with_the_pid_of_the_first() {
    let server = Server::start(&[]);
    let result = server.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(result.code, 1, "{result:?}");
    let pid = server.server_json().unwrap()["pid"].to_string();
    assert!(
        result.err.contains(&format!("another server (process {pid}) runs on")),
        "{}",
        result.err
    );
    assert!(server.server_json().is_some(), "the first server still runs");
}

#[test]
fn jobs_survive_a_shutdown_and_a_crash() {
    let mut server = Server::start(&[]);
    server.json(&["job", "create", "--name", "kept", "--every", "1s", "--noop"]);
    server.signal(Signal::TERM);
    assert_eq!(server.wait_for_exit().code(), Some(0));
    assert!(server.server_json().is_none(), "server.json is removed at shutdown");
    let result = server.run(&["job", "list"]);
    assert_eq!(result.code, 5, "{result:?}");
    assert!(result.err.contains("evenkeel serve"), "{}", result.err);

    server.restart();
    server.wait_for_run("kept", "completed");
    server.signal(Signal::KILL);
    server.wait_for_exit();
    assert_eq!(server.run(&["job", "list"]).code, 5, "a stale server.json misleads no client");
    let before = {
        server.restart();
        server.json(&["job", "show", "kept"])["execution_count"].as_u64().unwrap()
    };
    wait_for("another run after the crash", || {
        let count = server.json(&["job", "show", "kept"])["execution_count"].as_u64();
        count.filter(|count| *count > before)
    });
}

#[test]
fn database_file_can_be_copied_alone_after_a_shutdown() {
    let mut server = Server::start(&[]);
    server.json(&["job", "create", "--name", "kept", "--every", "1h", "--noop"]);
    server.signal(Signal::TERM);
    assert_eq!(server.wait_for_exit().code(), Some(0));
    let files = std::fs::read_dir(server.data_dir()).unwrap().map(|file| file.unwrap().path());
    for log in files.filter(|file| file.to_str().unwrap().ends_with("-wal")) {
        assert_eq!(std::fs::metadata(&log).unwrap().len(), 0, "{}", log.display());
        std::fs::remove_file(log).unwrap();
    }
    server.restart();
    assert_eq!(server.json(&["job", "show", "kept"])["name"], "kept");
}

#[test]
fn shutdown_lets_a_running_job_finish() {
    let mut server = Server::start(&["--drain-grace", "20s"]);
    let document = serde_json::json!({
        "name": "slow", "executor_type": "noop", "executor_config": {"sleep_ms": 1500},
    });
    create_from_json(&server, &document).json();
    server.wait_for_run("slow", "running");
    server.signal(Signal::TERM);
    assert_eq!(server.wait_for_exit().code(), Some(0));
    server.restart();
    let run = server.wait_for_run("slow", "completed");
    assert_eq!(run["attempt"], 1);
}

#[test]
fn second_signal_ends_the_server_at_once() {
    let mut server = Server::start(&["--drain-grace", "10m"]);
    let document = serde_json::json!({
        "name": "slow", "executor_type": "noop", "executor_config": {"sleep_ms": 600_000},
    });
    create_from_json(&server, &document).json();
    server.wait_for_run("slow", "running");
    server.signal(Signal::INT);
    wait_for("the log line about the shutdown", || server.log().contains("stopping").then_some(()));
    server.signal(Signal::INT);
    assert_eq!(server.wait_for_exit().code(), Some(130));
    assert!(server.server_json().is_none());
}

#[test]
fn health_needs_no_token_and_other_paths_do() {
    let server = Server::start(&[]);
    let url = server.url();
    assert_eq!(request(&url, "GET", "/healthz", "", "").0, 200);
    let (status, body) = request(&url, "GET", "/readyz", "", "");
    assert_eq!(status, 200, "{body}");
    for path in ["/api/v1/jobs", "/metrics", "/api/openapi.json"] {
        assert_eq!(request(&url, "GET", path, "", "").0, 401, "{path}");
    }
    let header = server.header();
    let (status, body) = request(&url, "GET", "/metrics", &header, "");
    assert_eq!(status, 200);
    assert!(body.contains("evenkeel_"), "{body}");
}

#[test]
fn metrics_need_no_token_if_configured() {
    let server = Server::start(&["--open-metrics"]);
    assert_eq!(request(&server.url(), "GET", "/metrics", "", "").0, 200);
    assert_eq!(request(&server.url(), "GET", "/api/openapi.json", "", "").0, 401);
}

#[test]
fn taken_port_is_named() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let taken = server.url().replace("http://", "");
    let result = run(folder.path(), &["serve", "--listen", &taken]);
    assert_eq!(result.code, 1, "{result:?}");
    assert!(result.err.contains(&taken) && result.err.contains("--listen"), "{}", result.err);
}
