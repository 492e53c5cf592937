//! A form that tries an operation of the API with the rights of the session.

use axum::extract::{Query, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::{Extension, Form};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{DOCUMENT, Operation, PATH};
use crate::session::Session;
use crate::{Web, layout};

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// A stream of events does not end, so a page can't show it.
const STREAM: &str = "/api/v1/events";
/// Longest answer that the page shows.
const SHOWN_CHARS_MAX: usize = 200_000;

#[derive(Deserialize)]
pub(crate) struct Choice {
    method: String,
    path: String,
}

pub(crate) async fn try_it(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Choice { method, path }): Query<Choice>,
) -> Response {
    let document = match web.backend.get(&session.credential, DOCUMENT).await {
        Ok(document) => document,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let chosen = Operation::all(&document).find(|it| it.method == method && it.path == path);
    let about = html! {
        @if let Some(operation) = &chosen { (operation.about(&document, &format!("{PATH}/all#"))) }
    };
    let body = chosen.and_then(|operation| operation.example()).unwrap_or_default();
    page(&session, &Request { token: String::new(), method, path, body }, &about)
}

/// A request that the user wants to send.
#[derive(Deserialize)]
pub(crate) struct Request {
    #[serde(default)]
    token: String,
    method: String,
    path: String,
    #[serde(default)]
    body: String,
}

/// Sends the request to the API with the credential of the session, and shows its answer.
pub(crate) async fn send(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Form(request): Form<Request>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &request.token) {
        return refused;
    }
    let answer = match checked(&request) {
        Ok((method, body)) => {
            let credential = &session.credential;
            let sent = web.backend.try_out(credential, method, &request.path, body.as_ref()).await;
            sent.map_err(|refused| refused.detail)
        }
        Err(problem) => Err(problem),
    };
    let shown = html! {
        section aria-live="polite" {
            h2 { "Answer" }
            @match answer {
                Ok((status, text)) => (shown(status, &text)),
                Err(problem) => p.problem role="alert" { (problem) },
            }
        }
    };
    page(&session, &request, &shown)
}

/// Returns the method and the body of a valid request, or what is wrong with it.
fn checked(request: &Request) -> Result<(Method, Option<Value>), String> {
    let Request { method, path, body, .. } = request;
    if !METHODS.contains(&method.as_str()) {
        return Err(format!("The method {method:?} is unknown; use one of {METHODS:?}."));
    }
    if !path.starts_with("/api/") || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "The path {path:?} is no path of the API. It begins with /api/ and has no spaces; \
             write a space in a value as %20."
        ));
    }
    if path.split('?').next() == Some(STREAM) {
        return Err(format!("{STREAM} is a stream without an end. Follow it with curl -N."));
    }
    if path.contains('{') {
        return Err("Replace each part in braces, such as {id}, with a value.".to_owned());
    }
    let method = Method::from_bytes(method.as_bytes()).map_err(|error| error.to_string())?;
    if body.trim().is_empty() {
        return Ok((method, None));
    }
    let body = serde_json::from_str(body);
    body.map(|body| (method, Some(body))).map_err(|error| format!("The body is no JSON: {error}"))
}

fn shown(status: StatusCode, answer: &str) -> Markup {
    let pretty = serde_json::from_str::<Value>(answer)
        .and_then(|value| serde_json::to_string_pretty(&value))
        .unwrap_or_else(|_| answer.to_owned());
    let shown: String = pretty.chars().take(SHOWN_CHARS_MAX).collect();
    html! {
        p { "Status " strong { (status.as_u16()) " " (status.canonical_reason().unwrap_or("")) } }
        pre tabindex="0" { (shown) }
        @if shown.len() < pretty.len() { p { "The rest of " (pretty.len()) " bytes is not shown." } }
    }
}

fn page(session: &Session, request: &Request, below: &Markup) -> Response {
    let body = html! {
        h1 { "Try " code { (request.method) " " (request.path) } }
        p { a href=(PATH) { "All operations" } }
        form.stacked method="post" action="/ui/try" {
            input type="hidden" name="token" value=(session.form_token);
            label for="method" { "Method" }
            select id="method" name="method" {
                @for method in METHODS { option selected[method == request.method] { (method) } }
            }
            label for="path" { "Path and query" }
            input id="path" name="path" required value=(request.path) spellcheck="false";
            label for="body" { "Body (JSON)" }
            textarea id="body" name="body" rows="8" spellcheck="false" { (request.body) }
            @if request.method != "GET" {
                p { "The request changes real data, and is written to the audit log." }
            }
            button { "Send" }
        }
        (below)
    };
    layout::page(session, PATH, "Try the API", &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_to_the_api_are_sent() {
        let request = |method: &str, path: &str, body: &str| {
            checked(&Request {
                token: String::new(),
                method: method.into(),
                path: path.into(),
                body: body.into(),
            })
        };
        assert_eq!(request("GET", "/api/v1/jobs?limit=1", " ").unwrap(), (Method::GET, None));
        let body = Some(serde_json::json!({"a": 1}));
        assert_eq!(request("POST", "/api/v1/jobs", "{\"a\": 1}").unwrap(), (Method::POST, body));
        for (method, path, body) in [
            ("GET", "/metrics", ""),
            ("GET", "http://elsewhere/api/", ""),
            ("GET", "/api/v1/jobs/{id}", ""),
            ("GET", "/api/v1/jobs?q=a b", ""),
            ("GET", "/api/v1/events?kind=run", ""),
            ("TRACE", "/api/v1/jobs", ""),
            ("POST", "/api/v1/jobs", "{"),
        ] {
            assert!(request(method, path, body).is_err(), "{method} {path}");
        }
    }
}
