//! The list of jobs.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use maud::html;
use serde::Deserialize;

use super::{PAGE_ITEMS, items, job_link, next_page, total};
use crate::backend::escape;
use crate::session::Session;
use crate::{Web, layout, text};

/// The states by which the list can be filtered, as in the API.
const STATES: [&str; 7] =
    ["pending", "scheduled", "running", "paused", "completed", "failed", "cancelled"];

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    q: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    cursor: String,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Parameters { q, status, cursor }): Query<Parameters>,
) -> Response {
    let mut path = format!("/api/v1/jobs?limit={PAGE_ITEMS}");
    for (name, value) in [("q", &q), ("status", &status), ("cursor", &cursor)] {
        if !value.is_empty() {
            path.push_str(&format!("&{name}={}", escape(value)));
        }
    }
    let answer = match web.backend.get(&session.credential, &path).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, "/jobs", &refused),
    };
    let (jobs, now) = (items(&answer, "jobs"), web.now());
    let body = html! {
        h1 { "Jobs" }
        form.filter method="get" action="/jobs" {
            label for="q" { "Search" }
            input id="q" name="q" type="search" value=(q);
            label for="status" { "Status" }
            select id="status" name="status" {
                option value="" { "all" }
                @for state in STATES {
                    option value=(state) selected[status == state] { (state) }
                }
            }
            button { "Show" }
        }
        @if jobs.is_empty() {
            @if q.is_empty() && status.is_empty() {
                p { "There is no job yet. Create one: "
                    code { "evenkeel job create --name hello --every 5m --noop" } }
            } @else {
                p { "No job matches. " a href="/jobs" { "Show all jobs" } }
            }
        } @else {
            p { (total(&answer)) " jobs" }
            table {
                thead { tr {
                    th scope="col" { "Job" } th scope="col" { "Status" }
                    th scope="col" { "Condition" } th scope="col" { "Schedule" }
                    th scope="col" { "Next run" } th scope="col" { "Last run" }
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
                        }
                    }
                }
            }
            (next_page(&answer, "/jobs", &[("q", &q), ("status", &status)]))
        }
    };
    layout::page(&session, "/jobs", "Jobs", &body)
}
