//! Lists of attempts.

use evenkeel_core::{AttemptKey, JobId};
use evenkeel_store::{Attempt, AttemptFilter, Page, PageRequest, Scope, StoreError};
use futures::future::try_join;

use super::read::read_run;
use crate::PostgresStore;
use crate::columns::{attempt, count, get, sequence};
use crate::error::Tried;
use crate::pool::Connection;

/// A job's attempts are counted one by one up to here.
const JOB_COUNT_MAX: i64 = 1_000;
/// A tenant's attempts are counted one by one up to here.
const TENANT_COUNT_MAX: i64 = 10_000;

struct Args {
    tenant: i32,
    page: PageRequest<AttemptKey>,
}

impl Args {
    /// Everything up to the end of the page, and one more that tells whether there is another.
    fn reach(&self) -> i64 {
        i64::from(self.page.offset) + i64::from(self.page.limit) + 1
    }
}

pub(super) async fn list_runs(
    store: &PostgresStore,
    scope: &Scope,
    filter: AttemptFilter,
    page: PageRequest<AttemptKey>,
) -> Result<Page<Attempt, AttemptKey>, StoreError> {
    let args = (Args { tenant: scope.tenant.0, page }, filter.job);
    store
        .api
        .run(args, |connection, args| async move {
            match &*args {
                (args, None) => of_tenant(&connection, args).await,
                (args, Some(job)) => of_job(&connection, args, *job).await,
            }
        })
        .await
}

async fn of_tenant(connection: &Connection, args: &Args) -> Tried<Page<Attempt, AttemptKey>> {
    // Behind every key there is.
    let (at, job, bits, nth) = args.page.after.map_or((i64::MAX, 0, 0, 0), |key| {
        (key.scheduled_at.as_micros(), key.job_no.0, sequence(key.sequence), attempt(key))
    });
    let reach = args.reach();
    let (rows, total) = try_join(
        connection.rows(sql!("list_attempts"), &[&args.tenant, &at, &job, &bits, &nth, &reach]),
        connection.row(sql!("list_attempts_count"), &[&args.tenant, &TENANT_COUNT_MAX]),
    )
    .await?;
    let found = rows.iter().map(read_run).collect::<Tried<Vec<Attempt>>>()?;
    let total = count(&total, 0)?;
    Ok(cut(found, args, total, total >= TENANT_COUNT_MAX.cast_unsigned()))
}

async fn of_job(
    connection: &Connection,
    args: &Args,
    job: JobId,
) -> Tried<Page<Attempt, AttemptKey>> {
    let sql = sql!("list_attempts_job");
    let Some(row) = connection.maybe_row(sql, &[&job.0, &args.tenant]).await? else {
        return Ok(cut(Vec::new(), args, 0, false));
    };
    let (job_no, executions): (i64, i64) = (get(&row, 0)?, get(&row, 1)?);
    let found = walk(connection, job_no, args.page.after, args.reach()).await?;
    if args.page.after.is_none() && usize::try_from(args.reach()).is_ok_and(|n| found.len() < n) {
        let total = found.len() as u64;
        return Ok(cut(found, args, total, false));
    }
    let counted = if executions <= JOB_COUNT_MAX {
        walk(connection, job_no, None, JOB_COUNT_MAX + 1).await?.len() as u64
    } else {
        u64::MAX
    };
    let is_estimate = counted > JOB_COUNT_MAX.cast_unsigned();
    let total = if is_estimate { executions.cast_unsigned() } else { counted };
    Ok(cut(found, args, total, is_estimate))
}

/// A job's attempts after one of them, newest chain first.
async fn walk(
    connection: &Connection,
    job_no: i64,
    after: Option<AttemptKey>,
    limit: i64,
) -> Tried<Vec<Attempt>> {
    let from_at = after.map(|key| key.scheduled_at.as_micros());
    let from_sequence = after.map(|key| sequence(key.sequence));
    let before_attempt = after.map_or(i16::MAX, attempt);
    let sql = sql!("list_attempts_of_job");
    let rows =
        connection.rows(sql, &[&job_no, &from_at, &from_sequence, &before_attempt, &limit]).await?;
    let mut found = rows.iter().map(read_run).collect::<Tried<Vec<Attempt>>>()?;
    if usize::try_from(limit).is_ok_and(|limit| found.len() < limit) {
        // The links end where history was forgotten, but for two attempts.
        let oldest = found.iter().map(|run| run.key.scheduled_at.as_micros()).chain(from_at).min();
        let sql = sql!("list_attempts_kept");
        let kept = connection.rows(sql, &[&job_no, &oldest.unwrap_or(i64::MAX)]).await?;
        for row in &kept {
            found.push(read_run(row)?);
        }
    }
    Ok(found)
}

fn cut(
    found: Vec<Attempt>,
    args: &Args,
    total: u64,
    is_estimate: bool,
) -> Page<Attempt, AttemptKey> {
    let mut rest = found.into_iter().skip(args.page.offset as usize);
    let items: Vec<Attempt> = rest.by_ref().take(args.page.limit as usize).collect();
    let next = rest.next().and_then(|_| items.last().map(|run| run.key));
    Page { items, total, total_is_estimate: is_estimate, next }
}
