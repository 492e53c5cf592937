//! The pages of a rebalance: preview, progress, result, and the list of earlier rebalances.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use evenkeel_core::Timestamp;
use evenkeel_store::Role;
use maud::{Markup, html};
use serde_json::Value;

use super::panel::hours;
use crate::backend::{Answer, Refused, escape};
use crate::layout::{button, primary_button};
use crate::pages::{items, job_link, next_page};
use crate::session::Session;
use crate::{Web, layout, text};

/// Jobs per page of the lists of moved and skipped jobs.
const LISTED: usize = 25;

/// Shows a rebalance, or the plan of one.
pub(super) async fn show(
    web: &Web,
    session: &Session,
    id: &str,
    cursor: Option<&str>,
    skipped_from: usize,
) -> Response {
    let get = async |path: &str| web.backend.get(&session.credential, path).await;
    let path = format!("/api/v1/scheduler/rebalance/{}", escape(id));
    let found = match get(&path).await {
        Ok(found) => found,
        Err(refused) => return layout::refused(session, "/balance", &refused),
    };
    let cursor = cursor.map(|it| format!("&cursor={}", escape(it))).unwrap_or_default();
    let moves = get(&format!("{path}/moves?limit={LISTED}{cursor}")).await;
    let skipped: Vec<Value> =
        items(&found, "skipped").iter().skip(skipped_from).take(LISTED).cloned().collect();
    // The API lists jobs by id only, so each listed job is read for its name.
    let mut names = Vec::new();
    let moved = moves.as_ref().map_or(&[][..], |moves| items(moves, "moves"));
    for listed in moved.iter().chain(&skipped) {
        let job = escape(listed["job_id"].as_str().unwrap_or_default());
        let name = get(&format!("/api/v1/jobs/{job}")).await.map(|job| job["name"].clone());
        names.push(name.unwrap_or(Value::Null));
    }
    let (moved_names, skipped_names) = names.split_at(moved.len());
    let page = Page { session, found: &found, id, now: web.now() };
    let body = html! {
        (page.head())
        (page.moves(&moves, moved_names))
        (page.skipped(&skipped, skipped_names, skipped_from))
        p { a href="/balance" { "Back to the balance" } }
    };
    let mut response = layout::page(session, "/balance", "Rebalance Schedule", &body);
    if found["state"] == "running" {
        // Browsers without JavaScript follow the progress, too.
        response.headers_mut().insert(header::REFRESH, HeaderValue::from_static("3"));
    }
    response
}

struct Page<'a> {
    session: &'a Session,
    found: &'a Value,
    id: &'a str,
    now: Timestamp,
}

