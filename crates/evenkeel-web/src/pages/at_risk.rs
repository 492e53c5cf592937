//! Jobs that miss or may miss their deadlines, the most urgent job first.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use maud::html;
use serde::Deserialize;

use super::{PAGE_ITEMS, items, job_link, next_page};
use crate::backend::escape;
use crate::session::Session;
use crate::{Web, layout, text};

#[derive(Deserialize)]
pub(crate) struct Parameters {
    cursor: Option<String>,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Parameters { cursor }): Query<Parameters>,
) -> Response {
    let cursor = cursor.map(|cursor| format!("&cursor={}", escape(&cursor))).unwrap_or_default();
    let path = format!("/api/v1/conditions?limit={PAGE_ITEMS}{cursor}");
    let answer = match web.backend.get(&session.credential, &path).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, "/at-risk", &refused),
    };
    let (jobs, counts, now) = (items(&answer, "jobs"), &answer["counts"], web.now());
    let body = html! {
        h1 { "At risk" }
        p { (counts["error"]) " jobs have missed their deadline, " (counts["warning"])
            " may miss it, " (counts["ok"]) " are OK." }
        @if jobs.is_empty() {
            p { "No job is at risk." }
        } @else {
            table {
                thead { tr { th scope="col" { "Job" } th scope="col" { "Condition" }
                    th scope="col" { "Reason" } th scope="col" { "Deadline" } th scope="col" { "Since" } } }
                tbody {
                    @for job in jobs {
                        tr { th scope="row" { (job_link(&job["id"], &job["name"])) }
                            td { (text::state(&job["condition"])) }
                            td { (text::plain(&job["reason"])) }
                            td { (text::time(&job["error_at"], now)) }
                            td { (text::time(&job["since"], now)) } }
                    }
                }
            }
            (next_page(&answer, "/at-risk", &[]))
        }
    };
    layout::page(&session, "/at-risk", "At risk", &body)
}
