//! Stores web pages, and searches them by reading all pages.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;
use evenkeel_core::page::{Kept, KnownPage, PageContent};
use evenkeel_core::{JobNo, PageId, SearchQuery, TenantNo, Timestamp};
use evenkeel_store::text::{
    Needle, Needles, TEXT_INDEXED_MAX, TITLE_INDEXED_MAX, beginning, clean, indexed, snippet,
};
use evenkeel_store::{
    Now, Page, PageFilter, PageHit, PageNo, PageQuota, PageRequest, PageStore, SEARCH_LIMIT_MAX,
    Scope, StoreError, StoredPage,
};

use super::ModelStore;
use super::data::{Data, count};

#[derive(Default)]
pub(super) struct Pages {
    kept: BTreeMap<PageNo, PageRow>,
    numbers: BTreeMap<PageId, PageNo>,
    last: i64,
}

struct PageRow {
    job: JobNo,
    tenant: TenantNo,
    content: PageContent,
    first_seen_at: Timestamp,
    changed_at: Timestamp,
    seen_at: Timestamp,
}

impl Pages {
    fn of_job(&mut self, job: JobNo, id: PageId) -> Option<(PageNo, &mut PageRow)> {
        let no = *self.numbers.get(&id)?;
        let row = self.kept.get_mut(&no).filter(|row| row.job == job)?;
        Some((no, row))
    }

    fn used(&self, job: JobNo) -> u64 {
        self.kept.values().filter(|row| row.job == job).map(|row| row.content.size()).sum()
    }

    fn keep(&mut self, shelf: PageQuota, mut content: PageContent, now: Timestamp) -> Kept {
        clean(&mut content);
        let (used, size) = (self.used(shelf.job), content.size());
        let Some((_, row)) = self.of_job(shelf.job, content.id) else {
            if !shelf.fits(used, 0, size) {
                return Kept::NoRoom;
            }
            self.last += 1;
            self.numbers.insert(content.id, PageNo(self.last));
            let (job, tenant) = (shelf.job, shelf.tenant);
            let (first_seen_at, changed_at, seen_at) = (now, now, now);
            let row = PageRow { job, tenant, content, first_seen_at, changed_at, seen_at };
            self.kept.insert(PageNo(self.last), row);
            return Kept::New;
        };
        if row.content.content_hash == content.content_hash {
            row.content.etag = content.etag;
            row.content.last_modified = content.last_modified;
            row.seen_at = now;
            return Kept::Unchanged;
        }
        if !shelf.fits(used, row.content.size(), size) {
            return Kept::NoRoom;
        }
        row.content = content;
        row.changed_at = now;
        row.seen_at = now;
        Kept::Changed
    }

    fn forget(&mut self, no: PageNo) {
        if let Some(row) = self.kept.remove(&no) {
            self.numbers.remove(&row.content.id);
        }
    }
}

struct Words {
    title: Vec<String>,
    text: Vec<String>,
}

impl Words {
    fn of(content: &PageContent) -> Self {
        let split =
            |text: &str, bytes| indexed(text, bytes).split_whitespace().map(String::from).collect();
        Self {
            title: split(content.title.as_deref().unwrap_or_default(), TITLE_INDEXED_MAX),
            text: split(&content.text, TEXT_INDEXED_MAX),
        }
    }

    /// Returns the sort key of a page among the matches; the lowest key comes first.
    fn rank(&self, needles: &Needles) -> Option<(bool, Reverse<usize>)> {
        let all = |needle: &Needle| 10 * times(needle, &self.title) + times(needle, &self.text);
        let found: Vec<usize> = needles.wanted.iter().map(all).collect();
        let fits = !found.is_empty()
            && found.iter().all(|times| *times > 0)
            && needles.unwanted.iter().all(|needle| all(needle) == 0);
        let is_behind = needles.wanted.iter().any(|needle| times(needle, &self.title) == 0);
        fits.then(|| (is_behind, Reverse(found.iter().sum())))
    }
}

fn times(needle: &Needle, words: &[String]) -> usize {
    (0..words.len()).filter(|at| needle.begins(&words[*at..])).count()
}

impl Data {
    /// Returns the pages that pass a filter without a search query, ordered by number.
    fn pages_seen(&self, scope: &Scope, filter: &PageFilter) -> Vec<PageNo> {
        let fits = |row: &PageRow| {
            self.seen_job(scope, row).is_some_and(|id| filter.job.is_none_or(|job| job == id))
                && filter.url_prefix.as_ref().is_none_or(|url| row.content.url.starts_with(url))
        };
        self.pages.kept.iter().filter(|(_, row)| fits(row)).map(|(no, _)| *no).collect()
    }

    /// Returns the id of a page's job, if it belongs to the tenant.
    fn seen_job(&self, scope: &Scope, row: &PageRow) -> Option<evenkeel_core::JobId> {
        let job = self.find(row.job).filter(|job| !job.is_deleted())?;
        (row.tenant == scope.tenant).then_some(job.id)
    }

