//! The list of runs of all jobs.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use evenkeel_core::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::job::millis;
use super::lists::{address, choice, input};
use super::typed_times::{in_full, typed};
use super::{PAGE_ITEMS, items, job_link, next_page, typed_times};
use crate::backend::escape;
use crate::session::Session;
use crate::{Web, layout, text};

const PATH: &str = "/runs";
/// The states by which the list can be filtered, as in the API.
const STATES: [(&str, &str); 9] = [
    ("pending", "pending"),
    ("running", "running"),
    ("completed", "completed"),
    ("failed", "failed"),
    ("timed_out", "timed out"),
    ("cancelled", "cancelled"),
    ("skipped", "skipped"),
    ("partly_failed", "partly failed"),
    ("superseded", "superseded"),
];

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    status: String,
    #[serde(default)]
    job: String,
    #[serde(default)]
    since: String,
    #[serde(default)]
    until: String,
    #[serde(default)]
    cursor: String,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Parameters { status, job, since, until, cursor }): Query<Parameters>,
) -> Response {
    let (from, to) = (in_full(&since), in_full(&until));
    let filter = [("status", status.as_str()), ("job", &job), ("since", &from), ("until", &to)];
    if let Some(answer) = typed_times::redirect(&[(&since, &from), (&until, &to)], PATH, &filter) {
        return answer;
    }
    let list = address(&format!("/api/v1/runs?limit={PAGE_ITEMS}"), &filter);
    let list = address(&list, &[("cursor", &cursor)]);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let (runs, now) = (items(&answer, "runs"), web.now());
    let is_filtered = filter.iter().any(|(_, value)| !value.is_empty());
    let body = html! {
        h1 { "Runs" }
        form.filter method="get" action=(PATH) {
            (choice("status", "Status", &STATES, &status))
            (input("job", "Job", &job, "name or id"))
            (input("since", "Since", &typed(&since), "2026-11-18 09:00"))
            (input("until", "Until", &typed(&until), "2026-11-19"))
            button { "Show" }
        }
        (periods(&status, &job, now))
        @if runs.is_empty() {
            @if answer["next_cursor"].is_string() {
                p { "No run of this page matches. Older runs are on the next page." }
            } @else if is_filtered {
                p { "No run matches. " a href=(PATH) { "Show all runs" } }
            } @else {
                p { "No job has run yet. Open a job in " a href="/jobs" { "Jobs" }
                    " to see when it runs next, or to run it now." }
            }
        } @else {
            (table(runs, now))
        }
        (next_page(&answer, PATH, &filter))
    };
    layout::page(&session, PATH, "Runs", &body)
}

/// Links to recent periods, with absolute times so that a shared link keeps its meaning.
fn periods(status: &str, job: &str, now: Timestamp) -> Markup {
    let link = |hours: i64, name: &str| {
        let since = jiff::Timestamp::from_microsecond(now.as_micros() - hours * 3_600_000_000);
        let since = since.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        let since = since.unwrap_or_default();
        let target = address(PATH, &[("status", status), ("job", job), ("since", &since)]);
        html! { a href=(target) { (name) } }
    };
    html! {
        p.commands {
            (typed_times::note())
            (link(1, "Last hour")) (link(24, "Last 24 hours")) (link(7 * 24, "Last 7 days"))
        }
    }
}

fn table(runs: &[Value], now: Timestamp) -> Markup {
    html! {
        table aria-label="Runs" {
            thead { tr {
                th scope="col" { "Scheduled" } th scope="col" { "Status" } th scope="col" { "Job" }
                th scope="col" { "Created by" } th scope="col" { "Attempts" }
                th scope="col" { "Late" } th scope="col" { "Duration" } th scope="col" { "Error" }
            } }
            tbody {
                @for run in runs {
                    @let target = format!("/runs/{}", escape(&text::plain(&run["id"])));
                    tr {
                        th scope="row" { a href=(target) { (text::time(&run["scheduled_at"], now)) } }
                        td { (text::state(&run["status"])) }
                        td { (job_link(&run["job_id"], &run["job_name"])) }
                        td { (text::plain(&run["origin"])) }
                        td { (text::plain(&run["attempt_count"])) }
                        td.numbers { (millis(&run["lateness_ms"])) }
                        td.numbers { (millis(&run["duration_ms"])) }
                        td.cut { (outcome(run, now)) }
                    }
                }
            }
        }
    }
}

/// What a run waits for, why times were skipped, or its error.
fn outcome(run: &Value, now: Timestamp) -> Markup {
    let skipped = &run["skipped"];
    html! {
        @if run["next_attempt_at"].is_string() {
            "next attempt " (text::time(&run["next_attempt_at"], now)) " "
        }
        @if skipped.is_object() {
            (text::plain(&skipped["count"])) " skipped: " (text::plain(&skipped["reason"]).replace('_', " "))
        } @else {
            (text::plain(&run["error_message"]))
        }
    }
}
