//! Reading and listing pages.

use evenkeel_core::page::PageContent;
use evenkeel_core::{JobId, JobNo, PageId};
use evenkeel_store::text::{BEGINNING_CHARS_MAX, Needles, beginning};
use evenkeel_store::{
    Page, PageFilter, PageHit, PageNo, PageRequest, Scope, StoreError, StoredPage,
};
use futures::future::try_join;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::search::SearchScope;
use super::search::search;
use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get, time};

/// Lists of pages are counted and ranked exactly up to this number.
pub(super) const COUNT_MAX: i64 = 10_000;

pub(super) async fn list(
    store: &PostgresStore,
    scope: &Scope,
    filter: &PageFilter,
    page: PageRequest<PageNo>,
) -> Result<Page<PageHit, PageNo>, StoreError> {
    let args = (scope.tenant, filter.clone(), page);
    store
        .api
        .run(args, |connection, args| async move {
            let (tenant, filter, page) = &*args;
            let job = match filter.job {
                Some(id) => match find_job(&connection, tenant.0, id).await? {
                    Some(job) => Some(job),
                    None => return Ok(nothing()),
                },
                None => None,
            };
            let url_prefix = filter.url_prefix.as_ref();
            match &filter.query {
                Some(query) => {
                    let search_scope = job.map_or(SearchScope::Tenant(*tenant), SearchScope::Job);
                    let needles = Needles::of(query);
                    search(&connection, tenant.0, search_scope, &needles, url_prefix, *page).await
                }
                None => by_number(&connection, tenant.0, job, url_prefix, *page).await,
            }
        })
        .await
}

pub(super) fn nothing() -> Page<PageHit, PageNo> {
    Page { items: Vec::new(), total: 0, total_is_estimate: false, next: None }
}

async fn find_job(connection: &Connection, tenant: i32, id: JobId) -> Tried<Option<JobNo>> {
    let sql = sql!("find_job_no");
    let row = connection.maybe_row(sql, &[&id.0, &tenant]).await?;
    Ok(row.map(|row| get(&row, 0)).transpose()?.map(JobNo))
}

async fn by_number(
    connection: &Connection,
    tenant: i32,
    job: Option<JobNo>,
    url_prefix: Option<&String>,
    page: PageRequest<PageNo>,
) -> Tried<Page<PageHit, PageNo>> {
    let (listed, counted) = match job {
        None => (sql!("list_pages"), sql!("list_pages_count")),
        Some(_) => (sql!("list_pages_of_job"), sql!("list_pages_count_of_job")),
    };
    // The caller has checked that the job belongs to the tenant.
    let job = job.map(|job| job.0);
    let owner: &(dyn ToSql + Sync) = match &job {
        None => &tenant,
        Some(job) => job,
    };
    let after = page.after.map_or(0, |no| no.0);
    // One extra row shows whether there is another page.
    let (offset, limit) = (i64::from(page.offset), i64::from(page.limit) + 1);
    let (chars, most) = (BEGINNING_CHARS_MAX as i32, COUNT_MAX + 1);
    let (rows, total) = try_join(
        connection.rows(listed, &[owner, &after, &url_prefix, &offset, &limit, &chars]),
        connection.row(counted, &[owner, &url_prefix, &most]),
    )
    .await?;
    let shown = &rows[..rows.len().min(page.limit as usize)];
    let next = match shown.last() {
        Some(last) if rows.len() > shown.len() => Some(PageNo(get(last, 0)?)),
        _ => None,
    };
    let (total, most) = (count(&total, 0)?, COUNT_MAX.cast_unsigned());
    Ok(Page {
        items: shown.iter().map(hit).collect::<Tried<_>>()?,
        total: total.min(most),
        total_is_estimate: total > most,
        next,
    })
}

fn hit(row: &Row) -> Tried<PageHit> {
    Ok(PageHit {
        id: PageId(get(row, "id")?),
        job: JobId(get(row, "job_id")?),
        url: get(row, "url")?,
        title: get(row, "title")?,
        changed_at: time(row, "changed_at")?,
        seen_at: time(row, "seen_at")?,
        snippet: beginning(get(row, "beginning")?),
    })
}

async fn read_page(connection: &Connection, tenant: i32, id: PageId) -> Tried<Option<StoredPage>> {
    let sql = sql!("get_page");
    let row = connection.maybe_row(sql, &[&id.0, &tenant]).await?;
    row.as_ref().map(stored_page).transpose()
}

pub(super) async fn get_page(
    store: &PostgresStore,
    scope: &Scope,
    id: PageId,
) -> Result<Option<StoredPage>, StoreError> {
    let args = (scope.tenant.0, id);
    store
        .api
        .run(args, |connection, args| async move { read_page(&connection, args.0, args.1).await })
        .await
}

fn stored_page(row: &Row) -> Tried<StoredPage> {
    let id = PageId(get(row, "id")?);
    Ok(StoredPage {
        job: JobId(get(row, "job_id")?),
        content: PageContent {
            id,
            url: get(row, "url")?,
            title: get(row, "title")?,
            status: small(row, "status", id)?,
            content_type: get(row, "content_type")?,
            depth: small(row, "depth", id)?,
            content_hash: super::save::hash(get(row, "content_hash")?)?,
            etag: get(row, "etag")?,
            last_modified: get(row, "last_modified")?,
            text: get(row, "text")?,
            links: json(row, "links", id)?,
            metadata: json(row, "metadata", id)?,
            fields: json(row, "fields", id)?,
        },
        first_seen_at: time(row, "first_seen_at")?,
        changed_at: time(row, "changed_at")?,
        seen_at: time(row, "seen_at")?,
    })
}

fn small(row: &Row, column: &'static str, id: PageId) -> Result<u16, StoreError> {
    u16::try_from(get::<i32>(row, column)?)
        .map_err(|cause| StoreError::corrupt(format_args!("page {id}"), column, cause))
}

pub(super) fn json<T: DeserializeOwned>(
    row: &Row,
    column: &'static str,
    id: PageId,
) -> Result<T, StoreError> {
    serde_json::from_str(get(row, column)?)
        .map_err(|cause| StoreError::corrupt(format_args!("page {id}"), column, cause))
}
