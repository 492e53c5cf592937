//! `evenkeel run`

mod logs;
mod watch;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use evenkeel_core::Timestamp;
use serde_json::Value;

pub(super) use watch::watch;

use super::Session;
use super::job::{find, find_id, title};
use super::list::{CursorArgs, job_flag};
use crate::client::Client;
use crate::output::{Table, Tone, ago, clean, duration_ms, tone_of};
use crate::{Exit, Result};

#[derive(Subcommand, Clone)]
pub(super) enum RunCommand {
    /// List runs, newest first
    #[command(after_help = "Examples:
  evenkeel run list
  evenkeel run list --job hello -n 5
  evenkeel run list --json | jq '.executions[].status'")]
    List(ListArgs),
    /// Show a run with its output
    #[command(after_help = "Examples:
  evenkeel run show 0006442d-7b2b-8640-8000-000000040000")]
    Show {
        /// Id of a run or execution
        id: String,
    },
    /// Follow a run until it ends; the exit code is an error if the run fails
    #[command(after_help = "Examples:
  evenkeel run watch 0006442d-7b2b-8640-8000-000000040000
  evenkeel job trigger hello --watch")]
    Watch {
        /// Id of a run or execution
        id: String,
    },
    /// Show the log of a run, also while it runs
    #[command(after_help = "Examples:
  evenkeel run logs 0006442d-7b2b-8640-8000-000000040000
  evenkeel run logs --stream stderr --timestamps 0006442d-7b2b-8640-8000-000000040000
  evenkeel run logs -f -n 20 $(evenkeel job trigger hello --json | jq -r .run_id)")]
    Logs(logs::LogsArgs),
    /// Cancel a run; its job stays active
    #[command(after_help = "Examples:
  evenkeel run cancel 0006442d-7b2b-8640-8000-000000040000")]
    Cancel {
        /// Id of a run or execution
        id: String,
    },
}

#[derive(Args, Clone)]
pub(super) struct ListArgs {
    /// Only runs of this job (name or id)
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    #[command(flatten)]
    page: CursorArgs,
}

pub(super) async fn run(session: &Session, command: RunCommand) -> Result {
    match command {
        RunCommand::List(args) => list(session, args).await,
        RunCommand::Show { id } => {
            let answer = session.client.get(&["executions", &id]).await?;
            session.answer(&answer, &details(&answer.value, session.now()))
        }
        RunCommand::Watch { id } => watch(session, &id).await,
        RunCommand::Logs(args) => logs::logs(session, args).await,
        RunCommand::Cancel { id } => cancel(session, &id).await,
    }
}

async fn list(session: &Session, args: ListArgs) -> Result {
    let Session { client, output } = session;
    let query = args.page.query();
    let answer = match &args.job {
        Some(job) => {
            let id = find_id(client, job).await?;
            client.get_with(&["jobs", &id, "executions"], &query).await?
        }
        None => client.get_with(&["executions"], &query).await?,
    };
    if output.is_json() {
        return output.line(&answer.text);
    }
    let runs = answer.list_of("executions");
    if runs.is_empty() {
        let text = match &args.job {
            // The job has not run if the first page of the list is empty.
            Some(job) if args.page.cursor.is_none() => {
                first_run(client, job, session.now()).await?
            }
            _ => "Nothing has run yet.".into(),
        };
        return output.line(&text);
    }
    let titles = titles(client, runs).await?;
    let headings = ["RUN", "JOB", "STATUS", "SCHEDULED", "LATE", "TOOK", "ATTEMPT"];
    let mut table = Table::new(*output, &headings);
    for run in runs {
        table.noted_row(row(run, &titles, session.now()), &note(run));
    }
    let mut text = table.render();
    if let Some(cursor) = answer.value["next_cursor"].as_str() {
        let (of_job, cursor) = (job_flag(args.job.as_deref()), clean(cursor));
        text.push_str(&format!("\nMore with: evenkeel run list{of_job} --cursor {cursor}"));
    }
    output.line(&text)
}

