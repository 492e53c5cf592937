//! Decides whether a command on a job applies; `write` stores the changes.

mod write;

use evenkeel_core::balance::Load;
use evenkeel_core::{TenantNo, Timestamp};
use evenkeel_store::{Action, Applied, CommandEffect, DedupClaim, JobCommand, JobState};
use rusqlite::Connection;

use super::read::get;
use super::register::{find_namesake, notify_scheduler};
use crate::balance::Counts;
use crate::connection::RunSql;
use crate::dedup;
use crate::error::Answer;

/// Changes of the stored job counts of a tenant.
#[derive(Default)]
struct Counted {
    deleted: i64,
    paused: i64,
    cancelled: i64,
}

impl Counted {
    fn change(&mut self, from: JobState, to: JobState) {
        for (state, by) in [(from, -1), (to, 1)] {
            match state {
                JobState::Active => {}
                JobState::Paused => self.paused += by,
                JobState::Cancelled => self.cancelled += by,
                JobState::Deleted => self.deleted += by,
            }
        }
    }
}

pub(crate) fn apply_all(
    connection: &Connection,
    tenant: TenantNo,
    commands: &[JobCommand],
    now: Timestamp,
) -> Answer<Vec<Applied>> {
    let mut counted = Counted::default();
    let mut counts = Counts::default();
    let mut answers = Vec::with_capacity(commands.len());
    for command in commands {
        answers.push(apply_one(connection, tenant, command, (&mut counted, &mut counts), now)?);
    }
    let Counted { deleted, paused, cancelled } = counted;
    if (deleted, paused, cancelled) != (0, 0, 0) {
        connection.run(sql!("command_count"), &[&tenant, &deleted, &paused, &cancelled])?;
    }
    counts.write(connection)?;
    Ok(answers)
}

fn apply_one(
    connection: &Connection,
    tenant: TenantNo,
    command: &JobCommand,
    (counted, counts): (&mut Counted, &mut Counts),
    now: Timestamp,
) -> Answer<Applied> {
    let Some(job) = get(connection, tenant, command.id)? else { return Ok(Applied::NotFound) };
    let effect = match job.facts().apply(command.action.command()) {
        Ok(effect) => effect,
        Err(refusal) => return Ok(Applied::NotAllowed(refusal)),
    };
    let is_stale = command.if_generation.is_some_and(|expected| expected != job.generation)
        || command.if_fired.is_some_and(|expected| expected != job.fired);
    let goes_back = command.action.next_at().is_some_and(|at| Some(at) <= job.last_fired_at);
    if is_stale || goes_back {
        return Ok(Applied::Stale(Box::new(job)));
    }
    if let Action::Change(change) = &command.action
        && let Some(about) = &change.about
        && let Some(other) = find_namesake(connection, tenant, about, job.no)?
    {
        return Ok(Applied::NameTaken(other));
    }
    let claim = DedupClaim::by_command(command, &job, now);
    if let Some(other) = dedup::holder_of(connection, tenant, claim.as_ref(), now)? {
        return Ok(Applied::Duplicate(other.id));
    }
    dedup::release(connection, tenant, DedupClaim::released_key(command, &job), job.no)?;
    dedup::take(connection, tenant, claim.as_ref(), job.no, now)?;
    counted.change(job.state, effect.state);
    write::set_state(connection, &job, &command.action, effect, now)?;
    let run = write::act(connection, &job, &command.action, now)?;
    let (running, withdrawn) = write::end(connection, &job, effect, now)?;
    let after = get(connection, tenant, command.id)?;
    let next_at = after.as_ref().and_then(|job| job.next_at);
    notify_scheduler(connection, job.no, next_at, now)?;
    let load = after
        .as_ref()
        .and_then(|job| Load::of(&job.definition, job.history.average_good_duration, job.next_at?));
    counts.recount(connection, job.no, load.as_ref())?;
    Ok(Applied::Done(Box::new(CommandEffect { job: after, running, withdrawn, run })))
}
