//! The definition of a job.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blackout::{Blackout, LocalHours};
use crate::dedup::Dedup;
use crate::misfire::MisfirePolicy;
use crate::on_failure::OnFailure;
use crate::order::{Lane, Priority};
use crate::overlap::OverlapPolicy;
use crate::retry::RetryPolicy;
use crate::schedule::{Dst, Schedule};
use crate::time::{Span, Timestamp};
use crate::zone::Zone;

/// Descriptive data of a job, which firing never reads.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct About {
    /// Job name; if set, it is unique within the tenant and `configuration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Distinguishes several jobs for the same target, as in `Name@configuration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The id of the job's target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// The name of the job's target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_name: Option<String>,
    /// The URL of the job's target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The number of the target within the tenant. The target number is stored in a separate
    /// column, so that deleting a target can clear the number in all jobs of the target.
    #[serde(skip)]
    pub target: Option<i64>,
    /// The original cron expression of a job that now has an interval, kept so that a user can
    /// restore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_time: Option<String>,
    /// Free data of the users.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    /// Rejects duplicates of the job. Firing does not need deduplication keys, so jobs that differ
    /// only in their deduplication keys share a definition in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup: Option<Dedup>,
    /// True if the job takes its URL and executor from its target; see
    /// [`is_follower`](Self::is_follower).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows_target: bool,
}

impl About {
    /// True if the job takes its URL and executor from an existing target. After the target is
    /// deleted, the job keeps the last URL and executor of the target.
    pub const fn is_follower(&self) -> bool {
        self.follows_target && self.target.is_some()
    }
}

/// All settings that are needed to fire and run a job. Jobs with equal definitions share one copy
/// in memory, so this type contains as little as possible that is unique to one job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Definition {
    pub schedule: Schedule,
    #[serde(default, skip_serializing_if = "Bounds::is_open")]
    pub bounds: Bounds,
    #[serde(default, skip_serializing_if = "Zone::is_utc")]
    pub timezone: Zone,
    #[serde(default, skip_serializing_if = "Dst::is_default")]
    pub dst: Dst,
    pub executor: ExecutorSpec,
    /// Passed to the executor unchanged.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub payload: Value,
    pub retry: RetryPolicy,
    /// What happens to the schedule after a run has failed and no retries are left.
    #[serde(default)]
    pub on_exhausted: OnExhausted,
    /// Whether the job is paused or the run becomes a dead letter when no retries are left.
    #[serde(default, skip_serializing_if = "OnFailure::is_none")]
    pub on_failure: OnFailure,
    #[serde(default)]
    pub on_lost_worker: OnLostWorker,
    /// An attempt fails when more than this number of workers have died while they ran the attempt.
    #[serde(default = "default_max_crashes")]
    pub max_crashes: u16,
    /// An attempt is stopped after this long without output or progress.
    pub timeout: Span,
    /// A log line is written for attempts that run longer than this duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_expected_duration: Option<Span>,
    /// Attempts that run longer than this duration are stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_allowed_duration: Option<Span>,
    #[serde(default)]
    pub lane: Lane,
    #[serde(default)]
    pub priority: Priority,
    #[serde(default = "default_pool", skip_serializing_if = "is_default_pool")]
    pub pool: String,
    #[serde(default)]
    pub misfire: MisfirePolicy,
    /// A scheduled time counts as missed if no run has started this long after the scheduled time.
    #[serde(default = "default_misfire_after")]
    pub misfire_after: Span,
    #[serde(default)]
    pub overlap: OverlapPolicy,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blackout_periods: Vec<Blackout>,
    /// True if a run that would probably last into a blackout does not start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub avoid_blackout: bool,
    /// User-set average duration of successful runs, in place of the measured average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_override: Option<Span>,
    /// The load of one run, given as a duration; by default, the average duration of successful
    /// runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Span>,
    /// Local hours in which the balancer prefers to start the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer_window: Option<LocalHours>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dont_run_on_nodes: Vec<String>,
    /// At most `concurrency_limit` runs with the same concurrency key are active at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_limit: Option<u32>,
}

/// The executor of a job, and the configuration that only this executor understands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExecutorSpec {
    pub kind: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub config: Value,
}

impl ExecutorSpec {
    /// The executor type of a job whose executor is unknown, because the job's target has no URL
    /// yet. Runs of a job without an executor fail with [`Self::NO_EXECUTOR`].
    pub const NONE: &str = "none";
    pub const NO_EXECUTOR: &str = "no_executor";

    pub fn is_none(&self) -> bool {
        self.kind == Self::NONE
    }
}

/// Limits of a recurring schedule.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bounds {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u64>,
}

impl Bounds {
    fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

/// What happens to a recurring job when a run has failed and no retries are left.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExhausted {
    /// The job continues with its next scheduled time.
    #[default]
    Continue,
    Stop,
}

/// What happens to an attempt whose worker is lost.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLostWorker {
    /// Another worker starts the attempt again, so the attempt's side effects happen at least once.
    #[default]
    Retry,
    /// The attempt fails, so the attempt's side effects happen at most once.
    Fail,
}

