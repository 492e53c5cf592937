//! A server from its start to its end.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;

use crate::support::{Server, create_from_json, request, run, wait_for};

#[test]
fn a_job_is_created_runs_and_is_seen_and_is_gone_when_deleted() {
    let server = Server::start(&[]);
    let said = server.run(&["job", "create", "--name", "hello", "--every", "1s", "--noop"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("Created job hello"), "{}", said.out);
    server.wait_for_run("hello", "completed");
    let listed = server.run(&["run", "list"]);
    assert!(listed.out.contains("hello  completed"), "{}", listed.out);
    assert!(server.run(&["job", "list"]).out.contains("every 1s"));

    let id = server.json(&["job", "show", "hello"])["id"].as_str().unwrap().to_owned();
    assert_eq!(server.run(&["job", "delete", "hello"]).code, 0);
    for gone in ["hello", &id] {
        let said = server.run(&["job", "show", gone]);
        assert_eq!(said.code, 3, "{said:?}");
        assert!(said.err.starts_with("error: ") && said.err.contains("try: "), "{}", said.err);
    }
}

#[test]
fn a_job_tells_when_it_runs_why_it_does_not_and_how_it_is_doing() {
    let server = Server::start(&[]);
    for words in [
        &["--name", "yearly", "--cron", "0 9 1 1 *", "--tz", "America/Toronto"][..],
        &["--name", "fresh", "--periodic", "24h", "--cooldown", "1h"],
        &["--name", "dark", "--every", "1h", "--start-at", "+1h", "--blackout", "00:00-23:59:59"],
    ] {
        let said = server.run(&[&["job", "create", "--noop"], words].concat());
        assert_eq!(said.code, 0, "{said:?}");
        let is_warned = said.out.contains("\n  warning: blackout_periods: ");
        assert_eq!(is_warned, words.contains(&"--blackout"), "{}", said.out);
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
    let said = server.run(&["job", "create", "--noop", "--now", "--max-runs", "3"]);
    assert!(said.code == 1 && said.err.contains("max_runs"), "{said:?}");
}

#[test]
fn jobs_that_wait_for_a_worker_are_listed_as_pending() {
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
    wait_for("the jobs that wait", || {
        let listed = server.json(&["job", "list", "--status", "pending"]);
        (listed["total"] == 3).then_some(())
    });
    let listed = server.json(&["job", "list", "--status", "scheduled"]);
    assert_eq!(listed["total"], 0, "{listed}");
    assert_eq!(server.json(&["job", "show", "b"])["status"], "pending");
}

#[test]
fn a_job_that_fails_is_listed_as_at_risk() {
    let server = Server::start(&[]);
    let file = server.data_dir().join("fails.json");
    let document = serde_json::json!({
        "name": "fails", "interval_minutes": 60, "executor_type": "noop",
        "executor_config": {"fail_rate": 1.0},
    });
    std::fs::write(&file, document.to_string()).unwrap();
    let said = server.run(&["job", "create", "--file", file.to_str().unwrap()]);
    assert_eq!(said.code, 0, "{said:?}");
    server.run(&["job", "trigger", "fails"]);
    server.wait_for_run("fails", "failed");
    wait_for("the judge", || {
        let seen = server.json(&["job", "conditions", "--level", "warning"]);
        let jobs = seen["jobs"].as_array().unwrap();
        jobs.iter().find(|job| job["reason"] == "last_run_failed").cloned()
    });
}

#[test]
fn the_data_directory_is_private_and_says_where_the_server_is() {
    let server = Server::start(&[]);
    let mode = |name: &str| {
        let path = server.data_dir().join(name);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode(""), 0o700);
    assert_eq!(mode("token"), 0o600);
    assert_eq!(mode("evenkeel.db"), 0o600);
    assert!(server.url().starts_with("http://127.0.0.1:"));
    let log = wait_for("the first words", || {
        Some(server.log()).filter(|log| log.contains("evenkeel job create"))
    });
    assert!(log.contains("Evenkeel runs at"), "{log}");
    let token = std::fs::read_to_string(server.data_dir().join("token")).unwrap();
    assert!(!log.contains(token.trim()), "the log holds the token");
}

#[test]
fn a_second_server_on_the_same_data_is_refused_with_the_process_of_the_first() {
    let server = Server::start(&[]);
    let said = server.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, 1, "{said:?}");
    let pid = server.server_json().unwrap()["pid"].to_string();
    assert!(said.err.contains(&format!("another server (process {pid}) runs on")), "{}", said.err);
    assert!(server.server_json().is_some(), "the first one is undisturbed");
}

#[test]
fn jobs_survive_an_orderly_end_and_a_crash() {
    let mut server = Server::start(&[]);
    server.json(&["job", "create", "--name", "kept", "--every", "1s", "--noop"]);
    server.signal(Signal::TERM);
    assert_eq!(server.wait_until_it_ends().code(), Some(0));
    assert!(server.server_json().is_none(), "server.json goes with the server");
    let said = server.run(&["job", "list"]);
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("evenkeel serve"), "{}", said.err);

    server.restart();
    server.wait_for_run("kept", "completed");
    server.signal(Signal::KILL);
    server.wait_until_it_ends();
    assert_eq!(server.run(&["job", "list"]).code, 5, "what a crash leaves behind misleads nobody");
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
fn after_an_orderly_end_the_file_of_the_database_can_be_copied_alone() {
    let mut server = Server::start(&[]);
    server.json(&["job", "create", "--name", "kept", "--every", "1h", "--noop"]);
    server.signal(Signal::TERM);
    assert_eq!(server.wait_until_it_ends().code(), Some(0));
    let files = std::fs::read_dir(server.data_dir()).unwrap().map(|file| file.unwrap().path());
    for log in files.filter(|file| file.to_str().unwrap().ends_with("-wal")) {
        assert_eq!(std::fs::metadata(&log).unwrap().len(), 0, "{}", log.display());
        std::fs::remove_file(log).unwrap();
    }
    server.restart();
    assert_eq!(server.json(&["job", "show", "kept"])["name"], "kept");
}

#[test]
fn a_running_job_is_let_finish_when_the_server_stops() {
    let mut server = Server::start(&["--drain-grace", "20s"]);
    let document = serde_json::json!({
        "name": "slow", "executor_type": "noop", "executor_config": {"sleep_ms": 1500},
    });
    create_from_json(&server, &document).json();
    server.wait_for_run("slow", "running");
    server.signal(Signal::TERM);
    assert_eq!(server.wait_until_it_ends().code(), Some(0));
    server.restart();
    let run = server.wait_for_run("slow", "completed");
    assert_eq!(run["attempt"], 1);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut server = Server::start(&["--drain-grace", "10m"]);
    let document = serde_json::json!({
        "name": "slow", "executor_type": "noop", "executor_config": {"sleep_ms": 600_000},
    });
    create_from_json(&server, &document).json();
    server.wait_for_run("slow", "running");
    server.signal(Signal::INT);
    wait_for("the word that it stops", || server.log().contains("stopping").then_some(()));
    server.signal(Signal::INT);
    assert_eq!(server.wait_until_it_ends().code(), Some(130));
    assert!(server.server_json().is_none());
}

#[test]
fn health_is_open_and_all_else_needs_a_token() {
    let server = Server::start(&[]);
    let url = server.url();
    assert_eq!(request(&url, "GET", "/healthz", "", "").0, 200);
    let (status, body) = request(&url, "GET", "/readyz", "", "");
    assert_eq!(status, 200, "{body}");
    for path in ["/api/v1/jobs", "/metrics", "/api/openapi.json"] {
        assert_eq!(request(&url, "GET", path, "", "").0, 401, "{path}");
    }
    let token = std::fs::read_to_string(server.data_dir().join("token")).unwrap();
    let header = format!("authorization: Bearer {}", token.trim());
    let (status, body) = request(&url, "GET", "/metrics", &header, "");
    assert_eq!(status, 200);
    assert!(body.contains("evenkeel_"), "{body}");
}

#[test]
fn metrics_are_open_where_the_operator_says_so() {
    let server = Server::start(&["--open-metrics"]);
    assert_eq!(request(&server.url(), "GET", "/metrics", "", "").0, 200);
    assert_eq!(request(&server.url(), "GET", "/api/openapi.json", "", "").0, 401);
}

#[test]
fn sample_jobs_are_created_once() {
    let mut server = Server::start(&["--demo"]);
    let count = |server: &Server| server.json(&["job", "list"])["total"].as_u64().unwrap();
    let all = count(&server);
    assert!(all >= 4, "{all}");
    assert_eq!(server.run(&["job", "delete", "demo-web"]).code, 0);
    server.signal(Signal::TERM);
    server.wait_until_it_ends();
    server.restart();
    assert_eq!(count(&server), all - 1);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let taken = server.url().replace("http://", "");
    let said = run(folder.path(), &["serve", "--listen", &taken]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains(&taken) && said.err.contains("--listen"), "{}", said.err);
}
