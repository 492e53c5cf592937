//! One node and a few jobs: how soon it is noticed that a promise is broken, and what policies do.

use std::time::Duration;

use evenkeel_core::blackout::Blackout;
use evenkeel_core::condition::Reason;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::retry::{Backoff, Jitter, RetryPolicy};
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::schedule::{Interval, Once, Schedule};
use evenkeel_core::{Definition, JobNo, Span, Timestamp};
use evenkeel_store::{AtRiskStore, AttemptFilter, AttemptStore, PageRequest, RiskFilter};

use crate::body::Time;
use crate::calm::{Calm, job, play};

const POLL: Duration = Duration::from_secs(1);

fn every(secs: u64, tolerance: u64) -> Schedule {
    let interval = Interval::new(Span::from_secs(secs), None).unwrap();
    Schedule::Interval(interval.with_tolerance(Some(Span::from_secs(tolerance))))
}

/// Once, so many seconds from now.
fn once(calm: &Calm, secs: u64) -> Schedule {
    let at = calm.time.db().saturating_add(Span::from_secs(secs));
    Schedule::Once(Once { at: Some(at), tolerance: None })
}

async fn pass(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}

/// What is known of a job's condition, if it is not OK.
async fn trouble(calm: &Calm, job: JobNo) -> Option<Reason> {
    let (scope, page) = (calm.scope().await, PageRequest::first(100));
    let listed = calm.model.list_at_risk(&scope, RiskFilter::default(), page).await.unwrap();
    listed.items.into_iter().find(|at_risk| at_risk.no == job).map(|at_risk| at_risk.reason)
}

async fn statuses(calm: &Calm, job: JobNo) -> Vec<AttemptStatus> {
    let (scope, page) = (calm.scope().await, PageRequest::first(100));
    let runs = calm.model.list_attempts(&scope, AttemptFilter::default(), page).await.unwrap();
    let mut runs = runs.items;
    runs.retain(|run| run.key.job_no == job);
    runs.sort_by_key(|run| run.key);
    runs.into_iter().map(|run| run.status).collect()
}

/// A blackout from so many seconds from now on.
fn dark(calm: &Calm, from: u64, length: u64) -> Blackout {
    let clock = |secs: u64| {
        let micros = calm.time.db().saturating_add(Span::from_secs(secs)).as_micros();
        let of_day = micros / 1_000_000 % 86_400;
        let part = |unit: i64, count: i64| (of_day / unit % count) as i8;
        jiff::civil::time(part(3600, 24), part(60, 60), part(1, 60), 0)
    };
    Blackout { start: clock(from), end: clock(from + length) }
}

#[test]
fn what_waits_for_a_place_is_noticed_when_it_should_have_started() {
    play(async {
        let calm = Calm::new(POLL);
        let _node = calm.start("node", 1).await;
        // The only place is taken for two hours and more.
        calm.register(job(once(&calm, 10), 14_400_000)).await;
        pass(20).await;
        let waits = calm.register(job(every(200, 100), 1_000)).await;
        pass(299).await;
        assert_eq!(trouble(&calm, waits).await, None);
        pass(4).await;
        assert_eq!(trouble(&calm, waits).await, Some(Reason::Violated));
        // When there is room again, it gets well by itself.
        pass(5 * 3600).await;
        assert_eq!(trouble(&calm, waits).await, None);
    });
}

#[test]
fn a_failure_is_a_warning_until_a_run_is_good() {
    play(async {
        let calm = Calm::new(POLL);
        let _node = calm.start("node", 4).await;
        let mut definition = Definition {
            retry: RetryPolicy {
                max_retries: 1,
                backoff: Backoff::Fixed { delay: Span::from_secs(60) },
                jitter: Jitter::None,
            },
            ..job(every(3_600, 1_800), 1_000)
        };
        definition.executor.config["fails_first"] = true.into();
        let fails = calm.register(definition).await;
        pass(3_600 + 5).await;
        assert_eq!(trouble(&calm, fails).await, Some(Reason::LastRunFailed));
        pass(60).await;
        assert_eq!(trouble(&calm, fails).await, None);
        assert_eq!(statuses(&calm, fails).await, [AttemptStatus::Failed, AttemptStatus::Completed]);
    });
}

/// Its error ends by itself: nobody touches the job in between.
#[test]
fn a_job_that_runs_once_and_failed_is_in_trouble_for_a_day() {
    play(async {
        let calm = Calm::new(POLL);
        let _node = calm.start("node", 4).await;
        let mut definition = Definition {
            retry: RetryPolicy { max_retries: 0, ..RetryPolicy::deadline() },
            ..job(once(&calm, 10), 1_000)
        };
        definition.executor.config["fails_first"] = true.into();
        let fails = calm.register(definition).await;
        pass(30).await;
        assert_eq!(trouble(&calm, fails).await, Some(Reason::GivenUp));
        pass(23 * 3600).await;
        assert_eq!(trouble(&calm, fails).await, Some(Reason::GivenUp));
        pass(3600 + 60).await;
        assert_eq!(trouble(&calm, fails).await, None);
        assert_eq!(statuses(&calm, fails).await, [AttemptStatus::Failed]);
    });
}

