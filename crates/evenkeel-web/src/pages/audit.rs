//! The audit log: changes and refused requests. Only administrators may read it.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use evenkeel_core::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::lists::{address, choice, input};
use super::typed_times::{in_full, typed};
use super::{PAGE_ITEMS, items, next_page, typed_times};
use crate::session::Session;
use crate::{Web, layout, text};

const PATH: &str = "/audit";
/// Values of the filter `denied` of the API, and their texts.
const DENIED: [(&str, &str); 2] = [("false", "changes"), ("true", "refused requests")];

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    subject: String,
    #[serde(default)]
    target: String,
    #[serde(default)]
    denied: String,
    #[serde(default)]
    from: String,
    #[serde(default)]
    before: String,
    #[serde(default)]
    cursor: String,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(parameters): Query<Parameters>,
) -> Response {
    let Parameters { subject, target, denied, from, before, cursor } = parameters;
    let (since, until) = (in_full(&from), in_full(&before));
    let filter = [
        ("subject", subject.as_str()),
        ("target", &target),
        ("denied", &denied),
        ("from", &since),
        ("before", &until),
    ];
    let times = [(from.as_str(), since.as_str()), (&before, &until)];
    if let Some(answer) = typed_times::redirect(&times, PATH, &filter) {
        return answer;
    }
    let list = address(&format!("/api/v1/audit?limit={PAGE_ITEMS}"), &filter);
    let list = address(&list, &[("cursor", &cursor)]);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let entries = items(&answer, "entries");
    let body = html! {
        h1 { "Audit" }
        form.filter method="get" action=(PATH) {
            (input("subject", "Subject", &subject, "key:ci"))
            (input("target", "Object", &target, "id of a job"))
            (choice("denied", "Kind", &DENIED, &denied))
            (input("from", "From", &typed(&from), "2026-11-18 09:00"))
            (input("before", "Before", &typed(&before), "2026-11-19"))
            button { "Show" }
        }
        p { (typed_times::note()) }
        @if entries.is_empty() {
            @if answer["next_cursor"].is_string() {
                p { "No entry of this page matches. Older entries are on the next page." }
            } @else if filter.iter().all(|(_, value)| value.is_empty()) {
                p { "The log is empty. Every change and every refused request is listed here." }
            } @else {
                p { "No entry matches. " a href=(PATH) { "Show all entries" } }
            }
        } @else {
            (table(entries, web.now()))
        }
        (next_page(&answer, PATH, &filter))
    };
    layout::page(&session, PATH, "Audit", &body)
}

fn table(entries: &[Value], now: Timestamp) -> Markup {
    html! {
        table aria-label="Audit log" {
            thead { tr { th scope="col" { "Time" } th scope="col" { "Subject" }
                th scope="col" { "Action" } th scope="col" { "Object" } th scope="col" { "Answer" }
                th scope="col" { "Detail" } th scope="col" { "From" } } }
            tbody {
                @for entry in entries {
                    tr { th scope="row" { (text::time(&entry["at"], now)) }
                        td.cut { (text::plain(&entry["subject"]))
                            @if let Some(role) = entry["role"].as_str() { " " small { (role) } } }
                        td { code { (text::plain(&entry["action"])) } }
                        td.cut { (text::plain(&entry["target"])) }
                        td { @if entry["denied"] == true { span.state.bad { span aria-hidden="true" { "✕" }
                            " refused, " } } (text::plain(&entry["status"])) }
                        td.cut { (text::plain(&entry["detail"])) }
                        td { (text::plain(&entry["remote"])) } }
                }
            }
        }
    }
}
