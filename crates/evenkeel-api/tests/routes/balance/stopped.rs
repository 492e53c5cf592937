//! Rebalances that are stopped or abandoned before all jobs are moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::Method;
use evenkeel_store::StoreError;
use serde_json::{Value, json};

use super::{carry_out, clustered, get, id_of, post, preview, slots, time, times};
use crate::world::{World, request};

/// Creates a server whose store fails at the third batch of moves, until the returned flag is set.
async fn breaks_at_the_third_batch() -> (World, Arc<AtomicBool>) {
    let (well, batches) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
    let heals = Arc::clone(&well);
    let world = World::failing(move |_, verb| {
        let is_third = verb == "move_jobs" && batches.fetch_add(1, Ordering::Relaxed) >= 2;
        let refused = is_third && !heals.load(Ordering::Relaxed);
        refused.then(|| StoreError::Refused("it is the third".into()))
    })
    .await;
    (world, well)
}

/// Starts a rebalance of 7,000 jobs; the store fails after 4,000 jobs are moved.
async fn halted(world: &World) -> (Value, String) {
    clustered(world, 7000).await;
    let plan = preview(world).await;
    assert!(plan["would_move"].as_u64().unwrap() > 6000, "{}", plan["would_move"]);
    assert_eq!(plan["preview"].as_array().unwrap().len(), 1000);
    carry_out(world, &plan).await.problem(500, "internal");
    let id = id_of(&plan, "plan_id");
    let left = get(world, &format!("rebalance/{id}")).await.expect(200);
    assert_eq!((&left["state"], &left["moved_total"]), (&json!("running"), &json!(4000)));
    let progress = left["progress"].as_f64().unwrap();
    assert!(progress > 0.5 && progress < 0.7, "{progress}");
    (plan, id)
}

/// Pauses all jobs that the rebalance has not moved yet and would move into the same time slot as
/// the next job. Returns the number of paused jobs.
async fn pause_a_slot(world: &World, plan: &Value, id: &str) -> u64 {
    let (mut slot, mut paused) = (None, 0);
    let token = super::token(evenkeel_store::Role::Operator, "main");
    for offset in (4000..plan["would_move"].as_u64().unwrap()).step_by(100) {
        let path = format!("rebalance/{id}/moves?offset={offset}&limit=100");
        let page = get(world, &path).await.expect(200);
        for one in page["moves"].as_array().unwrap() {
            let its_slot = time(&one["new_time"]).as_micros() / 900_000_000;
            if *slot.get_or_insert(its_slot) == its_slot {
                let path = format!("/api/v1/jobs/{}/pause", one["job_id"].as_str().unwrap());
                world.send(request(Method::POST, &path, Some(&token), None)).await.expect(200);
                paused += 1;
            }
        }
    }
    paused
}

#[tokio::test]
async fn stopped_rebalance_leaves_whole_batches_and_can_be_undone() {
    let (world, well) = breaks_at_the_third_batch().await;
    let (plan, id) = halted(&world).await;
    let stopped = post(&world, &format!("rebalance/{id}/stop"), None).await.expect(200);
    assert_eq!((&stopped["state"], &stopped["moved_total"]), (&json!("stopped"), &json!(4000)));
    assert_eq!(stopped["moved"].as_array().unwrap().len(), 1000);
    let moves = get(&world, &format!("rebalance/{id}/moves?offset=3999&limit=2")).await.expect(200);
    assert_eq!(
        (&moves["moves"][0]["made"], &moves["moves"][1]["made"]),
        (&json!(true), &Value::Null)
    );
    let again = post(&world, &format!("rebalance/{id}/stop"), None).await;
    again.problem(409, "rebalance-state");
    well.store(true, Ordering::Relaxed);
    let undone = post(&world, &format!("rebalance/{id}/undo"), None).await.expect(200);
    assert_eq!(undone["moved_total"], 4000);
    assert_eq!(undone["new_distribution_score"], plan["current_score"]);
}