/// Returns the names of the jobs to which these runs belong.
async fn titles(client: &Client, runs: &[Value]) -> Result<BTreeMap<String, String>> {
    /// Maximum number of jobs whose names are requested, because each name needs a request. Further
    /// jobs are shown by id.
    const MAX: usize = 50;
    let ids = runs.iter().filter_map(|run| run["job_id"].as_str().map(String::from));
    let mut titles: BTreeMap<String, String> = ids.map(|id| (id.clone(), id)).collect();
    for (id, known) in titles.iter_mut().take(MAX) {
        match client.get(&["jobs", id]).await {
            Ok(answer) => *known = title(&answer.value),
            // The job was deleted; its history remains.
            Err(failure) if failure.exit == Exit::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(titles)
}

/// Describes when the first run of a job that has not run yet is due.
async fn first_run(client: &Client, job: &str, now: Timestamp) -> Result<String> {
    let found = match find(client, job).await {
        Ok(found) => found,
        // The job and its history were deleted.
        Err(failure) if failure.exit == Exit::NotFound => return Ok("Nothing has run.".into()),
        Err(failure) => return Err(failure),
    };
    Ok(due(&found.value, now))
}

fn due(job: &Value, now: Timestamp) -> String {
    let title = clean(&title(job));
    let status = job["status"].as_str().unwrap_or_default();
    match (moment(&job["next_run_at"]), status) {
        (_, "pending" | "running") => format!("{title} is about to start its first run."),
        (_, "paused" | "cancelled") => {
            format!("{title} has not run yet and will not: it is {status}.")
        }
        (Some(at), _) if at <= now => format!("{title} has not run yet; its first run is due now."),
        (Some(at), _) => {
            format!("{title} has not run yet; its first run is due {} ({at}).", ago(at, now))
        }
        (None, _) => format!("{title} has not run yet, and no run of it is due."),
    }
}

/// Returns a note about a run: why it was skipped, why it failed, or what started it.
fn note(run: &Value) -> String {
    match (&run["skipped"], run["error_message"].as_str(), run["origin"].as_str()) {
        (Value::Object(skipped), ..) => {
            let count = skipped["count"].as_u64().unwrap_or(1);
            let reason = skipped["reason"].as_str().unwrap_or_default();
            format!("{count} × {reason}")
        }
        (_, Some(error), _) => error.into(),
        (_, None, Some(origin)) if origin != "schedule" => origin.into(),
        _ => String::new(),
    }
}

fn row(run: &Value, titles: &BTreeMap<String, String>, now: Timestamp) -> [(String, Tone); 7] {
    let text = |field: &str| run[field].as_str().unwrap_or_default().to_owned();
    let millis = |field: &str| run[field].as_u64().map_or_else(|| "-".into(), duration_ms);
    let status = text("status");
    let tone = tone_of(&status);
    [
        (text("id"), Tone::Quiet),
        (titles.get(&text("job_id")).cloned().unwrap_or_default(), Tone::Plain),
        (status, tone),
        (when(&run["scheduled_at"], now, "-"), Tone::Plain),
        (millis("lateness_ms"), Tone::Plain),
        (millis("duration_ms"), Tone::Plain),
        (run["attempt"].to_string(), Tone::Plain),
    ]
}

async fn cancel(session: &Session, id: &str) -> Result {
    let answer = session.client.post(&["executions", id, "cancel"], None).await?;
    let text = match answer.value["running"].as_bool() {
        Some(true) => "Its cancellation was requested; it ends within seconds.",
        _ => "It was waiting, and will not run.",
    };
    session.answer(&answer, text)
}

fn details(run: &Value, now: Timestamp) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("{name:<11}{}\n", clean(&value)));
        }
    };
    let string = |field: &str| run[field].as_str().map(String::from);
    let time = |field: &str| moment(&run[field]).map(|at| format!("{at} ({})", ago(at, now)));
    line("run", string("run_id"));
    line("attempt", Some(format!("{} ({})", run["attempt"], string("id").unwrap_or_default())));
    line("job", string("job_id"));
    line("status", string("status"));
    line("origin", string("origin"));
    line("scheduled", time("scheduled_at"));
    line("started", time("started_at"));
    line("ended", time("completed_at"));
    line("late", run["lateness_ms"].as_u64().map(duration_ms));
    line("took", run["duration_ms"].as_u64().map(duration_ms));
    line("node", string("node"));
    line("priority", priority(run));
    line("progress", progress(&run["progress"]));
    line("items", items(run));
    line("cpu", run["cpu_time_ms"].as_u64().map(duration_ms));
    line("memory", run["memory_peak_mb"].as_u64().map(|mb| format!("{mb} MiB at most")));
    if let Value::Object(skipped) = &run["skipped"] {
        let reason = skipped["reason"].as_str().unwrap_or_default();
        line("skipped", Some(format!("{} times: {reason}", skipped["count"])));
    }
    text + &lines("error", &run["error_message"]) + &lines("output", &run["output"])
}

