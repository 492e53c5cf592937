//! Tests of job conditions, and of explanations why a job does not run.

use axum::http::Method;
use evenkeel_core::condition::Reason;
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::{Judgement, Now, Role};
use evenkeel_store_testkit::fixtures::at;
use serde_json::{Value, json};

use crate::world::{World, request, token};

fn path(job: &Value, what: &str) -> String {
    format!("/api/v1/jobs/{}/{what}", job["id"].as_str().unwrap())
}

#[tokio::test]
async fn job_shows_its_condition_and_window() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 10})).await;
    let seen = world.get(&path(&job, "condition")).await.expect(200);
    assert_eq!((&seen["condition"], &seen["reason"]), (&json!("OK"), &json!("never_ran")));
    assert_eq!(seen["can_start_by"], job["next_run_at"]);
    assert_eq!(seen["should_start_by"], seen["deadline"]);
    assert_eq!(seen["history"]["consecutive_failures"], 0);
    assert_eq!(seen["history"]["average_duration_ms"], Value::Null);
    let at = |name: &str| seen[name].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert!(at("changes_at") > at("deadline"));
    world.pass(1201);
    let late = world.get(&path(&job, "condition")).await.expect(200);
    assert_eq!((&late["condition"], &late["reason"]), (&json!("ERROR"), &json!("violated")));
    assert_eq!(late["changes_at"], Value::Null);
    let shown = world.get(&format!("/api/v1/jobs/{}", job["id"].as_str().unwrap())).await;
    assert_eq!(shown.expect(200)["condition"], "ERROR");
    let listed = world.get("/api/v1/jobs").await.expect(200);
    assert_eq!(listed["jobs"][0]["condition_reason"], "violated");
}

/// Marks a job as at risk of missing its deadline.
async fn judge(world: &World, job: &Value, reason: Reason, error_at: &str) {
    let known = world.known(job).await;
    let store = &world.rig.store;
    store.mark_at_risk(&[known.no]).await.unwrap();
    let shards: Vec<_> = evenkeel_core::Shard::all().collect();
    let due = store.to_judge(&shards, 100, Now::Database).await.unwrap();
    let touched = due.jobs.iter().find(|it| it.no == known.no).unwrap().touched;
    let error_at = error_at.parse().unwrap();
    let judgement =
        Judgement { job: known.no, touched, reason, error_at, again_at: Some(Timestamp::MAX) };
    store.judge(vec![judgement], Now::Database).await.unwrap();
}

#[tokio::test]
async fn jobs_at_risk_are_listed_soonest_error_first_and_counted() {
    let world = World::new().await;
    for (name, reason, error_at) in [
        ("late", Reason::LastRunFailed, "2100-01-03T00:00:00Z"),
        ("soon", Reason::LikelyViolatedWaiting, "2100-01-01T00:00:00Z"),
        ("gone", Reason::Violated, "2020-01-01T00:00:00Z"),
    ] {
        let job = world.create(json!({"name": name, "interval_minutes": 30})).await;
        judge(&world, &job, reason, error_at).await;
    }
    world.create(json!({"name": "well", "interval_minutes": 30})).await;
    let seen = world.get("/api/v1/conditions").await.expect(200);
    assert_eq!(seen["counts"], json!({"ok": 1, "warning": 2, "error": 1, "held_by_blackout": 0}));
    let names = |list: &Value| -> Vec<String> {
        let jobs = list["jobs"].as_array().unwrap().clone();
        jobs.iter().map(|job| job["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&seen), ["gone", "soon", "late"]);
    // The stored reasons of this test differ from the present condition of the jobs.
    let words = seen["jobs"][0]["explanation"].as_str().unwrap();
    assert!(words.starts_with("It has not run yet"), "{words}");
    assert_eq!(seen["jobs"][0]["advice"], Value::Null);
    assert_eq!((&seen["total"], &seen["next_cursor"]), (&json!(3), &Value::Null));
    let first = world.get("/api/v1/conditions?limit=1").await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/api/v1/conditions?cursor={cursor}")).await.expect(200);
    assert_eq!(
        (names(&first), names(&rest)),
        (vec!["gone".into()], vec!["soon".into(), "late".into()])
    );
    let errors = world.get("/api/v1/conditions?condition=error").await.expect(200);
    assert_eq!(names(&errors), ["gone"]);
    assert_eq!(errors["counts"]["warning"], 2);
    world.get("/api/v1/conditions?condition=OK").await.problem(422, "invalid-parameter");
    let other = token(Role::Viewer, "other");
    let asked = request(Method::GET, "/api/v1/conditions", Some(&other), None);
    let seen = world.send(asked).await.expect(200);
    assert_eq!((&seen["counts"]["ok"], &seen["jobs"]), (&json!(0), &json!([])));
}

#[tokio::test]
async fn explain_says_why_a_job_does_not_run() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 30})).await;
    let seen = world.get(&path(&job, "explain")).await.expect(200);
    assert_eq!(seen["reasons"][0]["code"], "not_due");
    assert_eq!(seen["reasons"][0]["until"], job["next_run_at"]);
    assert_eq!(seen["next_possible_start"], job["next_run_at"]);
    assert!(seen["summary"].as_str().unwrap().starts_with("Its next time is"), "{seen}");
    world.post(&path(&job, "trigger"), None).await.expect(202);
    let asked = world.get(&path(&job, "explain")).await.expect(200);
    assert_eq!(asked["reasons"][0]["code"], "starting", "{asked}");
    let dark = world
        .create(json!({"interval_minutes": 30,
                       "blackout_periods": [{"start": "00:00", "end": "23:59:59"}]}))
        .await;
    world.pass(1800);
    let seen = world.get(&path(&dark, "explain")).await.expect(200);
    assert_eq!(seen["reasons"][0]["code"], "blackout", "{seen}");
    assert_eq!(seen["next_possible_start"], seen["reasons"][0]["until"]);
}

