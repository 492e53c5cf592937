//! Pause, resume, cancel, retry, delete and purge.

use axum::http::{Method, header};
use evenkeel_core::attempt::Outcome;
use evenkeel_store::{Role, Signal};
use evenkeel_store_testkit::fixtures::at;
use evenkeel_store_testkit::rig::OVER;
use serde_json::{Value, json};

use crate::world::{World, run_ids, runs_within};

fn path(job: &Value, verb: &str) -> String {
    let path = format!("/api/v1/jobs/{}", job["id"].as_str().unwrap());
    if verb.is_empty() { path } else { format!("{path}/{verb}") }
}

async fn news(world: &World) -> Value {
    world.create(json!({"name": "news", "interval_minutes": 30})).await
}

/// Creates a job whose only run has failed.
async fn failed(world: &World, document: Value) -> Value {
    let job = world.create(document).await;
    let held = world.rig.start(world.known(&job).await, 1800).await;
    world.rig.finish(world.rig.end(held, Outcome::Failed, OVER)).await;
    job
}

#[tokio::test]
async fn paused_job_continues_when_resumed() {
    let world = World::new().await;
    let job = news(&world).await;
    let paused = world.post(&path(&job, "pause"), None).await.expect(200);
    assert_eq!((&paused["status"], &paused["is_paused"]), (&json!("paused"), &json!(true)));
    assert_eq!(paused["paused_at"], json!(at(0)));
    assert_eq!(paused["next_run_at"], Value::Null);
    assert_eq!(paused["still_running"], json!([]));
    assert_eq!(paused.get("run_id"), None);
    let resumed = world.post(&path(&job, "resume"), Some(json!({}))).await.expect(200);
    assert_eq!((&resumed["status"], &resumed["is_paused"]), (&json!("scheduled"), &json!(false)));
    assert!(runs_within(&resumed, 0, 1800), "{resumed}");
    assert_eq!((&resumed["paused_at"], &resumed["generation"]), (&Value::Null, &json!(3)));
}

#[tokio::test]
async fn pause_lists_running_executions() {
    let world = World::new().await;
    let job = news(&world).await;
    let held = world.rig.start(world.known(&job).await, 1800).await;
    let paused = world.post(&path(&job, "pause"), None).await.expect(200);
    let running = run_ids().attempt_id(held.key).to_string();
    assert_eq!(paused["still_running"], json!([running]));
    assert_eq!(paused["lock_token"], json!(running));
    assert_eq!(world.rig.cancellations().await, []);
}

#[tokio::test]
async fn cancelled_job_ends_and_its_run_is_asked_to_stop() {
    let world = World::new().await;
    let job = news(&world).await;
    let held = world.rig.start(world.known(&job).await, 1800).await;
    let mut signals = world.rig.store.signals().subscribe();
    let cancelled = world.post(&path(&job, "cancel"), None).await.expect(200);
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(cancelled["cancelled_at"], json!(at(0)));
    assert_eq!(cancelled["still_running"], json!([run_ids().attempt_id(held.key).to_string()]));
    assert_eq!(signals.try_recv(), Ok(Signal::Cancel));
    assert_eq!(world.rig.cancellations().await.len(), 1);
    let refused = world.post(&path(&job, "trigger"), None).await.problem(409, "job-state");
    assert_eq!(refused["allowed"], json!(["delete"]));
    world.get(&path(&job, "")).await.expect(200);
}

#[tokio::test]
async fn failed_run_is_retried() {
    let world = World::new().await;
    let document = json!({"name": "news", "interval_minutes": 30, "start_at": at(1800)});
    let job = failed(&world, document).await;
    let mut signals = world.rig.store.signals().subscribe();
    let retried = world.post(&path(&job, "retry"), None).await.expect(200);
    assert_eq!(retried["status"], "pending");
    assert_eq!(retried["current_retry_count"], 0);
    assert_eq!(retried["next_run_at"], json!(at(3600)));
    assert_eq!(signals.try_recv(), Ok(Signal::Jobs));
    let run = retried["run_id"].as_str().unwrap();
    let shown = world.get(&format!("/api/v1/executions/{run}")).await.expect(200);
    assert_eq!((&shown["job_id"], &shown["status"]), (&job["id"], &json!("pending")));
}

#[tokio::test]
async fn command_refused_by_the_state_lists_allowed_commands() {
    let world = World::new().await;
    let job = news(&world).await;
    for verb in ["resume", "retry"] {
        let refused = world.post(&path(&job, verb), None).await.problem(409, "job-state");
        assert_eq!(refused["job_status"], "scheduled");
        let allowed = json!(["pause", "cancel", "trigger", "update", "delete"]);
        assert_eq!(refused["allowed"], allowed);
        assert!(refused["detail"].as_str().unwrap().contains(verb), "{refused}");
    }
    world.post(&path(&job, "pause"), None).await.expect(200);
    let refused = world.post(&path(&job, "pause"), None).await.problem(409, "job-state");
    assert_eq!(refused["job_status"], "paused");
}

