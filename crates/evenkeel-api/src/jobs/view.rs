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
use crate::runs::RecentRunView;
use crate::view::view;

/// What happens after a run has failed and is not retried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct OnFailureView {
    /// `none`, `pause` or `dead_letter`.
    pub action: &'static str,
    /// Number of consecutive failed runs after which the job is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u16>,
    /// Text that is shown with the job while repeated failures keep it paused.
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

view! {
    /// A job.
    JobView::new(job: Job, now: Timestamp, ids: &RunIds) {
        let (status, next_run_at) = (job.status(now), job.next_start(now));
        let condition = condition_of(&job, now);
        let Job { about, definition, history, .. } = job;
        let other = OtherWords::from(&definition.schedule);
        let (interval_minutes, interval_type) = other.interval.unzip();
        let retry = RetryFields::of(&definition.retry);
        let concurrency = definition.key_limit().map(|limit| limit.most);
        let dedup = DedupFields::of(about.dedup.as_ref());
    }

    /// The id of the job.
    id: JobId as uuid::Uuid = job.id,
    /// The number of the job within its tenant, counted from 1 and never reused. Paths of
    /// `/api/v1` contain the job's `id` instead of its number.
    number: i64 = job.number,
    /// Name of the job; if it has no name, the name of its data source.
    name: Option<String> = about.name.or_else(|| about.source_name.clone()),
    /// Text that distinguishes several jobs with the same name.
    configuration: Option<String> = about.configuration,
    /// Free text for humans.
    description: Option<String> = about.description,
    /// Id of the data source that the job processes.
    source_id: Option<String> = about.source_id,
    /// Name of the data source that the job processes.
    source_name: Option<String> = about.source_name,
    /// URL of the data source.
    url: Option<String> = about.url,
    /// Number of the job's target.
    target: Option<i64> = about.target,
    /// Status of the job: `pending`, `scheduled`, `running`, `paused`, `completed`, `failed` or
    /// `cancelled`.
    status: JobStatus as String = status,
    /// Schedule of the job.
    schedule: ScheduleView = (&definition.schedule).into(),
    /// Interval between runs in units of `interval_type`; null unless it is a whole number of
    /// minutes.
    interval_minutes: Option<u64> = interval_minutes,
    /// Unit of `interval_minutes`: the longest of `minutes`, `hours` and `days` that gives a
    /// whole number.
    interval_type: Option<&'static str> = interval_type,
    /// False if the job runs only once, as soon as it is created.
    schedule_enabled: bool =
        !matches!(&definition.schedule, Schedule::Once(once) if once.at.is_none()),
    /// Cron expression of the job; null for other schedules.
    cron_expression: Option<String> = other.cron.clone(),
    /// Same as `cron_expression`.
    cron_schedule: Option<String> = other.cron.clone(),
    /// Same as `cron_expression`; for an interval, the cron expression that the interval
    /// replaced.
    schedule_time: Option<String> = other.cron.or(about.schedule_time),
    /// Maximum time between the scheduled time of a cron run and its finish; null if it was not
    /// set.
    cron_max_schedule_duration: Option<Span> as Option<String> = other.cron_max,
    /// Maximum time between the starts of two successful runs; null unless the schedule is
    /// periodic.
    scheduling_period: Option<Span> as Option<String> = other.period,
    /// Minimum pause after each run; null unless the schedule is periodic.
    cooldown_duration: Option<Span> as Option<String> = other.cooldown,
    /// For a cron schedule: true if runs start exactly at the scheduled second, false if they
    /// start up to a minute later. For an interval without an anchor: true if runs start at the
    /// beginning of their time slot and rebalances never move the job.
    exact: Option<bool> = other.exact,
    /// IANA time zone of the schedule.
    timezone: String = definition.timezone.name().into(),
    /// Same as `timezone`.
    tz: String = definition.timezone.name().into(),
    /// What happens to scheduled local times that daylight saving skips: `shift` or `skip`.
    dst_gap: Gap as String = definition.dst.gap,
    /// What happens to scheduled local times that occur twice: `first`, `last` or `both`.
    dst_overlap: Overlap as String = definition.dst.overlap,
    /// Start of the schedule: no scheduled run is earlier.
    start_at: Option<Timestamp> = definition.bounds.start_at,
    /// End of the schedule: no scheduled run is later.
    end_at: Option<Timestamp> = definition.bounds.end_at,
    /// Maximum number of scheduled runs.
    max_runs: Option<u64> = definition.bounds.max_runs,
    /// Number of scheduled runs so far.
    run_count: u64 = job.fired,
    /// Local hours in which the job neither starts nor runs.
    blackout_periods: Vec<BlackoutView> =
        definition.blackout_periods.iter().map(BlackoutView::new).collect(),
    /// True if a run does not start when its average duration would extend into a blackout.
    avoid_blackout: bool = definition.avoid_blackout,
    /// Preferred local hours of the day for runs.
    prefer_window: Option<HoursView> = definition.prefer_window.as_ref().map(HoursView::new),
    /// Names of nodes that never run the job.
    dont_run_on_nodes: Vec<String> = definition.dont_run_on_nodes,
    /// Whether the job keeps its deadline promise: `OK`, `WARNING` or `ERROR`.
    condition: &'static str = condition.level().as_str(),
    /// Reason code of the condition, such as `on_time`, `never_ran` or `violated`.
    condition_reason: &'static str = condition.reason.as_str(),
    /// Executor of the job, such as `http`.
    executor_type: String = definition.executor.kind,
    /// Settings of the executor. Viewers see `{"redacted": true}` instead of bodies, arguments
    /// and values of headers and variables, and `***` instead of credentials and query values
    /// in URLs. If a client sends a redaction placeholder back, the redacted value stays
    /// unchanged.
    executor_config: Value as Object = object(definition.executor.config),
    /// JSON data passed to the executor. A `{"secret": "name"}` inside the payload is replaced
    /// by the value of that secret when the job runs. Viewers see `{"redacted": true}` instead
    /// of the payload.
    payload: Value = definition.payload,
    /// Named retry policy that all retry fields match: `standard`, `interval`, `queue`,
    /// `deadline` or `cron_service`; null if they match none of these.
    retry_policy: Option<&'static str> = retry.policy,
    /// Maximum number of retries after the first attempt of a run.
    max_retries: u16 = retry.max_retries,
    /// How the delay between retries grows: `exponential`, `fixed` or `stages`.
    retry_backoff: &'static str = retry.backoff,
    /// Delay before the first retry, in seconds.
    retry_backoff_seconds: u64 = retry.backoff_seconds,
    /// Maximum delay of an `exponential` backoff, in seconds.
    retry_backoff_cap_seconds: Option<u64> = retry.backoff_cap_seconds,
    /// Delays of a `stages` backoff; the last delay repeats.
    retry_stages: Option<Vec<Span>> as Option<Vec<String>> = retry.stages,
    /// How each retry delay is randomized: `none`, `symmetric` (shorter or longer) or
    /// `additive` (longer).
    retry_jitter: &'static str = retry.jitter,
    /// Maximum random change of a retry delay, in percent.
    retry_jitter_percent: u8 = retry.jitter_percent,
    /// An execution that shows no activity for this many seconds is timed out.
    timeout_sec: u64 = seconds(definition.timeout),
    /// A run that takes longer than this duration is logged.
    max_expected_duration: Option<Span> as Option<String> = definition.max_expected_duration,
    /// A run that takes longer than this duration is stopped.
    max_allowed_duration: Option<Span> as Option<String> = definition.max_allowed_duration,
    /// Priority of the job's runs within their lane, 0 to 100.
    priority: u8 = definition.priority.get(),
    /// Highest priority of the job's queued runs, including the increase for waiting time. Same as
    /// `priority` if no run is queued. In lists, `effective_priority` ignores runs that wait for a
    /// worker; get the job by its id for the exact value.
    effective_priority: u8 = definition.priority.get(),
    /// Lane of the job's runs: `critical`, `standard` or `batch`.
    lane: Lane as String = definition.lane,
    /// Name of the worker pool that runs the job.
    pool: String = definition.pool,
    /// At most `concurrency_limit` runs with the same key are active at a time.
    concurrency_key: Option<String> = definition.concurrency_key,
    /// Maximum number of active runs with the same `concurrency_key`; null without a key.
    concurrency_limit: Option<u32> = concurrency,
    /// What happens to missed runs: `last`, `skip` or `all`.
    misfire: MisfirePolicy as String = definition.misfire,
    /// A scheduled time counts as missed if the scheduler handles it later than this duration.
    misfire_after: Span as String = definition.misfire_after,
    /// What happens if a run is due while an earlier run of the job is active: `skip`, `queue`,
    /// `allow` or `replace`.
    overlap: OverlapPolicy as String = definition.overlap,
    /// What happens to an execution whose node was lost: `retry` or `fail`.
    on_lost_worker: OnLostWorker as String = definition.on_lost_worker,
    /// An execution fails if it loses more workers than this number.
    max_crashes: u16 = definition.max_crashes,
    /// What happens to a recurring job if a run exhausts its retries: `continue` or `stop`.
    on_exhausted: OnExhausted as String = definition.on_exhausted,
    /// What happens after a run has failed and is not retried.
    on_failure: OnFailureView = definition.on_failure.into(),
    /// Next run time: the next scheduled time, or the end of the blackout that delays it. A
    /// next run time in the past means that the run is due and waits for a worker. For a
    /// periodic job with an active run, `next_run_at` is the latest possible time.
    next_run_at: Option<Timestamp> = next_run_at,
    /// Next scheduled time of the job. Blackouts change `next_run_at`, but not
    /// `next_scheduled_at`.
    next_scheduled_at: Option<Timestamp> = job.next_at,
    /// Time when the last execution started.
    last_run_at: Option<Timestamp> = history.last_start_at,
    /// Time when the last execution finished.
    last_end_at: Option<Timestamp> = history.last_end_at,
    /// Time when the last successful execution started.
    last_good_start_at: Option<Timestamp> = history.last_good_start_at,
    /// Time when the last successful execution finished.
    last_good_end_at: Option<Timestamp> = history.last_good_end_at,
    /// Last scheduled time for which a run was created or skipped.
    last_scheduled_at: Option<Timestamp> = job.last_fired_at,
    /// Number of failed executions since the last successful execution.
    consecutive_failures: u32 = history.consecutive_failures,
    /// Same as `consecutive_failures`; null if the job has never run.
    failure_count: Option<u32> = history.last_start_at.map(|_| history.consecutive_failures),
    /// Moving average of the duration of successful executions, in milliseconds.
    average_duration_ms: Option<u64> = history.average_good_duration.map(Span::as_millis),
    /// Same as `average_duration_ms`, as a duration text.
    average_good_duration: Option<Span> as Option<String> = history.average_good_duration,
    /// Standard deviation of the duration of successful executions, in milliseconds.
    duration_deviation_ms: Option<u64> = history.duration_deviation().map(Span::as_millis),
    /// Expected duration of a run, which replaces the measured average.
    average_duration_override: Option<Span> as Option<String> = definition.average_override,
    /// Expected running time of one run, used to spread runs evenly over time; null means the
    /// average duration of successful runs.
    cost: Option<Span> as Option<String> = definition.cost,
    /// Number of executions since the job was created.
    execution_count: u64 = job.executions,
    /// Time when the last execution started.
    started_at: Option<Timestamp> = job.running_since.or(history.last_start_at),
    /// Time when the last execution finished; null while an execution is running.
    completed_at: Option<Timestamp> = history.last_end_at.filter(|_| job.running.is_none()),
    /// Error message of the last execution, if it failed.
    error_message: Option<String> = job.last_error,
    /// Number of retries that the active run has used so far.
    current_retry_count: u16 = job.retry_count,
    /// Id of the running execution. Only the worker that holds this execution may write its
    /// results.
    lock_token: Option<String> = job.running.map(|key| ids.attempt_id(key).to_string()),
    /// Time when the running execution started.
    lock_acquired_at: Option<Timestamp> = job.running_since.filter(|_| job.running.is_some()),
    /// False while the job is paused.
    enabled: bool = job.state != JobState::Paused,
    /// True while the job is paused.
    is_paused: bool = job.state == JobState::Paused,
    /// Time when the job was paused.
    paused_at: Option<Timestamp> = job.stopped_at.filter(|_| job.state == JobState::Paused),
    /// Note that tells why the job was paused, if repeated failures paused it.
    pause_note: Option<String> = job.note,
    /// Time when the job was cancelled.
    cancelled_at: Option<Timestamp> =
        job.stopped_at.filter(|_| job.state == JobState::Cancelled),
    /// Version of the job; increases with every command that changes it.
    generation: i32 = job.generation,
    /// Time when the job was created.
    created_at: Timestamp = job.created_at,
    /// Time when a command last changed the job.
    updated_at: Timestamp = job.updated_at,
    /// Additional data of the job as a JSON object.
    metadata: Value as Object = object(about.metadata),
    /// True if a second job with the same deduplication key is treated as a duplicate.
    unique: bool = dedup.unique,
    /// Deduplication key, compared among jobs with the same executor; null if duplicates are
    /// allowed.
    dedup_key: Option<String> = dedup.key,
    /// Which existing jobs count as duplicates: `pending`, `pending_or_running` or `window`.
    dedup_scope: Option<&'static str> = dedup.scope,
    /// Length of the deduplication scope `window`, in seconds.
    dedup_window_seconds: Option<u64> = dedup.window_seconds,
    /// Present only in the response to a create request with a deduplication key: true if the
    /// job already existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    deduplicated: Option<bool> = None,
    /// Warnings as plain text, only in the response to a create or update request. A warning
    /// tells, for example, that a blackout makes the job miss its deadline. Omitted if there
    /// are no warnings.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<String>> = None,
    /// The newest runs of the job, newest first. Present only in a list of jobs that was requested
    /// with `recent_runs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent_runs: Option<Vec<RecentRunView>> = None,
}

impl JobView {
    /// Sets the effective priority, which rises while runs of the job wait.
    pub(crate) fn waiting_as(self, effective: Priority) -> Self {
        Self { effective_priority: effective.get(), ..self }
    }
}

/// Returns the value, or an empty JSON object if the value is null.
fn object(value: Value) -> Value {
    if value.is_null() { Value::Object(Map::new()) } else { value }
}

fn seconds(span: Span) -> u64 {
    span.as_micros() / 1_000_000
}
