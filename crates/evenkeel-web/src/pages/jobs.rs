//! The list of jobs.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use evenkeel_core::Timestamp;
use evenkeel_store::Role;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

pub(crate) use super::job_filter::Filter;
use super::lists::{address, choice, count, input, search};
use super::queue::LANES;
use super::{counted, items, job_link, next_page, run_strip, saved_views};
use crate::bulk_actions::ACTIONS;
use crate::session::Session;
use crate::{Web, layout, text};

pub(crate) const PATH: &str = "/jobs";
/// Number of newest runs that the list shows of each job.
const RECENT_RUNS: &str = "10";
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

/// Sort orders of the API, and their names in a sentence.
const ORDERS: [(&str, &str); 4] = [
    ("created_at", "time of creation"),
    ("updated_at", "last change"),
    ("name", "name"),
    ("next_run_at", "next run"),
];

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    cursor: String,
    /// A sort order of the API; a leading `-` reverses it.
    #[serde(default)]
    sort: String,
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
    Query(Parameters { cursor, sort, done, count }): Query<Parameters>,
    headers: HeaderMap,
) -> Response {
    let fields = [("sort", sort.as_str()), ("recent_runs", RECENT_RUNS), ("cursor", &cursor)];
    let list = address(&filter.list(), &fields);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let jobs = items(&answer, "jobs");
    let mut query = filter.fields().to_vec();
    query.push(("sort", &sort));
    let body = html! {
        h1 { "Jobs" }
        @if let Some(notice) = notice(&done, &count).or_else(|| saved_views::notice(&done)) {
            p.notice role="status" { (notice) }
        }
        @if session.role >= Role::Operator {
            p { a.button.primary href="/jobs/new" { "Create a job" } }
        }
        (saved_views::list(&session, &headers, &query))
        (filters(&filter, &sort))
        @if jobs.is_empty() {
            (empty(&session, &answer, &filter))
        } @else {
            p { (counted(&answer, "job")) (order(&filter, &sort)) }
            (bulk(&session, &filter))
            (table(jobs, &filter, &sort, web.now()))
        }
        (next_page(&answer, PATH, &query))
    };
    layout::page(&session, PATH, "Jobs", &body)
}

fn empty(session: &Session, answer: &Value, filter: &Filter) -> Markup {
    html! {
        @if answer["next_cursor"].is_string() {
            p { "No job of this page matches. More jobs are on the next page." }
        } @else if !filter.is_empty() {
            p { "No job matches. " a href=(PATH) { "Show all jobs" } }
        } @else {
            p { "There is no job yet. "
                @if session.role >= Role::Operator { a href="/jobs/new" { "Create a job" } ", or run " }
                @else { "Users with the role operator create jobs here, or with " }
                code { "evenkeel job create --name hello --every 5m --noop" } "." }
        }
    }
}

fn notice(done: &str, number: &str) -> Option<String> {
    let command = ACTIONS.iter().find(|action| action.name == done)?;
    Some(format!("{}: {}.", command.label, count(number.parse().ok()?, "job")))
}

/// Returns the address of the list in another order; the same order again is reversed.
fn sorted_by(filter: &Filter, name: &str, sort: &str) -> String {
    let other = if sort == name { format!("-{name}") } else { name.to_owned() };
    let mut fields = filter.fields().to_vec();
    fields.push(("sort", &other));
    address(PATH, &fields)
}

/// Says how the list is sorted, with links to other orders.
fn order(filter: &Filter, sort: &str) -> Markup {
    let chosen = sort.trim_start_matches('-');
    let chosen = if chosen.is_empty() { ORDERS[0].0 } else { chosen };
    html! {
        ", sorted by "
        @for (nth, (name, text)) in ORDERS.iter().enumerate() {
            @if nth > 0 { " · " }
            a href=(sorted_by(filter, name, sort)) aria-current=[(*name == chosen).then_some("true")] { (text)
                @if *name == chosen { @if sort.starts_with('-') { " ▼" } @else { " ▲" } } }
        }
        "."
        @if matches!(chosen, "name" | "next_run_at") {
            " Jobs without a " @if chosen == "name" { "name" } @else { "next run" } " are left out."
        }
    }
}

