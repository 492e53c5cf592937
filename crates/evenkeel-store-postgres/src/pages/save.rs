//! Saves the pages that crawls find.

use std::collections::HashMap;

use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobNo, PageId};
use evenkeel_store::text::clean;
use evenkeel_store::{PageQuota, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::search::lexemes;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{column, count, get, json};

/// A crawled page with all values that can be computed without the database.
pub(super) struct Prepared {
    content: PageContent,
    size: u64,
    words: String,
    links: String,
    metadata: String,
    fields: String,
}

impl Prepared {
    fn new(mut content: PageContent, quota: PageQuota) -> Result<Self, StoreError> {
        clean(&mut content);
        Ok(Self {
            size: content.size(),
            words: lexemes(&content, quota),
            links: json(&content.links)?,
            metadata: json(&content.metadata)?,
            fields: json(&content.fields)?,
            content,
        })
    }
}

/// Prepares crawled pages on a thread that may block.
pub(super) async fn prepare(
    quota: PageQuota,
    pages: Vec<PageContent>,
) -> Result<Vec<Prepared>, StoreError> {
    let prepare =
        move || pages.into_iter().map(|page| Prepared::new(page, quota)).collect::<Result<_, _>>();
    let prepared = tokio::task::spawn_blocking(prepare).await;
    prepared.map_err(|panic| StoreError::Refused(panic.into()))?
}

pub(super) async fn save_pages(
    connection: &Connection,
    quota: PageQuota,
    pages: &[Prepared],
    now: Option<i64>,
) -> Tried<Vec<Kept>> {
    let params: Params<'_> = &[&quota.job.0, &quota.tenant.0, &now];
    let Some(row) = connection.maybe_row(sql!("save_pages_usage"), params).await? else {
        return Ok(vec![Kept::NoRoom; pages.len()]);
    };
    let (before, now): (u64, i64) = (count(&row, 0)?, get(&row, 1)?);
    let known = find(connection, quota.job, pages).await?;
    let mut used = before;
    let answers: Vec<Kept> = pages
        .iter()
        .map(|page| {
            let found = known.get(&page.content.id.0);
            let old = found.map_or(0, |(_, bytes)| *bytes);
            if found.is_some_and(|(hash, _)| *hash == page.content.content_hash) {
                return Kept::Unchanged;
            }
            if !quota.fits(used, old, page.size) {
                return Kept::NoRoom;
            }
            used = used.saturating_sub(old) + page.size;
            if found.is_some() { Kept::Changed } else { Kept::New }
        })
        .collect();
    let of = |kept: Kept| -> Vec<&Prepared> {
        let both = pages.iter().zip(&answers);
        both.filter(|(_, answer)| **answer == kept).map(|(page, _)| page).collect()
    };
    let (new, changed) = (of(Kept::New), of(Kept::Changed));
    let owner: Params<'_> = &[&quota.job.0, &quota.tenant.0, &now];
    write(connection, sql!("save_pages_insert"), owner, &new).await?;
    write(connection, sql!("save_pages_change"), &[&now], &changed).await?;
    note_seen(connection, &of(Kept::Unchanged), now).await?;
    if !new.is_empty() || !changed.is_empty() {
        let more = used.cast_signed() - before.cast_signed();
        let params: Params<'_> = &[&quota.job.0, &more, &(new.len() as i64)];
        connection.change(sql!("save_pages_count"), params).await?;
    }
    Ok(answers)
}

/// Returns the content hash and size of those pages that are already stored.
async fn find(
    connection: &Connection,
    job: JobNo,
    pages: &[Prepared],
) -> Tried<HashMap<Uuid, ([u8; 32], u64)>> {
    let ids = column(pages, |page| page.content.id.0);
    let rows = connection.rows(sql!("save_pages_find"), &[&ids, &job.0]).await?;
    rows.iter().map(|row| Ok((get(row, 0)?, (hash(get(row, 1)?)?, count(row, 2)?)))).collect()
}

pub(super) fn hash(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes.try_into().map_err(|cause| StoreError::corrupt("page", "content_hash", Box::new(cause)))
}

fn columns<'p>(pages: &[&'p Prepared]) -> [Box<dyn ToSql + Send + Sync + 'p>; 15] {
    fn all<'p, T: ToSql + Send + Sync + 'p>(
        pages: &[&'p Prepared],
        value: impl Fn(&'p Prepared) -> T,
    ) -> Box<dyn ToSql + Send + Sync + 'p> {
        Box::new(column(pages, |page| value(page)))
    }
    [
        all(pages, |page| page.content.id.0),
        all(pages, |page| page.content.url.as_str()),
        all(pages, |page| page.content.title.as_deref()),
        all(pages, |page| i32::from(page.content.status)),
        all(pages, |page| page.content.content_type.as_str()),
        all(pages, |page| i32::from(page.content.depth)),
        all(pages, |page| page.content.content_hash.as_slice()),
        all(pages, |page| page.size.cast_signed()),
        all(pages, |page| page.content.etag.as_deref()),
        all(pages, |page| page.content.last_modified.as_deref()),
        all(pages, |page| page.content.text.as_str()),
        all(pages, |page| page.links.as_str()),
        all(pages, |page| page.metadata.as_str()),
        all(pages, |page| page.fields.as_str()),
        all(pages, |page| page.words.as_str()),
    ]
}

/// Runs a statement with the parameters `first` and the columns of the pages.
async fn write(
    connection: &Connection,
    sql: &str,
    first: Params<'_>,
    pages: &[&Prepared],
) -> Tried<()> {
    if !pages.is_empty() {
        let columns = columns(pages);
        let columns = columns.iter().map(|column| &**column as &(dyn ToSql + Sync));
        let params: Vec<_> = first.iter().copied().chain(columns).collect();
        connection.change(sql, &params).await?;
    }
    Ok(())
}

async fn note_seen(connection: &Connection, pages: &[&Prepared], now: i64) -> Tried<()> {
    if pages.is_empty() {
        return Ok(());
    }
    let params: Params<'_> = &[
        &now,
        &column(pages, |page| page.content.id.0),
        &column(pages, |page| page.content.etag.as_deref()),
        &column(pages, |page| page.content.last_modified.as_deref()),
    ];
    connection.change(sql!("save_pages_seen"), params).await?;
    Ok(())
}

pub(super) fn read_known(row: &Row) -> Tried<KnownPage> {
    let id = PageId(get(row, "id")?);
    Ok(KnownPage {
        id,
        etag: get(row, "etag")?,
        last_modified: get(row, "last_modified")?,
        content_hash: hash(get(row, "content_hash")?)?,
        links: super::list::json(row, "links", id)?,
    })
}
