//! `evenkeel run watch`

use std::time::Duration;

use evenkeel_core::{AttemptId, AttemptNo};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use super::super::Session;
use super::details;
use crate::client::Client;
use crate::output::clean;
use crate::{Exit, Failure, Result};

/// Format of the progress bar for a run that reports no total amount of work.
const SPINNER: &str = "{spinner} {elapsed} {wide_msg}";
/// Time between two requests.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Follows a run until all its attempts have ended, and prints the result. Returns an error if the
/// run failed.
pub(in super::super) async fn watch(session: &Session, id: &str) -> Result {
    let client = &session.client;
    let mut id = id.to_owned();
    let bar = session.output.progress(None, SPINNER);
    let last = loop {
        let answer = client.get(&["executions", &id]).await?;
        if !matches!(answer.text_of("status"), "pending" | "running") {
            match next_attempt(client, &answer.value).await? {
                Some(next) => id = next,
                None => break answer,
            }
        }
        show(&bar, &answer.value);
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    bar.finish_and_clear();
    session.answer(&last, &details(&last.value, session.now()))?;
    match last.text_of("status") {
        "completed" | "partly_failed" | "skipped" => Ok(()),
        status => Err(Failure::failed(format!("the run ended with the status {}", clean(status)))),
    }
}

/// Returns the retry of a failed attempt, if the server has created one.
async fn next_attempt(client: &Client, run: &Value) -> Result<Option<String>> {
    if !matches!(run["status"].as_str(), Some("failed" | "timed_out")) {
        return Ok(None);
    }
    let Some(id) = run["id"].as_str().and_then(|id| id.parse::<AttemptId>().ok()) else {
        return Ok(None);
    };
    let next = id.with_attempt(AttemptNo(id.attempt().0 + 1)).to_string();
    match client.get(&["executions", &next]).await {
        Ok(_) => Ok(Some(next)),
        Err(failure) if failure.exit == Exit::NotFound => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn show(bar: &ProgressBar, run: &Value) {
    let progress = &run["progress"];
    let (done, total) = (progress["done"].as_u64(), progress["total"].as_u64());
    let style = match total {
        Some(_) => "{bar:30} {pos}/{len} {elapsed} {wide_msg}",
        None => SPINNER,
    };
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    if let Some(total) = total {
        bar.set_length(total);
    }
    bar.set_position(done.unwrap_or(0));
    let status = run["status"].as_str().unwrap_or_default();
    bar.set_message(clean(progress["message"].as_str().unwrap_or(status)));
    bar.tick();
}
