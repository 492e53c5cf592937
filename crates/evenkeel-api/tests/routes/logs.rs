//! Logs of executions.

use axum::http::Method;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::{LogChunk, LogStream, RunLog};
use evenkeel_store::{Finish, ProgressNote, Results, Role, Then};
use evenkeel_store_testkit::fixtures::{at, now};
use evenkeel_store_testkit::rig::Held;
use serde_json::{Value, json};

use crate::streams::Stream;
use crate::world::{World, request, run_ids, token};

/// Returns a log whose parts were printed one second apart.
fn log(pieces: &[(LogStream, &str)]) -> RunLog {
    let mut log = RunLog::default();
    for (second, (stream, text)) in pieces.iter().enumerate() {
        let (at, offset) = (Some(at(61 + second as i64)), log.total);
        log.total += text.len() as u64;
        log.chunks.push(LogChunk { stream: *stream, at, offset, text: (*text).into() });
    }
    log
}

const PIECES: [(LogStream, &str); 4] = [
    (LogStream::Stdout, "one\n"),
    (LogStream::Stderr, "two\n"),
    (LogStream::Stdout, "three\n"),
    (LogStream::Stderr, "four\n"),
];

async fn print(world: &World, held: Held, log: &RunLog) {
    let Held { key, fence } = held;
    let log = Some(log.encode());
    let note = ProgressNote { key, fence, progress: None, log, checkpoint: None };
    let noted = world.rig.store.save_progress(world.rig.node, vec![note], now(62)).await.unwrap();
    assert_eq!(noted, [true]);
}

async fn finish(world: &World, held: Held, output: Option<String>) {
    let results = Results { error: Some("in the end".into()), output, ..Results::default() };
    let then = Then::EndRun { stop_job: false, next_at: None };
    world.rig.finish(Finish { results, ..world.rig.end(held, Outcome::Failed, then) }).await;
}

fn texts(log: &Value) -> Vec<(&str, &str)> {
    let lines = log["lines"].as_array().unwrap().iter();
    lines.map(|line| (line["stream"].as_str().unwrap(), line["text"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn log_is_readable_during_and_after_the_run() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1})).await;
    let held = world.rig.start(world.known(&job).await, 61).await;
    let id = run_ids().attempt_id(held.key).to_string();
    let path = format!("/api/v1/executions/{id}/logs");
    let silent = json!({
        "execution_id": id, "status": "running", "is_final": false, "text": "", "lines": [],
        "printed_bytes": 0, "error_message": null,
    });
    assert_eq!(world.get(&path).await.expect(200), silent);
    print(&world, held, &log(&PIECES[..2])).await;
    let early = world.get(&path).await.expect(200);
    assert_eq!((&early["text"], &early["is_final"]), (&json!("one\ntwo\n"), &json!(false)));
    let second = json!({
        "stream": "stderr", "at": at(62), "offset": 4, "left_out_before": 0, "text": "two",
        "is_partial": false,
    });
    assert_eq!(early["lines"][1], second);
    let last = world.get(&format!("{path}?tail=1")).await.expect(200);
    assert_eq!((&last["text"], &last["lines"]), (&json!("two\n"), &json!([second])));
    finish(&world, held, Some(log(&PIECES).encode())).await;
    let whole = world.get(&path).await.expect(200);
    assert_eq!(whole["text"], "one\ntwo\nthree\nfour\n");
    assert_eq!((&whole["status"], &whole["is_final"]), (&json!("failed"), &json!(true)));
    assert_eq!(whole["error_message"], "in the end");
    let errors = world.get(&format!("{path}?stream=stderr")).await.expect(200);
    assert_eq!(texts(&errors), [("stderr", "two"), ("stderr", "four")]);
    // `GET /api/v1/executions/{id}` shows standard output only.
    let view = world.get(&format!("/api/v1/executions/{id}")).await.expect(200);
    assert_eq!(view["output"], "one\nthree\n");
    for wrong in ["tail=0", "follow=yes", "stream=both"] {
        world.get(&format!("{path}?{wrong}")).await.problem(422, "invalid-parameter");
    }
    let other_tenant = token(Role::Admin, "other");
    let answer = world.send(request(Method::GET, &path, Some(&other_tenant), None)).await;
    answer.problem(404, "not-found");
}

