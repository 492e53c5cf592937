//! `POST /api/v1/jobs/commands`: one command for many jobs.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use evenkeel_commands::{CommandError, Refusal, read_bulk_command};
use evenkeel_core::{JobId, Span};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::auth::Caller;
use crate::body::JsonBody;
use crate::page::decode;
use crate::params::NoParams;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// A command for many jobs.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkCommandDocument {
    /// `pause`, `resume`, `cancel`, `retry`, `delete` or `set_priority`.
    #[schema(pattern = "^(pause|resume|cancel|retry|delete|set_priority)$", example = "pause")]
    pub action: String,
    /// For these jobs, at most 10,000.
    #[schema(value_type = Option<Vec<uuid::Uuid>>, max_items = 10_000)]
    pub ids: Option<Vec<JobId>>,
    /// For those that pass this; the empty one means all.
    pub filter: Option<FilterDocument>,
    /// Only count what it would do.
    #[schema(default = false)]
    pub dry_run: Option<bool>,
    /// The weight in their lanes, for `set_priority`.
    #[schema(maximum = 100)]
    pub priority: Option<u8>,
    /// With a filter, goes on where another answer ended: its `next_cursor`.
    pub cursor: Option<String>,
}

/// Which jobs: those that pass all that is said.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterDocument {
    /// Those whose name starts with this.
    pub name_prefix: Option<String>,
    /// Those about this source.
    pub source_id: Option<String>,
    /// Those about a source whose id starts with this.
    pub source_prefix: Option<String>,
    /// Those that name the target with this number.
    #[schema(minimum = 1)]
    pub target: Option<i64>,
    /// Those in this state.
    #[schema(
        pattern = "^(pending|scheduled|running|paused|completed|failed|cancelled)$",
        example = "scheduled"
    )]
    pub status: Option<String>,
    /// Those in this condition.
    #[schema(pattern = "^(OK|WARNING|ERROR)$")]
    pub condition: Option<String>,
    /// Those with this executor.
    pub executor: Option<String>,
    /// Those in this lane.
    #[schema(pattern = "^(critical|standard|batch)$")]
    pub lane: Option<String>,
    /// Those whose metadata hold all of these at the top.
    #[schema(value_type = Option<Object>, example = json!({"category": "news"}))]
    pub metadata: Option<Value>,
    /// Those whose next time is this or later.
    #[schema(format = DateTime)]
    pub next_run_after: Option<String>,
    /// Those whose next time is before this.
    #[schema(format = DateTime)]
    pub next_run_before: Option<String>,
}

/// A job that did not obey.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct RefusalView {
    /// Which one.
    #[schema(value_type = uuid::Uuid)]
    pub id: JobId,
    /// Why, in a word: `not_found`, `changed_meanwhile`, `not_allowed_while_completed`…
    pub reason: String,
    /// Why, in plain English.
    pub detail: String,
}

/// What a command for many jobs did, or would do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct BulkOutcomeView {
    /// Was it only counted?
    pub dry_run: bool,
    /// How many were looked at.
    pub matched: u64,
    /// How many obeyed, or would.
    pub done: u64,
    /// How many did not, by reason.
    pub refused: BTreeMap<String, u64>,
    /// The first 100 of those.
    pub refusals: Vec<RefusalView>,
    /// There was no time for all: send the same again with this as `cursor`.
    pub next_cursor: Option<String>,
}

/// Has many jobs obey a command, each on its own; or counts, with `dry_run`, what that would do.
/// By filter it works for up to 20 seconds and then answers with a cursor to go on from.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/commands",
    operation_id = "command_jobs",
    tag = "jobs",
    request_body(content = BulkCommandDocument, example = json!({
        "action": "pause", "filter": {"metadata": {"category": "news"}}, "dry_run": true,
    })),
    responses((status = 200, description = "What was done", body = BulkOutcomeView)),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn commands(
    State(app): State<App>,
    caller: Caller,
    _: NoParams,
    JsonBody(document): JsonBody,
) -> Result<Json<BulkOutcomeView>, Problem> {
    let command = read_bulk_command(&document, |cursor| decode(cursor, &app.run_ids))
        .map_err(|faults| Problem::of_fields(ProblemType::InvalidParameter, faults))?;
    let has_time = has_time(&app);
    let outcome = app.jobs.command_many(&caller.scope, &command, &has_time).await;
    let outcome = outcome.map_err(|error: CommandError| Problem::from(error))?;
    let told = |Refusal { id, reason, detail }| RefusalView { id, reason, detail };
    Ok(Json(BulkOutcomeView {
        dry_run: command.dry_run,
        matched: outcome.matched,
        done: outcome.done,
        refused: outcome.refused,
        refusals: outcome.refusals.into_iter().map(told).collect(),
        next_cursor: app.cursor(outcome.next),
    }))
}

/// Whether a request that begins now has time for more.
pub(crate) fn has_time(app: &App) -> impl Fn() -> bool + Send + Sync + use<> {
    let until = (app.clock)().saturating_add(working_time(app.settings.request_timeout));
    let clock = app.clock.clone();
    move || clock() < until
}

/// Two thirds of the time that a request has: the last batch must end in time.
pub(crate) fn working_time(limit: std::time::Duration) -> Span {
    Span::from_micros(u64::try_from(limit.as_micros()).unwrap_or(u64::MAX) / 3 * 2)
}
