//! Simulates two typical jobs minute by minute: a periodic job whose data may be a day old, and a
//! nightly run that must finish by 06:00.

use std::cmp::Reverse;

use evenkeel_core::after_attempt::{Ended, RetryHint, Then, after_end};
use evenkeel_core::attempt::Outcome;
use evenkeel_core::condition::{Condition, Facts, Level, Reason, condition};
use evenkeel_core::history::DEFAULT_ALPHA;
use evenkeel_core::order::{DispatchKey, Lane, Priority};
use evenkeel_core::retry::RetryPolicy;
use evenkeel_core::schedule::{Cron, CronSchedule, Once, Periodic, Schedule};
use evenkeel_core::{AttemptNo, Definition, History, Span, StartWindow, Timestamp};

const MINUTE: Span = Span::from_secs(60);

fn hours(n: u64) -> Span {
    Span::from_secs(n * 3600)
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A job with its history, as a store would save it.
struct Job {
    definition: Definition,
    history: History,
    since: Timestamp,
    next_at: Timestamp,
    /// The scheduled time of the active run.
    live: Option<Timestamp>,
    attempt: u16,
    retry_at: Option<Timestamp>,
    running_since: Option<Timestamp>,
}

impl Job {
    fn new(schedule: Schedule, created: Timestamp) -> Self {
        let definition =
            Definition { retry: RetryPolicy::deadline(), ..Definition::noop(schedule) };
        let next_at = definition.timetable().first_after(created).unwrap();
        Self {
            definition,
            history: History::default(),
            since: created,
            next_at,
            live: None,
            attempt: 0,
            retry_at: None,
            running_since: None,
        }
    }

    /// A periodic job whose data may be a day old, with a cooldown of one hour.
    fn daily_data(created: Timestamp) -> Self {
        Self::new(Schedule::Periodic(Periodic::new(hours(24), Some(hours(1))).unwrap()), created)
    }

    /// A nightly job that starts at midnight and must finish by 06:00.
    fn nightly(created: Timestamp) -> Self {
        let cron = Cron::parse("0 0 * * *").unwrap();
        Self::new(Schedule::Cron(CronSchedule { cron, max_duration: Some(hours(6)) }), created)
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            definition: &self.definition,
            history: &self.history,
            since: self.since,
            active: true,
            next_at: Some(self.next_at),
            last_fired_at: None,
            live: self.live.is_some(),
            running_since: self.running_since,
        }
    }

    fn condition(&self, now: Timestamp) -> Condition {
        condition(&self.facts(), now)
    }

    fn window(&self) -> StartWindow {
        let past = self.definition.past(&self.history, self.since);
        let window = self.definition.window(self.live.unwrap_or(self.next_at), &past);
        let can_start_by =
            self.retry_at.map_or(window.can_start_by, |at| at.max(window.can_start_by));
        StartWindow { can_start_by, ..window }
    }

    fn start(&mut self, now: Timestamp) {
        self.running_since = Some(now);
        if self.retry_at.take().is_none() {
            self.live = Some(self.next_at);
            self.next_at = self.definition.timetable().next_after(self.next_at).unwrap();
        }
    }

    fn end(&mut self, now: Timestamp, outcome: Outcome) {
        let started_at = self.running_since.take().unwrap();
        self.history = self.history.after(outcome, started_at, now, DEFAULT_ALPHA);
        let attempt = AttemptNo(self.attempt);
        let again = RetryHint::ByPolicy;
        let ended = Ended { attempt, outcome, again, started_at, finished_at: now };
        match after_end(&self.definition, ended, 0.5) {
            Then::Retry { due } => {
                self.attempt += 1;
                self.retry_at = Some(due);
            }
            Then::EndRun { next_at, .. } => {
                (self.attempt, self.live) = (0, None);
                self.next_at = next_at.unwrap_or(self.next_at);
            }
        }
    }

    fn dispatch_key(&self) -> DispatchKey {
        DispatchKey {
            lane: Lane::Standard,
            priority: Reverse(Priority::default()),
            should_start_by: self.window().should_start_by,
            ready_at: self.next_at,
        }
    }
}

