//! How evenly runs are spread over the next day, and the rebalance.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use evenkeel_core::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::overview::hour;
use super::{items, job_link};
use crate::backend::escape;
use crate::layout::button;
use crate::session::Session;
use crate::{Web, layout, text};

/// Moves that the preview lists.
const LISTED_MOVES: usize = 100;
/// Width, height and gap of the drawing, in its own units.
const BAR: u64 = 20;
const HEIGHT: u64 = 120;

#[derive(Deserialize)]
pub(crate) struct Parameters {
    /// The rebalance that the page has just started.
    rebalance: Option<String>,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Parameters { rebalance }): Query<Parameters>,
) -> Response {
    let get = async |path: &str| web.backend.get(&session.credential, path).await;
    let distribution = match get("/api/v1/scheduler/distribution").await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, "/balance", &refused),
    };
    let done = match rebalance {
        Some(id) => Some(get(&format!("/api/v1/scheduler/rebalance/{}", escape(&id))).await),
        None => None,
    };
    let body = html! {
        h1 { "Balance" }
        @if let Some(Ok(done)) = &done { (notice(done)) }
        @if let Some(Err(refused)) = &done { p role="alert" { (refused.detail) } }
        (panel(&session, &distribution))
    };
    layout::page(&session, "/balance", "Balance", &body)
}

fn notice(done: &Value) -> Markup {
    html! {
        p.notice role="status" {
            "The rebalance is " (text::plain(&done["state"])) ": moved " (done["moved_total"])
            " of " (done["planned_total"]) " jobs, skipped " (done["skipped_total"])
            ". The score was " (text::score(&done["current_score"])) " and becomes "
            (text::score(&done["projected_score"])) "."
            @if let Some(until) = done["undo_until"].as_str() {
                " Until " (until) ", you can undo it: "
                code { "evenkeel rebalance --undo " (text::plain(&done["rebalance_id"])) }
            }
        }
    }
}

/// The panel "Schedule Distribution".
pub(crate) fn panel(session: &Session, distribution: &Value) -> Markup {
    let may_move = session.role >= evenkeel_store::Role::Operator;
    html! {
        section.panel {
            h2 { "Schedule Distribution" }
            p { "Score " strong { (text::score(&distribution["distribution_score"])) } " of 1. "
                (text::plain(&distribution["suggestion"])) }
            (bars(&distribution["hourly_distribution"], "Jobs per hour, next 24h"))
            @if may_move { (button(session, "/ui/rebalance", &[], "Rebalance Schedule")) }
        }
    }
}

/// A bar per hour. The peak is marked by a symbol and in the text.
fn bars(hours: &Value, title: &str) -> Markup {
    let hours = hours.as_array().map_or(&[][..], Vec::as_slice);
    let count = |hour: &Value| hour["job_count"].as_u64().unwrap_or(0);
    let peak = hours.iter().map(count).max().unwrap_or(0);
    let width = BAR * hours.len() as u64;
    let height = |hour: &Value| (count(hour) * HEIGHT).checked_div(peak).unwrap_or(0);
    html! {
        figure {
            figcaption { (title) ". The busiest hours have " (peak) " runs (marked ▲); times in UTC." }
            svg viewBox={ "0 0 " (width) " " (HEIGHT + 34) } role="img" aria-label=(title) {
                @for (nth, it) in hours.iter().enumerate() {
                    @let x = nth as u64 * BAR;
                    rect x=(x + 2) y=(HEIGHT + 14 - height(it)) width=(BAR - 4) height=(height(it)) {
                        title { (hour(&it["hour"])) ": " (count(it)) " runs" }
                    }
                    @if count(it) == peak && peak > 0 {
                        text x=(x + BAR / 2) y=(HEIGHT + 10 - height(it)) text-anchor="middle" { "▲" }
                    }
                    @if nth % 3 == 0 {
                        text x=(x + BAR / 2) y=(HEIGHT + 30) text-anchor="middle" { (text::plain(&it["hour"])) }
                    }
                }
            }
        }
    }
}

/// The preview of a rebalance, which the user confirms.
pub(crate) fn preview(session: &Session, preview: &Value, now: Timestamp) -> Response {
    let moves = items(preview, "preview");
    let plan = preview["plan_id"].as_str().unwrap_or_default();
    let body = html! {
        h1 { "Rebalance Schedule" }
        p { "A rebalance would move " strong { (preview["would_move"]) } " jobs and skip "
            (preview["would_skip"]) ". The score would change from "
            (text::score(&preview["current_score"])) " to " strong { (text::score(&preview["projected_score"])) } "." }
        div.side-by-side {
            (bars(&preview["before"]["hourly_distribution"], "Current distribution"))
            (bars(&preview["after"]["hourly_distribution"], "Projected distribution"))
        }
        @if moves.is_empty() {
            p { "There is nothing to move." }
        } @else {
            (button(session, "/ui/rebalance", &[("plan", plan)], "Confirm Rebalance"))
        }
        p { a href="/balance" { "Cancel" } }
        @if !moves.is_empty() {
            h2 { "Jobs that would move" }
            table {
                thead { tr { th scope="col" { "Job" } th scope="col" { "Now at" } th scope="col" { "Then at" } } }
                tbody {
                    @for it in moves.iter().take(LISTED_MOVES) {
                        tr { th scope="row" { (job_link(&it["job_id"], &it["name"])) }
                            td { (text::time(&it["current_time"], now)) }
                            td { (text::time(&it["proposed_time"], now)) } }
                    }
                }
            }
            @if moves.len() > LISTED_MOVES { p { "and " (moves.len() - LISTED_MOVES) " more" } }
        }
        h2 { "Jobs that stay" }
        ul {
            @for (reason, count) in preview["skipped_by_reason"].as_object().into_iter().flatten() {
                li { (count) " × " code { (reason) } }
            }
        }
    };
    layout::page(session, "/balance", "Rebalance Schedule", &body)
}
