//! Finds pages by their words.

use std::collections::HashMap;

use evenkeel_core::{JobId, PageId};
use evenkeel_store::text::{Needles, SNIPPET_CHARS_MAX, snippet};
use evenkeel_store::{Page, PageHit, PageNo, PageRequest, SEARCH_LIMIT_MAX};
use tokio_postgres::Row;

use super::lexemes::Home;
use super::list::COUNT_MAX;
use super::matching::Matching;
use crate::columns::{count, get, time};
use crate::error::Tried;
use crate::pool::Connection;

/// Texts are fetched for so many hits at once, so that there are never many in memory.
const TEXTS_AT_ONCE: usize = 16;

pub(super) async fn search(
    connection: &Connection,
    tenant: i32,
    home: Home,
    needles: &Needles,
    url_prefix: Option<&String>,
    page: PageRequest<PageNo>,
) -> Tried<Page<PageHit, PageNo>> {
    if needles.wanted.is_empty() {
        return Ok(super::list::nothing());
    }
    let Matching { found, in_title, ranked } = Matching::new(home, needles);
    let (offset, limit) = (i64::from(page.offset), i64::from(page.limit.min(SEARCH_LIMIT_MAX)));
    let most = COUNT_MAX + 1;
    let rows = connection
        .rows(
            sql!("list_pages_search"),
            &[&found, &in_title, &ranked, &tenant, &url_prefix, &most, &offset, &limit],
        )
        .await?;
    let total = rows.first().map_or(Ok(0), |row| count(row, 0))?;
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
        // The only row of an empty page has the total alone.
        numbers.extend(get::<Option<i64>>(row, 1)?);
    }
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let sql = sql!("list_pages_search_texts");
    let chars = SNIPPET_CHARS_MAX as i32;
    let texts = connection.rows(sql, &[&numbers, &chars]).await?;
    let snippet =
        |row: &Row| -> Tried<(i64, String)> { Ok((get(row, 0)?, snippet(get(row, 1)?, needles))) };
    let mut snippets = texts.iter().map(snippet).collect::<Tried<HashMap<i64, String>>>()?;
    let hits = rows.iter().zip(&numbers).map(|(row, no)| {
        Ok(PageHit {
            id: PageId(get(row, 2)?),
            job: JobId(get(row, 3)?),
            url: get(row, 4)?,
            title: get(row, 5)?,
            // A page that has gone in between has no text any more.
            snippet: snippets.remove(no).unwrap_or_default(),
            changed_at: time(row, 6)?,
            seen_at: time(row, 7)?,
        })
    });
    hits.collect()
}
