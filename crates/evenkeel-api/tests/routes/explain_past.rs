//! What became of a past time of a job.

use axum::http::Method;
use evenkeel_api::TokenRequest;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::{Finish, Prune, Results, Role};
use evenkeel_store_testkit::fixtures::{START, at, new_job};
use evenkeel_store_testkit::rig::OVER;
use serde_json::{Value, json};

use crate::world::{Counting, World, job_path, request, tokens};

/// Asks as an operator about a time in seconds since the start of the test.
async fn asked(world: &World, job: &Value, secs: i64) -> Value {
    asked_as(world, Role::Operator, job, &at(secs).to_string()).await
}

async fn asked_as(world: &World, role: Role, job: &Value, time: &str) -> Value {
    let path = job_path(job, &format!("/explain?at={time}"));
    let answer = world.ask_as(role, Method::GET, &path, None).await.expect(200);
    assert_eq!(answer["summary"], answer["past"]["message"]);
    assert!(answer["summary"].as_str().unwrap().len() > 20, "{answer}");
    answer["past"].clone()
}

/// Creates a job that runs every 10 minutes from 600 s on.
async fn every_ten_minutes(world: &World) -> Value {
    world.create(json!({"name": "a", "interval_minutes": 10, "start_at": at(600)})).await
}

#[tokio::test]
async fn run_of_that_time_is_shown_with_its_outcome() {
    let world = World::new().await;
    let job = every_ten_minutes(&world).await;
    let known = world.known(&job).await;
    world.pass(600);
    world.rig.run_successfully(known, 600).await;
    world.pass(600);
    let late = world.rig.start(known, 1207).await;
    let started_at = at(1207);
    world.rig.finish(Finish { started_at, ..world.rig.success(late) }).await;
    world.pass(600);
    let failed = world.rig.start(known, 1800).await;
    let results = Results { error: Some("no route\nto host".into()), ..Results::default() };
    world.rig.finish(Finish { results, ..world.rig.end(failed, Outcome::Failed, OVER) }).await;
    world.pass(600);
    world.rig.start(known, 2400).await;

    let ran = asked(&world, &job, 600).await;
    assert_eq!((&ran["verdict"], &ran["run_status"]), (&json!("ran"), &json!("completed")));
    assert_eq!((&ran["scheduled_at"], &ran["started_at"]), (&json!(at(600)), &json!(at(600))));
    let run = world.get(&format!("/api/v1/runs/{}", ran["run_id"].as_str().unwrap())).await;
    assert_eq!(run.expect(200)["finished_at"], ran["finished_at"]);
    let late = asked(&world, &job, 1200).await;
    assert_eq!((&late["verdict"], &late["lateness_ms"]), (&json!("ran_late"), &json!(7000)));
    let failed = asked(&world, &job, 1800).await;
    assert_eq!((&failed["verdict"], &failed["attempt_count"]), (&json!("failed"), &json!(1)));
    let message = failed["message"].as_str().unwrap();
    assert!(message.ends_with("failed after 1 attempt: no route"), "{message}");
    assert_eq!(asked(&world, &job, 2400).await["verdict"], "running");
    let next = asked(&world, &job, 3000).await;
    assert_eq!((&next["verdict"], &next["run_id"]), (&json!("in_future"), &Value::Null));
}

#[tokio::test]
async fn retry_that_waits_makes_the_time_wait() {
    let world = World::new().await;
    let job = every_ten_minutes(&world).await;
    world.pass(600);
    let held = world.rig.start(world.known(&job).await, 600).await;
    world.rig.finish(world.rig.retry(held, at(700))).await;
    let seen = asked(&world, &job, 600).await;
    assert_eq!((&seen["verdict"], &seen["attempt_count"]), (&json!("waiting"), &json!(2)));
    assert!(seen["message"].as_str().unwrap().contains("attempt 2 starts at"), "{seen}");
}

#[tokio::test]
async fn due_time_that_was_not_fired_waits() {
    let world = World::new().await;
    let job = every_ten_minutes(&world).await;
    world.pass(700);
    assert_eq!(asked(&world, &job, 600).await["verdict"], "waiting");
}

