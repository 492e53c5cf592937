//! Jobs, as far as moving them is concerned.

use evenkeel_core::balance::{Placement, RhythmKey};
use evenkeel_core::{JobId, JobNo};
use evenkeel_store::{Scope, StoreError};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{get, maybe_time, span, time};
use crate::error::Tried;

pub(super) async fn placements(
    store: &PostgresStore,
    scope: &Scope,
    after: Option<JobNo>,
    limit: u32,
) -> Result<Vec<Placement>, StoreError> {
    let args = (scope.tenant.0, after.map_or(i64::MIN, |job| job.0), i64::from(limit));
    store
        .api
        .run(args, |connection, args| async move {
            let (tenant, after, limit) = &*args;
            let sql = include_str!("../../queries/placements.sql");
            connection
                .rows(sql, &[tenant, after, limit])
                .await?
                .iter()
                .map(read_placement)
                .collect()
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
            let sql = include_str!("../../queries/placements_of.sql");
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
        rhythm: get::<Option<i64>>(row, 7)?.filter(|key| *key != 0).map(RhythmKey),
        cost: span(get(row, 8)?),
    })
}
