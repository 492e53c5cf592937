//! How many jobs are not well, and which.

use evenkeel_core::condition::{Level, Reason};
use evenkeel_core::{JobId, JobNo};
use evenkeel_store::{
    AtRisk, ConditionCounts, Page, PageRequest, RiskCursor, RiskFilter, Scope, StoreError,
};
use futures::future::try_join;
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{count, get, time};
use crate::error::Tried;

pub(super) async fn condition_counts(
    store: &PostgresStore,
    scope: &Scope,
) -> Result<ConditionCounts, StoreError> {
    store
        .api
        .run(scope.tenant.0, |connection, tenant| async move {
            let sql = sql!("condition_counts");
            let row = connection.maybe_row(sql, &[&*tenant]).await?;
            row.as_ref().map_or(Ok(ConditionCounts::default()), read_counts)
        })
        .await
}

pub(super) async fn all_condition_counts(
    store: &PostgresStore,
) -> Result<ConditionCounts, StoreError> {
    store
        .api
        .run((), |connection, _| async move {
            let sql = sql!("all_condition_counts");
            read_counts(&connection.row(sql, &[]).await?)
        })
        .await
}

fn read_counts(row: &Row) -> Tried<ConditionCounts> {
    let [jobs, warning, error, held] = [0, 1, 2, 3].map(|column| count(row, column));
    Ok(ConditionCounts { jobs: jobs?, warning: warning?, error: error?, held: held? })
}

pub(super) async fn list_at_risk(
    store: &PostgresStore,
    scope: &Scope,
    filter: RiskFilter,
    page: PageRequest<RiskCursor>,
) -> Result<Page<AtRisk, RiskCursor>, StoreError> {
    store
        .api
        .run((scope.tenant.0, filter.level, page), |connection, args| async move {
            let (tenant, level, page) = &*args;
            let (error_at, job) = page
                .after
                .map_or((i64::MIN, i64::MIN), |(error_at, job)| (error_at.as_micros(), job.0));
            let code = level.map(|level| level as i16);
            // One more than asked for tells whether there is another page.
            let (offset, limit) = (i64::from(page.offset), i64::from(page.limit) + 1);
            let (rows, counts) = try_join(
                connection
                    .rows(sql!("list_at_risk"), &[tenant, &error_at, &job, &code, &offset, &limit]),
                connection.maybe_row(sql!("condition_counts"), &[tenant]),
            )
            .await?;
            let counts = counts.as_ref().map_or(Ok(ConditionCounts::default()), read_counts)?;
            let mut items = rows.iter().map(read_at_risk).collect::<Tried<Vec<AtRisk>>>()?;
            let is_last = items.len() <= page.limit as usize;
            items.truncate(page.limit as usize);
            let last = items.last().filter(|_| !is_last);
            Ok(Page {
                next: last.map(|last| (last.error_at, last.no)),
                total: match level {
                    None => counts.warning + counts.error,
                    Some(Level::Ok) => 0,
                    Some(Level::Warning) => counts.warning,
                    Some(Level::Error) => counts.error,
                },
                total_is_estimate: false,
                items,
            })
        })
        .await
}

fn read_at_risk(row: &Row) -> Tried<AtRisk> {
    let no = JobNo(get(row, 0)?);
    let code: i16 = get(row, 3)?;
    let reason = usize::try_from(code).ok().and_then(|code| Reason::ALL.get(code)).copied();
    Ok(AtRisk {
        no,
        job: JobId(get(row, 1)?),
        name: get(row, 2)?,
        reason: reason.ok_or_else(|| {
            StoreError::corrupt(format!("job {no}"), "reason", format!("{code} is unknown"))
        })?,
        error_at: time(row, 4)?,
        since: time(row, 5)?,
    })
}