#[tokio::test]
async fn log_stored_by_an_older_version_is_readable() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1})).await;
    let held = world.rig.start(world.known(&job).await, 61).await;
    finish(&world, held, Some("… 7 bytes left out\nold\n".into())).await;
    let path = format!("/api/v1/executions/{}/logs", run_ids().attempt_id(held.key));
    let log = world.get(&path).await.expect(200);
    assert_eq!(log["text"], "… 7 bytes left out\nold\n");
    assert_eq!(
        (&log["lines"][0]["at"], &log["lines"][0]["left_out_before"]),
        (&json!(null), &json!(7))
    );
}

/// While an attempt runs, the store keeps less of its log than after it has finished. A client that
/// follows the log still gets each line once.
#[tokio::test(start_paused = true)]
async fn followed_log_is_sent_once_up_to_its_end() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1})).await;
    let held = world.rig.start(world.known(&job).await, 61).await;
    print(&world, held, &log(&PIECES[..2])).await;
    let id = run_ids().attempt_id(held.key).to_string();
    let path = format!("/api/v1/executions/{id}/logs?follow=true&tail=1");
    let asked = || request(Method::GET, &path, Some(&token(Role::Viewer, "main")), None);
    let mut stream = Stream::open(&world.router, asked()).await;
    let first = stream.event().await;
    assert_eq!(first.event, "log");
    assert_eq!((&first.data["text"], &first.data["skipped"]), (&json!("two\n"), &json!(false)));
    // The beginning of the log is no longer stored.
    let mut third = log(&PIECES[..3]);
    third.chunks.drain(..2);
    print(&world, held, &third).await;
    let second = stream.event().await;
    assert_eq!(
        (texts(&second.data), &second.data["skipped"]),
        (vec![("stdout", "three")], &json!(false))
    );
    finish(&world, held, Some(log(&PIECES).encode())).await;
    assert_eq!(texts(&stream.event().await.data), [("stderr", "four")]);
    let end = stream.event().await;
    assert_eq!(end.event, "end");
    let expected = json!({"execution_id": id, "status": "failed", "error_message": "in the end"});
    assert_eq!(end.data, expected);
    assert_eq!(stream.next().await, None);
    // A client that lost its connection resumes the stream.
    let mut again = asked();
    again.headers_mut().insert("last-event-id", second.id.unwrap().parse().unwrap());
    let mut stream = Stream::open(&world.router, again).await;
    assert_eq!(texts(&stream.event().await.data), [("stderr", "four")]);
    let mut wrong = asked();
    wrong.headers_mut().insert("last-event-id", "x".parse().unwrap());
    world.send(wrong).await.problem(422, "invalid-parameter");
}

#[tokio::test(start_paused = true)]
async fn follower_is_told_of_omitted_output() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1})).await;
    let held = world.rig.start(world.known(&job).await, 61).await;
    print(&world, held, &log(&PIECES[..1])).await;
    let path = format!("/api/v1/executions/{}/logs?follow=true", run_ids().attempt_id(held.key));
    let asked = request(Method::GET, &path, Some(&token(Role::Viewer, "main")), None);
    let mut stream = Stream::open(&world.router, asked).await;
    assert_eq!(texts(&stream.event().await.data), [("stdout", "one")]);
    let mut late = log(&PIECES);
    late.chunks.drain(1..3);
    finish(&world, held, Some(late.encode())).await;
    let log = stream.event().await.data;
    assert_eq!((texts(&log), &log["skipped"]), (vec![("stderr", "four")], &json!(true)));
    assert_eq!(log["lines"][0]["left_out_before"], 10);
    assert_eq!(log["text"], "… 10 bytes left out\nfour\n");
}
