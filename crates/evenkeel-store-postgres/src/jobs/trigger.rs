//! Triggering runs.

use std::collections::HashSet;

use evenkeel_core::dedup::DedupPurpose;
use evenkeel_core::status::Command;
use evenkeel_core::{AttemptKey, AttemptNo, JobNo, Origin, Sequence, Timestamp};
use evenkeel_store::{DedupClaim, Job, Triggered};
use uuid::Uuid;

use super::commands::read_clock;
use super::read::get_job;
use crate::connection::{Connection, Params};
use crate::dedup::{Held, Keys, run_instead};
use crate::error::{Failure, Tried};
use crate::rows::{column, get, key_columns, sequence};

pub(super) struct Args {
    pub(super) tenant: i32,
    pub(super) id: Uuid,
    pub(super) n: u32,
    pub(super) priority: Option<i16>,
    pub(super) idle_only: bool,
    pub(super) now: Option<i64>,
}

pub(super) async fn trigger(connection: &Connection, args: &Args) -> Tried<Triggered> {
    match open_idle(connection, args).await? {
        Some(key) => Ok(Triggered::Accepted(key)),
        None => connection.transaction(run(connection, args)).await,
    }
}

/// Starts a run in one round trip if the job is active and idle, the job has no deduplication key,
/// and no other run has the sequence number. Returns `None` if the caller must read the job to
/// decide whether the run may start.
async fn open_idle(connection: &Connection, args: &Args) -> Tried<Option<AttemptKey>> {
    let number = Sequence::new(Origin::Trigger, args.n);
    let Args { tenant, id, priority, now, .. } = args;
    let params: Params<'_> = &[now, id, tenant, &sequence(number), priority];
    let row = connection.maybe_row(sql!("trigger"), params).await?;
    row.map(|row| Ok(first_attempt(get(&row, 0)?, get(&row, 1)?, number))).transpose()
}

fn first_attempt(job_no: i64, now: i64, sequence: Sequence) -> AttemptKey {
    AttemptKey {
        scheduled_at: Timestamp::from_micros(now),
        job_no: JobNo(job_no),
        sequence,
        attempt: AttemptNo::FIRST,
    }
}

async fn run(connection: &Connection, args: &Args) -> Tried<Triggered> {
    let rows = connection.rows(sql!("command_lock_jobs"), &[&vec![args.id], &args.tenant]).await?;
    let Some(row) = rows.first() else { return Ok(Triggered::NotFound) };
    connection.rows(sql!("command_lock_states"), &[&vec![get::<i64>(row, 0)?]]).await?;
    let now = read_clock(connection, args.now).await?;
    let Some(job) = get_job(connection, args.id, args.tenant).await? else {
        return Ok(Triggered::NotFound);
    };
    if let Err(refusal) = job.facts().apply(Command::Trigger) {
        return Ok(Triggered::NotAllowed(refusal));
    }
    if args.idle_only && job.live > 0 {
        return Ok(Triggered::Busy);
    }
    let is_busy = !job.definition.overlap.may_start(job.live);
    if let Some(wanted) = DedupClaim::by_run(&job, DedupPurpose::Run, Timestamp::from_micros(now))
        && let Some(held) = take_key(connection, args, &wanted, is_busy).await?
    {
        return duplicate(connection, args, held).await;
    }
    if is_busy {
        return Ok(Triggered::Busy);
    }
    let keys = free_keys(connection, Origin::Trigger, &[(&job, args.n)], now).await?;
    let key = *keys.first().ok_or(Failure::Again)?;
    let (at, job, number, _) = key_columns(key);
    connection.change(sql!("trigger_open"), &[&job, &at, &number, &args.priority]).await?;
    Ok(Triggered::Accepted(key))
}

/// Takes the deduplication key for a run, or returns the job that holds the key and blocks the run.
/// A run that cannot start for another reason takes no deduplication key.
async fn take_key(
    connection: &Connection,
    args: &Args,
    wanted: &DedupClaim,
    is_busy: bool,
) -> Tried<Option<Held>> {
    let now = wanted.after.taken_at;
    if is_busy {
        let keys = Keys::read_holders(connection, args.tenant, [wanted.key].into_iter()).await?;
        return Ok(keys.kept_out_by(wanted, now));
    }
    let key = [(wanted.key, wanted.job)].into_iter();
    let mut keys = Keys::lock(connection, args.tenant, key, args.now).await?;
    let held = keys.kept_out_by(wanted, now);
    if held.is_none() {
        keys.take(wanted);
        keys.write(connection).await?;
    }
    Ok(held)
}

/// Returns the run that is reported in place of a rejected duplicate trigger.
async fn duplicate(connection: &Connection, args: &Args, held: Held) -> Tried<Triggered> {
    let job = get_job(connection, held.job.0, args.tenant).await?;
    let run = match job {
        Some(job) => run_instead(connection, job.no, job.running).await?,
        None => None,
    };
    Ok(Triggered::Duplicate { job: held.job, run })
}

/// Returns one unused attempt key per job for runs that start now. Each attempt key has the given
/// sequence number or the next unused one. A run of a paused job gets a scheduled time after the
/// pause, because a pause stops runs that were scheduled before it.
pub(crate) async fn free_keys(
    connection: &Connection,
    origin: Origin,
    wanted: &[(&Job, u32)],
    now: i64,
) -> Tried<Vec<AttemptKey>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let begins_at = |job: &Job| {
        let after = job.stopped_at.map(|stopped_at| stopped_at.as_micros().saturating_add(1));
        after.map_or(now, |after| now.max(after))
    };
    let at = column(wanted, |(job, _)| begins_at(job));
    let jobs = column(wanted, |(job, _)| job.no.0);
    let rows = connection.rows(sql!("trigger_sequences_at"), &[&at, &jobs]).await?;
    let taken = rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?)));
    let taken = taken.collect::<Tried<HashSet<(i64, i32)>>>()?;
    let free = |job: &Job, n: u32| {
        let numbers = (0..Sequence::NUMBERS).map(|more| n.wrapping_add(more));
        numbers
            .map(|n| Sequence::new(origin, n))
            .find(|candidate| !taken.contains(&(job.no.0, sequence(*candidate))))
            .unwrap_or(Sequence::new(origin, n))
    };
    let keys = wanted.iter().zip(at);
    Ok(keys.map(|((job, n), at)| first_attempt(job.no.0, at, free(job, *n))).collect())
}

#[cfg(test)]
mod tests {
    use evenkeel_core::overlap::OverlapPolicy;

    #[test]
    fn an_idle_job_may_start_under_every_overlap_policy() {
        use OverlapPolicy::{Allow, Queue, Replace, Skip};
        for policy in [Skip, Queue, Allow, Replace] {
            assert!(policy.may_start(0));
        }
    }
}