#[tokio::test]
async fn failed_run_shows_in_the_condition_and_its_retry_in_explain() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 30, "start_at": at(1800)})).await;
    let known = world.known(&job).await;
    world.pass(1800);
    let held = world.rig.start(known, 1800).await;
    let due = held.key.scheduled_at.saturating_add(Span::from_secs(65));
    let mut failure = world.rig.retry(held, due);
    failure.results.error = Some("boom".into());
    world.rig.finish(failure).await;
    world.pass(6);
    let why = world.get(&path(&job, "explain")).await.expect(200);
    assert_eq!(
        (&why["reasons"][0]["code"], &why["reasons"][0]["retry"]),
        (&json!("retry_pending"), &json!(1))
    );
    assert_eq!(why["reasons"][0]["until"], due.to_string());
    assert_eq!(why["next_possible_start"], due.to_string());
    let seen = world.get(&path(&job, "condition")).await.expect(200);
    assert_eq!(
        (&seen["condition"], &seen["reason"]),
        (&json!("WARNING"), &json!("last_run_failed"))
    );
    assert_eq!(seen["history"]["consecutive_failures"], 1);
    assert_eq!(seen["can_start_by"], due.to_string());
    let advice = seen["advice"].as_str().unwrap();
    assert!(advice.starts_with("Fix the cause of its last failure. A retry is planned"), "{seen}");
    judge(&world, &job, Reason::LastRunFailed, "2100-01-03T00:00:00Z").await;
    let listed = world.get("/api/v1/conditions").await.expect(200);
    for field in ["explanation", "advice"] {
        assert_eq!(listed["jobs"][0][field], seen[field], "{listed}");
    }
    assert_eq!(listed["jobs"][0]["error_message"], "boom", "{listed}");
}

