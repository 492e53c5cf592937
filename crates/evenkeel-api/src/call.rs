//! The argument type and the result type that most request handlers have in common.

use std::ops::Deref;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use evenkeel_store::Scope;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::state::App;

/// The result of a handler that answers with JSON.
pub(crate) type Answer<T> = Result<Json<T>, Problem>;

/// An authenticated request: the caller, and the shared state with the commands (`call.jobs`,
/// `call.runs`…).
pub(crate) struct Call {
    app: App,
    pub(crate) caller: Caller,
}

impl Call {
    pub(crate) fn scope(&self) -> &Scope {
        &self.caller.scope
    }
}

impl Deref for Call {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}

impl FromRequestParts<App> for Call {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        Ok(Self { app: app.clone(), caller })
    }
}
