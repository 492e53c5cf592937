//! Tests how soon a missed deadline is noticed, and how job policies affect deadlines. Each test
//! runs a few jobs on one node.

use std::time::Duration;

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::blackout::Blackout;
use evenkeel_core::condition::Reason;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::retry::{Backoff, Jitter, RetryPolicy};
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{Definition, JobNo, Span, Timestamp};
use evenkeel_store::{AtRiskStore, AttemptFilter, AttemptStore, PageRequest, RiskFilter};

use crate::body::Time;
use crate::small_cluster::{SmallCluster, job, pass, run_paused};

const POLL: Duration = Duration::from_secs(1);

fn every(secs: u64, tolerance: u64) -> Schedule {
    let interval = Interval::new(Span::from_secs(secs), None).unwrap();
    Schedule::Interval(interval.with_tolerance(Some(Span::from_secs(tolerance))))
}

/// Returns the reason for the condition of a job, or `None` if the condition is OK.
async fn trouble(cluster: &SmallCluster, job: JobNo) -> Option<Reason> {
    let (scope, page) = (cluster.scope().await, PageRequest::first(100));
    let listed = cluster.model.list_at_risk(&scope, RiskFilter::default(), page).await.unwrap();
    listed.items.into_iter().find(|at_risk| at_risk.no == job).map(|at_risk| at_risk.reason)
}

async fn statuses(cluster: &SmallCluster, job: JobNo) -> Vec<AttemptStatus> {
    let (scope, page) = (cluster.scope().await, PageRequest::first(100));
    let runs = cluster.model.list_attempts(&scope, AttemptFilter::default(), page).await.unwrap();
    let mut runs = runs.items;
    runs.retain(|run| run.key.job_no == job);
    runs.sort_by_key(|run| run.key);
    runs.into_iter().map(|run| run.status).collect()
}

/// Returns a blackout of `length` seconds that begins `from` seconds from now.
fn blackout(cluster: &SmallCluster, from: u64, length: u64) -> Blackout {
    let clock = |secs: u64| {
        let micros = cluster.time.db().saturating_add(Span::from_secs(secs)).as_micros();
        let of_day = micros / 1_000_000 % 86_400;
        let part = |unit: i64, count: i64| (of_day / unit % count) as i8;
        jiff::civil::time(part(3600, 24), part(60, 60), part(1, 60), 0)
    };
    Blackout { start: clock(from), end: clock(from + length) }
}

#[test]
fn job_that_waits_for_a_slot_is_reported_at_its_latest_start() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let _node = cluster.start("node", 1).await;
        // A run occupies the only worker slot for more than two hours.
        cluster.register(job(cluster.once_in(10), 14_400_000)).await;
        pass(20).await;
        let waits = cluster.register(job(every(200, 100), 1_000)).await;
        pass(299).await;
        assert_eq!(trouble(&cluster, waits).await, None);
        pass(4).await;
        assert_eq!(trouble(&cluster, waits).await, Some(Reason::Violated));
        // After the worker slot is free again, the condition of the job returns to OK.
        pass(5 * 3600).await;
        assert_eq!(trouble(&cluster, waits).await, None);
    });
}

#[test]
fn failure_is_a_warning_until_a_run_succeeds() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let _node = cluster.start("node", 4).await;
        let mut definition = Definition {
            retry: RetryPolicy {
                max_retries: 1,
                backoff: Backoff::Fixed { delay: Span::from_secs(60) },
                jitter: Jitter::None,
            },
            ..job(every(3_600, 1_800), 1_000)
        };
        definition.executor.config["fails_first"] = true.into();
        let fails = cluster.register(definition).await;
        pass(3_600 + 5).await;
        assert_eq!(trouble(&cluster, fails).await, Some(Reason::LastRunFailed));
        pass(60).await;
        assert_eq!(trouble(&cluster, fails).await, None);
        assert_eq!(
            statuses(&cluster, fails).await,
            [AttemptStatus::Failed, AttemptStatus::Completed]
        );
    });
}

/// The condition of the job returns to OK after a day, without a change of the job.
#[test]
fn failed_one_time_job_is_in_error_for_a_day() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let _node = cluster.start("node", 4).await;
        let mut definition = Definition {
            retry: RetryPolicy { max_retries: 0, ..RetryPolicy::deadline() },
            ..job(cluster.once_in(10), 1_000)
        };
        definition.executor.config["fails_first"] = true.into();
        let fails = cluster.register(definition).await;
        pass(30).await;
        assert_eq!(trouble(&cluster, fails).await, Some(Reason::GivenUp));
        pass(23 * 3600).await;
        assert_eq!(trouble(&cluster, fails).await, Some(Reason::GivenUp));
        pass(3600 + 60).await;
        assert_eq!(trouble(&cluster, fails).await, None);
        assert_eq!(statuses(&cluster, fails).await, [AttemptStatus::Failed]);
    });
}

