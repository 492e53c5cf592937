//! `evenkeel job`

mod conditions;
mod control;
mod create;
mod dedup;
#[cfg(test)]
mod field_coverage;
mod filter;
mod lines;
mod many;
mod policies;
mod retries;
mod show;
mod stats;
mod suggest;
mod update;
mod when;

use clap::Subcommand;
use evenkeel_core::Timestamp;
use serde_json::{Value, json};

use super::run::{moment, watch};
use super::{Context, Session, ask};
use crate::client::{Answer, Client};
use crate::config::raw::RawClient;
use crate::output::ago;
use crate::{Exit, Failure, Result};

pub(super) use policies::{put, put_same};
pub(super) use show::title;

use control::Verb;

#[derive(Subcommand, Clone)]
pub(super) enum JobCommand {
    /// Create a job; a job without a schedule runs once, immediately
    #[command(after_help = create::EXAMPLES)]
    Create(Box<create::CreateArgs>),
    /// List jobs, oldest first unless --sort is given
    #[command(after_help = "Examples:
  evenkeel job list
  evenkeel job list --name-prefix news- -n 200
  evenkeel job list --status failed --sort -updated_at
  evenkeel job list --metadata team=red --condition error
  evenkeel job list --target 1
  evenkeel job list --next-run-before 2026-12-01T10:00:00Z --sort next_run_at
  evenkeel job list --json | jq '.jobs[].next_run_at'")]
    List(Box<show::ListArgs>),
    /// Show one job
    #[command(after_help = "Examples:
  evenkeel job show hello")]
    Show {
        /// The name or id of the job
        job: String,
    },
    /// Change a job; only a new schedule changes its next run time
    #[command(after_help = update::EXAMPLES)]
    Update(Box<update::UpdateArgs>),
    /// Show the number of runs of a job, their outcomes and durations
    #[command(after_help = "Examples:
  evenkeel job stats hello
  evenkeel job stats hello --json | jq .success_rate")]
    Stats {
        /// The name or id of the job
        job: String,
    },
    /// Explain why a job is not running now, or why it did not run at a past time
    #[command(after_help = "Examples:
  evenkeel job explain hello
  evenkeel job explain hello --at 09:00
  evenkeel job explain hello --at 2026-12-01T09:00:00Z
  evenkeel job explain hello --json | jq '.reasons[0].code'")]
    Explain {
        /// The name or id of the job
        job: String,
        /// A past time, in RFC 3339 format or as a time of day in the time zone of the job (its
        /// last such time); a whole minute stands for its 60 seconds
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
    },
    /// Count jobs by condition, and list the jobs that may miss their deadline, earliest deadline
    /// first
    #[command(after_help = "Examples:
  evenkeel job conditions
  evenkeel job conditions --level error
  evenkeel job conditions --json | jq .counts")]
    Conditions(conditions::ConditionsArgs),
    /// Run a job now, in addition to its schedule
    #[command(after_help = "Examples:
  evenkeel job trigger hello
  evenkeel job trigger hello --priority 90
  evenkeel job trigger hello --watch")]
    Trigger {
        /// The name or id of the job
        job: String,
        /// The priority of this run and its retries, 0 to 100 [default: the job's]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=100))]
        priority: Option<u8>,
        /// Follow the run until it ends; the exit code is an error if the run fails
        #[arg(long)]
        watch: bool,
    },
    /// Pause a job until it is resumed; running attempts continue
    #[command(after_help = "Examples:
  evenkeel job pause hello
  evenkeel job pause hello --json | jq .still_running
  evenkeel job pause --all --status scheduled --metadata category=news --dry-run")]
    Pause(Box<many::ManyArgs>),
    /// Resume a paused job and compute its next run time
    #[command(after_help = "Examples:
  evenkeel job resume hello
  evenkeel job resume hello --json | jq -r .next_run_at")]
    Resume(Box<many::ManyArgs>),
    /// Cancel a job permanently and end its running attempts; the job stays visible
    #[command(after_help = "Examples:
  evenkeel job cancel hello
  evenkeel run cancel 0006442d-7b2b-8640-8000-000000040000   # one run only; the job stays active")]
    Cancel(Box<many::ManyArgs>),
    /// Retry the last run of a job if it failed
    #[command(after_help = "Examples:
  evenkeel job retry hello
  evenkeel run watch $(evenkeel job retry hello --json | jq -r .run_id)")]
    Retry(Box<many::ManyArgs>),
    /// Delete a job and end its running attempts; its history stays until retention removes it
    #[command(after_help = "Examples:
  evenkeel job delete hello
  evenkeel job delete hello --purge   # and its history at once
  evenkeel job delete --all --status failed --yes")]
    Delete {
        #[command(flatten)]
        which: Box<many::ManyArgs>,
        /// Also delete the run history of the job; for one job only
        #[arg(long, conflicts_with_all = ["all", "dry_run"])]
        purge: bool,
    },
    /// Set the priority of jobs within their lanes
    #[command(after_help = "Examples:
  evenkeel job set-priority 50 news weather
  evenkeel job set-priority 0 --all --lane batch --dry-run")]
    SetPriority {
        /// The priority, from 0 to 100
        priority: u8,
        #[command(flatten)]
        which: Box<many::ManyArgs>,
    },
}

