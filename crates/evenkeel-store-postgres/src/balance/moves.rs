//! Moves jobs to other start times, one batch per transaction, and reads the jobs that may be
//! moved.

use std::collections::{HashMap, HashSet};

use evenkeel_core::balance::{LoadProfileKey, Move, Placement};
use evenkeel_core::{JobId, JobNo, Slot};
use evenkeel_store::{MoveBatch, Moved};
use tokio_postgres::Row;

use super::load_profiles::Counts;
use super::rebalances::part_number;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{array, column, get, maybe_time, span, time};

pub(super) async fn move_jobs(
    connection: &Connection,
    tenant: i32,
    batch: &MoveBatch,
    now: Option<i64>,
) -> Tried<Moved> {
    let part = part_number(batch.part);
    let params: Params<'_> = &[&batch.rebalance, &tenant, &part, &now];
    let Some(row) = connection.maybe_row(sql!("move_jobs_lock"), params).await? else {
        return Ok(Moved::Stopped);
    };
    let now: i64 = get(&row, 0)?;
    let (moved, counts) = write(connection, tenant, batch, now).await?;
    let made = column(&batch.moves, |planned| moved.contains(&planned.job.0));
    let not_made = i64::try_from(made.len() - moved.len()).unwrap_or(i64::MAX);
    let moved = i64::try_from(moved.len()).unwrap_or(i64::MAX);
    let params: Params<'_> = &[&batch.rebalance, &part, &made, &moved, &not_made, &now];
    connection.change(sql!("move_jobs_done"), params).await?;
    counts.write(connection).await?;
    Ok(Moved::Done(made))
}

/// Moves the jobs whose new load profile is in the batch, in lock order. Returns the moved jobs and
/// the changes of the load profile counts.
async fn write<'a>(
    connection: &Connection,
    tenant: i32,
    batch: &'a MoveBatch,
    now: i64,
) -> Tried<(HashSet<i64>, Counts<'a>)> {
    let texts: HashMap<LoadProfileKey, &str> =
        batch.profiles.iter().map(|(key, profile)| (*key, profile.as_str())).collect();
    let moves = batch.moves.iter().filter(|planned| texts.contains_key(&planned.profile));
    let mut sorted: Vec<&Move> = moves.collect();
    sorted.sort_unstable_by_key(|planned| planned.job);
    let params: Params<'_> = &[
        &now,
        &tenant,
        &batch.even_live,
        &column(&sorted, |planned| planned.job.0),
        &column(&sorted, |planned| planned.generation),
        &column(&sorted, |planned| planned.old_at.as_micros()),
        &column(&sorted, |planned| planned.new_at.as_micros()),
        &column(&sorted, |planned| Slot::of(planned.new_at).0),
        &column(&sorted, |planned| planned.profile.0),
    ];
    let row = connection.row(sql!("move_jobs"), params).await?;
    let moved: Vec<i64> = array(&row, "moved")?;
    let left: Vec<Option<i64>> = array(&row, "left_profiles")?;
    let joined: Vec<i64> = array(&row, "joined_profiles")?;
    let costs: Vec<i64> = array(&row, "costs")?;
    let mut counts = Counts::default();
    for ((left, joined), cost) in left.iter().zip(&joined).zip(&costs) {
        let Some(left) = left else { continue };
        counts.remove_from(tenant, *left, *cost);
        let text = texts.get(&LoadProfileKey(*joined)).copied().unwrap_or_default();
        counts.add_to(tenant, *joined, text, *cost);
    }
    Ok((moved.into_iter().collect(), counts))
}

/// If a range of job numbers holds more than this many numbers per job of the tenant, the jobs are
/// looked up one by one.
const OTHERS_MAX: i64 = 8;
/// Minimum number of jobs that one round of the scan reads. Without a minimum, a tenant with many
/// stopped jobs would need many small scans to fill a page.
const SCANNED_MIN: i64 = 1000;

pub(super) async fn placements(
    connection: &Connection,
    tenant: i32,
    mut after: i64,
    limit: usize,
) -> Tried<Vec<Placement>> {
    let mut found = Vec::new();
    // The scan does not know which jobs are stopped, so it is repeated until the page has enough
    // active jobs.
    while found.len() < limit {
        let left = i64::try_from(limit - found.len()).unwrap_or(i64::MAX);
        let scanned = left.max(SCANNED_MIN);
        let row = connection.row(sql!("placements_bounds"), &[&tenant, &after, &scanned]).await?;
        let (first, last): (Option<i64>, Option<i64>) = (get(&row, "first")?, get(&row, "last")?);
        let (Some(first), Some(last)) = (first, last) else { break };
        let seen: i64 = get(&row, "jobs")?;
        let sql = if (last - first) / OTHERS_MAX <= seen {
            sql!("placements")
        } else {
            sql!("placements_of_few")
        };
        for row in connection.rows(sql, &[&tenant, &first, &last]).await? {
            found.push(read_placement(&row)?);
        }
        if seen < scanned {
            break;
        }
        after = last;
    }
    found.truncate(limit);
    Ok(found)
}

pub(super) fn read_placement(row: &Row) -> Tried<Placement> {
    Ok(Placement {
        job: JobNo(get(row, "job_no")?),
        seed: JobId(get(row, "id")?).seed(),
        generation: get(row, "generation")?,
        next_at: time(row, "next_at")?,
        last_fired_at: maybe_time(row, "last_fired_at")?,
        placed_at: time(row, "since")?,
        is_live: get(row, "is_live")?,
        profile: Some(get(row, "load_profile")?).filter(|key| *key != 0).map(LoadProfileKey),
        cost: span(get(row, "cost_us")?),
    })
}
