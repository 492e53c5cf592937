//! Explains what became of a past time of a job.

use std::collections::BTreeMap;

use evenkeel_core::balance::decode_moves;
use evenkeel_core::explain::{
    AskedTime, CommandKind, PastCommand, PastExplanation, PastFacts, PastMove, PastRun, Verdict,
    explain_past,
};
use evenkeel_core::{AttemptKey, JobId, Origin, Span, Timestamp};
use evenkeel_store::{
    Attempt, AttemptFilter, AuditEntry, AuditFilter, Job, PageRequest, Scope, StoreError,
};
use uuid::Uuid;

use super::Jobs;
use crate::run_list::{Run, load_runs};
use crate::stats::{RUNS_SCANNED_MAX, RUNS_STEP};
use crate::{CommandError, Result};

/// Maximum number of audit entries about the job that are read before and after the requested time.
const AUDIT_READ_MAX: u32 = 100;

/// Maximum number of rebalances that are searched for a move of the job.
const REBALANCES_READ_MAX: u32 = 50;

/// Maximum number of batches of moved jobs that are searched for a move of the job.
const PARTS_READ_MAX: u32 = 100;

/// Number of newest attempts of the run that are read.
const ATTEMPTS_READ_MAX: u32 = 10;

/// The time that a user asks about, before the time zone of the job is known.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PastTime {
    Moment(Timestamp),
    /// The last such time of day on the clocks of the job's time zone.
    TimeOfDay(Span),
}

/// Reads a time in RFC 3339 format, or a time of day as `HH:MM` or `HH:MM:SS`.
pub fn read_past_time(text: &str) -> std::result::Result<PastTime, String> {
    if let Ok(moment) = text.parse() {
        return Ok(PastTime::Moment(moment));
    }
    time_of_day(text).map(PastTime::TimeOfDay).ok_or_else(|| {
        format!(
            "{text:?} is not a time; write it like 2026-12-01T09:00:00Z (a + is %2B there), or like \
             09:00 for the last such time in the time zone of the job"
        )
    })
}

