//! Commands for several named jobs, or for all jobs that match a filter.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Value, json};

use super::filter::FilterArgs;
use super::find_id;
use crate::cli::{Session, ask};
use crate::client::Client;
use crate::output::{Output, clean};
use crate::{Exit, Failure, Result};

/// Maximum number of refused jobs to show.
const SHOWN_MAX: usize = 20;

#[derive(Args, Clone, Default)]
pub struct ManyArgs {
    /// Names or ids of jobs
    #[arg(value_name = "JOB")]
    pub(super) jobs: Vec<String>,
    /// Select all jobs that match the filters, or all jobs without filters
    #[arg(long, conflicts_with = "jobs", help_heading = "Filters")]
    all: bool,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only count the jobs that the command would change
    #[arg(long)]
    dry_run: bool,
    /// Skip the confirmation, which cancel and delete require with --all
    #[arg(short, long)]
    yes: bool,
}

impl ManyArgs {
    /// Returns the job if the command names exactly one job and is not a dry run.
    pub(super) fn single(&self) -> Option<&str> {
        match &self.jobs[..] {
            [one] if !self.dry_run => Some(one),
            _ => None,
        }
    }

    /// True if the user must confirm the command. Confirmation is needed to cancel or delete with
    /// --all, which may match more jobs than the user expects.
    pub(super) fn needs_confirmation(&self, is_final: bool) -> bool {
        is_final && self.all && !self.dry_run && !self.yes
    }

    /// Reports invalid flags before any request is sent to a server.
    pub(super) fn check(&self) -> Result {
        if self.jobs.is_empty() && !self.all {
            return Err(Failure::usage("no job is named").or_else(
                "name jobs, or write --all, with filters like --status scheduled; --dry-run counts \
                 first",
            ));
        }
        if !self.filter.is_empty() && !self.all {
            return Err(Failure::usage("filters need --all").or_else("add --all, or name jobs"));
        }
        Ok(())
    }
}

/// The results so far.
#[derive(Default)]
struct Results {
    matched: u64,
    done: u64,
    refused: BTreeMap<String, u64>,
    refusals: Vec<Value>,
}

/// Cancels or deletes the selected jobs after the user has confirmed.
pub(super) async fn end(session: &Session, args: &ManyArgs, action: &str) -> Result {
    if args.needs_confirmation(true) {
        let counted = ManyArgs { dry_run: true, ..args.clone() };
        let count = commanded(&session.client, &counted, action, Value::Null).await?.done;
        let jobs = if count == 1 { "job" } else { "jobs" };
        if count > 0 && !ask::agrees(&format!("{action} {count} {jobs} for good?"))? {
            return session.output.line("Nothing was done.");
        }
    }
    run(session, args, action, Value::Null).await
}

/// Applies `action` to the selected jobs. `more` contains additional fields of the API request.
pub(super) async fn run(session: &Session, args: &ManyArgs, action: &str, more: Value) -> Result {
    let results = commanded(&session.client, args, action, more).await?;
    results.finish(session.output, action, args.dry_run)
}

async fn commanded(client: &Client, args: &ManyArgs, action: &str, more: Value) -> Result<Results> {
    let mut command = json!({"action": action, "dry_run": args.dry_run});
    if let (Some(fields), Value::Object(more)) = (command.as_object_mut(), more) {
        fields.extend(more);
    }
    if args.jobs.is_empty() {
        command["filter"] = args.filter.document();
    } else {
        let mut ids = Vec::with_capacity(args.jobs.len());
        for job in &args.jobs {
            ids.push(find_id(client, job).await?);
        }
        command["ids"] = json!(ids);
    }
    let mut results = Results::default();
    loop {
        let answer = client.post(&["jobs", "commands"], Some(&command)).await?.value;
        results.add(&answer);
        match &answer["next_cursor"] {
            Value::Null => break,
            // The server reached its time limit for one request, so the next request continues at
            // the cursor.
            cursor => command["cursor"] = cursor.clone(),
        }
    }
    Ok(results)
}

