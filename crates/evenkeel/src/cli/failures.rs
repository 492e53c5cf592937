//! `evenkeel failures`

use clap::Args;
use evenkeel_core::Timestamp;
use serde_json::Value;

use super::Context;
use super::list::{job_flag, job_id, next_page};
use super::run::moment;
use crate::Failure;
use crate::config::raw::RawClient;
use crate::output::{Table, Tone, ago};

/// Number of characters of a message to show.
const MESSAGE_CHARS: usize = 100;

#[derive(Args, Clone)]
pub struct FailuresArgs {
    #[command(flatten)]
    client: RawClient,
    /// Only failures of this job (name or id)
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Maximum number of entries
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Cursor that the previous page printed, to show the next page
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(super) fn run(context: &Context, args: FailuresArgs) -> Result<(), Failure> {
    let client = context.client(args.client)?;
    context.runtime()?.block_on(async {
        let job = job_id(&client, args.job.as_deref()).await?;
        let limit = args.limit.to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(job.as_deref().map(|job| ("job_id", job)));
        query.extend(args.cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let answer = client.get(&["failures"], &query).await?;
        if context.output.is_json() {
            return context.output.line(&answer.text);
        }
        let failures = answer.list_of("failures");
        if failures.is_empty() {
            return context.output.line("Nothing has failed.");
        }
        let headings = ["TIMES", "LAST", "SINCE", "JOB", "NEWEST EXECUTION", "MESSAGE"];
        let mut table = Table::new(context.output, &headings);
        for failure in failures {
            table.row(row(failure, context.now()));
        }
        let mut text = table.render();
        let command = format!("failures{}", job_flag(args.job.as_deref()));
        text.push_str(&next_page(&answer, failures.len(), &command));
        context.output.line(&text)
    })
}

fn row(failure: &Value, now: Timestamp) -> [(String, Tone); 6] {
    let text = |field: &str| failure[field].as_str().unwrap_or("-").to_owned();
    let when = |field: &str| moment(&failure[field]).map_or_else(|| "-".into(), |at| ago(at, now));
    let job = failure["job_name"].as_str().map_or_else(|| text("job_id"), str::to_owned);
    let message = text("error_message");
    let message: String =
        message.lines().next().unwrap_or_default().chars().take(MESSAGE_CHARS).collect();
    [
        (failure["count"].to_string(), Tone::Bad),
        (when("last_at"), Tone::Plain),
        (when("first_at"), Tone::Plain),
        (job, Tone::Plain),
        (text("execution_id"), Tone::Plain),
        (message, Tone::Plain),
    ]
}
