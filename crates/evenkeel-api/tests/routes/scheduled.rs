//! Scheduled jobs of the admin API.

use axum::http::{Method, header};
use evenkeel_store::{Role, StoreError};
use serde_json::{Value, json};

use crate::world::{Answer, World};

const SCHEDULED: &str = "/api/admin/scheduled-jobs";

fn daily() -> Value {
    json!({"name": "daily-askreddit", "description": "Daily crawl of AskReddit", "subreddit_id": 1,
        "cron_expression": "@daily", "enabled": true, "priority": 10})
}

async fn make(world: &World, document: Value) -> Answer {
    world.post(SCHEDULED, Some(document)).await
}

async fn put(world: &World, id: i64, body: Value) -> Answer {
    world.ask_as(Role::Operator, Method::PUT, &format!("{SCHEDULED}/{id}"), Some(body)).await
}

async fn toggle(world: &World, id: i64, enabled: bool) -> Answer {
    world.post(&format!("{SCHEDULED}/{id}/toggle"), Some(json!({"enabled": enabled}))).await
}

#[tokio::test]
async fn scheduled_job_is_created_shown_changed_toggled_and_deleted() {
    let world = World::new().await;
    let answer = make(&world, daily()).await;
    let made = answer.expect(201);
    assert_eq!(answer.header(header::LOCATION), Some("/api/admin/scheduled-jobs/1"));
    for (name, value) in daily().as_object().unwrap() {
        assert_eq!(&made[name], value, "{name}");
    }
    assert_eq!((&made["id"], &made["created_by"]), (&json!(1), &json!("tester")));
    assert!(made["next_run_at"].is_string());
    assert_eq!(world.get(&format!("{SCHEDULED}/1")).await.expect(200), made);
    let by_id = format!("{SCHEDULED}/{}", made["uuid"].as_str().unwrap());
    assert_eq!(world.get(&by_id).await.expect(200), made);
    // The server has created the target of the job, without a URL.
    let target = world.get("/api/v1/targets/1").await.expect(200);
    assert_eq!((&target["jobs"], &target["url"]), (&json!(1), &Value::Null));
    let changed = json!({"name": "hourly-worldnews", "description": "Hourly crawl of WorldNews",
        "cron_expression": "@hourly", "enabled": true, "priority": 20});
    let hourly = put(&world, 1, changed.clone()).await.expect(200);
    for (name, value) in changed.as_object().unwrap() {
        assert_eq!(&hourly[name], value, "{name}");
    }
    assert_eq!((&hourly["subreddit_id"], &hourly["id"]), (&json!(1), &json!(1)));
    assert_ne!(hourly["next_run_at"], made["next_run_at"]);
    let off = toggle(&world, 1, false).await.expect(200);
    assert_eq!((&off["enabled"], &off["next_run_at"]), (&json!(false), &Value::Null));
    assert_eq!(toggle(&world, 1, false).await.expect(200), off);
    let v1 = world.get(&format!("/api/v1/jobs/{}", made["uuid"].as_str().unwrap())).await;
    assert_eq!(v1.expect(200)["status"], "paused");
    assert_eq!(toggle(&world, 1, true).await.expect(200)["enabled"], true);
    let gone = world.delete(&format!("{SCHEDULED}/1")).await.expect(200);
    let uuid = &made["uuid"];
    assert_eq!(gone, json!({"id": 1, "uuid": uuid, "deleted": true, "still_running": []}));
    world.get(&format!("{SCHEDULED}/1")).await.problem(404, "not-found");
    world.delete(&format!("{SCHEDULED}/1")).await.problem(404, "not-found");
    // Numbers of deleted jobs are not reused.
    assert_eq!(make(&world, daily()).await.expect(201)["id"], 2);
}

#[tokio::test]
async fn shown_scheduled_job_can_be_sent_back() {
    let world = World::new().await;
    let mut document = daily();
    document["cron_expression"] = json!("@every 90s");
    let made = make(&world, document).await.expect(201);
    assert_eq!(made["cron_expression"], "@every 1m30s");
    assert_eq!(put(&world, 1, made.clone()).await.expect(200), made);
    let mut edited = made.clone();
    edited["priority"] = json!(77);
    let after = put(&world, 1, edited).await.expect(200);
    assert_eq!((&after["priority"], &after["next_run_at"]), (&json!(77), &made["next_run_at"]));
    // `PUT` also creates a target that does not exist.
    let other = put(&world, 1, json!({"subreddit_id": 5})).await.expect(200);
    assert_eq!(other["subreddit_id"], 5);
    world.get("/api/v1/targets/5").await.expect(200);
}

#[tokio::test]
async fn job_created_disabled_never_fires() {
    let world = World::new().await;
    let mut document = daily();
    document["enabled"] = json!(false);
    document["cron_expression"] = json!("@every 1m");
    let made = make(&world, document.clone()).await.expect(201);
    assert_eq!((&made["enabled"], &made["next_run_at"]), (&json!(false), &Value::Null));
    make(&world, document).await.problem(409, "name-taken");
    world.pass(3000);
    let stats = world.get("/api/admin/jobs/stats").await.expect(200);
    assert_eq!(stats["queued"], 0);
    let on = put(&world, 1, json!({"enabled": true})).await.expect(200);
    assert!(on["next_run_at"].is_string(), "{on}");
}