/// Returns each condition of a job with the minute in which it began.
fn diary(
    job: &mut Job,
    from: Timestamp,
    until: Timestamp,
    mut act: impl FnMut(&mut Job, Timestamp),
) -> Vec<(String, Reason)> {
    let mut seen = Vec::new();
    let mut now = from;
    while now <= until {
        act(job, now);
        let judged = job.condition(now);
        if let Some(change) = judged.changes_at {
            assert!(change > now, "a condition holds now");
        }
        if seen.last().is_none_or(|(_, last)| *last != judged.reason) {
            seen.push((now.to_string()[5..16].to_owned(), judged.reason));
        }
        now = now.saturating_add(MINUTE);
    }
    seen
}

fn told(diary: &[(String, Reason)]) -> Vec<(&str, Reason)> {
    diary.iter().map(|(when, reason)| (when.as_str(), *reason)).collect()
}

#[test]
fn data_that_may_be_a_day_old() {
    let mut job = Job::daily_data(at("2026-05-01T00:00:00Z"));
    // The new periodic job may start at once and has one day to succeed.
    assert_eq!(job.window().can_start_by, at("2026-05-01T00:00:00Z"));
    assert_eq!(job.window().should_start_by, at("2026-05-02T00:00:00Z"));
    let seen = diary(
        &mut job,
        at("2026-05-01T00:00:00Z"),
        at("2026-05-04T12:00:00Z"),
        |job, now| match now.to_string().as_str() {
            // A run of two hours succeeds.
            "2026-05-01T10:00:00.000000Z" => job.start(now),
            "2026-05-01T12:00:00.000000Z" => {
                job.end(now, Outcome::Completed);
                // The periodic job may start again after its cooldown. To finish by 10:00, the next
                // run must start by 08:00.
                assert_eq!(job.window().can_start_by, at("2026-05-01T13:00:00Z"));
                assert_eq!(job.window().should_start_by, at("2026-05-02T08:00:00Z"));
            }
            // The next run starts late, because no worker is free. Two attempts fail, the third
            // succeeds.
            "2026-05-02T09:00:00.000000Z" => job.start(now),
            "2026-05-02T09:30:00.000000Z" => {
                job.end(now, Outcome::Failed);
                assert_eq!(job.window().can_start_by, at("2026-05-02T09:35:00Z"));
            }
            "2026-05-02T09:35:00.000000Z" => job.start(now),
            "2026-05-02T09:40:00.000000Z" => {
                job.end(now, Outcome::Failed);
                assert_eq!(job.window().can_start_by, at("2026-05-02T10:40:00Z"));
                assert_eq!(job.window().should_start_by, at("2026-05-02T08:00:00Z"));
            }
            "2026-05-02T10:40:00.000000Z" => job.start(now),
            "2026-05-02T12:40:00.000000Z" => job.end(now, Outcome::Completed),
            _ => {}
        },
    );
    use Reason::{LikelyViolatedRunning, LikelyViolatedWaiting, NeverRan, OnTime, Violated};
    assert_eq!(
        told(&seen),
        [
            ("05-01T00:00", NeverRan),
            ("05-01T10:00", OnTime),
            ("05-02T08:01", LikelyViolatedWaiting),
            // A run of two hours that starts at 09:00 finishes after the deadline at 10:00.
            ("05-02T09:00", LikelyViolatedRunning),
            ("05-02T09:30", LikelyViolatedWaiting),
            ("05-02T09:35", LikelyViolatedRunning),
            ("05-02T09:40", LikelyViolatedWaiting),
            ("05-02T10:01", Violated),
            // The next deadline counts from 10:40, when the successful run began.
            ("05-02T12:40", OnTime),
            ("05-03T08:41", LikelyViolatedWaiting),
            ("05-03T10:41", Violated),
        ]
    );
}

