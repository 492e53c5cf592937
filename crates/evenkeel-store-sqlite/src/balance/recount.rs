//! Counts jobs that are not counted yet, and jobs whose cost no longer fits.

use evenkeel_core::balance::Load;
use evenkeel_core::{Definition, JobNo, Span, TenantNo, Timestamp};
use evenkeel_store::Recounted;
use rusqlite::{Connection, OptionalExtension, params};

use super::load_profiles::{Counted, Counts};
use crate::error::Answer;

/// A job whose load is not counted yet.
pub(super) struct Uncounted {
    job: i64,
    tenant: TenantNo,
    generation: i32,
    load: Option<Load>,
}

/// Returns uncounted jobs and their load. A job that cannot be read gets no load, so that it does
/// not block the others.
pub(super) fn find_uncounted(db: &Connection, limit: u32) -> Answer<Vec<Uncounted>> {
    let mut statement = db.prepare_cached(sql!("count_uncounted"))?;
    let mut rows = statement.query([limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let average: Option<i64> = row.get("average_us")?;
        let average = average.map(|micros| Span::from_micros(micros.unsigned_abs()));
        let next_at: Option<i64> = row.get("next_at")?;
        let load = next_at.and_then(|next_at| {
            let text = row.get_ref("definition").ok()?.as_str().ok()?;
            let definition: Definition = serde_json::from_str(text).ok()?;
            Load::of(&definition, average, Timestamp::from_micros(next_at))
        });
        found.push(Uncounted {
            job: row.get("job_no")?,
            tenant: TenantNo(row.get("tenant_no")?),
            generation: row.get("generation")?,
            load,
        });
    }
    Ok(found)
}

pub(super) fn count(connection: &Connection, found: &[Uncounted]) -> Answer<()> {
    let mut counts = Counts::default();
    let mut statement = connection.prepare_cached(sql!("count_uncounted_write"))?;
    for uncounted in found {
        let Counted { key, cost, is_stated } = Counted::as_load(uncounted.load.as_ref());
        let changed = statement.execute(params![
            uncounted.job,
            uncounted.generation,
            key,
            cost,
            is_stated
        ])?;
        if changed == 1 {
            counts.add(uncounted.tenant, uncounted.load.as_ref());
        }
    }
    drop(statement);
    counts.write(connection)
}

/// Returns the jobs to recount, and where the next step starts.
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

/// Sets the cost of these jobs to their average duration, and removes jobs without a next time from
/// the counts.
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