impl Page<'_> {
    fn may_move(&self) -> bool {
        self.session.role >= Role::Operator
    }

    /// A button for a command on this rebalance.
    fn command(&self, action: &str, label: &str) -> Markup {
        if !self.may_move() {
            return html! {};
        }
        button(self.session, &format!("/ui/rebalance/{}/{action}", escape(self.id)), &[], label)
    }

    fn head(&self) -> Markup {
        match self.found["state"].as_str() {
            Some("planned") => self.preview(),
            Some("running") => self.progress(),
            _ => self.result(),
        }
    }

    fn preview(&self) -> Markup {
        let found = self.found;
        let has_moves = found["planned_total"] != 0;
        html! {
            dialog.plan open aria-labelledby="plan-title" {
                h1 id="plan-title" { "Rebalance Schedule" }
                p { "A rebalance would move " strong { (found["planned_total"]) } " jobs and skip "
                    (found["skipped_total"]) ". The score would change from " (text::score(&found["current_score"]))
                    " to " strong { (text::score(&found["projected_score"])) } ". The plan is valid until "
                    (text::time(&found["expires_at"], self.now)) "." }
                (self.distributions("Current distribution", "Projected distribution"))
                @if !has_moves { p { "There is nothing to move." } }
                div.commands {
                    @if has_moves && self.may_move() {
                        (primary_button(self.session, "/ui/rebalance", &[("plan", self.id)], "Confirm Rebalance"))
                    }
                    a href="/balance" { "Cancel" }
                }
            }
        }
    }

    fn distributions(&self, before: &str, after: &str) -> Markup {
        html! {
            div.side-by-side {
                (hours(&self.found["before"]["hourly_distribution"], before, self.now))
                (hours(&self.found["after"]["hourly_distribution"], after, self.now))
            }
        }
    }

    fn progress(&self) -> Markup {
        let found = self.found;
        let share = found["progress"].as_f64().unwrap_or(0.0);
        html! {
            h1 { "Rebalance Schedule" }
            p.notice role="status" { "The rebalance is running: " (found["moved_total"]) " of "
                (found["planned_total"]) " jobs are moved (" (format!("{:.0}", share * 100.0)) " %)." }
            progress max="1" value=(share) aria-label="Progress of the rebalance" {}
            div.commands { (self.command("stop", "Stop"))
                a href={ "/balance?rebalance=" (escape(self.id)) } { "Reload" } }
            p { "Stop ends the rebalance after the present batch of jobs. Moved jobs keep their new times; you can undo the "
                "rebalance afterwards." }
        }
    }

    fn result(&self) -> Markup {
        let found = self.found;
        let is_stopped = found["state"] == "stopped";
        let of_rebalance = |id: &Value, label: &str| match id.as_str() {
            Some(id) => html! { p { a href={ "/balance?rebalance=" (escape(id)) } { (label) } } },
            None => html! {},
        };
        html! {
            h1 { "Rebalance Schedule" }
            p.notice role="status" {
                @if is_stopped { "The rebalance is stopped" } @else { "The rebalance is done" }
                ": moved " (found["moved_total"]) " of " (found["planned_total"]) " jobs, skipped "
                (found["skipped_total"]) ". The score was " (text::score(&found["current_score"]))
                " and is now " strong { (text::score(&found["new_distribution_score"])) } "."
            }
            (of_rebalance(&found["undoes"], "This rebalance undid an earlier one."))
            (of_rebalance(&found["undone_by"], "This rebalance was undone."))
            div.commands {
                @if is_stopped && self.may_move() {
                    (button(self.session, "/ui/rebalance", &[("plan", self.id)], "Continue"))
                }
                @if !found["undo_until"].is_null() {
                    (self.command("undo", "Undo"))
                    span { "You can undo the rebalance until " (text::time(&found["undo_until"], self.now)) "." }
                }
            }
            (self.distributions("Before the rebalance", "As planned"))
        }
    }

    fn moves(&self, moves: &Answer, names: &[Value]) -> Markup {
        let title = match self.found["state"].as_str() {
            Some("planned") => "Jobs that would move",
            _ => "Moved jobs",
        };
        let made = |it: &Value| match it["made"].as_bool() {
            Some(true) => "✓ moved",
            Some(false) => "⊘ skipped",
            None => "• not yet",
        };
        html! {
            h2 { (title) }
            @match moves {
                Ok(answer) if items(answer, "moves").is_empty() => p { "None." },
                Ok(answer) => {
                    table aria-label="Moves" {
                        thead { tr { th scope="col" { "Job" } th scope="col" { "Old time" } th scope="col" { "New time" }
                            th scope="col" { "State" } } }
                        tbody {
                            @for (it, name) in items(answer, "moves").iter().zip(names) {
                                tr { th scope="row" { (job_link(&it["job_id"], name)) }
                                    td { (text::time(&it["old_time"], self.now)) }
                                    td { (text::time(&it["new_time"], self.now)) }
                                    td { (made(it)) } }
                            }
                        }
                    }
                    (next_page(answer, "/balance", &[("rebalance", self.id)]))
                }
                Err(refused) => p role="alert" { (refused.detail) },
            }
        }
    }

    fn skipped(&self, skipped: &[Value], names: &[Value], from: usize) -> Markup {
        let listed = items(self.found, "skipped").len();
        let next = from.saturating_add(LISTED);
        html! {
            h2 { "Jobs that stay" }
            @match self.found["skipped_by_reason"].as_object() {
                Some(reasons) if !reasons.is_empty() => ul {
                    @for (reason, count) in reasons { li { (count) " × " code { (reason) } ": " (meaning(reason)) } }
                },
                _ => p { "None." },
            }
            @if !skipped.is_empty() {
                table aria-label="Jobs that stay" {
                    thead { tr { th scope="col" { "Job" } th scope="col" { "Reason" } } }
                    tbody {
                        @for (it, name) in skipped.iter().zip(names) {
                            @let reason = text::plain(&it["reason"]);
                            tr { th scope="row" { (job_link(&it["job_id"], name)) }
                                td { code { (reason) } ": " (meaning(&reason)) } }
                        }
                    }
                }
            }
            @if next < listed {
                p { a href={ "/balance?rebalance=" (escape(self.id)) "&skipped=" (next) } rel="next" { "More jobs that stay" } }
            }
        }
    }
}

