//! Reading and listing pages.

use evenkeel_core::page::PageContent;
use evenkeel_core::{JobId, JobNo, PageId, TenantNo};
use evenkeel_store::text::{BEGINNING_CHARS_MAX, Needles, beginning};
use evenkeel_store::{Page, PageFilter, PageHit, PageNo, PageRequest, StoreError, StoredPage};
use futures::future::try_join;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::search::{SearchScope, search};
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get, page_limit, page_of, time};

/// Lists of pages are counted and ranked exactly up to this number.
pub(super) const COUNT_MAX: i64 = 10_000;

pub(super) async fn list(
    connection: &Connection,
    tenant: TenantNo,
    filter: &PageFilter,
    page: PageRequest<PageNo>,
) -> Tried<Page<PageHit, PageNo>> {
    let mut job = None;
    if let Some(id) = filter.job {
        let row = connection.maybe_row(sql!("find_job_no"), &[&id.0, &tenant.0]).await?;
        let Some(row) = row else { return Ok(nothing()) };
        job = Some(JobNo(get(&row, 0)?));
    }
    let url_prefix = filter.url_prefix.as_ref();
    match &filter.query {
        Some(query) => {
            let scope = job.map_or(SearchScope::Tenant(tenant), SearchScope::Job);
            search(connection, tenant.0, scope, &Needles::of(query), url_prefix, page).await
        }
        None => by_number(connection, tenant.0, job, url_prefix, page).await,
    }
}

pub(super) fn nothing() -> Page<PageHit, PageNo> {
    Page { items: Vec::new(), total: 0, total_is_estimate: false, next: None }
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
    let (offset, limit) = (i64::from(page.offset), page_limit(&page));
    let (chars, most) = (BEGINNING_CHARS_MAX as i32, COUNT_MAX + 1);
    let (rows, total) = try_join(
        connection.rows(listed, &[owner, &after, &url_prefix, &offset, &limit, &chars]),
        connection.row(counted, &[owner, &url_prefix, &most]),
    )
    .await?;
    // The first column is the position of the page in the list.
    let read = |row: &Row| Ok((PageNo(get(row, 0)?), hit(row)?));
    let total = (count(&total, 0)?, COUNT_MAX.cast_unsigned());
    let Page { items, total, total_is_estimate, next } =
        page_of(&page, &rows, read, |(no, _)| *no, total)?;
    let items = items.into_iter().map(|(_, hit)| hit).collect();
    Ok(Page { items, total, total_is_estimate, next })
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

pub(super) fn stored_page(row: &Row) -> Tried<StoredPage> {
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

fn small(row: &Row, column: &'static str, id: PageId) -> Tried<u16> {
    u16::try_from(get::<i32>(row, column)?)
        .map_err(|cause| StoreError::corrupt(format_args!("page {id}"), column, cause).into())
}

pub(super) fn json<T: DeserializeOwned>(row: &Row, column: &'static str, id: PageId) -> Tried<T> {
    serde_json::from_str(get(row, column)?)
        .map_err(|cause| StoreError::corrupt(format_args!("page {id}"), column, cause).into())
}
