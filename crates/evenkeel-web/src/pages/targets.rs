//! Targets: the sites, forums and feeds that jobs work on.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use maud::html;
use serde::Deserialize;

use super::lists::address;
use super::{PAGE_ITEMS, counted, items, next_page};
use crate::session::Session;
use crate::{Web, layout, text};

const PATH: &str = "/targets";

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
    let list = address(&format!("/api/v1/targets?limit={PAGE_ITEMS}"), &[("cursor", &cursor)]);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let (targets, now) = (items(&answer, "targets"), web.now());
    let body = html! {
        h1 { "Targets" }
        @if targets.is_empty() {
            p { "There is no target. A target is a site or system on which several jobs work. Create one \
                 with " code { "evenkeel target create" } ", and name its number in the field "
                code { "target" } " of the jobs." }
        } @else {
            p { (counted(&answer, "target")) }
            table aria-label="Targets" {
                thead { tr { th scope="col" { "Number" } th scope="col" { "Name" }
                    th scope="col" { "URL" } th scope="col" { "Source" } th scope="col" { "Jobs" }
                    th scope="col" { "Last success" } th scope="col" { "Changed" } } }
                tbody {
                    @for target in targets {
                        @let number = text::plain(&target["number"]);
                        tr { th.numbers scope="row" { (number) }
                            td { (text::plain(&target["name"])) }
                            td.cut { (text::plain(&target["url"])) }
                            td { (text::plain(&target["source_id"])) }
                            td { a href={ "/jobs?target=" (number) } { (text::plain(&target["jobs"])) " jobs" } }
                            td { (text::time(&target["last_success_at"], now)) }
                            td { (text::time(&target["updated_at"], now)) } }
                    }
                }
            }
        }
        (next_page(&answer, PATH, &[]))
    };
    layout::page(&session, PATH, "Targets", &body)
}
