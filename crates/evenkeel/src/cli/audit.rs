//! `evenkeel audit`

use clap::Args;
use serde_json::Value;

use super::Context;
use crate::Failure;
use crate::config::raw::RawClient;
use crate::output::{Table, Tone, clean};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel audit
  evenkeel audit --denied -n 100
  evenkeel audit --subject key:ci --from 2026-12-01T00:00:00Z
  evenkeel audit --target 019a8000-0000-7000-8000-000000000000 --json | jq '.entries[].action'";

#[derive(Args, Clone)]
pub struct AuditArgs {
    #[command(flatten)]
    client: RawClient,
    /// Only entries of this user; an API key is written as key:NAME
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// Only entries about this id
    #[arg(long, value_name = "ID")]
    target: Option<String>,
    /// Only refused requests
    #[arg(long)]
    denied: bool,
    /// Only entries at or after this time
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only entries before this time
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
    /// Maximum number of entries
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Cursor that the previous page printed, to show the next page
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(super) fn run(context: &Context, args: AuditArgs) -> Result<(), Failure> {
    let client = context.client(args.client.clone())?;
    let limit = args.limit.to_string();
    let mut query = vec![("limit", limit.as_str())];
    for (name, value) in [
        ("subject", &args.subject),
        ("target", &args.target),
        ("from", &args.from),
        ("before", &args.before),
        ("cursor", &args.cursor),
    ] {
        query.extend(value.as_deref().map(|value| (name, value)));
    }
    query.extend(args.denied.then_some(("denied", "true")));
    let answer = context.runtime()?.block_on(client.get(&["audit"], &query))?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let entries = answer.list_of("entries");
    let next = answer.value["next_cursor"].as_str();
    if entries.is_empty() && next.is_none() {
        return context.output.line("No entries match.");
    }
    let mut table = Table::new(
        context.output,
        &["TIME", "SUBJECT", "FROM", "ACTION", "TARGET", "STATUS", "DETAIL"],
    );
    for entry in entries {
        table.row(row(entry));
    }
    let mut rendered = table.render();
    if let Some(next) = next {
        rendered.push_str(&format!("\nmore with --cursor {next}"));
    }
    context.output.line(&rendered)
}

fn row(entry: &Value) -> [(String, Tone); 7] {
    let text = |field: &str| clean(entry[field].as_str().unwrap_or_default());
    let tone = if entry["denied"] == true { Tone::Bad } else { Tone::Plain };
    let succeeded = entry["status"].as_u64().is_some_and(|status| status < 300);
    let detail = if entry["denied"] == true || succeeded { text("detail") } else { String::new() };
    [
        (text("at"), Tone::Quiet),
        (text("subject"), Tone::Plain),
        (text("remote"), Tone::Quiet),
        (text("action"), Tone::Plain),
        (text("target"), Tone::Quiet),
        (entry["status"].to_string(), tone),
        (detail, Tone::Plain),
    ]
}
