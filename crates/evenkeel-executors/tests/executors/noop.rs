use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::run::Outcome;
use evenkeel_executors::{
    CancelReason, Executor, Lease, NoopExecutor, Registry, Report, cancellation,
};
use serde_json::{Value, json};

use crate::support::invocation;

#[tokio::test]
async fn it_completes_at_once() {
    let report = NoopExecutor.run(invocation("noop", Value::Null)).await;
    assert_eq!(report, Report::completed());
}

#[tokio::test]
async fn it_fails_on_demand() {
    let report = NoopExecutor.run(invocation("noop", json!({"fail": "told to"}))).await;
    assert_eq!(report, Report::failed("told to"));
}

#[tokio::test(start_paused = true)]
async fn its_sleep_can_be_cancelled() {
    let (handle, cancel) = cancellation();
    let mut long = invocation("noop", json!({"sleep_ms": 86_400_000}));
    long.cancel = cancel;
    let run = NoopExecutor.run(long);
    let cancelling = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        handle.cancel(CancelReason::Requested);
    };
    let (report, ()) = tokio::join!(run, cancelling);
    assert_eq!(report, Report::cancelled(CancelReason::Requested));
}

#[tokio::test(start_paused = true)]
async fn its_sleep_ends_with_the_lease() {
    let invocation = invocation("noop", json!({"sleep_ms": 60_000}));
    let until = Lease::endless().until() - Duration::from_secs(30 * 365 * 24 * 3600 - 5);
    let (_sender, receiver) = tokio::sync::watch::channel(until);
    let lost = evenkeel_executors::Invocation { lease: Lease::new(receiver), ..invocation };
    assert_eq!(NoopExecutor.run(lost).await, Report::cancelled(CancelReason::LeaseLost));
}

#[test]
fn a_bad_configuration_names_the_field_to_blame() {
    for (config, field) in [
        (json!({"sleep_ms": 86_400_001}), "executor_config.sleep_ms"),
        (json!({"sleep_ms": -1}), "executor_config.sleep_ms"),
        (json!({"fail": true}), "executor_config.fail"),
        (json!({"sleep": 1}), "executor_config.sleep"),
        (json!(1), "executor_config"),
    ] {
        assert_eq!(NoopExecutor.check(&config, &Value::Null).unwrap_err().field, field, "{config}");
    }
    assert_eq!(NoopExecutor.check(&json!({"sleep_ms": 1, "fail": "x"}), &Value::Null), Ok(()));
}

#[tokio::test]
async fn a_bad_stored_configuration_fails_the_run() {
    let report = NoopExecutor.run(invocation("noop", json!({"sleep_ms": "x"}))).await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.error.unwrap().starts_with("executor_config.sleep_ms: "));
}

#[test]
fn a_registry_knows_its_kinds() {
    let registry = Registry::new().with(Arc::new(NoopExecutor));
    assert_eq!(registry.kinds().collect::<Vec<_>>(), ["noop"]);
    assert_eq!(registry.get("noop").map(|executor| executor.kind()), Some("noop"));
    assert!(registry.get("http_callback").is_none());
}
