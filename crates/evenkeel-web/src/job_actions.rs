//! Forms that send a command to a job or a run.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};

use crate::backend::escape;
use crate::session::{Session, TokenForm};
use crate::{Web, layout};

/// The commands that a job's page offers. The page asks before `cancel` and `delete`.
const JOB_ACTIONS: [&str; 6] = ["trigger", "pause", "resume", "retry", "cancel", "delete"];

pub(crate) async fn act_on_job(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path((id, action)): Path<(String, String)>,
    Form(form): Form<TokenForm>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &form.token) {
        return refused;
    }
    if !JOB_ACTIONS.contains(&action.as_str()) {
        let detail = format!("There is no command {action:?}; use one of {JOB_ACTIONS:?}.");
        return layout::error(StatusCode::NOT_FOUND, "Unknown command", &detail);
    }
    let id = escape(&id);
    let path = format!("/api/v1/jobs/{id}");
    let credential = &session.credential;
    let answer = match action.as_str() {
        "delete" => web.backend.delete(credential, &path).await,
        _ => web.backend.post(credential, &format!("{path}/{action}"), None).await,
    };
    match answer {
        Ok(_) if action == "delete" => Redirect::to("/jobs?done=delete&count=1").into_response(),
        Ok(_) => Redirect::to(&format!("/jobs/{id}?done={action}")).into_response(),
        Err(refused) => layout::refused(&session, "/jobs", &refused),
    }
}

/// Cancels one run; its job keeps its schedule.
pub(crate) async fn cancel_run(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
    Form(form): Form<TokenForm>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &form.token) {
        return refused;
    }
    let id = escape(&id);
    let path = format!("/api/v1/executions/{id}/cancel");
    match web.backend.post(&session.credential, &path, None).await {
        Ok(_) => Redirect::to(&format!("/runs/{id}?done=cancel")).into_response(),
        Err(refused) => layout::refused(&session, "/jobs", &refused),
    }
}
