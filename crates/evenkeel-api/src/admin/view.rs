//! The jobs of the admin API.

use evenkeel_commands::{AdminJob, AdminStatus, ScheduledJob};
use evenkeel_core::{JobId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// Shown as `enqueued_by` if the job's metadata does not name a creator.
const SYSTEM: &str = "system";

/// A job with the status of its latest run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct AdminJobView {
    /// The job's number within the tenant.
    #[schema(example = 1)]
    pub id: i64,
    /// The job's id in `/api/v1`.
    #[schema(value_type = uuid::Uuid)]
    pub uuid: JobId,
    /// Number of the job's target.
    #[schema(example = 1)]
    pub subreddit_id: Option<i64>,
    /// Status of the latest run: `queued` (waits for a worker or a retry, or is due), `crawling`
    /// (running), `success`, or `failed` (failed, timed out or cancelled). Null if the job is
    /// scheduled and never ran.
    #[schema(value_type = Option<String>, example = "queued")]
    pub status: Option<&'static str>,
    /// Priority, 0 to 100.
    #[schema(example = 50)]
    pub priority: u8,
    /// Priority of the queued run, including the increase for its waiting time. In a list,
    /// `effective_priority` is exact for the first 100 queued jobs and for jobs that have just
    /// become due.
    #[schema(example = 60)]
    pub effective_priority: u8,
    /// Same as `retry_count`.
    pub retries: u16,
    /// Number of retries that the active run has used so far.
    pub retry_count: u16,
    /// Maximum number of retries of a run.
    #[schema(example = 3)]
    pub max_retries: u16,
    /// Start of the latest attempt.
    pub last_attempt: Option<Timestamp>,
    /// Duration of the last finished attempt, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Value of `enqueued_by` or `created_by` in the job's metadata; `system` if neither is set.
    #[schema(example = "system")]
    pub enqueued_by: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time when the job was last changed, or when its last attempt started or finished, whichever
    /// is later.
    pub updated_at: Timestamp,
    /// Time from which a worker may claim the job's queued run; without a queued run, the job's
    /// next run time.
    pub visible_at: Option<Timestamp>,
    /// Time of the next retry; null if no retry is pending.
    pub next_retry_at: Option<Timestamp>,
}

impl From<AdminJob> for AdminJobView {
    fn from(found: AdminJob) -> Self {
        let job = found.job;
        let history = &job.history;
        let began = job.running_since.max(history.last_start_at);
        let took = |(began, ended): (Timestamp, Timestamp)| ended.since(began).as_millis();
        let named = |name| job.about.metadata.get(name).and_then(serde_json::Value::as_str);
        let changed = [Some(job.updated_at), began, history.last_end_at];
        Self {
            id: job.number,
            uuid: job.id,
            subreddit_id: job.about.target,
            status: found.status.map(AdminStatus::as_str),
            priority: job.definition.priority.get(),
            effective_priority: found.effective_priority.get(),
            retries: job.retry_count,
            retry_count: job.retry_count,
            max_retries: job.definition.retry.max_retries,
            last_attempt: began,
            duration_ms: history.last_start_at.zip(history.last_end_at).map(took),
            enqueued_by: named("enqueued_by").or(named("created_by")).unwrap_or(SYSTEM).into(),
            created_at: job.created_at,
            updated_at: changed.into_iter().flatten().max().unwrap_or(job.updated_at),
            visible_at: found.visible_at,
            next_retry_at: found.next_retry_at,
        }
    }
}

/// A job with a cron expression or an interval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ScheduledJobView {
    /// The job's number within the tenant.
    #[schema(example = 1)]
    pub id: i64,
    /// The job's id in `/api/v1`.
    #[schema(value_type = uuid::Uuid)]
    pub uuid: JobId,
    /// Name of the job.
    #[schema(example = "daily-askreddit")]
    pub name: Option<String>,
    /// Free text for humans.
    #[schema(example = "Daily crawl of AskReddit")]
    pub description: Option<String>,
    /// Number of the job's target.
    #[schema(example = 1)]
    pub subreddit_id: Option<i64>,
    /// Cron expression; an interval is shown as `@every 30m`.
    #[schema(example = "@daily")]
    pub cron_expression: String,
    /// False if the job is paused or cancelled.
    pub enabled: bool,
    /// Start of the last execution.
    pub last_run_at: Option<Timestamp>,
    /// Next run time of the job; null while the job is disabled.
    pub next_run_at: Option<Timestamp>,
    /// Priority of the job's runs, from 0 (lowest) to 100 (highest).
    #[schema(example = 10)]
    pub priority: u8,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// Creator of the job, from the field `created_by` of its metadata.
    pub created_by: Option<String>,
    /// True if a job with the same deduplication key existed and nothing was created. Present only
    /// if the request has `unique` or `dedup_key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplicated: Option<bool>,
}

impl From<ScheduledJob> for ScheduledJobView {
    fn from(scheduled: ScheduledJob) -> Self {
        let (enabled, created_by) = (scheduled.enabled(), scheduled.created_by().map(Into::into));
        let ScheduledJob { job, cron_expression } = scheduled;
        // `Timestamp::MIN` is passed instead of the current time, so the result only considers a
        // blackout at the scheduled start.
        let next_run_at = job.next_start(Timestamp::MIN);
        Self {
            id: job.number,
            uuid: job.id,
            name: job.about.name,
            description: job.about.description,
            subreddit_id: job.about.target,
            cron_expression,
            enabled,
            last_run_at: job.running_since.max(job.history.last_start_at),
            next_run_at,
            priority: job.definition.priority.get(),
            created_at: job.created_at,
            updated_at: job.updated_at,
            created_by,
            deduplicated: None,
        }
    }
}