#[test]
fn nightly_run_that_must_end_by_six() {
    let mut job = Job::nightly(at("2026-05-01T18:00:00Z"));
    assert_eq!(job.window().can_start_by, at("2026-05-02T00:00:00Z"));
    assert_eq!(job.window().should_start_by, at("2026-05-02T06:00:00Z"));
    let seen = diary(
        &mut job,
        at("2026-05-01T18:00:00Z"),
        at("2026-05-04T23:59:00Z"),
        |job, now| match now.to_string().as_str() {
            "2026-05-02T00:00:00.000000Z" => job.start(now),
            "2026-05-02T02:00:00.000000Z" => {
                job.end(now, Outcome::Completed);
                assert_eq!(job.window().can_start_by, at("2026-05-03T00:00:00Z"));
                assert_eq!(job.window().should_start_by, at("2026-05-03T04:00:00Z"));
            }
            // In the next night, the run fails at once and is retried after five minutes.
            "2026-05-03T00:00:00.000000Z" => job.start(now),
            "2026-05-03T00:01:00.000000Z" => job.end(now, Outcome::Failed),
            "2026-05-03T00:06:00.000000Z" => job.start(now),
            "2026-05-03T02:06:00.000000Z" => job.end(now, Outcome::Completed),
            // In the third night, no worker is free before 05:00.
            "2026-05-04T05:00:00.000000Z" => job.start(now),
            "2026-05-04T07:00:00.000000Z" => job.end(now, Outcome::Completed),
            _ => {}
        },
    );
    use Reason::{
        LastRunFailed, LikelyViolatedRunning, LikelyViolatedWaiting, NeverRan, OnTime, Violated,
    };
    assert_eq!(
        told(&seen),
        [
            ("05-01T18:00", NeverRan),
            ("05-02T00:00", OnTime),
            ("05-03T00:01", LastRunFailed),
            ("05-03T02:06", OnTime),
            ("05-04T04:01", LikelyViolatedWaiting),
            ("05-04T05:00", LikelyViolatedRunning),
            ("05-04T06:01", Violated),
            ("05-04T07:00", OnTime),
        ]
    );
}

#[test]
fn one_time_job_promises_to_start() {
    let mut job = Job::new(Schedule::Once(Once::NOW), at("2026-05-01T00:00:00Z"));
    job.definition.retry = RetryPolicy { max_retries: 1, ..RetryPolicy::deadline() };
    job.definition.average_override = Some(hours(1));
    let mut reasons = Vec::new();
    let mut see = |job: &Job, minute: &str| {
        let moment = at(&format!("2026-05-01T00:{minute}:30Z"));
        let mut facts = job.facts();
        facts.next_at = job.live.is_none().then_some(job.next_at).filter(|_| job.attempt == 0);
        facts.last_fired_at = Some(job.next_at);
        reasons.push(condition(&facts, moment).reason);
    };
    see(&job, "00");
    see(&job, "01");
    job.live = Some(job.next_at);
    job.running_since = Some(at("2026-05-01T00:02:00Z"));
    see(&job, "02");
    job.end(at("2026-05-01T00:03:00Z"), Outcome::Failed);
    // After its first start, a job that runs once has no deadline, even if a retry starts late.
    see(&job, "07");
    job.running_since = Some(at("2026-05-01T00:08:00Z"));
    job.end(at("2026-05-01T00:09:00Z"), Outcome::Failed);
    job.attempt = 1;
    see(&job, "10");
    use Reason::{GivenUp, LastRunFailed, LikelyViolatedWaiting, OnTime, Violated};
    assert_eq!(reasons, [LikelyViolatedWaiting, Violated, OnTime, LastRunFailed, GivenUp]);
}

#[test]
fn job_nearer_to_its_deadline_goes_first() {
    let mut data = Job::daily_data(at("2026-05-01T00:00:00Z"));
    data.start(at("2026-05-01T05:00:00Z"));
    data.end(at("2026-05-01T06:00:00Z"), Outcome::Completed);
    let mut night = Job::nightly(at("2026-04-30T12:00:00Z"));
    night.start(at("2026-05-01T00:00:00Z"));
    night.end(at("2026-05-01T03:00:00Z"), Outcome::Completed);
    // To finish by 05:00, the periodic job must start by 04:00. To finish by 06:00, the nightly job
    // must start by 03:00.
    let midnight = at("2026-05-02T00:00:00Z");
    for job in [&data, &night] {
        assert!(job.window().can_start_by <= midnight);
        assert_eq!(job.condition(midnight).level(), Level::Ok);
    }
    assert!(night.dispatch_key() < data.dispatch_key());
    // If the nightly job becomes faster, the periodic job is dispatched first.
    night.history.average_good_duration = Some(hours(1));
    assert!(data.dispatch_key() < night.dispatch_key());
}
