//! `evenkeel dead-letters`

use clap::{Args, Subcommand};
use evenkeel_core::Timestamp;
use serde_json::{Value, json};

use super::Session;
use super::list::{CursorArgs, job_flag, job_id, next_page};
use super::run::{lines, when};
use crate::output::{Table, Tone, clean};
use crate::{Exit, Failure, Result};

/// Maximum number of dead letters per request.
const AT_ONCE: usize = 1000;

#[derive(Subcommand, Clone)]
pub(super) enum DeadLettersCommand {
    /// List dead letters, newest first
    #[command(after_help = "Examples:
  evenkeel dead-letters list
  evenkeel dead-letters list --job news --open
  evenkeel dead-letters list --json | jq '.dead_letters[].reason'")]
    List(ListArgs),
    /// Show a dead letter with its error
    #[command(after_help = "Examples:
  evenkeel dead-letters show 0006442d-7b2b-8640-8000-000000040000")]
    Show {
        /// Id of the dead letter
        id: String,
    },
    /// Start a new run of the job for each dead letter
    #[command(after_help = "Examples:
  evenkeel dead-letters redrive 0006442d-7b2b-8640-8000-000000040000
  evenkeel dead-letters redrive $(evenkeel dead-letters list --open -n 1000 --json | jq -r '.dead_letters[].id')")]
    Redrive(IdsArgs),
    /// Delete dead letters; their runs stay in the history
    #[command(after_help = "Examples:
  evenkeel dead-letters delete 0006442d-7b2b-8640-8000-000000040000")]
    Delete(IdsArgs),
}

#[derive(Args, Clone)]
pub(super) struct IdsArgs {
    /// Ids of dead letters
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

#[derive(Args, Clone)]
pub(super) struct ListArgs {
    /// Only dead letters of this job (name or id)
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Only dead letters that were not redriven
    #[arg(long)]
    open: bool,
    /// Only dead letters that were redriven
    #[arg(long, conflicts_with = "open")]
    redriven: bool,
    #[command(flatten)]
    page: CursorArgs,
}

pub(super) async fn run(session: &Session, command: DeadLettersCommand) -> Result {
    match command {
        DeadLettersCommand::List(args) => list(session, args).await,
        DeadLettersCommand::Show { id } => show(session, &id).await,
        DeadLettersCommand::Redrive(args) => each(session, &args.ids, "redrive", "redriven").await,
        DeadLettersCommand::Delete(args) => each(session, &args.ids, "delete", "deleted").await,
    }
}

async fn list(session: &Session, args: ListArgs) -> Result {
    let mut query = args.page.query();
    query.extend(job_id(session, args.job.as_deref()).await?);
    query.extend(args.open.then(|| ("redriven", "false".into())));
    query.extend(args.redriven.then(|| ("redriven", "true".into())));
    let answer = session.client.get_with(&["dead-letters"], &query).await?;
    let headings = ["DEAD LETTER", "JOB", "DIED", "ATTEMPTS", "REASON", "REDRIVEN"];
    let mut table = Table::new(session.output, &headings);
    for letter in answer.list_of("dead_letters") {
        let message = letter["error_message"].as_str().unwrap_or_default();
        table.noted_row(row(letter, session.now()), message);
    }
    let mut command = format!("dead-letters list{}", job_flag(args.job.as_deref()));
    command.push_str(if args.open { " --open" } else { "" });
    command.push_str(if args.redriven { " --redriven" } else { "" });
    let nothing = "There are no dead letters. To keep the failed runs of a job: \
                   evenkeel job update JOB --on-failure dead-letter";
    let next = next_page(&answer, table.len(), &command);
    session.page(&answer, table, &next, nothing)
}

fn row(letter: &Value, now: Timestamp) -> [(String, Tone); 6] {
    let text = |field: &str| letter[field].as_str().unwrap_or("-").to_owned();
    let job = letter["job_name"].as_str().or(letter["job_id"].as_str()).unwrap_or("-");
    [
        (text("id"), Tone::Quiet),
        (job.to_owned(), Tone::Plain),
        (when(&letter["died_at"], now, "-"), Tone::Plain),
        (letter["attempts"].to_string(), Tone::Plain),
        (text("reason"), Tone::Bad),
        (when(&letter["redriven_at"], now, "no"), Tone::Plain),
    ]
}

async fn show(session: &Session, id: &str) -> Result {
    let answer = session.client.get(&["dead-letters", id]).await?;
    let letter = &answer.value;
    let mut text = String::new();
    for (name, field) in [
        ("id", "id"),
        ("execution", "execution_id"),
        ("job", "job_id"),
        ("name", "job_name"),
        ("scheduled", "scheduled_at"),
        ("died", "died_at"),
        ("reason", "reason"),
        ("status", "status"),
        ("redriven", "redriven_at"),
        ("as run", "redriven_run_id"),
        ("error", "error_message"),
    ] {
        text.push_str(&lines(name, &letter[field]));
    }
    text.push_str(&format!("{:<11}{}", "attempts", letter["attempts"]));
    session.answer(&answer, &text)
}

/// Sends a command for the given dead letters, several dead letters per request. Returns an error
/// if the server refused the command for any dead letter.
async fn each(session: &Session, ids: &[String], action: &str, done: &str) -> Result {
    let output = session.output;
    let (mut count, mut refusals) = (0, Vec::new());
    for ids in ids.chunks(AT_ONCE) {
        let body = json!({"ids": ids});
        let answer = session.client.post(&["dead-letters", action], Some(&body)).await?;
        for result in answer.list_of("results") {
            if result["ok"] == true {
                count += 1;
            } else {
                refusals.push(result.clone());
            }
        }
        if output.is_json() {
            output.line(&answer.text)?;
        }
    }
    if !output.is_json() {
        let mut text = format!("{count} {done}.");
        for refusal in &refusals {
            let id = refusal["id"].as_str().unwrap_or_default();
            let why = refusal["error"]["detail"].as_str().unwrap_or("refused");
            text.push_str(&format!("\n  {}: {}", clean(id), clean(why)));
        }
        output.line(&text)?;
    }
    if refusals.is_empty() {
        return Ok(());
    }
    let is_missing = |refusal: &Value| refusal["error"]["status"] == 404;
    let exit = if refusals.iter().all(is_missing) { Exit::NotFound } else { Exit::Conflict };
    let what = format!("{} of {} dead letters were not {done}", refusals.len(), ids.len());
    Err(Failure::new(exit, what))
}
