use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::attempt::Outcome;
use evenkeel_core::{AttemptKey, AttemptNo, TenantNo, Timestamp};
use evenkeel_executors::{
    CancelReason, Executor, Lease, NoopExecutor, Registry, Report, cancellation,
};
use serde_json::{Value, json};

use crate::support::invocation;

#[tokio::test]
async fn noop_completes_at_once() {
    let report = NoopExecutor.run(invocation("noop", Value::Null)).await;
    assert_eq!(report, Report::completed());
}

#[tokio::test]
async fn noop_fails_on_demand() {
    let report = NoopExecutor.run(invocation("noop", json!({"fail": "told to"}))).await;
    assert_eq!(report, Report::failed("told to"));
}

#[tokio::test(start_paused = true)]
async fn sleep_of_noop_can_be_cancelled() {
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

/// The job's `timeout_sec` applies to every executor.
#[tokio::test(start_paused = true)]
#[expect(
    clippy::disallowed_methods,
    reason = "how long it sleeps on tokio's clock is the question"
)]
async fn sleep_longer_than_the_timeout_times_out() {
    let took = async |sleep_ms: u64| {
        let began = tokio::time::Instant::now();
        let report = NoopExecutor.run(invocation("noop", json!({"sleep_ms": sleep_ms}))).await;
        (report.outcome, began.elapsed())
    };
    // The example invocation has a timeout of 30 s.
    assert_eq!(took(30_000).await, (Outcome::Completed, Duration::from_secs(30)));
    assert_eq!(took(86_400_000).await, (Outcome::TimedOut, Duration::from_secs(30)));
}

