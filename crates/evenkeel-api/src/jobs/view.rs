//! A job as people see it.

use evenkeel_commands::{DedupWords, RetryWords, condition_of};
use evenkeel_core::job::{OnExhausted, OnLostWorker};
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::on_failure::OnFailure;
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::{Gap, Overlap};
use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobId, Schedule, Span, Timestamp};
use evenkeel_store::{Job, JobState};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::schedule::{BlackoutView, HoursView, OtherWords, ScheduleView};

/// What is done when a run has failed for good.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct OnFailureView {
    /// `none`, `pause` or `dead_letter`.
    pub action: &'static str,
    /// So many runs in a row must fail before it is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u16>,
    /// What people are told then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl From<OnFailure> for OnFailureView {
    fn from(on_failure: OnFailure) -> Self {
        match on_failure {
            OnFailure::None => Self { action: "none", after: None, note: None },
            OnFailure::Pause { after, note } => Self { action: "pause", after: Some(after), note },
            OnFailure::DeadLetter => Self { action: "dead_letter", after: None, note: None },
        }
    }
}

/// A job.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct JobView {
    /// Its id.
    #[schema(value_type = uuid::Uuid)]
    pub id: JobId,
    /// Its number within its tenant, counted from 1 and never given again. Paths take the `id`.
    pub number: i64,
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
    /// The number of its target.
    pub target: Option<i64>,
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
    /// The expression, if it is a cron one.
    pub cron_expression: Option<String>,
    /// The same.
    pub cron_schedule: Option<String>,
    /// The same; or the expression that an interval has taken the place of.
    pub schedule_time: Option<String>,
    /// How long after its time a run must be over, if it has a cron expression and says so.
    #[schema(value_type = Option<String>)]
    pub cron_max_schedule_duration: Option<Span>,
    /// How stale it may be, if it is periodic.
    #[schema(value_type = Option<String>)]
    pub scheduling_period: Option<Span>,
    /// Its pause after each run, if it is periodic.
    #[schema(value_type = Option<String>)]
    pub cooldown_duration: Option<Span>,
    /// Of a cron schedule: does it run at the very times that it names? Otherwise some seconds
    /// later. Of an interval whose times are chosen: does it start with its slot, and stay there?
    pub exact: Option<bool>,
    /// The zone its times are meant in.
    pub timezone: String,
    /// The same.
    pub tz: String,
    /// What becomes of times that the clocks jump over: `shift` or `skip`.
    #[schema(value_type = String)]
    pub dst_gap: Gap,
    /// What becomes of times that the clocks show twice: `first`, `last` or `both`.
    #[schema(value_type = String)]
    pub dst_overlap: Overlap,
    /// No run before.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub start_at: Option<Timestamp>,
    /// No run after.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub end_at: Option<Timestamp>,
    /// No more regular times than this.
    pub max_runs: Option<u64>,
    /// So many it has had.
    pub run_count: u64,
    /// Local hours in which it neither starts nor runs.
    pub blackout_periods: Vec<BlackoutView>,
    /// Does it not start what would probably run into one of them?
    pub avoid_blackout: bool,
    /// Local hours in which it would best run.
    pub prefer_window: Option<HoursView>,
    /// Names of nodes that never run it.
    pub dont_run_on_nodes: Vec<String>,
    /// `OK`, `WARNING` or `ERROR`: does it keep its promise?
    pub condition: &'static str,
    /// Why: `on_time`, `never_ran`, `violated`…
    pub condition_reason: &'static str,
    /// What runs it.
    pub executor_type: String,
    /// Settings of that. Viewers see `{"redacted": true}` in place of bodies, arguments and values of
    /// headers and variables, and `***` in place of credentials and values of the query in addresses.
    /// Sent back, these change nothing.
    #[schema(value_type = Object)]
    pub executor_config: Value,
    /// Passed to the executor, with values in place of `{"secret": "name"}`. Viewers see
    /// `{"redacted": true}`.
    pub payload: Value,
    /// The preset that its retries are in every field: `standard`, `interval`, `queue`, `deadline` or
    /// `cron_service`; null if they are none of these.
    pub retry_policy: Option<&'static str>,
    /// Tries after the first one.
    pub max_retries: u16,
    /// How the wait grows: `exponential`, `fixed` or `stages`.
    pub retry_backoff: &'static str,
    /// The wait before the first retry.
    pub retry_backoff_seconds: u64,
    /// The longest wait, if it is `exponential`.
    pub retry_backoff_cap_seconds: Option<u64>,
    /// The waits one after the other, if there are `stages`; the last one stays.
    #[schema(value_type = Option<Vec<String>>)]
    pub retry_stages: Option<Vec<Span>>,
    /// How chance changes it: `none`, `symmetric` (shorter or longer) or `additive` (longer).
    pub retry_jitter: &'static str,
    /// By how much, in percent.
    pub retry_jitter_percent: u8,
    /// The longest silence of a body.
    pub timeout_sec: u64,
    /// What takes longer is logged.
    #[schema(value_type = Option<String>)]
    pub max_expected_duration: Option<Span>,
    /// What takes longer is ended.
    #[schema(value_type = Option<String>)]
    pub max_allowed_duration: Option<Span>,
    /// Its weight in its lane.
    pub priority: u8,
    /// What waiting makes of that: the highest of all that waits of it, and the same as `priority`
    /// if nothing does. Lists leave out what waits in the queue for a worker: ask for the job.
    pub effective_priority: u8,
    /// `critical`, `standard` or `batch`.
    #[schema(value_type = String)]
    pub lane: Lane,
    /// The workers that may take it.
    pub pool: String,
    /// Of all runs with this key, `concurrency_limit` go on at once.
    pub concurrency_key: Option<String>,
    /// How many; null without a key.
    pub concurrency_limit: Option<u32>,
    /// What is done with missed times: `last`, `skip` or `all`.
    #[schema(value_type = String)]
    pub misfire: MisfirePolicy,
    /// A time this late is missed.
    #[schema(value_type = String)]
    pub misfire_after: Span,
    /// What is done when it is due while it runs: `skip`, `queue`, `allow` or `replace`.
    #[schema(value_type = String)]
    pub overlap: OverlapPolicy,
    /// What becomes of an execution that its node lost without a known result: `retry` or `fail`.
    #[schema(value_type = String)]
    pub on_lost_worker: OnLostWorker,
    /// An execution that has lost more workers than this has failed.
    pub max_crashes: u16,
    /// What becomes of it when retries are used up: `continue` or `stop`.
    #[schema(value_type = String)]
    pub on_exhausted: OnExhausted,
    /// What else is done then.
    pub on_failure: OnFailureView,
    /// When it starts next: its next regular time, or the end of the blackout that holds it. A time
    /// in the past is due and waits for a worker. Of a periodic job that runs it is the latest there
    /// can be.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_run_at: Option<Timestamp>,
    /// Its next regular time, which blackouts do not move.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_scheduled_at: Option<Timestamp>,
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
    /// The same; null if it has never run.
    pub failure_count: Option<u32>,
    /// Moving average of the duration of good executions.
    pub average_duration_ms: Option<u64>,
    /// The same.
    #[schema(value_type = Option<String>)]
    pub average_good_duration: Option<Span>,
    /// Standard deviation of the same.
    pub duration_deviation_ms: Option<u64>,
    /// What is taken for the average instead.
    #[schema(value_type = Option<String>)]
    pub average_duration_override: Option<Span>,
    /// How much each run counts for when load is spread, if somebody said so; else what its good
    /// runs take on average.
    #[schema(value_type = Option<String>)]
    pub cost: Option<Span>,
    /// Executions it has had in its life.
    pub execution_count: u64,
    /// When its last execution started.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When its last execution ended, if none runs.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub completed_at: Option<Timestamp>,
    /// What went wrong in its last execution, if that failed.
    pub error_message: Option<String>,
    /// How many retries the run has had that is not over.
    pub current_retry_count: u16,
    /// The execution that runs: its worker alone may write its results.
    pub lock_token: Option<String>,
    /// Since when it does.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub lock_acquired_at: Option<Timestamp>,
    /// Does it fire? False while it is paused.
    pub enabled: bool,
    /// Does it wait to be resumed?
    pub is_paused: bool,
    /// Since when.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub paused_at: Option<Timestamp>,
    /// Why, if it was paused because of its failures.
    pub pause_note: Option<String>,
    /// When somebody ended it for good.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub cancelled_at: Option<Timestamp>,
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
    /// Is it not to be there twice?
    pub unique: bool,
    /// What tells it from others of its executor, if it is not.
    pub dedup_key: Option<String>,
    /// Who keeps another one out: `pending`, `pending_or_running` or `window`.
    pub dedup_scope: Option<&'static str>,
    /// How long, if it is a `window`.
    pub dedup_window_seconds: Option<u64>,
    /// In the answer to a new job that is not to be there twice: was it there already?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplicated: Option<bool>,
    /// In the answer to a new or changed job: what it asks for and will not get, in words. Left out
    /// if there is nothing to warn of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warnings: Option<Vec<String>>,
}

