//! Recounts the load of jobs whose stored cost differs from their average run duration.

use evenkeel_core::JobNo;
use evenkeel_store::Recounted;
use rusqlite::{Connection, OptionalExtension, params};

use super::load_profiles::Counts;
use crate::error::Answer;

/// Returns the jobs to recount, and the position at which the next step starts.
pub(super) fn find_outdated(
    db: &Connection,
    after: Option<JobNo>,
    limit: u32,
) -> Answer<(Vec<i64>, Option<JobNo>)> {
    let mut statement = db.prepare_cached(sql!("recount_load_find"))?;
    let mut rows = statement.query(params![after.map_or(i64::MIN, |job| job.0), limit])?;
    let (mut outdated, mut last, mut read) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let job: i64 = row.get(0)?;
        if row.get(1)? {
            outdated.push(job);
        }
        last = Some(JobNo(job));
        read += 1;
    }
    Ok((outdated, last.filter(|_| read == limit)))
}

/// Sets the cost of these jobs to their average run duration, and stops counting jobs that have no
/// next run time.
pub(super) fn recount_load(
    connection: &Connection,
    jobs: &[i64],
    next: Option<JobNo>,
) -> Answer<Recounted> {
    let mut counts = Counts::default();
    let mut changed = 0;
    for job in jobs {
        let found: Option<(i32, i64, i64, Option<i64>)> = connection
            .prepare_cached(sql!("recount_load_of"))?
            .query_row([job], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .optional()?;
        // The job may have changed since it was read.
        let Some((tenant, key, cost, takes)) = found else { continue };
        if let Some(takes) = takes {
            connection.prepare_cached(sql!("recount_load"))?.execute(params![job, takes])?;
            counts.change_cost(tenant, key, takes - cost);
        } else {
            counts.recount(connection, JobNo(*job), None)?;
        }
        changed += 1;
    }
    counts.write(connection)?;
    Ok(Recounted { next, changed })
}