#[test]
fn a_run_that_goes_on_for_too_long_is_noticed_while_it_runs() {
    play(async {
        let calm = Calm::new(POLL);
        let _node = calm.start("node", 4).await;
        // Half an hour at least, where ten minutes are allowed.
        let long = calm.register(job(every(7_200, 600), 3_600_000)).await;
        pass(7_200 + 590).await;
        assert_eq!(trouble(&calm, long).await, None);
        pass(15).await;
        assert_eq!(trouble(&calm, long).await, Some(Reason::Violated));
        assert_eq!(statuses(&calm, long).await, [AttemptStatus::Running]);
    });
}

#[test]
fn a_promise_that_a_blackout_breaks_is_noticed_before_it_can_start() {
    play(async {
        let calm = Calm::new(POLL);
        let _node = calm.start("node", 4).await;
        let definition = Definition {
            blackout_periods: vec![dark(&calm, 600, 3_600)],
            ..job(every(700, 60), 1_000)
        };
        let hidden = calm.register(definition).await;
        pass(755).await;
        assert_eq!(trouble(&calm, hidden).await, None);
        pass(8).await;
        assert_eq!(trouble(&calm, hidden).await, Some(Reason::HeldByBlackout));
        assert_eq!(calm.seen.lock().unwrap().runs, 0);
        pass(3_600).await;
        // Of the times in the dark one runs.
        assert_eq!(
            statuses(&calm, hidden).await,
            [AttemptStatus::Skipped, AttemptStatus::Completed]
        );
        assert_eq!(trouble(&calm, hidden).await, None);
    });
}

#[test]
fn a_blackout_ends_what_runs_and_a_retry_follows_it() {
    play(async {
        let calm = Calm::new(POLL);
        let _node = calm.start("node", 4).await;
        let definition = Definition {
            blackout_periods: vec![dark(&calm, 7_210, 600)],
            ..job(every(7_200, 7_200), 100_000)
        };
        let ended = calm.register(definition).await;
        pass(7_220).await;
        assert_eq!(statuses(&calm, ended).await, [AttemptStatus::Failed]);
        assert_eq!(trouble(&calm, ended).await, Some(Reason::LastRunFailed));
        pass(1_000).await;
        assert_eq!(statuses(&calm, ended).await, [AttemptStatus::Failed, AttemptStatus::Completed]);
        assert_eq!(calm.seen.lock().unwrap().violations, Vec::<String>::new());
    });
}

#[test]
fn what_waits_in_the_queue_stays_there_while_it_is_dark() {
    play(async {
        let calm = Calm::new(POLL);
        let _node = calm.start("node", 1).await;
        calm.seen.lock().unwrap().starts = Some(Vec::new());
        // The only place is taken until it is dark.
        calm.register(job(once(&calm, 10), 1_000_000)).await;
        pass(20).await;
        let dark_from = 100;
        let definition = Definition {
            blackout_periods: vec![dark(&calm, dark_from, 3_600)],
            ..job(once(&calm, 20), 1_000)
        };
        let light_again = calm.time.db().saturating_add(Span::from_secs(dark_from + 3_600));
        let waits = calm.register(definition).await;
        pass(60).await;
        assert_eq!(statuses(&calm, waits).await, [AttemptStatus::Pending]);
        pass(dark_from + 3_600).await;
        let seen = calm.seen.lock().unwrap();
        let starts = seen.starts.as_ref().unwrap();
        let first = starts.iter().find(|(key, _)| key.job_no == waits).unwrap().1;
        let light_again = Timestamp::from_micros(light_again.as_micros() / 1_000_000 * 1_000_000);
        assert!(first >= light_again && first.since(light_again) < Span::from_secs(3), "{first}");
        assert_eq!(seen.violations, Vec::<String>::new());
    });
}

#[test]
fn a_newer_time_takes_the_place_of_what_runs() {
    play(async {
        let calm = Calm::new(POLL);
        let _node = calm.start("node", 4).await;
        calm.seen.lock().unwrap().starts = Some(Vec::new());
        let definition =
            Definition { overlap: OverlapPolicy::Replace, ..job(every(60, 60), 1_000_000) };
        let replaced = calm.register(definition).await;
        pass(4 * 60 + 5).await;
        let superseded = AttemptStatus::Superseded;
        assert_eq!(
            statuses(&calm, replaced).await,
            [superseded, superseded, superseded, AttemptStatus::Running]
        );
        let seen = calm.seen.lock().unwrap();
        for (key, began) in seen.starts.as_ref().unwrap() {
            assert!(began.since(key.scheduled_at) < Span::from_secs(1), "{key:?} at {began}");
        }
        assert_eq!(seen.violations, Vec::<String>::new());
    });
}
