//! Commands for many jobs: several names, or all that pass a filter.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Map, Value, json};

use super::super::{Context, ask};
use super::find_id;
use crate::client::Client;
use crate::output::clean;
use crate::{Exit, Failure};

/// Refusals that are told one by one.
const TOLD_MAX: usize = 20;

/// Which jobs.
#[derive(Args, Clone, Default)]
pub(super) struct ManyArgs {
    /// Their names or ids
    #[arg(value_name = "JOB")]
    pub(super) jobs: Vec<String>,
    /// All jobs, or all that pass the filters
    #[arg(long, conflicts_with = "jobs", help_heading = "Filters")]
    all: bool,
    /// Those in this state: pending, scheduled, running, paused, completed, failed or cancelled
    #[arg(long, value_name = "STATUS", requires = "all", help_heading = "Filters")]
    status: Option<String>,
    /// Those in this condition: ok, warning or error
    #[arg(long, value_name = "LEVEL", requires = "all", help_heading = "Filters")]
    condition: Option<String>,
    /// Those with this executor
    #[arg(long, value_name = "KIND", requires = "all", help_heading = "Filters")]
    executor: Option<String>,
    /// Those in this lane
    #[arg(long, value_name = "LANE", requires = "all", help_heading = "Filters")]
    lane: Option<String>,
    /// Those whose name starts with this
    #[arg(long, value_name = "PREFIX", requires = "all", help_heading = "Filters")]
    name_prefix: Option<String>,
    /// Those about this source
    #[arg(long, value_name = "ID", requires = "all", help_heading = "Filters")]
    source_id: Option<String>,
    /// Those about a source whose id starts with this
    #[arg(long, value_name = "PREFIX", requires = "all", help_heading = "Filters")]
    source_prefix: Option<String>,
    /// Those that name this target
    #[arg(long, value_name = "N", requires = "all", help_heading = "Filters")]
    target: Option<u64>,
    /// Those whose metadata hold this; repeatable
    #[arg(long, value_name = "KEY=VALUE", requires = "all", help_heading = "Filters")]
    metadata: Vec<String>,
    /// Those whose next time is this or later
    #[arg(long, value_name = "TIME", requires = "all", help_heading = "Filters")]
    next_run_after: Option<String>,
    /// Those whose next time is before this
    #[arg(long, value_name = "TIME", requires = "all", help_heading = "Filters")]
    next_run_before: Option<String>,
    /// Only count what it would do
    #[arg(long)]
    dry_run: bool,
    /// Do not ask; cancel and delete ask before they end jobs by --all
    #[arg(short, long)]
    yes: bool,
}

impl ManyArgs {
    /// The one job that is meant, if it is one and something is to be done.
    pub(super) fn single(&self) -> Option<&str> {
        match &self.jobs[..] {
            [one] if !self.dry_run => Some(one),
            _ => None,
        }
    }

    /// Whether the user is asked first: what is ended can't be taken back, and jobs that nobody
    /// named may be more than were meant.
    pub(super) fn asks(&self, is_final: bool) -> bool {
        is_final && self.all && !self.dry_run && !self.yes
    }

    /// What was written wrong is told before a server is looked for.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.jobs.is_empty() && !self.all {
            return Err(Failure::usage("no job is named").or_else(
                "name jobs, or write --all, with filters like --status scheduled; --dry-run counts \
                 first",
            ));
        }
        self.filter().map(drop)
    }

    fn filter(&self) -> Result<Value, Failure> {
        let mut filter = Map::new();
        let texts = [
            ("status", &self.status),
            ("executor", &self.executor),
            ("lane", &self.lane),
            ("name_prefix", &self.name_prefix),
            ("source_id", &self.source_id),
            ("source_prefix", &self.source_prefix),
            ("next_run_after", &self.next_run_after),
            ("next_run_before", &self.next_run_before),
        ];
        for (field, text) in texts {
            if let Some(text) = text {
                filter.insert(field.into(), text.as_str().into());
            }
        }
        if let Some(target) = self.target {
            filter.insert("target".into(), target.into());
        }
        if let Some(level) = &self.condition {
            filter.insert("condition".into(), level.to_uppercase().into());
        }
        let mut labels = Map::new();
        for label in &self.metadata {
            let Some((key, value)) = label.split_once('=') else {
                return Err(Failure::usage(format!("--metadata {label:?} has no ="))
                    .or_else("write it like --metadata category=news"));
            };
            labels.insert(key.into(), value.into());
        }
        if !labels.is_empty() {
            filter.insert("metadata".into(), labels.into());
        }
        Ok(filter.into())
    }
}

/// What a command for many jobs has done so far.
#[derive(Default)]
struct Tally {
    matched: u64,
    done: u64,
    refused: BTreeMap<String, u64>,
    refusals: Vec<Value>,
}

/// Has all jobs that pass the filter ended, after the user was asked.
pub(super) async fn end(
    context: &Context,
    client: &Client,
    args: &ManyArgs,
    action: &str,
) -> Result<(), Failure> {
    if args.asks(true) {
        let counted = ManyArgs { dry_run: true, ..args.clone() };
        let count = commanded(client, &counted, action, Value::Null).await?.done;
        let jobs = if count == 1 { "job" } else { "jobs" };
        if count > 0 && !ask::agrees(&format!("{action} {count} {jobs} for good?"))? {
            return context.output.line("Nothing was done.");
        }
    }
    run(context, client, args, action, Value::Null).await
}