    fn hit(&self, scope: &Scope, no: PageNo, show: impl Fn(&str) -> String) -> Option<PageHit> {
        let row = self.pages.kept.get(&no)?;
        Some(PageHit {
            id: row.content.id,
            job: self.seen_job(scope, row)?,
            url: row.content.url.clone(),
            title: row.content.title.clone(),
            snippet: show(&row.content.text),
            changed_at: row.changed_at,
            seen_at: row.seen_at,
        })
    }

    fn search_pages(
        &self,
        scope: &Scope,
        seen: &[PageNo],
        query: &SearchQuery,
        page: PageRequest<PageNo>,
    ) -> Page<PageHit, PageNo> {
        let needles = Needles::of(query);
        let rank = |no: &PageNo| {
            let row = self.pages.kept.get(no)?;
            Some((Words::of(&row.content).rank(&needles)?, *no))
        };
        let mut found: Vec<_> = seen.iter().filter_map(rank).collect();
        found.sort_unstable();
        let total = count(found.len());
        let shown = found
            .into_iter()
            .skip(page.offset as usize)
            .take(page.limit.min(SEARCH_LIMIT_MAX) as usize);
        let hit = |no| self.hit(scope, no, |text| snippet(text, &needles));
        let items = shown.filter_map(|(_, no)| hit(no)).collect();
        Page { items, total, total_is_estimate: false, next: None }
    }
}

#[async_trait]
impl PageStore for ModelStore {
    async fn known_pages(
        &self,
        job: JobNo,
        pages: &[PageId],
    ) -> Result<Vec<KnownPage>, StoreError> {
        let mut data = self.lock();
        let known = |id: &PageId| {
            let (_, row) = data.pages.of_job(job, *id)?;
            Some(KnownPage {
                id: *id,
                etag: row.content.etag.clone(),
                last_modified: row.content.last_modified.clone(),
                content_hash: row.content.content_hash,
                links: row.content.links.clone(),
            })
        };
        Ok(pages.iter().filter_map(known).collect())
    }

    async fn save_pages(
        &self,
        shelf: PageQuota,
        pages: Vec<PageContent>,
        now: Now,
    ) -> Result<Vec<Kept>, StoreError> {
        let now = self.resolve(now);
        let mut data = self.lock();
        let owner = data.find(shelf.job).filter(|job| !job.is_deleted()).map(|job| job.tenant);
        if owner != Some(shelf.tenant) {
            return Ok(vec![Kept::NoRoom; pages.len()]);
        }
        Ok(pages.into_iter().map(|page| data.pages.keep(shelf, page, now)).collect())
    }

    async fn see_pages(&self, job: JobNo, pages: &[PageId], now: Now) -> Result<(), StoreError> {
        let now = self.resolve(now);
        let mut data = self.lock();
        for id in pages {
            if let Some((_, row)) = data.pages.of_job(job, *id) {
                row.seen_at = now;
            }
        }
        Ok(())
    }

    async fn prune_pages(&self, job: JobNo, pages: &[PageId]) -> Result<u64, StoreError> {
        let mut data = self.lock();
        let mut deleted = 0;
        for id in pages {
            if let Some((no, _)) = data.pages.of_job(job, *id) {
                data.pages.forget(no);
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    async fn clear_pages(&self, limit: u32) -> Result<u64, StoreError> {
        let mut data = self.lock();
        let is_deleted = |row: &PageRow| data.find(row.job).is_some_and(|job| job.is_deleted());
        let gone = data.pages.kept.iter().filter(|(_, row)| is_deleted(row)).map(|(no, _)| *no);
        let gone: Vec<PageNo> = gone.take(limit as usize).collect();
        gone.iter().for_each(|no| data.pages.forget(*no));
        Ok(count(gone.len()))
    }

    async fn list_pages(
        &self,
        scope: &Scope,
        filter: &PageFilter,
        page: PageRequest<PageNo>,
    ) -> Result<Page<PageHit, PageNo>, StoreError> {
        let data = self.lock();
        let seen = data.pages_seen(scope, filter);
        if let Some(query) = &filter.query {
            return Ok(data.search_pages(scope, &seen, query, page));
        }
        let page = super::lists::cut(seen, page, |no, after| no > after);
        Ok(super::lists::with_items(page, |no| data.hit(scope, *no, beginning)))
    }

    async fn get_page(&self, scope: &Scope, id: PageId) -> Result<Option<StoredPage>, StoreError> {
        let data = self.lock();
        let row = data.pages.numbers.get(&id).and_then(|no| data.pages.kept.get(no));
        let seen = row.and_then(|row| Some((row, data.seen_job(scope, row)?)));
        Ok(seen.map(|(row, job)| StoredPage {
            job,
            content: row.content.clone(),
            first_seen_at: row.first_seen_at,
            changed_at: row.changed_at,
            seen_at: row.seen_at,
        }))
    }
}
