//! Executions.

use evenkeel_core::Span;
use evenkeel_core::attempt::Outcome;
use evenkeel_store::{Finish, FinishResult, Results, Then};
use evenkeel_store_testkit::fixtures::{Begin, at};
use serde_json::{Value, json};

use crate::world::{World, run_ids};

fn path_of(job: &Value) -> String {
    format!("/api/v1/jobs/{}/executions", job["id"].as_str().unwrap())
}

#[tokio::test]
async fn execution_is_shown_with_all_its_fields() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1, "start_at": at(60)})).await;
    let held = world.rig.start(world.known(&job).await, 61).await;
    let finish = Finish {
        started_at: at(61),
        results: Results {
            error: Some("no route".into()),
            output: Some("the end".into()),
            items_crawled: Some(25),
            items_indexed: Some(23),
            cpu_time: Some(Span::from_millis(1200)),
            memory_peak_kb: Some(2049),
        },
        ..world.rig.end(held, Outcome::Failed, Then::EndRun { stop_job: false, next_at: None })
    };
    assert_eq!(world.rig.finish(finish).await, FinishResult::Done);
    let id = run_ids().attempt_id(held.key).to_string();
    let shown = world.get(&format!("/api/v1/executions/{id}")).await.expect(200);
    assert_eq!(
        shown,
        json!({
            "id": id, "run_id": id, "job_id": job["id"], "execution_number": 1,
            "status": "failed", "scheduled_at": at(60), "origin": "schedule",
            "started_at": at(61), "completed_at": at(65), "duration_ms": 4000,
            "lateness_ms": 1000, "retry_attempt": 0, "attempt": 1, "fence": held.fence.0,
            "crashes": 0, "node": "node-1", "items_crawled": 25, "items_indexed": 23,
            "error_message": "no route", "stack_trace": null, "output": "the end", "progress": null,
            "cpu_time_ms": 1200, "memory_peak_mb": 3, "skipped": null, "metadata": {},
            "priority": null, "effective_priority": null,
        })
    );
    let list = world.get(&path_of(&job)).await.expect(200);
    assert_eq!(list["executions"], json!([shown]));
    assert_eq!((&list["total"], &list["limit"]), (&json!(1), &json!(50)));
}

#[tokio::test]
async fn run_id_returns_the_latest_attempt() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 60})).await;
    let known = world.known(&job).await;
    let first = world.rig.start(known, 3600).await;
    world.rig.finish(world.rig.retry(first, at(3700))).await;
    let wakes = world.rig.delayed(3700).await;
    world.rig.fire_delayed(&wakes, Begin::Claimed, 3700).await;
    let run =
        world.get(&format!("/api/v1/executions/{}", run_ids().run_id(first.key))).await.expect(200);
    assert_eq!((&run["retry_attempt"], &run["attempt"]), (&json!(1), &json!(2)));
    assert_eq!((&run["status"], &run["lateness_ms"]), (&json!("running"), &Value::Null));
    assert_eq!(run["run_id"], run_ids().run_id(first.key).to_string());
    assert_ne!(run["id"], run["run_id"]);
    let itself = world.get(&format!("/api/v1/executions/{}", run["id"].as_str().unwrap())).await;
    assert_eq!(itself.expect(200), run);
}

#[tokio::test]
async fn skipped_times_are_one_record_with_its_reason() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1, "start_at": at(60)})).await;
    world.rig.start(world.known(&job).await, 600).await;
    let list = world.get(&path_of(&job)).await.expect(200);
    let skipped =
        &list["executions"].as_array().unwrap().iter().find(|one| one["status"] == "skipped");
    let record = skipped.expect("there is a record")["skipped"].clone();
    assert_eq!(record, json!({"from": at(60), "to": at(540), "count": 9, "reason": "misfire"}));
}

#[tokio::test]
async fn executions_of_all_jobs_are_listed_newest_first() {
    let world = World::new().await;
    let one = world.create(json!({"interval_minutes": 1, "start_at": at(60)})).await;
    let other = world.create(json!({"interval_minutes": 2, "start_at": at(120)})).await;
    world.rig.run_successfully(world.known(&one).await, 60).await;
    world.rig.run_successfully(world.known(&other).await, 120).await;
    world.rig.run_successfully(world.known(&one).await, 121).await;
    let all = world.get("/api/v1/executions").await.expect(200);
    let times: Vec<_> = all["executions"].as_array().unwrap().iter().collect();
    assert_eq!((times.len(), &all["total"]), (3, &json!(3)));
    assert_eq!(times[2]["scheduled_at"], json!(at(60)));

    let page = world.get("/api/v1/executions?limit=2").await.expect(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/api/v1/executions?cursor={cursor}")).await.expect(200);
    assert_eq!(rest["executions"], json!([times[2]]));

    let of_one = world.get(&path_of(&one)).await.expect(200);
    assert_eq!(of_one["total"], 2);
    let first = world.get(&format!("{}?limit=1", path_of(&one))).await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("{}?cursor={cursor}", path_of(&one))).await.expect(200);
    assert_eq!(second["executions"][0]["scheduled_at"], json!(at(60)));
    assert_eq!(second["next_cursor"], Value::Null);
}

#[tokio::test]
async fn successful_run_shows_in_its_job() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1, "start_at": at(60)})).await;
    world.rig.run_successfully(world.known(&job).await, 60).await;
    let job = world.get(&format!("/api/v1/jobs/{}", job["id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&job["status"], &job["execution_count"]), (&json!("scheduled"), &json!(1)));
    assert_eq!((&job["average_duration_ms"], &job["last_run_at"]), (&json!(5000), &json!(at(60))));
    assert_eq!(job["next_run_at"], json!(at(120)));
}