#[tokio::test]
async fn stopped_rebalance_resumes_when_its_plan_is_carried_out_again() {
    let (world, well) = breaks_at_the_third_batch().await;
    let (plan, id) = halted(&world).await;
    post(&world, &format!("rebalance/{id}/stop"), None).await.expect(200);
    well.store(true, Ordering::Relaxed);
    let done = carry_out(&world, &plan).await.expect(200);
    assert_eq!((&done["state"], &done["moved_total"]), (&json!("done"), &plan["would_move"]));
    assert_eq!(done["new_distribution_score"], plan["projected_score"]);
}

#[tokio::test]
async fn stopped_rebalance_resumes_without_changed_jobs() {
    let (world, well) = breaks_at_the_third_batch().await;
    let (plan, id) = halted(&world).await;
    post(&world, &format!("rebalance/{id}/stop"), None).await.expect(200);
    well.store(true, Ordering::Relaxed);
    let paused = pause_a_slot(&world, &plan, &id).await;
    // A plan expires after 15 minutes, but a stopped rebalance can be resumed after 20 minutes.
    world.pass(20 * 60);
    let done = carry_out(&world, &plan).await.expect(200);
    let moved = plan["would_move"].as_u64().unwrap() - paused;
    assert_eq!((&done["state"], &done["moved_total"]), (&json!("done"), &json!(moved)));
    assert_eq!(done["skipped_by_reason"]["changed"], paused);
}

#[tokio::test]
async fn rebalance_of_a_dead_node_resumes_without_changed_jobs() {
    let (world, well) = breaks_at_the_third_batch().await;
    let (plan, id) = halted(&world).await;
    well.store(true, Ordering::Relaxed);
    let paused = pause_a_slot(&world, &plan, &id).await;
    world.pass(31);
    let done = carry_out(&world, &plan).await.expect(200);
    let moved = plan["would_move"].as_u64().unwrap() - paused;
    assert_eq!((&done["state"], &done["moved_total"]), (&json!("done"), &json!(moved)));
    assert_eq!(done["skipped_by_reason"]["changed"], paused);
}

/// Rebalances 3,000 jobs and starts the undo, which fails after 2,000 jobs. Returns the plan and
/// the ids of the rebalance and the undo.
async fn halted_undo() -> (World, Value, [String; 2]) {
    let more = Arc::new(AtomicUsize::new(99));
    let left = Arc::clone(&more);
    let world = World::failing(move |_, verb| {
        let one_less = |left: usize| left.checked_sub(1);
        let is_over = verb == "move_jobs"
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err();
        is_over.then(|| StoreError::Refused("that is enough".into()))
    })
    .await;
    clustered(&world, 3000).await;
    let plan = preview(&world).await;
    carry_out(&world, &plan).await.expect(200);
    let id = id_of(&plan, "plan_id");
    more.store(1, Ordering::Relaxed);
    post(&world, &format!("rebalance/{id}/undo"), None).await.problem(500, "internal");
    more.store(99, Ordering::Relaxed);
    let undo = id_of(&get(&world, &format!("rebalance/{id}")).await.expect(200), "undone_by");
    (world, plan, [id, undo])
}

#[tokio::test]
async fn unfinished_undo_is_completed_by_another() {
    for is_stopped in [true, false] {
        let (world, plan, [id, undo]) = halted_undo().await;
        let early = post(&world, &format!("rebalance/{id}/undo"), None).await;
        assert_eq!(early.problem(409, "rebalance-under-way")["rebalance"]["id"], json!(undo));
        if is_stopped {
            post(&world, &format!("rebalance/{undo}/stop"), None).await.expect(200);
        } else {
            world.pass(31);
        }
        let undone = post(&world, &format!("rebalance/{id}/undo"), None).await.expect(200);
        let left = plan["would_move"].as_u64().unwrap() - 2000;
        assert_eq!((&undone["state"], &undone["moved_total"]), (&json!("done"), &json!(left)));
        assert_eq!(undone["new_distribution_score"], plan["current_score"]);
        let again = post(&world, &format!("rebalance/{id}/undo"), None).await;
        let problem = again.problem(409, "rebalance-state");
        assert!(problem["detail"].as_str().unwrap().contains("undone already"), "{problem}");
        let first = post(&world, "rebalance", Some(json!({"plan_id": undo}))).await;
        first.problem(409, "rebalance-state");
    }
}

