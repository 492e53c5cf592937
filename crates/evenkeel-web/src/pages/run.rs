//! The page of one run: its attempts, and the output, log and error of one of them.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use evenkeel_core::Timestamp;
use futures::join;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::job_history::millis;
use super::{items, job_link};
use crate::backend::{Answer, escape};
use crate::layout::button;
use crate::session::Session;
use crate::{Web, layout, text};

/// Lines of a log that the page shows, from its end. The address can ask for more.
const LOG_LINES: usize = 500;
/// The API returns no more lines than this.
const LOG_LINES_MAX: usize = 100_000;
/// Times as many lines that the page offers to show next.
const LOG_FACTOR: usize = 10;
/// Width of the drawing of attempts and height of a row, in its own units.
const WIDTH: i64 = 600;
const ROW: i64 = 18;

#[derive(Deserialize)]
pub(crate) struct Parameters {
    /// The command that the page has just sent.
    done: Option<String>,
    /// Lines of the log to show.
    lines: Option<usize>,
}

/// Shows a run by its id, with its newest attempt, or by the id of one of its attempts.
pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
    Query(Parameters { done, lines }): Query<Parameters>,
) -> Response {
    let get = async |path: String| web.backend.get(&session.credential, &path).await;
    let run = match get(format!("/api/v1/runs/{}", escape(&id))).await {
        Ok(run) => run,
        Err(refused) => return layout::refused(&session, "/jobs", &refused),
    };
    let attempts = items(&run, "attempts");
    let chosen = attempts.iter().find(|it| it["id"] == id.as_str()).or(attempts.last());
    let chosen = chosen.map_or_else(|| escape(&id), |it| escape(&text::plain(&it["id"])));
    let lines = lines.unwrap_or(LOG_LINES).clamp(1, LOG_LINES_MAX);
    let job_id = escape(&text::plain(&run["job_id"]));
    let (attempt, log, job, newest) = join!(
        get(format!("/api/v1/executions/{chosen}")),
        get(format!("/api/v1/executions/{chosen}/logs?tail={lines}")),
        get(format!("/api/v1/jobs/{job_id}")),
        get(format!("/api/v1/runs?limit=1&job={job_id}")),
    );
    let is_newest =
        newest.is_ok_and(|it| items(&it, "runs").first().is_none_or(|it| it["id"] == run["id"]));
    let now = web.now();
    let body = html! {
        h1 { "Run " (text::state(&run["status"])) }
        @if done.as_deref() == Some("cancel") {
            p.notice role="status" { "The run was asked to stop. Its job keeps its schedule." }
        }
        (commands(&session, &run, is_newest))
        dl {
            dt { "Job" } dd { (job_link(&run["job_id"], &run["job_name"])) }
            dt { "Created by" } dd { (text::plain(&run["origin"])) }
            dt { "Scheduled" } dd { (text::time(&run["scheduled_at"], now)) }
            dt { "Started" } dd { (text::time(&run["started_at"], now)) }
            dt { "Ended" } dd { (text::time(&run["finished_at"], now)) }
            dt { "Late" } dd { (millis(&run["lateness_ms"])) }
            dt { "Duration" } dd { (millis(&run["duration_ms"])) }
            dt { "Run id" } dd { code { (text::plain(&run["id"])) } }
        }
        (skipped(&run["skipped"], now))
        (timeline(&run, &chosen, now))
        (details(&attempt))
        (log_section(&log, &chosen, lines))
        (payload(&session, &job))
    };
    // Tabs and bookmarks of several runs differ by their title.
    let name = text::job_name(&run["job_name"], &run["job_id"]);
    let title = format!("Run of {name} at {}", text::time_text(&run["scheduled_at"]));
    layout::page(&session, "/jobs", &title, &body)
}

