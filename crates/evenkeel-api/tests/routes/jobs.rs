//! Creating, reading, deleting and triggering jobs.

use axum::http::{Method, header};
use evenkeel_api::TokenRequest;
use evenkeel_core::Span;
use evenkeel_store::{Role, Signal};
use evenkeel_store_testkit::fixtures::{START, at};
use serde_json::{Value, json};

use crate::world::{Counting, World, noop, request, run_ids, runs_within, tokens};

#[tokio::test]
async fn created_job_is_shown_with_all_its_fields() {
    let world = World::new().await;
    let document = json!({
        "name": "news-site", "configuration": "fast", "description": "All the news",
        "source_id": "news", "source_name": "example.com", "url": "https://example.com/",
        "schedule": {"kind": "interval", "every": "30m"}, "timezone": "America/Toronto",
        "executor_type": "http_callback", "executor_config": {"url": "https://example.com/hook"},
        "payload": {"a": [1, null]}, "max_retries": 5, "retry_backoff_seconds": 30,
        "timeout_sec": 60, "max_allowed_duration": "1h", "priority": 10, "lane": "batch",
        "pool": "eu", "overlap": "queue", "metadata": {"category": "news"},
    });
    let answer = world.post("/api/v1/jobs", Some(document)).await;
    let mut job = answer.expect(201);
    let place = format!("/api/v1/jobs/{}", job["id"].as_str().unwrap());
    assert_eq!(answer.header(header::LOCATION), Some(place.as_str()));
    let shown = world.ask_as(Role::Operator, Method::GET, &place, None).await;
    assert_eq!(shown.expect(200), job);
    job.as_object_mut().unwrap().remove("id");
    assert!(runs_within(&job, 0, 1800), "{job}");
    assert_eq!(
        job,
        json!({
            "name": "news-site", "configuration": "fast", "description": "All the news",
            "source_id": "news", "source_name": "example.com", "url": "https://example.com/",
            "status": "scheduled", "schedule": {"kind": "interval", "every": "30m"},
            "interval_minutes": 30, "interval_type": "minutes", "schedule_enabled": true,
            "timezone": "America/Toronto", "executor_type": "http",
            "executor_config": {"url": "https://example.com/hook"}, "payload": {"a": [1, null]},
            "retry_policy": null, "max_retries": 5, "retry_backoff_seconds": 30,
            "retry_backoff": "exponential", "retry_backoff_cap_seconds": 3600,
            "retry_stages": null, "retry_jitter": "symmetric", "retry_jitter_percent": 20,
            "on_failure": {"action": "none"}, "pause_note": null, "timeout_sec": 60, "max_allowed_duration": "1h",
            "priority": 10, "lane": "batch", "pool": "eu", "misfire": "last",
            "misfire_after": "1m", "overlap": "queue", "on_lost_worker": "retry",
            "max_crashes": 3, "on_exhausted": "continue", "next_run_at": job["next_run_at"],
            "next_scheduled_at": job["next_run_at"], "enabled": true,
            "last_run_at": null, "last_end_at": null, "last_good_start_at": null,
            "last_good_end_at": null, "last_scheduled_at": null, "consecutive_failures": 0,
            "average_duration_ms": null, "execution_count": 0, "is_paused": false,
            "generation": job["generation"], "created_at": at(0), "updated_at": at(0),
            "effective_priority": 10, "concurrency_key": null, "concurrency_limit": null,
            "unique": false, "dedup_key": null, "dedup_scope": null, "dedup_window_seconds": null,
            "metadata": {"category": "news"}, "cron_expression": null, "cron_schedule": null,
            "schedule_time": null, "cron_max_schedule_duration": null, "scheduling_period": null,
            "cooldown_duration": null, "exact": false, "tz": "America/Toronto",
            "dst_gap": "shift", "dst_overlap": "first", "start_at": null, "end_at": null,
            "max_runs": null, "run_count": 0, "blackout_periods": [], "avoid_blackout": false,
            "prefer_window": null, "cost": null,
            "dont_run_on_nodes": [], "max_expected_duration": null,
            "average_duration_override": null, "duration_deviation_ms": null, "condition": "OK",
            "condition_reason": "never_ran", "failure_count": null,
            "average_good_duration": null, "started_at": null, "completed_at": null,
            "error_message": null, "current_retry_count": 0, "lock_token": null,
            "lock_acquired_at": null, "paused_at": null, "cancelled_at": null, "number": 1,
            "target": null,
        })
    );
}

