//! The page of one attempt of a run.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use maud::html;

use super::job::millis;
use super::job_link;
use crate::backend::escape;
use crate::session::Session;
use crate::{Web, layout, text};

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
) -> Response {
    let path = format!("/api/v1/executions/{}", escape(&id));
    let run = match web.backend.get(&session.credential, &path).await {
        Ok(run) => run,
        Err(refused) => return layout::refused(&session, "/jobs", &refused),
    };
    let now = web.now();
    let body = html! {
        h1 { "Run " (text::state(&run["status"])) }
        dl {
            dt { "Job" } dd { (job_link(&run["job_id"], &run["job_name"])) }
            dt { "Scheduled" } dd { (text::time(&run["scheduled_at"], now)) }
            dt { "Started" } dd { (text::time(&run["started_at"], now)) }
            dt { "Ended" } dd { (text::time(&run["completed_at"], now)) }
            dt { "Late" } dd { (millis(&run["lateness_ms"])) }
            dt { "Duration" } dd { (millis(&run["duration_ms"])) }
            dt { "Attempt" } dd { (text::plain(&run["attempt"])) }
            dt { "Node" } dd { (text::plain(&run["node"])) }
            dt { "Execution id" } dd { code { (text::plain(&run["id"])) } }
        }
        @if let Some(error) = run["error_message"].as_str() { h2 { "Error" } pre { (error) } }
        @if let Some(trace) = run["stack_trace"].as_str() { h2 { "Stack trace" } pre { (trace) } }
        h2 { "Output" }
        @match run["output"].as_str() {
            Some(output) => pre { (output) },
            None => p { "The run printed nothing." },
        }
    };
    layout::page(&session, "/jobs", "Run", &body)
}