impl JobView {
    /// A job as it is at `now`.
    pub(crate) fn new(job: Job, now: Timestamp) -> Self {
        let (status, next_run_at) = (job.status(now), job.next_start(now));
        let condition = condition_of(&job, now);
        let Job { about, definition, history, .. } = job;
        let other = OtherWords::from(&definition.schedule);
        let (interval_minutes, interval_type) = other.interval.unzip();
        let retry = RetryWords::of(&definition.retry);
        let concurrency = definition.key_limit().map(|limit| limit.most);
        let dedup = DedupWords::of(about.dedup.as_ref());
        Self {
            id: job.id,
            number: job.number,
            name: about.name.or_else(|| about.source_name.clone()),
            configuration: about.configuration,
            description: about.description,
            source_id: about.source_id,
            source_name: about.source_name,
            url: about.url,
            target: about.target,
            status,
            schedule: (&definition.schedule).into(),
            interval_minutes,
            interval_type,
            schedule_enabled: !matches!(&definition.schedule, Schedule::Once(once) if once.at.is_none()),
            cron_expression: other.cron.clone(),
            cron_schedule: other.cron.clone(),
            schedule_time: other.cron.or(about.schedule_time),
            cron_max_schedule_duration: other.cron_max,
            scheduling_period: other.period,
            cooldown_duration: other.cooldown,
            exact: other.exact,
            timezone: definition.timezone.name().into(),
            tz: definition.timezone.name().into(),
            dst_gap: definition.dst.gap,
            dst_overlap: definition.dst.overlap,
            start_at: definition.bounds.start_at,
            end_at: definition.bounds.end_at,
            max_runs: definition.bounds.max_runs,
            run_count: job.fired,
            blackout_periods: definition.blackout_periods.iter().map(Into::into).collect(),
            avoid_blackout: definition.avoid_blackout,
            prefer_window: definition.prefer_window.as_ref().map(Into::into),
            dont_run_on_nodes: definition.dont_run_on_nodes,
            condition: condition.level().as_str(),
            condition_reason: condition.reason.as_str(),
            executor_type: definition.executor.kind,
            executor_config: object(definition.executor.config),
            payload: definition.payload,
            retry_policy: retry.policy,
            max_retries: retry.max_retries,
            retry_backoff: retry.backoff,
            retry_backoff_seconds: retry.backoff_seconds,
            retry_backoff_cap_seconds: retry.backoff_cap_seconds,
            retry_stages: retry.stages,
            retry_jitter: retry.jitter,
            retry_jitter_percent: retry.jitter_percent,
            timeout_sec: seconds(definition.timeout),
            max_expected_duration: definition.max_expected_duration,
            max_allowed_duration: definition.max_allowed_duration,
            priority: definition.priority.get(),
            effective_priority: definition.priority.get(),
            lane: definition.lane,
            concurrency_limit: concurrency,
            concurrency_key: definition.concurrency_key,
            pool: definition.pool,
            misfire: definition.misfire,
            misfire_after: definition.misfire_after,
            overlap: definition.overlap,
            on_lost_worker: definition.on_lost_worker,
            max_crashes: definition.max_crashes,
            on_exhausted: definition.on_exhausted,
            on_failure: definition.on_failure.into(),
            next_run_at,
            next_scheduled_at: job.next_at,
            last_run_at: history.last_start_at,
            last_end_at: history.last_end_at,
            last_good_start_at: history.last_good_start_at,
            last_good_end_at: history.last_good_end_at,
            last_scheduled_at: job.last_fired_at,
            consecutive_failures: history.consecutive_failures,
            failure_count: history.last_start_at.map(|_| history.consecutive_failures),
            average_duration_ms: history.average_good_duration.map(Span::as_millis),
            average_good_duration: history.average_good_duration,
            duration_deviation_ms: history.duration_deviation().map(Span::as_millis),
            average_duration_override: definition.average_override,
            cost: definition.cost,
            execution_count: job.executions,
            started_at: job.running_since.or(history.last_start_at),
            completed_at: history.last_end_at.filter(|_| job.running.is_none()),
            error_message: job.last_error,
            current_retry_count: job.retry_count,
            lock_token: job.running.map(|key| key.execution_id().to_string()),
            lock_acquired_at: job.running_since.filter(|_| job.running.is_some()),
            enabled: job.state != JobState::Paused,
            is_paused: job.state == JobState::Paused,
            paused_at: job.stopped_at.filter(|_| job.state == JobState::Paused),
            pause_note: job.note,
            cancelled_at: job.stopped_at.filter(|_| job.state == JobState::Cancelled),
            generation: job.generation,
            created_at: job.created_at,
            updated_at: job.updated_at,
            metadata: object(about.metadata),
            unique: dedup.unique,
            dedup_key: dedup.key,
            dedup_scope: dedup.scope,
            dedup_window_seconds: dedup.window_seconds,
            deduplicated: None,
            warnings: None,
        }
    }

    /// The same, with what waiting makes of its priority.
    pub(crate) fn waiting_as(self, effective: Priority) -> Self {
        Self { effective_priority: effective.get(), ..self }
    }
}

/// An object that was left out is an empty one.
fn object(value: Value) -> Value {
    if value.is_null() { Value::Object(Map::new()) } else { value }
}

fn seconds(span: Span) -> u64 {
    span.as_micros() / 1_000_000
}
