//! The queue: how many runs wait, and why each of them waits.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use evenkeel_access::DEFAULT_TENANT;
use evenkeel_core::Timestamp;
use futures::future::join_all;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::lists::{address, choice};
use super::{items, job_link, next_page, total};
use crate::backend::escape;
use crate::session::Session;
use crate::{Web, layout, text};

const PATH: &str = "/queue";
/// Lanes in the order in which their runs start.
pub(crate) const LANES: [(&str, &str); 3] =
    [("critical", "critical"), ("standard", "standard"), ("batch", "batch")];
/// Jobs per page. Each of them costs one explanation.
const ITEMS: usize = 25;

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    lane: String,
    #[serde(default)]
    cursor: String,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(Parameters { lane, cursor }): Query<Parameters>,
) -> Response {
    let list = format!("/api/v1/jobs?status=pending&limit={ITEMS}");
    let list = address(&list, &[("lane", &lane), ("cursor", &cursor)]);
    let answer = match web.backend.get(&session.credential, &list).await {
        Ok(answer) => answer,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let explained =
        items(&answer, "jobs").iter().map(|job| Waiting::explained(&web, &session, job));
    let mut waiting = join_all(explained).await;
    waiting.sort_by_key(Waiting::rank);
    let body = html! {
        h1 { "Queue" }
        h2 { "Depth by lane" }
        (lanes(&web, &session).await)
        @if let Some(pools) = pools(&web, &session).await { h2 { "Depth by pool, all tenants" } (pools) }
        h2 { "Waiting runs" }
        form.filter method="get" action=(PATH) {
            (choice("lane", "Lane", &LANES, &lane))
            button { "Show" }
        }
        @if waiting.is_empty() {
            p { "No run waits. Runs that have started are in "
                a href="/runs?status=running" { "Runs" }
                ", jobs that may miss their deadline in " a href="/at-risk" { "At risk" } "." }
        } @else {
            @if answer["next_cursor"].is_string() || !cursor.is_empty() {
                p { "The jobs of this page, in the order in which their runs start." }
            } @else {
                p { "In the order in which the runs start." }
            }
            (table(&waiting, web.now()))
        }
        (next_page(&answer, PATH, &[("lane", &lane)]))
    };
    layout::page(&session, PATH, "Queue", &body)
}

/// A job whose run waits, with the first reason.
struct Waiting<'a> {
    job: &'a Value,
    reason: Value,
    summary: String,
}

impl<'a> Waiting<'a> {
    async fn explained(web: &Web, session: &Session, job: &'a Value) -> Self {
        let id = escape(&text::plain(&job["id"]));
        let path = format!("/api/v1/jobs/{id}/explain");
        match web.backend.get(&session.credential, &path).await {
            Ok(answer) => Self {
                job,
                reason: items(&answer, "reasons").first().cloned().unwrap_or_default(),
                summary: text::plain(&answer["summary"]),
            },
            // The run may have ended since the list was read.
            Err(refused) => Self { job, reason: Value::Null, summary: refused.detail },
        }
    }

    /// Runs that wait for a worker come first, by lane and position. Runs that wait for a time or a
    /// permit follow.
    fn rank(&self) -> (u64, usize, Option<i64>) {
        let lane = LANES.iter().position(|(lane, _)| self.job["lane"] == *lane);
        let ahead = self.reason["ahead"].as_u64().unwrap_or(u64::MAX);
        let until = text::micros(&self.reason["until"]).or(text::micros(&self.reason["since"]));
        (ahead, lane.unwrap_or(LANES.len()), until)
    }
}

