//! Changes jobs with PUT, PATCH and If-Match, and with commands for many jobs.

use axum::http::{Method, header};
use evenkeel_store::Role;
use serde_json::{Value, json};

use super::world::{Answer, World, job_path, noop, request, runs_within, token};

const COMMANDS: &str = "/api/v1/jobs/commands";

async fn change(world: &World, method: Method, job: &Value, sent: Value) -> Answer {
    world.ask_as(Role::Operator, method, &job_path(job, ""), Some(sent)).await
}

async fn put(world: &World, job: &Value, sent: Value) -> Answer {
    change(world, Method::PUT, job, sent).await
}

async fn command(world: &World, document: Value) -> Value {
    world.post(COMMANDS, Some(document)).await.expect(200)
}

#[tokio::test]
async fn putting_back_a_shown_job_writes_nothing() {
    let world = World::new().await;
    for more in [
        json!({"schedule": "30m", "name": "a", "metadata": {"a": 1}, "payload": [1]}),
        json!({"cron_schedule": "H 9 * * *", "cron_max_schedule_duration": "6h", "tz": "Asia/Tokyo"}),
        json!({"cron_expression": "@daily", "exact": false}),
        json!({"scheduling_period": "24h", "source_name": "example.com"}),
        json!({"schedule": "P1M", "blackout_periods": [{"start": "22:00", "end": "06:00"}]}),
        json!({"schedule": {"kind": "once", "at": "2031-01-01T00:00:00Z"}}),
        json!({"schedule": "30m", "retry_policy": "cron_service", "on_failure": {"action": "pause"}}),
        json!({"schedule": "30m", "retry_stages": ["1m", "2h"], "retry_jitter": "additive"}),
        json!({"schedule_enabled": false, "executor_type": "crawl", "url": "https://example.com/"}),
    ] {
        let job = world.create(more.clone()).await;
        let shown =
            world.ask_as(Role::Operator, Method::GET, &job_path(&job, ""), None).await.expect(200);
        for method in [Method::PUT, Method::PATCH] {
            let answer = change(&world, method, &job, shown.clone()).await;
            assert_eq!(answer.expect(200), shown, "{more}");
            assert_eq!(answer.header(header::ETAG), Some("\"g1\""));
        }
    }
}

#[tokio::test]
async fn putting_two_fields_keeps_the_rhythm() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 30, "name": "news"})).await;
    world.pass(600);
    let answer = put(&world, &job, json!({"max_retries": 5, "retry_backoff_seconds": 120})).await;
    let changed = answer.expect(200);
    assert_eq!(changed["max_retries"], 5);
    assert_eq!(changed["retry_backoff_seconds"], 120);
    for field in ["next_run_at", "name", "schedule", "created_at"] {
        assert_eq!(changed[field], job[field], "{field}");
    }
    assert_eq!(changed["generation"], 2);
    assert_eq!(answer.header(header::ETAG), Some("\"g2\""));
    assert_ne!(changed["updated_at"], job["updated_at"]);
    assert_eq!(world.get(&job_path(&job, "")).await.expect(200), changed);
}

#[tokio::test]
async fn new_interval_sets_a_new_next_time() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 30})).await;
    world.pass(600);
    let sent = json!({"interval_minutes": 6, "interval_type": "hours"});
    let changed = put(&world, &job, sent).await.expect(200);
    assert_eq!(changed["schedule"]["every"], "6h");
    assert!(runs_within(&changed, 600, 6 * 3600), "{changed}");
    // A schedule with the same meaning in another notation does not count as a change.
    let same = world.patch(&job, json!({"schedule": {"every": "360m"}})).await.expect(200);
    assert_eq!(same["generation"], changed["generation"]);
}

