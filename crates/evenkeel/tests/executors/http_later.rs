//! Tests of HTTP receivers that respond with status 202 and report the outcome of the run later.

use serde_json::{Value, json};

use crate::database::Database;
use crate::http::create;
use crate::on_both_stores;
use crate::receiver::{ReceivedRequest, Receiver, Reply};
use crate::support::{request, wait_for};

on_both_stores!(
    accepted_run_is_finished_by_its_receiver,
    receiver_reports_a_failure_with_a_checkpoint,
    accepted_run_without_reports_times_out,
);

const LOCAL: [&str; 2] = ["--allow-network", "127.0.0.0/8"];

/// Sends a receiver's report to the callback URL in the headers of the HTTP call.
pub fn report(call: &ReceivedRequest, verb: &str, token: &str, body: &Value) -> (u16, Value) {
    let url = call.header("x-evenkeel-callback-url");
    let (server, path) = url.split_at(url.find("/api/").unwrap());
    let header = format!("authorization: Bearer {token}");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, text) = request(server, "POST", &format!("{path}/{verb}"), &header, &body);
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

fn accepted_run_is_finished_by_its_receiver(database: &Database) {
    let receiver = Receiver::start(|_, _| Reply::Now(202, "", String::new()));
    let server = database.serve(&LOCAL);
    create(&server, &receiver.url, &json!({"timeout_sec": 20}));
    let call = wait_for("the call", || receiver.requests().first().cloned());
    let token = call.header("x-evenkeel-callback-token").to_owned();
    let running = server.wait_for_run("call", "running");
    let id = running["id"].as_str().unwrap();

    assert_eq!(report(&call, "heartbeat", &token, &Value::Null).0, 204);
    let progress = json!({"done": 3, "total": 7, "items_crawled": 2, "message": "half way"});
    assert_eq!(report(&call, "progress", &token, &progress).0, 204);
    let shown = server.json(&["run", "show", id]);
    assert_eq!(shown["progress"], json!({"done": 3, "total": 7, "message": "half way"}));
    assert_eq!(shown["items_crawled"], 2);

    for wrong in ["1.AAAA", &token.replacen('.', ".x", 1), "nonsense"] {
        assert_eq!(report(&call, "complete", wrong, &Value::Null).0, 401, "{wrong}");
    }
    let (status, problem) = report(&call, "complete", &token, &json!({"outptu": "x"}));
    assert_eq!((status, &problem["field"]), (422, &json!("outptu")));
    let end = json!({"output": "all of it", "items_crawled": 7, "items_indexed": 5});
    assert_eq!(report(&call, "complete", &token, &end).0, 204);
    let run = server.wait_for_run("call", "completed");
    assert_eq!((&run["output"], &run["items_indexed"]), (&json!("all of it"), &json!(5)));
    assert_eq!(run["id"], id);
    let (status, problem) = report(&call, "complete", &token, &end);
    assert_eq!((status, &problem["type"]), (409, &json!("/problems/run-over")));
    assert_eq!(receiver.requests().len(), 1);
}

fn receiver_reports_a_failure_with_a_checkpoint(database: &Database) {
    let receiver = Receiver::start(|_, number| match number {
        0 => Reply::Now(202, "", String::new()),
        _ => Reply::ok(""),
    });
    let server = database.serve(&LOCAL);
    create(&server, &receiver.url, &json!({"max_retries": 2, "retry_backoff_seconds": 1}));
    let call = wait_for("the call", || receiver.requests().first().cloned());
    let token = call.header("x-evenkeel-callback-token").to_owned();
    let progress = json!({"checkpoint": {"page": 12, "name": "ü"}});
    assert_eq!(report(&call, "progress", &token, &progress).0, 204);
    let (status, answer) = report(&call, "fail", &token, &json!({"error": "the disk is full"}));
    assert_eq!(status, 200);
    assert!(answer["retry_at"].is_string(), "{answer}");
    let failed = server.wait_for_run("call", "failed");
    assert_eq!(failed["error_message"], "the disk is full");
    server.wait_for_run("call", "completed");
    let second = &receiver.requests()[1];
    let given = second.header("x-evenkeel-checkpoint");
    let given: Value = serde_json::from_str(given).unwrap();
    assert_eq!(given, json!({"page": 12, "name": "ü"}));
    assert_eq!(second.header("x-evenkeel-attempt"), "2");
}

fn accepted_run_without_reports_times_out(database: &Database) {
    let receiver = Receiver::start(|_, _| Reply::Now(202, "", String::new()));
    let server = database.serve(&LOCAL);
    create(&server, &receiver.url, &json!({"timeout_sec": 1}));
    let run = server.wait_for_run("call", "timed_out");
    assert!(run["error_message"].as_str().unwrap().contains("202"), "{run}");
    let call = &receiver.requests()[0];
    let token = call.header("x-evenkeel-callback-token");
    assert_eq!(report(call, "complete", token, &Value::Null).0, 409);
}
