//! `evenkeel targets`

use clap::{Args, Subcommand};
use evenkeel_core::Timestamp;
use serde_json::{Map, Value, json};

use super::Context;
use super::list::next_page;
use super::run::moment;
use crate::Failure;
use crate::client::Client;
use crate::config::raw::RawClient;
use crate::output::{Table, Tone, ago, clean};

#[derive(Args, Clone)]
pub struct TargetsArgs {
    #[command(flatten)]
    client: RawClient,
    #[command(subcommand)]
    command: TargetsCommand,
}

#[derive(Subcommand, Clone)]
enum TargetsCommand {
    /// List targets, by number
    #[command(after_help = "Examples:
  evenkeel targets list
  evenkeel targets list --json | jq '.targets[] | select(.last_success_at == null).number'")]
    List {
        /// Maximum number of entries
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        limit: u32,
        /// Cursor that the previous page printed, to show the next page
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
    },
    /// Show a target
    #[command(after_help = "Examples:
  evenkeel targets show 1")]
    Show {
        /// Number of the target
        number: u64,
    },
    /// Create a target
    ///
    /// A target without jobs is never crawled. `evenkeel job create --target N` creates a job that
    /// crawls its URL.
    #[command(after_help = "Examples:
  evenkeel targets create --name AskReddit --address https://example.com/r/AskReddit
  evenkeel targets create --number 7 --source-id t5_2qh1i")]
    Create {
        /// Number of the new target [default: the next free number]
        #[arg(long, value_name = "N")]
        number: Option<u64>,
        #[command(flatten)]
        fields: FieldArgs,
    },
    /// Change a target; jobs that crawl its URL use the new URL
    #[command(after_help = "Examples:
  evenkeel targets update 1 --address https://example.com/r/worldnews
  evenkeel targets update 1 --name \"\"")]
    Update {
        /// Number of the target
        number: u64,
        #[command(flatten)]
        fields: FieldArgs,
    },
    /// Delete a target
    #[command(after_help = "Examples:
  evenkeel targets delete 1
  evenkeel targets delete 1 --force")]
    Delete {
        /// Number of the target
        number: u64,
        /// Delete the target even if jobs refer to it; these jobs continue without a target
        #[arg(long)]
        force: bool,
    },
}

/// Fields of a target. An empty text clears the field.
#[derive(Args, Clone)]
struct FieldArgs {
    /// An id of your own
    #[arg(long, value_name = "ID")]
    source_id: Option<String>,
    /// Name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// URL that the target's jobs crawl (--url is the server's address)
    #[arg(long, value_name = "URL")]
    address: Option<String>,
}

impl FieldArgs {
    fn document(self) -> Map<String, Value> {
        let fields = [("source_id", self.source_id), ("name", self.name), ("url", self.address)];
        let fields = fields.into_iter().filter_map(|(field, text)| Some((field, text?)));
        let value = |text: String| if text.is_empty() { Value::Null } else { text.into() };
        fields.map(|(field, text)| (field.to_owned(), value(text))).collect()
    }
}

pub(super) fn run(context: &Context, args: TargetsArgs) -> Result<(), Failure> {
    let client = context.client(args.client)?;
    context.runtime()?.block_on(async {
        match args.command {
            TargetsCommand::List { limit, cursor } => {
                list(context, &client, limit, cursor.as_deref()).await
            }
            TargetsCommand::Show { number } => {
                let answer = client.get(&["targets", &number.to_string()], &[]).await?;
                show(context, &answer.text, &answer.value, "")
            }
            TargetsCommand::Create { number, fields } => {
                let mut document = fields.document();
                document.extend(number.map(|number| ("number".to_owned(), json!(number))));
                let answer = client.post(&["targets"], Some(&Value::Object(document))).await?;
                show(context, &answer.text, &answer.value, "Created ")
            }
            TargetsCommand::Update { number, fields } => {
                let (number, change) = (number.to_string(), Value::Object(fields.document()));
                let answer = client.patch(&["targets", &number], &change, None).await?;
                show(context, &answer.text, &answer.value, "Changed ")?;
                print_followers(context, &answer.value)
            }
            TargetsCommand::Delete { number, force } => {
                delete(context, &client, number, force).await
            }
        }
    })
}

