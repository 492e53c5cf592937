//! The page of one job: when it runs, why it does not run now, and its past runs.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use evenkeel_core::Timestamp;
use futures::join;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

pub(super) use super::job_history::millis;
use super::{PAGE_ITEMS, job_history, job_preview};
use crate::backend::{Answer, escape};
use crate::layout::{button, primary_button};
use crate::session::Session;
use crate::{Web, layout, text};

#[derive(Deserialize)]
pub(crate) struct Parameters {
    /// The command that the page has just sent.
    done: Option<String>,
    /// A past time about which the user asks.
    at: Option<String>,
    /// Where the list of past runs goes on.
    cursor: Option<String>,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
    Query(Parameters { done, at, cursor }): Query<Parameters>,
) -> Response {
    let id = escape(&id);
    let credential = &session.credential;
    let get =
        async |rest: &str| web.backend.get(credential, &format!("/api/v1/jobs/{id}{rest}")).await;
    let job = match get("").await {
        Ok(job) => job,
        Err(refused) => return layout::refused(&session, "/jobs", &refused),
    };
    let at = at.filter(|at| !at.is_empty());
    let question = at.as_ref().map(|at| format!("?at={}", escape(at))).unwrap_or_default();
    let cursor = cursor.map(|cursor| format!("&cursor={}", escape(&cursor))).unwrap_or_default();
    let runs =
        format!("/api/v1/runs?limit={PAGE_ITEMS}&job={}{cursor}", escape(&text::plain(&job["id"])));
    let (explain, next) =
        (format!("/explain{question}"), format!("/next?count={}", job_preview::TIMES));
    let (explanation, condition, next, stats, runs) = join!(
        get(&explain),
        get("/condition"),
        get(&next),
        get("/stats"),
        web.backend.get(credential, &runs),
    );
    let now = web.now();
    let name = text::job_name(&job["name"], &job["id"]);
    let body = html! {
        h1 { (name) " " (text::state(&job["status"])) }
        @if let Some(done) = done.as_deref().and_then(notice) { p.notice role="status" { (done) } }
        @if let Some(description) = job["description"].as_str() { p { (description) } }
        (commands(&session, &job, &id))
        (ask(&id, at.as_deref(), &explanation))
        div.side-by-side {
            (promise(&condition, now))
            (next_runs(&next, &job))
            (job_history::cadence(&job, &runs, &stats, now))
        }
        (job_history::render(&runs, &id, now))
        (definition(&job))
        @if session.role >= evenkeel_store::Role::Admin {
            p { a href={ "/audit?target=" (escape(&text::plain(&job["id"]))) } { "Who changed this job (audit log)" } }
        }
    };
    layout::page(&session, "/jobs", name, &body)
}

/// The question that brings most users to this page, and its answer.
fn ask(id: &str, at: Option<&str>, explanation: &Answer) -> Markup {
    html! {
        section.question {
            form.filter method="get" action={ "/jobs/" (id) } {
                label for="at" { strong { "Why did it not run at" } }
                input id="at" name="at" required placeholder="09:00" value=[at] aria-describedby="at-help";
                button { "Ask" }
                small id="at-help" { "a time of day in the zone of the job, or a time such as "
                    "2026-11-18T09:00:00Z" }
            }
            @if let (Some(_), Ok(answer)) = (at, explanation) { (past(&answer["past"])) }
            @if at.is_none() { h2 { "Why does it not run now?" } }
            @match explanation {
                Ok(answer) if at.is_none() => p { (text::plain(&answer["summary"])) },
                Ok(_) => p { a href={ "/jobs/" (id) } { "Why does it not run now?" } },
                Err(refused) => p.problem role="alert" { (refused.detail) },
            }
        }
    }
}