#[tokio::test]
async fn only_cron_and_interval_jobs_are_listed() {
    let world = World::new().await;
    world.create(json!({"name": "once", "schedule_enabled": false})).await;
    for n in 0..3 {
        let mut document = daily();
        document["name"] = json!(format!("job {n}"));
        make(&world, document).await.expect(201);
    }
    world.create(json!({"name": "interval", "interval_minutes": 30})).await;
    let list = world.get(&format!("{SCHEDULED}?limit=100&offset=0")).await.expect(200);
    let ids: Vec<&Value> =
        list["scheduled_jobs"].as_array().unwrap().iter().map(|job| &job["id"]).collect();
    assert_eq!(ids, [2, 3, 4, 5]);
    assert_eq!((&list["total"], &list["limit"]), (&json!(4), &json!(100)));
    assert_eq!(list["scheduled_jobs"][3]["cron_expression"], "@every 30m");
    let page = world.get(&format!("{SCHEDULED}?limit=2&offset=1")).await.expect(200);
    assert_eq!(page["scheduled_jobs"][0]["id"], 3);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("{SCHEDULED}?cursor={cursor}")).await.expect(200);
    assert_eq!((&rest["scheduled_jobs"][0]["id"], &rest["next_cursor"]), (&json!(5), &Value::Null));
    world.get(&format!("{SCHEDULED}/1")).await.problem(404, "not-found");
    toggle(&world, 1, false).await.problem(404, "not-found");
}

#[tokio::test]
async fn invalid_scheduled_job_is_refused_by_field() {
    let world = World::new().await;
    for (field, value) in [
        ("name", Value::Null),
        ("cron_expression", Value::Null),
        ("cron_expression", json!("every day")),
        ("subreddit_id", json!(0)),
        ("subreddit_id", json!("one")),
        ("enabled", json!("yes")),
        ("priority", json!(101)),
        ("colour", json!("red")),
    ] {
        let mut document = daily();
        document[field] = value.clone();
        let problem = make(&world, document).await.problem(422, "invalid-job");
        assert_eq!(problem["field"], field, "{value}");
    }
    let mut both = daily();
    both["target"] = json!(2);
    assert_eq!(make(&world, both).await.problem(422, "invalid-job")["field"], "target");
    // The refused requests created no targets.
    world.get("/api/v1/targets/1").await.problem(404, "not-found");
    make(&world, daily()).await.expect(201);
    put(&world, 1, json!({"cron_expression": "nonsense"})).await.problem(422, "invalid-job");
    put(&world, 1, json!([])).await.problem(422, "invalid-job");
    let path = format!("{SCHEDULED}/1/toggle");
    world.post(&path, Some(json!({}))).await.problem(422, "invalid-parameter");
}

#[tokio::test]
async fn duplicate_scheduled_job_returns_the_existing_one() {
    let world = World::new().await;
    let mut document = daily();
    document["unique"] = json!(true);
    let answer = make(&world, document.clone()).await;
    let made = answer.expect(201);
    assert_eq!(made["deduplicated"], false);
    document["name"] = json!("another name");
    for enabled in [true, false] {
        document["enabled"] = json!(enabled);
        let answer = make(&world, document.clone()).await;
        let there = answer.expect(200);
        assert_eq!(answer.header(header::LOCATION), Some("/api/admin/scheduled-jobs/1"));
        assert_eq!((&there["id"], &there["deduplicated"]), (&json!(1), &json!(true)));
        assert_eq!(there["enabled"], true, "it is left as it is");
    }
    assert_eq!(world.get(SCHEDULED).await.expect(200)["total"], 1);
    // `PUT` accepts the job as the server returned it.
    put(&world, 1, made).await.expect(200);
    // Jobs without a deduplication key do not have the field `deduplicated`.
    let mut plain = daily();
    plain["name"] = json!("plain");
    assert_eq!(make(&world, plain).await.expect(201)["deduplicated"], Value::Null);
}

#[tokio::test]
async fn job_created_disabled_may_have_a_key() {
    let world = World::new().await;
    let mut document = daily();
    document["dedup_key"] = json!("askreddit");
    document["enabled"] = json!(false);
    let made = make(&world, document.clone()).await.expect(201);
    assert_eq!((&made["enabled"], &made["deduplicated"]), (&json!(false), &json!(false)));
    document["name"] = json!("another name");
    let there = make(&world, document).await.expect(200);
    assert_eq!((&there["id"], &there["enabled"]), (&json!(1), &json!(false)));
}

