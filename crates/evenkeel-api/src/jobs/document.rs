//! The schema of a new job in the OpenAPI document. `evenkeel-commands` parses jobs without this
//! schema, so that it can report all errors together. A test checks that the parser and the schema
//! have the same fields.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::schedule::{BlackoutView, HoursView, ScheduleForm};

/// Fields of a new job. Fields that are missing in the request get their default values.
#[derive(Clone, PartialEq, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobDocument {
    /// Name of the job, unique together with `configuration` within the tenant.
    #[schema(max_length = 255, example = "news-site")]
    pub name: Option<String>,
    /// Text that distinguishes several jobs with the same name.
    #[schema(max_length = 255)]
    pub configuration: Option<String>,
    /// Free text for humans.
    #[schema(max_length = 4096)]
    pub description: Option<String>,
    /// Id of the data source that the job processes.
    #[schema(max_length = 255, example = "news")]
    pub source_id: Option<String>,
    /// Name of the data source that the job processes.
    #[schema(max_length = 255, example = "example.com")]
    pub source_name: Option<String>,
    /// URL of the data source, http or https.
    #[schema(max_length = 2048, example = "https://example.com/")]
    pub url: Option<String>,
    /// Number of the job's target. A job with neither `executor_type` nor `url` crawls the URL of
    /// its target, also after that URL changes. Runs of a job without `executor_type` and `url`
    /// fail with `no_executor` while its target has no URL.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64, example = 1)]
    pub target: Option<u64>,
    /// Additional data of the job as a JSON object, up to 64 KiB.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
    /// Schedule of the job, as an object or as text such as `@daily` or `30m`.
    pub schedule: Option<ScheduleForm>,
    /// Interval between runs, in units of `interval_type`.
    #[schema(minimum = 1, example = 30)]
    pub interval_minutes: Option<u32>,
    /// Unit of `interval_minutes`: `minutes` (the default), `hours` or `days` of 24 hours.
    #[schema(pattern = "^(minutes|hours|days)$")]
    pub interval_type: Option<String>,
    /// With `false`, the job runs once, as soon as it is created. The default is true if the
    /// request contains a schedule.
    pub schedule_enabled: Option<bool>,
    /// With `false`, a new job is created paused. In an update, `false` pauses the job and `true`
    /// resumes it.
    #[schema(default = true)]
    pub enabled: Option<bool>,
    /// Cron expression of imported jobs; ignored if an interval is given.
    pub schedule_time: Option<String>,
    /// Cron expression, a name such as `@daily`, or an interval such as `@every 30m`.
    pub cron_expression: Option<String>,
    /// Cron expression of a job whose retry policy defaults to `deadline`.
    pub cron_schedule: Option<String>,
    /// Maximum time between the scheduled time of a cron run and its finish, as a duration such as
    /// `6h`.
    #[schema(example = "6h")]
    pub cron_max_schedule_duration: Option<String>,
    /// Makes the job periodic: successful runs start at least this often. A duration such as `24h`.
    #[schema(example = "24h")]
    pub scheduling_period: Option<String>,
    /// Minimum pause of a periodic job after each run, as a duration such as `1h`.
    #[schema(example = "1h")]
    pub cooldown_duration: Option<String>,
    /// IANA time zone in which the schedule is evaluated.
    #[schema(default = "UTC", example = "America/Toronto")]
    pub timezone: Option<String>,
    /// Same as `timezone`.
    pub tz: Option<String>,
    /// What to do with a scheduled local time that daylight saving skips: `shift` runs at the first
    /// moment after the gap, `skip` does not run.
    #[schema(default = "shift", pattern = "^(shift|skip)$")]
    pub dst_gap: Option<String>,
    /// What to do with a scheduled local time that occurs twice: run at the `first`, at the `last`,
    /// or at `both`.
    #[schema(default = "first", pattern = "^(first|last|both)$")]
    pub dst_overlap: Option<String>,
    /// For a cron schedule: `true` (default) starts runs exactly at the scheduled times; `false`
    /// delays the runs of each job by a fixed number of seconds, less than a minute. For an
    /// interval without an anchor: `true` starts runs at the beginning of the quarter hour that the
    /// scheduler chose, and rebalances never move the job. `false` (default) starts runs at any
    /// second, and a rebalance may move the job.
    pub exact: Option<bool>,
    /// Recurring schedules have no run before this time.
    #[schema(format = DateTime)]
    pub start_at: Option<String>,
    /// Recurring schedules have no run after this time.
    #[schema(format = DateTime)]
    pub end_at: Option<String>,
    /// Maximum number of scheduled runs of a recurring schedule.
    #[schema(minimum = 1)]
    pub max_runs: Option<u64>,
    /// Local hours in which the job neither starts nor runs, at most 48 periods. Times of day are
    /// `HH:MM` or `HH:MM:SS`.
    #[schema(max_items = 48)]
    pub blackout_periods: Option<Vec<BlackoutView>>,
    /// With `true`, a run does not start if its average duration would extend into a blackout.
    #[schema(default = false)]
    pub avoid_blackout: Option<bool>,
    /// Preferred local hours of runs, for intervals without an anchor or `start_at`. The scheduler
    /// chooses the start time with the fewest other runs within these hours. Times of day are
    /// `HH:MM` or `HH:MM:SS`.
    pub prefer_window: Option<HoursView>,
    /// Names of nodes that must not run the job.
    #[schema(max_items = 100)]
    pub dont_run_on_nodes: Option<Vec<String>>,
    /// Expected duration of a run, such as `10m`; replaces the measured average.
    #[schema(example = "10m")]
    pub average_duration_override: Option<String>,
    /// Expected running time of one run, used to spread runs evenly over time; a duration of at
    /// least `1ms`. The default is the average duration of successful runs, or one minute before
    /// the first success.
    #[schema(example = "10m")]
    pub cost: Option<String>,
    /// Executor of the job: `crawl`, `http` (also called `http_callback`), `shell` or `noop`, if
    /// the server offers it. By default the job crawls its `url`, or the URL of its target.
    #[schema(nullable = false, example = "http")]
    pub executor_type: Option<String>,
    /// Settings of the executor as a JSON object, up to 64 KiB.
    #[schema(value_type = Option<Object>)]
    pub executor_config: Option<Value>,
    /// JSON data passed to the executor, up to 256 KiB.
    pub payload: Option<Value>,
    /// Named retry policy: `standard`, `interval` (also `001`), `queue` (`002`), `deadline` (`003`)
    /// or `cron_service` (`004`). The fields `max_retries` and `retry_…` override parts of the
    /// named retry policy.
    #[schema(
        default = "standard",
        pattern = "^(standard|interval|queue|deadline|cron_service|001|002|003|004)$"
    )]
    pub retry_policy: Option<String>,
    /// Maximum number of retries of a run; the default is 1000 if `retry_backoff` defaults to
    /// `stages`.
    #[schema(maximum = 1000, default = 3)]
    pub max_retries: Option<u16>,
    /// Delay before the first retry, in seconds. With exponential backoff, the first delay is at
    /// most `retry_backoff_cap_seconds`.
    #[schema(maximum = 2_592_000, default = 60)]
    pub retry_backoff_seconds: Option<u32>,
    /// How the delay between retries grows: `exponential` (doubles), `fixed`, or `stages` (5
    /// minutes, 1 hour, then 4 hours, unless `retry_stages` is set). `retry_backoff` defaults to
    /// `stages` for periodic jobs and for jobs with `cron_schedule`.
    #[schema(default = "exponential", pattern = "^(exponential|fixed|stages)$")]
    pub retry_backoff: Option<String>,
    /// Maximum delay of an exponential backoff, in seconds.
    #[schema(minimum = 1, maximum = 2_592_000, default = 3600)]
    pub retry_backoff_cap_seconds: Option<u32>,
    /// Delays before successive retries, as 1 to 50 durations such as `5m`; the last delay repeats.
    #[schema(example = json!(["5m", "1h", "4h"]))]
    pub retry_stages: Option<Vec<String>>,
    /// Random change of each retry delay: `none`, `symmetric` (shorter or longer) or `additive`
    /// (longer).
    #[schema(default = "symmetric", pattern = "^(none|symmetric|additive)$")]
    pub retry_jitter: Option<String>,
    /// Maximum random change of a retry delay, in percent.
    #[schema(maximum = 100, default = 20)]
    pub retry_jitter_percent: Option<u8>,
    /// An execution that shows no activity for this many seconds is timed out.
    #[schema(minimum = 1, maximum = 2_592_000, default = 300)]
    pub timeout_sec: Option<u32>,
    /// A run that takes longer than this duration, such as `10m`, is logged once.
    pub max_expected_duration: Option<String>,
    /// A run that takes longer than this duration, such as `1h`, is stopped. Default: no limit.
    pub max_allowed_duration: Option<String>,
    /// Priority of the job's runs within their lane, from 0 (lowest) to 100 (highest).
    #[schema(maximum = 100, default = 0)]
    pub priority: Option<u8>,
    /// Lane of the job's runs: `critical`, `standard` or `batch`.
    #[schema(default = "standard", pattern = "^(critical|standard|batch)$")]
    pub lane: Option<String>,
    /// Name of the worker pool that runs the job.
    #[schema(default = "default", max_length = 64, pattern = "^[A-Za-z0-9._-]+$")]
    pub pool: Option<String>,
    /// What to do with missed runs: run only the `last`, `skip` all of them, or run `all`.
    #[schema(default = "last", pattern = "^(last|skip|all)$")]
    pub misfire: Option<String>,
    /// A scheduled time counts as missed if the scheduler handles it later than this duration.
    #[schema(default = "1m")]
    pub misfire_after: Option<String>,
    /// What to do if a run is due while an earlier run of the job is active: `skip`, `queue`,
    /// `allow` or `replace`.
    #[schema(default = "skip", pattern = "^(skip|queue|allow|replace)$")]
    pub overlap: Option<String>,
    /// What to do with an execution whose node was lost: `retry` it, or `fail` the run without
    /// another attempt, so that its effects happen at most once.
    #[schema(default = "retry", pattern = "^(retry|fail)$")]
    pub on_lost_worker: Option<String>,
    /// An execution fails if it loses more workers than this number.
    #[schema(maximum = 1000, default = 3)]
    pub max_crashes: Option<u16>,
    /// What to do with a recurring job if a run exhausts its retries: `continue` with the next
    /// scheduled run, or `stop` the job.
    #[schema(default = "continue", pattern = "^(continue|stop)$")]
    pub on_exhausted: Option<String>,
    /// What to do after a run has failed and is not retried.
    pub on_failure: Option<OnFailureDocument>,
    /// At most `concurrency_limit` runs with the same key are active at a time, over all jobs of
    /// the tenant and all nodes.
    #[schema(min_length = 1, max_length = 255)]
    pub concurrency_key: Option<String>,
    /// Maximum number of active runs with the same `concurrency_key`.
    #[schema(minimum = 1, maximum = 10_000, default = 1)]
    pub concurrency_limit: Option<u32>,
    /// With `true`, a job with the same deduplication key and executor is returned if it exists,
    /// instead of creating a second job. Without `dedup_key`, the deduplication key is the job's
    /// `target`, or else its `source_id`, or else its `url`.
    #[schema(default = false)]
    pub unique: Option<bool>,
    /// Deduplication key of the job; implies `unique`.
    #[schema(min_length = 1, max_length = 255)]
    pub dedup_key: Option<String>,
    /// Which existing jobs count as duplicates: jobs with a future or queued run (`pending`), also
    /// jobs with a running execution (`pending_or_running`), or jobs created or triggered within
    /// `dedup_window_seconds` (`window`).
    #[schema(default = "pending", pattern = "^(pending|pending_or_running|window)$")]
    pub dedup_scope: Option<String>,
    /// Length of the deduplication scope `window`, in seconds.
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub dedup_window_seconds: Option<u64>,
}

/// What to do after a run has failed and is not retried.
#[derive(Clone, PartialEq, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"action": "pause", "after": 3, "note": "Ask the shop team."}))]
pub struct OnFailureDocument {
    /// `none`, `pause` (pauses the job) or `dead_letter` (adds the run to the dead letters).
    #[schema(required = true, nullable = false, pattern = "^(none|pause|dead_letter)$")]
    pub action: Option<String>,
    /// Number of consecutive failed runs after which `pause` pauses the job.
    #[schema(minimum = 1, maximum = 1000, default = 3)]
    pub after: Option<u16>,
    /// Text for humans that is shown while the action `pause` keeps the job paused.
    #[schema(max_length = 500)]
    pub note: Option<String>,
}
