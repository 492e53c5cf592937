//! The first page: what an operator wants to know first, in words. Charts and lists follow.

mod activity;
mod answers;
mod last_visit;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use evenkeel_core::Timestamp;
use futures::join;
use maud::{Markup, html};
use serde::Deserialize;

use super::balance::panel;
use super::typed_times::in_full;
use super::{failures, items, queue};
use crate::backend::{Answer, Refused};
use crate::session::Session;
use crate::{Web, layout};
use last_visit::{LastVisit, Since};

/// Number of jobs that the page names as the next to miss their deadline.
const NEXT_TO_BREAK: usize = 3;
/// Groups of failures that the page reads. It names the first of them since the last visit.
const FAILURES: usize = 20;
/// Groups of failures that the page lists.
const FAILURES_LISTED: usize = 10;

#[derive(Deserialize)]
pub(crate) struct Parameters {
    /// From when on the page lists failures. Without it, since the last visit.
    #[serde(default)]
    since: String,
}

/// The answers of the API from which the page is made. Viewers with the same role share them, so
/// none of the questions depends on the viewer.
struct Data {
    ready: Answer,
    metrics: Answer,
    nodes: Answer,
    last_run: Answer,
    at_risk: Answer,
    failures: Answer,
    distribution: Answer,
    activity: Answer,
    pools: Option<Markup>,
}

impl Data {
    async fn load(web: &Web, session: &Session) -> Self {
        let get = async |path: String| web.backend.get(&session.credential, &path).await;
        let (ready, metrics, nodes, last_run, at_risk, failures, distribution, activity, pools) = join!(
            get("/readyz".into()),
            get("/api/v1/scheduler/metrics".into()),
            get("/api/v1/nodes?limit=100".into()),
            get("/api/v1/runs?limit=1".into()),
            get(format!("/api/v1/conditions?condition=WARNING&limit={NEXT_TO_BREAK}")),
            get(format!("/api/v1/failures?limit={FAILURES}")),
            get("/api/v1/scheduler/distribution".into()),
            get("/api/v1/scheduler/activity?step=15m".into()),
            queue::pools(web, session),
        );
        Self { ready, metrics, nodes, last_run, at_risk, failures, distribution, activity, pools }
    }
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Parameters { since }): Query<Parameters>,
    headers: HeaderMap,
) -> Response {
    let now = web.now();
    let data = Box::pin(Data::load(&web, &session)).await;
    let visit = LastVisit::of(&headers, now);
    let chosen: Option<Timestamp> = in_full(&since).parse().ok();
    let is_wrong = chosen.is_none() && !since.is_empty();
    let since = chosen.map_or_else(|| visit.since(now), Since::Chosen);
    // Most of the time no run waits, and then the lanes need not be asked.
    let waits = data.metrics.as_ref().is_ok_and(|metrics| metrics["jobs"]["pending"] != 0);
    let lanes = if waits { Some(queue::lanes(&web, &session).await) } else { None };
    let body = html! {
        h1 { "Overview" }
        @if is_wrong {
            p.problem role="alert" { "The time in the address can't be read. Write it like "
                "2026-11-18T09:00:00Z." }
        }
        section.answers {
            (answers::working(&session, &data, now))
            (answers::breaks_next(&data.at_risk, now))
            (answers::failed(&data.failures, since, now))
            (answers::fullness(&data, now))
            (answers::evenness(&data.distribution))
        }
        (activity::sections(&data.activity, now))
        (queued(lanes, data.pools))
        (failure_groups(&data.failures, now))
        @if let Ok(distribution) = &data.distribution { (panel(&session, distribution, now)) }
    };
    let mut response = layout::page(&session, "/", "Overview", &body);
    if chosen.is_none() {
        visit.remember(&web, &mut response);
    }
    response
}

fn unknown(refused: &Refused) -> Markup {
    html! { p role="alert" { "Unknown: " (refused.detail) } }
}

fn queued(lanes: Option<Markup>, pools: Option<Markup>) -> Markup {
    html! {
        section.panel {
            h2 { "Queue" }
            @match lanes {
                None => p { "No run waits for a worker or a retry." },
                Some(lanes) => { (lanes) p { a href="/queue" { "Why each run waits" } } }
            }
            @if let Some(pools) = pools { h3 { "By pool and lane, all tenants" } (pools) }
        }
    }
}

fn failure_groups(failures: &Answer, now: Timestamp) -> Markup {
    html! {
        section.panel {
            h2 { "Failures by message" }
            @match failures {
                Err(refused) => (unknown(refused)),
                Ok(answer) if items(answer, "failures").is_empty() => p {
                    "No run has failed as far back as the history reaches." },
                Ok(answer) => {
                    @let groups = items(answer, "failures");
                    (failures::table(&groups[..groups.len().min(FAILURES_LISTED)], now))
                    p { a href="/failures" { "All failures" } }
                }
            }
        }
    }
}
