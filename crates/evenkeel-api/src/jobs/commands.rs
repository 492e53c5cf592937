//! `POST /api/v1/jobs/commands`: applies one command to many jobs.

use std::collections::BTreeMap;

use axum::Json;
use evenkeel_commands::{CommandError, Refusal, read_bulk_command};
use evenkeel_core::{JobId, Span};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::body::JsonBody;
use crate::call::{Answer, Call};
use crate::cursor::decode;
use crate::problem::Problem;
use crate::state::App;

/// A command for many jobs, selected by `ids` or `filter`.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkCommandDocument {
    /// `pause`, `resume`, `cancel`, `retry`, `delete` or `set_priority`.
    #[schema(pattern = "^(pause|resume|cancel|retry|delete|set_priority)$", example = "pause")]
    pub action: String,
    /// Ids of the jobs, at most 10,000.
    #[schema(value_type = Option<Vec<uuid::Uuid>>, max_items = 10_000)]
    pub ids: Option<Vec<JobId>>,
    /// Selects the jobs that match these conditions; an empty filter selects all jobs.
    pub filter: Option<FilterDocument>,
    /// With `true`, no job is changed; the response only counts what the command would do.
    #[schema(default = false)]
    pub dry_run: Option<bool>,
    /// For `set_priority`: the new priority, 0 to 100.
    #[schema(maximum = 100)]
    pub priority: Option<u8>,
    /// Continues a request with `filter`: the `next_cursor` of the previous response.
    pub cursor: Option<String>,
}

/// Selects the jobs that match all given conditions; omitted conditions match every job.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterDocument {
    /// Matches jobs whose name starts with this text.
    pub name_prefix: Option<String>,
    /// Matches jobs with this `source_id`.
    pub source_id: Option<String>,
    /// Matches jobs whose `source_id` starts with this text.
    pub source_prefix: Option<String>,
    /// Matches jobs with this target number.
    #[schema(minimum = 1)]
    pub target: Option<i64>,
    /// Matches jobs with this status.
    #[schema(
        pattern = "^(pending|scheduled|running|paused|completed|failed|cancelled)$",
        example = "scheduled"
    )]
    pub status: Option<String>,
    /// Matches jobs in this condition.
    #[schema(pattern = "^(OK|WARNING|ERROR)$")]
    pub condition: Option<String>,
    /// Matches jobs with this executor, such as `http`.
    pub executor: Option<String>,
    /// Matches jobs in this lane.
    #[schema(pattern = "^(critical|standard|batch)$")]
    pub lane: Option<String>,
    /// Matches jobs whose metadata have all these values at the top level.
    #[schema(value_type = Option<Object>, example = json!({"category": "news"}))]
    pub metadata: Option<Value>,
    /// Matches jobs whose next run time is at or after this time.
    #[schema(format = DateTime)]
    pub next_run_after: Option<String>,
    /// Matches jobs whose next run time is before this time.
    #[schema(format = DateTime)]
    pub next_run_before: Option<String>,
    /// Matches jobs whose name, description, URL, source, target or metadata contain every word of
    /// this text, as the parameter `q` of the list of jobs does.
    #[schema(max_length = 256, example = "forum example.com")]
    pub q: Option<String>,
}

/// A job to which the command was not applied.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct RefusalView {
    /// Id of the job.
    #[schema(value_type = uuid::Uuid)]
    pub id: JobId,
    /// Reason code: `not_found`, `changed_meanwhile`, `not_allowed_while_completed`…
    pub reason: String,
    /// Explanation of the reason.
    pub detail: String,
}

/// The result of a command that was applied to many jobs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct BulkOutcomeView {
    /// True if the request was a dry run that changed nothing.
    pub dry_run: bool,
    /// Number of jobs that were selected.
    pub matched: u64,
    /// Number of jobs to which the command was applied, or would be applied in a dry run.
    pub done: u64,
    /// Number of jobs to which the command was not applied, by reason code.
    pub refused: BTreeMap<String, u64>,
    /// The first 100 jobs to which the command was not applied.
    pub refusals: Vec<RefusalView>,
    /// Set if the time limit was reached: repeat the request with this value as `cursor`.
    pub next_cursor: Option<String>,
}

/// Applies a command to many jobs, each independently. With `dry_run`, the request only counts what
/// the command would do.
///
/// A request with `filter` works for up to 20 seconds, and then answers with a cursor to continue.
#[utoipa::path(
    post, path = "/api/v1/jobs/commands", tag = "jobs",
    request_body(content = BulkCommandDocument, example = json!({
        "action": "pause", "filter": {"metadata": {"category": "news"}}, "dry_run": true,
    })),
    responses((status = 200, description = "The result", body = BulkOutcomeView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn command_jobs(
    call: Call,
    JsonBody(document): JsonBody,
) -> Answer<BulkOutcomeView> {
    let command = read_bulk_command(&document, |cursor| decode(cursor, &call.run_ids))?;
    let has_time = has_time(&call);
    let outcome = call.jobs.command_many(call.scope(), &command, &has_time).await;
    let outcome = outcome.map_err(|error: CommandError| Problem::from(error))?;
    let refusal = |Refusal { id, reason, detail }| RefusalView { id, reason, detail };
    Ok(Json(BulkOutcomeView {
        dry_run: command.dry_run,
        matched: outcome.matched,
        done: outcome.done,
        refused: outcome.refused,
        refusals: outcome.refusals.into_iter().map(refusal).collect(),
        next_cursor: call.cursor(outcome.next),
    }))
}

/// Returns a function that tells whether the request still has time to start more work.
pub(crate) fn has_time(app: &App) -> impl Fn() -> bool + Send + Sync + use<> {
    let until = (app.clock)().saturating_add(working_time(app.settings.request_timeout));
    let clock = app.clock.clone();
    move || clock() < until
}

/// Returns two thirds of the request timeout, so that the last batch finishes before the timeout.
pub(crate) fn working_time(limit: std::time::Duration) -> Span {
    Span::from_micros(u64::try_from(limit.as_micros()).unwrap_or(u64::MAX) / 3 * 2)
}
