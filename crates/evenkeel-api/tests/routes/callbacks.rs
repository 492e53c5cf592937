//! Tests of the callbacks that HTTP services send after answering 202.

use axum::http::Method;
use evenkeel_core::AttemptKey;
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_store::{Cancellation, MessageKind, NodeMessage, Signal};
use evenkeel_store_testkit::rig::{Held, Known};
use serde_json::{Value, json};

use crate::world::{Answer, World, attempt_tokens, request, run_ids};

/// Creates a server with a running attempt.
async fn with_running() -> (World, Known, Held) {
    let world = World::new().await;
    let created = world
        .create(json!({"name": "call", "schedule": "@every 60s", "retry_backoff_seconds": 60}))
        .await;
    let job = world.known(&created).await;
    world.pass(60);
    let held = world.rig.start(job, 60).await;
    (world, job, held)
}

fn token(held: Held) -> String {
    attempt_tokens().mint(held.key, held.fence)
}

async fn report(world: &World, held: Held, verb: &str, token: &str, body: Option<Value>) -> Answer {
    let path = format!("/api/v1/runs/{}/{verb}", run_ids().attempt_id(held.key));
    world.send(request(Method::POST, &path, Some(token), body)).await
}

async fn messages(world: &World) -> Vec<NodeMessage> {
    world.rig.store.take_messages(world.rig.node, 100).await.unwrap()
}

#[tokio::test]
async fn completed_attempt_is_stored_and_its_node_notified() {
    let (world, job, held) = with_running().await;
    let end = json!({"output": "done\u{0}", "items_crawled": 5, "items_indexed": 3});
    let answer = report(&world, held, "complete", &token(held), Some(end)).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""));
    let run = world.rig.run(held.key).await;
    assert_eq!(run.status, AttemptStatus::Completed);
    assert_eq!(run.results.output.as_deref(), Some("done\u{fffd}"));
    assert_eq!((run.results.items_crawled, run.results.items_indexed), (Some(5), Some(3)));
    assert_eq!(world.rig.job(job).await.live, 0);
    let expected = NodeMessage { key: held.key, fence: held.fence, kind: MessageKind::Ended };
    assert_eq!(messages(&world).await, [expected]);
}

#[tokio::test]
async fn attempt_can_complete_as_partly_failed() {
    let (world, _, held) = with_running().await;
    let end = json!({"outcome": "partly_failed"});
    assert_eq!(report(&world, held, "complete", &token(held), Some(end)).await.status, 204);
    let shown = world.get(&format!("/api/v1/executions/{}", run_ids().attempt_id(held.key))).await;
    assert_eq!(shown.expect(200)["status"], "partly_failed");
}

#[tokio::test]
async fn failed_attempt_is_retried_as_the_receiver_allows() {
    for (body, waits) in [
        (json!({"error": "no disk"}), Some(48..=72)),
        (json!({"retry_after_seconds": 3600}), Some(3600..=3600)),
        (json!({"retry": false}), None),
    ] {
        let (world, _, held) = with_running().await;
        let answer = report(&world, held, "fail", &token(held), Some(body.clone())).await;
        let retry_at = answer.expect(200)["retry_at"].clone();
        let wakes = world.rig.delayed(100_000).await;
        match waits {
            Some(range) => {
                let wait = wakes[0].due.since(evenkeel_store_testkit::fixtures::at(60));
                assert!(range.contains(&(wait.as_millis() / 1000)), "{body}: {wait}");
                assert_eq!(retry_at, json!(wakes[0].due));
            }
            None => assert!(retry_at.is_null() && wakes.is_empty(), "{body}: {retry_at}"),
        }
        assert_eq!(world.rig.run(held.key).await.status, AttemptStatus::Failed);
    }
}

/// Returns all signals that `listener` has received but not read yet.
fn signals(listener: &mut tokio::sync::broadcast::Receiver<Signal>) -> Vec<Signal> {
    std::iter::from_fn(|| listener.try_recv().ok()).collect()
}

#[tokio::test]
async fn outcome_that_moves_the_next_time_wakes_the_scheduler() {
    for (schedule, moves) in [
        (json!({"scheduling_period": "1h", "cooldown_duration": "10m"}), true),
        (json!({"schedule": "@every 60s"}), false),
    ] {
        let world = World::new().await;
        let job = world.known(&world.create(schedule.clone()).await).await;
        world.pass(60);
        let held = world.rig.start(job, 60).await;
        let before = world.rig.job(job).await.next_at.unwrap();
        world.pass(5);
        let mut listener = world.rig.store.signals().subscribe();
        assert_eq!(report(&world, held, "complete", &token(held), None).await.status, 204);
        let after = world.rig.job(job).await.next_at.unwrap();
        assert_eq!(after < before, moves, "{schedule}: {before} {after}");
        assert_eq!(signals(&mut listener).contains(&Signal::Jobs), moves, "{schedule}");
    }
}

