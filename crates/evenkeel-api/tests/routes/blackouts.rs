//! For a job that a blackout delays, every endpoint shows the same start time.

use evenkeel_store_testkit::fixtures::at;
use serde_json::{Value, json};

use crate::world::{World, job_path};

/// Returns a job document with a blackout until 23:00 UTC; the tests start at 17:45 UTC.
fn held_until_eleven(more: Value) -> Value {
    let mut document = json!({"blackout_periods": [{"start": "17:00", "end": "23:00"}]});
    let fields = more.as_object().unwrap().clone();
    document.as_object_mut().unwrap().extend(fields);
    document
}

fn eleven() -> Value {
    json!(at(5 * 3600 + 15 * 60))
}

#[tokio::test]
async fn every_answer_shows_the_end_of_the_blackout_as_the_next_start() {
    let world = World::new().await;
    let job = world.create(held_until_eleven(json!({"interval_minutes": 20}))).await;
    assert_eq!(job["next_run_at"], eleven());
    let regular = job["next_scheduled_at"].as_str().unwrap().to_owned();
    assert!(regular.as_str() < eleven().as_str().unwrap(), "{job}");
    // The test compares the endpoints before the scheduled time, and again long after it.
    for _ in 0..2 {
        let shown = world.get(&job_path(&job, "")).await.expect(200);
        assert_eq!((&shown["next_run_at"], &shown["status"]), (&eleven(), &json!("scheduled")));
        assert_eq!(shown["next_scheduled_at"], regular.as_str());
        let listed = world.get("/api/v1/jobs?status=scheduled").await.expect(200);
        assert_eq!(listed["jobs"][0]["next_run_at"], eleven());
        let next = world.get(&job_path(&job, "/next")).await.expect(200);
        assert_eq!(next["times"][0]["utc"], eleven());
        let why = world.get(&job_path(&job, "/explain")).await.expect(200);
        assert_eq!(why["next_possible_start"], eleven());
        let untils = why["reasons"].as_array().unwrap().iter().map(|reason| &reason["until"]);
        assert!(untils.clone().count() > 0 && untils.clone().all(|it| *it == eleven()), "{why}");
        world.pass(1250);
    }
    let asked = world.post(&job_path(&job, "/trigger"), None).await.expect(202);
    assert_eq!(asked["held_until"], eleven());
}

#[tokio::test]
async fn run_without_a_blackout_has_no_held_until() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 20})).await;
    let asked = world.post(&job_path(&job, "/trigger"), None).await.expect(202);
    assert_eq!(asked["held_until"], Value::Null);
}

#[tokio::test]
async fn promise_missed_because_of_a_blackout_has_its_own_reason() {
    let world = World::new().await;
    let job = world.create(held_until_eleven(json!({"interval_minutes": 20}))).await;
    world.pass(2500);
    let seen = world.get(&job_path(&job, "/condition")).await.expect(200);
    assert_eq!(
        (&seen["condition"], &seen["reason"], &seen["blackout_ends_at"]),
        (&json!("ERROR"), &json!("held_by_blackout"), &eleven())
    );
    assert!(seen["explanation"].as_str().unwrap().contains("23:00"), "{seen}");
    let shown = world.get(&job_path(&job, "")).await.expect(200);
    assert_eq!(shown["condition_reason"], "held_by_blackout");
}

#[tokio::test]
async fn change_warns_of_blackouts_that_break_the_promise() {
    let world = World::new().await;
    let job = world.create(held_until_eleven(json!({"interval_minutes": 20}))).await;
    let warning = job["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("blackout_periods: ") && warning.contains("23:00"), "{warning}");
    let patient = json!({"schedule": {"kind": "interval", "every": "20m", "tolerance": "8h"}});
    assert_eq!(world.patch(&job, patient).await.expect(200).get("warnings"), None);
    let open = world.create(json!({"interval_minutes": 20})).await;
    assert_eq!(open.get("warnings"), None);
    let closed = json!({"blackout_periods": [{"start": "03:00", "end": "09:00"}]});
    let warned = world.patch(&open, closed).await.expect(200);
    assert!(warned["warnings"][0].as_str().unwrap().contains("09:00"), "{warned}");
    // `GET` shows no warnings; only the response to a change does.
    assert_eq!(world.get(&job_path(&open, "")).await.expect(200).get("warnings"), None);
}

#[tokio::test]
async fn due_job_without_a_claim_is_pending() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 10})).await;
    assert_eq!(job["status"], "scheduled");
    world.pass(601);
    assert_eq!(world.get(&job_path(&job, "")).await.expect(200)["status"], "pending");
    let listed = world.get("/api/v1/jobs?status=pending").await.expect(200);
    assert_eq!((&listed["total"], &listed["jobs"][0]["id"]), (&json!(1), &job["id"]));
    let listed = world.get("/api/v1/jobs?status=scheduled").await.expect(200);
    assert_eq!(listed["total"], 0);
    let counts = world.get("/api/v1/scheduler/metrics").await.expect(200);
    assert_eq!((&counts["jobs"]["pending"], &counts["jobs"]["scheduled"]), (&json!(1), &json!(0)));
}