fn filters(filter: &Filter, sort: &str) -> Markup {
    html! {
        form.filter method="get" action=(PATH) {
            @if !sort.is_empty() { input type="hidden" name="sort" value=(sort); }
            (search(&filter.q))
            (choice("status", "Status", &STATES, &filter.status))
            (choice("condition", "Condition", &CONDITIONS, &filter.condition))
            (choice("executor", "Executor", &EXECUTORS, &filter.executor))
            (choice("lane", "Lane", &LANES, &filter.lane))
            (input("name_prefix", "Name starts with", &filter.name_prefix, "news-"))
            (input("metadata", "Metadata", &filter.metadata, "team=red, tier=1"))
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

fn table(jobs: &[Value], filter: &Filter, sort: &str, now: Timestamp) -> Markup {
    html! {
        table aria-label="Jobs" {
            thead { tr {
                (sortable(filter, "name", "Job", sort))
                th scope="col" { "Status" } th scope="col" { "Condition" } th scope="col" { "Schedule" }
                (sortable(filter, "next_run_at", "Next run", sort))
                th scope="col" { "Last runs" } th scope="col" { "Executor" } th scope="col" { "Lane, pool" }
            } }
            tbody {
                @for job in jobs {
                    tr {
                        th scope="row" { (job_link(&job["id"], &job["name"])) }
                        td { (text::state(&job["status"])) }
                        td { (text::state(&job["condition"])) }
                        td.schedule { (text::schedule(job)) }
                        td { (text::time(&job["next_run_at"], now)) }
                        td { (last_runs(job, now)) }
                        td { (text::plain(&job["executor_type"])) }
                        td { (text::plain(&job["lane"])) ", " (text::plain(&job["pool"])) }
                    }
                }
            }
        }
    }
}

/// The head of a column by which the list can be sorted.
fn sortable(filter: &Filter, name: &str, title: &str, sort: &str) -> Markup {
    let direction = match sort.strip_prefix('-').unwrap_or(sort) == name {
        true if sort.starts_with('-') => Some("descending"),
        true => Some("ascending"),
        false => None,
    };
    html! {
        th scope="col" aria-sort=[direction] {
            a href=(sorted_by(filter, name, sort)) { (title)
                @match direction { Some("ascending") => " ▲", Some(_) => " ▼", None => "" } }
        }
    }
}

/// The newest runs of a job, when it last ran, and how often it failed in a row.
fn last_runs(job: &Value, now: Timestamp) -> Markup {
    let runs = items(job, "recent_runs");
    let failures = job["consecutive_failures"].as_u64().unwrap_or_default();
    html! {
        (run_strip::recent(runs))
        @if job["last_run_at"].is_string() { small { (text::time(&job["last_run_at"], now)) } " " }
        @if failures > 1 || failures > 0 && runs.is_empty() {
            (text::state(&Value::from("failed"))) @if failures > 1 { " " (failures) " times in a row" }
        }
        @else if !runs.is_empty() {}
        @else if job["execution_count"] == 0 { "never ran" }
        // All runs can have been pruned. The last run can have been cancelled, which is no failure.
        @else if job["last_good_end_at"].is_string() { (text::state(&Value::from("completed"))) }
        @else { "no success yet" }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn same_order_again_is_reversed() {
        let filter: Filter = serde_json::from_value(json!({"target": "40"})).unwrap();
        assert_eq!(sorted_by(&filter, "name", ""), "/jobs?target=40&sort=name");
        assert_eq!(sorted_by(&filter, "name", "name"), "/jobs?target=40&sort=-name");
        assert_eq!(sorted_by(&filter, "name", "-name"), "/jobs?target=40&sort=name");
        let head = sortable(&filter, "name", "Job", "-name").into_string();
        assert!(head.contains("aria-sort=\"descending\""), "{head}");
    }
}