impl Results {
    fn add(&mut self, answer: &Value) {
        self.matched += answer["matched"].as_u64().unwrap_or(0);
        self.done += answer["done"].as_u64().unwrap_or(0);
        for (reason, count) in answer["refused"].as_object().into_iter().flatten() {
            *self.refused.entry(reason.clone()).or_default() += count.as_u64().unwrap_or(0);
        }
        let left = SHOWN_MAX.saturating_sub(self.refusals.len());
        let refusals = answer["refusals"].as_array().into_iter().flatten();
        self.refusals.extend(refusals.take(left).cloned());
    }

    fn finish(self, output: Output, action: &str, dry_run: bool) -> Result {
        let Self { matched, done, refused, refusals } = self;
        if output.is_json() {
            let json = json!({"action": action, "dry_run": dry_run, "matched": matched,
                              "done": done, "refused": refused, "refusals": refusals});
            output.line(&json.to_string())?;
            if refused.is_empty() || dry_run {
                return Ok(());
            }
            let text = format!("{} of {matched} jobs refused", matched - done);
            return Err(Failure::new(Exit::Conflict, text).or_else("standard output lists them"));
        }
        let verb = if dry_run { "would be applied to" } else { "applied to" };
        output.line(&format!("{action}: {verb} {done} of {matched} jobs."))?;
        if refused.is_empty() {
            return Ok(());
        }
        let verb = if dry_run { "would refuse" } else { "refused" };
        let mut text = format!("{} jobs {verb}", matched - done);
        for (reason, count) in &refused {
            text.push_str(&format!("\n  {count} {}", clean(reason)));
        }
        for refusal in &refusals {
            let text_of = |name: &str| clean(refusal[name].as_str().unwrap_or_default());
            text.push_str(&format!("\n  {}: {}", text_of("id"), text_of("detail")));
        }
        if dry_run {
            return output.line(&text);
        }
        Err(Failure::new(Exit::Conflict, text))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: ManyArgs,
    }

    fn args(words: &[&str]) -> Result<ManyArgs, clap::Error> {
        let words = std::iter::once(&"pause").chain(words);
        Only::try_parse_from(words).map(|only| only.args)
    }

    #[test]
    fn flags_become_a_filter() {
        let words = ["--all", "--status", "scheduled", "--condition", "error", "--metadata", "a=b"];
        assert_eq!(
            args(&words).unwrap().filter.document(),
            json!({"status": "scheduled", "condition": "ERROR", "metadata": {"a": "b"}})
        );
        assert_eq!(args(&["--all"]).unwrap().filter.document(), json!({}));
    }

    #[test]
    fn single_job_is_recognised() {
        assert_eq!(args(&["news"]).unwrap().single(), Some("news"));
        assert_eq!(args(&["news", "--dry-run"]).unwrap().single(), None);
        assert_eq!(args(&["a", "b"]).unwrap().single(), None);
    }

    #[test]
    fn ending_all_jobs_needs_confirmation() {
        assert!(args(&["--all"]).unwrap().needs_confirmation(true));
        assert!(args(&["--all", "--status", "failed"]).unwrap().needs_confirmation(true));
        assert!(!args(&["--all"]).unwrap().needs_confirmation(false), "a pause can be undone");
        for confirmed in [&["--all", "--yes"][..], &["--all", "--dry-run"], &["a", "b"]] {
            assert!(!args(confirmed).unwrap().needs_confirmation(true), "{confirmed:?}");
        }
    }

    #[test]
    fn all_jobs_must_be_requested_explicitly() {
        assert_eq!(args(&[]).unwrap().check().unwrap_err().exit, Exit::Usage);
        assert!(args(&["--status", "failed"]).unwrap().check().is_err());
        assert!(args(&["news", "--status", "failed"]).unwrap().check().is_err());
        assert!(args(&["--all", "news"]).is_err());
        assert!(args(&["--all", "--metadata", "a"]).is_err());
    }
}
