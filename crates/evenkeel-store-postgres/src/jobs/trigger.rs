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
            match open_idle(&connection, &args).await? {
                Some(key) => Ok(Triggered::Accepted(key)),
                None => connection.transaction(run(&connection, &args)).await,
            }
        })
        .await
}

/// One round trip, and no more, on the way from a trigger to its start. `None` if the job is not
/// there or not idle, or the number is taken: then it takes a closer look.
async fn open_idle(connection: &Connection, args: &Args) -> Tried<Option<RunKey>> {
    let number = Sequence::new(Origin::Trigger, args.n);
    let sql = include_str!("../../queries/trigger.sql");
    let row =
        connection.maybe_row(sql, &[&args.now, &args.id, &args.tenant, &sequence(number)]).await?;
    row.map(|row| Ok(first_attempt(get(&row, 0)?, get(&row, 1)?, number))).transpose()
}

fn first_attempt(job_no: i64, now: i64, sequence: Sequence) -> RunKey {
    RunKey {
        scheduled_at: Timestamp::from_micros(now),
        job_no: JobNo(job_no),
        sequence,
        attempt: Attempt::FIRST,
    }
}

async fn run(connection: &Connection, args: &Args) -> Tried<Triggered> {
    let lock = include_str!("../../queries/trigger_lock.sql");
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
    let sql = include_str!("../../queries/trigger_sequences_at.sql");
    let rows = connection.rows(sql, &[&now, &job_no]).await?;
    let taken = rows.iter().map(|row| Ok(get(row, 0)?)).collect::<Tried<HashSet<i32>>>()?;
    let numbers = (0..Sequence::NUMBERS).map(|more| args.n.wrapping_add(more));
    let free = numbers
        .map(|n| Sequence::new(Origin::Trigger, n))
        .find(|one| !taken.contains(&sequence(*one)))
        .unwrap_or(Sequence::new(Origin::Trigger, args.n));
    let sql = include_str!("../../queries/trigger_open.sql");
    connection.change(sql, &[&job_no, &now, &sequence(free)]).await?;
    Ok(Triggered::Accepted(first_attempt(job_no, now, free)))
}

#[cfg(test)]
mod tests {
    use evenkeel_core::overlap::OverlapPolicy;

    #[test]
    fn an_idle_job_may_start_whatever_its_policy_as_the_statement_takes_for_granted() {
        use OverlapPolicy::{Allow, Queue, Replace, Skip};
        for policy in [Skip, Queue, Allow, Replace] {
            assert!(policy.may_start(0));
        }
    }
}