#[tokio::test]
async fn other_job_with_the_same_name_prevents_a_scheduled_job() {
    let world = World::new().await;
    let once = json!({"name": "once", "schedule": {"kind": "once", "at": "2099-01-01T00:00:00Z"},
        "dedup_key": "askreddit"});
    let holder = world.create(once).await;
    let mut document = daily();
    document["dedup_key"] = json!("askreddit");
    // Deduplication keys are compared only among jobs with the same executor.
    document["executor_type"] = holder["executor_type"].clone();
    for enabled in [true, false] {
        document["enabled"] = json!(enabled);
        let problem = make(&world, document.clone()).await.problem(409, "duplicate");
        assert_eq!(problem["existing_id"], holder["id"]);
    }
}

#[tokio::test]
async fn refused_change_changes_nothing() {
    let world = World::new().await;
    make(&world, daily()).await.expect(201);
    let mut other = daily();
    other["name"] = json!("other");
    make(&world, other).await.expect(201);
    let off = toggle(&world, 1, false).await.expect(200);
    let wrong = json!({"enabled": true, "priority": 101, "subreddit_id": 77});
    put(&world, 1, wrong).await.problem(422, "invalid-job");
    world.get("/api/v1/targets/77").await.problem(404, "not-found");
    let taken = json!({"enabled": true, "name": "other"});
    put(&world, 1, taken).await.problem(409, "name-taken");
    let after = world.get(&format!("{SCHEDULED}/1")).await.expect(200);
    for name in ["name", "enabled", "priority", "subreddit_id", "next_run_at"] {
        assert_eq!(after[name], off[name], "{name}");
    }
    // The job is cancelled through `/api/v1`.
    let uuid = off["uuid"].as_str().unwrap();
    world.post(&format!("/api/v1/jobs/{uuid}/cancel"), None).await.expect(200);
    for change in [json!({"enabled": true, "subreddit_id": 78}), json!({"subreddit_id": 78})] {
        put(&world, 1, change).await.problem(409, "job-state");
    }
    world.get("/api/v1/targets/78").await.problem(404, "not-found");
}

#[tokio::test]
async fn job_created_disabled_is_never_shown_active() {
    let world = World::failing(|_, verb| {
        (verb == "apply_commands").then(|| StoreError::Unavailable("nothing can be ordered".into()))
    })
    .await;
    let mut document = daily();
    document["enabled"] = json!(false);
    let made = make(&world, document).await.expect(201);
    assert_eq!((&made["enabled"], &made["next_run_at"]), (&json!(false), &Value::Null));
}

/// Returns the status of the first job's latest run.
async fn status(world: &World) -> Value {
    let list = world.get("/api/admin/jobs").await.expect(200);
    assert_eq!(list["jobs"][0]["id"], 1);
    list["jobs"][0]["status"].clone()
}

#[tokio::test]
async fn refused_change_keeps_queued_runs_of_a_paused_job() {
    let world = World::new().await;
    make(&world, daily()).await.expect(201);
    let mut other = daily();
    other["name"] = json!("other");
    make(&world, other).await.expect(201);
    toggle(&world, 1, false).await.expect(200);
    let queued = Some(json!({"status": "queued"}));
    world.ask_as(Role::Operator, Method::PUT, "/api/admin/jobs/1/status", queued).await.expect(200);
    put(&world, 1, json!({"enabled": true, "name": "other"})).await.problem(409, "name-taken");
    assert_eq!(status(&world).await, "queued");
    let after = world.get(&format!("{SCHEDULED}/1")).await.expect(200);
    assert_eq!((&after["enabled"], &after["name"]), (&json!(false), &json!("daily-askreddit")));
    // An accepted update that resumes the job also keeps its queued run.
    put(&world, 1, json!({"enabled": true, "priority": 11})).await.expect(200);
    assert_eq!(status(&world).await, "queued");
}

/// Creates a paused job whose deduplication key another job has taken.
async fn job_without_its_key(world: &World) -> Value {
    let mut document = daily();
    document["dedup_key"] = json!("askreddit");
    document["dedup_scope"] = json!("window");
    document["dedup_window_seconds"] = json!(60);
    make(world, document.clone()).await.expect(201);
    let off = toggle(world, 1, false).await.expect(200);
    world.pass(61);
    document["name"] = json!("other");
    assert_eq!(make(world, document).await.expect(201)["id"], 2);
    off
}

#[tokio::test]
async fn refused_resume_discards_the_whole_change() {
    let world = World::new().await;
    let off = job_without_its_key(&world).await;
    let change = json!({"enabled": true, "priority": 77, "cron_expression": "@hourly"});
    put(&world, 1, change).await.problem(409, "duplicate");
    let after = world.get(&format!("{SCHEDULED}/1")).await.expect(200);
    for name in ["enabled", "priority", "cron_expression", "next_run_at"] {
        assert_eq!(after[name], off[name], "{name}");
    }
}

#[tokio::test]
async fn job_is_resumed_with_a_new_key() {
    let world = World::new().await;
    job_without_its_key(&world).await;
    let on = put(&world, 1, json!({"enabled": true, "dedup_key": "its own"})).await.expect(200);
    assert_eq!(on["enabled"], true);
    let job =
        world.get(&format!("/api/v1/jobs/{}", on["uuid"].as_str().unwrap())).await.expect(200);
    assert_eq!(job["dedup_key"], "its own");
}
