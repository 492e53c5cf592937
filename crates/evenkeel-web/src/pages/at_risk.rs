//! Jobs that miss or may miss their deadlines, the job with the least slack first.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use evenkeel_core::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::lists::address;
use super::{PAGE_ITEMS, items, job_link, next_page};
use crate::session::Session;
use crate::{Web, layout, text};

const PATH: &str = "/at-risk";

#[derive(Deserialize)]
pub(crate) struct Parameters {
    /// `ERROR` or `WARNING`.
    #[serde(default)]
    condition: String,
    #[serde(default)]
    cursor: String,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Parameters { condition, cursor }): Query<Parameters>,
) -> Response {
    let filter = [("condition", condition.as_str())];
    let list = address(&format!("/api/v1/conditions?limit={PAGE_ITEMS}"), &filter);
    let list = address(&list, &[("cursor", &cursor)]);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let (jobs, counts) = (items(&answer, "jobs"), &answer["counts"]);
    let body = html! {
        h1 { "At risk" }
        p { (counts["error"]) " jobs have missed their deadline, " (counts["warning"])
            " may miss it, " (counts["ok"]) " are OK." }
        (levels(&condition, counts))
        @if jobs.is_empty() {
            (empty(&condition, counts))
        } @else {
            (table(jobs, web.now()))
        }
        (next_page(&answer, PATH, &filter))
    };
    layout::page(&session, PATH, "At risk", &body)
}

/// Links that show only jobs in one condition.
fn levels(chosen: &str, counts: &Value) -> Markup {
    let number = |name: &str| counts[name].as_u64().unwrap_or_default();
    let levels = [
        ("", "All", number("error") + number("warning")),
        ("ERROR", "ERROR", number("error")),
        ("WARNING", "WARNING", number("warning")),
    ];
    html! {
        nav.filter aria-label="Conditions" {
            @for (level, name, number) in levels {
                a href=(address(PATH, &[("condition", level)]))
                    aria-current=[level.eq_ignore_ascii_case(chosen).then_some("page")] { (name) " (" (number) ")" }
            }
        }
    }
}

fn empty(chosen: &str, counts: &Value) -> Markup {
    html! {
        @if !chosen.is_empty() {
            p { "No job is in " (chosen.to_uppercase()) ". " a href=(PATH) { "Show all jobs at risk" } }
        } @else if counts["ok"] == 0 {
            p { "No job is at risk, because there is no job yet. " a href="/jobs" { "To the jobs" } }
        } @else {
            p { "No job is at risk. A job comes into this list when a run fails, is skipped, starts late or takes "
                "long, and leaves it when its condition is OK again. Each job has a deadline that follows from its "
                "schedule: open a job in " a href="/jobs" { "Jobs" } " to see its deadline promise." }
        }
    }
}

fn table(jobs: &[Value], now: Timestamp) -> Markup {
    html! {
        table aria-label="Jobs at risk, the least slack first" {
            thead { tr { th scope="col" { "Job" } th scope="col" { "Condition" }
                th scope="col" aria-sort="ascending" { "Slack" } th scope="col" { "Why" }
                th scope="col" { "What would fix it" } th scope="col" { "Since" } } }
            tbody {
                @for job in jobs {
                    tr { th scope="row" { (job_link(&job["id"], &job["name"])) }
                        td { (text::state(&job["condition"])) }
                        td { strong { (text::slack(&job["error_at"], now)) } br; small { (text::moment(&job["error_at"])) } }
                        td.cut { (text::plain(&job["explanation"])) " (" code { (text::plain(&job["reason"])) } ")"
                            @if let Some(error) = job["error_message"].as_str() {
                                br; "Last error: " code { (text::shortened(error)) }
                            } }
                        td.cut { (text::plain(&job["advice"])) }
                        td { (text::time(&job["since"], now)) } }
                }
            }
        }
    }
}
