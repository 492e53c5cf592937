//! `evenkeel nodes`

use clap::Args;
use evenkeel_core::Timestamp;
use serde_json::Value;

use super::Context;
use super::run::moment;
use crate::Failure;
use crate::config::raw::RawClient;
use crate::output::{Table, Tone, ago};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel nodes
  evenkeel nodes --json | jq '.nodes[] | {name, pools}'";

#[derive(Args, Clone)]
pub struct NodesArgs {
    #[command(flatten)]
    client: RawClient,
}

pub(super) fn run(context: &Context, args: NodesArgs) -> Result<(), Failure> {
    let client = context.client(args.client)?;
    context.runtime()?.block_on(async {
        let answer = client.get(&["nodes"], &[("limit", "1000")]).await?;
        if context.output.is_json() {
            return context.output.line(&answer.text);
        }
        let headings = ["NUMBER", "NAME", "STATE", "ROLES", "POOLS", "LAST PING", "JOINED"];
        let mut table = Table::new(context.output, &headings);
        for node in answer.list_of("nodes") {
            table.row(row(node, context.now()));
        }
        context.output.line(&table.render())
    })
}

fn row(node: &Value, now: Timestamp) -> [(String, Tone); 7] {
    let text = |field: &str| node[field].as_str().unwrap_or("-").to_owned();
    let when = |field: &str| moment(&node[field]).map_or_else(|| "-".into(), |at| ago(at, now));
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
        (when("last_ping_at"), Tone::Plain),
        (when("joined_at"), Tone::Plain),
    ]
}
