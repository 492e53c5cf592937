//! `evenkeel nodes`

use evenkeel_core::Timestamp;
use serde_json::Value;

use super::Session;
use super::run::when;
use crate::Result;
use crate::output::{Table, Tone};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel nodes
  evenkeel nodes --json | jq '.nodes[] | {name, pools}'";

pub(super) async fn run(session: &Session, (): ()) -> Result {
    let answer = session.client.get_with(&["nodes"], &[("limit", "1000".into())]).await?;
    let headings = ["NUMBER", "NAME", "STATE", "ROLES", "POOLS", "LAST PING", "JOINED"];
    let rows = answer.list_of("nodes").iter().map(|node| row(node, session.now()));
    session.answer(&answer, &Table::of(session.output, headings, rows).render())
}

fn row(node: &Value, now: Timestamp) -> [(String, Tone); 7] {
    let text = |field: &str| node[field].as_str().unwrap_or("-").to_owned();
    let list = |field: &str| {
        let items: Vec<&str> =
            node[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if items.is_empty() { "-".to_owned() } else { items.join(", ") }
    };
    let state = text("state");
    let tone = match state.as_str() {
        "live" => Tone::Good,
        "dead" => Tone::Bad,
        _ => Tone::Plain,
    };
    [
        (node["number"].to_string(), Tone::Plain),
        (text("name"), Tone::Plain),
        (state, tone),
        (list("roles"), Tone::Plain),
        (list("pools"), Tone::Plain),
        (when(&node["last_ping_at"], now, "-"), Tone::Plain),
        (when(&node["joined_at"], now, "-"), Tone::Plain),
    ]
}
