//! The list of jobs.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use evenkeel_core::Timestamp;
use evenkeel_store::Role;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::lists::{address, choice, count, input};
use super::queue::LANES;
use super::{PAGE_ITEMS, items, job_link, next_page, total};
use crate::bulk_actions::ACTIONS;
use crate::session::Session;
use crate::{Web, layout, text};

pub(crate) const PATH: &str = "/jobs";
/// The states by which the list can be filtered, as in the API.
const STATES: [(&str, &str); 7] = [
    ("pending", "pending"),
    ("scheduled", "scheduled"),
    ("running", "running"),
    ("paused", "paused"),
    ("completed", "completed"),
    ("failed", "failed"),
    ("cancelled", "cancelled"),
];
const CONDITIONS: [(&str, &str); 3] = [("OK", "OK"), ("WARNING", "WARNING"), ("ERROR", "ERROR")];
const EXECUTORS: [(&str, &str); 4] =
    [("http", "http"), ("shell", "shell"), ("crawl", "crawl"), ("noop", "noop")];

/// The filters of the list. A bulk command takes the same filters.
#[derive(Deserialize)]
pub(crate) struct Filter {
    #[serde(default)]
    q: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    condition: String,
    #[serde(default)]
    executor: String,
    #[serde(default)]
    lane: String,
    #[serde(default)]
    name_prefix: String,
    /// Number of a target.
    #[serde(default)]
    target: String,
}

impl Filter {
    pub(crate) fn fields(&self) -> [(&'static str, &str); 7] {
        [
            ("q", &self.q),
            ("status", &self.status),
            ("condition", &self.condition),
            ("executor", &self.executor),
            ("lane", &self.lane),
            ("name_prefix", &self.name_prefix),
            ("target", &self.target),
        ]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields().iter().all(|(_, value)| value.is_empty())
    }

    /// Returns the filter as the API expects it in the document of a bulk command.
    pub(crate) fn document(&self) -> Value {
        let given = self.fields().into_iter().filter(|(_, value)| !value.is_empty());
        let fields = given.map(|(name, value)| {
            // Only the number of a target is not a text. The API refuses a text there.
            let number = (name == "target").then(|| value.parse::<i64>().ok()).flatten();
            (name.to_owned(), number.map_or_else(|| Value::from(value), Value::from))
        });
        Value::Object(fields.collect::<Map<_, _>>())
    }
}

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    cursor: String,
    /// The bulk command that was just applied, and to how many jobs.
    #[serde(default)]
    done: String,
    #[serde(default)]
    count: String,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(filter): Query<Filter>,
    Query(Parameters { cursor, done, count }): Query<Parameters>,
) -> Response {
    let list = address(&format!("/api/v1/jobs?limit={PAGE_ITEMS}"), &filter.fields());
    let list = address(&list, &[("cursor", &cursor)]);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let jobs = items(&answer, "jobs");
    let body = html! {
        h1 { "Jobs" }
        @if let Some(notice) = notice(&done, &count) { p.notice role="status" { (notice) } }
        @if session.role >= Role::Operator {
            p { a href="/jobs/new" { "Create a job" } }
        }
        (filters(&filter))
        @if jobs.is_empty() {
            @if answer["next_cursor"].is_string() {
                p { "No job of this page matches. More jobs are on the next page." }
            } @else if filter.is_empty() {
                p { "There is no job yet. Create one: "
                    code { "evenkeel job create --name hello --every 5m --noop" } }
            } @else {
                p { "No job matches. " a href=(PATH) { "Show all jobs" } }
            }
        } @else {
            p { (total(&answer)) " jobs" }
            (bulk(&session, &filter))
            (table(jobs, web.now()))
        }
        (next_page(&answer, PATH, &filter.fields()))
    };
    layout::page(&session, PATH, "Jobs", &body)
}

fn notice(done: &str, number: &str) -> Option<String> {
    let command = ACTIONS.iter().find(|action| action.name == done)?;
    Some(format!("{}: {}.", command.label, count(number.parse().ok()?, "job")))
}

fn filters(filter: &Filter) -> Markup {
    html! {
        form.filter method="get" action=(PATH) {
            label for="q" { "Search" }
            input id="q" name="q" type="search" value=(filter.q);
            (choice("status", "Status", &STATES, &filter.status))
            (choice("condition", "Condition", &CONDITIONS, &filter.condition))
            (choice("executor", "Executor", &EXECUTORS, &filter.executor))
            (choice("lane", "Lane", &LANES, &filter.lane))
            (input("name_prefix", "Name starts with", &filter.name_prefix, "news-"))
            @if !filter.target.is_empty() { (input("target", "Target", &filter.target, "40")) }
            button { "Show" }
        }
    }
}

/// Asks for a command for all jobs that match. The next page counts them and asks again.
fn bulk(session: &Session, filter: &Filter) -> Markup {
    if session.role < Role::Operator {
        return html! {};
    }
    html! {
        details {
            summary { "Command for all jobs that match" }
            form.filter method="get" action="/job-commands" {
                @for (name, value) in filter.fields().iter().filter(|(_, value)| !value.is_empty()) {
                    input type="hidden" name=(name) value=(value);
                }
                label for="action" { "Command" }
                select id="action" name="action" {
                    @for action in &ACTIONS { option value=(action.name) { (action.label) } }
                }
                label for="priority" { "New priority, 0 to 100" }
                input id="priority" name="priority" type="number" min="0" max="100"
                    aria-describedby="priority-help";
                small id="priority-help" { "only for the command Set priority" }
                button { "Count the jobs…" }
            }
        }
    }
}

fn table(jobs: &[Value], now: Timestamp) -> Markup {
    html! {
        table {
            thead { tr {
                th scope="col" { "Job" } th scope="col" { "Status" }
                th scope="col" { "Condition" } th scope="col" { "Schedule" }
                th scope="col" { "Next run" } th scope="col" { "Last run" }
                th scope="col" { "Executor" } th scope="col" { "Lane, pool" }
            } }
            tbody {
                @for job in jobs {
                    tr {
                        th scope="row" { (job_link(&job["id"], &job["name"])) }
                        td { (text::state(&job["status"])) }
                        td { (text::state(&job["condition"])) }
                        td { (text::schedule(job)) }
                        td { (text::time(&job["next_run_at"], now)) }
                        td { (text::time(&job["last_run_at"], now)) }
                        td { (text::plain(&job["executor_type"])) }
                        td { (text::plain(&job["lane"])) ", " (text::plain(&job["pool"])) }
                    }
                }
            }
        }
    }
}
