//! A job as the API shows it.

use evenkeel_commands::{DedupFields, RetryFields, condition_of};
use evenkeel_core::job::{OnExhausted, OnLostWorker};
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::on_failure::OnFailure;
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::{Gap, Overlap};
use evenkeel_core::status::JobStatus;
use evenkeel_core::{JobId, RunIds, Schedule, Span, Timestamp};
use evenkeel_store::{Job, JobState};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::schedule::{BlackoutView, HoursView, OtherWords, ScheduleView};

/// What happens when a run fails and has no retry left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct OnFailureView {
    /// `none`, `pause` or `dead_letter`.
    pub action: &'static str,
    /// The number of consecutive failed runs after which the job is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u16>,
    /// Shown with the job while it is paused for this reason.
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

/// Defines a view: each field with its type and the expression of its value, and the constructor,
/// whose variables the expressions use.
macro_rules! view {
    (
        $(#[$struct_meta:meta])*
        pub struct $view:ident {
            $($(#[$meta:meta])* $field:ident: $type:ty = $value:expr,)+
        }

        $(#[$new_meta:meta])*
        pub(crate) fn new($($input:ident: $input_type:ty),+) -> Self {
            $($setup:tt)*
        }
    ) => {
        $(#[$struct_meta])*
        pub struct $view {
            $($(#[$meta])* pub $field: $type,)+
        }

        impl $view {
            $(#[$new_meta])*
            pub(crate) fn new($($input: $input_type),+) -> Self {
                $($setup)*
                Self { $($field: $value,)+ }
            }
        }
    };
}

view! {
    /// A job.
    #[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
    pub struct JobView {
        /// The id of the job.
        #[schema(value_type = uuid::Uuid)]
        id: JobId = job.id,
        /// The number of the job within its tenant, counted from 1 and never reused. Paths take the
        /// `id`.
        number: i64 = job.number,
        /// The name; if the job has none, the name of its source.
        name: Option<String> = about.name.or_else(|| about.source_name.clone()),
        /// Distinguishes several jobs of the same name.
        configuration: Option<String> = about.configuration,
        /// A free text.
        description: Option<String> = about.description,
        /// The id of the source that the job processes.
        source_id: Option<String> = about.source_id,
        /// The name of the source.
        source_name: Option<String> = about.source_name,
        /// The address of the source.
        url: Option<String> = about.url,
        /// The number of the target.
        target: Option<i64> = about.target,
        /// `pending`, `scheduled`, `running`, `paused`, `completed`, `failed` or `cancelled`.
        #[schema(value_type = String)]
        status: JobStatus = status,
        /// When the job runs.
        schedule: ScheduleView = (&definition.schedule).into(),
        /// The interval in units of `interval_type`; null unless it is a whole number of minutes.
        interval_minutes: Option<u64> = interval_minutes,
        /// The unit of `interval_minutes`: the longest of `minutes`, `hours`, `days` that gives a
        /// whole number.
        interval_type: Option<&'static str> = interval_type,
        /// False: the job runs once, as soon as it is created.
        schedule_enabled: bool =
            !matches!(&definition.schedule, Schedule::Once(once) if once.at.is_none()),
        /// The cron expression; null for other schedules.
        cron_expression: Option<String> = other.cron.clone(),
        /// The same as `cron_expression`.
        cron_schedule: Option<String> = other.cron.clone(),
        /// The same as `cron_expression`; for an interval, the cron expression that it replaced.
        schedule_time: Option<String> = other.cron.or(about.schedule_time),
        /// The time after its scheduled time by which a run of a cron job must have ended; null if
        /// none was given.
        #[schema(value_type = Option<String>)]
        cron_max_schedule_duration: Option<Span> = other.cron_max,
        /// The longest time between the starts of two successful runs; null unless the schedule is
        /// periodic.
        #[schema(value_type = Option<String>)]
        scheduling_period: Option<Span> = other.period,
        /// The pause after each run; null unless the schedule is periodic.
        #[schema(value_type = Option<String>)]
        cooldown_duration: Option<Span> = other.cooldown,
        /// For a cron schedule: true if runs start at the second that it names, false if they start
        /// up to a minute later. For an interval without an anchor: true if runs start at the
        /// beginning of their slot and are never moved.
        exact: Option<bool> = other.exact,
        /// The time zone of the schedule.
        timezone: String = definition.timezone.name().into(),
        /// The same as `timezone`.
        tz: String = definition.timezone.name().into(),
        /// What happens to times that a clock change skips: `shift` or `skip`.
        #[schema(value_type = String)]
        dst_gap: Gap = definition.dst.gap,
        /// What happens to times that a clock change repeats: `first`, `last` or `both`.
        #[schema(value_type = String)]
        dst_overlap: Overlap = definition.dst.overlap,
        /// The schedule has no run before this time.
        #[schema(value_type = Option<String>, format = DateTime)]
        start_at: Option<Timestamp> = definition.bounds.start_at,
        /// The schedule has no run after this time.
        #[schema(value_type = Option<String>, format = DateTime)]
        end_at: Option<Timestamp> = definition.bounds.end_at,
        /// The largest number of scheduled runs.
        max_runs: Option<u64> = definition.bounds.max_runs,
        /// The number of scheduled runs so far.
        run_count: u64 = job.fired,
        /// Local hours in which the job neither starts nor runs.
        blackout_periods: Vec<BlackoutView> =
            definition.blackout_periods.iter().map(Into::into).collect(),
        /// True: a run that would probably last into a blackout does not start.
        avoid_blackout: bool = definition.avoid_blackout,
        /// Preferred local hours for runs.
        prefer_window: Option<HoursView> = definition.prefer_window.as_ref().map(Into::into),
        /// Names of nodes that never run the job.
        dont_run_on_nodes: Vec<String> = definition.dont_run_on_nodes,
        /// Whether the job keeps its deadline promise: `OK`, `WARNING` or `ERROR`.
        condition: &'static str = condition.level().as_str(),
        /// The reason of the condition: `on_time`, `never_ran`, `violated`…
        condition_reason: &'static str = condition.reason.as_str(),
        /// The executor of the job.
        executor_type: String = definition.executor.kind,
        /// The settings of the executor. Viewers see `{"redacted": true}` in place of bodies,
        /// arguments and values of headers and variables, and `***` in place of credentials and
        /// query values in addresses. Sent back, these placeholders change nothing.
        #[schema(value_type = Object)]
        executor_config: Value = object(definition.executor.config),
        /// Passed to the executor. A `{"secret": "name"}` in it is replaced by the secret when the
        /// job runs. Viewers see `{"redacted": true}`.
        payload: Value = definition.payload,
        /// The preset that all retry fields match: `standard`, `interval`, `queue`, `deadline` or
        /// `cron_service`; null if they match none.
        retry_policy: Option<&'static str> = retry.policy,
        /// The number of retries after the first attempt.
        max_retries: u16 = retry.max_retries,
        /// How the delay between retries grows: `exponential`, `fixed` or `stages`.
        retry_backoff: &'static str = retry.backoff,
        /// The delay before the first retry, in seconds.
        retry_backoff_seconds: u64 = retry.backoff_seconds,
        /// The longest delay of an `exponential` backoff, in seconds.
        retry_backoff_cap_seconds: Option<u64> = retry.backoff_cap_seconds,
        /// The delays of a `stages` backoff; the last delay repeats.
        #[schema(value_type = Option<Vec<String>>)]
        retry_stages: Option<Vec<Span>> = retry.stages,
        /// How each delay is randomized: `none`, `symmetric` (shorter or longer) or `additive`
        /// (longer).
        retry_jitter: &'static str = retry.jitter,
        /// The largest random change of a delay, in percent.
        retry_jitter_percent: u8 = retry.jitter_percent,
        /// The longest time without a sign of life of the executor, in seconds.
        timeout_sec: u64 = seconds(definition.timeout),
        /// A run that takes longer is logged.
        #[schema(value_type = Option<String>)]
        max_expected_duration: Option<Span> = definition.max_expected_duration,
        /// A run that takes longer is ended.
        #[schema(value_type = Option<String>)]
        max_allowed_duration: Option<Span> = definition.max_allowed_duration,
        /// The priority within the lane, 0 to 100.
        priority: u8 = definition.priority.get(),
        /// The highest priority of the job's queued runs, which rises while they wait; the same as
        /// `priority` if no run waits. Lists do not count runs that wait for a worker: get the job
        /// by its id.
        effective_priority: u8 = definition.priority.get(),
        /// `critical`, `standard` or `batch`.
        #[schema(value_type = String)]
        lane: Lane = definition.lane,
        /// The pool of workers that run the job.
        pool: String = definition.pool,
        /// At most `concurrency_limit` runs with this key are active at once.
        concurrency_key: Option<String> = definition.concurrency_key,
        /// The limit of the key; null without a key.
        concurrency_limit: Option<u32> = concurrency,
        /// What happens to missed times: `last`, `skip` or `all`.
        #[schema(value_type = String)]
        misfire: MisfirePolicy = definition.misfire,
        /// A time that is this late counts as missed.
        #[schema(value_type = String)]
        misfire_after: Span = definition.misfire_after,
        /// What happens when the job is due while it runs: `skip`, `queue`, `allow` or `replace`.
        #[schema(value_type = String)]
        overlap: OverlapPolicy = definition.overlap,
        /// What happens to an execution whose node was lost before its result was known: `retry` or
        /// `fail`.
        #[schema(value_type = String)]
        on_lost_worker: OnLostWorker = definition.on_lost_worker,
        /// An execution that loses more workers than this fails.
        max_crashes: u16 = definition.max_crashes,
        /// What happens to a recurring job whose retries are used up: `continue` or `stop`.
        #[schema(value_type = String)]
        on_exhausted: OnExhausted = definition.on_exhausted,
        /// What else happens when a run fails and has no retry left.
        on_failure: OnFailureView = definition.on_failure.into(),
        /// When the job starts next: its next scheduled time, or the end of the blackout that
        /// delays it. A time in the past means that the run is due and waits for a worker. For a
        /// periodic job that runs, it is the latest possible time.
        #[schema(value_type = Option<String>, format = DateTime)]
        next_run_at: Option<Timestamp> = next_run_at,
        /// The next scheduled time. Blackouts do not change it.
        #[schema(value_type = Option<String>, format = DateTime)]
        next_scheduled_at: Option<Timestamp> = job.next_at,
        /// When the last execution started.
        #[schema(value_type = Option<String>, format = DateTime)]
        last_run_at: Option<Timestamp> = history.last_start_at,
        /// When the last execution ended.
        #[schema(value_type = Option<String>, format = DateTime)]
        last_end_at: Option<Timestamp> = history.last_end_at,
        /// When the last successful execution started.
        #[schema(value_type = Option<String>, format = DateTime)]
        last_good_start_at: Option<Timestamp> = history.last_good_start_at,
        /// When the last successful execution ended.
        #[schema(value_type = Option<String>, format = DateTime)]
        last_good_end_at: Option<Timestamp> = history.last_good_end_at,
        /// The last scheduled time that was fired or skipped.
        #[schema(value_type = Option<String>, format = DateTime)]
        last_scheduled_at: Option<Timestamp> = job.last_fired_at,
        /// The number of failed executions since the last successful one.
        consecutive_failures: u32 = history.consecutive_failures,
        /// The same as `consecutive_failures`; null if the job has never run.
        failure_count: Option<u32> = history.last_start_at.map(|_| history.consecutive_failures),
        /// The moving average of the duration of successful executions, in milliseconds.
        average_duration_ms: Option<u64> = history.average_good_duration.map(Span::as_millis),
        /// The same as `average_duration_ms`, as a duration.
        #[schema(value_type = Option<String>)]
        average_good_duration: Option<Span> = history.average_good_duration,
        /// The standard deviation of the duration of successful executions, in milliseconds.
        duration_deviation_ms: Option<u64> = history.duration_deviation().map(Span::as_millis),
        /// Used in place of the average duration.
        #[schema(value_type = Option<String>)]
        average_duration_override: Option<Span> = definition.average_override,
        /// The load of each run for the balancer; null: the average duration of successful runs.
        #[schema(value_type = Option<String>)]
        cost: Option<Span> = definition.cost,
        /// The number of executions since the job was created.
        execution_count: u64 = job.executions,
        /// When the last execution started.
        #[schema(value_type = Option<String>, format = DateTime)]
        started_at: Option<Timestamp> = job.running_since.or(history.last_start_at),
        /// When the last execution ended; null while an execution runs.
        #[schema(value_type = Option<String>, format = DateTime)]
        completed_at: Option<Timestamp> = history.last_end_at.filter(|_| job.running.is_none()),
        /// The error of the last execution, if it failed.
        error_message: Option<String> = job.last_error,
        /// The number of retries of the active run.
        current_retry_count: u16 = job.retry_count,
        /// The running execution. Only its worker may write its results.
        lock_token: Option<String> = job.running.map(|key| ids.attempt_id(key).to_string()),
        /// When the running execution started.
        #[schema(value_type = Option<String>, format = DateTime)]
        lock_acquired_at: Option<Timestamp> = job.running_since.filter(|_| job.running.is_some()),
        /// False while the job is paused.
        enabled: bool = job.state != JobState::Paused,
        /// True while the job is paused.
        is_paused: bool = job.state == JobState::Paused,
        /// When the job was paused.
        #[schema(value_type = Option<String>, format = DateTime)]
        paused_at: Option<Timestamp> = job.stopped_at.filter(|_| job.state == JobState::Paused),
        /// Why the job was paused, if repeated failures paused it.
        pause_note: Option<String> = job.note,
        /// When the job was cancelled.
        #[schema(value_type = Option<String>, format = DateTime)]
        cancelled_at: Option<Timestamp> =
            job.stopped_at.filter(|_| job.state == JobState::Cancelled),
        /// Increases with every command.
        generation: i32 = job.generation,
        /// When the job was created.
        #[schema(value_type = String, format = DateTime)]
        created_at: Timestamp = job.created_at,
        /// When a command last changed the job.
        #[schema(value_type = String, format = DateTime)]
        updated_at: Timestamp = job.updated_at,
        /// Free data of the client.
        #[schema(value_type = Object)]
        metadata: Value = object(about.metadata),
        /// True if a second job with the same key is rejected as a duplicate.
        unique: bool = dedup.unique,
        /// The deduplication key, which jobs of the same executor share; null if duplicates are
        /// allowed.
        dedup_key: Option<String> = dedup.key,
        /// Which jobs count as duplicates: `pending`, `pending_or_running` or `window`.
        dedup_scope: Option<&'static str> = dedup.scope,
        /// The length of the `window`, in seconds.
        dedup_window_seconds: Option<u64> = dedup.window_seconds,
        /// Only in the answer to a create request with a deduplication key: true if the job existed
        /// already.
        #[serde(skip_serializing_if = "Option::is_none")]
        deduplicated: Option<bool> = None,
        /// Only in the answer to a create or update request: parts of the job that cannot be kept,
        /// as sentences. Left out if there is no warning.
        #[serde(skip_serializing_if = "Option::is_none")]
        warnings: Option<Vec<String>> = None,
    }

    /// Shows a job at the time `now`.
    pub(crate) fn new(job: Job, now: Timestamp, ids: &RunIds) -> Self {
        let (status, next_run_at) = (job.status(now), job.next_start(now));
        let condition = condition_of(&job, now);
        let Job { about, definition, history, .. } = job;
        let other = OtherWords::from(&definition.schedule);
        let (interval_minutes, interval_type) = other.interval.unzip();
        let retry = RetryFields::of(&definition.retry);
        let concurrency = definition.key_limit().map(|limit| limit.most);
        let dedup = DedupFields::of(about.dedup.as_ref());
    }
}

impl JobView {
    /// Replaces the effective priority, which rises while runs of the job wait.
    pub(crate) fn waiting_as(self, effective: Priority) -> Self {
        Self { effective_priority: effective.get(), ..self }
    }
}

/// Shows an absent object as an empty one.
fn object(value: Value) -> Value {
    if value.is_null() { Value::Object(Map::new()) } else { value }
}

fn seconds(span: Span) -> u64 {
    span.as_micros() / 1_000_000
}