fn time_of_day(text: &str) -> Option<Span> {
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: &str, max: u64| {
        let is_pair = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u64>().ok().filter(|number| is_pair && *number <= max)
    };
    let (hour, minute, second) = match parts[..] {
        [hour, minute] => (hour, minute, "00"),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let (hour, minute, second) = (number(hour, 23)?, number(minute, 59)?, number(second, 59)?);
    Some(Span::from_secs(hour * 3600 + minute * 60 + second))
}

/// What became of a past time of a job, and the evidence.
#[derive(Clone, PartialEq, Debug)]
pub struct PastAnswer {
    pub asked: AskedTime,
    pub explanation: PastExplanation,
    /// The run or skip record at the requested time.
    pub run: Option<Run>,
    /// The user who paused, edited or moved the job.
    pub by: Option<String>,
    /// The note of a pause.
    pub note: Option<String>,
}

/// The rest of the evidence, which is read only if no run answers.
#[derive(Default)]
struct Changes {
    commands: Vec<PastCommand>,
    entries: Vec<AuditEntry>,
    last_move: Option<PastMove>,
    moved_by: Option<String>,
}

impl Jobs {
    /// Returns what became of a past time of a job.
    pub async fn explain_past(
        &self,
        scope: &Scope,
        id: JobId,
        time: PastTime,
    ) -> Result<PastAnswer> {
        let (job, now) = self.get_with_now(scope, id).await?;
        let asked = match time {
            PastTime::Moment(moment) => AskedTime::new(moment),
            PastTime::TimeOfDay(time) => AskedTime::of_day(time, &job.definition.timezone, now),
        };
        let history = self.history_around(scope, &job, asked).await?;
        let mut changes = Changes::default();
        let mut explanation = explain_past(&facts(&job, &history, &changes), asked, now);
        if explanation.run.is_none() && asked.at <= now {
            changes = self.changes_around(scope, &job, asked).await?;
            explanation = explain_past(&facts(&job, &history, &changes), asked, now);
        }
        let run = explanation.run.and_then(|run| history.loaded.get(&run.key).cloned());
        let entry = explanation.command.and_then(|command| {
            changes.entries.iter().find(|entry| command_of(entry) == Some(command))
        });
        let by = match explanation.verdict {
            Verdict::Moved => changes.moved_by,
            _ => entry.map(|entry| entry.subject.clone()),
        };
        let note = match explanation.verdict {
            Verdict::Paused => entry.map_or(job.note, |entry| entry.detail.clone()),
            _ => None,
        };
        Ok(PastAnswer { asked, explanation, run, by, note })
    }

    /// Reads the job's newest runs back to the last scheduled run before the requested time.
    async fn history_around(&self, scope: &Scope, job: &Job, asked: AskedTime) -> Result<History> {
        let filter = AttemptFilter { job: Some(job.id) };
        let (mut attempts, mut after) = (Vec::new(), None);
        let is_earlier = |attempt: &Attempt| {
            let key = attempt.key;
            key.scheduled_at < asked.at && key.sequence.origin() == Origin::Schedule
        };
        let is_kept = loop {
            let step = PageRequest { limit: RUNS_STEP, offset: 0, after };
            let found = self.store.list_attempts(scope, filter, step).await?;
            after = found.next;
            let first = attempts.len();
            attempts.extend(found.items);
            if let Some(at) = attempts[first..].iter().position(is_earlier) {
                break is_contiguous(&attempts[..first + at], attempts[first + at].number, job);
            }
            if after.is_none() {
                break is_contiguous(&attempts, Some(0), job);
            }
            if attempts.len() >= RUNS_SCANNED_MAX {
                break true;
            }
        };
        // The run of a scheduled time has a known key, however many runs followed it.
        let mut history = History { runs: Vec::new(), loaded: BTreeMap::new(), is_kept };
        let exact = facts(job, &history, &Changes::default()).scheduled_within(asked);
        let mut keys: Vec<AttemptKey> = exact
            .into_iter()
            .chain([asked.at])
            .map(|at| AttemptKey::regular(job.no, at))
            .chain(attempts.iter().map(|attempt| attempt.key.first_attempt()))
            .filter(|key| asked.contains(key.scheduled_at))
            .collect();
        keys.extend(
            attempts.iter().filter(|one| covers(one, asked)).map(|one| one.key.first_attempt()),
        );
        keys.sort_unstable();
        keys.dedup();
        history.loaded = load_runs(&*self.store, scope, &keys, ATTEMPTS_READ_MAX).await?;
        let others = attempts.iter().filter(|one| !keys.contains(&one.key.first_attempt()));
        history.runs = others.map(past_attempt).collect();
        history.runs.extend(history.loaded.values().map(past_run));
        Ok(history)
    }

    /// Reads the commands around the requested time, and the last move of the job by a rebalance.
    async fn changes_around(&self, scope: &Scope, job: &Job, asked: AskedTime) -> Result<Changes> {
        let mut entries = Vec::new();
        for (from, before) in [(Some(asked.until), None), (None, Some(asked.until))] {
            let filter = AuditFilter {
                target: Some(job.id.to_string()),
                denied: Some(false),
                from,
                before,
                ..AuditFilter::default()
            };
            let page = PageRequest::first(AUDIT_READ_MAX);
            let found = self.store.list_audit(scope, &filter, page).await?;
            entries.extend(found.items.into_iter().map(|(_, entry)| entry));
        }
        entries.reverse();
        let commands = entries.iter().filter_map(command_of).collect();
        let (last_move, moved_by) = self.last_move(scope, job).await?.unzip();
        Ok(Changes { commands, entries, last_move, moved_by })
    }

    /// Finds the rebalance that moved the job last, unless the job was rescheduled afterwards.
    async fn last_move(&self, scope: &Scope, job: &Job) -> Result<Option<(PastMove, String)>> {
        if job.since <= job.created_at {
            return Ok(None);
        }
        let page = PageRequest::first(REBALANCES_READ_MAX);
        let rebalances = self.store.list_rebalances(scope, page).await?.items;
        let mut left = PARTS_READ_MAX;
        for rebalance in rebalances {
            let is_over = rebalance.ended_at.is_some_and(|end| end < job.since);
            if rebalance.created_at > job.since || is_over {
                continue;
            }
            for part in 0..rebalance.parts_done.min(left) {
                left -= 1;
                if let Some((from, to)) = self.move_in(scope, rebalance.id, part, job).await? {
                    return Ok(Some((PastMove { at: job.since, from, to }, rebalance.created_by)));
                }
            }
        }
        Ok(None)
    }

    /// Returns the former and the new time of the job, if this batch of a rebalance moved it.
    async fn move_in(
        &self,
        scope: &Scope,
        rebalance: Uuid,
        part: u32,
        job: &Job,
    ) -> Result<Option<(Timestamp, Timestamp)>> {
        let Some(part) = self.store.rebalance_part(scope, rebalance, part).await? else {
            return Ok(None);
        };
        let moves = decode_moves(&part.moves)
            .map_err(|cause| StoreError::corrupt("rebalance", "moves", cause))
            .map_err(CommandError::from)?;
        let made = part.made.unwrap_or_default();
        let moved = moves.iter().zip(made).find(|(it, made)| *made && it.job == job.no);
        Ok(moved.map(|(it, _)| (it.old_at, it.new_at)))
    }
}

/// The stored runs around the requested time.
struct History {
    runs: Vec<PastRun>,
    /// Those of `runs` that are at the requested time, with their attempts.
    loaded: BTreeMap<AttemptKey, Run>,
    is_kept: bool,
}

fn facts<'a>(job: &'a Job, history: &'a History, changes: &'a Changes) -> PastFacts<'a> {
    PastFacts {
        definition: &job.definition,
        state: job.state,
        created_at: job.created_at,
        since: job.since,
        stopped_at: job.stopped_at,
        next_at: job.next_at,
        last_fired_at: job.last_fired_at,
        runs: &history.runs,
        is_history_kept: history.is_kept,
        commands: &changes.commands,
        last_move: changes.last_move,
    }
}

