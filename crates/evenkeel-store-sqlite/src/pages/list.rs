//! Lists pages.

use evenkeel_core::page::PageContent;
use evenkeel_core::{JobNo, PageId, TenantNo, Timestamp};
use evenkeel_store::text::{BEGINNING_CHARS_MAX, Needles, beginning};
use evenkeel_store::{Page, PageFilter, PageHit, PageNo, PageRequest, StoreError, StoredPage};
use rusqlite::{Connection, Row};
use uuid::Uuid;

use super::matching::Home;
use super::search::search;
use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;
use crate::rows::{capped_total, find_job_no, job_id, read_json};

/// Lists of pages are counted and ranked exactly up to this number.
pub(super) const COUNTED_MAX: usize = 10_000;

pub(super) fn list(
    db: &Connection,
    tenant: TenantNo,
    filter: &PageFilter,
    page: PageRequest<PageNo>,
) -> Answer<Page<PageHit, PageNo>> {
    let job = filter.job.map(|id| find_job_no(db, tenant, id)).transpose()?;
    if job == Some(None) {
        return Ok(Page { items: vec![], total: 0, total_is_estimate: false, next: None });
    }
    let job = job.flatten();
    let url_prefix = filter.url_prefix.as_deref().unwrap_or_default();
    if let Some(query) = &filter.query {
        let home = job.map_or(Home::Tenant(tenant), Home::Job);
        return search(db, tenant, home, &Needles::of(query), url_prefix, page);
    }
    let (total, total_is_estimate) = count(db, tenant, job, url_prefix)?;
    let sql = match job {
        None => sql!("list_pages"),
        Some(_) => sql!("list_pages_of_job"),
    };
    let (after, limit) = (page.after.map_or(0, |no| no.0), i64::from(page.limit) + 1);
    let all: Params<'_> =
        &[&tenant, &after, &limit, &page.offset, &url_prefix, &BEGINNING_CHARS_MAX, &job];
    let mut statement = db.prepare_cached(sql)?;
    let wanted = statement.parameter_count();
    let mut rows = statement.select(&all[..wanted])?;
    let (mut items, mut last, mut next) = (Vec::new(), None, None);
    while let Some(row) = rows.next()? {
        if items.len() == page.limit as usize {
            next = last;
            break;
        }
        last = Some(PageNo(row.get("page_no")?));
        items.push(hit_from(row, beginning)?);
    }
    Ok(Page { items, total, total_is_estimate, next })
}

fn count(
    db: &Connection,
    tenant: TenantNo,
    job: Option<JobNo>,
    url_prefix: &str,
) -> Answer<(u64, bool)> {
    let sql = match job {
        None => sql!("list_pages_count"),
        Some(_) => sql!("list_pages_count_of_job"),
    };
    let most = COUNTED_MAX as u64;
    let all: Params<'_> = &[&tenant, &url_prefix, &(most + 1), &job];
    let mut statement = db.prepare_cached(sql)?;
    let wanted = statement.parameter_count();
    Ok(capped_total(statement.value(&all[..wanted])?, most))
}

/// Reads a row of `page_hit`.
pub(super) fn hit_from(row: &Row<'_>, snippet: impl Fn(&str) -> String) -> Answer<PageHit> {
    let text = row.get_ref("text")?.as_str().map_err(rusqlite::Error::from)?;
    Ok(PageHit {
        id: page_id(row)?,
        job: job_id(row.get("job")?)?,
        url: row.get("url")?,
        title: row.get("title")?,
        snippet: snippet(text),
        changed_at: Timestamp::from_micros(row.get("changed_at")?),
        seen_at: Timestamp::from_micros(row.get("seen_at")?),
    })
}

fn page_id(row: &Row<'_>) -> Answer<PageId> {
    let bytes: Vec<u8> = row.get("id")?;
    let uuid = Uuid::from_slice(&bytes);
    Ok(PageId(uuid.map_err(|cause| StoreError::corrupt("page", "id", cause))?))
}

pub(super) fn get(db: &Connection, tenant: TenantNo, id: PageId) -> Answer<Option<StoredPage>> {
    db.maybe_row(sql!("get_page"), &[&id, &tenant], page_from)
}

fn page_from(row: &Row<'_>) -> Answer<StoredPage> {
    let id = page_id(row)?;
    Ok(StoredPage {
        job: job_id(row.get("job")?)?,
        content: PageContent {
            id,
            url: row.get("url")?,
            status: row.get("status")?,
            content_type: row.get("content_type")?,
            etag: row.get("etag")?,
            last_modified: row.get("last_modified")?,
            content_hash: row.get("content_hash")?,
            depth: row.get("depth")?,
            title: row.get("title")?,
            text: row.get("text")?,
            links: read_json(row, format_args!("page {id}"), "links")?,
            metadata: read_json(row, format_args!("page {id}"), "metadata")?,
            fields: read_json(row, format_args!("page {id}"), "fields")?,
        },
        first_seen_at: Timestamp::from_micros(row.get("first_seen_at")?),
        changed_at: Timestamp::from_micros(row.get("changed_at")?),
        seen_at: Timestamp::from_micros(row.get("seen_at")?),
    })
}
