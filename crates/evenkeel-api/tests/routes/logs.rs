//! What executions print.

use axum::http::Method;
use evenkeel_core::run::Outcome;
use evenkeel_store::{Finish, Note, Results, Role, Then};
use evenkeel_store_testkit::fixtures::now;
use evenkeel_store_testkit::rig::Held;
use serde_json::json;

use crate::streams::Stream;
use crate::world::{World, request, token};

async fn says(world: &World, held: Held, log: &str) {
    let Held { key, fence } = held;
    let note = Note { key, fence, progress: None, log: Some(log.into()), checkpoint: None };
    let noted = world.rig.store.note(world.rig.node, vec![note], now(62)).await.unwrap();
    assert_eq!(noted, [true]);
}

async fn ends(world: &World, held: Held, output: &str) {
    let results = Results {
        error: Some("in the end".into()),
        output: Some(output.into()),
        ..Results::default()
    };
    let then = Then::EndChain { stop_job: false, next_at: None };
    world.rig.finish(Finish { results, ..world.rig.end(held, Outcome::Failed, then) }).await;
}

#[tokio::test]
async fn the_log_of_a_run_is_read_while_it_runs_and_afterwards() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1})).await;
    let held = world.rig.start(world.known(&job).await, 61).await;
    let id = held.key.execution_id().to_string();
    let path = format!("/api/v1/executions/{id}/logs");
    let view = |status: &str, text: &str, error: Option<&str>| {
        json!({"execution_id": id, "status": status, "is_final": status != "running",
               "text": text, "error_message": error})
    };
    assert_eq!(world.get(&path).await.expect(200), view("running", "", None));
    says(&world, held, "one\ntwo\n").await;
    assert_eq!(world.get(&path).await.expect(200), view("running", "one\ntwo\n", None));
    let last = world.get(&format!("{path}?tail=1")).await.expect(200);
    assert_eq!(last, view("running", "two\n", None));
    ends(&world, held, "one\ntwo\nthree\n").await;
    let whole = world.get(&path).await.expect(200);
    assert_eq!(whole, view("failed", "one\ntwo\nthree\n", Some("in the end")));
    world.get(&format!("{path}?tail=0")).await.problem(422, "invalid-parameter");
    world.get(&format!("{path}?follow=yes")).await.problem(422, "invalid-parameter");
    let stranger = token(Role::Admin, "other");
    let answer = world.send(request(Method::GET, &path, Some(&stranger), None)).await;
    answer.problem(404, "not-found");
}

#[tokio::test(start_paused = true)]
async fn a_log_is_followed_to_its_end() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1})).await;
    let held = world.rig.start(world.known(&job).await, 61).await;
    says(&world, held, "one\ntwo\n").await;
    let id = held.key.execution_id().to_string();
    let path = format!("/api/v1/executions/{id}/logs?follow=true&tail=1");
    let asked = request(Method::GET, &path, Some(&token(Role::Viewer, "main")), None);
    let mut stream = Stream::open(&world.router, asked).await;
    let told = |text: &str| json!({"text": text, "skipped": false});
    let first = stream.event().await;
    assert_eq!((first.event.as_str(), first.data), ("log", told("two\n")));
    says(&world, held, "one\ntwo\nthree\n").await;
    assert_eq!(stream.event().await.data, told("three\n"));
    ends(&world, held, "one\ntwo\nthree\nfour\n").await;
    assert_eq!(stream.event().await.data, told("four\n"));
    let end = stream.event().await;
    assert_eq!(end.event, "end");
    let expected = json!({"execution_id": id, "status": "failed", "error_message": "in the end"});
    assert_eq!(end.data, expected);
    assert_eq!(stream.next().await, None);
}
