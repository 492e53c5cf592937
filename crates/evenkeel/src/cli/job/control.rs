//! `evenkeel job pause, resume, cancel, retry, delete`

use evenkeel_core::Timestamp;
use serde_json::Value;

use super::{find_id, will_start};
use crate::Result;
use crate::cli::Session;
use crate::client::Answer;
use crate::output::clean;

/// A command for one job.
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

    fn describe(self, answer: &Answer, job: &str, now: Timestamp) -> String {
        let next = answer.value["next_run_at"].as_str();
        match self {
            Self::Pause => format!("Paused {job}.\n  resume it: evenkeel job resume {job}"),
            Self::Resume => match next {
                Some(next) => format!("Resumed {job}. Its next run is at {next}."),
                None => format!("Resumed {job}. It has no next run."),
            },
            Self::Cancel => format!("Cancelled {job} for good."),
            Self::Retry => will_start(&answer.value, answer.text_of("run_id"), now),
        }
    }
}

pub(super) async fn run(session: &Session, verb: Verb, job: &str) -> Result {
    let id = find_id(&session.client, job).await?;
    let answer = session.client.post(&["jobs", &id, verb.path()], None).await?;
    let mut text = verb.describe(&answer, &clean(job), session.now());
    // A user may expect that pause and cancel have ended the running attempts, so these commands
    // list the attempts that still run.
    if matches!(verb, Verb::Pause | Verb::Cancel) {
        text.push_str(&still_running(&answer, verb == Verb::Cancel));
    }
    session.answer(&answer, &text)
}

pub(super) async fn delete(session: &Session, job: &str, purges: bool) -> Result {
    let id = find_id(&session.client, job).await?;
    let query = Vec::from_iter(purges.then(|| ("purge", "true".into())));
    let answer = session.client.delete(&["jobs", &id], &query).await?;
    let mut text = format!("Deleted job {id}.");
    if let Some(purged) = answer.value["purged"].as_u64() {
        text.push_str(&format!("\n  {purged} executions of its history were deleted."));
    }
    text.push_str(&still_running(&answer, true));
    session.answer(&answer, &text)
}

/// Lists the attempts of a job that are still running, one per line.
fn still_running(answer: &Answer, is_asked_to_end: bool) -> String {
    let running: Vec<&str> =
        answer.list_of("still_running").iter().filter_map(Value::as_str).collect();
    let what = if is_asked_to_end { "was asked to end" } else { "continues to its end" };
    running.iter().map(|id| format!("\n  execution {id} still runs and {what}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_have_different_paths() {
        let verbs = [Verb::Pause, Verb::Resume, Verb::Cancel, Verb::Retry];
        assert_eq!(verbs.map(Verb::path), ["pause", "resume", "cancel", "retry"]);
    }
}
