//! Writes the effects of commands on jobs.

use std::collections::HashMap;

use evenkeel_core::balance::Load;
use evenkeel_core::status::Effect;
use evenkeel_core::{AttemptKey, Definition, JobNo, Timestamp};
use evenkeel_store::{Action, Job, JobCommand, JobState};

use crate::balance::{Counts, LoadColumns};
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{KeyColumns, column, json, micros, slot};

/// A command that can be applied to its job.
pub(super) struct Plan<'a> {
    pub(super) command: &'a JobCommand,
    /// The job before the command.
    pub(super) job: &'a Job,
    pub(super) effect: Effect,
    /// The run that the command starts.
    pub(super) run: Option<AttemptKey>,
}

impl Plan<'_> {
    fn stopped_at(&self, now: i64) -> Option<i64> {
        match self.effect.state {
            JobState::Active => None,
            JobState::Paused => {
                let stopped = self.job.stop_at(Timestamp::from_micros(now));
                Some(micros(self.job.stopped_at).unwrap_or(stopped.as_micros()))
            }
            JobState::Cancelled | JobState::Deleted => Some(i64::MAX),
        }
    }

    /// Returns the next run time that the command sets (`Some(None)` removes it), or `None` if the
    /// command does not change it.
    fn new_time(&self) -> Option<Option<Timestamp>> {
        match &self.command.action {
            // A job that has no further runs keeps an empty next run time.
            Action::Resume { next_at } => next_at.is_some().then_some(*next_at),
            Action::Retry { next_at, .. } => {
                (self.job.next_at.is_none() && next_at.is_some()).then_some(*next_at)
            }
            Action::Change(change) => change.next_at,
            Action::Pause | Action::Suspend { .. } | Action::Cancel | Action::Delete => None,
        }
    }

    fn leaves_target(&self) -> bool {
        let target = self.job.about.target;
        target.is_some()
            && match &self.command.action {
                Action::Delete => true,
                Action::Change(change) => {
                    change.about.as_ref().is_some_and(|about| about.target != target)
                }
                _ => false,
            }
    }

    pub(super) fn definition(&self) -> Option<&Definition> {
        match &self.command.action {
            Action::Change(change) => change.definition.as_ref(),
            _ => None,
        }
    }

    /// Returns the load of the job after the command.
    pub(super) fn load(&self) -> Option<Load> {
        let is_active = self.effect.state == JobState::Active;
        let next_at = self.new_time().unwrap_or(self.job.next_at).filter(|_| is_active)?;
        let definition = self.definition().unwrap_or(&self.job.definition);
        Load::of(definition, self.job.history.average_good_duration, next_at)
    }
}

/// Returns the numbers of the jobs whose planned command fulfils `is_meant`.
pub(super) fn numbers_of(plans: &[Plan<'_>], is_meant: impl Fn(&Plan<'_>) -> bool) -> Vec<i64> {
    plans.iter().filter(|plan| is_meant(plan)).map(|plan| plan.job.no.0).collect()
}

