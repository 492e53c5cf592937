//! Sample jobs.

use evenkeel_commands::{Jobs, read_job};
use evenkeel_store::Scope;
use serde_json::{Value, json};

use super::data_dir::DataDir;
use crate::{Failure, Result};

/// Name of the file that marks that the sample jobs were created, so that deleted samples are not
/// created again.
const MARK: &str = "demo-created";

pub async fn create_once(jobs: &Jobs, scope: &Scope, dir: &DataDir) -> Result {
    if dir.has(MARK) {
        return Ok(());
    }
    let failure =
        |what: String| Failure::failed(format!("the sample jobs can't be created: {what}"));
    let specs = samples()
        .iter()
        .map(|document| read_job(document, scope.tenant, jobs.executors()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|faults| failure(faults.first().map(ToString::to_string).unwrap_or_default()))?;
    let count = specs.len();
    // Existing jobs are not changed.
    jobs.create_each(scope, specs).await.map_err(|error| failure(crate::failure::chain(&error)))?;
    dir.write(MARK, "")?;
    tracing::info!(jobs.count = count, "created the sample jobs of the demo");
    Ok(())
}

fn samples() -> Vec<Value> {
    let noop = |name: &str, every: &str, about: &str, config: Value| {
        json!({
            "name": name, "description": about, "executor_type": "noop",
            "schedule": {"kind": "interval", "every": every}, "executor_config": config,
        })
    };
    vec![
        noop("demo-heartbeat", "5s", "Does nothing, often", json!({})),
        noop("demo-report", "1m", "Takes two seconds", json!({"sleep_ms": 2000})),
        noop(
            "demo-slow",
            "20s",
            "Takes longer than its interval, so times are skipped",
            json!({"sleep_ms": 25_000}),
        ),
        json!({
            "name": "demo-flaky", "description": "Fails, is retried twice, and fails for good",
            "executor_type": "noop", "executor_config": {"fail": "the coffee is out"},
            "schedule": {"kind": "interval", "every": "2m"},
            "max_retries": 2, "retry_backoff_seconds": 5,
        }),
        json!({
            "name": "demo-web", "description": "Calls a public page",
            "executor_type": "http", "schedule": {"kind": "interval", "every": "15m"},
            "executor_config": {"url": "https://example.com/", "method": "GET"},
        }),
    ]
}
