//! The sign-in page.

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use crate::oidc::Oidc;
use crate::session::local_path;
use crate::{Web, layout};

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    next: String,
}

pub(crate) async fn show(State(web): State<Web>, Query(query): Query<Parameters>) -> Response {
    page(&web, StatusCode::OK, &query.next, None, false)
}

/// The sign-in page after a refused credential.
pub(crate) fn refused(web: &Web, status: StatusCode, next: &str, detail: &str) -> Response {
    page(web, status, next, Some(detail), true)
}

/// The sign-in page after a failed sign-in at the identity provider.
pub(crate) fn failed(web: &Web, status: StatusCode, next: &str, detail: &str) -> Response {
    page(web, status, next, Some(detail), false)
}

/// `shows_token_form`: the token form is open, although there is an identity provider.
fn page(
    web: &Web,
    status: StatusCode,
    next: &str,
    problem: Option<&str>,
    shows_token_form: bool,
) -> Response {
    let next = local_path(next);
    let body = html! {
        div.sign-in {
            h1 { "Sign in" }
            @if let Some(problem) = problem { p.problem role="alert" { (problem) } }
            @match &web.oidc {
                Some(oidc) => (with_provider(oidc, next, shows_token_form)),
                None => (token_form(next, true)),
            }
        }
    };
    layout::bare(status, "Sign in", &body)
}

fn with_provider(oidc: &Oidc, next: &str, shows_token_form: bool) -> Markup {
    html! {
        // A link, because the policy of all pages lets forms lead only to this server.
        div.commands {
            a.button.primary href=(oidc.link(next)) autofocus[!shows_token_form] {
                "Sign in with " (oidc.name())
            }
        }
        details.group open[shows_token_form] {
            summary { "Sign in with a token or an API key" }
            (token_form(next, shows_token_form))
        }
    }
}

fn token_form(next: &str, has_focus: bool) -> Markup {
    html! {
        form.stacked method="post" action="/sign-in" {
            input type="hidden" name="next" value=(next);
            label for="credential" { "Token or API key" }
            input id="credential" name="credential" type="password" required autofocus[has_focus]
                autocomplete="off" spellcheck="false";
            button.primary { "Sign in" }
        }
        p { "The token of a local server is in the file " code { "token" } " of its data directory. "
            "Administrators create others with " code { "evenkeel token create --role viewer" } " or "
            code { "evenkeel api-key create NAME --role viewer" } "." }
    }
}
