//! Tests that aging prevents starvation. With one worker and fast aging, a run that has waited
//! starts before newer runs with the highest priority.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::api_client::ApiClient;
use crate::database::Database;
use crate::receiver::{Receiver, Reply};
use crate::stores::on_both_stores;
use crate::support::wait_for;

/// After 1 s in the queue, a run gains 60 priority points per second. The effective priority of a
/// run can exceed 100, although the displayed priority stays at 100.
const CONFIG: &str = r#"
[queue]
aging_every = "1s"
aging_after = "1s"
aging_step = 60
"#;

struct Caller {
    api: ApiClient,
    url: String,
}

impl Caller {
    /// Creates an HTTP job that runs once, immediately. Returns its id.
    fn call(&self, name: &str, priority: u8) -> String {
        let job = json!({
            "name": name, "executor_type": "http", "max_retries": 0, "priority": priority,
            "executor_config": {"url": format!("{}/{name}", self.url)},
        });
        self.api.create(&job)["id"].as_str().unwrap().to_owned()
    }

    fn job(&self, id: &str) -> Value {
        self.api.get(&format!("/api/v1/jobs/{id}"))
    }

    /// Returns the number of queued runs before the job's run; `None` if that run is not queued.
    fn ahead(&self, id: &str) -> Option<u64> {
        let explained = self.api.get(&format!("/api/v1/jobs/{id}/explain"));
        let reasons = explained["reasons"].as_array().unwrap();
        reasons.iter().find_map(|reason| reason["ahead"].as_u64())
    }
}

fn waiting_run_starts_before_newer_runs_of_the_highest_priority(database: &Database) {
    let may_end = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&may_end);
    let callee = Receiver::start(move |_, _| {
        wait_for("the end of the first call", || gate.load(Ordering::SeqCst).then_some(()));
        Reply::ok("done")
    });
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("evenkeel.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let config = config.to_str().unwrap();
    let server =
        database.serve(&["--config", config, "--workers", "1", "--allow-network", "127.0.0.0/8"]);
    let caller = Caller { api: ApiClient::of(server, database), url: callee.url.clone() };

    caller.call("holds-the-worker", 0);
    wait_for("the first call", || (callee.requests().len() == 1).then_some(()));
    let lowest = caller.call("lowest", 0);
    let as_old = caller.call("as-old", 100);
    wait_for("both in the queue", || (caller.ahead(&lowest)? == 1).then_some(()));
    assert_eq!(caller.ahead(&as_old), Some(0));
    // The shown priority rises.
    wait_for("the raised priority", || {
        let job = caller.job(&lowest);
        assert_eq!(job["priority"], 0);
        (job["effective_priority"] == 100).then_some(())
    });
    let newer: Vec<String> = (0..3).map(|n| caller.call(&format!("newer-{n}"), 100)).collect();
    // All three newer runs are queued behind the two older runs.
    for id in &newer {
        let ahead = wait_for("a newer run in the queue", || caller.ahead(id));
        assert!(ahead >= 2, "{ahead}");
    }
    assert_eq!(caller.ahead(&lowest), Some(1));
    may_end.store(true, Ordering::SeqCst);
    let calls = wait_for("all calls", || Some(callee.requests()).filter(|calls| calls.len() == 6));
    let order: Vec<&str> = calls.iter().map(|got| got.path.as_str()).collect();
    assert_eq!(order[..3], ["/holds-the-worker", "/as-old", "/lowest"], "{order:?}");
    let ended = wait_for("the end of the run", || {
        Some(caller.job(&lowest)).filter(|job| job["status"] == "completed")
    });
    assert_eq!((&ended["priority"], &ended["effective_priority"]), (&json!(0), &json!(0)));
}

on_both_stores!(waiting_run_starts_before_newer_runs_of_the_highest_priority);