#[tokio::test(start_paused = true)]
async fn steps_of_noop_report_progress_and_restart_the_timeout() {
    // The example invocation has a timeout of 30 s.
    let stepping = invocation("noop", json!({"sleep_ms": 40_000, "steps": 4}));
    let live = stepping.live.clone();
    let run = NoopExecutor.run(stepping);
    let watching = async {
        tokio::time::sleep(Duration::from_secs(25)).await;
        live.progress_so_far()
    };
    let (report, progress) = tokio::join!(run, watching);
    assert_eq!(report, Report::completed());
    assert_eq!((progress.done, progress.total), (Some(2), Some(4)));
    let log = live.log_so_far().unwrap();
    assert_eq!(
        log.chunks.iter().map(|chunk| chunk.text.as_str()).collect::<String>(),
        "step 1 of 4\nstep 2 of 4\nstep 3 of 4\nstep 4 of 4\n"
    );
    let silent = invocation("noop", json!({"sleep_ms": 80_000, "steps": 2}));
    assert_eq!(NoopExecutor.run(silent).await.outcome, Outcome::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn sleep_of_noop_ends_with_the_lease() {
    let invocation = invocation("noop", json!({"sleep_ms": 60_000}));
    let until = Lease::endless().until() - Duration::from_secs(30 * 365 * 24 * 3600 - 5);
    let (_sender, receiver) = tokio::sync::watch::channel(until);
    let lost = evenkeel_executors::Invocation { lease: Lease::new(receiver), ..invocation };
    assert_eq!(NoopExecutor.run(lost).await, Report::cancelled(CancelReason::LeaseLost));
}

/// Returns the outcomes of 20,000 attempts of a job with this fail rate.
async fn outcomes(rate: f64) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut given = invocation("noop", json!({"fail_rate": rate}));
    for run in 0..5_000_i64 {
        given.key.job_no.0 = run % 10;
        for attempt in 0..4 {
            given.key = AttemptKey {
                scheduled_at: Timestamp::from_micros(run * 60_000_000),
                ..given.key.with_attempt(AttemptNo(attempt))
            };
            outcomes.push(NoopExecutor.run(given.clone()).await.outcome);
        }
    }
    outcomes
}

#[tokio::test]
async fn fail_rate_always_fails_the_same_attempts() {
    for rate in [0.0, 0.01, 0.3, 0.9, 1.0] {
        let outcomes = outcomes(rate).await;
        let failed = outcomes.iter().filter(|outcome| **outcome == Outcome::Failed).count();
        let expected = rate * outcomes.len() as f64;
        // Five standard deviations. The keys of the attempts are always the same, so the result is
        // reproducible.
        let slack = 5.0 * (expected * (1.0 - rate)).sqrt();
        assert!((failed as f64 - expected).abs() <= slack, "{rate}: {failed}");
    }
    assert_eq!(outcomes(0.3).await, outcomes(0.3).await);
    let outcomes = outcomes(0.5).await;
    // The attempts of one run fail independently of each other.
    let mixed = outcomes.chunks(4).filter(|run| run.iter().any(|o| *o != run[0])).count();
    assert!(mixed > 4_000, "{mixed}");
}

#[tokio::test]
async fn fail_rate_uses_the_message_of_fail() {
    let message = |config| async { NoopExecutor.run(invocation("noop", config)).await.error };
    let told = message(json!({"fail": "boom", "fail_rate": 1})).await;
    assert_eq!(told.as_deref(), Some("boom"));
    assert_eq!(message(json!({"fail": "boom", "fail_rate": 0})).await, None);
    assert!(message(json!({"fail_rate": 1})).await.unwrap().contains("fail_rate"));
}

#[tokio::test(start_paused = true)]
async fn jitter_lengthens_each_attempt_differently() {
    let mut taken = std::collections::BTreeSet::new();
    for attempt in 0..50 {
        let mut given = invocation("noop", json!({"sleep_ms": 100, "jitter_ms": 50}));
        given.key = given.key.with_attempt(AttemptNo(attempt));
        let before = Lease::endless().until();
        NoopExecutor.run(given).await;
        let took = Lease::endless().until() - before;
        assert!((100..=151).contains(&took.as_millis()), "{took:?}");
        taken.insert(took);
    }
    assert!(taken.len() > 10, "{taken:?}");
}

#[test]
fn bad_configuration_is_refused_with_its_field() {
    for (config, field) in [
        (json!({"sleep_ms": 86_400_001}), "executor_config.sleep_ms"),
        (json!({"sleep_ms": -1}), "executor_config.sleep_ms"),
        (json!({"fail": true}), "executor_config.fail"),
        (json!({"sleep": 1}), "executor_config.sleep"),
        (json!({"jitter_ms": 0.5}), "executor_config.jitter_ms"),
        (json!({"fail_rate": 1.1}), "executor_config.fail_rate"),
        (json!({"fail_rate": -0.1}), "executor_config.fail_rate"),
        (json!({"fail_rate": "all"}), "executor_config.fail_rate"),
        (json!({"steps": 0}), "executor_config.steps"),
        (json!({"steps": 1001}), "executor_config.steps"),
        (json!(1), "executor_config"),
    ] {
        assert_eq!(
            NoopExecutor.check(TenantNo(1), &config, &Value::Null).unwrap_err().field,
            field,
            "{config}"
        );
    }
    assert_eq!(
        NoopExecutor.check(TenantNo(1), &json!({"sleep_ms": 1, "fail": "x"}), &Value::Null),
        Ok(())
    );
}

#[tokio::test]
async fn bad_stored_configuration_fails_the_attempt() {
    let report = NoopExecutor.run(invocation("noop", json!({"sleep_ms": "x"}))).await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.error.unwrap().starts_with("executor_config.sleep_ms: "));
}

#[test]
fn registry_knows_its_executors() {
    let registry = Registry::new().with(Arc::new(NoopExecutor));
    assert_eq!(registry.kinds().collect::<Vec<_>>(), ["noop"]);
    assert_eq!(registry.get("noop").map(|executor| executor.declaration().kind), Some("noop"));
    assert!(registry.get("http_callback").is_none());
}
