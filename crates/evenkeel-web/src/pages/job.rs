//! The page of one job: when it runs, why it does not run now, and its past runs.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use evenkeel_core::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::items;
use crate::backend::{Answer, escape};
use crate::layout::button;
use crate::session::Session;
use crate::{Web, layout, text};

#[derive(Deserialize)]
pub(crate) struct Parameters {
    /// The command that the page has just sent.
    done: Option<String>,
    /// A past time about which the user asks.
    at: Option<String>,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
    Query(Parameters { done, at }): Query<Parameters>,
) -> Response {
    let id = escape(&id);
    let get = async |rest: &str| {
        web.backend.get(&session.credential, &format!("/api/v1/jobs/{id}{rest}")).await
    };
    let job = match get("").await {
        Ok(job) => job,
        Err(refused) => return layout::refused(&session, "/jobs", &refused),
    };
    let at = at.filter(|at| !at.is_empty());
    let question = at.as_ref().map(|at| format!("?at={}", escape(at))).unwrap_or_default();
    let explanation = get(&format!("/explain{question}")).await;
    let condition = get("/condition").await;
    let next = get("/next?count=10").await;
    let executions = get("/executions?limit=25").await;
    let now = web.now();
    let name = text::job_name(&job["name"], &job["id"]);
    let body = html! {
        h1 { (name) " " (text::state(&job["status"])) }
        @if let Some(done) = done.as_deref().and_then(notice) { p.notice role="status" { (done) } }
        (commands(&session, &job, &id))
        section {
            h2 { "Why does it not run now?" }
            @match &explanation {
                Ok(answer) => {
                    p { (text::plain(&answer["summary"])) }
                    (past(&answer["past"]))
                }
                Err(refused) => p role="alert" { (refused.detail) },
            }
            form.filter method="get" action={ "/jobs/" (id) } {
                label for="at" { "Why did it not run at" }
                input id="at" name="at" required placeholder="09:00"
                    value=[at.as_deref()] aria-describedby="at-help";
                button { "Ask" }
                small id="at-help" { "a time of day in the zone of the job, or a time such as "
                    "2026-11-18T09:00:00Z" }
            }
            @if let Ok(condition) = &condition {
                p { (text::state(&condition["condition"])) " "
                    (text::plain(&condition["explanation"])) }
            }
        }
        (next_runs(&next))
        (past_runs(&executions, now))
        (definition(&job))
    };
    layout::page(&session, "/jobs", name, &body)
}

/// The answer to a question about a past time.
fn past(past: &Value) -> Markup {
    let Some(message) = past["message"].as_str() else { return html! {} };
    html! {
        p.notice role="status" {
            (message)
            @if let Some(run) = past["run_id"].as_str() {
                " " a href={ "/runs/" (escape(run)) } { "See the run" }
            }
        }
    }
}

fn notice(done: &str) -> Option<&'static str> {
    match done {
        "trigger" => Some("A run was requested and starts as soon as a worker is free."),
        "pause" => Some("The job is paused. A run that has started finishes."),
        "resume" => Some("The job is active again."),
        "retry" => Some("The failed run is tried again."),
        _ => None,
    }
}

fn commands(session: &Session, job: &Value, id: &str) -> Markup {
    if session.role < evenkeel_store::Role::Operator {
        return html! {};
    }
    let command =
        |action: &str, label: &str| button(session, &format!("/ui/jobs/{id}/{action}"), &[], label);
    html! {
        div.commands {
            (command("trigger", "Run now"))
            @if job["is_paused"] == true { (command("resume", "Resume")) }
            @else { (command("pause", "Pause")) }
            @if job["status"] == "failed" || job["consecutive_failures"].as_u64() > Some(0) {
                (command("retry", "Retry"))
            }
        }
    }
}

fn next_runs(next: &Answer) -> Markup {
    html! {
        section {
            h2 { "Next runs" }
            @match next {
                Ok(answer) if items(answer, "times").is_empty() => p { "It has no next run." },
                Ok(answer) => {
                    p { (text::plain(&answer["description"])) }
                    ol {
                        @for time in items(answer, "times") {
                            li { time datetime=(text::plain(&time["utc"])) { (text::local(&time["local"])) }
                                @if let Some(cause) = time["moved_by"].as_str() {
                                    " " strong { "moved by " (cause) }
                                } }
                        }
                    }
                }
                Err(refused) => p role="alert" { (refused.detail) },
            }
        }
    }
}

fn past_runs(executions: &Answer, now: Timestamp) -> Markup {
    html! {
        section {
            h2 { "Past runs" }
            @match executions {
                Ok(answer) if items(answer, "executions").is_empty() => p { "It has not run yet." },
                Ok(answer) => table {
                    thead { tr {
                        th scope="col" { "Scheduled" } th scope="col" { "Status" }
                        th scope="col" { "Attempt" } th scope="col" { "Late" }
                        th scope="col" { "Duration" } th scope="col" { "Error" }
                    } }
                    tbody {
                        @for run in items(answer, "executions") {
                            @let target = format!("/runs/{}", escape(&text::plain(&run["id"])));
                            tr {
                                th scope="row" { a href=(target) { (text::time(&run["scheduled_at"], now)) } }
                                td { (text::state(&run["status"])) }
                                td { (text::plain(&run["attempt"])) }
                                td { (millis(&run["lateness_ms"])) }
                                td { (millis(&run["duration_ms"])) }
                                td { (text::plain(&run["error_message"])) }
                            }
                        }
                    }
                },
                Err(refused) => p role="alert" { (refused.detail) },
            }
        }
    }
}

pub(super) fn millis(value: &Value) -> String {
    value.as_u64().map_or("–".to_owned(), text::duration)
}

fn definition(job: &Value) -> Markup {
    let shown = serde_json::to_string_pretty(job).unwrap_or_default();
    html! { details { summary { "All fields as JSON" } pre { (shown) } } }
}
