//! What people ask of jobs that exist.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::balance::Load;
use evenkeel_core::status::Effect;
use evenkeel_core::{AttemptKey, Origin, Slot, TenantNo, Timestamp};
use evenkeel_store::{
    Action, Applied, CommandEffect, DedupClaim, Job, JobChange, JobCommand, JobState, Now, Trigger,
};
use rusqlite::{Connection, params};

use super::labels;
use super::read::get;
use super::register::{find_namesake, tell_scheduler};
use super::trigger;
use crate::attempts::cancel::{ask_to_end, find_running, withdraw};
use crate::balance::Counts;
use crate::connection::clock::resolve;
use crate::error::Answer;
use crate::rows::{json, micros};
use crate::schedules::claim_windows;
use crate::{conditions, dead_letters, dedup, targets};

/// By how much the tenant's counts change.
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
    orders: &[JobCommand],
    now: Now,
) -> Answer<Vec<Applied>> {
    let now = resolve(now);
    let mut counted = Counted::default();
    let mut counts = Counts::default();
    let mut answers = Vec::with_capacity(orders.len());
    for order in orders {
        answers.push(order_one(connection, tenant, order, (&mut counted, &mut counts), now)?);
    }
    let Counted { deleted, paused, cancelled } = counted;
    if (deleted, paused, cancelled) != (0, 0, 0) {
        connection
            .prepare_cached(sql!("command_count"))?
            .execute(params![tenant.0, deleted, paused, cancelled])?;
    }
    counts.write(connection)?;
    Ok(answers)
}

fn order_one(
    connection: &Connection,
    tenant: TenantNo,
    order: &JobCommand,
    (counted, counts): (&mut Counted, &mut Counts),
    now: Timestamp,
) -> Answer<Applied> {
    let Some(job) = get(connection, tenant, order.id)? else { return Ok(Applied::NotFound) };
    let effect = match job.facts().apply(order.action.command()) {
        Ok(effect) => effect,
        Err(refusal) => return Ok(Applied::NotAllowed(refusal)),
    };
    let is_other = order.if_generation.is_some_and(|expected| expected != job.generation)
        || order.if_fired.is_some_and(|expected| expected != job.fired);
    let goes_back = order.action.next_at().is_some_and(|at| Some(at) <= job.last_fired_at);
    if is_other || goes_back {
        return Ok(Applied::Stale(Box::new(job)));
    }
    if let Action::Change(change) = &order.action
        && let Some(about) = &change.about
        && let Some(other) = find_namesake(connection, tenant, about, job.no)?
    {
        return Ok(Applied::NameTaken(other));
    }
    let wanted = DedupClaim::by_order(order, &job, now);
    if let Some(other) = dedup::kept_out_by(connection, tenant, wanted.as_ref(), now)? {
        return Ok(Applied::Duplicate(other.id));
    }
    dedup::let_go(connection, tenant, DedupClaim::let_go(order, &job), job.no)?;
    dedup::take(connection, tenant, wanted.as_ref(), job.no, now)?;
    counted.change(job.state, effect.state);
    stand(connection, &job, &order.action, effect, now)?;
    let run = act(connection, &job, &order.action, now)?;
    let (running, withdrawn) = end(connection, &job, effect, now)?;
    let after = get(connection, tenant, order.id)?;
    let next_at = after.as_ref().and_then(|job| job.next_at);
    tell_scheduler(connection, job.no, next_at, now)?;
    let load = after
        .as_ref()
        .and_then(|job| Load::of(&job.definition, job.history.average_good_duration, job.next_at?));
    counts.recount(connection, job.no, load.as_ref())?;
    Ok(Applied::Done(Box::new(CommandEffect { job: after, running, withdrawn, run })))
}