/// True if the record `attempt` covers a part of the requested time.
fn covers(attempt: &Attempt, asked: AskedTime) -> bool {
    attempt.skipped.is_some_and(|skip| skip.from < asked.until && skip.to >= asked.at)
}

/// True if no attempt is missing between the job's attempt with the number `number` and the newest
/// one. `newer` are the stored attempts after it. An attempt that lost its worker was started once
/// for each fence.
fn is_contiguous(newer: &[Attempt], number: Option<u64>, job: &Job) -> bool {
    let starts: u64 = newer
        .iter()
        .filter(|attempt| attempt.started_at.is_some())
        .map(|attempt| u64::from(attempt.fence.0.max(1)))
        .sum();
    number.is_none_or(|number| job.executions.saturating_sub(number) <= starts)
}

fn past_attempt(attempt: &Attempt) -> PastRun {
    PastRun {
        key: attempt.key.first_attempt(),
        status: attempt.status,
        started_at: attempt.started_at,
        skipped: attempt.skipped,
    }
}

fn past_run(run: &Run) -> PastRun {
    PastRun {
        key: run.key,
        status: run.status(),
        started_at: run.started_at(),
        skipped: run.latest.attempt.skipped,
    }
}

/// Returns the command of an audit entry, if the command affects when the job runs.
fn command_of(entry: &AuditEntry) -> Option<PastCommand> {
    let kind = match entry.action.as_str() {
        "pause_job" => CommandKind::Pause,
        "resume_job" => CommandKind::Resume,
        "update_job" | "patch_job" => CommandKind::Edit,
        _ => return None,
    };
    (200..300).contains(&entry.status).then_some(PastCommand { at: entry.at, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_and_moments_are_read() {
        let of_day = |secs| Ok(PastTime::TimeOfDay(Span::from_secs(secs)));
        assert_eq!(read_past_time("09:00"), of_day(9 * 3600));
        assert_eq!(read_past_time("23:59:58"), of_day(86_398));
        let moment = "2026-11-18T09:00:00+01:00";
        assert_eq!(read_past_time(moment), Ok(PastTime::Moment(moment.parse().unwrap())));
        for wrong in ["", "9", "9:00", "24:00", "09:60", "09:00:60", "09:00:00:00", "+9:00", "noon"]
        {
            assert!(read_past_time(wrong).unwrap_err().contains("is not a time"), "{wrong}");
        }
    }
}