/// Returns what a reason of the API says about a job.
fn meaning(reason: &str) -> &'static str {
    match reason {
        "job_running" => "the job has an active run",
        "protection_window" => "the next run of the job is too soon",
        "placement_cooldown" => "the job got its start time recently",
        "not_movable" => "the schedule of the job defines its own times",
        "changed" => "the job changed after the plan was made",
        _ => "see the documentation of the API",
    }
}

/// Renders why a rebalance did not start, and offers a new preview.
pub(crate) fn not_started(session: &Session, refused: &Refused) -> Response {
    if refused.status != StatusCode::CONFLICT {
        return layout::refused(session, "/balance", refused);
    }
    let body = html! {
        h1 { "The rebalance did not start" }
        p role="alert" { (refused.detail) }
        p { "No job was moved. A plan can only be carried out while its jobs are as they were when it was made. "
            "Make a new preview, and confirm that." }
        div.commands { (button(session, "/ui/rebalance", &[], "New preview")) a href="/balance" { "Back to the balance" } }
    };
    let mut response = layout::page(session, "/balance", "Rebalance Schedule", &body);
    *response.status_mut() = refused.status;
    response
}

pub(super) async fn list(web: &Web, session: &Session, cursor: Option<&str>) -> Answer {
    let cursor = cursor.map(|it| format!("&cursor={}", escape(it))).unwrap_or_default();
    let path = format!("/api/v1/scheduler/rebalances?limit=10{cursor}");
    web.backend.get(&session.credential, &path).await
}

pub(super) fn earlier(session: &Session, list: &Answer, now: Timestamp) -> Markup {
    html! {
        section.panel {
            h2 { "Earlier rebalances" }
            @match list {
                Ok(answer) if items(answer, "rebalances").is_empty() => p {
                    "There was no rebalance in the last 7 days. "
                    @if session.role >= Role::Operator {
                        "“Rebalance Schedule” shows what a rebalance would do, before it does it."
                    }
                },
                Ok(answer) => {
                    table aria-label="Earlier rebalances" {
                        thead { tr { th scope="col" { "Created" } th scope="col" { "By" } th scope="col" { "State" }
                            th scope="col" { "Moved" } th scope="col" { "Score" } } }
                        tbody { @for it in items(answer, "rebalances") { (listed(it, now)) } }
                    }
                    (next_page(answer, "/balance", &[]))
                }
                Err(refused) => p role="alert" { "Unknown: " (refused.detail) },
            }
        }
    }
}

fn listed(it: &Value, now: Timestamp) -> Markup {
    let id = it["rebalance_id"].as_str().unwrap_or_default();
    html! {
        tr {
            th scope="row" { a href={ "/balance?rebalance=" (escape(id)) } { (text::time(&it["created_at"], now)) } }
            td { (text::plain(&it["created_by"])) }
            td { (text::state(&it["state"])) @if !it["undone_by"].is_null() { ", undone" }
                @if !it["undoes"].is_null() { ", an undo" } }
            td { (it["moved_total"]) " of " (it["planned_total"]) }
            td { (text::score(&it["current_score"])) " → " (text::score(&it["projected_score"])) }
        }
    }
}
