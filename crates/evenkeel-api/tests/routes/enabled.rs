//! Tests of the job field `enabled`, which is false for a paused job.

use axum::http::Method;
use evenkeel_store::Role;
use serde_json::{Value, json};

use crate::world::{Answer, World, job_path, noop, request, token};

async fn change(world: &World, method: Method, job: &Value, change: &Value) -> Answer {
    let admin = token(Role::Admin, "main");
    world.send(request(method, &job_path(job, ""), Some(&admin), Some(change.clone()))).await
}

#[tokio::test]
async fn disabled_job_is_created_paused() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 30, "enabled": false})).await;
    assert_eq!((&job["status"], &job["enabled"]), (&json!("paused"), &json!(false)));
    assert_eq!((&job["is_paused"], &job["next_run_at"]), (&json!(true), &Value::Null));
    let open = world.create(json!({"interval_minutes": 30, "enabled": true})).await;
    assert_eq!((&open["status"], &open["enabled"]), (&json!("scheduled"), &json!(true)));
    let wrong = noop(json!({"interval_minutes": 30, "enabled": "no"}));
    let problem = world.post("/api/v1/jobs", Some(wrong)).await.problem(422, "invalid-job");
    assert_eq!(problem["errors"][0]["field"], "enabled");
}

#[tokio::test]
async fn changing_enabled_pauses_and_resumes() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 30})).await;
    let paused = world.patch(&job, json!({"enabled": false, "priority": 7})).await.expect(200);
    assert_eq!((&paused["status"], &paused["priority"]), (&json!("paused"), &json!(7)));
    assert_eq!(paused["next_run_at"], Value::Null);
    // Sending `enabled: false` again changes nothing.
    let again = world.patch(&job, json!({"enabled": false})).await.expect(200);
    assert_eq!(again["generation"], paused["generation"]);
    // `PUT` accepts the job as returned by `GET`, with edited fields.
    let mut shown = world.get(&job_path(&job, "")).await.expect(200);
    shown["enabled"] = json!(true);
    shown["priority"] = json!(8);
    let resumed = change(&world, Method::PUT, &job, &shown).await.expect(200);
    assert_eq!((&resumed["status"], &resumed["priority"]), (&json!("scheduled"), &json!(8)));
    assert_ne!(resumed["next_run_at"], Value::Null);
    let paused = world.patch(&job, json!({"enabled": false})).await.expect(200);
    assert_eq!(paused["status"], "paused");
    // Null restores the default value.
    assert_eq!(
        world.patch(&job, json!({"enabled": null})).await.expect(200)["status"],
        "scheduled"
    );
    let wrong = change(&world, Method::PATCH, &job, &json!({"enabled": 1})).await;
    assert_eq!(wrong.problem(422, "invalid-job")["errors"][0]["field"], "enabled");
}

#[tokio::test]
async fn refused_pause_discards_the_whole_change() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 30})).await;
    world.post(&format!("{}/cancel", job_path(&job, "")), None).await.expect(200);
    let sent = json!({"enabled": false, "priority": 7});
    let refused = change(&world, Method::PATCH, &job, &sent).await;
    assert_eq!(refused.status.as_u16(), 409);
    assert_eq!(world.get(&job_path(&job, "")).await.expect(200)["priority"], job["priority"]);
}

#[tokio::test]
async fn bulk_creates_disabled_jobs_paused() {
    let world = World::new().await;
    let jobs = [("a", true), ("b", false), ("c", true)].map(|(name, enabled)| {
        noop(json!({"name": name, "interval_minutes": 30, "enabled": enabled}))
    });
    world.post("/api/v1/jobs/bulk", Some(json!({"jobs": jobs}))).await.expect(200);
    let listed = world.get("/api/v1/jobs?sort=name").await.expect(200);
    let states: Vec<&Value> =
        listed["jobs"].as_array().unwrap().iter().map(|job| &job["status"]).collect();
    assert_eq!(states, ["scheduled", "paused", "scheduled"]);
}
