//! Responses while the database is not writable.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{Method, header};
use evenkeel_store::{Role, StoreError, Unwritable};
use serde_json::json;

use super::world::{World, noop};

fn full() -> StoreError {
    StoreError::NotWritable(Unwritable::DiskFull, "database or disk is full".into())
}

/// Store functions that write to the database in these tests, including the audit log.
const CHANGES: [&str; 3] = ["register", "apply_commands", "record_audit"];

#[tokio::test]
async fn full_disk_answers_that_nothing_changed_and_what_to_do() {
    let world = World::failing(|_, verb| CHANGES.contains(&verb).then(full)).await;
    for (path, body) in [
        ("/api/v1/jobs", noop(json!({}))),
        ("/api/v1/jobs/bulk", json!({"jobs": [noop(json!({}))]})),
    ] {
        let answer = world.post(path, Some(body)).await;
        let problem = answer.problem(503, "store-not-writable");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("nothing was changed; free space"), "{detail}");
        assert_eq!(answer.header(header::RETRY_AFTER), Some("2"), "{path}");
    }
    world.get("/api/v1/jobs").await.expect(200);
}

#[tokio::test]
async fn partly_applied_command_does_not_claim_that_nothing_changed() {
    // The disk is full when the server pauses the second batch of jobs.
    let orders = AtomicU64::new(0);
    let world = World::failing(move |_, verb| {
        (verb == "apply_commands" && orders.fetch_add(1, Ordering::Relaxed) > 0).then(full)
    })
    .await;
    let jobs = json!({"jobs": vec![noop(json!({"schedule": "30m"})); 2000]});
    let created = world.post("/api/v1/jobs/bulk", Some(jobs)).await.expect(200);
    assert_eq!(created["created"], 2000);
    let pause = json!({"action": "pause", "filter": {}});
    let answer = world.ask_as(Role::Operator, Method::POST, "/api/v1/jobs/commands", Some(pause));
    let problem = answer.await.problem(503, "store-unavailable");
    assert!(problem["detail"].as_str().unwrap().contains("unknown"), "{problem}");
}
