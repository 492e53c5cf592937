//! Forms that plan, start, stop and undo a rebalance.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::backend::escape;
use crate::session::{Session, TokenForm};
use crate::{Web, layout, pages};

#[derive(Deserialize)]
pub(crate) struct RebalanceForm {
    #[serde(default)]
    token: String,
    /// The previewed plan; without it, the form asks for a preview.
    plan: Option<String>,
}

/// Makes a plan and shows it, or starts the rebalance of a plan.
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
            Ok(preview) => to_rebalance(&preview["plan_id"]),
            Err(refused) => layout::refused(&session, "/balance", &refused),
        };
    };
    // The page of the rebalance shows its progress, so the form does not wait for its end.
    let body = json!({"plan_id": plan, "wait": false});
    match web.backend.post(credential, "/api/v1/scheduler/rebalance", Some(&body)).await {
        Ok(started) => to_rebalance(&started["rebalance_id"]),
        Err(refused) => pages::balance::not_started(&session, &refused),
    }
}

/// Stops or undoes a rebalance.
pub(crate) async fn act_on_rebalance(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path((id, action)): Path<(String, String)>,
    Form(form): Form<TokenForm>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &form.token) {
        return refused;
    }
    let body = match action.as_str() {
        "stop" => None,
        "undo" => Some(json!({"wait": false})),
        _ => {
            let detail = format!("There is no command {action:?}; use \"stop\" or \"undo\".");
            return layout::error(StatusCode::NOT_FOUND, "Unknown command", &detail);
        }
    };
    let path = format!("/api/v1/scheduler/rebalance/{}/{action}", escape(&id));
    match web.backend.post(&session.credential, &path, body.as_ref()).await {
        Ok(changed) => to_rebalance(&changed["rebalance_id"]),
        Err(refused) => layout::refused(&session, "/balance", &refused),
    }
}

fn to_rebalance(id: &Value) -> Response {
    let id = escape(id.as_str().unwrap_or_default());
    Redirect::to(&format!("/balance?rebalance={id}")).into_response()
}
