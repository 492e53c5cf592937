//! `evenkeel failures`

use clap::Args;
use evenkeel_core::Timestamp;
use serde_json::Value;

use super::Session;
use super::list::{CursorArgs, job_flag, job_id, next_page};
use super::run::when;
use crate::Result;
use crate::output::{Table, Tone};

/// Maximum number of characters of an error message in the list of failures.
const MESSAGE_CHARS: usize = 100;

#[derive(Args, Clone)]
#[command(mut_arg("limit", |limit| limit.default_value("50")))]
pub struct FailuresArgs {
    /// Only failures of this job (name or id)
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    #[command(flatten)]
    page: CursorArgs,
}

pub(super) async fn run(session: &Session, args: FailuresArgs) -> Result {
    let mut query = args.page.query();
    query.extend(job_id(session, args.job.as_deref()).await?);
    let answer = session.client.get_with(&["failures"], &query).await?;
    let headings = ["TIMES", "LAST", "SINCE", "JOB", "NEWEST EXECUTION", "MESSAGE"];
    let rows = answer.list_of("failures").iter().map(|failure| row(failure, session.now()));
    let table = Table::of(session.output, headings, rows);
    let command = format!("failures{}", job_flag(args.job.as_deref()));
    let next = next_page(&answer, table.len(), &command);
    session.page(&answer, table, &next, "Nothing has failed.")
}

fn row(failure: &Value, now: Timestamp) -> [(String, Tone); 6] {
    let text = |field: &str| failure[field].as_str().unwrap_or("-").to_owned();
    let job = failure["job_name"].as_str().map_or_else(|| text("job_id"), str::to_owned);
    let message = text("error_message");
    let message: String =
        message.lines().next().unwrap_or_default().chars().take(MESSAGE_CHARS).collect();
    [
        (failure["count"].to_string(), Tone::Bad),
        (when(&failure["last_at"], now, "-"), Tone::Plain),
        (when(&failure["first_at"], now, "-"), Tone::Plain),
        (job, Tone::Plain),
        (text("execution_id"), Tone::Plain),
        (message, Tone::Plain),
    ]
}
