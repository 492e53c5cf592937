//! Helpers of commands that list entries page by page.

use super::job::find_id;
use crate::Failure;
use crate::client::{Answer, Client};
use crate::output::{clean, quoted};

/// Returns the id of the job that `--job` names, if it is given.
pub(super) async fn job_id(client: &Client, job: Option<&str>) -> Result<Option<String>, Failure> {
    match job {
        Some(job) => Ok(Some(find_id(client, job).await?)),
        None => Ok(None),
    }
}

/// Returns ` --job JOB`, or an empty text.
pub(super) fn job_flag(job: Option<&str>) -> String {
    job.map_or_else(String::new, |job| format!(" --job {}", quoted(job)))
}

/// Returns the command that shows the next page of a list with cursors, if there is a next page.
pub(super) fn next_page(answer: &Answer, shown: usize, command: &str) -> String {
    match answer.value["next_cursor"].as_str() {
        Some(cursor) => format!(
            "\n{shown} of {}; more with: evenkeel {command} --cursor {}",
            answer.value["total"],
            clean(cursor)
        ),
        None => String::new(),
    }
}

/// Returns the flag that shows the next page of a list with offsets, if there is a next page.
pub(super) fn next_offset(answer: &Answer, shown: usize, offset: u32) -> String {
    let total = answer.value["total"].as_u64().unwrap_or(0);
    match u64::from(offset) + shown as u64 {
        next if next < total => format!("\n{shown} of {total}; more with --offset {next}"),
        _ => String::new(),
    }
}
