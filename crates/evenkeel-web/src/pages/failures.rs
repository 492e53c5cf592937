//! Failures, grouped by their message.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use maud::html;

use super::{PAGE_ITEMS, items, job_link};
use crate::backend::escape;
use crate::session::Session;
use crate::{Web, layout, text};

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
) -> Response {
    let path = format!("/api/v1/failures?limit={PAGE_ITEMS}");
    let answer = match web.backend.get(&session.credential, &path).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, "/failures", &refused),
    };
    let (failures, now) = (items(&answer, "failures"), web.now());
    let body = html! {
        h1 { "Failures" }
        @if failures.is_empty() {
            p { "No recent run failed." }
        } @else {
            table {
                thead { tr { th scope="col" { "Message" } th scope="col" { "Count" }
                    th scope="col" { "First" } th scope="col" { "Last" } th scope="col" { "Job" } } }
                tbody {
                    @for failure in failures {
                        @let target = format!("/runs/{}", escape(&text::plain(&failure["execution_id"])));
                        tr { th scope="row" { a href=(target) { (text::plain(&failure["error_message"])) } }
                            td { (failure["count"]) }
                            td { (text::time(&failure["first_at"], now)) }
                            td { (text::time(&failure["last_at"], now)) }
                            td { (job_link(&failure["job_id"], &failure["job_name"])) } }
                    }
                }
            }
        }
    };
    layout::page(&session, "/failures", "Failures", &body)
}
