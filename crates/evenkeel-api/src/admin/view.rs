//! Responses of the admin API that describe jobs.

use evenkeel_commands::{AdminJob, AdminStatus, ScheduledJob};
use evenkeel_core::{JobId, Timestamp};

use crate::view::view;

/// Value of the field `enqueued_by` if the job's metadata does not name a creator.
const SYSTEM: &str = "system";

view! {
    /// A job with the status of its latest run.
    AdminJobView::new(found: AdminJob) {
        let job = found.job;
        let history = &job.history;
        let began = job.running_since.max(history.last_start_at);
        let took = |(began, ended): (Timestamp, Timestamp)| ended.since(began).as_millis();
        let named = |name| job.about.metadata.get(name).and_then(serde_json::Value::as_str);
        let changed = [Some(job.updated_at), began, history.last_end_at];
    }

    /// The job's number within the tenant.
    #[schema(example = 1)]
    id: i64 = job.number,
    /// The job's id in `/api/v1`.
    uuid: JobId as uuid::Uuid = job.id,
    /// Number of the job's target.
    #[schema(example = 1)]
    subreddit_id: Option<i64> = job.about.target,
    /// Status of the latest run: `queued` (waits for a worker or a retry, or is due), `crawling`
    /// (running), `success`, or `failed` (failed, timed out or cancelled). Null if the job is
    /// scheduled and never ran.
    #[schema(value_type = Option<String>, example = "queued")]
    status: Option<&'static str> = found.status.map(AdminStatus::as_str),
    /// Priority, 0 to 100.
    #[schema(example = 50)]
    priority: u8 = job.definition.priority.get(),
    /// Priority of the queued run, including the increase for its waiting time. In a list,
    /// `effective_priority` is exact for the first 100 queued jobs and for jobs that have just
    /// become due.
    #[schema(example = 60)]
    effective_priority: u8 = found.effective_priority.get(),
    /// Same as `retry_count`.
    retries: u16 = job.retry_count,
    /// Number of retries that the active run has used so far.
    retry_count: u16 = job.retry_count,
    /// Maximum number of retries of a run.
    #[schema(example = 3)]
    max_retries: u16 = job.definition.retry.max_retries,
    /// Start of the latest attempt.
    last_attempt: Option<Timestamp> = began,
    /// Duration of the last finished attempt, in milliseconds.
    duration_ms: Option<u64> = history.last_start_at.zip(history.last_end_at).map(took),
    /// Value of `enqueued_by` or `created_by` in the job's metadata; `system` if neither is set.
    #[schema(example = "system")]
    enqueued_by: String = named("enqueued_by").or(named("created_by")).unwrap_or(SYSTEM).into(),
    /// Creation time.
    created_at: Timestamp = job.created_at,
    /// Time when the job was last changed, or when its last attempt started or finished, whichever
    /// is later.
    updated_at: Timestamp = changed.into_iter().flatten().max().unwrap_or(job.updated_at),
    /// Time from which a worker may claim the job's queued run; without a queued run, the job's
    /// next run time.
    visible_at: Option<Timestamp> = found.visible_at,
    /// Time of the next retry; null if no retry is pending.
    next_retry_at: Option<Timestamp> = found.next_retry_at,
}

view! {
    /// A job with a cron expression or an interval.
    ScheduledJobView::new(scheduled: ScheduledJob) {
        let (enabled, created_by) = (scheduled.enabled(), scheduled.created_by().map(Into::into));
        let ScheduledJob { job, cron_expression } = scheduled;
        // With `Timestamp::MIN` as the current time, `next_start` ignores a blackout that began
        // after the run could first start.
        let next_run_at = job.next_start(Timestamp::MIN);
    }

    /// The job's number within the tenant.
    #[schema(example = 1)]
    id: i64 = job.number,
    /// The job's id in `/api/v1`.
    uuid: JobId as uuid::Uuid = job.id,
    /// Name of the job.
    #[schema(example = "daily-askreddit")]
    name: Option<String> = job.about.name,
    /// Free text for humans.
    #[schema(example = "Daily crawl of AskReddit")]
    description: Option<String> = job.about.description,
    /// Number of the job's target.
    #[schema(example = 1)]
    subreddit_id: Option<i64> = job.about.target,
    /// Cron expression; an interval is shown as `@every 30m`.
    #[schema(example = "@daily")]
    cron_expression: String = cron_expression,
    /// False if the job is paused or cancelled.
    enabled: bool = enabled,
    /// Start of the last execution.
    last_run_at: Option<Timestamp> = job.running_since.max(job.history.last_start_at),
    /// Next run time of the job; null while the job is disabled.
    next_run_at: Option<Timestamp> = next_run_at,
    /// Priority of the job's runs, from 0 (lowest) to 100 (highest).
    #[schema(example = 10)]
    priority: u8 = job.definition.priority.get(),
    /// Creation time.
    created_at: Timestamp = job.created_at,
    /// Time of the last change.
    updated_at: Timestamp = job.updated_at,
    /// Creator of the job, from the field `created_by` of its metadata.
    created_by: Option<String> = created_by,
    /// True if a job with the same deduplication key existed and no job was created. The field is
    /// present only if the request has `unique` or `dedup_key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    deduplicated: Option<bool> = None,
}
