//! Concurrency limits.

use serde_json::{Value, json};

use crate::world::World;

fn key_and_limit(job: &Value) -> (&Value, &Value) {
    (&job["concurrency_key"], &job["concurrency_limit"])
}

#[tokio::test]
async fn concurrency_key_and_limit_are_shown_changed_and_removed() {
    let world = World::new().await;
    let job = world.create(json!({"concurrency_key": "example.com"})).await;
    assert_eq!(key_and_limit(&job), (&json!("example.com"), &json!(1)));
    let job = world.patch(&job, json!({"concurrency_limit": 5})).await.expect(200);
    assert_eq!(key_and_limit(&job), (&json!("example.com"), &json!(5)));
    let job = world.patch(&job, json!({"priority": 7})).await.expect(200);
    assert_eq!(key_and_limit(&job), (&json!("example.com"), &json!(5)));
    let job = world.patch(&job, json!({"concurrency_key": null})).await.expect(200);
    assert_eq!(key_and_limit(&job), (&Value::Null, &Value::Null));
    assert_eq!(key_and_limit(&world.create(json!({})).await), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn limit_without_a_key_is_refused() {
    let world = World::new().await;
    for sent in [
        json!({"executor_type": "noop", "concurrency_limit": 5}),
        json!({"executor_type": "noop", "concurrency_key": "a", "concurrency_limit": 0}),
        json!({"executor_type": "noop", "concurrency_key": "a", "concurrency_limit": 10_001}),
    ] {
        let problem = world.post("/api/v1/jobs", Some(sent)).await.problem(422, "invalid-job");
        assert_eq!(problem["field"], "concurrency_limit", "{problem}");
    }
}

#[tokio::test]
async fn run_waiting_for_a_permit_names_the_limit() {
    let world = World::new().await;
    let every = json!({"kind": "interval", "every": "15m"});
    let job =
        |name: &str| json!({"name": name, "schedule": every, "concurrency_key": "example.com"});
    let runs = world.create(job("runs")).await;
    let waits = world.create(job("waits")).await;
    for job in [&runs, &waits] {
        let known = world.known(job).await;
        world.rig.queue(known, 900).await;
    }
    assert_eq!(world.rig.claim(9, 900).await.len(), 1);
    world.pass(900);
    let mut limited = Vec::new();
    for job in [&runs, &waits] {
        let path = format!("/api/v1/jobs/{}/explain", job["id"].as_str().unwrap());
        let explained = world.get(&path).await.expect(200);
        let reasons = explained["reasons"].as_array().unwrap().clone();
        limited.extend(reasons.into_iter().filter(|reason| reason["code"] == "limited"));
    }
    assert_eq!(limited.len(), 1, "{limited:?}");
    let reason = &limited[0];
    assert_eq!(
        (&reason["scope"], &reason["key"], &reason["limit"], &reason["running"]),
        (&json!("key"), &json!("example.com"), &json!(1), &json!(1))
    );
    let message = reason["message"].as_str().unwrap();
    assert!(message.contains("at most 1 of the runs with its key \"example.com\""), "{message}");
}
