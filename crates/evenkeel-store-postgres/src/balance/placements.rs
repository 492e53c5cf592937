//! Jobs, as far as moving them is concerned.

use evenkeel_core::balance::{LoadProfileKey, Placement};
use evenkeel_core::{JobId, JobNo};
use evenkeel_store::{Scope, StoreError};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{get, maybe_time, span, time};
use crate::error::Tried;

/// If more than so many jobs are passed over for each of the tenant's, those are looked up one by one.
const PASSED_MAX: i64 = 8;
/// At least so many jobs are looked at in one round: where many are stopped or over, the few that a page
/// still lacks would otherwise be looked for a few at a time.
const LOOKED_AT_MIN: i64 = 1000;

pub(super) async fn placements(
    store: &PostgresStore,
    scope: &Scope,
    after: Option<JobNo>,
    limit: u32,
) -> Result<Vec<Placement>, StoreError> {
    let args = (scope.tenant.0, after.map_or(i64::MIN, |job| job.0), limit as usize);
    store
        .api
        .run(args, |connection, args| async move {
            let (tenant, mut after, limit) = *args;
            let mut found = Vec::new();
            // Jobs that are stopped or over are seen only in their states: the page is filled up.
            while found.len() < limit {
                let left = i64::try_from(limit - found.len()).unwrap_or(i64::MAX);
                let looked_at = left.max(LOOKED_AT_MIN);
                let sql = sql!("placements_bounds");
                let row = connection.row(sql, &[&tenant, &after, &looked_at]).await?;
                let (first, last): (Option<i64>, Option<i64>) = (get(&row, 0)?, get(&row, 1)?);
                let (Some(first), Some(last)) = (first, last) else { break };
                let seen: i64 = get(&row, 2)?;
                let sql = if (last - first) / PASSED_MAX <= seen {
                    sql!("placements")
                } else {
                    sql!("placements_of_few")
                };
                for row in connection.rows(sql, &[&tenant, &first, &last]).await? {
                    found.push(read_placement(&row)?);
                }
                if seen < looked_at {
                    break;
                }
                after = last;
            }
            found.truncate(limit);
            Ok(found)
        })
        .await
}

pub(super) async fn placements_of(
    store: &PostgresStore,
    scope: &Scope,
    jobs: &[JobNo],
) -> Result<Vec<Placement>, StoreError> {
    let jobs: Vec<i64> = jobs.iter().map(|job| job.0).collect();
    store
        .api
        .run((scope.tenant.0, jobs), |connection, args| async move {
            let (tenant, jobs) = &*args;
            let sql = sql!("placements_of");
            connection.rows(sql, &[tenant, jobs]).await?.iter().map(read_placement).collect()
        })
        .await
}

fn read_placement(row: &Row) -> Tried<Placement> {
    Ok(Placement {
        job: JobNo(get(row, 0)?),
        seed: JobId(get(row, 1)?).seed(),
        generation: get(row, 2)?,
        next_at: time(row, 3)?,
        last_fired_at: maybe_time(row, 4)?,
        placed_at: time(row, 5)?,
        is_live: get(row, 6)?,
        rhythm: get::<Option<i64>>(row, 7)?.filter(|key| *key != 0).map(LoadProfileKey),
        cost: span(get(row, 8)?),
    })
}
