//! `evenkeel audit`

use clap::Args;
use serde_json::Value;

use super::Session;
use super::list::CursorArgs;
use crate::Result;
use crate::output::{Table, Tone};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel audit
  evenkeel audit --denied -n 100
  evenkeel audit --subject key:ci --from 2026-12-01T00:00:00Z
  evenkeel audit --target 019a8000-0000-7000-8000-000000000000 --json | jq '.entries[].action'";

#[derive(Args, Clone)]
pub struct AuditArgs {
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
    #[command(flatten)]
    page: CursorArgs,
}

pub(super) async fn run(session: &Session, args: AuditArgs) -> Result {
    let mut query = args.page.query();
    query.extend(args.subject.map(|subject| ("subject", subject)));
    query.extend(args.target.map(|target| ("target", target)));
    query.extend(args.from.map(|from| ("from", from)));
    query.extend(args.before.map(|before| ("before", before)));
    query.extend(args.denied.then(|| ("denied", "true".into())));
    let answer = session.client.get_with(&["audit"], &query).await?;
    let headings = ["TIME", "SUBJECT", "FROM", "ACTION", "TARGET", "STATUS", "DETAIL"];
    let table = Table::of(session.output, headings, answer.list_of("entries").iter().map(row));
    let next = answer.value["next_cursor"].as_str();
    let next = next.map_or_else(String::new, |next| format!("\nmore with --cursor {next}"));
    session.page(&answer, table, &next, "No entries match.")
}

fn row(entry: &Value) -> [(String, Tone); 7] {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
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