#[tokio::test]
async fn change_with_if_match_applies_to_that_version_only() {
    let world = World::new().await;
    let job = world.create(json!({"schedule": "30m"})).await;
    let patch = async |tags: &str, priority: u8| {
        let change = Some(json!({"priority": priority}));
        world.ask_if(Method::PATCH, &job_path(&job, ""), tags, change).await
    };
    patch("\"g1\"", 1).await.expect(200);
    let late = patch("\"g1\"", 2).await;
    assert_eq!(late.problem(412, "job-changed")["generation"], 2);
    assert_eq!(late.header(header::ETAG), Some("\"g2\""));
    patch("\"g9\", \"g2\"", 3).await.expect(200);
    patch("*", 4).await.expect(200);
    patch("W/\"g4\"", 5).await.problem(412, "job-changed");
    assert_eq!(world.get(&job_path(&job, "")).await.expect(200)["priority"], 4);
}

#[tokio::test]
async fn invalid_change_is_explained() {
    let world = World::new().await;
    let taken = world.create(json!({"name": "taken"})).await;
    let job = world.create(json!({"schedule": "30m"})).await;
    let wrong = world.patch(&job, json!({"priority": 500, "lnae": "batch"})).await;
    let problem = wrong.problem(422, "invalid-job");
    assert_eq!(problem["errors"].as_array().unwrap().len(), 2);
    let read_only = world.patch(&job, json!({"status": "paused"})).await;
    assert_eq!(read_only.problem(422, "invalid-job")["field"], "status");
    put(&world, &job, json!({"status": "paused"})).await.expect(200);
    let name = world.patch(&job, json!({"name": "taken"})).await.problem(409, "name-taken");
    assert_eq!(name["existing_id"], taken["id"]);
    put(&world, &job, json!([])).await.problem(422, "invalid-job");
    let nobody = json!({"id": "0190163d-8694-739b-aea5-966c26f8ad91"});
    put(&world, &nobody, json!({})).await.problem(404, "not-found");
    let viewer =
        world.ask_as(Role::Viewer, Method::PUT, &job_path(&job, ""), Some(json!({}))).await;
    viewer.problem(403, "forbidden");
    assert_eq!(world.get(&job_path(&job, "")).await.expect(200)["generation"], 1);
}

#[tokio::test]
async fn job_of_another_tenant_cannot_be_changed() {
    let world = World::new().await;
    let job = world.create(json!({"schedule": "30m"})).await;
    let token = token(Role::Admin, "other");
    for method in [Method::PUT, Method::PATCH] {
        let asked =
            request(method, &job_path(&job, ""), Some(&token), Some(json!({"priority": 5})));
        world.send(asked).await.problem(404, "not-found");
    }
    let document = json!({"action": "delete", "ids": [job["id"]]});
    let asked = request(Method::POST, COMMANDS, Some(&token), Some(document));
    assert_eq!(world.send(asked).await.expect(200)["refused"], json!({"not_found": 1}));
    let all = json!({"action": "delete", "filter": {}});
    let asked = request(Method::POST, COMMANDS, Some(&token), Some(all));
    assert_eq!(world.send(asked).await.expect(200)["matched"], 0);
    world.get(&job_path(&job, "")).await.expect(200);
}

#[tokio::test]
async fn command_applies_to_the_jobs_that_a_search_finds() {
    let world = World::new().await;
    for name in ["red one", "red two", "blue one"] {
        world.create(noop(json!({"name": name, "schedule": "30m"}))).await;
    }
    let counted = command(&world, json!({"action": "pause", "filter": {"q": "RED"}})).await;
    assert_eq!((&counted["matched"], &counted["done"]), (&json!(2), &json!(2)));
    let list = world.get("/api/v1/jobs?status=paused&q=one").await.expect(200);
    assert_eq!((&list["total"], &list["jobs"][0]["name"]), (&json!(1), &json!("red one")));
    let wrong = json!({"action": "pause", "filter": {"q": "?"}});
    let problem = world.post(COMMANDS, Some(wrong)).await.problem(422, "invalid-parameter");
    assert_eq!(problem["field"], "filter.q");
}

