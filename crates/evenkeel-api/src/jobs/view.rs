//! A job as people see it.

use evenkeel_core::job::{OnExhausted, OnLostWorker};
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::order::Lane;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::retry::{Backoff, Jitter};
use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobId, Schedule, Span, Timestamp};
use evenkeel_store::{Job, Standing};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// When a job runs, in its canonical form.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ScheduleView {
    /// Again and again, a fixed time apart.
    Interval {
        /// The time between two runs, like `30m`.
        #[schema(value_type = String, example = "30m")]
        every: Span,
        /// The time its rhythm is tied to, if it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, format = DateTime)]
        anchor: Option<Timestamp>,
    },
    /// One time.
    Once {
        /// When; left out: as soon as the job exists.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>, format = DateTime)]
        at: Option<Timestamp>,
    },
}

impl From<&Schedule> for ScheduleView {
    fn from(schedule: &Schedule) -> Self {
        match schedule {
            Schedule::Interval(interval) => {
                Self::Interval { every: interval.every(), anchor: interval.anchor() }
            }
            Schedule::Once(once) => Self::Once { at: once.at },
        }
    }
}

/// A job.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct JobView {
    /// Its id.
    #[schema(value_type = uuid::Uuid)]
    pub id: JobId,
    /// Its name; that of its source if it has none of its own.
    pub name: Option<String>,
    /// Tells several jobs of one name apart.
    pub configuration: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// What it is about.
    pub source_id: Option<String>,
    /// The name of that.
    pub source_name: Option<String>,
    /// Its address.
    pub url: Option<String>,
    /// `pending`, `scheduled`, `running`, `paused`, `completed`, `failed` or `cancelled`.
    #[schema(value_type = String)]
    pub status: JobStatus,
    /// When it runs.
    pub schedule: ScheduleView,
    /// The same, if it is an interval of whole minutes: so many of `interval_type`.
    pub interval_minutes: Option<u64>,
    /// The longest of `minutes`, `hours`, `days` that says it in a whole number.
    pub interval_type: Option<&'static str>,
    /// False: it runs once, as soon as it exists.
    pub schedule_enabled: bool,
    /// The zone its times are meant in.
    pub timezone: String,
    /// What runs it.
    pub executor_type: String,
    /// Settings of that. Viewers see neither values of headers and variables nor credentials in
    /// addresses.
    #[schema(value_type = Object)]
    pub executor_config: Value,
    /// Passed to the executor as it is.
    pub payload: Value,
    /// Tries after the first one.
    pub max_retries: u16,
    /// The wait before the first retry.
    pub retry_backoff_seconds: u64,
    /// How the wait grows: `exponential`, `fixed` or `stages`.
    pub retry_backoff: &'static str,
    /// By how much chance changes it.
    pub retry_jitter_percent: u8,
    /// The longest silence of a body.
    pub timeout_sec: u64,
    /// What takes longer is ended.
    #[schema(value_type = Option<String>)]
    pub max_allowed_duration: Option<Span>,
    /// Its weight in its lane.
    pub priority: u8,
    /// `critical`, `standard` or `batch`.
    #[schema(value_type = String)]
    pub lane: Lane,
    /// The workers that may take it.
    pub pool: String,
    /// What is done with missed times: `last`, `skip` or `all`.
    #[schema(value_type = String)]
    pub misfire: MisfirePolicy,
    /// A time this late is missed.
    #[schema(value_type = String)]
    pub misfire_after: Span,
    /// What is done when it is due while it runs: `skip`, `queue` or `allow`.
    #[schema(value_type = String)]
    pub overlap: OverlapPolicy,
    /// What becomes of an execution whose worker is lost: `retry` or `fail`.
    #[schema(value_type = String)]
    pub on_lost_worker: OnLostWorker,
    /// An execution that has lost more workers than this has failed.
    pub max_crashes: u16,
    /// What becomes of it when retries are used up: `continue` or `stop`.
    #[schema(value_type = String)]
    pub on_exhausted: OnExhausted,
    /// Its next regular time.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_run_at: Option<Timestamp>,
    /// When its last execution started.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_run_at: Option<Timestamp>,
    /// When its last execution ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_end_at: Option<Timestamp>,
    /// When its last good execution started.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_good_start_at: Option<Timestamp>,
    /// When its last good execution ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_good_end_at: Option<Timestamp>,
    /// The last regular time that was fired or skipped.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_scheduled_at: Option<Timestamp>,
    /// Executions in a row that have failed since the last good one.
    pub consecutive_failures: u32,
    /// Moving average of the duration of good executions.
    pub average_duration_ms: Option<u64>,
    /// Executions it has had in its life.
    pub execution_count: u64,
    /// Does it wait to be resumed?
    pub is_paused: bool,
    /// Raised by every command.
    pub generation: i32,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was last changed by a command.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Whatever else is kept with it.
    #[schema(value_type = Object)]
    pub metadata: Value,
}