#[tokio::test]
async fn skipped_time_shows_the_reason_and_the_next_run() {
    let world = World::new().await;
    let job = every_ten_minutes(&world).await;
    world.pass(3000);
    world.rig.run_successfully(world.known(&job).await, 3000).await;
    for secs in [600, 1200, 2400] {
        let seen = asked(&world, &job, secs).await;
        assert_eq!(seen["verdict"], "skipped");
        assert_eq!(
            seen["skipped"],
            json!({"from": at(600), "to": at(2400), "count": 4, "reason": "misfire"})
        );
        assert!(seen["later_run_id"].is_string(), "{seen}");
    }
    assert_eq!(asked(&world, &job, 3000).await["verdict"], "ran");
    let between = asked(&world, &job, 900).await;
    assert_eq!(between["verdict"], "not_scheduled");
    assert_eq!(between["previous_scheduled_at"], json!(at(600)));
    assert_eq!(between["next_scheduled_at"], json!(at(1200)));
}

#[tokio::test]
async fn pause_is_shown_with_its_user_and_its_end() {
    let world = World::new().await;
    let job = world.create(json!({"cron_expression": "*/10 * * * *"})).await;
    let times = next_times(&world, &job).await;
    world.pass(1);
    world.post(&job_path(&job, "/pause"), None).await.expect(200);
    world.pass(1300);
    let paused = asked_as(&world, Role::Operator, &job, &times[0].to_string()).await;
    assert_eq!((&paused["verdict"], &paused["changed_by"]), (&json!("paused"), &json!("tester")));
    assert_eq!((&paused["changed_at"], &paused["resumed_at"]), (&json!(at(1)), &Value::Null));
    assert!(paused["message"].as_str().unwrap().starts_with("It was paused by tester at "));
    world.post(&job_path(&job, "/resume"), None).await.expect(200);
    let resumed = asked_as(&world, Role::Viewer, &job, &times[1].to_string()).await;
    assert_eq!((&resumed["verdict"], &resumed["changed_by"]), (&json!("paused"), &Value::Null));
    assert_eq!(resumed["resumed_at"], json!(at(1301)));
    let message = resumed["message"].as_str().unwrap();
    assert!(message.starts_with("It was paused at "), "viewers do not see users: {message}");
}

async fn next_times(world: &World, job: &Value) -> Vec<Timestamp> {
    let next = world.get(&job_path(job, "/next")).await.expect(200);
    let times = next["times"].as_array().unwrap().iter();
    times.map(|time| time["utc"].as_str().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn pause_of_many_jobs_is_shown_without_a_user() {
    let world = World::new().await;
    let job = every_ten_minutes(&world).await;
    world.pass(600);
    world.rig.run_successfully(world.known(&job).await, 600).await;
    world.pass(100);
    let command = json!({"action": "pause", "ids": [job["id"]]});
    world.post("/api/v1/jobs/commands", Some(command)).await.expect(200);
    world.pass(1000);
    let seen = asked(&world, &job, 1200).await;
    assert_eq!((&seen["verdict"], &seen["changed_at"]), (&json!("paused"), &json!(at(700))));
    assert_eq!(seen["changed_by"], Value::Null);
}

#[tokio::test]
async fn time_before_creation_and_time_before_an_edit_are_told() {
    let world = World::new().await;
    let job = world.create(json!({"cron_expression": "*/10 * * * *"})).await;
    let first = next_times(&world, &job).await[0];
    let before = START.saturating_sub(Span::from_secs(7200));
    let seen = asked_as(&world, Role::Viewer, &job, &before.to_string()).await;
    assert_eq!(seen["verdict"], "not_created_yet");
    world.pass(1200);
    world.patch(&job, json!({"cron_expression": "7 4 1 1 *"})).await.expect(200);
    let seen = asked_as(&world, Role::Operator, &job, &first.to_string()).await;
    assert_eq!((&seen["verdict"], &seen["changed_by"]), (&json!("edited"), &json!("tester")));
    assert_eq!(seen["changed_at"], json!(at(1200)));
}

#[tokio::test]
async fn pruned_time_is_told_from_an_unscheduled_time() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 5, "start_at": at(300)})).await;
    let known = world.known(&job).await;
    for secs in (300..=2100).step_by(300) {
        world.pass(300);
        world.rig.run_successfully(known, secs).await;
    }
    assert_eq!(asked(&world, &job, 600).await["verdict"], "ran");
    let prune = Prune { after: None, limit: 100, keep_per_job: 2, keep_since: at(0) };
    assert_eq!(world.rig.store.prune(prune).await.unwrap().deleted, 5);
    assert_eq!(asked(&world, &job, 600).await["verdict"], "pruned");
    assert_eq!(asked(&world, &job, 720).await["verdict"], "not_scheduled");
    assert_eq!(asked(&world, &job, 1800).await["verdict"], "ran");
}