#[test]
fn run_that_takes_too_long_is_reported_while_it_runs() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let _node = cluster.start("node", 4).await;
        // The run takes at least half an hour, but only ten minutes are allowed.
        let long = cluster.register(job(every(7_200, 600), 3_600_000)).await;
        pass(7_200 + 590).await;
        assert_eq!(trouble(&cluster, long).await, None);
        pass(15).await;
        assert_eq!(trouble(&cluster, long).await, Some(Reason::Violated));
        assert_eq!(statuses(&cluster, long).await, [AttemptStatus::Running]);
    });
}

#[test]
fn deadline_missed_by_a_blackout_is_reported_before_the_run_can_start() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let _node = cluster.start("node", 4).await;
        let definition = Definition {
            blackout_periods: vec![blackout(&cluster, 600, 3_600)],
            ..job(every(700, 60), 1_000)
        };
        let hidden = cluster.register(definition).await;
        pass(755).await;
        assert_eq!(trouble(&cluster, hidden).await, None);
        pass(8).await;
        assert_eq!(trouble(&cluster, hidden).await, Some(Reason::HeldByBlackout));
        assert_eq!(cluster.seen.lock().unwrap().runs, 0);
        pass(3_600).await;
        // The job runs for one of the scheduled times in the blackout, and skips the others.
        assert_eq!(
            statuses(&cluster, hidden).await,
            [AttemptStatus::Skipped, AttemptStatus::Completed]
        );
        assert_eq!(trouble(&cluster, hidden).await, None);
    });
}

#[test]
fn blackout_cancels_a_body_and_a_retry_follows() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let _node = cluster.start("node", 4).await;
        let definition = Definition {
            blackout_periods: vec![blackout(&cluster, 7_210, 600)],
            ..job(every(7_200, 7_200), 100_000)
        };
        let ended = cluster.register(definition).await;
        pass(7_220).await;
        assert_eq!(statuses(&cluster, ended).await, [AttemptStatus::Failed]);
        assert_eq!(trouble(&cluster, ended).await, Some(Reason::LastRunFailed));
        pass(1_000).await;
        assert_eq!(
            statuses(&cluster, ended).await,
            [AttemptStatus::Failed, AttemptStatus::Completed]
        );
        assert_eq!(cluster.seen.lock().unwrap().violations, Vec::<String>::new());
    });
}

#[test]
fn queued_run_stays_queued_during_a_blackout() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let _node = cluster.start("node", 1).await;
        cluster.record_starts();
        // A run occupies the only worker slot until the blackout begins.
        cluster.register(job(cluster.once_in(10), 1_000_000)).await;
        pass(20).await;
        let dark_from = 100;
        let definition = Definition {
            blackout_periods: vec![blackout(&cluster, dark_from, 3_600)],
            ..job(cluster.once_in(20), 1_000)
        };
        let light_again = cluster.time.db().saturating_add(Span::from_secs(dark_from + 3_600));
        let waits = cluster.register(definition).await;
        pass(60).await;
        assert_eq!(statuses(&cluster, waits).await, [AttemptStatus::Pending]);
        pass(dark_from + 3_600).await;
        let seen = cluster.seen.lock().unwrap();
        let starts = seen.starts.as_ref().unwrap();
        let first = starts.iter().find(|(key, _)| key.job_no == waits).unwrap().1;
        let light_again = Timestamp::from_micros(light_again.as_micros() / 1_000_000 * 1_000_000);
        assert!(first >= light_again && first.since(light_again) < Span::from_secs(3), "{first}");
        assert_eq!(seen.violations, Vec::<String>::new());
    });
}

#[test]
fn newer_time_replaces_an_active_run() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let _node = cluster.start("node", 4).await;
        cluster.record_starts();
        let definition =
            Definition { overlap: OverlapPolicy::Replace, ..job(every(60, 60), 1_000_000) };
        let replaced = cluster.register(definition).await;
        pass(4 * 60 + 5).await;
        let superseded = AttemptStatus::Superseded;
        assert_eq!(
            statuses(&cluster, replaced).await,
            [superseded, superseded, superseded, AttemptStatus::Running]
        );
        let seen = cluster.seen.lock().unwrap();
        for (key, began) in seen.starts.as_ref().unwrap() {
            assert!(began.since(key.scheduled_at) < Span::from_secs(1), "{key:?} at {began}");
        }
        assert_eq!(seen.violations, Vec::<String>::new());
    });
}
