//! Collects what the parts measure.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::Failure;

/// Where the times of requests and of starts lie: a millisecond is good, a second is the promise.
const SECONDS: [f64; 13] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// Where the time between a start and its deadline lies: none is bad, hours are usual.
const SLACK: [f64; 10] =
    [0.001, 1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 604_800.0];

/// Collects from now on.
pub fn install() -> Result<PrometheusHandle, Failure> {
    let failure = |error| Failure::because("metrics can't be collected", &error);
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)
        .map_err(failure)?
        .set_buckets_for_metric(Matcher::Full("evenkeel_slack_seconds".into()), &SLACK)
        .map_err(failure)?
        .install_recorder()
        .map_err(failure)?;
    let upkeep = handle.clone();
    // Samples are kept until they are folded, which is else only done when somebody looks.
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}
