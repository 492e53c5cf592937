//! Runs that somebody asks for.

use std::collections::HashSet;

use evenkeel_core::{Attempt, Definition, JobId, JobNo, Origin, RunKey, Sequence, Timestamp};
use evenkeel_store::{Now, Scope, Standing, StoreError, Triggered};
use uuid::Uuid;

use crate::PostgresStore;
use crate::columns::{get, micros, sequence};
use crate::error::Tried;
use crate::pool::Connection;

struct Args {
    tenant: i32,
    id: Uuid,
    n: u32,
    now: Option<i64>,
}

pub(super) async fn trigger(
    store: &PostgresStore,
    scope: &Scope,
    id: JobId,
    n: u32,
    now: Now,
) -> Result<Triggered, StoreError> {
    let args = Args { tenant: scope.tenant.0, id: id.0, n, now: micros(now.literal()) };
    store
        .api
        .run(args, |connection, args| async move {
            connection.transaction(run(&connection, &args)).await
        })
        .await
}

async fn run(connection: &Connection, args: &Args) -> Tried<Triggered> {
    let lock = include_str!("../../queries/lock_for_trigger.sql");
    let Some(row) = connection.maybe_row(lock, &[&args.now, &args.id, &args.tenant]).await? else {
        return Ok(Triggered::NotFound);
    };
    if get::<i16>(&row, 1)? == Standing::Cancelled as i16 {
        return Ok(Triggered::Cancelled);
    }
    let definition: Definition = serde_json::from_str(get(&row, 2)?)
        .map_err(|error| StoreError::corrupt(format!("job {}", args.id), "definition", error))?;
    if !definition.overlap.may_start(get::<i32>(&row, 3)?.max(0).cast_unsigned()) {
        return Ok(Triggered::Busy);
    }
    let (job_no, now): (i64, i64) = (get(&row, 0)?, get(&row, 4)?);
    let sql = include_str!("../../queries/sequences_at.sql");
    let rows = connection.rows(sql, &[&now, &job_no]).await?;
    let taken = rows.iter().map(|row| Ok(get(row, 0)?)).collect::<Tried<HashSet<i32>>>()?;
    let numbers = (0..Sequence::NUMBERS).map(|more| args.n.wrapping_add(more));
    let free = numbers
        .map(|n| Sequence::new(Origin::Trigger, n))
        .find(|one| !taken.contains(&sequence(*one)))
        .unwrap_or(Sequence::new(Origin::Trigger, args.n));
    let sql = include_str!("../../queries/trigger.sql");
    connection.change(sql, &[&job_no, &now, &sequence(free)]).await?;
    Ok(Triggered::Accepted(RunKey {
        scheduled_at: Timestamp::from_micros(now),
        job_no: JobNo(job_no),
        sequence: free,
        attempt: Attempt::FIRST,
    }))
}
