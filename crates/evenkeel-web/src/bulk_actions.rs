//! One command for all jobs that match a filter: counted first, confirmed, then applied.

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::backend::{Answer, escape};
use crate::layout::button;
use crate::pages::items;
use crate::pages::jobs::{Filter, PATH};
use crate::pages::lists::{Confirmation, address, count};
use crate::session::Session;
use crate::{Web, layout, text};

/// A bulk command of the API.
pub(crate) struct Action {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    effect: &'static str,
}

pub(crate) const ACTIONS: [Action; 6] = [
    Action {
        name: "pause",
        label: "Pause",
        effect: "No scheduled run starts until the jobs are resumed. Queued runs are withdrawn; runs that \
                 have started finish.",
    },
    Action { name: "resume", label: "Resume", effect: "The jobs run again by their schedules." },
    Action {
        name: "retry",
        label: "Retry",
        effect: "The last run of each job is repeated now, if it failed.",
    },
    Action {
        name: "set_priority",
        label: "Set priority",
        effect: "The priority decides which run of a lane starts first.",
    },
    Action {
        name: "cancel",
        label: "Cancel",
        effect: "Queued runs are withdrawn, active runs are asked to stop, and the jobs never run again.",
    },
    Action {
        name: "delete",
        label: "Delete",
        effect: "Queued runs are withdrawn, active runs are asked to stop, and the jobs can't be restored. \
                 Their past runs stay until retention deletes them.",
    },
];

/// What the API is asked to do, besides the filter.
#[derive(Deserialize)]
pub(crate) struct Command {
    #[serde(default)]
    token: String,
    #[serde(default)]
    action: String,
    #[serde(default)]
    priority: String,
    /// Selects the jobs by their ids instead of a filter, separated by commas.
    #[serde(default)]
    ids: String,
    /// Continues a command that took too long for one request.
    #[serde(default)]
    cursor: String,
}

impl Command {
    fn known(&self) -> Option<&'static Action> {
        ACTIONS.iter().find(|action| action.name == self.action)
    }

    fn unknown(&self) -> Response {
        let names: Vec<&str> = ACTIONS.iter().map(|action| action.name).collect();
        let detail = format!("There is no command {:?}; use one of {names:?}.", self.action);
        layout::error(StatusCode::NOT_FOUND, "Unknown command", &detail)
    }

    async fn send(&self, web: &Web, session: &Session, filter: &Filter, dry_run: bool) -> Answer {
        let mut body = json!({"action": self.action, "dry_run": dry_run});
        if self.ids.is_empty() {
            body["filter"] = filter.document();
        } else {
            body["ids"] = self.ids.split(',').collect();
        }
        if self.action == "set_priority" {
            // A text that is not a number is sent as it is, so that the API says what is wrong.
            let number = self.priority.parse::<u8>().map_or(json!(self.priority), Value::from);
            body["priority"] = number;
        }
        if !self.cursor.is_empty() {
            body["cursor"] = json!(self.cursor);
        }
        web.backend.post(&session.credential, "/api/v1/jobs/commands", Some(&body)).await
    }

    /// The fields of a form that sends this command.
    fn fields<'a>(&'a self, filter: &'a Filter) -> Vec<(&'a str, &'a str)> {
        let mut fields = vec![
            ("action", self.action.as_str()),
            ("priority", &self.priority),
            ("ids", &self.ids),
        ];
        fields.extend(filter.fields().into_iter().filter(|(_, value)| !value.is_empty()));
        fields
    }
}