#[tokio::test]
async fn periodic_job_has_no_next_start_while_it_runs() {
    let world = World::new().await;
    let job = world.create(json!({"scheduling_period": "1h", "cooldown_duration": "10m"})).await;
    let known = world.known(&job).await;
    let held = world.rig.start(known, 0).await;
    world.pass(60);
    let why = world.get(&path(&job, "explain")).await.expect(200);
    let codes: Vec<_> = why["reasons"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert_eq!(codes, ["running", "after_this_run"], "{why}");
    assert_eq!(
        (&why["reasons"][1]["cooldown"], &why["next_possible_start"]),
        (&json!("10m"), &Value::Null)
    );
    let words = why["summary"].as_str().unwrap();
    assert!(words.contains("its cooldown of 10 minutes after this run has ended"), "{words}");
    assert!(words.contains("at the latest"), "{words}");
    let seen = world.get(&path(&job, "condition")).await.expect(200);
    assert_eq!(seen["can_start_by"], Value::Null);
    assert!(seen["should_start_by"].is_string() && seen["deadline"].is_string(), "{seen}");
    let shown =
        world.get(&format!("/api/v1/jobs/{}", job["id"].as_str().unwrap())).await.expect(200);
    assert_eq!(shown["next_run_at"], why["reasons"][1]["until"]);
    world.rig.finish(world.rig.success(held)).await;
    let seen = world.get(&path(&job, "condition")).await.expect(200);
    assert!(seen["can_start_by"].is_string(), "{seen}");
    let why = world.get(&path(&job, "explain")).await.expect(200);
    assert_eq!(why["reasons"][0]["code"], "cooling_down");
    assert_eq!(why["next_possible_start"], seen["can_start_by"]);
}

#[tokio::test]
async fn history_is_shown_in_all_supported_fields() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1})).await;
    let shown = async || {
        let path = format!("/api/v1/jobs/{}", job["id"].as_str().unwrap());
        world.get(&path).await.expect(200)
    };
    let known = world.known(&job).await;
    assert_eq!(job["failure_count"], Value::Null);
    world.pass(60);
    world.rig.run_successfully(known, 60).await;
    let good = shown().await;
    assert_eq!((&good["failure_count"], &good["consecutive_failures"]), (&json!(0), &json!(0)));
    assert!(good["average_good_duration"].is_string(), "{good}");
    for field in ["failure_count", "average_good_duration"] {
        let document = crate::world::noop(json!({field: good[field]}));
        let problem = world.post("/api/v1/jobs", Some(document)).await.problem(422, "invalid-job");
        assert_eq!(problem["field"], field);
        assert!(problem["detail"].to_string().contains("set by the server"), "{problem}");
    }
}

#[tokio::test]
async fn conditions_of_another_tenant_are_not_found() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 30})).await;
    let other = token(Role::Admin, "other");
    for what in ["next", "condition", "explain"] {
        let asked = request(Method::GET, &path(&job, what), Some(&other), None);
        world.send(asked).await.problem(404, "not-found");
        world.get(&format!("/api/v1/jobs/none/{what}")).await.problem(404, "not-found");
        let unknown = format!("{}?x=1", path(&job, what));
        world.get(&unknown).await.problem(422, "invalid-parameter");
    }
}

#[tokio::test]
async fn job_that_runs_once_promises_its_start() {
    let world = World::new().await;
    let job = world.create(json!({})).await;
    let seen = world.get(&path(&job, "condition")).await.expect(200);
    let words = seen["explanation"].as_str().unwrap();
    assert!(words.contains("It must have started by"), "{words}");
    // A job is not late before its deadline, however long its run takes.
    let long = world.create(json!({"average_duration_override": "10m"})).await;
    let seen = world.get(&path(&long, "condition")).await.expect(200);
    assert_eq!(
        (&seen["condition"], &seen["should_start_by"]),
        (&json!("OK"), &long["next_run_at"])
    );
}

#[tokio::test]
async fn next_start_is_unknown_while_an_overlapping_time_may_be_skipped() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 30})).await;
    let known = world.known(&job).await;
    world.pass(1800);
    world.rig.start(known, 1800).await;
    let why = world.get(&path(&job, "explain")).await.expect(200);
    let next = &why["reasons"][1];
    assert_eq!(
        (&next["code"], &next["overlap"], &next["earlier"]),
        (&json!("not_due"), &json!("skip"), &json!("goes_on"))
    );
    assert!(next["message"].as_str().unwrap().starts_with("If this run is over by then"), "{why}");
    assert_eq!(why["next_possible_start"], Value::Null);
}

#[tokio::test]
async fn explain_names_a_pool_without_workers() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 30, "pool": "gpu"})).await;
    let known = world.known(&job).await;
    world.pass(1800);
    world.rig.queue(known, 1800).await;
    let why = world.get(&path(&job, "explain")).await.expect(200);
    let reason = &why["reasons"][0];
    assert_eq!((&reason["code"], &reason["pool"]), (&json!("no_worker_for_pool"), &json!("gpu")));
    let message = reason["message"].as_str().unwrap();
    assert!(
        message.contains("serves its pool \"gpu\"") && message.contains("--pools gpu"),
        "{why}"
    );
    assert_eq!(why["next_possible_start"], Value::Null);
}
