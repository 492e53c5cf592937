//! `evenkeel job pause, resume, cancel, retry, delete`

use evenkeel_core::Timestamp;
use serde_json::Value;

use super::{find_id, will_start};
use crate::Failure;
use crate::cli::Context;
use crate::client::{Answer, Client};
use crate::output::clean;

/// What one job is asked, and how its answer is told.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Verb {
    Pause,
    Resume,
    Cancel,
    Retry,
}

impl Verb {
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Retry => "retry",
        }
    }

    fn told(self, answer: &Answer, job: &str, now: Timestamp) -> String {
        let next = answer.value["next_run_at"].as_str();
        match self {
            Self::Pause => {
                format!("Paused {job}.\n  go on with: evenkeel job resume {job}")
            }
            Self::Resume => match next {
                Some(next) => format!("Resumed {job}. Its next run is at {next}."),
                None => format!("Resumed {job}. It has no next run."),
            },
            Self::Cancel => format!("Cancelled {job} for good."),
            Self::Retry => will_start(&answer.value, answer.text_of("run_id"), now),
        }
    }
}

pub(super) async fn run(
    context: &Context,
    client: &Client,
    verb: Verb,
    job: &str,
) -> Result<(), Failure> {
    let id = find_id(client, job).await?;
    let answer = client.post(&["jobs", &id, verb.path()], None).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let mut text = verb.told(&answer, &clean(job), context.now());
    // A retry begins with nothing running; a resume says nothing of what was before.
    if matches!(verb, Verb::Pause | Verb::Cancel) {
        text.push_str(&still_running(&answer, verb == Verb::Cancel));
    }
    context.output.line(&text)
}

pub(super) async fn delete(
    context: &Context,
    client: &Client,
    job: &str,
    purges: bool,
) -> Result<(), Failure> {
    let id = find_id(client, job).await?;
    let query: &[(&str, &str)] = if purges { &[("purge", "true")] } else { &[] };
    let answer = client.delete(&["jobs", &id], query).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let mut text = format!("Deleted job {id}.");
    if let Some(purged) = answer.value["purged"].as_u64() {
        text.push_str(&format!("\n  {purged} executions of its history were forgotten."));
    }
    text.push_str(&still_running(&answer, true));
    context.output.line(&text)
}

/// A line about what still runs, if something does.
fn still_running(answer: &Answer, is_asked_to_end: bool) -> String {
    let running: Vec<&str> =
        answer.list_of("still_running").iter().filter_map(Value::as_str).collect();
    let what = if is_asked_to_end { "was asked to end" } else { "goes on to its end" };
    running.iter().map(|id| format!("\n  execution {id} still runs and {what}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verb_has_a_path_of_its_own() {
        let verbs = [Verb::Pause, Verb::Resume, Verb::Cancel, Verb::Retry];
        assert_eq!(verbs.map(Verb::path), ["pause", "resume", "cancel", "retry"]);
    }
}