#[tokio::test]
async fn short_schedules_are_shown_in_the_canonical_form() {
    let world = World::new().await;
    let hourly = world.create(json!({"interval_minutes": 6, "interval_type": "hours"})).await;
    assert_eq!(hourly["schedule"], json!({"kind": "interval", "every": "6h"}));
    assert_eq!(
        (&hourly["interval_minutes"], &hourly["interval_type"]),
        (&json!(6), &json!("hours"))
    );
    assert!(runs_within(&hourly, 0, 6 * 3600), "{hourly}");

    let now = world.create(json!({"schedule_enabled": false})).await;
    assert_eq!(now["schedule"], json!({"kind": "once"}));
    assert_eq!((&now["schedule_enabled"], &now["next_run_at"]), (&json!(false), &json!(at(0))));
    assert_eq!((&now["interval_minutes"], &now["interval_type"]), (&Value::Null, &Value::Null));

    let anchored = world.create(json!({"schedule": "R/2026-12-01T00:00:00Z/PT45S"})).await;
    assert_eq!(
        anchored["schedule"],
        json!({"kind": "interval", "every": "45s", "anchor": "2026-12-01T00:00:00.000000Z"})
    );
    assert_eq!(anchored["interval_minutes"], Value::Null);
}

/// A job as returned by `GET` can be sent to `POST`, so that scripts can copy jobs.
#[tokio::test]
async fn shown_job_creates_the_same_job_again() {
    let world = World::new().await;
    for more in [
        json!({}),
        json!({"interval_minutes": 90, "misfire": "all", "retry_jitter_percent": 0}),
        json!({"schedule": "R/2026-12-01T00:00:00Z/PT1H", "payload": [], "metadata": {"a": 1}}),
        json!({"schedule": {"kind": "once", "at": "2040-01-01T00:00:00Z"}, "timezone": "UTC"}),
        json!({"retry_backoff": "fixed", "retry_backoff_seconds": 7200, "on_exhausted": "stop"}),
        json!({"scheduling_period": "24h", "cooldown_duration": "1h", "dont_run_on_nodes": ["a"]}),
        json!({"cron_schedule": "0 0 * * *", "cron_max_schedule_duration": "6h", "tz": "Asia/Tokyo",
               "dst_gap": "skip", "blackout_periods": [{"start": "22:00", "end": "06:30"}]}),
        json!({"schedule": "R5/2040-01-01T00:00:00Z/P1M", "average_duration_override": "5m"}),
        json!({"schedule": "R5/PT30M", "start_at": "2040-01-01T00:00:00Z"}),
        json!({"schedule": {"kind": "interval", "every": "1h", "tolerance": "5m"}}),
        json!({"schedule": "24h", "prefer_window": {"start": "22:00", "end": "06:00:30"},
               "cost": "10m", "exact": true}),
    ] {
        let first = world.create(more.clone()).await;
        let mut document = first.clone();
        let served: Vec<String> =
            {
                let refused = world.post("/api/v1/jobs", Some(document.clone())).await;
                let problem = refused.problem(422, "invalid-job");
                let errors = problem["errors"].as_array().unwrap().clone();
                assert!(errors.iter().all(|error| {
                    error["message"].as_str().unwrap().contains("set by the server")
                }));
                errors.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect()
            };
        for field in &served {
            document.as_object_mut().unwrap().remove(field);
        }
        let second = world.post("/api/v1/jobs", Some(document)).await.expect(201);
        // The scheduler chooses the start time of an interval for each job separately.
        let is_chosen = first["schedule"].get("anchor").is_none() && first["start_at"].is_null();
        let is_chosen = is_chosen && first["schedule"]["kind"] == "interval";
        for (field, value) in first.as_object().unwrap() {
            let is_time = matches!(field.as_str(), "next_run_at" | "next_scheduled_at");
            let is_own = matches!(field.as_str(), "id" | "number") || is_chosen && is_time;
            assert!(is_own || second[field] == *value, "{field} of {more}");
        }
    }
}

