//! `evenkeel events`

use std::ops::ControlFlow;

use clap::Args;
use serde_json::Value;

use super::Session;
use super::list::job_id;
use crate::Result;
use crate::client::Message;
use crate::output::{clean, duration_ms};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel events
  evenkeel events --kinds 'job.*,run.ended' --job hello
  evenkeel events --json | jq 'select(.data.status == \"failed\")'

Runs until Ctrl-C and reconnects after a restart of the server. `gap` means that events may be missing.";

#[derive(Args, Clone)]
pub struct EventsArgs {
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

pub(super) async fn run(session: &Session, args: EventsArgs) -> Result {
    let mut query = job_id(session, args.job.as_deref()).await?;
    query.extend(args.kinds.map(|kinds| ("kinds", kinds)));
    let mut left = args.limit.unwrap_or(u64::MAX);
    if left == 0 {
        return Ok(());
    }
    let handle = |message: &Message| {
        if !message.data.is_empty() {
            show(session, message)?;
            left -= 1;
        }
        Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    session.client.follow(&["events"], &query, args.after, handle).await
}

fn show(session: &Session, message: &Message) -> Result {
    let event_data: Value = serde_json::from_str(&message.data).unwrap_or_default();
    if session.output.is_json() {
        let mut line = event_data;
        if let Value::Object(fields) = &mut line {
            fields.insert("id".into(), message.id.clone().into());
            fields.insert("event".into(), message.event.clone().into());
        }
        return session.output.line(&line.to_string());
    }
    session.output.line(&event_line(&message.event, &event_data))
}

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