async fn list(
    context: &Context,
    client: &Client,
    limit: u32,
    cursor: Option<&str>,
) -> Result<(), Failure> {
    let limit = limit.to_string();
    let mut query = vec![("limit", limit.as_str())];
    query.extend(cursor.map(|cursor| ("cursor", cursor)));
    let answer = client.get(&["targets"], &query).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let targets = answer.list_of("targets");
    if targets.is_empty() {
        return context.output.line(
            "There are no targets. Create one: evenkeel targets create --address https://example.com/",
        );
    }
    let headings = ["TARGET", "NAME", "SOURCE", "URL", "JOBS", "LAST SUCCESS"];
    let mut table = Table::new(context.output, &headings);
    for target in targets {
        let text = |field: &str| clean(target[field].as_str().unwrap_or("-"));
        table.row([
            (target["number"].to_string(), Tone::Plain),
            (text("name"), Tone::Plain),
            (text("source_id"), Tone::Quiet),
            (text("url"), Tone::Plain),
            (target["jobs"].to_string(), Tone::Plain),
            (last_success(target, context.now()), Tone::Plain),
        ]);
    }
    let mut rendered = table.render();
    rendered.push_str(&next_page(&answer, targets.len(), "targets list"));
    context.output.line(&rendered)
}

fn last_success(target: &Value, now: Timestamp) -> String {
    moment(&target["last_success_at"]).map_or_else(|| "never".into(), |at| ago(at, now))
}

fn show(context: &Context, text: &str, target: &Value, done: &str) -> Result<(), Failure> {
    if context.output.is_json() {
        return context.output.line(text);
    }
    let mut shown = format!("{done}target {}", target["number"]);
    for (name, field) in [("name", "name"), ("source", "source_id"), ("url", "url")] {
        if let Some(value) = target[field].as_str() {
            shown.push_str(&format!("\n  {name:<14}{}", clean(value)));
        }
    }
    shown.push_str(&format!("\n  {:<14}{}", "jobs", target["jobs"]));
    shown.push_str(&format!("\n  {:<14}{}", "last success", last_success(target, context.now())));
    context.output.line(&shown)
}

/// Prints how a changed target affects the jobs that crawl its URL.
fn print_followers(context: &Context, changed: &Value) -> Result<(), Failure> {
    if context.output.is_json() {
        return Ok(());
    }
    let count = |field: &str| changed[field].as_u64().unwrap_or(0);
    let mut lines = Vec::new();
    match count("followed_jobs") {
        0 => {}
        1 => lines.push("1 job follows it".to_owned()),
        many => lines.push(format!("{many} jobs follow it")),
    }
    match count("refused_jobs") {
        0 => {}
        1 => lines.push("1 job refused the URL and keeps its former one".to_owned()),
        many => lines.push(format!("{many} jobs refused the URL and keep their former one")),
    }
    if changed["goes_on"] == true {
        lines.push("further jobs are being updated".to_owned());
    }
    if lines.is_empty() { Ok(()) } else { context.output.line(&lines.join("; ")) }
}

async fn delete(
    context: &Context,
    client: &Client,
    number: u64,
    force: bool,
) -> Result<(), Failure> {
    let query: &[(&str, &str)] = if force { &[("force", "true")] } else { &[] };
    let answer = client.delete(&["targets", &number.to_string()], query).await?;
    let detached = answer.value["detached_jobs"].as_u64().unwrap_or(0);
    let more = match detached {
        0 => String::new(),
        1 => "; 1 job has no target now".into(),
        _ => format!("; {detached} jobs have no target now"),
    };
    context.output.answer(&answer, &format!("Deleted target {number}{more}"))
}