/// Whether the job keeps its deadline promise, and why.
fn promise(condition: &Answer, now: Timestamp) -> Markup {
    html! {
        section.panel {
            h2 { "Deadline promise" }
            @match condition {
                Ok(condition) => {
                    p { (text::state(&condition["condition"])) " " (text::plain(&condition["explanation"]))
                        " (" code { (text::plain(&condition["reason"])) } ")"
                        @if let Some(advice) = condition["advice"].as_str() { " " (advice) } }
                    dl {
                        dt { "Deadline" } dd { (text::time(&condition["deadline"], now)) }
                        dt { "Can start" } dd { (text::time(&condition["can_start_by"], now)) }
                        dt { "Must start by" } dd { (text::time(&condition["should_start_by"], now)) }
                    }
                }
                Err(refused) => p role="alert" { (refused.detail) },
            }
        }
    }
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
        "retry" => Some("A new run starts in place of the failed run."),
        "cancel" => Some("The job is cancelled and never runs again."),
        "create" => Some("The job is created."),
        "edit" => Some("The changes are saved."),
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
            (primary_button(session, &format!("/ui/jobs/{id}/trigger"), &[], "Run now"))
            @if job["is_paused"] == true { (command("resume", "Resume")) }
            @else { (command("pause", "Pause")) }
            @if job["status"] == "failed" || job["consecutive_failures"].as_u64() > Some(0) {
                (command("retry", "Retry"))
            }
            a href={ "/jobs/" (id) "/edit" } { "Edit" }
            a href={ "/jobs/" (id) "/edit?as=json" } { "Edit as JSON" }
            @if job["status"] != "cancelled" { a href={ "/jobs/" (id) "/confirm/cancel" } { "Cancel job" } }
            a href={ "/jobs/" (id) "/confirm/delete" } { "Delete job" }
        }
    }
}

fn next_runs(next: &Answer, job: &Value) -> Markup {
    html! {
        section.panel {
            h2 { "Next runs" }
            @match next {
                Ok(answer) => {
                    p { (text::plain(&answer["description"])) }
                    @if job["is_paused"] == true {
                        p { "The job is paused, so it has no next run until it is resumed." }
                    } @else { (job_preview::times(answer)) }
                    @if answer["exact_times"] == false {
                        p { "The times are the latest ones: the job may start earlier." }
                    }
                }
                Err(refused) => p role="alert" { (refused.detail) },
            }
            p { a href={ "/timeline?job=" (escape(&text::plain(&job["id"]))) } { "Past and next runs on one axis" } }
        }
    }
}

/// Asks before a command that can't be undone.
pub(crate) async fn confirm(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path((id, action)): Path<(String, String)>,
) -> Response {
    let id = escape(&id);
    let (label, effect) = match action.as_str() {
        "cancel" => (
            "Cancel job",
            "Its queued runs are withdrawn and its running execution is \
            stopped. It never runs again, but stays visible. A pause can be undone, this can't.",
        ),
        "delete" => (
            "Delete job",
            "Its queued runs are withdrawn and its running execution is \
            stopped. The job disappears from all lists. This can't be undone.",
        ),
        _ => {
            return layout::error(
                StatusCode::NOT_FOUND,
                "Unknown command",
                "There is no such command.",
            );
        }
    };
    let job = match web.backend.get(&session.credential, &format!("/api/v1/jobs/{id}")).await {
        Ok(job) => job,
        Err(refused) => return layout::refused(&session, "/jobs", &refused),
    };
    let body = html! {
        h1 { (label) " " (text::job_name(&job["name"], &job["id"])) "?" }
        p { (effect) }
        @if session.role < evenkeel_store::Role::Operator {
            p role="alert" { "This needs the role operator." }
        }
        div.commands {
            @if session.role >= evenkeel_store::Role::Operator {
                (primary_button(&session, &format!("/ui/jobs/{id}/{action}"), &[], label))
            }
            a href={ "/jobs/" (id) } { "Keep it" }
        }
    };
    layout::page(&session, "/jobs", label, &body)
}

fn definition(job: &Value) -> Markup {
    let shown = serde_json::to_string_pretty(job).unwrap_or_default();
    html! { details { summary { "All fields as JSON" } pre { (shown) } } }
}