#[tokio::test]
async fn command_applies_to_many_jobs() {
    let world = World::new().await;
    let jobs: Vec<Value> =
        (0..1203).map(|n| noop(json!({"name": format!("job {n}"), "schedule": "30m"}))).collect();
    let made = world.post("/api/v1/jobs/bulk", Some(json!({"jobs": jobs}))).await.expect(200);
    let first = made["results"][0]["id"].clone();
    let filter = json!({"name_prefix": "job "});
    let counted =
        command(&world, json!({"action": "pause", "filter": filter, "dry_run": true})).await;
    assert_eq!((&counted["matched"], &counted["done"]), (&json!(1203), &json!(1203)));
    assert_eq!(counted["dry_run"], true);
    let shown = world.get(&job_path(&json!({"id": first}), "")).await.expect(200);
    assert_eq!(shown["status"], "scheduled", "nothing was done");
    let paused = command(&world, json!({"action": "pause", "filter": filter})).await;
    assert_eq!((&paused["done"], &paused["next_cursor"]), (&json!(1203), &Value::Null));
    let again = command(&world, json!({"action": "pause", "filter": {}})).await;
    assert_eq!(again["refused"], json!({"not_allowed_while_paused": 1203}));
    assert_eq!(again["refusals"].as_array().unwrap().len(), 100);
    world.pass(60);
    let resumed = command(&world, json!({"action": "resume", "ids": [first, first]})).await;
    assert_eq!((&resumed["matched"], &resumed["done"]), (&json!(1), &json!(1)));
    let shown = world.get(&job_path(&json!({"id": first}), "")).await.expect(200);
    assert!(runs_within(&shown, 60, 1800), "{shown}");
    let next = shown["next_run_at"].clone();
    let weighed =
        command(&world, json!({"action": "set_priority", "priority": 7, "ids": [first]})).await;
    assert_eq!(weighed["done"], 1);
    let shown = world.get(&job_path(&json!({"id": first}), "")).await.expect(200);
    assert_eq!((&shown["priority"], &shown["next_run_at"]), (&json!(7), &next));
    let retried = command(&world, json!({"action": "retry", "ids": [first]})).await;
    assert_eq!(retried["refused"], json!({"not_allowed_while_scheduled": 1}));
    assert_eq!(command(&world, json!({"action": "cancel", "ids": [first]})).await["done"], 1);
    let gone = command(&world, json!({"action": "delete", "filter": {}})).await;
    assert_eq!(gone["done"], 1203);
    world.get(&job_path(&json!({"id": first}), "")).await.problem(404, "not-found");
}

#[tokio::test]
async fn invalid_command_is_explained() {
    let world = World::new().await;
    for (document, field) in [
        (json!({"ids": []}), "action"),
        (json!({"action": "dance", "ids": []}), "action"),
        (json!({"action": "pause"}), "ids"),
        (json!({"action": "pause", "ids": ["x"]}), "ids[0]"),
        (json!({"action": "pause", "ids": [], "filter": {}}), "filter"),
        (json!({"action": "pause", "filter": {"state": "failed"}}), "filter.state"),
        (json!({"action": "pause", "filter": {"status": "asleep"}}), "filter.status"),
        (json!({"action": "pause", "filter": {"metadata": {"a": [1]}}}), "filter.metadata"),
        (json!({"action": "pause", "filter": {}, "cursor": "x"}), "cursor"),
        (json!({"action": "pause", "ids": [], "priority": 5}), "priority"),
        (json!({"action": "set_priority", "ids": []}), "priority"),
        (json!({"action": "set_priority", "ids": [], "priority": 101}), "priority"),
        (json!({"action": "pause", "ids": [], "dryrun": true}), "dryrun"),
        (json!([]), ""),
    ] {
        let problem = world.post(COMMANDS, Some(document.clone())).await;
        let problem = problem.problem(422, "invalid-parameter");
        assert_eq!(problem["field"], field, "{document}: {problem}");
    }
}
