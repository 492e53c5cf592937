//! Reads all attempts of given runs.

use evenkeel_core::{AttemptKey, TenantNo};
use evenkeel_store::{RunAttempt, sql_time};
use rusqlite::{Connection, Row};

use crate::connection::{Params, RunPrepared};
use crate::error::Answer;
use crate::rows::attempt_from;

fn run_attempt_from(row: &Row<'_>) -> Answer<RunAttempt> {
    Ok(RunAttempt { attempt: attempt_from(row)?, due: sql_time(row.get("due")?) })
}

pub(super) fn attempts_of(
    connection: &Connection,
    tenant: TenantNo,
    runs: &[AttemptKey],
    newest: u32,
) -> Answer<Vec<RunAttempt>> {
    let mut started = connection.prepare_cached(sql!("attempts_of_runs"))?;
    let mut waiting = connection.prepare_cached(sql!("attempts_of_runs_waiting"))?;
    let mut found = Vec::new();
    for run in runs {
        let of_run: Params<'_> = &[&run.scheduled_at, &run.job_no, &run.sequence, &tenant];
        let limited: Params<'_> = &[&of_run, &newest];
        found.extend(started.rows(limited, run_attempt_from)?);
        found.extend(waiting.rows(of_run, run_attempt_from)?);
    }
    found.sort_unstable_by_key(|one| one.attempt.key);
    Ok(found)
}
