//! Deduplication of jobs.

use axum::http::{Method, header};
use evenkeel_store::Role;
use evenkeel_store_testkit::fixtures::at;
use serde_json::{Value, json};

use crate::world::{Answer, World, noop, request, token};

const JOBS: &str = "/api/v1/jobs";

/// Returns a job document with the source id `source`; the job runs once, in one minute.
fn once(source: &str) -> Value {
    noop(json!({"source_id": source, "schedule": {"kind": "once", "at": at(60)}, "unique": true}))
}

fn with(mut document: Value, more: Value) -> Value {
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    document
}

async fn ask(world: &World, job: &Value, what: &str) -> Answer {
    world.post(&format!("{JOBS}/{}/{what}", job["id"].as_str().unwrap()), None).await
}

#[tokio::test]
async fn duplicate_returns_the_existing_job() {
    let world = World::new().await;
    let first = world.post(JOBS, Some(once("news"))).await.expect(201);
    assert_eq!(first["deduplicated"], false);
    assert_eq!((&first["unique"], &first["dedup_key"]), (&json!(true), &json!("news")));
    assert_eq!(
        (&first["dedup_scope"], &first["dedup_window_seconds"]),
        (&json!("pending"), &json!(null))
    );
    world.pass(5);
    let answer = world.post(JOBS, Some(once("news"))).await;
    let again = answer.expect(200);
    assert_eq!((&again["id"], &again["deduplicated"]), (&first["id"], &json!(true)));
    let place = format!("{JOBS}/{}", first["id"].as_str().unwrap());
    assert_eq!(answer.header(header::LOCATION), Some(place.as_str()));
    // Responses to `GET`, and jobs without deduplication, do not have the field `deduplicated`.
    let shown = world.get(&place).await.expect(200);
    assert!(shown.get("deduplicated").is_none() && shown["unique"] == true);
    let plain = world.create(json!({"name": "plain"})).await;
    assert!(plain.get("deduplicated").is_none() && plain["unique"] == false);
    assert_eq!((&plain["dedup_key"], &plain["dedup_scope"]), (&json!(null), &json!(null)));
    assert_eq!(world.get(JOBS).await.expect(200)["total"], 2);
}

#[tokio::test]
async fn concurrent_duplicates_create_one_job() {
    let world = World::new().await;
    let asks = (0..50).map(|_| world.post(JOBS, Some(once("news"))));
    let answers = futures::future::join_all(asks).await;
    let created = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!((created, world.get(JOBS).await.expect(200)["total"].as_u64()), (1, Some(1)));
    let id = answers[0].json()["id"].clone();
    assert!(answers.iter().all(|answer| answer.json()["id"] == id));
}

#[tokio::test]
async fn bulk_reports_duplicates_line_by_line() {
    let world = World::new().await;
    let there = world.post(JOBS, Some(once("there"))).await.expect(201);
    let jobs =
        json!({"jobs": [once("a"), once("there"), once("a"), noop(json!({})), {"unique": 7}]});
    let answer = world.post(&format!("{JOBS}/bulk"), Some(jobs)).await.expect(200);
    assert_eq!(
        (&answer["created"], &answer["deduplicated"], &answer["refused"]),
        (&json!(2), &json!(2), &json!(1))
    );
    let results = answer["results"].as_array().unwrap();
    let statuses: Vec<u64> = results.iter().map(|one| one["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [201, 200, 200, 201, 422]);
    assert_eq!(results[0]["deduplicated"], false);
    assert_eq!((&results[1]["id"], &results[1]["deduplicated"]), (&there["id"], &json!(true)));
    assert_eq!(results[2]["id"], results[0]["id"]);
    assert!(results[3].get("deduplicated").is_none());
}

#[tokio::test]
async fn trigger_returns_the_existing_run() {
    let world = World::new().await;
    let job = noop(json!({"dedup_key": "k", "interval_minutes": 60, "start_at": at(3600),
                          "overlap": "allow"}));
    let job = world.post(JOBS, Some(job)).await.expect(201);
    let run = ask(&world, &job, "trigger").await.expect(202);
    assert!(run.get("deduplicated").is_none());
    let again = ask(&world, &job, "trigger").await.expect(200);
    assert_eq!(again["deduplicated"], true);
    for field in ["run_id", "execution_id", "job_id", "scheduled_at"] {
        assert_eq!(again[field], run[field], "{field}");
    }
}

#[tokio::test]
async fn change_that_would_duplicate_a_job_names_the_existing_one() {
    let world = World::new().await;
    let first = world.post(JOBS, Some(once("news"))).await.expect(201);
    ask(&world, &first, "pause").await.expect(200);
    let second = world.post(JOBS, Some(once("news"))).await.expect(201);
    let refused = ask(&world, &first, "resume").await.problem(409, "duplicate");
    assert_eq!((&refused["existing_id"], &refused["field"]), (&second["id"], &json!("dedup_key")));
    let other = world.post(JOBS, Some(once("other"))).await.expect(201);
    let refused = world.patch(&other, json!({"source_id": "news"})).await.problem(409, "duplicate");
    assert_eq!(refused["existing_id"], second["id"]);
    let command = json!({"action": "resume", "ids": [first["id"]]});
    let outcome = world.post(&format!("{JOBS}/commands"), Some(command)).await.expect(200);
    assert_eq!(outcome["refused"]["duplicate"], 1, "{outcome}");
}

#[tokio::test]
async fn dedup_key_is_changed_removed_and_put_back() {
    let world = World::new().await;
    let job = world.post(JOBS, Some(once("news"))).await.expect(201);
    // A job without its own `dedup_key` has its `source_id` as deduplication key.
    let job = world.patch(&job, json!({"source_id": "sport"})).await.expect(200);
    assert_eq!(job["dedup_key"], "sport");
    let path = format!("{JOBS}/{}", job["id"].as_str().unwrap());
    let edited = with(job.clone(), json!({"source_id": "art", "description": "x"}));
    let job = world.ask_as(Role::Operator, Method::PUT, &path, Some(edited)).await.expect(200);
    assert_eq!(job["dedup_key"], "art");
    let job = world.patch(&job, json!({"dedup_key": "k"})).await.expect(200);
    let job = world.patch(&job, json!({"source_id": "news"})).await.expect(200);
    assert_eq!(job["dedup_key"], "k");
    let window = json!({"dedup_scope": "window", "dedup_window_seconds": 60});
    let job = world.patch(&job, window).await.expect(200);
    assert_eq!((&job["dedup_scope"], &job["dedup_window_seconds"]), (&json!("window"), &json!(60)));
    let job = world.patch(&job, json!({"dedup_scope": "pending"})).await.expect(200);
    assert_eq!((&job["dedup_key"], &job["dedup_window_seconds"]), (&json!("k"), &json!(null)));
    for taken_away in [json!({"unique": false}), json!({"dedup_key": null})] {
        let job = world.patch(&job, json!({"dedup_key": "again"})).await.expect(200);
        let job = world.patch(&job, taken_away).await.expect(200);
        assert_eq!((&job["unique"], &job["dedup_key"]), (&json!(false), &json!(null)));
    }
}

#[tokio::test]
async fn dedup_keys_of_other_tenants_do_not_count() {
    let world = World::new().await;
    world.post(JOBS, Some(once("news"))).await.expect(201);
    let token = token(Role::Operator, "other");
    let asked = request(Method::POST, JOBS, Some(&token), Some(once("news")));
    let theirs = world.send(asked).await.expect(201);
    assert_eq!(theirs["deduplicated"], false);
}
