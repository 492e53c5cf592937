//! Tests of all kinds of schedules, and of previews.

use axum::http::Method;
use evenkeel_store::Role;
use evenkeel_store_testkit::fixtures::{at, unnamed_job};
use serde_json::{Value, json};

use crate::world::{World, noop, request, token};

async fn preview(world: &World, document: Value) -> Value {
    let path = "/api/v1/schedules/preview";
    world.ask_as(Role::Viewer, Method::POST, path, Some(document)).await.expect(200)
}

#[tokio::test]
async fn every_form_of_a_schedule_is_shown_in_its_canonical_form() {
    let world = World::new().await;
    for (document, shown) in [
        (json!({"schedule": "30m"}), json!({"kind": "interval", "every": "30m"})),
        (
            json!({"schedule": {"kind": "interval", "every": "1h", "tolerance": "5m"}}),
            json!({"kind": "interval", "every": "1h", "tolerance": "5m"}),
        ),
        (json!({"schedule": "0 9 * * 1-5"}), json!({"kind": "cron", "expression": "0 9 * * 1-5"})),
        (
            json!({"cron_schedule": "@daily", "cron_max_schedule_duration": "6h"}),
            json!({"kind": "cron", "expression": "@daily", "max_duration": "6h"}),
        ),
        (
            json!({"scheduling_period": "24h", "cooldown_duration": "1h"}),
            json!({"kind": "periodic", "period": "1d", "cooldown": "1h"}),
        ),
        (
            json!({"schedule": {"kind": "once", "at": "2100-01-01T00:00:00Z"}}),
            json!({"kind": "once", "at": "2100-01-01T00:00:00.000000Z"}),
        ),
    ] {
        let job = world.create(document.clone()).await;
        assert_eq!(job["schedule"], shown, "{document}");
        // A new job accepts the schedule as the server returned it.
        let again = world.create(json!({"schedule": job["schedule"]})).await;
        assert_eq!(again["schedule"], shown);
    }
    let monthly = world.create(json!({"schedule": "P1M"})).await;
    assert_eq!(monthly["schedule"]["every"], "P1M");
    assert_eq!(monthly["schedule"]["anchor"], monthly["created_at"]);
}

#[tokio::test]
async fn schedule_is_shown_in_all_supported_fields() {
    let world = World::new().await;
    let cron = world.create(json!({
        "cron_schedule": "0 0 * * *", "cron_max_schedule_duration": "6h", "tz": "America/Toronto",
        "dst_gap": "skip", "dst_overlap": "both", "end_at": "2100-01-01T00:00:00Z", "max_runs": 9,
        "blackout_periods": [{"start": "22:00", "end": "23:30"}], "avoid_blackout": true,
        "dont_run_on_nodes": ["crawler-3"], "max_expected_duration": "10m",
        "average_duration_override": "7m", "overlap": "replace",
    })).await;
    for (field, value) in [
        ("cron_schedule", json!("0 0 * * *")),
        ("cron_expression", json!("0 0 * * *")),
        ("schedule_time", json!("0 0 * * *")),
        ("cron_max_schedule_duration", json!("6h")),
        ("timezone", json!("America/Toronto")),
        ("tz", json!("America/Toronto")),
        ("dst_gap", json!("skip")),
        ("dst_overlap", json!("both")),
        ("exact", json!(true)),
        ("start_at", json!(null)),
        ("end_at", json!("2100-01-01T00:00:00.000000Z")),
        ("max_runs", json!(9)),
        ("run_count", json!(0)),
        ("blackout_periods", json!([{"start": "22:00:00", "end": "23:30:00"}])),
        ("avoid_blackout", json!(true)),
        ("dont_run_on_nodes", json!(["crawler-3"])),
        ("max_expected_duration", json!("10m")),
        ("average_duration_override", json!("7m")),
        ("overlap", json!("replace")),
        ("retry_backoff", json!("stages")),
        ("condition", json!("OK")),
        ("condition_reason", json!("never_ran")),
    ] {
        assert_eq!(cron[field], value, "{field}");
    }
    let periodic = world.create(json!({"scheduling_period": "24h"})).await;
    assert_eq!(
        (&periodic["scheduling_period"], &periodic["cooldown_duration"]),
        (&json!("1d"), &json!("12h"))
    );
    assert_eq!((&periodic["exact"], &periodic["schedule_enabled"]), (&Value::Null, &json!(true)));
}

#[tokio::test]
async fn error_in_a_schedule_has_its_position() {
    let world = World::new().await;
    let document = noop(json!({"schedule": "0 9 * * 8"}));
    let problem = world.post("/api/v1/jobs", Some(document)).await.problem(422, "invalid-job");
    assert_eq!((&problem["field"], &problem["position"]), (&json!("schedule"), &json!(8)));
    assert_eq!(problem["errors"][0]["position"], 8);
    assert!(problem["detail"].as_str().unwrap().contains("0 9 * * 1-5"), "{problem}");
    let past = noop(json!({"schedule": "30m", "end_at": "2020-01-01T00:00:00Z"}));
    let problem = world.post("/api/v1/jobs", Some(past)).await.problem(422, "invalid-job");
    assert_eq!(problem["field"], "end_at");
}