/// What the job is from here on.
fn stand(
    connection: &Connection,
    job: &Job,
    action: &Action,
    effect: Effect,
    now: Timestamp,
) -> Answer<()> {
    let stopped_at = match effect.state {
        JobState::Active => None,
        JobState::Paused => Some(micros(job.stopped_at).unwrap_or(job.stop_at(now).as_micros())),
        JobState::Cancelled | JobState::Deleted => Some(i64::MAX),
    };
    let active = effect.state == JobState::Active;
    connection.prepare_cached(sql!("command_job"))?.execute(params![
        job.no.0,
        effect.state as u8,
        now.as_micros(),
        action.note()
    ])?;
    if effect.state != job.state {
        dead_letters::prune_failing(connection, job.no)?;
    }
    connection
        .prepare_cached(sql!("command_job_state"))?
        .execute(params![job.no.0, active, stopped_at])?;
    Ok(())
}

/// What else the order says. Gives the run that it begins.
fn act(
    connection: &Connection,
    job: &Job,
    action: &Action,
    now: Timestamp,
) -> Answer<Option<AttemptKey>> {
    match action {
        Action::Pause | Action::Suspend { .. } | Action::Cancel => {}
        Action::Delete => {
            labels::forget(connection, job.no)?;
            targets::leave(connection, job, None, now)?;
        }
        Action::Resume { next_at: Some(next_at) } => place(connection, job, Some(*next_at), now)?,
        // One that has no time left has none already, and nothing was decided anew.
        Action::Resume { next_at: None } => {}
        Action::Retry { n, next_at } => {
            if job.next_at.is_none() && next_at.is_some() {
                place(connection, job, *next_at, now)?;
            }
            let ask = Trigger { n: *n, priority: None, idle_only: false };
            return Ok(Some(trigger::begin(connection, job, Origin::Trigger, ask, now)?));
        }
        Action::Change(changed) => change(connection, job, changed, now)?,
    }
    Ok(None)
}

fn place(
    connection: &Connection,
    job: &Job,
    next_at: Option<Timestamp>,
    now: Timestamp,
) -> Answer<()> {
    let slot = next_at.map(|at| Slot::of(at).0);
    connection.prepare_cached(sql!("command_place"))?.execute(params![
        job.no.0,
        micros(next_at),
        slot,
        now.as_micros()
    ])?;
    Ok(())
}

fn change(connection: &Connection, job: &Job, change: &JobChange, now: Timestamp) -> Answer<()> {
    let about = change.about.as_ref().unwrap_or(&job.about);
    let definition = change.definition.as_ref().unwrap_or(&job.definition);
    connection.prepare_cached(sql!("command_change_job"))?.execute(params![
        job.no.0,
        about.name,
        about.configuration.as_deref().unwrap_or_default(),
        about.source_id,
        json(about)?,
        json(definition)?,
    ])?;
    if about.target != job.about.target {
        targets::leave(connection, job, about.target, now)?;
    }
    labels::write_anew(connection, job.tenant, job.no, about, definition)?;
    if let Some(next_at) = change.next_at {
        // One that is paused gets its next time when it is resumed.
        let next_at = next_at.filter(|_| job.state == JobState::Active);
        place(connection, job, next_at, now)?;
    }
    if change.definition.is_some() {
        connection
            .prepare_cached(sql!("command_follows_end"))?
            .execute(params![job.no.0, definition.schedule.follows_its_end()])?;
        let seen = job.history.average_good_duration;
        claim_windows::open_anew(connection, job.no, definition, seen, now)?;
    }
    Ok(())
}

/// Ends what the order ends, and says what still runs and what was withdrawn.
fn end(
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
        conditions::forget(connection, job.no)?;
        connection.prepare_cached(sql!("judge_unmark"))?.execute([job.no.0])?;
    } else if !withdrawn.is_empty() {
        conditions::tell_of_end(connection, job.no)?;
    } else {
        conditions::touch(connection, job.no)?;
    }
    let mut keys: Vec<AttemptKey> = running.into_iter().map(|(_, key)| key).collect();
    keys.sort_unstable();
    Ok((keys, withdrawn))
}
