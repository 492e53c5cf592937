//! Jobs that make HTTP calls.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::database::Database;
use crate::on_both_stores;
use crate::receiver::{ReceivedRequest, Receiver, Reply};
use crate::support::{Server, create_from_json, wait_for};

on_both_stores!(
    call_is_signed_and_its_response_is_stored,
    failed_call_is_retried_after_the_requested_delay,
    call_without_a_response_times_out,
    running_call_is_cancelled,
    call_of_a_killed_worker_is_repeated_with_the_same_key,
    private_address_is_called_only_if_allowed,
);

const LOCAL: [&str; 2] = ["--allow-network", "127.0.0.0/8"];

/// Creates a job that calls `url` once, now.
pub fn create(server: &Server, url: &str, more: &Value) {
    let mut job = json!({
        "name": "call", "executor_type": "http_callback",
        "executor_config": {"url": url}, "max_retries": 0,
    });
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let result = create_from_json(server, &job);
    assert_eq!(result.code, 0, "{result:?}");
}

fn call_is_signed_and_its_response_is_stored(database: &Database) {
    let receiver = Receiver::start(|_, _| Reply::ok("welcome"));
    let server = database.serve(&LOCAL);
    let config = json!({
        "url": format!("{}/jobs/{{{{payload.id}}}}?run={{{{run_id}}}}", receiver.url),
        "headers": {"X-Attempt": "{{attempt}}"},
    });
    create(&server, "", &json!({"executor_config": config, "payload": {"id": "a/b"}}));
    let run = server.wait_for_run("call", "completed");
    assert_eq!(run["output"], "welcome");
    let [got] = &receiver.requests()[..] else { panic!("{:?}", receiver.requests()) };
    let run_id = run["run_id"].as_str().unwrap();
    assert_eq!(
        (got.method.as_str(), got.path.as_str()),
        ("POST", &*format!("/jobs/a%2Fb?run={run_id}"))
    );
    assert_eq!(got.header("idempotency-key"), run_id);
    assert_eq!(got.header("x-evenkeel-execution-id"), run["id"]);
    assert_eq!(got.header("x-attempt"), "1");
    assert_eq!(got.body, r#"{"id":"a/b"}"#);
    let key = server.json(&[&["token", "signing-key"], &database.args()[..]].concat());
    assert!(signature_is_right(got, key["keys"][0].as_str().unwrap()), "{got:?}");
    assert!(!signature_is_right(got, "whsec_AAAA"));
    if !database.args().is_empty() {
        // The server uses PostgreSQL, so a signing key from the default SQLite store would be
        // wrong.
        let result = server.run(&["token", "signing-key"]);
        assert_eq!(result.code, 2, "{result:?}");
        assert!(result.err.contains("--store"), "{}", result.err);
    }
}

/// Verifies the signature of a call as a receiver does (Standard Webhooks).
fn signature_is_right(got: &ReceivedRequest, key: &str) -> bool {
    use base64::Engine as _;
    use hmac::{KeyInit as _, Mac as _};
    let base64 = base64::engine::general_purpose::STANDARD;
    let secret = base64.decode(key.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(&secret).unwrap();
    let (id, timestamp) = (got.header("webhook-id"), got.header("webhook-timestamp"));
    mac.update(format!("{id}.{timestamp}.{}", got.body).as_bytes());
    let proof = base64.encode(mac.finalize().into_bytes());
    got.header("webhook-signature").split(' ').any(|one| one == format!("v1,{proof}"))
}

fn failed_call_is_retried_after_the_requested_delay(database: &Database) {
    let receiver = Receiver::start(|_, number| match number {
        0 => Reply::Now(503, "retry-after: 2\r\n", "busy".into()),
        _ => Reply::ok(""),
    });
    let server = database.serve(&LOCAL);
    create(&server, &receiver.url, &json!({"max_retries": 1, "retry_backoff_seconds": 1}));
    let failed = server.wait_for_run("call", "failed");
    assert!(failed["error_message"].as_str().unwrap().contains("503"), "{failed}");
    let retried = server.wait_for_run("call", "completed");
    assert_eq!((&retried["attempt"], &retried["run_id"]), (&json!(2), &failed["run_id"]));
    let time = |run: &Value, field: &str| -> evenkeel_core::Timestamp {
        run[field].as_str().unwrap().parse().unwrap()
    };
    let waited = time(&retried, "started_at").since(time(&failed, "completed_at"));
    assert!(waited >= evenkeel_core::Span::from_secs(2), "{waited}");
}

fn call_without_a_response_times_out(database: &Database) {
    let receiver = Receiver::start(|_, _| Reply::Never);
    let server = database.serve(&LOCAL);
    create(&server, &receiver.url, &json!({"timeout_sec": 1}));
    let run = server.wait_for_run("call", "timed_out");
    assert!(run["error_message"].as_str().unwrap().contains("1s"), "{run}");
    wait_for("the caller to go away", || (receiver.disconnected() == 1).then_some(()));
}

fn running_call_is_cancelled(database: &Database) {
    let receiver = Receiver::start(|_, _| Reply::Never);
    let server = database.serve(&LOCAL);
    create(&server, &receiver.url, &json!({}));
    let run = server.wait_for_run("call", "running");
    wait_for("the call", || (!receiver.requests().is_empty()).then_some(()));
    let cancelled = server.json(&["run", "cancel", run["id"].as_str().unwrap()]);
    assert_eq!(cancelled["running"], true);
    server.wait_for_run("call", "cancelled");
    wait_for("the caller to go away", || (receiver.disconnected() == 1).then_some(()));
    let again = server.run(&["run", "cancel", run["id"].as_str().unwrap()]);
    assert_eq!(again.code, 4, "{again:?}");
}

fn call_of_a_killed_worker_is_repeated_with_the_same_key(database: &Database) {
    let receiver = Receiver::start(|_, number| match number {
        0 => Reply::Never,
        _ => Reply::ok("at last"),
    });
    let mut server = database.serve(&LOCAL);
    create(&server, &receiver.url, &json!({}));
    wait_for("the call", || (!receiver.requests().is_empty()).then_some(()));
    server.signal(Signal::KILL);
    server.wait_for_exit();
    server.restart();
    let run = server.wait_for_run("call", "completed");
    assert_eq!((&run["output"], &run["crashes"]), (&json!("at last"), &json!(1)));
    let [first, second] = &receiver.requests()[..] else { panic!("{:?}", receiver.requests()) };
    let key = |got: &ReceivedRequest| got.header("idempotency-key").to_owned();
    assert_eq!((key(first), key(second)), (key(second), run["run_id"].as_str().unwrap().into()));
    let fence = |got: &ReceivedRequest| got.header("x-evenkeel-fence").parse::<u32>().unwrap();
    assert!(fence(first) < fence(second));
}

fn private_address_is_called_only_if_allowed(database: &Database) {
    let receiver = Receiver::start(|_, _| Reply::ok(""));
    let server = database.serve(&[]);
    create(&server, &receiver.url, &json!({}));
    let run = server.wait_for_run("call", "failed");
    assert!(run["error_message"].as_str().unwrap().contains("--allow-network"), "{run}");
    assert!(receiver.requests().is_empty());
}
