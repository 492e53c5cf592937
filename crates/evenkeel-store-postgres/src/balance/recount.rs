//! Recounts the load that jobs add to their load profiles.

use evenkeel_core::JobNo;
use evenkeel_store::Recounted;

use super::load_profiles::Counts;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{array, count, get};

/// Maximum number of unused load profiles that are deleted together.
const DELETED_MAX: i64 = 10_000;

pub(super) async fn recount_load(
    connection: &Connection,
    after: Option<JobNo>,
    limit: u32,
) -> Tried<Recounted> {
    let (after, limit) = (after.map_or(i64::MIN, |job| job.0), i64::from(limit));
    let row = connection.row(sql!("recount_load"), &[&after, &limit]).await?;
    let last: Option<i64> = get(&row, "last")?;
    let is_full = get::<i64>(&row, "scanned")? >= limit;
    let next = last.filter(|_| is_full).map(JobNo);
    let to_change: Vec<i64> = array(&row, "to_change")?;
    let to_end: Vec<i64> = array(&row, "to_end")?;
    let mut changed = match &to_change[..] {
        [] => 0,
        jobs => connection.transaction(change(connection, jobs)).await?,
    };
    if !to_end.is_empty() {
        let ended = count(&connection.row(sql!("recount_load_end"), &[&to_end]).await?, 0)?;
        changed += u32::try_from(ended).unwrap_or(u32::MAX);
    }
    if next.is_none() {
        connection.change(sql!("recount_load_delete"), &[&DELETED_MAX]).await?;
    }
    Ok(Recounted { next, changed })
}

/// Sets the cost of jobs to their average run duration.
async fn change(connection: &Connection, jobs: &[i64]) -> Tried<u32> {
    let row = connection.row(sql!("recount_load_change"), &[&jobs]).await?;
    let tenants: Vec<i32> = array(&row, "tenants")?;
    let profiles: Vec<i64> = array(&row, "profiles")?;
    let more: Vec<i64> = array(&row, "increases")?;
    let mut counts = Counts::default();
    for ((tenant, profile), more) in tenants.iter().zip(&profiles).zip(&more) {
        counts.change_cost(*tenant, *profile, *more);
    }
    counts.write(connection).await?;
    Ok(u32::try_from(tenants.len()).unwrap_or(u32::MAX))
}