fn commands(session: &Session, run: &Value, is_newest: bool) -> Markup {
    if session.role < evenkeel_store::Role::Operator {
        return html! {};
    }
    let (id, job) = (escape(&text::plain(&run["id"])), escape(&text::plain(&run["job_id"])));
    let is_bad = matches!(run["status"].as_str(), Some("failed" | "timed_out"));
    let is_active = matches!(run["status"].as_str(), Some("pending" | "running"));
    html! {
        div.commands {
            @if is_active { (button(session, &format!("/ui/runs/{id}/cancel"), &[], "Cancel")) }
            // The API repeats only the newest run of a job.
            @if is_bad && is_newest {
                (button(session, &format!("/ui/jobs/{job}/retry"), &[], "Retry"))
            }
            @if !is_active {
                (button(session, &format!("/ui/jobs/{job}/trigger"), &[], "Run the job again"))
            }
        }
    }
}

fn skipped(skipped: &Value, now: Timestamp) -> Markup {
    let Some(reason) = skipped["reason"].as_str() else { return html! {} };
    html! {
        p.notice { (skipped["count"]) " scheduled times were skipped (" code { (reason) } "), from "
            (text::time(&skipped["from"], now)) " to " (text::time(&skipped["to"], now)) "." }
    }
}

/// The attempts on one axis, and as a table.
fn timeline(run: &Value, chosen: &str, now: Timestamp) -> Markup {
    let attempts = items(run, "attempts");
    if attempts.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Attempts" }
            (axis(run, attempts, now))
            table aria-label="Attempts" {
                thead { tr { th scope="col" { "Attempt" } th scope="col" { "Status" }
                    th scope="col" { "Started" } th scope="col" { "Duration" } th scope="col" { "Node" }
                    th scope="col" { "Error" } } }
                tbody {
                    @for it in attempts {
                        @let id = escape(&text::plain(&it["id"]));
                        tr {
                            th scope="row" { a href={ "/runs/" (id) } aria-current=[(id == chosen).then_some("true")] {
                                (text::plain(&it["attempt"])) @if id == chosen { " (shown below)" } } }
                            td { (text::state(&it["status"])) }
                            td {
                                @if it["started_at"].is_null() && !it["due_at"].is_null() {
                                    "waits for " (text::time(&it["due_at"], now))
                                } @else { (text::time(&it["started_at"], now)) }
                            }
                            td.numbers { (millis(&it["duration_ms"])) }
                            td { (text::plain(&it["node"]))
                                @if it["crashes"].as_u64() > Some(0) { ", workers lost: " (it["crashes"]) } }
                            td { (text::plain(&it["error_message"])) }
                        }
                    }
                }
            }
        }
    }
}

fn axis(run: &Value, attempts: &[Value], now: Timestamp) -> Markup {
    let start = |it: &Value| text::micros(&it["started_at"]);
    let end = |it: &Value| text::micros(&it["finished_at"]).unwrap_or(now.as_micros());
    let Some(first) = text::micros(&run["scheduled_at"]) else { return html! {} };
    let first = attempts.iter().filter_map(start).fold(first, i64::min);
    let last = attempts.iter().filter(|it| start(it).is_some()).map(end).max().unwrap_or(first);
    let span = (last - first).max(1);
    let place = |at: i64| (i128::from(at - first) * i128::from(WIDTH) / i128::from(span)) as i64;
    let total = text::duration(span.unsigned_abs() / 1000);
    html! {
        figure {
            figcaption { "From the scheduled time to the end of the last attempt: " (total) "." }
            svg viewBox={ "0 0 " (WIDTH) " " (ROW * attempts.len() as i64) } role="img"
                aria-label={ (attempts.len()) " attempts within " (total) } {
                @for (nth, it) in attempts.iter().enumerate() {
                    @if let Some(start) = start(it) {
                        @let is_bad = matches!(it["status"].as_str(), Some("failed" | "timed_out"));
                        rect class=[is_bad.then_some("bar-bad")] x=(place(start)) y=(nth as i64 * ROW + 2)
                            width=((place(end(it)) - place(start)).max(3)) height=(ROW - 4) {
                            title { "Attempt " (text::plain(&it["attempt"])) ": " (text::plain(&it["status"])) }
                        }
                    }
                }
            }
        }
    }
}

