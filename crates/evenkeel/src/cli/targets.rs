//! `evenkeel targets`

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::Session;
use super::list::{CursorArgs, next_page};
use super::run::when;
use crate::Result;
use crate::client::Answer;
use crate::output::{Table, Tone, clean};

#[derive(Subcommand, Clone)]
pub(super) enum TargetsCommand {
    /// List targets, by number
    #[command(after_help = "Examples:
  evenkeel targets list
  evenkeel targets list --json | jq '.targets[] | select(.last_success_at == null).number'")]
    #[command(mut_arg("limit", |limit| limit.default_value("50")))]
    List(CursorArgs),
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
    /// crawls the target's URL.
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
pub(super) struct FieldArgs {
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

pub(super) async fn run(session: &Session, command: TargetsCommand) -> Result {
    let client = &session.client;
    match command {
        TargetsCommand::List(args) => list(session, args).await,
        TargetsCommand::Show { number } => {
            let answer = client.get(&["targets", &number.to_string()]).await?;
            show(session, &answer, "")
        }
        TargetsCommand::Create { number, fields } => {
            let mut document = fields.document();
            document.extend(number.map(|number| ("number".to_owned(), json!(number))));
            let answer = client.post(&["targets"], Some(&Value::Object(document))).await?;
            show(session, &answer, "Created ")
        }
        TargetsCommand::Update { number, fields } => {
            let (number, change) = (number.to_string(), Value::Object(fields.document()));
            let answer = client.patch(&["targets", &number], &change, None).await?;
            show(session, &answer, "Changed ")?;
            print_followers(session, &answer.value)
        }
        TargetsCommand::Delete { number, force } => delete(session, number, force).await,
    }
}

async fn list(session: &Session, args: CursorArgs) -> Result {
    let answer = session.client.get_with(&["targets"], &args.query()).await?;
    let headings = ["TARGET", "NAME", "SOURCE", "URL", "JOBS", "LAST SUCCESS"];
    let rows = answer.list_of("targets").iter().map(|target| {
        let text = |field: &str| target[field].as_str().unwrap_or("-").to_owned();
        [
            (target["number"].to_string(), Tone::Plain),
            (text("name"), Tone::Plain),
            (text("source_id"), Tone::Quiet),
            (text("url"), Tone::Plain),
            (target["jobs"].to_string(), Tone::Plain),
            (when(&target["last_success_at"], session.now(), "never"), Tone::Plain),
        ]
    });
    let table = Table::of(session.output, headings, rows);
    let next = next_page(&answer, table.len(), "targets list");
    let nothing =
        "There are no targets. Create one: evenkeel targets create --address https://example.com/";
    session.page(&answer, table, &next, nothing)
}

fn show(session: &Session, answer: &Answer, done: &str) -> Result {
    let target = &answer.value;
    let mut shown = format!("{done}target {}", target["number"]);
    for (name, field) in [("name", "name"), ("source", "source_id"), ("url", "url")] {
        if let Some(value) = target[field].as_str() {
            shown.push_str(&format!("\n  {name:<14}{}", clean(value)));
        }
    }
    shown.push_str(&format!("\n  {:<14}{}", "jobs", target["jobs"]));
    let last = when(&target["last_success_at"], session.now(), "never");
    shown.push_str(&format!("\n  {:<14}{last}", "last success"));
    session.answer(answer, &shown)
}

/// Prints how a changed target affects the jobs that crawl its URL.
fn print_followers(session: &Session, changed: &Value) -> Result {
    if session.output.is_json() {
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
    if lines.is_empty() { Ok(()) } else { session.output.line(&lines.join("; ")) }
}

async fn delete(session: &Session, number: u64, force: bool) -> Result {
    let query = Vec::from_iter(force.then(|| ("force", "true".into())));
    let answer = session.client.delete(&["targets", &number.to_string()], &query).await?;
    let detached = answer.value["detached_jobs"].as_u64().unwrap_or(0);
    let more = match detached {
        0 => String::new(),
        1 => "; 1 job has no target now".into(),
        _ => format!("; {detached} jobs have no target now"),
    };
    session.answer(&answer, &format!("Deleted target {number}{more}"))
}