#[tokio::test]
async fn command_with_if_match_applies_to_that_version_only() {
    let world = World::new().await;
    let job = failed(&world, json!({"name": "news", "interval_minutes": 30})).await;
    let mut generation = 1;
    for verb in ["retry", "pause", "resume", "cancel"] {
        let path = path(&job, verb);
        let late = world.ask_if(Method::POST, &path, "\"g99\"", None).await;
        assert_eq!(late.problem(412, "job-changed")["generation"], generation, "{verb}");
        let tag = format!("\"g{generation}\"");
        assert_eq!(late.header(header::ETAG), Some(tag.as_str()));
        world.ask_if(Method::POST, &path, "W/\"g1\"", None).await.problem(412, "job-changed");
        let done = world.ask_if(Method::POST, &path, &format!("\"g98\", {tag}"), None).await;
        generation += 1;
        assert_eq!(done.expect(200)["generation"], generation, "{verb}");
    }
    // The server checks the state of the job before `If-Match`: a paused job cannot be paused,
    // whatever its version.
    world
        .ask_if(Method::POST, &path(&job, "pause"), "\"g1\"", None)
        .await
        .problem(409, "job-state");
    let path = path(&job, "");
    world.ask_if(Method::DELETE, &path, "\"g1\", \"g2\"", None).await.problem(412, "job-changed");
    world.ask_if(Method::DELETE, &path, "\"g1\", \"g5\"", None).await.expect(200);
}

#[tokio::test]
async fn job_that_runs_once_and_was_withdrawn_by_a_pause_runs_when_resumed() {
    let world = World::new().await;
    let job = world.create(json!({"name": "once", "schedule_enabled": false})).await;
    world.rig.queue(world.known(&job).await, 0).await;
    world.post(&path(&job, "pause"), None).await.expect(200);
    assert_eq!(world.rig.claim(9, 1).await, []);
    let resumed = world.post(&path(&job, "resume"), None).await.expect(200);
    assert_eq!(resumed["status"], "scheduled");
    assert!(resumed["next_run_at"].is_string());
}

#[tokio::test]
async fn paused_job_changed_to_run_once_runs_when_resumed() {
    let world = World::new().await;
    let job = news(&world).await;
    world.rig.run_successfully(world.known(&job).await, 1800).await;
    world.pass(2000);
    world.post(&path(&job, "pause"), None).await.expect(200);
    let once = Some(json!({"schedule_enabled": false}));
    let changed =
        world.ask_as(Role::Operator, Method::PUT, &path(&job, ""), once).await.expect(200);
    assert_eq!(
        (&changed["schedule"]["kind"], &changed["status"]),
        (&json!("once"), &json!("paused"))
    );
    world.pass(10);
    let resumed = world.post(&path(&job, "resume"), None).await.expect(200);
    assert_eq!(resumed["next_run_at"], json!(at(2010)));
    world.rig.run_successfully(world.known(&job).await, 2010).await;
    let shown = world.get(&path(&job, "")).await.expect(200);
    assert_eq!((&shown["status"], &shown["next_run_at"]), (&json!("completed"), &Value::Null));
}

#[tokio::test]
async fn purge_deletes_the_history_and_can_be_repeated() {
    let world = World::new().await;
    let job = news(&world).await;
    let known = world.known(&job).await;
    world.rig.run_successfully(known, 1800).await;
    let key = world.rig.run_successfully(known, 3600).await;
    let held = world.rig.start(known, 5400).await;
    let gone = world.delete(&format!("{}?purge=true", path(&job, ""))).await.expect(200);
    assert_eq!(gone["purged"], 2);
    assert_eq!(gone["still_running"], json!([run_ids().attempt_id(held.key).to_string()]));
    let execution = format!("/api/v1/executions/{}", run_ids().attempt_id(key));
    world.get(&execution).await.problem(404, "not-found");
    world.rig.finish(world.rig.success(held)).await;
    let again = format!("{}?purge=true", path(&job, ""));
    assert_eq!(world.delete(&again).await.expect(200)["purged"], 1);
    world.delete(&again).await.problem(404, "not-found");
    world.delete(&path(&job, "")).await.problem(404, "not-found");
}

#[tokio::test]
async fn purge_must_be_true_or_false() {
    let world = World::new().await;
    let job = news(&world).await;
    let path = format!("{}?purge=yes", path(&job, ""));
    let problem = world.delete(&path).await.problem(422, "invalid-parameter");
    assert_eq!(problem["field"], "purge");
    assert_eq!(world.rig.census().await.jobs, 1);
}

#[tokio::test]
async fn commands_refuse_bodies_and_parameters() {
    let world = World::new().await;
    let job = news(&world).await;
    for verb in ["pause", "resume", "cancel", "retry"] {
        let answer = world.post(&path(&job, verb), Some(json!({"until": "later"}))).await;
        answer.problem(422, "invalid-parameter");
        let answer = world.post(&format!("{}?force=true", path(&job, verb)), None).await;
        answer.problem(422, "invalid-parameter");
    }
    assert_eq!(world.get(&path(&job, "")).await.expect(200)["generation"], 1);
}

#[tokio::test]
async fn viewers_cannot_command_jobs() {
    let world = World::new().await;
    let job = news(&world).await;
    for verb in ["pause", "resume", "cancel", "retry"] {
        let answer = world.ask_as(Role::Viewer, Method::POST, &path(&job, verb), None).await;
        answer.problem(403, "forbidden");
    }
}