pub(super) fn run(context: &Context, client: RawClient, command: JobCommand) -> Result {
    // Invalid flags are reported before any request is sent to a server.
    let document = match &command {
        JobCommand::Create(args) if args.lines().is_some() => Value::Null,
        JobCommand::Create(args) => args.document(context.now())?,
        JobCommand::Update(args) => args.change(context.now())?,
        command => {
            if let Some(which) = command.which() {
                which.check()?;
                if which.needs_confirmation(command.is_final()) {
                    let way_out = "--yes does it without asking, --dry-run only counts the jobs";
                    ask::check(context, "whether to end all these jobs", way_out)?;
                }
            }
            Value::Null
        }
    };
    context.run(client, command, async |session, command| sent(session, command, &document).await)
}

/// Sends a job command to the server. `document` contains the fields of a created or updated job.
async fn sent(session: &Session, command: JobCommand, document: &Value) -> Result {
    match command {
        JobCommand::Create(args) => match args.lines() {
            Some(path) => lines::run(session, path).await,
            None => create::run(session, document).await,
        },
        JobCommand::Update(args) => update::run(session, &args, document).await,
        JobCommand::List(args) => show::list(session, *args).await,
        JobCommand::Show { job } => show::show(session, &job).await,
        JobCommand::Stats { job } => stats::stats(session, &job).await,
        JobCommand::Explain { job, at } => conditions::explain(session, &job, at).await,
        JobCommand::Conditions(args) => conditions::list(session, args).await,
        JobCommand::Trigger { job, priority, watch } => {
            trigger(session, &job, priority, watch).await
        }
        JobCommand::Pause(which) => control(session, Verb::Pause, &which).await,
        JobCommand::Resume(which) => control(session, Verb::Resume, &which).await,
        JobCommand::Cancel(which) => control(session, Verb::Cancel, &which).await,
        JobCommand::Retry(which) => control(session, Verb::Retry, &which).await,
        JobCommand::Delete { which, purge } => match which.single() {
            Some(job) => control::delete(session, job, purge).await,
            None if purge => Err(Failure::usage("--purge needs a single job")
                .or_else("leave it out: retention removes the history of other jobs later")),
            None => many::end(session, &which, "delete").await,
        },
        JobCommand::SetPriority { priority, which } => {
            many::run(session, &which, "set_priority", json!({"priority": priority})).await
        }
    }
}

impl JobCommand {
    /// True if the command cancels or deletes jobs.
    fn is_final(&self) -> bool {
        matches!(self, Self::Cancel(_) | Self::Delete { .. })
    }