#[tokio::test]
async fn invalid_job_is_refused_with_all_its_errors() {
    let world = World::new().await;
    let document = json!({"name": "", "executor_type": "http", "priority": 101, "colour": "red"});
    let problem = world.post("/api/v1/jobs", Some(document)).await.problem(422, "invalid-job");
    assert_eq!(problem["field"], "name");
    let fields: Vec<_> =
        problem["errors"].as_array().unwrap().iter().map(|error| &error["field"]).collect();
    assert_eq!(fields, ["name", "executor_config.url", "priority", "colour"]);
    assert!(problem["detail"].as_str().unwrap().ends_with("(and 3 more, see errors)"));
    let none = world.post("/api/v1/jobs", Some(json!([]))).await;
    none.problem(422, "invalid-job");
    assert_eq!(world.rig.census().await.jobs, 0);
}

#[tokio::test]
async fn job_with_a_first_run_beyond_the_supported_time_is_refused() {
    let world = World::new().await;
    let document = noop(json!({"schedule": "P100Y"}));
    let problem = world.post("/api/v1/jobs", Some(document)).await.problem(422, "invalid-job");
    assert_eq!(problem["field"], "schedule");
}

#[tokio::test]
async fn job_name_is_unique_per_configuration() {
    let world = World::new().await;
    let first = world.create(json!({"name": "news"})).await;
    let again = world.post("/api/v1/jobs", Some(noop(json!({"name": "news"})))).await;
    let problem = again.problem(409, "name-taken");
    assert_eq!((&problem["existing_id"], &problem["field"]), (&first["id"], &json!("name")));
    world.create(json!({"name": "news", "configuration": "slow"})).await;
    world.create(json!({"source_name": "news"})).await;
    let nameless = world.create(json!({"source_name": "news"})).await;
    assert_eq!(nameless["name"], "news");
}

#[tokio::test]
async fn creating_and_triggering_wake_the_scheduler_and_deleting_wakes_the_workers() {
    let world = World::new().await;
    let mut signals = world.rig.store.signals().subscribe();
    let job = world.create(json!({"interval_minutes": 5})).await;
    assert_eq!(signals.try_recv(), Ok(Signal::Jobs));
    let path = format!("/api/v1/jobs/{}", job["id"].as_str().unwrap());
    world.post(&format!("{path}/trigger"), None).await.expect(202);
    assert_eq!(signals.try_recv(), Ok(Signal::Jobs));
    world.delete(&path).await.expect(200);
    assert_eq!(signals.try_recv(), Ok(Signal::Cancel));
}

#[tokio::test]
async fn deleted_job_is_gone_and_its_running_executions_are_listed() {
    let world = World::new().await;
    let job = world.create(json!({"name": "news", "interval_minutes": 1})).await;
    let held = world.rig.start(world.known(&job).await, 60).await;
    let path = format!("/api/v1/jobs/{}", job["id"].as_str().unwrap());
    let deleted = world.delete(&path).await.expect(200);
    let running = run_ids().attempt_id(held.key).to_string();
    assert_eq!(deleted, json!({"id": job["id"], "deleted": true, "still_running": [running]}));
    world.get(&path).await.problem(404, "not-found");
    world.delete(&path).await.problem(404, "not-found");
    world.post(&format!("{path}/trigger"), None).await.problem(404, "not-found");
    world.get(&format!("{path}/executions")).await.problem(404, "not-found");
    world.create(json!({"name": "news"})).await;
}

#[tokio::test]
async fn trigger_returns_the_run_id_before_the_start() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 5})).await;
    let path = format!("/api/v1/jobs/{}/trigger", job["id"].as_str().unwrap());
    let accepted = world.post(&path, Some(json!({}))).await.expect(202);
    assert_eq!(accepted["job_id"], job["id"]);
    assert_eq!(accepted["run_id"], accepted["execution_id"]);
    assert_eq!(accepted["scheduled_at"], json!(at(0)));
    let busy = world.post(&path, None).await.problem(409, "job-busy");
    assert!(busy["detail"].as_str().unwrap().contains("overlap"));
    let unchanged = world.get(&format!("/api/v1/jobs/{}", job["id"].as_str().unwrap())).await;
    assert_eq!(unchanged.expect(200)["next_run_at"], job["next_run_at"]);
}

#[tokio::test]
async fn body_that_would_be_ignored_is_refused() {
    let world = World::new().await;
    let job = world.create(json!({})).await;
    let path = format!("/api/v1/jobs/{}/trigger", job["id"].as_str().unwrap());
    let answer = world.post(&path, Some(json!({"payload": 1}))).await;
    answer.problem(422, "invalid-parameter");
}

