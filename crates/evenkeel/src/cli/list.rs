//! Helpers of commands that list entries page by page.

use clap::Args;

use super::Session;
use super::job::find_id;
use crate::Result;
use crate::client::{Answer, Query};
use crate::output::{clean, quoted};

/// The flags of a command that lists entries page by page with a cursor.
#[derive(Args, Clone)]
pub(super) struct CursorArgs {
    /// Maximum number of entries
    #[arg(short = 'n', long, value_name = "N", default_value = "20")]
    pub(super) limit: u32,
    /// Cursor that the previous page printed, to show the next page
    #[arg(long, value_name = "CURSOR")]
    pub(super) cursor: Option<String>,
}

impl CursorArgs {
    pub(super) fn query(&self) -> Query<'static> {
        let mut query = vec![("limit", self.limit.to_string())];
        query.extend(self.cursor.clone().map(|cursor| ("cursor", cursor)));
        query
    }
}

/// The flags of a command that lists entries page by page with an offset.
#[derive(Args, Clone)]
pub(super) struct OffsetArgs {
    /// Maximum number of entries
    #[arg(short = 'n', long, value_name = "N", default_value = "50")]
    limit: u32,
    /// Number of entries to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u32,
}

impl OffsetArgs {
    pub(super) fn query(&self) -> Query<'static> {
        vec![("limit", self.limit.to_string()), ("offset", self.offset.to_string())]
    }

    /// Returns a text with the flag that shows the next page, or an empty text on the last page.
    pub(super) fn next(&self, answer: &Answer, shown: usize) -> String {
        let total = answer.value["total"].as_u64().unwrap_or(0);
        match u64::from(self.offset) + shown as u64 {
            next if next < total => format!("\n{shown} of {total}; more with --offset {next}"),
            _ => String::new(),
        }
    }
}

/// Returns a query parameter with the id of the job that `--job` names, or nothing without `--job`.
pub(super) async fn job_id(session: &Session, job: Option<&str>) -> Result<Query<'static>> {
    match job {
        Some(job) => Ok(vec![("job_id", find_id(&session.client, job).await?)]),
        None => Ok(Vec::new()),
    }
}

/// Returns the flag ` --job JOB`, or an empty text if no job is given.
pub(super) fn job_flag(job: Option<&str>) -> String {
    job.map_or_else(String::new, |job| format!(" --job {}", quoted(job)))
}

/// Returns a text with the command that shows the next page, or an empty text on the last page.
pub(super) fn next_page(answer: &Answer, shown: usize, command: &str) -> String {
    next_of(answer, shown, &answer.value["total"].to_string(), command)
}

/// Like [`next_page`], but `total` is the text that shows the number of all entries.
pub(super) fn next_of(answer: &Answer, shown: usize, total: &str, command: &str) -> String {
    answer.value["next_cursor"].as_str().map_or_else(String::new, |cursor| {
        let cursor = clean(cursor);
        format!("\n{shown} of {total}; more with: evenkeel {command} --cursor {cursor}")
    })
}
