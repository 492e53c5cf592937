//! Triggers runs.

use evenkeel_core::dedup::DedupPurpose;
use evenkeel_core::status::Command;
use evenkeel_core::{AttemptKey, JobId, JobNo, Origin, Sequence, Shard, Span, TenantNo, Timestamp};
use evenkeel_store::{DedupClaim, Job, StoreError, Trigger, Triggered};
use rusqlite::Connection;

use super::read;
use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;
use crate::{conditions, dedup};

pub(crate) fn trigger(
    connection: &Connection,
    tenant: TenantNo,
    id: JobId,
    request: Trigger,
    now: Timestamp,
) -> Answer<Triggered> {
    let Some(job) = read::get(connection, tenant, id)? else { return Ok(Triggered::NotFound) };
    if let Err(refusal) = job.facts().apply(Command::Trigger) {
        return Ok(Triggered::NotAllowed(refusal));
    }
    if request.idle_only && job.live > 0 {
        return Ok(Triggered::Busy);
    }
    let claim = DedupClaim::by_run(&job, DedupPurpose::Run, now);
    if let Some(holder) = dedup::holder_of(connection, tenant, claim.as_ref(), now)? {
        let run = dedup::run_instead(connection, holder.no)?;
        return Ok(Triggered::Duplicate { job: holder.id, run });
    }
    if !job.definition.overlap.may_start(job.live) {
        return Ok(Triggered::Busy);
    }
    dedup::take(connection, tenant, claim.as_ref(), job.no, now)?;
    let key = start_run(connection, &job, Origin::Trigger, request, now)?;
    conditions::touch(connection, job.no)?;
    Ok(Triggered::Accepted(key))
}

/// Starts a run whose first attempt is a delayed attempt that is due now. If the job is paused, the
/// scheduled time of the run is set after the pause, because a pause stops runs that were scheduled
/// before it.
pub(crate) fn start_run(
    connection: &Connection,
    job: &Job,
    origin: Origin,
    request: Trigger,
    now: Timestamp,
) -> Answer<AttemptKey> {
    let tick = Span::from_micros(1);
    let at = job.stopped_at.map_or(now, |stopped_at| now.max(stopped_at.saturating_add(tick)));
    let sequence = free_sequence(connection, job.no, (origin, request.n), at)?;
    let key = AttemptKey { sequence, ..AttemptKey::regular(job.no, at) };
    let delayed: Params<'_> = &[&Shard::of(job.no), &at, &key, &job.tenant, &request.priority];
    connection.run(sql!("trigger_delayed"), delayed)?;
    connection.run(sql!("trigger_open"), &[&job.no])?;
    Ok(key)
}

/// Returns sequence number `n` of the run's origin, or the next sequence number that no other run
/// of this microsecond has.
fn free_sequence(
    connection: &Connection,
    job: JobNo,
    (origin, n): (Origin, u32),
    now: Timestamp,
) -> Answer<Sequence> {
    let mut is_taken = connection.prepare_cached(sql!("trigger_is_taken"))?;
    for step in 0..Sequence::NUMBERS {
        let sequence = Sequence::new(origin, n.wrapping_add(step));
        if !is_taken.value::<bool>(&[&now, &job, &sequence])? {
            return Ok(sequence);
        }
    }
    Err(StoreError::Refused("every trigger number of this microsecond is in use: retry".into())
        .into())
}
