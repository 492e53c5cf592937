//! Paused jobs: since when, by whom and why.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use evenkeel_store::Role;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::lists::address;
use super::{counted, items, job_link, next_page};
use crate::backend::escape;
use crate::layout::button;
use crate::session::Session;
use crate::{Web, layout, text};

const PATH: &str = "/pauses";
/// Jobs per page. For an administrator, each of them costs one look at the audit log.
const ITEMS: usize = 25;

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    cursor: String,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Parameters { cursor }): Query<Parameters>,
) -> Response {
    let list = format!("/api/v1/jobs?status=paused&limit={ITEMS}");
    let list = address(&list, &[("cursor", &cursor)]);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let mut paused = Vec::new();
    for job in items(&answer, "jobs") {
        paused.push((job, by_whom(&web, &session, job).await));
    }
    let body = html! {
        h1 { "Pauses" }
        @if paused.is_empty() {
            p { "No job is paused. Pause a job on its page, or all jobs that match a filter in "
                a href="/jobs" { "Jobs" } "." }
        } @else {
            p { (counted(&answer, "paused job")) }
            (table(&web, &session, &paused))
            @if session.role < Role::Admin {
                p { small { "Administrators also see who paused a job." } }
            }
        }
        (next_page(&answer, PATH, &[]))
    };
    layout::page(&session, PATH, "Pauses", &body)
}

fn table(web: &Web, session: &Session, paused: &[(&Value, String)]) -> Markup {
    let may_resume = session.role >= Role::Operator;
    let now = web.now();
    html! {
        table aria-label="Paused jobs" {
            thead { tr {
                th scope="col" { "Job" } th scope="col" { "Paused" } th scope="col" { "By" }
                th scope="col" { "Why" }
                @if may_resume { th scope="col" { "Commands" } }
            } }
            tbody {
                @for (job, by_whom) in paused {
                    @let resume = format!("/ui/jobs/{}/resume", escape(&text::plain(&job["id"])));
                    tr {
                        th scope="row" { (job_link(&job["id"], &job["name"])) }
                        td { (text::time(&job["paused_at"], now)) }
                        td { (by_whom) }
                        td.cut { (text::plain(&job["pause_note"])) }
                        @if may_resume { td { (button(session, &resume, &[], "Resume")) } }
                    }
                }
            }
        }
    }
}

/// Returns who paused a job. Only the scheduler leaves a note, and only administrators may read the
/// audit log. The log has no entry for each job of a bulk command.
async fn by_whom(web: &Web, session: &Session, job: &Value) -> String {
    if job["pause_note"].is_string() {
        return "the scheduler".to_owned();
    }
    if session.role < Role::Admin {
        return "–".to_owned();
    }
    let id = text::plain(&job["id"]);
    let path = address("/api/v1/audit?limit=20&denied=false", &[("target", &id)]);
    let Ok(answer) = web.backend.get(&session.credential, &path).await else {
        return "–".to_owned();
    };
    let mut entries = items(&answer, "entries").iter();
    let pause = entries.find(|entry| {
        entry["action"] == "pause_job" && entry["status"].as_u64().is_some_and(|code| code < 300)
    });
    pause.map_or("–".to_owned(), |entry| text::plain(&entry["subject"]))
}
