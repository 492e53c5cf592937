//! `evenkeel events`

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::Context;
use super::list::job_id;
use crate::client::{Client, Message};
use crate::config::raw::RawClient;
use crate::output::{clean, duration_ms};
use crate::{Exit, Failure};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel events
  evenkeel events --kinds 'job.*,run.ended' --job hello
  evenkeel events --json | jq 'select(.data.status == \"failed\")'

Runs until Ctrl-C and reconnects after a restart of the server. `gap` means that events may be missing.";

/// Delay between two attempts to reconnect.
pub(super) const RECONNECT_DELAY: Duration = Duration::from_secs(2);

#[derive(Args, Clone)]
pub struct EventsArgs {
    #[command(flatten)]
    client: RawClient,
    /// Only events of these kinds, separated by commas; job.* and run.* are allowed
    #[arg(long, value_name = "KINDS")]
    kinds: Option<String>,
    /// Only events of this job (name or id)
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Resume after the event with this id
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// Stop after this number of events
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
}

pub(super) fn run(context: &Context, args: EventsArgs) -> Result<(), Failure> {
    let client = context.client(args.client.clone())?;
    context.runtime()?.block_on(listen(context, &client, args))
}

async fn listen(context: &Context, client: &Client, args: EventsArgs) -> Result<(), Failure> {
    let job = job_id(client, args.job.as_deref()).await?;
    let mut query = Vec::new();
    query.extend(args.kinds.as_deref().map(|kinds| ("kinds", kinds)));
    query.extend(job.as_deref().map(|job| ("job_id", job)));
    let mut last = args.after;
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut was_connected = false;
    while left > 0 {
        let mut stream = match client.listen(&["events"], &query, last.as_deref()).await {
            Ok(stream) => stream,
            // The server was reachable before this failure, so the command reconnects.
            Err(failure) if was_connected && may_be_temporary(&failure) => {
                tokio::time::sleep(RECONNECT_DELAY).await;
                continue;
            }
            Err(failure) => return Err(failure),
        };
        was_connected = true;
        while left > 0
            && let Some(message) = stream.next().await
        {
            if let Some(id) = &message.id {
                last = Some(id.clone());
            }
            if message.data.is_empty() {
                continue;
            }
            show(context, &message)?;
            left -= 1;
        }
        if left > 0 {
            tokio::time::sleep(RECONNECT_DELAY).await;
        }
    }
    Ok(())
}

/// Returns true if a request that failed this way may succeed later.
pub(super) fn may_be_temporary(failure: &Failure) -> bool {
    let status = failure.problem.as_ref().and_then(|problem| problem["status"].as_u64());
    failure.exit == Exit::Unreachable || status.is_some_and(|status| status >= 500)
}

fn show(context: &Context, message: &Message) -> Result<(), Failure> {
    let event_data: Value = serde_json::from_str(&message.data).unwrap_or_default();
    if context.output.is_json() {
        let mut line = event_data;
        if let Value::Object(fields) = &mut line {
            fields.insert("id".into(), message.id.clone().into());
            fields.insert("event".into(), message.event.clone().into());
        }
        return context.output.line(&line.to_string());
    }
    context.output.line(&event_line(&message.event, &event_data))
}

/// Formats an event as one line.
fn event_line(event: &str, event_data: &Value) -> String {
    if event == "gap" {
        return "-- events may be missing here --".into();
    }
    let text = |field: &str| event_data[field].as_str().unwrap_or_default();
    let job = event_data["job_name"].as_str().unwrap_or(text("job_id"));
    let mut line = format!("{}  {event:<13}  job {job}", text("at"));
    if let Some(run) = event_data["execution_id"].as_str() {
        line.push_str(&format!("  run {run}"));
    }
    let data = &event_data["data"];
    for field in ["status", "condition", "reason", "node", "error_message"] {
        if let Some(value) = data[field].as_str() {
            line.push_str(&format!("  {value}"));
        }
    }
    if let Some(took) = data["duration_ms"].as_u64() {
        line.push_str(&format!("  took {}", duration_ms(took)));
    }
    if let Some(retry) = data["retry_at"].as_str() {
        line.push_str(&format!("  retry at {retry}"));
    }
    clean(&line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn event_line_is_one_line() {
        let event_data = json!({
            "at": "2026-01-01T00:00:00Z", "job_id": "j", "execution_id": "e",
            "data": {"status": "failed", "duration_ms": 1500, "error_message": "a\nb"},
        });
        assert_eq!(
            event_line("run.ended", &event_data),
            "2026-01-01T00:00:00Z  run.ended      job j  run e  failed  a\\nb  took 1.5s"
        );
        let event_data = json!({"at": "t", "job_id": "j", "job_name": "news", "data": {}});
        assert_eq!(event_line("job.created", &event_data), "t  job.created    job news");
    }
}