    /// Returns the arguments that select jobs, if the command accepts several jobs.
    fn which(&self) -> Option<&many::ManyArgs> {
        match self {
            Self::Pause(which)
            | Self::Resume(which)
            | Self::Cancel(which)
            | Self::Retry(which)
            | Self::Delete { which, .. }
            | Self::SetPriority { which, .. } => Some(which),
            _ => None,
        }
    }
}

/// Applies a command to one or several jobs. A single job has its own API endpoint, whose response
/// has more details than the endpoint for several jobs.
async fn control(session: &Session, verb: Verb, which: &many::ManyArgs) -> Result {
    match which.single() {
        Some(job) => control::run(session, verb, job).await,
        None if verb == Verb::Cancel => many::end(session, which, verb.path()).await,
        None => many::run(session, which, verb.path(), Value::Null).await,
    }
}

async fn trigger(session: &Session, job: &str, priority: Option<u8>, watches: bool) -> Result {
    let id = find_id(&session.client, job).await?;
    let body = priority.map(|priority| json!({"priority": priority}));
    let answer = session.client.post(&["jobs", &id, "trigger"], body.as_ref()).await?;
    let run = answer.text_of("run_id");
    // If the trigger is a duplicate, the response may contain no run.
    if watches && !run.is_empty() {
        return watch(session, run).await;
    }
    let text = match &answer.value {
        value if value["deduplicated"] == true => existing_run(value),
        value => will_start(value, run, session.now()),
    };
    session.answer(&answer, &text)
}

fn will_start(answer: &Value, run: &str, now: Timestamp) -> String {
    let when = match moment(&answer["held_until"]) {
        Some(end) => format!("at {end} ({}), when a blackout of its job ends", ago(end, now)),
        None => "as soon as a worker is free".into(),
    };
    format!("Run {run} will start {when}.\n  see it: evenkeel run show {run}")
}

/// Describes the run or job that made a trigger a duplicate.
fn existing_run(answer: &Value) -> String {
    match answer["run_id"].as_str() {
        Some(run) => format!(
            "Run {run} already exists, so no run was started.\n  see it: evenkeel run show {run}"
        ),
        None => format!(
            "The job {} holds the same deduplication key, so no run was started.",
            answer["job_id"].as_str().unwrap_or_default()
        ),
    }
}

/// Returns the id of a job that is given by name or id.
pub(super) async fn find_id(client: &Client, job: &str) -> Result<String> {
    match job.parse::<uuid::Uuid>() {
        Ok(id) => Ok(id.to_string()),
        Err(_) => Ok(find(client, job).await?.text_of("id").to_owned()),
    }
}

/// Returns a job by name or id. The error for an unknown name suggests similar names.
pub(super) async fn find(client: &Client, job: &str) -> Result<Answer> {
    if matches!(job, "" | "." | "..") {
        // A URL path cannot contain a job name that is empty, `.` or `..`.
        return Err(Failure::usage(format!("{job:?} can't be looked up as a name"))
            .or_else("name the job by its id; `evenkeel job list --json` shows ids"));
    }
    let found = client.get(&["jobs", job]).await;
    match found {
        Err(failure) if failure.exit == Exit::NotFound && job.parse::<uuid::Uuid>().is_err() => {
            let way_out = suggest::way_out(&suggest::names_like(client, job).await);
            Err(failure.or_else(way_out))
        }
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_run_is_described_with_the_end_of_the_blackout() {
        let now = "2026-12-01T07:00:00Z".parse().unwrap();
        let described = |answer: &Value| will_start(answer, "r", now);
        let held = described(&json!({"held_until": "2026-12-01T08:00:00Z"}));
        assert!(held.starts_with("Run r will start at 2026-12-01T08:00:00"), "{held}");
        assert!(held.contains("when a blackout of its job ends.\n"), "{held}");
        let free = described(&json!({"held_until": null}));
        assert!(free.starts_with("Run r will start as soon as a worker is free.\n"), "{free}");
    }
}
