//! Searches pages by words.

use std::collections::HashSet;

use evenkeel_core::TenantNo;
use evenkeel_store::text::{Needles, SNIPPET_CHARS_MAX, snippet};
use evenkeel_store::{Page, PageHit, PageNo, PageRequest, SEARCH_LIMIT_MAX};
use rusqlite::{Connection, Row};

use super::list::{COUNTED_MAX, hit_from};
use super::matching::{Home, matching};
use crate::connection::{Params, RunPrepared, RunSql};
use crate::error::Answer;

pub(super) fn search(
    db: &Connection,
    tenant: TenantNo,
    home: Home,
    needles: &Needles,
    url_prefix: &str,
    page: PageRequest<PageNo>,
) -> Answer<Page<PageHit, PageNo>> {
    let mut ranked = if needles.wanted.is_empty() {
        Vec::new()
    } else {
        rank(db, tenant, home, needles, url_prefix)?
    };
    let total_is_estimate = ranked.len() > COUNTED_MAX;
    ranked.truncate(COUNTED_MAX);
    let shown =
        ranked.iter().skip(page.offset as usize).take(page.limit.min(SEARCH_LIMIT_MAX) as usize);
    let mut show = db.prepare_cached(sql!("list_pages_search_show"))?;
    let mut items = Vec::new();
    for no in shown {
        let show_hit = |row: &Row<'_>| hit_from(row, |text| snippet(text, needles));
        items.extend(show.maybe_row(&[no, &SNIPPET_CHARS_MAX], show_hit)?);
    }
    Ok(Page { items, total: ranked.len() as u64, total_is_estimate, next: None })
}

/// Returns the numbers of the matching pages, best match first.
fn rank(
    db: &Connection,
    tenant: TenantNo,
    home: Home,
    needles: &Needles,
    url_prefix: &str,
) -> Answer<Vec<i64>> {
    let anywhere = matching(home, "{title text}", needles);
    let wanted: Params<'_> = &[&anywhere, &tenant, &url_prefix, &(COUNTED_MAX + 1)];
    let mut found: Vec<(i64, f64)> =
        db.rows(sql!("list_pages_search"), wanted, |row| Ok(row.try_into()?))?;
    let last = found.iter().map(|(no, _)| *no).max().unwrap_or(0);
    let wanted: Params<'_> = &[&matching(home, "title", needles), &last];
    let in_title = db.rows(sql!("list_pages_search_titles"), wanted, |row| Ok(row.get(0)?))?;
    let in_title: HashSet<i64> = in_title.into_iter().collect();
    // FTS5 gives better matches a lower score.
    found.sort_by(|(a, score_a), (b, score_b)| {
        let is_behind = |no: &i64| !in_title.contains(no);
        is_behind(a).cmp(&is_behind(b)).then(score_a.total_cmp(score_b)).then(a.cmp(b))
    });
    Ok(found.into_iter().map(|(no, _)| no).collect())
}