/// Has them all obey `action`, with whatever else belongs to it.
pub(super) async fn run(
    context: &Context,
    client: &Client,
    args: &ManyArgs,
    action: &str,
    more: Value,
) -> Result<(), Failure> {
    commanded(client, args, action, more).await?.finish(context, action, args.dry_run)
}

async fn commanded(
    client: &Client,
    args: &ManyArgs,
    action: &str,
    more: Value,
) -> Result<Tally, Failure> {
    let mut command = json!({"action": action, "dry_run": args.dry_run});
    if let (Some(fields), Value::Object(more)) = (command.as_object_mut(), more) {
        fields.extend(more);
    }
    if args.jobs.is_empty() {
        command["filter"] = args.filter()?;
    } else {
        let mut ids = Vec::with_capacity(args.jobs.len());
        for job in &args.jobs {
            ids.push(find_id(client, job).await?);
        }
        command["ids"] = json!(ids);
    }
    let mut tally = Tally::default();
    loop {
        let answer = client.post(&["jobs", "commands"], Some(&command)).await?.value;
        tally.add(&answer);
        match &answer["next_cursor"] {
            Value::Null => break,
            // There was no time for all: the rest is another request.
            cursor => command["cursor"] = cursor.clone(),
        }
    }
    Ok(tally)
}

impl Tally {
    fn add(&mut self, answer: &Value) {
        self.matched += answer["matched"].as_u64().unwrap_or(0);
        self.done += answer["done"].as_u64().unwrap_or(0);
        for (reason, count) in answer["refused"].as_object().into_iter().flatten() {
            *self.refused.entry(reason.clone()).or_default() += count.as_u64().unwrap_or(0);
        }
        let room = TOLD_MAX.saturating_sub(self.refusals.len());
        let refusals = answer["refusals"].as_array().into_iter().flatten();
        self.refusals.extend(refusals.take(room).cloned());
    }

    fn finish(self, context: &Context, action: &str, dry_run: bool) -> Result<(), Failure> {
        let Self { matched, done, refused, refusals } = self;
        if context.output.is_json() {
            context.output.line(
                &json!({"action": action, "dry_run": dry_run, "matched": matched, "done": done,
                        "refused": refused, "refusals": refusals})
                .to_string(),
            )?;
            if refused.is_empty() || dry_run {
                return Ok(());
            }
            let text = format!("{} of {matched} jobs did not obey", matched - done);
            return Err(Failure::new(Exit::Conflict, text).or_else("standard output says which"));
        }
        let verb = if dry_run { "would obey" } else { "obeyed" };
        context.output.line(&format!("{action}: {done} of {matched} jobs {verb}."))?;
        if refused.is_empty() {
            return Ok(());
        }
        let mut text = format!("{} jobs would not", matched - done);
        if !dry_run {
            text = format!("{} jobs did not", matched - done);
        }
        for (reason, count) in &refused {
            text.push_str(&format!("\n  {count} {}", clean(reason)));
        }
        for refusal in &refusals {
            let word = |name: &str| clean(refusal[name].as_str().unwrap_or_default());
            text.push_str(&format!("\n  {}: {}", word("id"), word("detail")));
        }
        if dry_run {
            return context.output.line(&text);
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
    fn flags_become_the_filter_they_stand_for() {
        let words = ["--all", "--status", "scheduled", "--condition", "error", "--metadata", "a=b"];
        assert_eq!(
            args(&words).unwrap().filter().unwrap(),
            json!({"status": "scheduled", "condition": "ERROR", "metadata": {"a": "b"}})
        );
        assert_eq!(args(&["--all"]).unwrap().filter().unwrap(), json!({}));
    }

    #[test]
    fn one_job_is_not_many() {
        assert_eq!(args(&["news"]).unwrap().single(), Some("news"));
        assert_eq!(args(&["news", "--dry-run"]).unwrap().single(), None);
        assert_eq!(args(&["a", "b"]).unwrap().single(), None);
    }

    #[test]
    fn the_user_is_asked_before_jobs_that_nobody_named_are_ended() {
        assert!(args(&["--all"]).unwrap().asks(true));
        assert!(args(&["--all", "--status", "failed"]).unwrap().asks(true));
        assert!(!args(&["--all"]).unwrap().asks(false), "a pause can be taken back");
        for certain in [&["--all", "--yes"][..], &["--all", "--dry-run"], &["a", "b"]] {
            assert!(!args(certain).unwrap().asks(true), "{certain:?}");
        }
    }

    #[test]
    fn all_jobs_are_never_meant_by_accident() {
        assert_eq!(args(&[]).unwrap().check().unwrap_err().exit, Exit::Usage);
        assert!(args(&["--status", "failed"]).is_err());
        assert!(args(&["--all", "news"]).is_err());
        assert!(args(&["--all", "--metadata", "a"]).unwrap().check().is_err());
    }
}
