//! The document of a new job, for the OpenAPI document. Reading it is the use cases' business,
//! because they say all that is wrong with it at once; a test holds the two together.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::schedule::{BlackoutView, HoursView, ScheduleForm};

/// A job to be created. What is left out is as by default.
#[derive(Clone, PartialEq, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct JobDocument {
    /// Unique within the tenant and the configuration, if given.
    #[schema(max_length = 255, example = "news-site")]
    pub name: Option<String>,
    /// Tells several jobs of one name apart.
    #[schema(max_length = 255)]
    pub configuration: Option<String>,
    /// For people.
    #[schema(max_length = 4096)]
    pub description: Option<String>,
    /// What the job is about.
    #[schema(max_length = 255, example = "news")]
    pub source_id: Option<String>,
    /// Its name.
    #[schema(max_length = 255, example = "example.com")]
    pub source_name: Option<String>,
    /// Its address, http or https.
    #[schema(max_length = 2048, example = "https://example.com/")]
    pub url: Option<String>,
    /// The number of its target: without an executor and a url of its own, the job crawls the
    /// target's url, and follows it; while there is none, its runs fail with `no_executor`.
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64, example = 1)]
    pub target: Option<u64>,
    /// Whatever else is to be kept with it, up to 64 KiB.
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
    /// When it runs.
    pub schedule: Option<ScheduleForm>,
    /// A short form of an interval: so many of `interval_type`.
    #[schema(minimum = 1, example = 30)]
    pub interval_minutes: Option<u32>,
    /// `minutes` (the default), `hours` or `days` of 24 hours.
    #[schema(pattern = "^(minutes|hours|days)$")]
    pub interval_type: Option<String>,
    /// False: run once, now. Left out: true if there is any schedule.
    pub schedule_enabled: Option<bool>,
    /// False: the job is paused from the start. In a change: false pauses it, true resumes it.
    #[schema(default = true)]
    pub enabled: Option<bool>,
    /// The cron column of older jobs; an interval beside it wins.
    pub schedule_time: Option<String>,
    /// A cron expression, a name like `@daily`, or `@every 30m`.
    pub cron_expression: Option<String>,
    /// A cron expression; the job's retries are then those of jobs about deadlines.
    pub cron_schedule: Option<String>,
    /// How long after its time a run of a cron job must be over.
    #[schema(example = "6h")]
    pub cron_max_schedule_duration: Option<String>,
    /// How stale it may be: the job is periodic.
    #[schema(example = "24h")]
    pub scheduling_period: Option<String>,
    /// The pause of a periodic job after each run.
    #[schema(example = "1h")]
    pub cooldown_duration: Option<String>,
    /// The zone its times are meant in.
    #[schema(default = "UTC", example = "America/Toronto")]
    pub timezone: Option<String>,
    /// The same.
    pub tz: Option<String>,
    /// What becomes of times that the clocks jump over: they run at the first moment after
    /// (`shift`), or not (`skip`).
    #[schema(default = "shift", pattern = "^(shift|skip)$")]
    pub dst_gap: Option<String>,
    /// What becomes of times that the clocks show twice.
    #[schema(default = "first", pattern = "^(first|last|both)$")]
    pub dst_overlap: Option<String>,
    /// Of a cron schedule: run at the very times it names (the default). False: up to a minute
    /// later, each job at its own second. Of an interval without an anchor: true makes it start with
    /// the quarter of an hour that it is placed in and stay there; false (the default): at its own
    /// second, and a rebalance may move it.
    pub exact: Option<bool>,
    /// No run before; for schedules that recur.
    #[schema(format = DateTime)]
    pub start_at: Option<String>,
    /// No run after; for schedules that recur.
    #[schema(format = DateTime)]
    pub end_at: Option<String>,
    /// No more regular runs than this; for schedules that recur.
    #[schema(minimum = 1)]
    pub max_runs: Option<u64>,
    /// Local hours in which it neither starts nor runs, at most 48; seconds may be left out.
    #[schema(max_items = 48)]
    pub blackout_periods: Option<Vec<BlackoutView>>,
    /// Do not start what would, by its average duration, run into one of them.
    #[schema(default = false)]
    pub avoid_blackout: Option<bool>,
    /// Local hours in which it would best run, for intervals without an anchor or `start_at`; seconds
    /// may be left out. Among the times that fit, the one with the least load is chosen.
    pub prefer_window: Option<HoursView>,
    /// Names of nodes that never run it.
    #[schema(max_items = 100)]
    pub dont_run_on_nodes: Option<Vec<String>>,
    /// How long a good run takes, whatever was seen.
    #[schema(example = "10m")]
    pub average_duration_override: Option<String>,
    /// How much each run counts for when load is spread, from 1ms on; left out: what its good runs
    /// take on average, and a minute before there was one.
    #[schema(example = "10m")]
    pub cost: Option<String>,
    /// What runs it: `crawl`, `http` (also `http_callback`), `shell`, `noop`, as far as the server has
    /// them. Left out, the job is a `crawl` of its `url` or of its target's.
    #[schema(nullable = false, example = "http")]
    pub executor_type: Option<String>,
    /// Settings of the executor, up to 64 KiB.
    #[schema(value_type = Option<Object>)]
    pub executor_config: Option<Value>,
    /// Passed to the executor as it is, up to 256 KiB.
    pub payload: Option<Value>,
    /// A whole rule for retries by its name, or by the number of the document that it is of:
    /// `standard`, `interval` (`001`), `queue` (`002`), `deadline` (`003`), `cron_service` (`004`).
    /// The fields below change single parts of it.
    #[schema(
        default = "standard",
        pattern = "^(standard|interval|queue|deadline|cron_service|001|002|003|004)$"
    )]
    pub retry_policy: Option<String>,
    /// Tries after the first one; 1000 by default where `retry_backoff` is `stages` by default.
    #[schema(maximum = 1000, default = 3)]
    pub max_retries: Option<u16>,
    /// The wait before the first retry; at most `retry_backoff_cap_seconds` if it doubles.
    #[schema(maximum = 2_592_000, default = 60)]
    pub retry_backoff_seconds: Option<u32>,
    /// `exponential` (doubling), `fixed`, or `stages` (5 minutes, an hour, then 4 hours, unless
    /// `retry_stages` says otherwise), which periodic jobs and those with `cron_schedule` have by default.
    #[schema(default = "exponential", pattern = "^(exponential|fixed|stages)$")]
    pub retry_backoff: Option<String>,
    /// Waits that double never get longer than this.
    #[schema(minimum = 1, maximum = 2_592_000, default = 3600)]
    pub retry_backoff_cap_seconds: Option<u32>,
    /// The waits one after the other, 1 to 50; the last one stays.
    #[schema(example = json!(["5m", "1h", "4h"]))]
    pub retry_stages: Option<Vec<String>>,
    /// How chance changes a wait: not at all, to a shorter or longer one, or to a longer one.
    #[schema(default = "symmetric", pattern = "^(none|symmetric|additive)$")]
    pub retry_jitter: Option<String>,
    /// By how much, in percent.
    #[schema(maximum = 100, default = 20)]
    pub retry_jitter_percent: Option<u8>,
    /// The longest silence of a body.
    #[schema(minimum = 1, maximum = 2_592_000, default = 300)]
    pub timeout_sec: Option<u32>,
    /// What takes longer is logged once, like `10m`.
    pub max_expected_duration: Option<String>,
    /// What takes longer is ended, like `1h`. Left out: no limit.
    pub max_allowed_duration: Option<String>,
    /// Its weight in its lane.
    #[schema(maximum = 100, default = 0)]
    pub priority: Option<u8>,
    /// `critical`, `standard` or `batch`.
    #[schema(default = "standard", pattern = "^(critical|standard|batch)$")]
    pub lane: Option<String>,
    /// The workers that may take it.
    #[schema(default = "default", max_length = 64, pattern = "^[A-Za-z0-9._-]+$")]
    pub pool: Option<String>,
    /// What is done with missed times: `last` runs, `skip` all, or `all` run.
    #[schema(default = "last", pattern = "^(last|skip|all)$")]
    pub misfire: Option<String>,
    /// A time this late is missed.
    #[schema(default = "1m")]
    pub misfire_after: Option<String>,
    /// What is done when it is due while it runs.
    #[schema(default = "skip", pattern = "^(skip|queue|allow|replace)$")]
    pub overlap: Option<String>,
    /// What becomes of an execution that its node lost without a known result: it starts again, or
    /// its run fails and never starts again, so that its effects happen at most once.
    #[schema(default = "retry", pattern = "^(retry|fail)$")]
    pub on_lost_worker: Option<String>,
    /// An execution that has lost more workers than this has failed.
    #[schema(maximum = 1000, default = 3)]
    pub max_crashes: Option<u16>,
    /// What becomes of a recurring job whose retries are used up.
    #[schema(default = "continue", pattern = "^(continue|stop)$")]
    pub on_exhausted: Option<String>,
    /// What else is done when a run has failed for good.
    pub on_failure: Option<OnFailureDocument>,
    /// Of all runs of the tenant with this key, `concurrency_limit` go on at once in the whole
    /// cluster, whatever their jobs.
    #[schema(min_length = 1, max_length = 255)]
    pub concurrency_key: Option<String>,
    /// How many; only with a `concurrency_key`.
    #[schema(minimum = 1, maximum = 10_000, default = 1)]
    pub concurrency_limit: Option<u32>,
    /// Not to be there twice: if a job with the same key, executor and tenant is, that one is the
    /// answer. Without a `dedup_key`, the key is what the job is about: its `target`, else its
    /// `source_id`, else its `url`.
    #[schema(default = false)]
    pub unique: Option<bool>,
    /// The same, with this key.
    #[schema(min_length = 1, max_length = 255)]
    pub dedup_key: Option<String>,
    /// Which job with the key counts: one that has something to come or waiting (`pending`), or that
    /// runs as well (`pending_or_running`), or any that was created or triggered within
    /// `dedup_window_seconds` (`window`).
    #[schema(default = "pending", pattern = "^(pending|pending_or_running|window)$")]
    pub dedup_scope: Option<String>,
    /// How long ago, if it is a `window`.
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub dedup_window_seconds: Option<u64>,
}

/// What is done when a run has failed and is not tried again.
#[derive(Clone, PartialEq, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"action": "pause", "after": 3, "note": "Ask the shop team."}))]
pub struct OnFailureDocument {
    /// Nothing, a pause of the job, or a place on the dead-letter list.
    #[schema(required = true, nullable = false, pattern = "^(none|pause|dead_letter)$")]
    pub action: Option<String>,
    /// So many runs in a row must fail before the job is paused.
    #[schema(minimum = 1, maximum = 1000, default = 3)]
    pub after: Option<u16>,
    /// For people: shown with the job as long as it is paused for this.
    #[schema(max_length = 500)]
    pub note: Option<String>,
}