impl Definition {
    pub const DEFAULT_TIMEOUT: Span = Span::from_secs(300);

    /// Returns a definition with this schedule, default policies and an executor that does nothing.
    pub fn noop(schedule: Schedule) -> Self {
        Self {
            schedule,
            bounds: Bounds::default(),
            timezone: Zone::utc(),
            dst: Dst::default(),
            executor: ExecutorSpec { kind: "noop".into(), config: Value::Null },
            payload: Value::Null,
            retry: RetryPolicy::standard(),
            on_exhausted: OnExhausted::default(),
            on_failure: OnFailure::default(),
            on_lost_worker: OnLostWorker::default(),
            max_crashes: default_max_crashes(),
            timeout: Self::DEFAULT_TIMEOUT,
            max_expected_duration: None,
            max_allowed_duration: None,
            lane: Lane::default(),
            priority: Priority::default(),
            pool: default_pool(),
            misfire: MisfirePolicy::default(),
            misfire_after: default_misfire_after(),
            overlap: OverlapPolicy::default(),
            blackout_periods: Vec::new(),
            avoid_blackout: false,
            average_override: None,
            cost: None,
            prefer_window: None,
            dont_run_on_nodes: Vec::new(),
            concurrency_key: None,
            concurrency_limit: None,
        }
    }
}

/// The worker pool of jobs and workers for which no pool is configured.
pub const DEFAULT_POOL: &str = "default";

fn default_pool() -> String {
    DEFAULT_POOL.into()
}

fn is_default_pool(pool: &String) -> bool {
    pool == DEFAULT_POOL
}

const fn default_max_crashes() -> u16 {
    3
}

const fn default_misfire_after() -> Span {
    Span::from_secs(60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{
        CalendarInterval, Cron, CronSchedule, Gap, Interval, Once, Overlap, Periodic,
    };

    #[test]
    fn stored_definition_reads_back() {
        let every = Interval::new(Span::from_secs(1800), None).unwrap();
        for schedule in [Schedule::Interval(every), Schedule::Once(Once::NOW)] {
            let definition = Definition {
                dont_run_on_nodes: vec!["crawler-3".into()],
                concurrency_key: Some("example.com".into()),
                ..Definition::noop(schedule)
            };
            let stored = serde_json::to_string(&definition).unwrap();
            assert_eq!(serde_json::from_str::<Definition>(&stored).unwrap(), definition);
        }
    }

    #[test]
    fn every_kind_of_schedule_reads_back() {
        let cron = Cron::parse("H 9 * * MON#1").unwrap().resolved(7, false);
        let every = CalendarInterval {
            every: "P1M".parse().unwrap(),
            anchor: Some(Timestamp::from_micros(7)),
            tolerance: Some(Span::from_secs(60)),
        };
        for schedule in [
            Schedule::Cron(CronSchedule { cron, max_duration: Some(Span::from_secs(60)) }),
            Schedule::Calendar(every),
            Schedule::Periodic(Periodic::new(Span::from_secs(60), None).unwrap()),
        ] {
            let definition = Definition {
                timezone: Zone::get("America/Toronto").unwrap(),
                dst: Dst { gap: Gap::Skip, overlap: Overlap::Both },
                blackout_periods: vec![Blackout {
                    start: jiff::civil::time(22, 0, 0, 0),
                    end: jiff::civil::time(6, 0, 0, 0),
                }],
                avoid_blackout: true,
                average_override: Some(Span::from_secs(5)),
                overlap: OverlapPolicy::Replace,
                ..Definition::noop(schedule)
            };
            let stored = serde_json::to_string(&definition).unwrap();
            assert_eq!(serde_json::from_str::<Definition>(&stored).unwrap(), definition);
        }
    }

    #[test]
    fn definition_of_an_older_version_is_read() {
        let stored = r#"{"schedule":{"kind":"interval","every":"30m"},"timezone":"Europe/Berlin",
            "executor":{"kind":"noop"},"retry":{"max_retries":3,"backoff":{"exponential":
            {"base":"1m","cap":"1h"}},"jitter":{"symmetric":{"percent":20}}},
            "on_exhausted":"continue","on_lost_worker":"retry","max_crashes":3,"timeout":"5m",
            "lane":"standard","priority":0,"misfire":"last","misfire_after":"1m","overlap":"skip"}"#;
        let read: Definition = serde_json::from_str(stored).unwrap();
        assert_eq!(read.timezone.name(), "Europe/Berlin");
        assert!(!read.avoid_blackout && read.dst.is_default());
    }

    #[test]
    fn stored_definition_with_an_impossible_interval_is_refused() {
        let every = Interval::new(Span::from_secs(1800), None).unwrap();
        let stored = serde_json::to_string(&Definition::noop(Schedule::Interval(every))).unwrap();
        let broken = stored.replace("30m", "3us");
        assert!(serde_json::from_str::<Definition>(&broken).is_err());
    }
}
