//! Saves pages of crawls.

use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobNo, PageId, Timestamp};
use evenkeel_store::text::{TEXT_INDEXED_MAX, TITLE_INDEXED_MAX, clean, indexed};
use evenkeel_store::{PageQuota, StoreError};
use rusqlite::Connection;

use crate::connection::{Params, RunPrepared, RunSql, weight};
use crate::error::Answer;
use crate::rows::{json, read_json};

/// A crawled page with all values that can be computed without the database.
pub(super) struct Prepared {
    content: PageContent,
    size: u64,
    title_words: String,
    text_words: String,
    links: String,
    metadata: String,
    fields: String,
}

impl Prepared {
    pub(super) fn new(mut content: PageContent) -> Result<Self, StoreError> {
        clean(&mut content);
        let title = content.title.as_deref().unwrap_or_default();
        Ok(Self {
            size: content.size(),
            title_words: indexed(title, TITLE_INDEXED_MAX),
            text_words: indexed(&content.text, TEXT_INDEXED_MAX),
            links: json(&content.links)?,
            metadata: json(&content.metadata)?,
            fields: json(&content.fields)?,
            content,
        })
    }

    /// Estimates the work of storing this page, as a number of rows.
    pub(super) fn rows(&self) -> usize {
        let words = self.title_words.len() + self.text_words.len();
        let page = usize::try_from(self.size).unwrap_or(usize::MAX);
        weight(3, page.saturating_add(words))
    }

    fn insert(&self, db: &Connection, shelf: PageQuota, now: Timestamp) -> Answer<i64> {
        self.run(
            db,
            sql!("save_pages_insert"),
            &[&self.content.id, &shelf.job, &shelf.tenant],
            now,
        )?;
        Ok(db.last_insert_rowid())
    }

    fn change(&self, db: &Connection, no: i64, now: Timestamp) -> Answer<()> {
        self.run(db, sql!("save_pages_change"), &[&no], now)
    }

    /// Runs a statement that takes `key` and then the columns of the page that change.
    fn run(&self, db: &Connection, sql: &str, key: Params<'_>, now: Timestamp) -> Answer<()> {
        let page = &self.content;
        let row: Params<'_> = &[
            &key, &page.url, &page.title, &page.status, &page.content_type, &page.depth,
            &page.content_hash, &self.size, &now, &page.etag, &page.last_modified,
        ];
        db.run(sql, row)
    }

    fn write_text(&self, db: &Connection, shelf: PageQuota, no: i64) -> Answer<()> {
        let Self { content, links, metadata, fields, .. } = self;
        db.run(sql!("save_pages_text"), &[&no, &content.text, links, metadata, fields])?;
        let home = format!("t{} j{}", shelf.tenant.0, shelf.job.0);
        db.run(sql!("save_pages_words"), &[&no, &self.title_words, &self.text_words, &home])
    }

    fn see(&self, db: &Connection, no: i64, now: Timestamp) -> Answer<()> {
        let page = &self.content;
        db.run(sql!("save_pages_seen"), &[&no, &now, &page.etag, &page.last_modified])
    }
}

pub(super) fn save(
    db: &Connection,
    shelf: PageQuota,
    pages: &[Prepared],
    now: Timestamp,
) -> Answer<Vec<Kept>> {
    let used: Option<u64> =
        db.maybe_value(sql!("save_pages_usage"), &[&shelf.job, &shelf.tenant])?;
    let Some(before) = used else { return Ok(vec![Kept::NoRoom; pages.len()]) };
    let (mut used, mut added) = (before, 0_i64);
    let mut answers = Vec::with_capacity(pages.len());
    for page in pages {
        let found = find(db, shelf.job, page.content.id)?;
        let old = found.as_ref().map_or(0, |(_, _, bytes)| *bytes);
        let kept = match found {
            Some((no, hash, _)) if hash == page.content.content_hash => {
                page.see(db, no, now)?;
                answers.push(Kept::Unchanged);
                continue;
            }
            _ if !shelf.fits(used, old, page.size) => Kept::NoRoom,
            Some((no, ..)) => {
                page.change(db, no, now)?;
                page.write_text(db, shelf, no)?;
                Kept::Changed
            }
            None => {
                let no = page.insert(db, shelf, now)?;
                page.write_text(db, shelf, no)?;
                added += 1;
                Kept::New
            }
        };
        if kept != Kept::NoRoom {
            used = used.saturating_sub(old) + page.size;
        }
        answers.push(kept);
    }
    if answers.iter().any(|kept| matches!(kept, Kept::New | Kept::Changed)) {
        count(db, shelf.job, used.cast_signed() - before.cast_signed(), added)?;
    }
    Ok(answers)
}

/// The number, content hash and size of a saved page.
type Found = (i64, [u8; 32], u64);

fn find(db: &Connection, job: JobNo, id: PageId) -> Answer<Option<Found>> {
    db.maybe_row(sql!("save_pages_find"), &[&id, &job], |row| Ok(row.try_into()?))
}

/// Adds bytes and pages to the stored usage of a job.
pub(super) fn count(db: &Connection, job: JobNo, bytes: i64, pages: i64) -> Answer<()> {
    db.run(sql!("save_pages_count"), &[&job, &bytes, &pages])
}

pub(super) fn see(db: &Connection, job: JobNo, pages: &[PageId], now: Timestamp) -> Answer<()> {
    let mut see = db.prepare_cached(sql!("see_pages"))?;
    for id in pages {
        see.run(&[id, &job, &now])?;
    }
    Ok(())
}

pub(super) fn known(db: &Connection, job: JobNo, pages: &[PageId]) -> Answer<Vec<KnownPage>> {
    let mut statement = db.prepare_cached(sql!("known_pages"))?;
    let mut found = Vec::new();
    for id in pages {
        found.extend(statement.maybe_row(&[id, &job], |row| {
            Ok(KnownPage {
                id: *id,
                etag: row.get("etag")?,
                last_modified: row.get("last_modified")?,
                content_hash: row.get("content_hash")?,
                links: read_json(row, format_args!("page {id}"), "links")?,
            })
        })?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(change: impl FnOnce(&mut PageContent)) -> usize {
        let mut page = PageContent {
            id: PageId::of(JobNo(1), "u"),
            url: "u".into(),
            status: 200,
            content_type: "text/html".into(),
            etag: None,
            last_modified: None,
            content_hash: [0; 32],
            depth: 0,
            title: None,
            text: String::new(),
            links: Vec::new(),
            metadata: json!({}),
            fields: json!({}),
        };
        change(&mut page);
        Prepared::new(page).unwrap().rows()
    }

    #[test]
    fn all_text_of_a_page_counts_as_work() {
        let much = || "long ".repeat(10_000);
        let little = rows(|_| {});
        assert!(little < 10, "{little}");
        for (name, rows) in [
            ("links", rows(|page| page.links = vec![much()])),
            ("fields", rows(|page| page.fields = json!({ "a": much() }))),
            ("metadata", rows(|page| page.metadata = json!({ "a": much() }))),
            ("title", rows(|page| page.title = Some(much()))),
        ] {
            assert!(rows > little + 300, "{name}: {rows}");
        }
        // The text is stored twice: as text and as indexed words.
        let text = rows(|page| page.text = much());
        assert!(text > little + 700, "{text}");
    }
}
