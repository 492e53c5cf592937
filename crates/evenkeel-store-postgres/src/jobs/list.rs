//! Lists of jobs.

use evenkeel_core::JobNo;
use evenkeel_store::{Job, JobFilter, Page, PageRequest, Scope, StoreError};
use futures::future::try_join;

use super::read::read_job;
use crate::PostgresStore;
use crate::columns::count;
use crate::error::Tried;

/// Jobs that fit a filter are counted one by one up to here.
const COUNT_MAX: i64 = 10_000;

pub(super) async fn list_jobs(
    store: &PostgresStore,
    scope: &Scope,
    filter: &JobFilter,
    page: PageRequest<JobNo>,
) -> Result<Page<Job, JobNo>, StoreError> {
    let args = (scope.tenant.0, filter.clone(), page);
    store
        .api
        .run(args, |connection, args| async move {
            let (tenant, JobFilter { name_prefix, source_id, .. }, page) = &*args;
            let after = page.after.map_or(i64::MIN, |job| job.0);
            // One more than asked for tells whether there is another page.
            let (offset, limit) = (i64::from(page.offset), i64::from(page.limit) + 1);
            let is_filtered = name_prefix.is_some() || source_id.is_some();
            let total = async {
                if is_filtered {
                    let sql = include_str!("../../queries/list_jobs_count.sql");
                    connection.row(sql, &[tenant, name_prefix, source_id, &COUNT_MAX]).await
                } else {
                    let sql = include_str!("../../queries/list_jobs_total.sql");
                    connection.row(sql, &[tenant]).await
                }
            };
            let (rows, total) = try_join(
                connection.rows(
                    include_str!("../../queries/list_jobs.sql"),
                    &[tenant, &after, name_prefix, source_id, &offset, &limit],
                ),
                total,
            )
            .await?;
            let total = count(&total, 0)?;
            let mut items = rows.iter().map(read_job).collect::<Tried<Vec<Job>>>()?;
            let is_last = items.len() <= page.limit as usize;
            items.truncate(page.limit as usize);
            Ok(Page {
                next: if is_last { None } else { items.last().map(|job| job.no) },
                total_is_estimate: is_filtered && total >= COUNT_MAX.cast_unsigned(),
                total,
                items,
            })
        })
        .await
}
