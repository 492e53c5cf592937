//! Stores the changes that a command makes to a job.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::status::Effect;
use evenkeel_core::{AttemptKey, Origin, Slot, Timestamp};
use evenkeel_store::{Action, Job, JobChange, JobState, STOPPED_FOR_GOOD, Trigger, changes_text};
use rusqlite::Connection;

use crate::attempts::cancel::{ask_to_end, find_running, withdraw};
use crate::connection::{Params, RunSql};
use crate::error::Answer;
use crate::jobs::{labels, search_index, trigger};
use crate::rows::json;
use crate::schedules::claim_windows;
use crate::{conditions, dead_letters, targets};

pub(super) fn set_state(
    connection: &Connection,
    job: &Job,
    action: &Action,
    effect: Effect,
    now: Timestamp,
) -> Answer<()> {
    let stopped_at = match effect.state {
        JobState::Active => None,
        JobState::Paused => Some(job.stopped_at.unwrap_or(job.stop_at(now)).as_micros()),
        JobState::Cancelled | JobState::Deleted => Some(STOPPED_FOR_GOOD),
    };
    let active = effect.state == JobState::Active;
    connection.run(sql!("command_job"), &[&job.no, &effect.state, &now, &action.note()])?;
    if effect.state != job.state {
        dead_letters::prune_failing(connection, job.no)?;
    }
    connection.run(sql!("command_job_state"), &[&job.no, &active, &stopped_at])
}

/// Makes all changes of the command except the change of the job's state. Returns the run that the
/// command starts.
pub(super) fn act(
    connection: &Connection,
    job: &Job,
    action: &Action,
    now: Timestamp,
) -> Answer<Option<AttemptKey>> {
    match action {
        Action::Pause | Action::Suspend { .. } | Action::Cancel => {}
        Action::Delete => {
            labels::delete(connection, job.no)?;
            search_index::add(connection, job.tenant, &[job.no])?;
            targets::change_of_job(connection, job, None, now)?;
        }
        Action::Resume { next_at: Some(next_at) } => {
            set_next_time(connection, job, Some(*next_at), now)?;
        }
        // The job has no next run time, and the command sets none.
        Action::Resume { next_at: None } => {}
        Action::Retry { n, next_at } => {
            if job.next_at.is_none() && next_at.is_some() {
                set_next_time(connection, job, *next_at, now)?;
            }
            let request = Trigger { n: *n, priority: None, idle_only: false };
            return Ok(Some(trigger::start_run(connection, job, Origin::Trigger, request, now)?));
        }
        Action::Change(changed) => change(connection, job, changed, now)?,
    }
    Ok(None)
}

fn set_next_time(
    connection: &Connection,
    job: &Job,
    next_at: Option<Timestamp>,
    now: Timestamp,
) -> Answer<()> {
    connection.run(sql!("command_place"), &[&job.no, &next_at, &next_at.map(Slot::of), &now])
}

fn change(connection: &Connection, job: &Job, change: &JobChange, now: Timestamp) -> Answer<()> {
    let about = change.about.as_ref().unwrap_or(&job.about);
    let definition = change.definition.as_ref().unwrap_or(&job.definition);
    let configuration = about.configuration.as_deref().unwrap_or_default();
    let (about_text, definition_text) = (json(about)?, json(definition)?);
    let row: Params<'_> =
        &[&job.no, &about.name, &configuration, &about.source_id, &about_text, &definition_text];
    connection.run(sql!("command_change_job"), row)?;
    if about.target != job.about.target {
        targets::change_of_job(connection, job, about.target, now)?;
    }
    labels::rewrite(connection, job.tenant, job.no, about, definition)?;
    if changes_text(job, change) {
        search_index::add(connection, job.tenant, &[job.no])?;
    }
    if let Some(next_at) = change.next_at {
        // A paused job gets its next run time when it is resumed.
        let next_at = next_at.filter(|_| job.state == JobState::Active);
        set_next_time(connection, job, next_at, now)?;
    }
    if change.definition.is_some() {
        let follows_end = definition.schedule.follows_its_end();
        connection.run(sql!("command_follows_end"), &[&job.no, &follows_end])?;
        let average = job.history.average_good_duration;
        claim_windows::reopen_job(connection, job.no, definition, average, now)?;
    }
    Ok(())
}

/// Ends the attempts that the command cancels. Returns the running and the withdrawn attempts.
pub(super) fn end(
    connection: &Connection,
    job: &Job,
    effect: Effect,
    now: Timestamp,
) -> Answer<(Vec<AttemptKey>, Vec<AttemptKey>)> {
    let mut withdrawn = Vec::new();
    if effect.withdraws {
        withdrawn = withdraw(connection, job.no, Outcome::Cancelled, now)?;
    }
    let running = match job.live.saturating_sub(job.waiting) {
        0 => Vec::new(),
        count => find_running(connection, job.no, count)?,
    };
    if effect.ends_running {
        for (node, key) in &running {
            ask_to_end(connection, *node, *key, false)?;
        }
        conditions::delete(connection, job.no)?;
        connection.run(sql!("judge_unmark"), &[&job.no])?;
    } else if !withdrawn.is_empty() {
        conditions::mark_after_failure(connection, job.no)?;
    } else {
        conditions::touch(connection, job.no)?;
    }
    let mut keys: Vec<AttemptKey> = running.into_iter().map(|(_, key)| key).collect();
    keys.sort_unstable();
    Ok((keys, withdrawn))
}