fn table(waiting: &[Waiting<'_>], now: Timestamp) -> Markup {
    html! {
        table aria-label="Waiting runs" {
            thead { tr {
                th scope="col" { "Job" } th scope="col" { "Lane" } th scope="col" { "Pool" }
                th scope="col" { "Priority" } th scope="col" { "Waits since" }
                th scope="col" { "Why it waits" }
            } }
            tbody {
                @for Waiting { job, reason, summary } in waiting {
                    @let priority = if reason["effective_priority"].is_null() { &job["priority"] }
                        else { &reason["effective_priority"] };
                    tr {
                        th scope="row" { (job_link(&job["id"], &job["name"])) }
                        td { (text::plain(&job["lane"])) }
                        td { (text::plain(&job["pool"])) }
                        td { (text::plain(priority)) }
                        td { (text::time(&reason["since"], now)) }
                        td.cut { (summary) }
                    }
                }
            }
        }
    }
}

/// How many jobs of the tenant wait, by lane.
pub(super) async fn lanes(web: &Web, session: &Session) -> Markup {
    let count = async |(lane, _): (&'static str, &str)| {
        let path = format!("/api/v1/jobs?status=pending&limit=1&lane={lane}");
        let shown = match web.backend.get(&session.credential, &path).await {
            Ok(answer) => total(&answer),
            Err(refused) => refused.detail,
        };
        (lane, shown)
    };
    let rows = join_all(LANES.map(count)).await;
    html! {
        dl {
            @for (lane, number) in rows {
                dt { a href={ (PATH) "?lane=" (lane) } { (lane) } } dd { (number) " waiting" }
            }
        }
    }
}

/// One pool and lane of the queue, over all tenants.
#[derive(Default, PartialEq, Debug)]
struct Depth {
    pool: String,
    lane: String,
    waiting: f64,
    oldest_seconds: f64,
}

/// Depth and oldest run by pool and lane, if the user may read it: the metrics cover all tenants, so
/// only users of the default tenant may. One node of a cluster has them.
pub(super) async fn pools(web: &Web, session: &Session) -> Option<Markup> {
    // The API would refuse others, and would list each refusal in the audit log.
    if session.tenant != DEFAULT_TENANT {
        return None;
    }
    let metrics = web.backend.get_text(&session.credential, "/metrics").await.ok()?;
    let depths = depths(metrics.as_str()?);
    (!depths.is_empty()).then(|| html! {
        table aria-label="Depth by pool and lane" {
            thead { tr { th scope="col" { "Pool" } th scope="col" { "Lane" }
                th scope="col" { "Waiting" } th scope="col" { "Oldest waits" } } }
            tbody {
                @for depth in depths {
                    tr { th scope="row" { (depth.pool) } td { (depth.lane) } td { (depth.waiting) }
                        td { (oldest(&depth)) } }
                }
            }
        }
    })
}

fn oldest(depth: &Depth) -> String {
    match depth.waiting > 0.0 {
        // A float that is negative or too large becomes the nearest integer.
        true => text::duration((depth.oldest_seconds * 1000.0) as u64),
        false => "–".to_owned(),
    }
}

/// Reads the figures of the queue from Prometheus text.
fn depths(metrics: &str) -> Vec<Depth> {
    let mut found: Vec<Depth> = Vec::new();
    for line in metrics.lines() {
        let Some((name, labels)) = line.split_once('{') else { continue };
        let Some((labels, value)) = labels.rsplit_once("} ") else { continue };
        if !["evenkeel_queue_depth", "evenkeel_queue_oldest_seconds"].contains(&name) {
            continue;
        }
        let label = |name: &str| {
            let mut pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
            let value = pairs.find(|(found, _)| *found == name).map(|(_, value)| value);
            value.unwrap_or_default().trim_matches('"').to_owned()
        };
        let (pool, lane) = (label("pool"), label("lane"));
        let value = value.trim().parse().unwrap_or_default();
        let place = found.iter().position(|depth| depth.pool == pool && depth.lane == lane);
        let place = place.unwrap_or_else(|| {
            found.push(Depth { pool, lane, ..Depth::default() });
            found.len() - 1
        });
        match name {
            "evenkeel_queue_depth" => found[place].waiting = value,
            _ => found[place].oldest_seconds = value,
        }
    }
    let lane = |depth: &Depth| LANES.iter().position(|(lane, _)| depth.lane == *lane);
    found.sort_by(|a, b| (&a.pool, lane(a)).cmp(&(&b.pool, lane(b))));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_depths_are_read_from_metrics() {
        let metrics = "# TYPE evenkeel_queue_depth gauge\n\
                       evenkeel_queue_depth{pool=\"default\",lane=\"batch\"} 3\n\
                       evenkeel_queue_depth_is_lower_bound 0\n\
                       evenkeel_queue_oldest_seconds{pool=\"default\",lane=\"batch\"} 1.5\n\
                       other{pool=\"x\"} 1\n";
        let depth = Depth {
            pool: "default".into(),
            lane: "batch".into(),
            waiting: 3.0,
            oldest_seconds: 1.5,
        };
        assert_eq!(oldest(&depth), "2 s");
        assert_eq!(depths(metrics), [depth]);
    }
}
