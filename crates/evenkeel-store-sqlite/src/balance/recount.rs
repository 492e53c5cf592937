//! Walks over jobs: those that nobody has counted, and those that count for too much or too little.

use evenkeel_core::balance::Load;
use evenkeel_core::{Definition, JobNo, Span, TenantNo, Timestamp};
use evenkeel_store::Recounted;
use rusqlite::{Connection, OptionalExtension, params};

use super::load_profiles::{Counted, Counts};
use crate::error::Answer;

/// A job from before load was counted.
pub(super) struct Uncounted {
    job: i64,
    tenant: TenantNo,
    generation: i32,
    load: Option<Load>,
}

/// Jobs that nobody has counted, and what they count for. One that cannot be read counts for
/// nothing: it must not keep the others from being counted.
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
    for one in found {
        let Counted { key, cost, is_stated } = Counted::as_load(one.load.as_ref());
        let changed = statement.execute(params![one.job, one.generation, key, cost, is_stated])?;
        if changed == 1 {
            counts.add(one.tenant, one.load.as_ref());
        }
    }
    drop(statement);
    counts.write(connection)
}

/// Jobs that count for too much or too little, or should not count, and where the walk goes on.
pub(super) fn look(
    db: &Connection,
    after: Option<JobNo>,
    limit: u32,
) -> Answer<(Vec<i64>, Option<JobNo>)> {
    let mut statement = db.prepare_cached(sql!("recount_load_find"))?;
    let mut rows = statement.query(params![after.map_or(i64::MIN, |job| job.0), limit])?;
    let (mut off, mut last, mut looked_at) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let job: i64 = row.get(0)?;
        if row.get(1)? {
            off.push(job);
        }
        last = Some(JobNo(job));
        looked_at += 1;
    }
    Ok((off, last.filter(|_| looked_at == limit)))
}

/// Counts them for what their runs take, and no more if they have no next time.
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
        // Somebody else may have changed it since it was looked at.
        let Some((tenant, key, cost, takes)) = found else { continue };
        if let Some(takes) = takes {
            connection.prepare_cached(sql!("recount_load"))?.execute(params![job, takes])?;
            counts.recount_load(tenant, key, takes - cost);
        } else {
            counts.recount(connection, JobNo(*job), None)?;
        }
        changed += 1;
    }
    counts.write(connection)?;
    Ok(Recounted { next, changed })
}
