//! Ends one run: what waits of it is withdrawn, what runs is asked to end.

use evenkeel_core::run::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptKey, AttemptNo, TenantNo};
use evenkeel_store::{Now, RunCancelled};
use rusqlite::{Connection, OptionalExtension, params};

use crate::clock::resolve;
use crate::ends::{ask_to_end, record_withdrawn};
use crate::error::Answer;
use crate::fire::link_in;
use crate::rows::{key_params, link};
use crate::watch;

pub(crate) fn cancel_run(
    connection: &Connection,
    tenant: TenantNo,
    key: AttemptKey,
    now: Now,
) -> Answer<RunCancelled> {
    let (scheduled_at, job_no, sequence, _) = key_params(key);
    let chain = params![scheduled_at, job_no, sequence, tenant.0];
    let wake: Option<u16> = connection
        .prepare_cached(sql!("cancel_run_delayed"))?
        .query_row(chain, |row| row.get(0))
        .optional()?;
    let ready: Option<(u16, Option<i64>, Option<u32>)> = connection
        .prepare_cached(sql!("cancel_run_ready"))?
        .query_row(chain, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let withdrawn = match (wake, ready) {
        (Some(attempt), _) => {
            let key = key.with_attempt(AttemptNo(attempt));
            Some((key, link_in(connection, key)?))
        }
        (None, Some((attempt, prev_at, prev_sequence))) => {
            let key = key.with_attempt(AttemptNo(attempt));
            Some((key, link(prev_at, prev_sequence)))
        }
        (None, None) => None,
    };
    if let Some((key, prev)) = withdrawn {
        record_withdrawn(connection, key, tenant, prev, Outcome::Cancelled, resolve(now))?;
        connection
            .prepare_cached(sql!("command_close_runs"))?
            .query_row(params![job_no, 1, AttemptStatus::Cancelled.code()], |_| Ok(()))
            .optional()?;
        watch::tell_of_end(connection, key.job_no)?;
        return Ok(RunCancelled::Withdrawn(key));
    }
    let last: Option<(u16, i16, Option<i32>)> = connection
        .prepare_cached(sql!("cancel_run_last"))?
        .query_row(chain, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    match last {
        None => Ok(RunCancelled::NotFound),
        Some((attempt, status, Some(node))) if status == AttemptStatus::Running.code() => {
            let key = key.with_attempt(AttemptNo(attempt));
            ask_to_end(connection, node, key, false)?;
            Ok(RunCancelled::Asked(key))
        }
        Some(_) => Ok(RunCancelled::Over),
    }
}

/// Is the attempt to end? And if so, because it is superseded?
pub(super) fn is_asked_to_end(
    connection: &Connection,
    node: i32,
    key: AttemptKey,
) -> Answer<Option<bool>> {
    let (scheduled_at, job_no, sequence, attempt) = key_params(key);
    Ok(connection
        .prepare_cached(sql!("cancel_run_is_asked"))?
        .query_row(params![node, scheduled_at, job_no, sequence, attempt], |row| row.get(0))
        .optional()?)
}
