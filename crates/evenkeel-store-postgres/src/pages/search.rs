//! Full-text search in pages.

use std::collections::HashMap;
use std::fmt::Write;

use evenkeel_core::page::PageContent;
use evenkeel_core::{JobId, JobNo, PageId, TenantNo};
use evenkeel_store::text::{
    Needles, SNIPPET_CHARS_MAX, TEXT_INDEXED_MAX, TITLE_INDEXED_MAX, indexed, snippet,
};
use evenkeel_store::{Page, PageHit, PageNo, PageQuota, PageRequest, SEARCH_LIMIT_MAX};
use tokio_postgres::Row;

use super::list::COUNT_MAX;
use super::matching::Matching;
use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{count, get, time};

/// Number of page texts that are fetched together, to limit memory.
const TEXTS_AT_ONCE: usize = 16;

pub(super) async fn search(
    connection: &Connection,
    tenant: i32,
    scope: SearchScope,
    needles: &Needles,
    url_prefix: Option<&String>,
    page: PageRequest<PageNo>,
) -> Tried<Page<PageHit, PageNo>> {
    if needles.wanted.is_empty() {
        return Ok(super::list::nothing());
    }
    let Matching { found, in_title, ranked } = Matching::new(scope, needles);
    let (offset, limit) = (i64::from(page.offset), i64::from(page.limit.min(SEARCH_LIMIT_MAX)));
    let most = COUNT_MAX + 1;
    let params: Params<'_> =
        &[&found, &in_title, &ranked, &tenant, &url_prefix, &most, &offset, &limit];
    let rows = connection.rows(sql!("list_pages_search"), params).await?;
    let total = rows.first().map_or(Ok(0), |row| count(row, "total"))?;
    let mut items = Vec::new();
    for rows in rows.chunks(TEXTS_AT_ONCE) {
        items.extend(show(connection, rows, needles).await?);
    }
    let most = COUNT_MAX.cast_unsigned();
    Ok(Page { items, total: total.min(most), total_is_estimate: total > most, next: None })
}

async fn show(connection: &Connection, rows: &[Row], needles: &Needles) -> Tried<Vec<PageHit>> {
    let mut numbers: Vec<i64> = Vec::with_capacity(rows.len());
    for row in rows {
        // If the list page is empty, the statement returns one row that holds only the total.
        numbers.extend(get::<Option<i64>>(row, "page_no")?);
    }
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let chars = SNIPPET_CHARS_MAX as i32;
    let texts = connection.rows(sql!("list_pages_search_texts"), &[&numbers, &chars]).await?;
    let snippet =
        |row: &Row| -> Tried<(i64, String)> { Ok((get(row, 0)?, snippet(get(row, 1)?, needles))) };
    let mut snippets = texts.iter().map(snippet).collect::<Tried<HashMap<i64, String>>>()?;
    let hits = rows.iter().zip(&numbers).map(|(row, no)| {
        Ok(PageHit {
            id: PageId(get(row, "id")?),
            job: JobId(get(row, "job_id")?),
            url: get(row, "url")?,
            title: get(row, "title")?,
            // A page that was deleted in the meantime has no text.
            snippet: snippets.remove(no).unwrap_or_default(),
            changed_at: time(row, "changed_at")?,
            seen_at: time(row, "seen_at")?,
        })
    });
    hits.collect()
}

/// The highest word position that a `tsvector` can hold.
const POSITION_MAX: usize = 16_383;

#[derive(Copy, Clone, Debug)]
pub(super) enum SearchScope {
    Tenant(TenantNo),
    Job(JobNo),
}

impl SearchScope {
    /// Returns a lexeme that all pages of the tenant or job contain. No word of a page text starts
    /// with an underscore, so this lexeme cannot be a word.
    pub(super) fn lexeme(self) -> String {
        match self {
            Self::Tenant(tenant) => format!("_t{}", tenant.0),
            Self::Job(job) => format!("_j{}", job.0),
        }
    }
}

/// Returns the words of a page with their positions, as the text of a `tsvector`.
pub(super) fn lexemes(page: &PageContent, quota: PageQuota) -> String {
    let title = indexed(page.title.as_deref().unwrap_or_default(), TITLE_INDEXED_MAX);
    let text = indexed(&page.text, TEXT_INDEXED_MAX);
    let mut written = String::with_capacity(32 + (title.len() + text.len()) * 2);
    written.push_str(&SearchScope::Tenant(quota.tenant).lexeme());
    written.push(' ');
    written.push_str(&SearchScope::Job(quota.job).lexeme());
    let mut position = 0;
    for (words, weight) in [(title, "A"), (text, "")] {
        for word in words.split_ascii_whitespace() {
            position += 1;
            // Words of letters and digits need no quotes. Writing to a string cannot fail.
            let _ = write!(written, " {word}:{}{weight}", position.min(POSITION_MAX));
        }
        // The gap in the positions prevents a phrase from matching across the end of the title and
        // the start of the text.
        position += 1;
    }
    written
}

#[cfg(test)]
mod tests {
    use evenkeel_core::PageId;
    use serde_json::Value;

    use super::*;

    #[test]
    fn title_words_have_weight_a_and_a_gap_follows() {
        let page = PageContent {
            id: PageId::of(JobNo(7), "u"),
            url: "u".into(),
            status: 200,
            content_type: "text/html".into(),
            etag: None,
            last_modified: None,
            content_hash: [0; 32],
            depth: 0,
            title: Some("It's a Title".into()),
            text: "a text".into(),
            links: Vec::new(),
            metadata: Value::Null,
            fields: Value::Null,
        };
        let quota = PageQuota { tenant: TenantNo(3), job: JobNo(7), bytes_max: 0 };
        assert_eq!(lexemes(&page, quota), "_t3 _j7 it:1A s:2A a:3A title:4A a:6 text:7");
    }
}