#[tokio::test]
async fn stopped_undo_resumes_when_carried_out_again() {
    let (world, plan, [id, undo]) = halted_undo().await;
    post(&world, &format!("rebalance/{undo}/stop"), None).await.expect(200);
    let undone = post(&world, "rebalance", Some(json!({"plan_id": undo}))).await.expect(200);
    assert_eq!((&undone["state"], &undone["moved_total"]), (&json!("done"), &plan["would_move"]));
    assert_eq!((&undone["undoes"], &undone["skipped_total"]), (&json!(id), &json!(0)));
    assert_eq!(undone["new_distribution_score"], plan["current_score"]);
}

#[tokio::test]
async fn second_rebalance_is_refused_until_the_first_is_abandoned() {
    let (world, well) = breaks_at_the_third_batch().await;
    let (plan, id) = halted(&world).await;
    well.store(true, Ordering::Relaxed);
    for body in [json!({}), json!({"plan_id": id})] {
        let problem = post(&world, "rebalance", Some(body)).await;
        assert_eq!(problem.problem(409, "rebalance-under-way")["rebalance"]["id"], json!(id));
    }
    let early = post(&world, &format!("rebalance/{id}/undo"), None).await;
    early.problem(409, "rebalance-state");
    world.pass(31);
    let done = carry_out(&world, &plan).await.expect(200);
    assert_eq!((&done["state"], &done["moved_total"]), (&json!("done"), &plan["would_move"]));
}

#[tokio::test]
async fn rebalance_of_a_dead_node_can_be_undone() {
    let (world, well) = breaks_at_the_third_batch().await;
    let (plan, id) = halted(&world).await;
    well.store(true, Ordering::Relaxed);
    world.pass(31);
    let undone = post(&world, &format!("rebalance/{id}/undo"), None).await.expect(200);
    assert_eq!((&undone["moved_total"], &undone["undoes"]), (&json!(4000), &json!(id)));
    assert_eq!(undone["new_distribution_score"], plan["current_score"]);
}

#[tokio::test(start_paused = true)]
async fn rebalance_waits_for_an_unavailable_store() {
    let outages = AtomicUsize::new(0);
    let world = World::failing(move |_, verb| {
        let is_out = verb == "move_jobs" && outages.fetch_add(1, Ordering::Relaxed) % 3 < 2;
        is_out.then(|| StoreError::Unavailable("it is away".into()))
    })
    .await;
    let jobs = clustered(&world, 20).await;
    let done = post(&world, "rebalance", None).await.expect(200);
    assert_eq!((&done["state"], &done["moved_total"]), (&json!("done"), &json!(19)));
    assert_eq!(slots(&times(&world, &jobs).await).len(), 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn running_rebalance_is_stopped() {
    let (reached, gate) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (at, open, batches) = (Arc::clone(&reached), Arc::clone(&gate), AtomicUsize::new(0));
    let world = World::failing(move |_, verb| {
        if verb == "move_jobs" && batches.fetch_add(1, Ordering::Relaxed) == 2 {
            at.store(true, Ordering::Release);
            while !open.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        None
    })
    .await;
    clustered(&world, 7000).await;
    let started = post(&world, "rebalance", Some(json!({"wait": false}))).await.expect(202);
    let id = id_of(&started, "rebalance_id");
    while !reached.load(Ordering::Acquire) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let stopped = post(&world, &format!("rebalance/{id}/stop"), None).await.expect(200);
    gate.store(true, Ordering::Release);
    assert_eq!((&stopped["state"], &stopped["moved_total"]), (&json!("stopped"), &json!(4000)));
    // The next rebalance can start only after the batch in progress has noticed the stop.
    let next = loop {
        let next = post(&world, "rebalance", Some(json!({"max_moves": 1}))).await;
        if next.status.as_u16() == 200 {
            break next;
        }
    };
    next.expect(200);
    let later = get(&world, &format!("rebalance/{id}")).await.expect(200);
    assert_eq!((&later["state"], &later["moved_total"]), (&json!("stopped"), &json!(4000)));
}
