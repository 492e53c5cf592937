//! The nodes of the cluster: what each holds and runs, and pools without workers.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use evenkeel_core::Timestamp;
use futures::join;
use maud::{Markup, html};
use serde_json::Value;

use super::{items, job_link};
use crate::backend::{Answer, escape};
use crate::session::Session;
use crate::{Web, layout, text};

const PATH: &str = "/nodes";
/// Other nodes challenge the lease of a node that was silent for this long, in microseconds.
const SILENT_AFTER: i64 = 6_000_000;
/// Running runs that the page reads, and that it names for each node.
const RUNS: usize = 100;
const RUNS_NAMED: usize = 5;

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
) -> Response {
    let get = async |path: String| web.backend.get(&session.credential, &path).await;
    let (nodes, ready, running) = join!(
        get("/api/v1/nodes?limit=100".into()),
        get("/readyz".into()),
        get(format!("/api/v1/runs?status=running&limit={RUNS}")),
    );
    let nodes = match nodes {
        Ok(nodes) => nodes,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let members = items(&nodes, "nodes");
    let body = html! {
        h1 { "Nodes" }
        (pools(&ready))
        @if members.is_empty() {
            p { "No node has joined the cluster. Start one with " code { "evenkeel serve" } "." }
        } @else {
            (table(members, &running, web.now()))
            @if let Err(refused) = &running { p role="alert" { "What the nodes run is unknown: " (refused.detail) } }
            @if running.as_ref().is_ok_and(|runs| runs["next_cursor"].is_string()) {
                p { small { "More runs are active than this page counts. " a href="/runs?status=running" { "All active runs" } } }
            }
            @if members.len() == 1 {
                p { small { "One node does all the work. Nodes that share a PostgreSQL store form a cluster: "
                    "start a server with the same " code { "--store" } " on another machine." } }
            }
            p { a href="/timeline?by=node" { "What each node ran and runs, on one axis" } }
        }
    };
    layout::page(&session, PATH, "Nodes", &body)
}

/// What this server says about itself and about pools without workers.
fn pools(ready: &Answer) -> Markup {
    let ready = match ready {
        Ok(ready) => ready,
        Err(refused) => {
            return html! {
                p.problem role="alert" { "This server is not ready: " (refused.detail) }
            };
        }
    };
    let check = items(ready, "checks").iter().find(|check| check["name"] == "pools");
    html! {
        @if let Some(detail) = check.and_then(|check| check["detail"].as_str()) {
            @if detail.starts_with("all pools") { p { "Pools: " (detail) "." } }
            @else {
                p.problem role="status" { (text::state(&Value::from("WARNING"))) " Pools: " (detail)
                    ". Start a server with " code { "--pools" } " and the names of these pools, or give the jobs another pool." }
            }
        }
    }
}

fn table(members: &[Value], running: &Answer, now: Timestamp) -> Markup {
    let list = |value: &Value| {
        let names = value.as_array().map_or(&[][..], Vec::as_slice).iter().map(text::plain);
        names.collect::<Vec<_>>().join(", ")
    };
    let runs = running.as_ref().map_or(&[][..], |runs| items(runs, "runs"));
    html! {
        table aria-label="Nodes of the cluster" {
            thead { tr { th scope="col" { "Node" } th scope="col" { "State" } th scope="col" { "Roles" }
                th scope="col" { "Pools" } th scope="col" { "Shards of 256" } th scope="col" { "Runs now" }
                th scope="col" { "Joined" } th scope="col" { "Last ping" } } }
            tbody {
                @for node in members {
                    tr { th scope="row" { (text::plain(&node["name"])) " #" (node["number"]) }
                        td { (text::state(&node["state"])) }
                        td { (list(&node["roles"])) } td { (list(&node["pools"])) }
                        td { (text::plain(&node["shards"])) }
                        td { @if running.is_ok() { (runs_on(&node["name"], runs)) } @else { "unknown" } }
                        td { (text::time(&node["joined_at"], now)) }
                        td { (ping(node, now)) } }
                }
            }
        }
    }
}

/// The runs whose newest attempt runs on a node. Nodes can have the same name.
fn runs_on(name: &Value, runs: &[Value]) -> Markup {
    let is_here =
        |run: &&Value| items(run, "attempts").last().is_some_and(|it| it["node"] == *name);
    let here: Vec<&Value> = runs.iter().filter(is_here).collect();
    html! {
        @if here.is_empty() { "no run of yours" }
        @for (nth, run) in here.iter().take(RUNS_NAMED).enumerate() {
            @if nth > 0 { ", " }
            (job_link(&run["job_id"], &run["job_name"]))
            " (" a href={ "/runs/" (escape(&text::plain(&run["id"]))) } { "run" } ")"
        }
        @if here.len() > RUNS_NAMED { " and " (here.len() - RUNS_NAMED) " more" }
    }
}

fn ping(node: &Value, now: Timestamp) -> Markup {
    let age = text::micros(&node["last_ping_at"]).map_or(0, |at| now.as_micros() - at);
    html! {
        @if node["state"] == "live" && age > SILENT_AFTER {
            span.state.warn { span aria-hidden="true" { "!" } " silent" } " "
        }
        (text::time(&node["last_ping_at"], now))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn silent_node_is_marked() {
        let now: Timestamp = "2026-11-18T09:00:10Z".parse().unwrap();
        let shown = |state: &str, second: u32| {
            let at = format!("2026-11-18T09:00:{second:02}Z");
            ping(&json!({"state": state, "last_ping_at": at}), now).into_string()
        };
        assert!(!shown("live", 8).contains("silent"));
        assert!(shown("live", 3).contains(" silent"));
        assert!(!shown("dead", 3).contains("silent"), "its state says more");
    }

    #[test]
    fn runs_are_listed_with_the_node_of_their_newest_attempt() {
        let run = |name: &str, nodes: &[&str]| {
            let attempts: Vec<Value> = nodes.iter().map(|node| json!({"node": node})).collect();
            json!({"id": "1", "job_id": "2", "job_name": name, "attempts": attempts})
        };
        let runs = [run("moved", &["a", "b"]), run("stays", &["a"])];
        let shown = runs_on(&json!("a"), &runs).into_string();
        assert!(shown.contains("stays") && !shown.contains("moved"), "{shown}");
        assert!(runs_on(&json!("c"), &runs).into_string().contains("no run of yours"));
        let many = vec![run("x", &["a"]); RUNS_NAMED + 2];
        assert!(runs_on(&json!("a"), &many).into_string().ends_with(" and 2 more"));
    }
}
