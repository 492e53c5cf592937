//! The first page: what an operator wants to know first, in words.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use evenkeel_core::Timestamp;
use maud::{Markup, html};
use serde_json::Value;

use super::{items, job_link};
use crate::backend::{Answer, Refused, escape};
use crate::session::Session;
use crate::{Web, layout, pages, text};

/// Number of jobs that the page names as the next to break.
const NEXT_TO_BREAK: usize = 3;

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
) -> Response {
    let get = async |path: &str| web.backend.get(&session.credential, path).await;
    let ready = get("/readyz").await;
    let metrics = get("/api/v1/scheduler/metrics").await;
    let nodes = get("/api/v1/nodes?limit=100").await;
    let at_risk = get(&format!("/api/v1/conditions?limit={NEXT_TO_BREAK}")).await;
    let failures = get("/api/v1/failures?limit=5").await;
    let distribution = get("/api/v1/scheduler/distribution").await;
    let mut advice = Vec::new();
    for job in at_risk.iter().flat_map(|answer| items(answer, "jobs")) {
        let id = escape(job["id"].as_str().unwrap_or_default());
        advice.push(get(&format!("/api/v1/jobs/{id}/condition")).await);
    }
    let now = web.now();
    let body = html! {
        h1 { "Overview" }
        section.answers {
            (working(&ready, &metrics, &nodes, now))
            (breaks_next(&at_risk, &advice, now))
            (failed(&failures, now))
            (fullness(&ready, &distribution))
            (evenness(&distribution))
        }
        @if let Ok(distribution) = &distribution {
            (pages::balance::panel(&session, distribution))
        }
    };
    layout::page(&session, "/", "Overview", &body)
}

fn unknown(refused: &Refused) -> Markup {
    html! { p role="alert" { "Unknown: " (refused.detail) } }
}

fn working(ready: &Answer, metrics: &Answer, nodes: &Answer, now: Timestamp) -> Markup {
    html! {
        article {
            h2 { "Is the scheduler working?" }
            @match ready {
                Ok(_) => p { "Yes. All checks of this server pass." },
                Err(refused) => p role="alert" { "No. " (refused.detail) },
            }
            @match (metrics, nodes) {
                (Ok(metrics), Ok(nodes)) => {
                    @let live = items(nodes, "nodes").iter().filter(|node| node["state"] == "live");
                    @let jobs = &metrics["jobs"];
                    p { (live.count()) " node(s) are live. Last check: "
                        (text::time(&metrics["last_check_at"], now)) ". " (jobs["total"])
                        " jobs, of which " (jobs["running"]) " run and " (jobs["paused"])
                        " are paused." }
                    @if jobs["total"] == 0 {
                        p { "There is no job yet. Create one: "
                            code { "evenkeel job create --name hello --every 5m --noop" } }
                    }
                }
                (Err(refused), _) | (_, Err(refused)) => (unknown(refused)),
            }
        }
    }
}

fn breaks_next(at_risk: &Answer, advice: &[Answer], now: Timestamp) -> Markup {
    html! {
        article {
            h2 { "What breaks next?" }
            @match at_risk {
                Ok(answer) if items(answer, "jobs").is_empty() => p { "Nothing: no job is at risk of missing its deadline." },
                Ok(answer) => {
                    ol {
                        @for (job, advice) in items(answer, "jobs").iter().zip(advice) {
                            li {
                                (job_link(&job["id"], &job["name"])) " " (text::state(&job["condition"]))
                                ", deadline " (text::time(&job["error_at"], now)) ". "
                                @if let Ok(advice) = advice { (text::plain(&advice["explanation"])) }
                            }
                        }
                    }
                    p { a href="/at-risk" { "All jobs at risk" } }
                }
                Err(refused) => (unknown(refused)),
            }
        }
    }
}

fn failed(failures: &Answer, now: Timestamp) -> Markup {
    html! {
        article {
            h2 { "What failed?" }
            @match failures {
                Ok(answer) if items(answer, "failures").is_empty() => p { "No recent run failed." },
                Ok(answer) => {
                    ul {
                        @for failure in items(answer, "failures") {
                            li { (failure["count"]) " × " code { (text::plain(&failure["error_message"])) }
                                ", last in " (job_link(&failure["job_id"], &failure["job_name"])) " "
                                (text::time(&failure["last_at"], now)) }
                        }
                    }
                    p { a href="/failures" { "All failures" } }
                }
                Err(refused) => (unknown(refused)),
            }
        }
    }
}

fn fullness(ready: &Answer, distribution: &Answer) -> Markup {
    let engine = ready.as_ref().ok().and_then(|ready| {
        items(ready, "checks")
            .iter()
            .find(|check| check["name"] == "engine")
            .map(|it| &it["detail"])
    });
    html! {
        article {
            h2 { "How full is it?" }
            @if let Some(detail) = engine { p { "This node " (text::plain(detail)) "." } }
            @match distribution {
                Ok(answer) => p { "The busiest hour of the next day begins at "
                    (hour(&answer["peak_hour"])) " UTC, with " (answer["peak_count"]) " runs." },
                Err(refused) => (unknown(refused)),
            }
        }
    }
}

fn evenness(distribution: &Answer) -> Markup {
    html! {
        article {
            h2 { "Is the load even?" }
            @match distribution {
                Ok(answer) => {
                    p { "Score " strong { (text::score(&answer["distribution_score"])) } " of 1. "
                        (text::plain(&answer["suggestion"])) }
                    p { a href="/balance" { "See the balance" } }
                }
                Err(refused) => (unknown(refused)),
            }
        }
    }
}

pub(crate) fn hour(value: &Value) -> String {
    format!("{:02}:00", value.as_u64().unwrap_or(0))
}
