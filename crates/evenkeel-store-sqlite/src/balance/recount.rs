//! Recounts the load of jobs whose stored cost differs from their average run duration.

use evenkeel_core::JobNo;
use evenkeel_store::Recounted;
use rusqlite::Connection;

use super::load_profiles::Counts;
use crate::connection::RunSql;
use crate::error::Answer;
use crate::rows::next_after;

/// Returns the jobs to recount, and the position at which the next step starts.
pub(super) fn find_outdated(
    db: &Connection,
    after: Option<JobNo>,
    limit: u32,
) -> Answer<(Vec<JobNo>, Option<JobNo>)> {
    let after = after.unwrap_or(JobNo(i64::MIN));
    let read = db.rows(sql!("recount_load_find"), &[&after, &limit], |row| {
        Ok((JobNo(row.get(0)?), row.get::<_, bool>(1)?))
    })?;
    let next = next_after(&read, limit).map(|(job, _)| *job);
    let outdated = read.into_iter().filter(|(_, is_outdated)| *is_outdated);
    Ok((outdated.map(|(job, _)| job).collect(), next))
}

/// Sets the cost of these jobs to their average run duration, and stops counting jobs that have no
/// next run time.
pub(super) fn recount_load(
    connection: &Connection,
    jobs: &[JobNo],
    next: Option<JobNo>,
) -> Answer<Recounted> {
    let mut counts = Counts::default();
    let mut changed = 0;
    for job in jobs {
        let found: Option<(i32, i64, i64, Option<i64>)> =
            connection.maybe_row(sql!("recount_load_of"), &[job], |row| Ok(row.try_into()?))?;
        // The job may have changed since it was read.
        let Some((tenant, key, cost, takes)) = found else { continue };
        if let Some(takes) = takes {
            connection.run(sql!("recount_load"), &[job, &takes])?;
            counts.change_cost(tenant, key, takes - cost);
        } else {
            counts.recount(connection, *job, None)?;
        }
        changed += 1;
    }
    counts.write(connection)?;
    Ok(Recounted { next, changed })
}
