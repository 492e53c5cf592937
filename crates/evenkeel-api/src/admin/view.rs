//! Jobs as the admin API shows them.

use evenkeel_commands::{AdminJob, AdminStatus, ScheduledJob};
use evenkeel_core::{JobId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// Whoever made a job is named in its metadata, if anybody is.
const SYSTEM: &str = "system";

/// A job, by where its latest run is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct AdminJobView {
    /// Its number within the tenant.
    #[schema(example = 1)]
    pub id: i64,
    /// Its id everywhere else.
    #[schema(value_type = uuid::Uuid)]
    pub uuid: JobId,
    /// The number of its target.
    #[schema(example = 1)]
    pub subreddit_id: Option<i64>,
    /// `queued` (it waits for a worker or a retry, or its time has come), `crawling`, `success` or
    /// `failed` (it failed, took too long or was cancelled); null if it is only scheduled and never
    /// ran.
    #[schema(value_type = Option<String>, example = "queued")]
    pub status: Option<&'static str>,
    /// Its priority, 0 to 100.
    #[schema(example = 50)]
    pub priority: u8,
    /// What waiting has made of that. In a list, exact for the first 100 that wait and for those
    /// whose time has just come.
    #[schema(example = 60)]
    pub effective_priority: u8,
    /// The same as `retry_count`.
    pub retries: u16,
    /// How many retries the run has had that is not over.
    pub retry_count: u16,
    /// How many it may have.
    #[schema(example = 3)]
    pub max_retries: u16,
    /// When its latest attempt began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_attempt: Option<Timestamp>,
    /// How long its last attempt took that is over.
    pub duration_ms: Option<u64>,
    /// Who made it, if its metadata say so in `enqueued_by` or `created_by`; else `system`.
    #[schema(example = "system")]
    pub enqueued_by: String,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was last changed, or an attempt of it last began or ended.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// When a worker may take it; when it is next due, if nothing of it waits or runs.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub visible_at: Option<Timestamp>,
    /// When it is tried again, if it waits for that.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_retry_at: Option<Timestamp>,
}

impl From<AdminJob> for AdminJobView {
    fn from(seen: AdminJob) -> Self {
        let job = seen.job;
        let history = &job.history;
        let began = job.running_since.max(history.last_start_at);
        let took = |(began, ended): (Timestamp, Timestamp)| ended.since(began).as_millis();
        let named = |name| job.about.metadata.get(name).and_then(serde_json::Value::as_str);
        let changed = [Some(job.updated_at), began, history.last_end_at];
        Self {
            id: job.number,
            uuid: job.id,
            subreddit_id: job.about.target,
            status: seen.status.map(AdminStatus::as_str),
            priority: job.definition.priority.get(),
            effective_priority: seen.effective_priority.get(),
            retries: job.retry_count,
            retry_count: job.retry_count,
            max_retries: job.definition.retry.max_retries,
            last_attempt: began,
            duration_ms: history.last_start_at.zip(history.last_end_at).map(took),
            enqueued_by: named("enqueued_by").or(named("created_by")).unwrap_or(SYSTEM).into(),
            created_at: job.created_at,
            updated_at: changed.into_iter().flatten().max().unwrap_or(job.updated_at),
            visible_at: seen.visible_at,
            next_retry_at: seen.next_retry_at,
        }
    }
}

/// A job that runs by a cron expression or at an interval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct ScheduledJobView {
    /// Its number within the tenant.
    #[schema(example = 1)]
    pub id: i64,
    /// Its id everywhere else.
    #[schema(value_type = uuid::Uuid)]
    pub uuid: JobId,
    /// Its name.
    #[schema(example = "daily-askreddit")]
    pub name: Option<String>,
    /// For people.
    #[schema(example = "Daily crawl of AskReddit")]
    pub description: Option<String>,
    /// The number of its target.
    #[schema(example = 1)]
    pub subreddit_id: Option<i64>,
    /// When it runs; at an interval, `@every` so long.
    #[schema(example = "@daily")]
    pub cron_expression: String,
    /// Does it run? If not, it is paused or was cancelled.
    pub enabled: bool,
    /// When its last execution began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_run_at: Option<Timestamp>,
    /// When it runs next; null while it does not.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_run_at: Option<Timestamp>,
    /// The priority of its runs.
    #[schema(example = 10)]
    pub priority: u8,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Who created it, if its metadata say so.
    pub created_by: Option<String>,
    /// It was there already, and nothing was made; only in the answer to a job with a `dedup_key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplicated: Option<bool>,
}

impl From<ScheduledJob> for ScheduledJobView {
    fn from(scheduled: ScheduledJob) -> Self {
        let (enabled, created_by) = (scheduled.enabled(), scheduled.created_by().map(Into::into));
        let ScheduledJob { job, cron_expression } = scheduled;
        // Without a current time: only the blackout at the regular time counts. A job that was held
        // longer is due already, or will be soon.
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
