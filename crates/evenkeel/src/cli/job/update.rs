//! `evenkeel job update`

use std::path::PathBuf;

use clap::Args;
use evenkeel_core::Timestamp;
use serde_json::{Map, Value, json};

use super::create::{pointed, read_document, with_warnings};
use super::find_id;
use super::policies::{PolicyArgs, put_same};
use super::retries::RetryArgs;
use super::show::schedule;
use super::when::WhenArgs;
use crate::cli::Session;
use crate::cli::run::moment;
use crate::output::ago;
use crate::{Failure, Result};

pub(super) const EXAMPLES: &str = "Examples:
  evenkeel job update news --every 1h
  evenkeel job update news --max-retries 5 --retry-backoff 2m
  evenkeel job update news --priority 50 --set metadata.owner='\"ann\"'
  evenkeel job update news --unset description --unset end_at
  evenkeel job update news --target 2
  evenkeel job update news --file change.json
  evenkeel job update news --lane batch --if-match g7";

#[derive(Args, Clone)]
pub struct UpdateArgs {
    /// The name or id of the job
    job: String,
    /// A new name
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    name: Option<String>,
    /// A free text
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    description: Option<String>,
    /// The number of the job's target; a job without a URL and an executor crawls the target
    #[arg(long, value_name = "N", conflicts_with = "file")]
    target: Option<u64>,
    /// Set a field to a JSON value or plain text; FIELD.KEY sets a key of an object; repeatable
    #[arg(long, value_name = "FIELD=VALUE", conflicts_with = "file")]
    set: Vec<String>,
    /// Clear a field; FIELD.KEY clears a key of an object; repeatable
    #[arg(long, value_name = "FIELD", conflicts_with = "file")]
    unset: Vec<String>,
    /// Apply the changes in this JSON file, or in standard input with -
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Change the job only if it still has this generation number or ETag
    #[arg(long, value_name = "TAG")]
    if_match: Option<String>,

    #[command(flatten)]
    when: WhenArgs,

    #[command(flatten)]
    retries: RetryArgs,
    #[command(flatten)]
    policies: PolicyArgs,
}

impl UpdateArgs {
    pub(super) fn change(&self, now: Timestamp) -> Result<Value> {
        if let Some(path) = &self.file {
            return read_document(path);
        }
        if self.when.is_tolerance_alone() {
            return Err(Failure::usage("--tolerance needs a schedule")
                .or_else("repeat the schedule: --every 1h --tolerance 10m"));
        }
        let mut change = Map::new();
        put_same!(&mut change, self, name, description, target);
        self.policies.add_to(&mut change)?;
        self.retries.add_to(&mut change)?;
        self.when.add_to(&mut change, now)?;
        for setting in &self.set {
            let Some((field, value)) = setting.split_once('=') else {
                return Err(Failure::usage(format!("--set {setting:?} has no ="))
                    .or_else("write it like --set priority=5"));
            };
            // A value that is not valid JSON is sent as a JSON string.
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            insert(&mut change, field, value);
        }
        for field in &self.unset {
            insert(&mut change, field, Value::Null);
        }
        if change.is_empty() {
            return Err(Failure::usage("no change is given")
                .or_else("give at least one: --every 1h, --priority 5, --set description=news"));
        }
        Ok(Value::Object(change))
    }
}

/// Inserts a value into a JSON object at a path such as `metadata.owner`.
fn insert(change: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => drop(change.insert(path.into(), value)),
        Some((first, rest)) => {
            let inner = change.entry(first).or_insert_with(|| json!({}));
            if !inner.is_object() {
                *inner = json!({});
            }
            if let Some(inner) = inner.as_object_mut() {
                insert(inner, rest, value);
            }
        }
    }
}

/// Formats the generation number of a job as an ETag.
fn tag(text: &str) -> String {
    let number = text.trim_matches('"').trim_start_matches('g');
    if number.parse::<i32>().is_ok() { format!("\"g{number}\"") } else { text.into() }
}

pub(super) async fn run(session: &Session, args: &UpdateArgs, change: &Value) -> Result {
    let id = find_id(&session.client, &args.job).await?;
    let if_match = args.if_match.as_deref().map(tag);
    let answer = session.client.patch(&["jobs", &id], change, if_match.as_deref()).await;
    let answer = answer.map_err(|failure| pointed(failure, change))?;
    let job = &answer.value;
    let next = moment(&job["next_run_at"])
        .map_or_else(String::new, |at| format!(", next run {}", ago(at, session.now())));
    let name = job["name"].as_str().unwrap_or(&id);
    let text = format!(
        "Updated job {name}, now at generation {}.\n  runs: {}{next}",
        job["generation"],
        schedule(&job["schedule"]),
    );
    session.answer(&answer, &with_warnings(&text, job))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: UpdateArgs,
    }

    fn change(words: &[&str]) -> Result<Value, Failure> {
        let words = ["update", "news"].iter().chain(words);
        Only::try_parse_from(words).unwrap().args.change(Timestamp::from_micros(0))
    }

    #[test]
    fn flags_become_a_change() {
        assert_eq!(
            change(&["--every", "1h", "--priority", "5", "--retry-backoff", "2m"]).unwrap(),
            json!({"schedule": {"kind": "interval", "every": "1h"}, "priority": 5,
                   "retry_backoff_seconds": 120})
        );
        assert_eq!(
            change(&["--set", "metadata.owner=ann", "--set", "metadata.n=5", "--unset", "end_at"])
                .unwrap(),
            json!({"metadata": {"owner": "ann", "n": 5}, "end_at": null})
        );
    }

    #[test]
    fn empty_changes_are_refused() {
        for words in [&[][..], &["--tolerance", "5m"], &["--set", "priority"]] {
            assert_eq!(change(words).unwrap_err().exit, crate::Exit::Usage, "{words:?}");
        }
    }

    #[test]
    fn generations_are_accepted_in_every_form() {
        for text in ["7", "g7", "\"g7\""] {
            assert_eq!(tag(text), "\"g7\"");
        }
        assert_eq!(tag("*"), "*");
    }
}
