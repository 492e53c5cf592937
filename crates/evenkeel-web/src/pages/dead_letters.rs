//! Dead letters: runs that failed for good, until an operator redrives or deletes them.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use evenkeel_core::Timestamp;
use evenkeel_store::Role;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::lists::{Confirmation, address, choice, count, input};
use super::{PAGE_ITEMS, counted, items, job_link, next_page};
use crate::backend::escape;
use crate::layout::button;
use crate::session::Session;
use crate::{Web, layout, text};

pub(crate) const PATH: &str = "/dead-letters";
const API: &str = "/api/v1/dead-letters";
/// Values of the filter `redriven` of the API, and their texts.
const REDRIVEN: [(&str, &str); 2] = [("false", "not redriven"), ("true", "redriven")];

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    job: String,
    #[serde(default)]
    redriven: String,
    #[serde(default)]
    cursor: String,
    /// The command that the page has just sent, and to how many dead letters it was applied.
    done: Option<String>,
    count: Option<u64>,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(parameters): Query<Parameters>,
) -> Response {
    let Parameters { job, redriven, cursor, done, count } = parameters;
    let list = format!("{API}?limit={PAGE_ITEMS}");
    let list = address(&list, &[("job_id", &job), ("redriven", &redriven), ("cursor", &cursor)]);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let letters = items(&answer, "dead_letters");
    let filter = [("job", job.as_str()), ("redriven", redriven.as_str())];
    let body = html! {
        h1 { "Dead letters" }
        @if let Some(notice) = done.and_then(|done| notice(&done, count.unwrap_or_default())) {
            p.notice role="status" { (notice) }
        }
        form.filter method="get" action=(PATH) {
            (input("job", "Job", &job, "name or id"))
            (choice("redriven", "State", &REDRIVEN, &redriven))
            button { "Show" }
        }
        @if letters.is_empty() {
            (empty(&job, &redriven))
        } @else {
            p { (counted(&answer, "dead letter")) }
            (commands_for_all(&session, &filter))
            (table(&session, letters, web.now()))
            (next_page(&answer, PATH, &filter))
        }
    };
    layout::page(&session, PATH, "Dead letters", &body)
}

fn notice(done: &str, number: u64) -> Option<String> {
    let what = match done {
        "redrive" => "redriven: their jobs run again as soon as a worker is free",
        "delete" => "deleted",
        _ => return None,
    };
    Some(format!("{} {what}.", count(number, "dead letter")))
}

fn empty(job: &str, redriven: &str) -> Markup {
    html! {
        @if job.is_empty() && redriven.is_empty() {
            p { "There is no dead letter. A run that failed for good becomes a dead letter if its job has "
                code { "\"on_failure\": {\"action\": \"dead_letter\"}" } ". Other failures are in "
                a href="/failures" { "Failures" } "." }
        } @else {
            p { "No dead letter matches. " a href=(PATH) { "Show all dead letters" } }
        }
    }
}

fn commands_for_all(session: &Session, filter: &[(&str, &str)]) -> Markup {
    if session.role < Role::Operator {
        return html! {};
    }
    let target = |action| address(&format!("{PATH}/confirm?action={action}"), filter);
    html! {
        p.commands {
            a href=(target("redrive")) { "Redrive all that match…" }
            a href=(target("delete")) { "Delete all that match…" }
        }
    }
}

fn table(session: &Session, letters: &[Value], now: Timestamp) -> Markup {
    let may_change = session.role >= Role::Operator;
    html! {
        table aria-label="Dead letters" {
            thead { tr {
                th scope="col" { "Job" } th scope="col" { "Status" } th scope="col" { "Scheduled" }
                th scope="col" { "Died" } th scope="col" { "Attempts" } th scope="col" { "Error" }
                th scope="col" { "Redriven" }
                @if may_change { th scope="col" { "Commands" } }
            } }
            tbody {
                @for letter in letters {
                    @let run = format!("/runs/{}", escape(&text::plain(&letter["execution_id"])));
                    tr {
                        th scope="row" { (job_link(&letter["job_id"], &letter["job_name"])) }
                        td { (text::state(&letter["status"])) }
                        td { a href=(run) { (text::time(&letter["scheduled_at"], now)) } }
                        td { (text::time(&letter["died_at"], now)) }
                        td { (letter["attempts"]) " (" (reason(&letter["reason"])) ")" }
                        td.cut { (text::plain(&letter["error_message"])) }
                        td { (redriven(letter, now)) }
                        @if may_change { td { (commands(session, letter)) } }
                    }
                }
            }
        }
    }
}

fn reason(reason: &Value) -> String {
    text::plain(reason).replace('_', " ")
}

fn redriven(letter: &Value, now: Timestamp) -> Markup {
    let at = text::time(&letter["redriven_at"], now);
    match letter["redriven_run_id"].as_str() {
        Some(run) => html! { a href={ "/runs/" (escape(run)) } { (at) } },
        None => at,
    }
}

fn commands(session: &Session, letter: &Value) -> Markup {
    let id = escape(&text::plain(&letter["id"]));
    let path = |action: &str| format!("/ui/dead-letters/{id}/{action}");
    html! {
        div.row-commands {
            @if letter["redriven_at"].is_null() {
                (button(session, &path("redrive"), &[], "Redrive"))
            }
            (button(session, &path("delete"), &[], "Delete"))
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Question {
    #[serde(default)]
    action: String,
    #[serde(default)]
    job: String,
    #[serde(default)]
    redriven: String,
}

/// Counts the dead letters that match, and asks whether to redrive or delete them.
pub(crate) async fn confirm(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Question { action, job, redriven }): Query<Question>,
) -> Response {
    let verb = match action.as_str() {
        "redrive" => "Redrive",
        "delete" => "Delete",
        _ => {
            let detail = "There is no such command; use redrive or delete.";
            return layout::error(StatusCode::NOT_FOUND, "Unknown command", detail);
        }
    };
    // A dead letter can be redriven only once.
    let counted = if action == "redrive" { "false" } else { redriven.as_str() };
    let list = address(&format!("{API}?limit=1"), &[("job_id", &job), ("redriven", counted)]);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let number = answer["total"].as_u64().unwrap_or_default();
    let filter = [("job", job.as_str()), ("redriven", redriven.as_str())];
    let back = address(PATH, &filter);
    let title = format!("{verb} {}?", count(number, "dead letter"));
    let until = web.now().as_micros().to_string();
    let confirmation = Confirmation {
        title: &title,
        text: html! {
            @if !job.is_empty() { p { "Only dead letters of the job " strong { (job) } "." } }
            @if action == "redrive" {
                p { "Each job runs again now, in addition to its scheduled runs. If a job allows only one \
                     run at a time, one of its dead letters is redriven and the others stay." }
            } @else {
                p { "Deleted dead letters can't be restored. The runs stay in the history of their jobs." }
            }
        },
        action: &format!("/ui/dead-letters/{action}"),
        fields: &[("job", &job), ("redriven", counted), ("until", &until)],
        label: &format!("{verb} {}", count(number, "dead letter")),
        back: &back,
    };
    let body = match number {
        0 => html! { h1 { "Nothing matches" } p { a href=(back) { "Back to the dead letters" } } },
        _ => confirmation.render(&session),
    };
    layout::page(&session, PATH, &title, &body)
}
