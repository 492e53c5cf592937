//! Lists of the admin API with more than 10,000 jobs, and the number of store calls that they need.

use axum::http::Method;
use evenkeel_core::attempt::Outcome;
use evenkeel_store::{Action, Role, StoreError};
use evenkeel_store_testkit::commands::Commands as _;
use evenkeel_store_testkit::fixtures::{new_job, now};
use evenkeel_store_testkit::rig::{Known, OVER};
use serde_json::{Value, json};

use crate::broken_store::QUEUE_POSITION;
use crate::world::{World, run_ids};

const JOBS: &str = "/api/admin/jobs";

async fn listed(world: &World, query: &str) -> Vec<i64> {
    let list = world.get(&format!("{JOBS}?{query}")).await.expect(200);
    list["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_i64().unwrap()).collect()
}

/// Creates more jobs than one request for a filtered list reads.
async fn very_many(world: &World) -> Vec<Known> {
    let jobs = (0..10_100).map(|n| new_job(&format!("job {n}")).build()).collect();
    world.rig.add_all(jobs).await
}

async fn fail(world: &World, known: Known) {
    let held = world.rig.start(known, 60).await;
    world.rig.finish(world.rig.end(held, Outcome::Failed, OVER)).await;
}

#[tokio::test]
async fn counts_of_very_many_jobs_are_estimates_and_queued_jobs_are_found() {
    let world = World::new().await;
    let known = very_many(&world).await;
    for n in [9, 10_050, 10_051] {
        world.rig.queue(known[n], 60).await;
    }
    world.rig.start(known[10_060], 60).await;
    fail(&world, known[0]).await;
    let stats = world.get(&format!("{JOBS}/stats")).await.expect(200);
    assert_eq!((&stats["queued"], &stats["running"]), (&json!(3), &json!(1)));
    assert_eq!((&stats["failed"], &stats["is_estimate"]), (&json!(1), &json!(true)));
    let first = world.get(&format!("{JOBS}?status=queued&limit=2")).await.expect(200);
    assert_eq!((&first["jobs"][1]["id"], &first["total"]), (&json!(10_051), &json!(3)));
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(listed(&world, &format!("status=queued&cursor={cursor}")).await, [10_052]);
    assert_eq!(listed(&world, "status=crawling").await, [10_061]);
    let failed = world.get(&format!("{JOBS}?status=failed")).await.expect(200);
    assert_eq!(failed["jobs"][0]["id"], 1);
    let cursor = failed["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("{JOBS}?status=failed&cursor={cursor}")).await.expect(200);
    assert_eq!((&rest["jobs"], &rest["next_cursor"]), (&json!([]), &Value::Null));
    // The clock advances until the jobs are due.
    world.pass(60);
    let due = world.get(&format!("{JOBS}?status=queued&limit=5")).await.expect(200);
    assert!(due["next_cursor"].is_string());
    assert_eq!(due["jobs"].as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn stopped_jobs_with_active_runs_are_found_among_very_many() {
    let world = World::new().await;
    let known = very_many(&world).await;
    let act = async |known: Known, action| {
        world.rig.store.act(&world.rig.scope, known.id, action, now(60)).await.unwrap();
    };
    for (n, action) in [(10_010, Action::Pause), (10_011, Action::Cancel)] {
        world.rig.start(known[n], 60).await;
        act(known[n], action).await;
    }
    act(known[10_020], Action::Pause).await;
    world.rig.trigger(known[10_020], 1, 60).await;
    assert_eq!(listed(&world, "status=crawling").await, [10_011, 10_012]);
    assert_eq!(listed(&world, "status=queued").await, [10_021]);
    let stats = world.get(&format!("{JOBS}/stats")).await.expect(200);
    assert_eq!((&stats["queued"], &stats["running"]), (&json!(1), &json!(2)));
}

#[tokio::test]
async fn offset_beyond_the_examined_jobs_is_refused() {
    let world = World::new().await;
    let known = very_many(&world).await;
    for n in [0, 10_090] {
        fail(&world, known[n]).await;
    }
    assert_eq!(listed(&world, "offset=10098").await, [10_099, 10_100]);
    assert_eq!(listed(&world, "offset=10050&limit=1").await, [10_051]);
    let all = world.get(&format!("{JOBS}?offset=20000")).await.expect(200);
    assert_eq!((&all["jobs"], &all["total"]), (&json!([]), &json!(10_100)));
    assert_eq!((&all["total_is_estimate"], &all["next_cursor"]), (&json!(false), &Value::Null));
    let refused = world.get(&format!("{JOBS}?status=failed&offset=1")).await;
    let problem = refused.problem(422, "invalid-parameter");
    assert_eq!(problem["field"], "offset");
    assert!(problem["detail"].as_str().unwrap().contains("next_cursor"), "{problem}");
    let scheduled = world.get("/api/admin/scheduled-jobs?offset=10050").await;
    scheduled.problem(422, "invalid-parameter");
    let first = world.get(&format!("{JOBS}?status=failed")).await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(listed(&world, &format!("status=failed&cursor={cursor}")).await, [10_091]);
}

#[tokio::test]
async fn only_explain_counts_the_runs_ahead_in_the_queue() {
    let world = World::failing(|_, verb| {
        (verb == QUEUE_POSITION).then(|| StoreError::Unavailable("asked too much".into()))
    })
    .await;
    let (waits, retried) = (new_job("waits").build(), new_job("retried").build());
    let waits = world.rig.add(waits).await;
    let retried = world.rig.add(retried).await;
    let key = world.rig.queue(waits, 60).await;
    let held = world.rig.start(retried, 60).await;
    world.rig.finish(world.rig.retry(held, evenkeel_store_testkit::fixtures::at(900))).await;
    assert_eq!(listed(&world, "").await, [1, 2]);
    assert_eq!(listed(&world, "status=queued").await, [1, 2]);
    let job = format!("/api/v1/jobs/{}", waits.id);
    for path in [
        job.clone(),
        format!("{job}/condition"),
        format!("/api/v1/executions/{}", run_ids().attempt_id(key)),
    ] {
        world.get(&path).await.expect(200);
    }
    for (id, path, body) in [
        (1, "priority", json!({"priority": 7})),
        (1, "status", json!({"status": "queued"})),
        (2, "status", json!({"status": "success"})),
    ] {
        let path = format!("{JOBS}/{id}/{path}");
        world.ask_as(Role::Operator, Method::PUT, &path, Some(body)).await.expect(200);
    }
    world.get(&format!("{job}/explain")).await.problem(503, "store-unavailable");
}
