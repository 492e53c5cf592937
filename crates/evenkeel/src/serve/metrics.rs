//! Collects and describes metrics.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::show_jobs_by_state;
use evenkeel_store::Store;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::{Failure, Result};

/// Histogram buckets in seconds for request durations and lateness of runs. A lateness of 1 ms is
/// good, and Evenkeel promises a lateness below 1 s.
const SECONDS: [f64; 13] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// Histogram buckets in seconds for the time from the start of a run to its deadline.
const SLACK: [f64; 10] =
    [0.001, 1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 604_800.0];

/// Histogram buckets in seconds for run durations, up to a day.
const DURATIONS: [f64; 14] = [
    0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0,
    86_400.0,
];

/// Histogram buckets in seconds for the time that runs wait for a worker, up to a day.
const WAITS: [f64; 12] =
    [0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0];

/// Histogram buckets in seconds for the time to choose a job's start time, which takes about a
/// microsecond.
const PLACEMENTS: [f64; 9] = [5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 1e-4, 1e-3, 1e-2];

pub fn install() -> Result<PrometheusHandle> {
    let failure = |error| Failure::because("metrics can't be collected", &error);
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)
        .map_err(failure)?
        .set_buckets_for_metric(
            Matcher::Full("scheduler_placement_duration_seconds".into()),
            &PLACEMENTS,
        )
        .map_err(failure)?
        .set_buckets_for_metric(Matcher::Full("evenkeel_slack_seconds".into()), &SLACK)
        .map_err(failure)?
        .set_buckets_for_metric(Matcher::Full("evenkeel_run_duration_seconds".into()), &DURATIONS)
        .map_err(failure)?
        .set_buckets_for_metric(Matcher::Full("evenkeel_queue_wait_seconds".into()), &WAITS)
        .map_err(failure)?
        .install_recorder()
        .map_err(failure)?;
    describe();
    let upkeep = handle.clone();
    // The Prometheus exporter keeps samples in memory until it aggregates them. Without this
    // periodic task, the exporter would aggregate samples only when a client reads the metrics.
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            upkeep.run_upkeep();
        }
    });
    Ok(handle)
}

/// Updates the metric that counts jobs by state, at the interval `every`.
pub async fn show_states(store: Arc<dyn Store>, every: Duration) {
    loop {
        match store.all_job_counts().await {
            Ok(counts) => show_jobs_by_state(&counts),
            // An outage of the store is already logged elsewhere, so this line has level debug.
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "counting jobs failed; the metric keeps its last value"
                );
            }
        }
        tokio::time::sleep(every).await;
    }
}

fn describe() {
    for (name, description) in [
        ("evenkeel_firings_total", "Scheduled times that became runs"),
        (
            "evenkeel_wakes_total",
            "Delayed attempts (retries and triggers) that were started or queued",
        ),
        ("evenkeel_skipped_times_total", "Skipped times, by reason"),
        ("evenkeel_runs_ended_total", "Ended attempts, by outcome"),
        ("evenkeel_retries_total", "Failed attempts that are retried"),
        ("evenkeel_runs_succeeded_after_retry_total", "Runs that succeeded after a retry"),
        ("evenkeel_dead_letters_total", "Dead letters, by reason"),
        ("evenkeel_deduplicated_total", "Jobs and triggers answered with an existing one"),
        ("evenkeel_dead_letters_forgotten_total", "Dead letters that retention removed"),
        ("evenkeel_jobs_paused_by_failures_total", "Jobs paused after consecutive failed runs"),
        ("evenkeel_deadlines_missed_total", "Runs that started after their should_start_by"),
        (
            "evenkeel_stale_reports_total",
            "Results refused because another node had taken the attempt over",
        ),
        ("evenkeel_nodes_lost_total", "Nodes that lost their lease"),
        ("evenkeel_runs_taken_over_total", "Attempts taken over from lost nodes"),
        ("evenkeel_runs_forgotten_total", "Executions that retention removed"),
        ("evenkeel_pages_forgotten_total", "Removed pages of deleted crawls"),
        ("evenkeel_unreadable_jobs_total", "Jobs whose stored definition can't be read"),
        ("scheduler_placements_total", "Placements of jobs by load, by type"),
        ("scheduler_rebalance_total", "Completed rebalances"),
        (
            "evenkeel_distribution_alerts_total",
            "Number of times a tenant's score fell below its threshold",
        ),
        ("evenkeel_stale_targets_triggered_total", "Runs triggered for stale targets"),
        ("evenkeel_http_requests_total", "Requests answered, by method, path and status"),
        ("evenkeel_store_errors_total", "Failed store operations, by verb and kind"),
    ] {
        metrics::describe_counter!(name, description);
    }
    for (name, description) in [
        ("evenkeel_jobs", "Jobs, by condition"),
        (
            "evenkeel_jobs_held_by_blackout",
            "Jobs in error because a blackout holds them, counted up to 10,000",
        ),
        ("evenkeel_jobs_by_state", "Jobs, by state"),
        ("evenkeel_bodies", "Running executions on this node"),
        ("evenkeel_workers", "Maximum number of executions on this node"),
        ("evenkeel_queue_depth", "Runs that wait for a worker, by lane and pool"),
        (
            "evenkeel_queue_depth_is_lower_bound",
            "1 if more runs wait than were counted: the queue metrics are lower bounds",
        ),
        ("evenkeel_queue_oldest_seconds", "Waiting time of the oldest run, by lane and pool"),
        ("evenkeel_queue_priority", "Runs that wait for a worker, by priority in tens"),
        ("evenkeel_due_waiting", "Due jobs in this node's memory, by lane"),
        ("evenkeel_parked", "Runs in limit queues, by scope"),
        ("evenkeel_pool_workers", "Live nodes that serve a pool"),
        ("evenkeel_pool_unserved", "Waiting runs of a pool without live nodes"),
        (
            "evenkeel_running_oldest_seconds",
            "Duration of the longest running execution on this node",
        ),
        (
            "evenkeel_last_check_timestamp_seconds",
            "Last heartbeat of a scheduler, as known to this node",
        ),
        ("scheduler_distribution_score", "Evenness of the load; 1 is as even as possible"),
        ("scheduler_slot_job_count", "Runs expected in each hour of the next 24, UTC"),
        ("scheduler_peak_hour_job_count", "Runs expected in the fullest of those hours"),
        ("scheduler_rebalance_jobs_moved", "Jobs that the last rebalance moved"),
        ("scheduler_rebalance_jobs_skipped", "Jobs that the last rebalance did not move"),
        ("evenkeel_stale_targets", "Stale targets found by the last check"),
        ("evenkeel_streams_open", "Streams of events and logs that are open on this node"),
    ] {
        metrics::describe_gauge!(name, description);
    }
    for (name, description) in [
        (
            "evenkeel_lateness_seconds",
            "Time from the earliest possible start of a run to its start",
        ),
        (
            "evenkeel_queue_wait_seconds",
            "Time from the first moment a run could be claimed to its start, by lane",
        ),
        ("evenkeel_slack_seconds", "Time from the start of a run to its should_start_by"),
        ("scheduler_placement_duration_seconds", "Duration of placements"),
        ("evenkeel_run_duration_seconds", "Duration of attempts, by outcome"),
        ("evenkeel_http_request_duration_seconds", "Duration of requests, by method and path"),
        ("evenkeel_store_verb_seconds", "Duration of store operations"),
    ] {
        metrics::describe_histogram!(name, metrics::Unit::Seconds, description);
    }
}
