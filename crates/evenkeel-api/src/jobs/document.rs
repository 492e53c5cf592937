//! The schema of a new job, for the OpenAPI document. `evenkeel-commands` reads the document,
//! because it reports all errors at once; a test compares the fields of both.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::schedule::{BlackoutView, HoursView, ScheduleForm};

/// A new job. Omitted fields have their defaults.
#[derive(Clone, PartialEq, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobDocument {
    /// Name, unique within the tenant and configuration.
    #[schema(max_length = 255, example = "news-site")]
    pub name: Option<String>,
    /// Distinguishes jobs with the same name.
    #[schema(max_length = 255)]
    pub configuration: Option<String>,
    /// Free text for humans.
    #[schema(max_length = 4096)]
    pub description: Option<String>,
    /// Id of the source the job works on.
    #[schema(max_length = 255, example = "news")]
    pub source_id: Option<String>,
    /// Name of the source.
    #[schema(max_length = 255, example = "example.com")]
    pub source_name: Option<String>,
    /// URL of the source, http or https.
    #[schema(max_length = 2048, example = "https://example.com/")]
    pub url: Option<String>,
    /// Number of its target. A job without `executor_type` and `url` crawls the target's URL and
    /// follows its changes; while the target has no URL, runs fail with `no_executor`.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64, example = 1)]
    pub target: Option<u64>,
    /// Additional data of the job, up to 64 KiB.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
    /// Schedule of the job.
    pub schedule: Option<ScheduleForm>,
    /// Interval in units of `interval_type`.
    #[schema(minimum = 1, example = 30)]
    pub interval_minutes: Option<u32>,
    /// `minutes` (the default), `hours` or `days` of 24 hours.
    #[schema(pattern = "^(minutes|hours|days)$")]
    pub interval_type: Option<String>,
    /// False: run once, now. Default: true if any schedule is given.
    pub schedule_enabled: Option<bool>,
    /// False creates the job paused. In an update: false pauses it, true resumes it.
    #[schema(default = true)]
    pub enabled: Option<bool>,
    /// Cron expression of imported jobs; an interval takes precedence.
    pub schedule_time: Option<String>,
    /// Cron expression, a name like `@daily`, or `@every 30m`.
    pub cron_expression: Option<String>,
    /// Cron expression; retries default to the policy `deadline`.
    pub cron_schedule: Option<String>,
    /// A run of a cron job must have ended this long after its scheduled time.
    #[schema(example = "6h")]
    pub cron_max_schedule_duration: Option<String>,
    /// Makes the job periodic: a successful run starts at least this often.
    #[schema(example = "24h")]
    pub scheduling_period: Option<String>,
    /// Pause of a periodic job after each run.
    #[schema(example = "1h")]
    pub cooldown_duration: Option<String>,
    /// IANA time zone of the schedule.
    #[schema(default = "UTC", example = "America/Toronto")]
    pub timezone: Option<String>,
    /// Same as `timezone`.
    pub tz: Option<String>,
    /// Local times skipped by daylight saving: run at the first moment after the gap (`shift`), or
    /// not at all (`skip`).
    #[schema(default = "shift", pattern = "^(shift|skip)$")]
    pub dst_gap: Option<String>,
    /// Local times that occur twice: run at the `first`, the `last`, or `both`.
    #[schema(default = "first", pattern = "^(first|last|both)$")]
    pub dst_overlap: Option<String>,
    /// For a cron schedule: run exactly at its times (default); false delays each job by up to a
    /// minute, at a fixed second of its own. For an interval without an anchor: true starts runs at
    /// the beginning of the quarter hour the job is placed in and fixes it there; false (default)
    /// uses a second of its own, and a rebalance may move it.
    pub exact: Option<bool>,
    /// No run before this time; for recurring schedules.
    #[schema(format = DateTime)]
    pub start_at: Option<String>,
    /// No run after this time; for recurring schedules.
    #[schema(format = DateTime)]
    pub end_at: Option<String>,
    /// Maximum number of scheduled runs; for recurring schedules.
    #[schema(minimum = 1)]
    pub max_runs: Option<u64>,
    /// Local hours in which the job neither starts nor runs, at most 48. Seconds are optional.
    #[schema(max_items = 48)]
    pub blackout_periods: Option<Vec<BlackoutView>>,
    /// True: do not start a run that would, by its average duration, extend into a blackout.
    #[schema(default = false)]
    pub avoid_blackout: Option<bool>,
    /// Preferred local hours, for intervals without an anchor or `start_at`. The time with the
    /// least load within them is chosen. Seconds are optional.
    pub prefer_window: Option<HoursView>,
    /// Names of nodes that must not run it.
    #[schema(max_items = 100)]
    pub dont_run_on_nodes: Option<Vec<String>>,
    /// Expected duration of a run; replaces the measured average.
    #[schema(example = "10m")]
    pub average_duration_override: Option<String>,
    /// Load of one run for balancing, at least 1ms. Default: the average duration of successful
    /// runs, or one minute before the first success.
    #[schema(example = "10m")]
    pub cost: Option<String>,
    /// Executor: `crawl`, `http` (also `http_callback`), `shell` or `noop`, as far as the server
    /// offers it. Default: `crawl` of the job's `url` or its target's.
    #[schema(nullable = false, example = "http")]
    pub executor_type: Option<String>,
    /// Settings of the executor, up to 64 KiB.
    #[schema(value_type = Option<Object>)]
    pub executor_config: Option<Value>,
    /// Data passed to the executor, up to 256 KiB.
    pub payload: Option<Value>,
    /// A named retry policy: `standard`, `interval` (`001`), `queue` (`002`), `deadline` (`003`) or
    /// `cron_service` (`004`). The fields below override parts of it.
    #[schema(
        default = "standard",
        pattern = "^(standard|interval|queue|deadline|cron_service|001|002|003|004)$"
    )]
    pub retry_policy: Option<String>,
    /// Maximum number of retries; default 1000 where `retry_backoff` defaults to `stages`.
    #[schema(maximum = 1000, default = 3)]
    pub max_retries: Option<u16>,
    /// Wait before the first retry, in seconds; at most `retry_backoff_cap_seconds` if the wait
    /// doubles.
    #[schema(maximum = 2_592_000, default = 60)]
    pub retry_backoff_seconds: Option<u32>,
    /// `exponential` (doubles), `fixed`, or `stages` (5 minutes, 1 hour, then 4 hours, unless
    /// `retry_stages` is set). Periodic jobs and those with `cron_schedule` default to `stages`.
    #[schema(default = "exponential", pattern = "^(exponential|fixed|stages)$")]
    pub retry_backoff: Option<String>,
    /// Upper limit of a doubling wait, in seconds.
    #[schema(minimum = 1, maximum = 2_592_000, default = 3600)]
    pub retry_backoff_cap_seconds: Option<u32>,
    /// Successive waits, 1 to 50; the last one repeats.
    #[schema(example = json!(["5m", "1h", "4h"]))]
    pub retry_stages: Option<Vec<String>>,
    /// Random change of a wait: `none`, `symmetric` (shorter or longer) or `additive` (longer).
    #[schema(default = "symmetric", pattern = "^(none|symmetric|additive)$")]
    pub retry_jitter: Option<String>,
    /// Size of that change, in percent.
    #[schema(maximum = 100, default = 20)]
    pub retry_jitter_percent: Option<u8>,
    /// Ends an execution that shows no activity for this many seconds.
    #[schema(minimum = 1, maximum = 2_592_000, default = 300)]
    pub timeout_sec: Option<u32>,
    /// A run that takes longer is logged once, like `10m`.
    pub max_expected_duration: Option<String>,
    /// A run that takes longer is ended, like `1h`. Default: no limit.
    pub max_allowed_duration: Option<String>,
    /// Priority within its lane, 0 to 100.
    #[schema(maximum = 100, default = 0)]
    pub priority: Option<u8>,
    /// Lane: `critical`, `standard` or `batch`.
    #[schema(default = "standard", pattern = "^(critical|standard|batch)$")]
    pub lane: Option<String>,
    /// Pool of workers that may run it.
    #[schema(default = "default", max_length = 64, pattern = "^[A-Za-z0-9._-]+$")]
    pub pool: Option<String>,
    /// Handling of missed times: run only the `last`, `skip` all, or run `all`.
    #[schema(default = "last", pattern = "^(last|skip|all)$")]
    pub misfire: Option<String>,
    /// A time counts as missed after this delay.
    #[schema(default = "1m")]
    pub misfire_after: Option<String>,
    /// Handling of a time that comes while a run is active: `skip`, `queue`, `allow` or `replace`.
    #[schema(default = "skip", pattern = "^(skip|queue|allow|replace)$")]
    pub overlap: Option<String>,
    /// Handling of an execution whose node was lost: `retry`, or `fail` the run without another
    /// attempt, so that its effects happen at most once.
    #[schema(default = "retry", pattern = "^(retry|fail)$")]
    pub on_lost_worker: Option<String>,
    /// An execution that loses more workers than this fails.
    #[schema(maximum = 1000, default = 3)]
    pub max_crashes: Option<u16>,
    /// Handling of a recurring job whose retries are used up: `continue` with the next time, or
    /// `stop`.
    #[schema(default = "continue", pattern = "^(continue|stop)$")]
    pub on_exhausted: Option<String>,
    /// Action after a run has failed and is not retried.
    pub on_failure: Option<OnFailureDocument>,
    /// At most `concurrency_limit` runs of the tenant with this key are active at once in the whole
    /// cluster, across jobs.
    #[schema(min_length = 1, max_length = 255)]
    pub concurrency_key: Option<String>,
    /// Maximum number of active runs; requires `concurrency_key`.
    #[schema(minimum = 1, maximum = 10_000, default = 1)]
    pub concurrency_limit: Option<u32>,
    /// True: if a job with the same key, executor and tenant exists, return it instead of creating
    /// another. Without `dedup_key`, the key is the job's `target`, else its `source_id`, else its
    /// `url`.
    #[schema(default = false)]
    pub unique: Option<bool>,
    /// Deduplication key; implies `unique`.
    #[schema(min_length = 1, max_length = 255)]
    pub dedup_key: Option<String>,
    /// Which existing jobs count as duplicates: those with a future or queued run (`pending`), also
    /// running ones (`pending_or_running`), or those created or triggered within
    /// `dedup_window_seconds` (`window`).
    #[schema(default = "pending", pattern = "^(pending|pending_or_running|window)$")]
    pub dedup_scope: Option<String>,
    /// Length of the `window`, in seconds.
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub dedup_window_seconds: Option<u64>,
}

/// Action after a run has failed and is not retried.
#[derive(Clone, PartialEq, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"action": "pause", "after": 3, "note": "Ask the shop team."}))]
pub struct OnFailureDocument {
    /// `none`, `pause` the job, or add the run to the dead letters (`dead_letter`).
    #[schema(required = true, nullable = false, pattern = "^(none|pause|dead_letter)$")]
    pub action: Option<String>,
    /// With `pause`: number of consecutive failed runs that pause the job.
    #[schema(minimum = 1, maximum = 1000, default = 3)]
    pub after: Option<u16>,
    /// With `pause`: note for humans, shown with the job while it is paused for this reason.
    #[schema(max_length = 500)]
    pub note: Option<String>,
}