/// Returns the token of an operator that is valid for two days.
fn long_token() -> String {
    let request = TokenRequest {
        role: Role::Operator,
        tenant: "main".into(),
        ttl: Span::from_secs(2 * 86_400),
        now: START,
        subject: "ann".into(),
    };
    tokens().issue(&request, &Counting::new()).unwrap()
}

#[tokio::test]
async fn rebalanced_job_shows_its_move() {
    let world = World::new().await;
    let daily = |n: i64| new_job(&format!("job {n}")).every(86_400).first_at(20_000 + n).build();
    let jobs = world.rig.add_all((0..12).map(daily).collect()).await;
    world.pass(7200);
    let token = long_token();
    let act = request(Method::POST, "/api/v1/scheduler/rebalance", Some(&token), Some(json!({})));
    world.send(act).await.expect(200);
    world.pass(20_000);
    let mut shown = 0;
    for (n, known) in (0..).zip(jobs) {
        let moved = world.rig.job(known).await;
        let former = at(20_000 + n);
        if moved.next_at == Some(former) {
            continue;
        }
        let path = format!("/api/v1/jobs/{}/explain?at={former}", known.id);
        let asked = request(Method::GET, &path, Some(&token), None);
        let seen = world.send(asked).await.expect(200)["past"].clone();
        assert_eq!((&seen["verdict"], &seen["changed_by"]), (&json!("moved"), &json!("ann")));
        assert_eq!(
            (&seen["moved_from"], &seen["moved_to"]),
            (&json!(former), &json!(moved.next_at))
        );
        assert_eq!(seen["changed_at"], json!(at(7200)));
        shown += 1;
    }
    assert!(shown > 0, "the rebalance moved no job");
}

#[tokio::test]
async fn time_of_day_is_in_the_time_zone_of_the_job() {
    let world = World::new().await;
    let job =
        world.create(json!({"cron_expression": "0 9 * * *", "timezone": "America/Toronto"})).await;
    let seen = asked_as(&world, Role::Viewer, &job, "09:00").await;
    assert!(seen["local"].as_str().unwrap().contains("T09:00:00"), "{seen}");
    let at: Timestamp = seen["at"].as_str().unwrap().parse().unwrap();
    assert!(at <= START && START.since(at) < Span::from_secs(86_400), "{seen}");
    assert_eq!(seen["verdict"], "not_created_yet");
}

#[tokio::test]
async fn wrong_time_is_refused_with_the_way_out() {
    let world = World::new().await;
    let job = every_ten_minutes(&world).await;
    for wrong in ["9am", "24:00", "2026-12-01", ""] {
        let path = job_path(&job, &format!("/explain?at={wrong}"));
        let problem = world.get(&path).await.problem(422, "invalid-parameter");
        assert_eq!(problem["field"], "at");
        assert!(problem["detail"].as_str().unwrap().contains("09:00"), "{problem}");
    }
    let plain = world.get(&job_path(&job, "/explain")).await.expect(200);
    assert_eq!(plain["past"], Value::Null);
}
