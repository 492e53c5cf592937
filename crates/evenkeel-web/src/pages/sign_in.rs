//! The sign-in page.

use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use crate::layout;
use crate::session::local_path;

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    next: String,
}

pub(crate) async fn show(Query(query): Query<Parameters>) -> Response {
    layout::bare(StatusCode::OK, "Sign in", &form(&query.next, None))
}

/// The sign-in page after a refused credential.
pub(crate) fn refused(status: StatusCode, next: &str, detail: &str) -> Response {
    layout::bare(status, "Sign in", &form(next, Some(detail)))
}

fn form(next: &str, problem: Option<&str>) -> Markup {
    html! {
        h1 { "Sign in" }
        @if let Some(problem) = problem { p.problem role="alert" { (problem) } }
        form method="post" action="/sign-in" {
            input type="hidden" name="next" value=(local_path(next));
            label for="credential" { "Token or API key" }
            input id="credential" name="credential" type="password" required autofocus
                autocomplete="off" spellcheck="false";
            button { "Sign in" }
        }
        p { "The token of a local server is in the file " code { "token" } " of its data directory. "
            "Administrators create others with " code { "evenkeel token create --role viewer" } " or "
            code { "evenkeel api-key create NAME --role viewer" } "." }
    }
}
