//! Rebalances that are stopped, or left alone, in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_store::StoreError;
use serde_json::{Value, json};

use super::{act_on, clustered, get, id_of, post, preview, slots, times};
use crate::world::World;

/// A server whose store fails at the third batch of moves, until `well` is set.
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

/// Begins a rebalance of 3,500 jobs that comes to a halt after 2,000.
async fn halted(world: &World) -> (Value, String) {
    clustered(world, 3500).await;
    let plan = preview(world).await;
    assert!(plan["would_move"].as_u64().unwrap() > 3000, "{}", plan["would_move"]);
    assert_eq!(plan["preview"].as_array().unwrap().len(), 1000);
    act_on(world, &plan).await.problem(500, "internal");
    let id = id_of(&plan, "plan_id");
    let left = get(world, &format!("rebalance/{id}")).await.expect(200);
    assert_eq!((&left["state"], &left["moved_total"]), (&json!("running"), &json!(2000)));
    let progress = left["progress"].as_f64().unwrap();
    assert!(progress > 0.5 && progress < 0.7, "{progress}");
    (plan, id)
}

#[tokio::test]
async fn a_rebalance_that_is_stopped_leaves_whole_batches_and_can_be_undone() {
    let (world, well) = breaks_at_the_third_batch().await;
    let (plan, id) = halted(&world).await;
    let stopped = post(&world, &format!("rebalance/{id}/stop"), None).await.expect(200);
    assert_eq!((&stopped["state"], &stopped["moved_total"]), (&json!("stopped"), &json!(2000)));
    assert_eq!(stopped["moved"].as_array().unwrap().len(), 1000);
    let moves = get(&world, &format!("rebalance/{id}/moves?offset=1999&limit=2")).await.expect(200);
    assert_eq!(
        (&moves["moves"][0]["made"], &moves["moves"][1]["made"]),
        (&json!(true), &Value::Null)
    );
    let again = post(&world, &format!("rebalance/{id}/stop"), None).await;
    again.problem(409, "rebalance-state");
    well.store(true, Ordering::Relaxed);
    let undone = post(&world, &format!("rebalance/{id}/undo"), None).await.expect(200);
    assert_eq!(undone["moved_total"], 2000);
    assert_eq!(undone["new_distribution_score"], plan["current_score"]);
}

#[tokio::test]
async fn a_rebalance_that_was_stopped_goes_on_when_its_plan_is_acted_on_again() {
    let (world, well) = breaks_at_the_third_batch().await;
    let (plan, id) = halted(&world).await;
    post(&world, &format!("rebalance/{id}/stop"), None).await.expect(200);
    well.store(true, Ordering::Relaxed);
    let done = act_on(&world, &plan).await.expect(200);
    assert_eq!((&done["state"], &done["moved_total"]), (&json!("done"), &plan["would_move"]));
    assert_eq!(done["new_distribution_score"], plan["projected_score"]);
}

#[tokio::test]
async fn there_is_one_at_a_time_until_it_is_silent_for_long() {
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
    let done = act_on(&world, &plan).await.expect(200);
    assert_eq!((&done["state"], &done["moved_total"]), (&json!("done"), &plan["would_move"]));
}

#[tokio::test]
async fn what_a_dead_node_left_can_be_undone() {
    let (world, well) = breaks_at_the_third_batch().await;
    let (plan, id) = halted(&world).await;
    well.store(true, Ordering::Relaxed);
    world.pass(31);
    let undone = post(&world, &format!("rebalance/{id}/undo"), None).await.expect(200);
    assert_eq!((&undone["moved_total"], &undone["undoes"]), (&json!(2000), &json!(id)));
    assert_eq!(undone["new_distribution_score"], plan["current_score"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_for_a_moment_is_waited_for() {
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
async fn a_rebalance_is_stopped_while_it_goes_on() {
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
    clustered(&world, 3500).await;
    let begun = post(&world, "rebalance", Some(json!({"wait": false}))).await.expect(202);
    let id = id_of(&begun, "rebalance_id");
    while !reached.load(Ordering::Acquire) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let stopped = post(&world, &format!("rebalance/{id}/stop"), None).await.expect(200);
    gate.store(true, Ordering::Release);
    assert_eq!((&stopped["state"], &stopped["moved_total"]), (&json!("stopped"), &json!(2000)));
    // The batch that was under way finds that it was stopped.
    let next = loop {
        let next = post(&world, "rebalance", Some(json!({"max_moves": 1}))).await;
        if next.status.as_u16() == 200 {
            break next;
        }
    };
    next.expect(200);
    let later = get(&world, &format!("rebalance/{id}")).await.expect(200);
    assert_eq!((&later["state"], &later["moved_total"]), (&json!("stopped"), &json!(2000)));
}