/// Formats the lines of a text, with the label `name` before the first line.
pub(super) fn lines(name: &str, text: &Value) -> String {
    let lines = text.as_str().unwrap_or_default().lines().enumerate();
    let names = |number| if number == 0 { name } else { "" };
    lines.map(|(number, line)| format!("{:<11}{}\n", names(number), clean(line))).collect()
}

/// Returns the priority of a waiting run, and its priority after aging if that differs.
pub(super) fn priority(shown: &Value) -> Option<String> {
    let base = shown["priority"].as_u64()?;
    let effective = shown["effective_priority"].as_u64().filter(|effective| *effective != base);
    Some(match effective {
        Some(effective) => format!("{base} ({effective} by now)"),
        None => base.to_string(),
    })
}

fn progress(progress: &Value) -> Option<String> {
    let amount = match (progress["done"].as_u64(), progress["total"].as_u64()) {
        (Some(done), Some(total)) => Some(format!("{done} of {total}")),
        (Some(done), None) => Some(done.to_string()),
        (None, _) => None,
    };
    let parts = [amount, progress["message"].as_str().map(String::from)];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(": "))
}

fn items(run: &Value) -> Option<String> {
    let crawled = run["items_crawled"].as_i64()?;
    let indexed = run["items_indexed"].as_i64().unwrap_or(0);
    Some(format!("{crawled} processed, {indexed} saved"))
}

/// Formats a response's time relative to `now`. Returns `otherwise` if `value` is not a time.
pub(super) fn when(value: &Value, now: Timestamp, otherwise: &str) -> String {
    moment(value).map_or_else(|| otherwise.into(), |at| ago(at, now))
}

/// Parses a timestamp in a response of the server.
pub(super) fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn job_without_runs_shows_its_first_due_time() {
        let now = "2026-12-01T09:00:00Z".parse().unwrap();
        let message_for = |status: &str, next: Value| {
            due(&json!({"name": "hello", "status": status, "next_run_at": next}), now)
        };
        assert_eq!(
            message_for("scheduled", json!("2026-12-01T09:00:04Z")),
            "hello has not run yet; its first run is due in 4s (2026-12-01T09:00:04.000000Z)."
        );
        assert!(message_for("scheduled", json!("2026-12-01T08:59:59Z")).ends_with("is due now."));
        assert!(message_for("running", Value::Null).contains("about to start"));
        assert!(message_for("paused", json!("2026-12-01T09:00:04Z")).ends_with("it is paused."));
        assert!(message_for("scheduled", Value::Null).ends_with("no run of it is due."));
    }

    #[test]
    fn note_contains_the_whole_cause() {
        let cause = format!("dispatch failed: {}", "connection refused ".repeat(20));
        assert_eq!(note(&json!({"error_message": cause, "origin": "schedule"})), cause);
        let skipped = json!({"skipped": {"count": 3, "reason": "overlap"}, "origin": "schedule"});
        assert_eq!(note(&skipped), "3 × overlap");
        assert_eq!(note(&json!({"origin": "trigger"})), "trigger");
        assert_eq!(note(&json!({"origin": "schedule"})), "");
    }

    #[test]
    fn waiting_run_shows_its_effective_and_configured_priority() {
        let shown = |run: Value| {
            let text = details(&run, Timestamp::MIN);
            text.lines().find(|line| line.starts_with("priority")).map(str::to_owned)
        };
        let risen = shown(json!({"priority": 5, "effective_priority": 35}));
        assert_eq!(risen.as_deref(), Some("priority   5 (35 by now)"));
        let new = shown(json!({"priority": 5, "effective_priority": 5}));
        assert_eq!(new.as_deref(), Some("priority   5"));
        assert_eq!(shown(json!({"priority": null})), None, "it runs, or is over");
    }
}
