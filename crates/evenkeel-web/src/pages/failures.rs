//! Failures, grouped by their message.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::Role;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::lists::{address, count, input};
use super::typed_times::{in_full, typed};
use super::{PAGE_ITEMS, items, job_link, next_page, typed_times};
use crate::backend::escape;
use crate::session::Session;
use crate::{Web, layout, text};

const PATH: &str = "/failures";
/// Periods that the page offers: hours and name.
const PERIODS: [(u64, &str); 3] =
    [(1, "Last hour"), (24, "Last 24 hours"), (7 * 24, "Last 7 days")];

#[derive(Deserialize)]
pub(crate) struct Parameters {
    /// Lists groups with a failure at or after this time.
    #[serde(default)]
    since: String,
    /// Lists failures of this job.
    #[serde(default)]
    job: String,
    #[serde(default)]
    cursor: String,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Parameters { since, job, cursor }): Query<Parameters>,
) -> Response {
    let from = in_full(&since);
    let filter = [("since", from.as_str()), ("job", &job)];
    if let Some(answer) = typed_times::redirect(&[(&since, &from)], PATH, &filter) {
        return answer;
    }
    let fields = [("job_id", job.as_str()), ("cursor", &cursor)];
    let list = address(&format!("/api/v1/failures?limit={PAGE_ITEMS}"), &fields);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let (first, now) = (text::micros(&Value::from(from.as_str())), web.now());
    let is_wrong = first.is_none() && !from.is_empty();
    // The newest group is first, so older groups follow on no later page either.
    let all = items(&answer, "failures");
    let listed = all.iter().take_while(|group| text::micros(&group["last_at"]) >= first).count();
    let (groups, is_cut) = (&all[..listed], listed < all.len());
    let body = html! {
        h1 { "Failures" }
        form.filter method="get" action=(PATH) {
            (input("since", "Since", &typed(&from), "2026-11-18 09:00"))
            (input("job", "Job", &job, "name or id"))
            button { "Show" }
        }
        (periods(&job, now))
        @if is_wrong {
            p.problem role="alert" { "The time " (from) " can't be read. Write it like 2026-11-18 09:00." }
        }
        @if groups.is_empty() {
            (empty(&filter))
        } @else {
            (mass_retry(&session, groups))
            (table(groups, now))
        }
        @if !is_cut { (next_page(&answer, PATH, &filter)) }
    };
    layout::page(&session, PATH, "Failures", &body)
}

/// Links to recent periods, with absolute times so that a shared link keeps its meaning.
fn periods(job: &str, now: Timestamp) -> Markup {
    html! {
        p.commands {
            (typed_times::note())
            @for (hours, name) in PERIODS {
                @let since = now.saturating_sub(Span::from_secs(hours * 3600)).to_string();
                a href=(address(PATH, &[("since", &since), ("job", job)])) { (name) }
            }
            a href=(address(PATH, &[("job", job)])) { "All" }
        }
    }
}

fn empty(filter: &[(&str, &str)]) -> Markup {
    html! {
        @if filter.iter().any(|(_, value)| !value.is_empty()) {
            p { "No failure matches. " a href=(PATH) { "Show all failures" } }
        } @else {
            p { "No recent run failed. Failed runs with similar messages are one line here. Jobs that are late "
                "without a failure are in " a href="/at-risk" { "At risk" } "." }
        }
    }
}

/// Offers to repeat the failed runs. The next page counts the jobs and asks again.
fn mass_retry(session: &Session, groups: &[Value]) -> Markup {
    if session.role < Role::Operator {
        return html! {};
    }
    let mut ids: Vec<&str> = groups.iter().filter_map(|group| group["job_id"].as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    let command = |fields: &[(&str, &str)]| address("/job-commands?action=retry", fields);
    html! {
        p.commands {
            "Retry jobs whose last run failed:"
            @if !ids.is_empty() {
                a href=(command(&[("ids", &ids.join(","))])) { "the " (count(ids.len() as u64, "job")) " of this list…" }
            }
            a href=(command(&[("condition", "ERROR")])) { "all jobs in ERROR…" }
            a href=(command(&[("condition", "WARNING")])) { "all jobs in WARNING…" }
        }
    }
}

pub(super) fn table(groups: &[Value], now: Timestamp) -> Markup {
    html! {
        table aria-label="Failures by message, the newest first" {
            thead { tr { th scope="col" { "Message" } th scope="col" { "Count" }
                th scope="col" { "First" } th scope="col" { "Last" } th scope="col" { "Newest job" }
                th scope="col" { "Runs" } } }
            tbody {
                @for group in groups {
                    tr { th scope="row" { (text::shortened(&text::plain(&group["error_message"]))) }
                        td { (group["count"]) }
                        td { (text::time(first(group), now)) }
                        td { (text::time(&group["last_at"], now)) }
                        td { (job_link(&group["job_id"], &group["job_name"])) }
                        td { (runs_of(group)) } }
                }
            }
        }
    }
}

/// When a group began. The API has the time when a node reported its first failure, which can be some
/// seconds after the failure.
fn first(group: &Value) -> &Value {
    let [reported, last] = [&group["first_at"], &group["last_at"]];
    if text::micros(reported) > text::micros(last) { last } else { reported }
}

/// Links to the newest run of a group, and to all failed runs of its job.
fn runs_of(group: &Value) -> Markup {
    let newest = format!("/runs/{}", escape(&text::plain(&group["execution_id"])));
    html! {
        a href=(newest) { "newest run" }
        @if let Some(job) = group["job_id"].as_str() {
            ", " a href=(address("/runs?status=failed", &[("job", job)])) { "failed runs of the job" }
        }
    }
}