#[tokio::test]
async fn preview_shows_the_times_and_creates_nothing() {
    let world = World::new().await;
    let seen = preview(
        &world,
        json!({
            "schedule": "30 2 * * *", "timezone": "Europe/Berlin", "from": "2026-03-28T12:00:00Z",
            "count": 2,
        }),
    )
    .await;
    assert_eq!(
        seen["times"],
        json!([
            {"utc": "2026-03-29T01:00:00.000000Z", "local": "2026-03-29T03:00:00.000000+02:00",
             "moved_by": "daylight_saving"},
            {"utc": "2026-03-30T00:30:00.000000Z", "local": "2026-03-30T02:30:00.000000+02:00",
             "moved_by": null},
        ])
    );
    assert_eq!(seen["description"], "At 02:30 every day, Europe/Berlin time.");
    assert_eq!((&seen["kind"], &seen["timezone"]), (&json!("cron"), &json!("Europe/Berlin")));
    assert_eq!(seen["exact_times"], true);
    assert_eq!(world.rig.census().await.jobs, 0);
    let most = preview(&world, json!({"schedule": "* * * * *", "count": 1000})).await;
    assert_eq!(most["times"].as_array().unwrap().len(), 1000);
    assert_eq!(most["load"].as_array().unwrap().len(), 24);
}

#[tokio::test]
async fn preview_shows_the_load_of_the_own_tenant() {
    let world = World::new().await;
    for _ in 0..3 {
        world.create(json!({"interval_minutes": 30, "start_at": at(1800)})).await;
    }
    let document = json!({"interval_minutes": 30});
    let seen = preview(&world, document.clone()).await;
    let load = seen["load"].as_array().unwrap();
    let jobs: u64 = load.iter().map(|slot| slot["jobs"].as_u64().unwrap()).sum();
    assert_eq!((load.len(), jobs, load[0].get("counted_up_to")), (24, 3, None));
    let other = token(Role::Viewer, "other");
    let asked = request(Method::POST, "/api/v1/schedules/preview", Some(&other), Some(document));
    let seen = world.send(asked).await.expect(200);
    let loads = seen["load"].as_array().unwrap();
    assert!(loads.iter().all(|slot| slot["jobs"] == 0), "{loads:?}");
}

#[tokio::test]
async fn preview_marks_incomplete_load_counts() {
    let world = World::new().await;
    let job = |_| unnamed_job().first_at(1800).build();
    world.rig.register((0..1000).map(job).collect()).await;
    let load = async || preview(&world, json!({"interval_minutes": 30})).await["load"][0].clone();
    let all = load().await;
    assert_eq!((&all["jobs"], all.get("counted_up_to")), (&json!(1000), None));
    // Only 1,000 jobs of all tenants are counted, so one more job makes the count incomplete.
    let other = world.rig.tenant("other").await;
    world.rig.add_for(&other, job(0)).await;
    let some = load().await;
    assert_eq!(some["counted_up_to"], 1000);
    assert!(some["jobs"].as_u64().unwrap() <= 1000, "{some}");
}

#[tokio::test]
async fn invalid_preview_is_refused() {
    let world = World::new().await;
    for (document, field) in [
        (json!({"schedule": "never"}), "schedule"),
        (json!({"schedule": "30m", "count": 1001}), "count"),
        (json!({"schedule": "30m", "executor_type": "noop"}), "executor_type"),
        (json!(["30m"]), ""),
    ] {
        let answer = world.post("/api/v1/schedules/preview", Some(document)).await;
        assert_eq!(answer.problem(422, "invalid-schedule")["errors"][0]["field"], field);
    }
}

#[tokio::test]
async fn next_times_of_a_job_begin_with_its_stored_one() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 30, "max_runs": 3})).await;
    let path = format!("/api/v1/jobs/{}/next", job["id"].as_str().unwrap());
    let seen = world.get(&path).await.expect(200);
    let times = seen["times"].as_array().unwrap();
    assert_eq!((times.len(), &times[0]["utc"]), (3, &job["next_run_at"]));
    assert_eq!(seen["job_id"], job["id"]);
    assert_eq!(seen["description"], "Every 30 minutes, 3 times at most.");
    world.pass(1800);
    world.rig.run_successfully(world.known(&job).await, 1800).await;
    let seen = world.get(&format!("{path}?count=1")).await.expect(200);
    assert_eq!(seen["times"].as_array().unwrap().len(), 1);
    let all = world.get(&path).await.expect(200);
    assert_eq!(all["times"].as_array().unwrap().len(), 2);
    world.get(&format!("{path}?count=0")).await.problem(422, "invalid-parameter");
    world.get(&format!("{path}?count=1001")).await.problem(422, "invalid-parameter");
}