/// Writes the jobs, their states and the runs that the commands start.
pub(super) async fn write(
    connection: &Connection,
    plans: &[Plan<'_>],
    loads: &[Option<Load>],
    tenant: i32,
    now: i64,
) -> Tried<()> {
    if plans.is_empty() {
        return Ok(());
    }
    let numbers = column(plans, |plan| plan.job.no.0);
    let states = column(plans, |plan| plan.effect.state as i16);
    let left = numbers_of(plans, |plan| plan.leaves_target());
    if !left.is_empty() {
        connection.change(sql!("command_leave_targets"), &[&tenant, &left]).await?;
    }
    write_jobs(connection, plans, &numbers, &states, now).await?;
    write_states(connection, plans, loads, &numbers, &states, now).await?;
    let begun: KeyColumns = plans.iter().filter_map(|plan| plan.run).collect();
    if !begun.job_no.is_empty() {
        let KeyColumns { job_no, scheduled_at, sequence, .. } = &begun;
        let params: Params<'_> = &[&tenant, job_no, scheduled_at, sequence];
        connection.change(sql!("command_delayed"), params).await?;
    }
    Ok(())
}

async fn write_jobs(
    connection: &Connection,
    plans: &[Plan<'_>],
    numbers: &[i64],
    states: &[i16],
    now: i64,
) -> Tried<()> {
    let abouts = || {
        plans.iter().map(|plan| match &plan.command.action {
            Action::Change(change) => change.about.as_ref(),
            _ => None,
        })
    };
    let about = abouts().map(|about| about.map(json).transpose());
    let about = about.collect::<Result<Vec<Option<String>>, _>>()?;
    let names = column(abouts(), |about| about?.name.as_deref());
    let configurations =
        column(abouts(), |about| Some(about?.configuration.as_deref().unwrap_or_default()));
    let sources = column(abouts(), |about| about?.source_id.as_deref());
    let targets = column(abouts(), |about| about?.target);
    let definitions = plans.iter().map(|plan| plan.definition().map(json).transpose());
    let definitions = definitions.collect::<Result<Vec<Option<String>>, _>>()?;
    let notes = column(plans, |plan| plan.command.action.note());
    let params: Params<'_> = &[
        &now, &numbers, &states, &about, &names, &configurations, &sources, &definitions, &targets,
        &notes,
    ];
    connection.change(sql!("command_write_jobs"), params).await?;
    Ok(())
}

async fn write_states(
    connection: &Connection,
    plans: &[Plan<'_>],
    loads: &[Option<Load>],
    numbers: &[i64],
    states: &[i16],
    now: i64,
) -> Tried<()> {
    let next_at = || plans.iter().map(|plan| plan.new_time().flatten());
    let follows_end = |definition: &Definition| definition.schedule.follows_its_end();
    let loads: LoadColumns = loads.iter().map(Option::as_ref).collect();
    let params: Params<'_> = &[
        &now,
        &numbers,
        &states,
        &column(plans, |plan| plan.stopped_at(now)),
        &column(plans, |plan| plan.new_time().is_some()),
        &column(next_at(), micros),
        &column(next_at(), slot),
        &column(plans, |plan| plan.definition().map(follows_end)),
        &column(plans, |plan| plan.run.is_some()),
        &loads.profile,
        &loads.cost_us,
        &loads.cost_stated,
    ];
    connection.change(sql!("command_write_states"), params).await?;
    Ok(())
}

/// Updates the stored job counts of the tenant. Also deletes requests to reload cancelled or
/// deleted jobs into the scheduler, and failure counts of jobs whose state changes.
pub(super) async fn count(connection: &Connection, plans: &[Plan<'_>], tenant: i32) -> Tried<()> {
    let over = numbers_of(plans, |plan| plan.effect.ends_running);
    if !over.is_empty() {
        connection.change(sql!("command_delete_changes"), &[&over]).await?;
    }
    let changed = numbers_of(plans, |plan| plan.effect.state != plan.job.state);
    if !changed.is_empty() {
        connection.change(sql!("prune_failing"), &[&changed]).await?;
    }
    let more = |state: JobState| -> i64 {
        let is = |other: JobState| i64::from(other == state);
        plans.iter().map(|plan| is(plan.effect.state) - is(plan.job.state)).sum()
    };
    let (deleted, paused) = (more(JobState::Deleted), more(JobState::Paused));
    let cancelled = more(JobState::Cancelled);
    if !over.is_empty() || (deleted, paused, cancelled) != (0, 0, 0) {
        let params: Params<'_> = &[&over, &tenant, &deleted, &paused, &cancelled];
        connection.change(sql!("command_count"), params).await?;
    }
    Ok(())
}

/// Updates the load profile counts with the last statement of the transaction. `counted` holds the
/// load of each job before the command.
pub(super) async fn count_loads(
    connection: &Connection,
    plans: &[Plan<'_>],
    loads: &[Option<Load>],
    counted: &HashMap<JobNo, (i64, i64)>,
) -> Tried<()> {
    let mut counts = Counts::default();
    for (plan, load) in plans.iter().zip(loads) {
        let tenant = plan.job.tenant.0;
        if let Some((profile, cost)) = counted.get(&plan.job.no) {
            counts.remove_from(tenant, *profile, *cost);
        }
        if let Some(load) = load {
            counts.add(tenant, load);
        }
    }
    counts.write(connection).await
}
