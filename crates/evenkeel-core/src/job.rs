//! What a job is.

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

/// What people call a job and know about it. Firing never looks at it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct About {
    /// Unique within its tenant and configuration, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tells several schedules of one target apart: `Name@configuration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What the job is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_id: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_name: Option<String>,
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The number of its target within the tenant. Stores keep it apart: a target that goes away
    /// takes it from the jobs that name it.
    #[serde(skip)]
    pub target: Option<i64>,
    /// The cron expression it had before an interval took its place, kept for those who want to
    /// go back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_time: Option<String>,
    /// Whatever else the users keep with it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    /// That it is not to be there twice. Firing does not look at it, so jobs that differ in their
    /// keys alone go on to share a definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup: Option<Dedup>,
    /// It has its address and its executor from its target; see [`is_follower`](Self::is_follower).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows_target: bool,
}

impl About {
    /// Does it run whatever its target says? A target that goes away leaves what it said last, as
    /// the job's own.
    pub const fn is_follower(&self) -> bool {
        self.follows_target && self.target.is_some()
    }
}

/// All that firing and running a job takes. Equal definitions are shared in memory, so it holds
/// nothing that tells one job from another unless it must.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Definition {
    /// When it runs.
    pub schedule: Schedule,
    /// First and last time, and how often at most.
    #[serde(default, skip_serializing_if = "Bounds::is_open")]
    pub bounds: Bounds,
    /// The zone its times are meant in.
    #[serde(default, skip_serializing_if = "Zone::is_utc")]
    pub timezone: Zone,
    /// What it does when the clocks there are changed.
    #[serde(default, skip_serializing_if = "Dst::is_default")]
    pub dst: Dst,
    /// What runs it.
    pub executor: ExecutorSpec,
    /// Passed to the executor as it is.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub payload: Value,
    /// When a failed run is tried again.
    pub retry: RetryPolicy,
    /// What becomes of the job when no retries are left.
    #[serde(default)]
    pub on_exhausted: OnExhausted,
    /// What else is done then.
    #[serde(default, skip_serializing_if = "OnFailure::is_none")]
    pub on_failure: OnFailure,
    /// What becomes of an attempt whose worker is lost.
    #[serde(default)]
    pub on_lost_worker: OnLostWorker,
    /// An attempt that has lost more workers than this has failed.
    #[serde(default = "default_max_crashes")]
    pub max_crashes: u16,
    /// The longest silence of a body.
    pub timeout: Span,
    /// Longer than this is logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_expected_duration: Option<Span>,
    /// Longer than this is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_allowed_duration: Option<Span>,
    /// Its lane.
    #[serde(default)]
    pub lane: Lane,
    /// Its weight in the lane.
    #[serde(default)]
    pub priority: Priority,
    /// The workers that may take it.
    #[serde(default = "default_pool", skip_serializing_if = "is_default_pool")]
    pub pool: String,
    /// What is done with missed times.
    #[serde(default)]
    pub misfire: MisfirePolicy,
    /// A time this late is missed.
    #[serde(default = "default_misfire_after")]
    pub misfire_after: Span,
    /// What is done when it is due while it runs.
    #[serde(default)]
    pub overlap: OverlapPolicy,
    /// Local hours in which it never starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blackout_periods: Vec<Blackout>,
    /// It does not start what would probably run into one of them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub avoid_blackout: bool,
    /// How long a good run takes, whatever was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_override: Option<Span>,
    /// How much a run counts for when load is spread, whatever its runs take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Span>,
    /// Local hours in which it would best run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer_window: Option<LocalHours>,
    /// Names of nodes that never run it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dont_run_on_nodes: Vec<String>,
    /// At most `concurrency_limit` runs with this key go on at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
    /// See `concurrency_key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_limit: Option<u32>,
}

/// The executor of a job and its settings, which only that executor understands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExecutorSpec {
    /// `noop`, `http`, `shell`…
    pub kind: String,
    /// Its settings.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub config: Value,
}

impl ExecutorSpec {
    /// The executor of a job that has none: it is about a target of which nobody knows the address.
    /// Its runs fail with [`Self::NO_EXECUTOR`].
    pub const NONE: &str = "none";
    /// Why runs of such a job fail.
    pub const NO_EXECUTOR: &str = "no_executor";

    /// Is there nothing that could run the job?
    pub fn is_none(&self) -> bool {
        self.kind == Self::NONE
    }
}

/// Limits of a recurring schedule.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Bounds {
    /// No run before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// No run after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Timestamp>,
    /// No more runs than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u64>,
}

impl Bounds {
    fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

/// What becomes of a recurring job whose run has failed for good.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExhausted {
    /// It goes on with its next time.
    #[default]
    Continue,
    /// It stops.
    Stop,
}

/// What becomes of an attempt whose worker is lost.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLostWorker {
    /// Another worker starts it again: its effects happen at least once.
    #[default]
    Retry,
    /// It has failed: its effects happen at most once.
    Fail,
}

impl Definition {
    /// The longest silence of a body unless the job says otherwise.
    pub const DEFAULT_TIMEOUT: Span = Span::from_secs(300);

    /// A job that does nothing on `schedule`, with every policy as by default.
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

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The pool of jobs and workers that name none.
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
    fn a_stored_definition_reads_back() {
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
    fn every_kind_of_schedule_reads_back_with_all_that_belongs_to_it() {
        let cron = Cron::parse("H 9 * * MON#1").unwrap().settled(7, false);
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
    fn a_definition_that_an_older_version_stored_is_read() {
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
    fn a_stored_definition_with_an_impossible_interval_is_not_read() {
        let every = Interval::new(Span::from_secs(1800), None).unwrap();
        let stored = serde_json::to_string(&Definition::noop(Schedule::Interval(every))).unwrap();
        let broken = stored.replace("30m", "3us");
        assert!(serde_json::from_str::<Definition>(&broken).is_err());
    }
}
