//! Forms that change something. Each form calls one endpoint of the API.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use serde::Deserialize;
use serde_json::json;

use crate::backend::escape;
use crate::session::Session;
use crate::{Web, layout, pages};

/// The commands that a job's page offers.
const JOB_ACTIONS: [&str; 4] = ["trigger", "pause", "resume", "retry"];

#[derive(Deserialize)]
pub(crate) struct JobForm {
    #[serde(default)]
    token: String,
}

pub(crate) async fn act_on_job(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path((id, action)): Path<(String, String)>,
    Form(form): Form<JobForm>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &form.token) {
        return refused;
    }
    if !JOB_ACTIONS.contains(&action.as_str()) {
        let detail = format!("There is no command {action:?}; use one of {JOB_ACTIONS:?}.");
        return layout::error(StatusCode::NOT_FOUND, "Unknown command", &detail);
    }
    let id = escape(&id);
    let path = format!("/api/v1/jobs/{id}/{action}");
    match web.backend.post(&session.credential, &path, None).await {
        Ok(_) => Redirect::to(&format!("/jobs/{id}?done={action}")).into_response(),
        Err(refused) => layout::refused(&session, "/jobs", &refused),
    }
}

#[derive(Deserialize)]
pub(crate) struct RebalanceForm {
    #[serde(default)]
    token: String,
    /// The previewed plan; without it, the form asks for a preview.
    plan: Option<String>,
}

pub(crate) async fn rebalance(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Form(form): Form<RebalanceForm>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &form.token) {
        return refused;
    }
    let credential = &session.credential;
    let Some(plan) = form.plan else {
        let path = "/api/v1/scheduler/rebalance/preview";
        return match web.backend.post(credential, path, None).await {
            Ok(preview) => pages::balance::preview(&session, &preview, web.now()),
            Err(refused) => layout::refused(&session, "/balance", &refused),
        };
    };
    let body = json!({"plan_id": plan});
    match web.backend.post(credential, "/api/v1/scheduler/rebalance", Some(&body)).await {
        Ok(done) => {
            let id = done["rebalance_id"].as_str().unwrap_or_default();
            Redirect::to(&format!("/balance?rebalance={}", escape(id))).into_response()
        }
        Err(refused) => layout::refused(&session, "/balance", &refused),
    }
}