#[tokio::test]
async fn priority_of_a_trigger_is_shown_while_it_waits() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 5, "priority": 20})).await;
    let path = format!("/api/v1/jobs/{}/trigger", job["id"].as_str().unwrap());
    for wrong in [json!({"priority": 101}), json!({"priority": "high"}), json!([])] {
        world.post(&path, Some(wrong)).await.problem(422, "invalid-parameter");
    }
    let accepted = world.post(&path, Some(json!({"priority": 90}))).await.expect(202);
    let run = format!("/api/v1/executions/{}", accepted["run_id"].as_str().unwrap());
    let waits = world.get(&run).await.expect(200);
    assert_eq!((&waits["priority"], &waits["effective_priority"]), (&json!(90), &json!(90)));
}

#[tokio::test]
async fn job_shows_its_effective_priority() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 5, "priority": 20})).await;
    assert_eq!(job["effective_priority"], 20);
    let known = world.known(&job).await;
    let path = format!("/api/v1/jobs/{}", known.id);
    // The token is valid for a day, because the test advances the clock by more than an hour.
    let (role, tenant, subject) = (Role::Operator, "main".into(), "tester".into());
    let asked = TokenRequest { role, tenant, ttl: Span::from_secs(86_400), now: START, subject };
    let token = tokens().issue(&asked, &Counting::new()).unwrap();
    let ask = async |method, path: &str, body| {
        world.send(request(method, path, Some(&token), body)).await
    };
    let shown =
        async || ask(Method::GET, &path, None).await.expect(200)["effective_priority"].clone();
    let listed = async || {
        let list = ask(Method::GET, "/api/v1/jobs", None).await.expect(200);
        list["jobs"][0]["effective_priority"].clone()
    };
    assert_eq!((shown().await, listed().await), (json!(20), json!(20)));
    // The run is due but not yet queued; its waiting time already increases its priority.
    let next = world.rig.job(known).await.next_at.unwrap();
    world.pass((next.since(at(0)).as_micros() / 1_000_000) as i64 + 3_900);
    let risen = shown().await;
    assert!(risen.as_u64() > Some(20), "{risen}");
    assert_eq!(listed().await, risen);
    // A triggered run has its own priority and its own waiting time.
    let trigger = format!("{path}/trigger");
    ask(Method::POST, &trigger, Some(json!({"priority": 60}))).await.expect(202);
    world.pass(3_000);
    assert!(shown().await.as_u64() >= Some(60));
    // The job as returned by `GET` can be sent to `PUT`.
    let seen = ask(Method::GET, &path, None).await.expect(200);
    let put = ask(Method::PUT, &path, Some(seen)).await.expect(200);
    assert_eq!(put["priority"], 20);
    assert_eq!(put["effective_priority"], shown().await);
}

#[tokio::test]
async fn malformed_ids_are_not_found() {
    let world = World::new().await;
    for path in [
        "/api/v1/jobs/7",
        "/api/v1/jobs/0190163d-8694-739b-aea5-966c26f8ad91",
        "/api/v1/jobs/%00",
        "/api/v1/jobs/%FF",
        "/api/v1/executions/7",
        "/api/v1/executions/0190163d-8694-739b-aea5-966c26f8ad91",
        "/api/v1/executions/ffffffff-ffff-8fff-bfff-ffffffffffff",
        "/api/v1/nothing",
    ] {
        world.get(path).await.problem(404, "not-found");
    }
}

#[tokio::test]
async fn credentials_of_a_job_are_hidden_from_viewers() {
    let world = World::new().await;
    let config = json!({"url": "https://ann:pw@example.com/", "headers": {"Authorization": "Bearer s3cret"}});
    let document = json!({"name": "call", "executor_type": "http", "executor_config": config});
    let created = world.post("/api/v1/jobs", Some(document)).await.expect(201);
    assert_eq!(created["executor_config"], config);
    let path = format!("/api/v1/jobs/{}", created["id"].as_str().unwrap());
    let headers = json!({"Authorization": {"redacted": true}});
    let hidden = json!({"url": "https://***@example.com/", "headers": headers});
    assert_eq!(world.get(&path).await.expect(200)["executor_config"], hidden);
    assert_eq!(world.get("/api/v1/jobs").await.expect(200)["jobs"][0]["executor_config"], hidden);
    let operator = world.ask_as(Role::Operator, Method::GET, &path, None).await;
    assert_eq!(operator.expect(200)["executor_config"], config);
}
