//! `POST /api/v1/runs/{id}/fail`

use axum::Json;
use axum::extract::State;
use evenkeel_commands::Ending;
use evenkeel_core::chain::{Again, Then};
use evenkeel_core::run::Outcome;
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::Results;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AttemptCaller, Said, tail};
use crate::body::MaybeJson;
use crate::params::NoParams;
use crate::problem::Problem;
use crate::state::App;

/// A bad end. Every field may be left out.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
pub struct FailDocument {
    /// What went wrong; its last 64 KiB are kept.
    pub error: Option<String>,
    /// What to keep of what was printed; its last 64 KiB are.
    pub output: Option<String>,
    /// `false` if trying again is of no use.
    pub retry: Option<bool>,
    /// Not before so many seconds have passed, a day at most.
    pub retry_after_seconds: Option<i64>,
    /// Items that were found.
    pub items_crawled: Option<i64>,
    /// Items that were kept.
    pub items_indexed: Option<i64>,
}

/// What follows a bad end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct FailedView {
    /// When the next attempt may start; none if there is none.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub retry_at: Option<Timestamp>,
}

/// Ends an attempt badly: for receivers that answered its call with 202. The job's retry policy
/// decides what follows, within what the body says.
#[utoipa::path(
    post,
    path = "/api/v1/runs/{id}/fail",
    operation_id = "fail_run",
    tag = "callbacks",
    params(("id" = uuid::Uuid, Path, description = "The id of the execution")),
    request_body(content = Option<FailDocument>,
        example = json!({"error": "the source is away", "retry_after_seconds": 120})),
    responses(
        (status = 200, description = "Its end is stored", body = FailedView),
        (status = 409, description = "It has ended, or was taken over"),
    ),
    security(("attempt" = [])),
    extensions(("x-required-role" = json!("none"))),
)]
pub(crate) async fn fail(
    State(app): State<App>,
    caller: AttemptCaller,
    _: NoParams,
    body: MaybeJson,
) -> Result<Json<FailedView>, Problem> {
    let ending = read(Said::new(body)?)?;
    let then = app.callbacks.end(caller.id, &caller.token, ending).await?;
    let retry_at = match then {
        Then::Retry { due } => Some(due),
        Then::EndChain { .. } => None,
    };
    Ok(Json(FailedView { retry_at }))
}

fn read(mut said: Said) -> Result<Ending, Problem> {
    let again = match (said.flag("retry")?, said.number("retry_after_seconds")?) {
        (Some(false), None) => Again::Never,
        (Some(false), Some(_)) => {
            let message = "goes with no retry: false; leave one of them out";
            return Err(Problem::parameter("retry_after_seconds", message));
        }
        (_, Some(secs)) => {
            // A day at most counts, so the number may be any.
            Again::NotBefore(Span::from_secs(secs.clamp(0, 1 << 32).unsigned_abs()))
        }
        (_, None) => Again::AsUsual,
    };
    let error = said.text("error")?.filter(|text| !text.is_empty());
    let results = Results {
        error: Some(error.map_or_else(|| "its receiver reported a failure".into(), tail)),
        output: said.text("output")?.map(tail),
        items_crawled: said.number("items_crawled")?,
        items_indexed: said.number("items_indexed")?,
        ..Results::default()
    };
    let known =
        ["error", "output", "retry", "retry_after_seconds", "items_crawled", "items_indexed"];
    said.finish(&known)?;
    Ok(Ending { outcome: Outcome::Failed, results, again })
}
