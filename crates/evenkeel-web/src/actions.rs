//! Forms that change something. Each form calls one endpoint of the API.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use serde::Deserialize;
use serde_json::json;

use crate::backend::escape;
use crate::session::Session;
use crate::{Web, layout, pages};

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