/// Progress, error and output of one attempt.
fn details(attempt: &Answer) -> Markup {
    let nothing = Arc::new(Value::Null);
    let it = attempt.as_ref().unwrap_or(&nothing);
    let progress = &it["progress"];
    html! {
        @if let Err(refused) = attempt { p role="alert" { (refused.detail) } }
        @if progress.is_object() {
            h2 { "Progress" }
            @if let (Some(done), Some(total)) = (progress["done"].as_u64(), progress["total"].as_u64()) {
                progress value=(done) max=(total) { (done) " of " (total) }
                " " (done) " of " (total)
            } @else if let Some(done) = progress["done"].as_u64() { (done) " done" }
            @if let Some(message) = progress["message"].as_str() { p { (message) } }
        }
        @if let Some(error) = it["error_message"].as_str() { h2 { "Error" } pre { (error) } }
        @if let Some(trace) = it["stack_trace"].as_str() { h2 { "Stack trace" } pre { (trace) } }
        h2 { "Output" }
        @match it["output"].as_str() {
            Some(output) => pre { (output) },
            None => p { "The attempt printed nothing." },
        }
    }
}

/// The end of the log of an attempt. The script keeps a running log at its end.
fn log_section(log: &Answer, attempt: &str, asked: usize) -> Markup {
    let log = match log {
        Ok(log) => log,
        Err(refused) => return html! { p role="alert" { (refused.detail) } },
    };
    let lines = items(log, "lines");
    let is_running = log["is_final"] == false;
    if lines.is_empty() {
        // The page also follows a log that has not begun.
        return html! {
            @if is_running { h2 { "Log" } p data-follow="" { "The attempt has not printed a line yet." } }
        };
    }
    html! {
        h2 id="log" { "Log" }
        p {
            @if lines.len() < asked { "All " (lines.len()) " lines; " } @else { "The last " (lines.len()) " lines; " }
            (log["printed_bytes"]) " bytes were printed."
            @if is_running { " The attempt still runs." }
            @if lines.len() >= asked && asked < LOG_LINES_MAX {
                @let more = (asked * LOG_FACTOR).min(LOG_LINES_MAX);
                " " a href={ "/runs/" (attempt) "?lines=" (more) "#log" } { "Show up to " (more) " lines" }
            }
            @if asked > LOG_LINES { " " a href={ "/runs/" (attempt) "#log" } { "Show only the last " (LOG_LINES) } }
        }
        // Without a focus, the keyboard can't scroll it.
        pre.log tabindex="0" role="region" aria-labelledby="log" data-follow[is_running] {
            @for line in lines {
                @if line["left_out_before"].as_u64() > Some(0) {
                    "… " (line["left_out_before"]) " bytes left out …\n"
                }
                @if line["at"].is_string() { small { (text::clock(&line["at"])) } " " }
                @if line["stream"] == "stderr" { strong.bad { "stderr" } " " }
                (text::plain(&line["text"])) "\n"
            }
        }
    }
}

/// The payload of the job, with which every run of it starts.
fn payload(session: &Session, job: &Answer) -> Markup {
    let Ok(job) = job else { return html! {} };
    let shown = serde_json::to_string_pretty(&job["payload"]).unwrap_or_default();
    html! {
        h2 { "Payload" }
        @if job["payload"].is_null() { p { "The job has no payload." } }
        @else { p { "The present payload of the job:" } pre { (shown) } }
        @if session.role >= evenkeel_store::Role::Operator {
            p { "To run the job with another payload, "
                a href={ "/jobs/" (escape(&text::plain(&job["id"]))) "/edit" } { "edit the payload of the job" }
                " and run it again. Later runs have the new payload as well." }
        }
    }
}
