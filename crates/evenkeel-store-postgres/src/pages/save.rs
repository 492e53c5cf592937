//! Saves the pages that crawls find.

use std::collections::HashMap;

use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobNo, PageId};
use evenkeel_store::text::clean;
use evenkeel_store::{Now, PageQuota, StoreError};
use serde::Serialize;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::ids;
use super::search::lexemes;
use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get, micros};

/// A crawled page with all values that can be computed without the database.
struct Prepared {
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

fn json<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Refused(error.into()))
}

struct Args {
    quota: PageQuota,
    pages: Vec<Prepared>,
    now: Option<i64>,
}

pub(super) async fn save_pages(
    store: &PostgresStore,
    quota: PageQuota,
    pages: Vec<PageContent>,
    now: Now,
) -> Result<Vec<Kept>, StoreError> {
    let prepare =
        move || pages.into_iter().map(|page| Prepared::new(page, quota)).collect::<Result<_, _>>();
    let prepared = tokio::task::spawn_blocking(prepare).await;
    let pages = prepared.map_err(|panic| StoreError::Refused(panic.into()))??;
    let args = Args { quota, pages, now: micros(now.literal()) };
    store
        .api
        .run(args, |connection, args| async move {
            connection.transaction(run(&connection, &args)).await
        })
        .await
}

async fn run(connection: &Connection, args: &Args) -> Tried<Vec<Kept>> {
    let Args { quota, pages, now } = args;
    let sql = sql!("save_pages_usage");
    let Some(row) = connection.maybe_row(sql, &[&quota.job.0, &quota.tenant.0, now]).await? else {
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
    insert(connection, *quota, &new, now).await?;
    change(connection, &changed, now).await?;
    note_seen(connection, &of(Kept::Unchanged), now).await?;
    if !new.is_empty() || !changed.is_empty() {
        let more = used.cast_signed() - before.cast_signed();
        let sql = sql!("save_pages_count");
        connection.change(sql, &[&quota.job.0, &more, &(new.len() as i64)]).await?;
    }
    Ok(answers)
}

/// Returns the content hash and size of those pages that are already stored.
async fn find(
    connection: &Connection,
    job: JobNo,
    pages: &[Prepared],
) -> Tried<HashMap<Uuid, ([u8; 32], u64)>> {
    let ids: Vec<Uuid> = pages.iter().map(|page| page.content.id.0).collect();
    let sql = sql!("save_pages_find");
    let rows = connection.rows(sql, &[&ids, &job.0]).await?;
    rows.iter().map(|row| Ok((get(row, 0)?, (hash(get(row, 1)?)?, count(row, 2)?)))).collect()
}

pub(super) fn hash(bytes: &[u8]) -> Result<[u8; 32], StoreError> {
    bytes.try_into().map_err(|cause| StoreError::corrupt("page", "content_hash", Box::new(cause)))
}

/// Pages as arrays.
struct Columns<'p> {
    id: Vec<Uuid>,
    url: Vec<&'p str>,
    title: Vec<Option<&'p str>>,
    status: Vec<i32>,
    content_type: Vec<&'p str>,
    depth: Vec<i32>,
    content_hash: Vec<&'p [u8]>,
    bytes: Vec<i64>,
    etag: Vec<Option<&'p str>>,
    last_modified: Vec<Option<&'p str>>,
    text: Vec<&'p str>,
    links: Vec<&'p str>,
    metadata: Vec<&'p str>,
    fields: Vec<&'p str>,
    words: Vec<&'p str>,
}

impl<'p> Columns<'p> {
    fn of(pages: &[&'p Prepared]) -> Self {
        fn all<'p, T>(pages: &[&'p Prepared], part: impl Fn(&'p Prepared) -> T) -> Vec<T> {
            pages.iter().map(|page| part(page)).collect()
        }
        Self {
            id: all(pages, |page| page.content.id.0),
            url: all(pages, |page| page.content.url.as_str()),
            title: all(pages, |page| page.content.title.as_deref()),
            status: all(pages, |page| page.content.status.into()),
            content_type: all(pages, |page| page.content.content_type.as_str()),
            depth: all(pages, |page| page.content.depth.into()),
            content_hash: all(pages, |page| page.content.content_hash.as_slice()),
            bytes: all(pages, |page| page.size.cast_signed()),
            etag: all(pages, |page| page.content.etag.as_deref()),
            last_modified: all(pages, |page| page.content.last_modified.as_deref()),
            text: all(pages, |page| page.content.text.as_str()),
            links: all(pages, |page| page.links.as_str()),
            metadata: all(pages, |page| page.metadata.as_str()),
            fields: all(pages, |page| page.fields.as_str()),
            words: all(pages, |page| page.words.as_str()),
        }
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 15] {
        [
            &self.id, &self.url, &self.title, &self.status, &self.content_type, &self.depth,
            &self.content_hash, &self.bytes, &self.etag, &self.last_modified, &self.text,
            &self.links, &self.metadata, &self.fields, &self.words,
        ]
    }
}

async fn insert(
    connection: &Connection,
    quota: PageQuota,
    pages: &[&Prepared],
    now: i64,
) -> Tried<()> {
    if pages.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(pages);
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&quota.job.0, &quota.tenant.0, &now];
    params.extend(columns.params());
    connection.change(sql!("save_pages_insert"), &params).await?;
    Ok(())
}

async fn change(connection: &Connection, pages: &[&Prepared], now: i64) -> Tried<()> {
    if pages.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(pages);
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&now];
    params.extend(columns.params());
    connection.change(sql!("save_pages_change"), &params).await?;
    Ok(())
}

async fn note_seen(connection: &Connection, pages: &[&Prepared], now: i64) -> Tried<()> {
    if pages.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(pages);
    connection
        .change(
            sql!("save_pages_seen"),
            &[&now, &columns.id, &columns.etag, &columns.last_modified],
        )
        .await?;
    Ok(())
}

pub(super) async fn see(
    store: &PostgresStore,
    job: JobNo,
    pages: &[PageId],
    now: Now,
) -> Result<(), StoreError> {
    let args = (ids(pages), job.0, micros(now.literal()));
    store
        .api
        .run(args, |connection, args| async move {
            let (pages, job, now) = &*args;
            let sql = sql!("see_pages");
            connection.change(sql, &[pages, job, now]).await?;
            Ok(())
        })
        .await
}

pub(super) async fn known(
    store: &PostgresStore,
    job: JobNo,
    pages: &[PageId],
) -> Result<Vec<KnownPage>, StoreError> {
    let args = (ids(pages), job.0);
    store
        .api
        .run(args, |connection, args| async move {
            let (pages, job) = &*args;
            let sql = sql!("known_pages");
            let rows = connection.rows(sql, &[pages, job]).await?;
            let known = rows.iter().map(|row| {
                let id = PageId(get(row, "id")?);
                Ok(KnownPage {
                    id,
                    etag: get(row, "etag")?,
                    last_modified: get(row, "last_modified")?,
                    content_hash: hash(get(row, "content_hash")?)?,
                    links: super::list::json(row, "links", id)?,
                })
            });
            known.collect()
        })
        .await
}