#[tokio::test]
async fn heartbeats_and_progress_reach_the_node_and_readers() {
    let (world, _, held) = with_running().await;
    let beat = NodeMessage { key: held.key, fence: held.fence, kind: MessageKind::Heartbeat };
    assert_eq!(report(&world, held, "heartbeat", &token(held), None).await.status, 204);
    assert_eq!(messages(&world).await, [beat]);
    let progress = json!({"done": 1, "total": 4, "message": "a\u{0}b", "checkpoint": [1]});
    assert_eq!(report(&world, held, "progress", &token(held), Some(progress)).await.status, 204);
    assert_eq!(messages(&world).await, [beat]);
    let shown = world.get(&format!("/api/v1/executions/{}", run_ids().attempt_id(held.key))).await;
    let expected = json!({"done": 1, "total": 4, "message": "a\u{fffd}b"});
    assert_eq!(shown.expect(200)["progress"], expected);
}

#[tokio::test]
async fn only_the_token_of_the_attempt_is_accepted() {
    let (world, _, held) = with_running().await;
    let path = format!("/api/v1/runs/{}/complete", run_ids().attempt_id(held.key));
    let none = world.send(request(Method::POST, &path, None, None)).await;
    none.problem(401, "unauthorized");
    let users = crate::world::token(evenkeel_store::Role::Admin, "main");
    let other = AttemptKey { job_no: evenkeel_core::JobNo(77), ..held.key };
    for wrong in [users, attempt_tokens().mint(other, held.fence), "1.x".into(), "x".into()] {
        report(&world, held, "complete", &wrong, None).await.problem(401, "unauthorized");
        report(&world, held, "heartbeat", &wrong, None).await.problem(401, "unauthorized");
    }
    assert_eq!(world.rig.run(held.key).await.status, AttemptStatus::Running);
    // The token of an attempt is not valid for other requests.
    let list = world.send(request(Method::GET, "/api/v1/jobs", Some(&token(held)), None)).await;
    list.problem(401, "unauthorized");
}

#[tokio::test]
async fn reports_of_an_ended_or_taken_over_attempt_are_refused() {
    let (world, job, held) = with_running().await;
    let back = world.rig.requeue_of(held, job, true).await;
    assert!(world.rig.requeue(back, 61).await);
    report(&world, held, "heartbeat", &token(held), None).await.problem(409, "run-over");
    let again = world.rig.claim_one(62).await;
    assert!(again.fence > Fence(held.fence.0));
    let problem = report(&world, held, "complete", &token(held), None).await;
    assert!(problem.problem(409, "run-over")["detail"].as_str().unwrap().contains("taken over"));
    assert_eq!(report(&world, again, "complete", &token(again), None).await.status, 204);
    for verb in ["complete", "fail", "heartbeat", "progress"] {
        report(&world, again, verb, &token(again), None).await.problem(409, "run-over");
    }
}

#[tokio::test]
async fn invalid_callback_fields_are_named() {
    let (world, _, held) = with_running().await;
    for (verb, body, field) in [
        ("complete", json!({"outcome": "failed"}), "outcome"),
        ("complete", json!({"items_crawled": -1}), "items_crawled"),
        ("complete", json!({"output": 5}), "output"),
        ("complete", json!({"error": "x"}), "error"),
        ("complete", json!([]), ""),
        ("fail", json!({"retry": "no"}), "retry"),
        ("fail", json!({"retry": false, "retry_after_seconds": 5}), "retry_after_seconds"),
        ("progress", json!({"done": "all"}), "done"),
        ("progress", json!({"checkpoint": "x".repeat(5000)}), "checkpoint"),
        ("progress", json!({"checkpoint": "ü".repeat(1000)}), "checkpoint"),
        ("heartbeat", json!({"done": 1}), ""),
    ] {
        let answer = report(&world, held, verb, &token(held), Some(body.clone())).await;
        let problem = answer.problem(422, "invalid-parameter");
        assert_eq!(problem["field"], field, "{verb} {body}");
    }
    let none = world.send(request(Method::POST, "/api/v1/runs/7/complete", Some("x"), None)).await;
    none.problem(404, "not-found");
    assert_eq!(world.rig.run(held.key).await.status, AttemptStatus::Running);
}

#[tokio::test]
async fn cancelling_a_run_keeps_its_job_active() {
    let (world, job, held) = with_running().await;
    let path = format!("/api/v1/executions/{}/cancel", run_ids().attempt_id(held.key));
    let asked = world.post(&path, None).await.expect(202);
    assert_eq!(asked["running"], true);
    assert_eq!(asked["execution_id"], run_ids().attempt_id(held.key).to_string());
    let asked = Cancellation { key: held.key, superseded: false };
    assert_eq!(world.rig.store.cancellations(world.rig.node).await.unwrap(), [asked]);
    world.rig.finish(world.rig.success(held)).await;
    world.post(&path, None).await.problem(409, "run-over");
    assert!(world.rig.job(job).await.next_at.is_some());
    let waiting = world.rig.trigger(job, 0, 70).await;
    let path = format!("/api/v1/executions/{}/cancel", run_ids().attempt_id(waiting));
    assert_eq!(world.post(&path, None).await.expect(202)["running"], false);
    let never = AttemptKey::regular(job.no, evenkeel_store_testkit::fixtures::at(9999));
    let path = format!("/api/v1/executions/{}/cancel", run_ids().attempt_id(never));
    world.post(&path, None).await.problem(404, "not-found");
    let viewer = evenkeel_store::Role::Viewer;
    world.ask_as(viewer, Method::POST, &path, None).await.problem(403, "forbidden");
}