/// Counts the jobs that a command would change, and asks whether to apply it.
pub(crate) async fn confirm(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(filter): Query<Filter>,
    Query(command): Query<Command>,
) -> Response {
    let Some(action) = command.known() else { return command.unknown() };
    let outcome = match command.send(&web, &session, &filter, true).await {
        Ok(outcome) => outcome,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let number = outcome["done"].as_u64().unwrap_or_default();
    // A dry run that reached its time limit has not seen all jobs.
    let at_least = if outcome["next_cursor"].is_string() { "at least " } else { "" };
    let number_of_jobs = format!("{at_least}{}", count(number, "job"));
    let title = format!("{} {number_of_jobs}?", action.label);
    let back = address(PATH, &filter.fields());
    let text = html! {
        @if command.ids.is_empty() { (selection(&filter)) }
        @if action.name == "set_priority" { p { "The new priority is " (command.priority) "." } }
        p { (action.effect) }
        (refusals(&outcome))
        @if command.ids.is_empty() {
            p { small { "The command applies to the jobs that match when you confirm." } }
        }
    };
    let body = match number {
        0 => html! {
            h1 { "There is no job to change" }
            p { "Of " (count(outcome["matched"].as_u64().unwrap_or_default(), "job"))
                " that match, the command " strong { (action.label) } " applies to none." }
            (refusals(&outcome))
            p { a href=(back) { "Back to the jobs" } }
        },
        _ => Confirmation {
            title: &title,
            text,
            action: "/ui/job-commands",
            fields: &command.fields(&filter),
            label: &format!("{} {number_of_jobs}", action.label),
            back: &back,
        }
        .render(&session),
    };
    layout::page(&session, PATH, &title, &body)
}

fn selection(filter: &Filter) -> Markup {
    html! {
        @if filter.is_empty() {
            p { strong { "There is no filter: the command applies to all jobs." } }
        } @else {
            p { "Jobs with:" }
            dl {
                @for (name, value) in filter.fields().iter().filter(|(_, value)| !value.is_empty()) {
                    dt { (name.replace('_', " ")) } dd { (value) }
                }
            }
        }
    }
}

/// The jobs to which a command does not apply: their number by reason, and the first of them.
fn refusals(outcome: &Value) -> Markup {
    let reasons = outcome["refused"].as_object().filter(|reasons| !reasons.is_empty());
    let Some(reasons) = reasons else { return html! {} };
    html! {
        p { "The command does not apply to:" }
        ul {
            @for (reason, number) in reasons {
                li { (count(number.as_u64().unwrap_or_default(), "job")) ": "
                    (reason.replace('_', " ")) }
            }
        }
        details {
            summary { "The first of these jobs" }
            ul {
                @for refusal in items(outcome, "refusals") {
                    @let id = text::plain(&refusal["id"]);
                    li { a href={ "/jobs/" (escape(&id)) } { code { (id) } } " "
                        (text::plain(&refusal["detail"])) }
                }
            }
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct CommandForm {
    #[serde(flatten)]
    filter: Filter,
    #[serde(flatten)]
    command: Command,
}

/// Applies a command to all jobs that match.
pub(crate) async fn apply(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Form(CommandForm { filter, command }): Form<CommandForm>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &command.token) {
        return refused;
    }
    let Some(action) = command.known() else { return command.unknown() };
    let outcome = match command.send(&web, &session, &filter, false).await {
        Ok(outcome) => outcome,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let number = outcome["done"].as_u64().unwrap_or_default();
    let next = outcome["next_cursor"].as_str();
    let is_complete = outcome["refused"].as_object().is_none_or(serde_json::Map::is_empty);
    if is_complete && next.is_none() {
        let done = [("done", action.name), ("count", &number.to_string())];
        return Redirect::to(&address(PATH, &done)).into_response();
    }
    let mut fields = command.fields(&filter);
    fields.push(("cursor", next.unwrap_or_default()));
    let body = html! {
        h1 { (action.label) ": " (count(number, "job")) }
        (refusals(&outcome))
        @if next.is_some() {
            p role="alert" { "There are more jobs than one request can change. Continue with the others." }
            (button(&session, "/ui/job-commands", &fields, "Continue"))
        }
        p { a href=(address(PATH, &filter.fields())) { "Back to the jobs" } }
    };
    layout::page(&session, PATH, action.label, &body)
}