impl From<Job> for JobView {
    fn from(job: Job) -> Self {
        let status = job.status();
        let Job { about, definition, history, .. } = job;
        let (interval_minutes, interval_type) = match &definition.schedule {
            Schedule::Interval(interval) => in_units(interval.every()).unzip(),
            Schedule::Once(_) => (None, None),
        };
        let (retry_backoff, wait) = match &definition.retry.backoff {
            Backoff::Exponential { base, .. } => ("exponential", *base),
            Backoff::Fixed { delay } => ("fixed", *delay),
            Backoff::Stages { delays } => ("stages", delays.first().copied().unwrap_or(Span::ZERO)),
        };
        Self {
            id: job.id,
            name: about.name.or_else(|| about.source_name.clone()),
            configuration: about.configuration,
            description: about.description,
            source_id: about.source_id,
            source_name: about.source_name,
            url: about.url,
            status,
            schedule: (&definition.schedule).into(),
            interval_minutes,
            interval_type,
            schedule_enabled: !matches!(&definition.schedule, Schedule::Once(once) if once.at.is_none()),
            timezone: definition.timezone,
            executor_type: definition.executor.kind,
            executor_config: object(definition.executor.config),
            payload: definition.payload,
            max_retries: definition.retry.max_retries,
            retry_backoff_seconds: seconds(wait),
            retry_backoff,
            retry_jitter_percent: match definition.retry.jitter {
                Jitter::None => 0,
                Jitter::Symmetric { percent } | Jitter::Additive { percent } => percent,
            },
            timeout_sec: seconds(definition.timeout),
            max_allowed_duration: definition.max_allowed_duration,
            priority: definition.priority.get(),
            lane: definition.lane,
            pool: definition.pool,
            misfire: definition.misfire,
            misfire_after: definition.misfire_after,
            overlap: definition.overlap,
            on_lost_worker: definition.on_lost_worker,
            max_crashes: definition.max_crashes,
            on_exhausted: definition.on_exhausted,
            next_run_at: job.next_at,
            last_run_at: history.last_start_at,
            last_end_at: history.last_end_at,
            last_good_start_at: history.last_good_start_at,
            last_good_end_at: history.last_good_end_at,
            last_scheduled_at: job.last_fired_at,
            consecutive_failures: history.consecutive_failures,
            average_duration_ms: history.average_good_duration.map(Span::as_millis),
            execution_count: job.executions,
            is_paused: job.standing == Standing::Paused,
            generation: job.generation,
            created_at: job.created_at,
            updated_at: job.updated_at,
            metadata: object(about.metadata),
        }
    }
}

/// An object that was left out is an empty one.
fn object(value: Value) -> Value {
    if value.is_null() { Value::Object(Map::new()) } else { value }
}

fn seconds(span: Span) -> u64 {
    span.as_micros() / 1_000_000
}

/// A span as a whole number of the longest unit that fits.
fn in_units(span: Span) -> Option<(u64, &'static str)> {
    [(86_400, "days"), (3600, "hours"), (60, "minutes")].into_iter().find_map(|(secs, name)| {
        let unit = Span::from_secs(secs).as_micros();
        span.as_micros().is_multiple_of(unit).then_some((span.as_micros() / unit, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_said_in_the_longest_unit_that_fits() {
        for (secs, shown) in [
            (1800, Some((30, "minutes"))),
            (5400, Some((90, "minutes"))),
            (21_600, Some((6, "hours"))),
            (172_800, Some((2, "days"))),
            (90, None),
        ] {
            assert_eq!(in_units(Span::from_secs(secs)), shown);
        }
    }
}
