//! `evenkeel dead-letters`

use clap::{Args, Subcommand};
use evenkeel_core::Timestamp;
use serde_json::{Value, json};

use super::Context;
use super::list::{job_flag, job_id, next_page};
use super::run::moment;
use crate::client::Client;
use crate::config::raw::RawClient;
use crate::output::{Table, Tone, ago, clean};
use crate::{Exit, Failure};

/// Maximum number of dead letters per request.
const AT_ONCE: usize = 1000;

#[derive(Args, Clone)]
pub struct DeadLettersArgs {
    #[command(flatten)]
    client: RawClient,
    #[command(subcommand)]
    command: DeadLettersCommand,
}

#[derive(Subcommand, Clone)]
enum DeadLettersCommand {
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
struct IdsArgs {
    /// Ids of dead letters
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

#[derive(Args, Clone)]
struct ListArgs {
    /// Only dead letters of this job (name or id)
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// Only dead letters that were not redriven
    #[arg(long)]
    open: bool,
    /// Only dead letters that were redriven
    #[arg(long, conflicts_with = "open")]
    redriven: bool,
    /// Maximum number of entries
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Cursor that the previous page printed, to show the next page
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(super) fn run(context: &Context, args: DeadLettersArgs) -> Result<(), Failure> {
    let client = context.client(args.client)?;
    context.runtime()?.block_on(async {
        match args.command {
            DeadLettersCommand::List(args) => list(context, &client, args).await,
            DeadLettersCommand::Show { id } => show(context, &client, &id).await,
            DeadLettersCommand::Redrive(args) => {
                each(context, &client, &args.ids, "redrive", "redriven").await
            }
            DeadLettersCommand::Delete(args) => {
                each(context, &client, &args.ids, "delete", "deleted").await
            }
        }
    })
}

async fn list(context: &Context, client: &Client, args: ListArgs) -> Result<(), Failure> {
    let job = job_id(client, args.job.as_deref()).await?;
    let limit = args.limit.to_string();
    let mut query = vec![("limit", limit.as_str())];
    query.extend(job.as_deref().map(|job| ("job_id", job)));
    query.extend(args.cursor.as_deref().map(|cursor| ("cursor", cursor)));
    query.extend(args.open.then_some(("redriven", "false")));
    query.extend(args.redriven.then_some(("redriven", "true")));
    let answer = client.get(&["dead-letters"], &query).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let letters = answer.list_of("dead_letters");
    if letters.is_empty() {
        return context.output.line(
            "There are no dead letters. Jobs leave them with: \
             evenkeel job update JOB --on-failure dead-letter",
        );
    }
    let headings = ["DEAD LETTER", "JOB", "DIED", "ATTEMPTS", "REASON", "REDRIVEN"];
    let mut table = Table::new(context.output, &headings);
    for letter in letters {
        let message = letter["error_message"].as_str().unwrap_or_default();
        table.noted_row(row(letter, context.now()), message);
    }
    let mut text = table.render();
    let mut command = format!("dead-letters list{}", job_flag(args.job.as_deref()));
    command.push_str(if args.open { " --open" } else { "" });
    command.push_str(if args.redriven { " --redriven" } else { "" });
    text.push_str(&next_page(&answer, letters.len(), &command));
    context.output.line(&text)
}

fn row(letter: &Value, now: Timestamp) -> [(String, Tone); 6] {
    let text = |field: &str| letter[field].as_str().unwrap_or("-").to_owned();
    let job = letter["job_name"].as_str().or(letter["job_id"].as_str()).unwrap_or("-");
    let died = moment(&letter["died_at"]).map_or_else(|| "-".into(), |at| ago(at, now));
    let again = moment(&letter["redriven_at"]).map_or_else(|| "no".into(), |at| ago(at, now));
    [
        (text("id"), Tone::Quiet),
        (job.to_owned(), Tone::Plain),
        (died, Tone::Plain),
        (letter["attempts"].to_string(), Tone::Plain),
        (text("reason"), Tone::Bad),
        (again, Tone::Plain),
    ]
}

async fn show(context: &Context, client: &Client, id: &str) -> Result<(), Failure> {
    let answer = client.get(&["dead-letters", id], &[]).await?;
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
        if let Some(value) = letter[field].as_str() {
            for (number, line) in value.lines().enumerate() {
                let name = if number == 0 { name } else { "" };
                text.push_str(&format!("{name:<11}{}\n", clean(line)));
            }
        }
    }
    text.push_str(&format!("{:<11}{}", "attempts", letter["attempts"]));
    context.output.answer(&answer, &text)
}

/// Sends a command for all dead letters, many per request. Returns an error if any of the dead
/// letters was refused.
async fn each(
    context: &Context,
    client: &Client,
    ids: &[String],
    action: &str,
    done: &str,
) -> Result<(), Failure> {
    let (mut count, mut refusals) = (0, Vec::new());
    for ids in ids.chunks(AT_ONCE) {
        let body = json!({"ids": ids});
        let answer = client.post(&["dead-letters", action], Some(&body)).await?;
        for result in answer.list_of("results") {
            if result["ok"] == true {
                count += 1;
            } else {
                refusals.push(result.clone());
            }
        }
        if context.output.is_json() {
            context.output.line(&answer.text)?;
        }
    }
    if !context.output.is_json() {
        let mut text = format!("{count} {done}.");
        for refusal in &refusals {
            let id = refusal["id"].as_str().unwrap_or_default();
            let why = refusal["error"]["detail"].as_str().unwrap_or("refused");
            text.push_str(&format!("\n  {}: {}", clean(id), clean(why)));
        }
        context.output.line(&text)?;
    }
    if refusals.is_empty() {
        return Ok(());
    }
    let is_missing = |refusal: &Value| refusal["error"]["status"] == 404;
    let exit = if refusals.iter().all(is_missing) { Exit::NotFound } else { Exit::Conflict };
    let what = format!("{} of {} dead letters were not {done}", refusals.len(), ids.len());
    Err(Failure::new(exit, what))
}
