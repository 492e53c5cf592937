//! Processes the result of a visit: saves the page, follows its links, or retries the visit.

use std::sync::Arc;

use evenkeel_core::PageId;
use evenkeel_core::page::PageContent;
use evenkeel_outbound::reqwest::Url;
use serde_json::Value;

use super::Crawl;
use super::pending::Disposition;
use crate::contents::CopyCheck;
use crate::entry::Entry;
use crate::frontier::Offered;
use crate::normal_url::{key_of, resolve};
use crate::visit::{ReadPage, TRIES, Visit, VisitResult};

/// Maximum number of redirects in a row.
const HOPS_MAX: u8 = 10;
/// The crawl stops visiting a host after this many errors in a row.
const HOST_ERRORS_MAX: u32 = 10;
/// Maximum number of bytes of the links that are saved with a page.
const LINKS_BYTES_MAX: usize = 128 * 1024;

impl Crawl {
    pub(super) fn process(&mut self, visit: Visit) {
        self.is_changed = true;
        self.frontier.release(&visit.entry.url);
        let Visit { no, entry, found, status, bytes, took } = visit;
        let url = entry.url.clone();
        // The beginning of the log line about this page.
        let shown = status.map_or_else(|| "---".into(), |status| status.to_string());
        let line = format!("{shown} {bytes} B {} ms {url}", took.as_millis());
        let was_requested =
            !matches!(found, VisitResult::Forbidden | VisitResult::RobotsUnavailable(_));
        self.counts.requests += u64::from(was_requested);
        // A page that the crawler could not parse is not an error of its host.
        let is_host_error = matches!(
            found,
            VisitResult::HostError { .. }
                | VisitResult::Failed { hopeless: true, .. }
                | VisitResult::RobotsUnavailable(_)
        );
        let host_errors = self.frontier.note(&entry.url, is_host_error);
        let is_over = host_errors >= HOST_ERRORS_MAX || self.frontier.is_given_up(&entry.url);
        match found {
            VisitResult::Page(page) => self.page(no, &entry, *page, status, line),
            VisitResult::Unchanged => self.unchanged(no, &entry, &line),
            VisitResult::Gone => {
                self.lose_start(&entry, "it is not there", false);
                self.counts.gone += 1;
                self.log(format!("{line} gone"));
                self.delete_stored(&entry);
                self.close(no, Disposition::Visited);
            }
            VisitResult::Redirect(location) => self.redirect(no, &entry, &location, &line),
            VisitResult::Forbidden => {
                self.lose_start(&entry, "robots.txt does not allow it to be crawled", true);
                self.counts.skipped += 1;
                self.log(format!("{line} forbidden by robots.txt"));
                self.close(no, Disposition::NotVisited);
            }
            VisitResult::Skipped(why) => self.skip(no, &entry, &why, false, &line),
            VisitResult::HostError { why, tries } if !is_over && entry.tries + 1 < tries => {
                self.retry_later(no, Entry { tries: entry.tries + 1, ..entry }, &why, &line);
            }
            // An unreadable robots.txt counts as a failed try only for a start page. Other pages
            // are retried until the crawl gives up their host.
            VisitResult::RobotsUnavailable(why)
                if !is_over && (!entry.is_start || entry.tries + 1 < TRIES) =>
            {
                let tries = entry.tries + u8::from(entry.is_start);
                self.retry_later(no, Entry { tries, ..entry }, &why, &line);
            }
            VisitResult::RobotsUnavailable(why) | VisitResult::HostError { why, .. } => {
                self.fail(no, &entry, &why, false, &line);
            }
            VisitResult::Failed { why, hopeless } => self.fail(no, &entry, &why, hopeless, &line),
        }
        if host_errors == HOST_ERRORS_MAX {
            self.give_up_host(&url);
        }
    }

    fn retry_later(&mut self, no: u64, entry: Entry, why: &str, line: &str) {
        self.log(format!("{line} will retry: {why}"));
        self.open.remove(&no);
        self.frontier.put_last(entry);
    }

    fn page(&mut self, no: u64, entry: &Entry, page: ReadPage, status: Option<u16>, line: String) {
        let id = PageId::of(self.job, entry.url.as_str());
        let ReadPage { content_type, mut etag, mut last_modified, extract, hash } = page;
        self.follow(entry, &extract.links);
        if extract.directives.noindex {
            self.counts.skipped += 1;
            return self.finish_without_saving(no, entry, &line, "noindex");
        }
        if let Some(original) = extract.canonical.filter(|url| *url != entry.url)
            && self.visits_original(entry, original)
        {
            self.counts.copies += 1;
            return self.finish_without_saving(no, entry, &line, "copy of its canonical page");
        }
        if !self.represents_content(&hash, id, entry) {
            self.counts.copies += 1;
            return self.finish_without_saving(no, entry, &line, "the same as another page");
        }
        let mut links = extract.links;
        let mut bytes = 0;
        let fits = |link: &&String| {
            bytes += link.len();
            bytes <= LINKS_BYTES_MAX
        };
        links.truncate(links.iter().take_while(fits).count());
        if entry.known.page().is_some_and(|k| k.content_hash == hash && k.links != links) {
            // The archive keeps the old links of a page whose content has not changed. Without
            // validators (`ETag`, `Last-Modified`), the next crawl reads the page in full and
            // follows its new links.
            (etag, last_modified) = (None, None);
        }
        let content = PageContent {
            id,
            url: entry.url.as_str().to_owned(),
            status: status.unwrap_or_default(),
            content_type,
            etag,
            last_modified,
            content_hash: hash,
            depth: entry.depth,
            title: extract.title,
            text: extract.text,
            links,
            metadata: Value::Object(extract.metadata),
            fields: Value::Object(extract.fields),
        };
        self.pending.save(no, content, line);
    }

    fn unchanged(&mut self, no: u64, entry: &Entry, line: &str) {
        let Some(known) = entry.known.page().map(Arc::clone) else {
            return self.close(no, Disposition::Crawled);
        };
        self.follow(entry, &known.links);
        if self.represents_content(&known.content_hash, known.id, entry) {
            self.log(format!("{line} unchanged"));
            self.pending.seen.push((no, known.id));
        } else {
            self.counts.copies += 1;
            self.finish_without_saving(no, entry, line, "the same as another page");
        }
    }

    /// Returns true if this page is kept for its content, and removes the page that was kept for
    /// the same content before.
    fn represents_content(&mut self, hash: &[u8; 32], id: PageId, entry: &Entry) -> bool {
        match self.contents.note(hash, id, entry.url.as_str()) {
            CopyCheck::Unique => true,
            CopyCheck::Copy => false,
            CopyCheck::Replaces(worse) => {
                self.counts.copies += 1;
                if let Some(no) = self.pending.withdraw(worse.page) {
                    self.close(no, Disposition::Crawled);
                } else {
                    self.pending.deleted.push(worse.page);
                    self.counts.indexed -= u64::from(worse.indexed).min(self.counts.indexed);
                }
                true
            }
        }
    }

    /// Finishes a page that was read but must not be saved, and deletes the stored version of the
    /// page.
    fn finish_without_saving(&mut self, no: u64, entry: &Entry, line: &str, why: &str) {
        self.log(format!("{line} {why}"));
        self.delete_stored(entry);
        self.close(no, Disposition::Crawled);
    }

    /// Deletes the stored version of a page. If the crawl is interrupted before the page is
    /// deleted, a later crawl deletes the page.
    fn delete_stored(&mut self, entry: &Entry) {
        self.pending.deleted.extend(entry.known.page().map(|known| known.id));
    }

    /// True if the crawl visits the canonical page `original` and so does not keep this page. False
    /// if the canonical page is out of scope, or names another canonical page itself.
    fn visits_original(&mut self, entry: &Entry, original: Url) -> bool {
        if !self.shared.config.scope.wants(&original)
            || self.pointers.contains(&key_of(original.as_str()))
        {
            return false;
        }
        let offered = self.frontier.offer(Entry::new(original, entry.depth));
        let is_crawled = matches!(offered, Offered::Queued | Offered::Seen);
        if is_crawled {
            self.pointers.insert(key_of(entry.url.as_str()));
        }
        is_crawled
    }

    fn follow(&mut self, entry: &Entry, links: &[String]) {
        let config = &self.shared.config;
        if entry.depth >= config.depth {
            return;
        }
        for link in links {
            let Ok(url) = Url::parse(link) else { continue };
            if config.scope.wants(&url) {
                let offered = self.frontier.offer(Entry::new(url, entry.depth + 1));
                self.counts.traps += u64::from(offered == Offered::Trap);
            }
        }
    }

    /// Queues the target of a redirect at the position of the page that redirected.
    fn redirect(&mut self, no: u64, entry: &Entry, location: &str, line: &str) {
        let scope = &self.shared.config.scope;
        let Some(target) = resolve(&entry.url, location) else {
            let why = "it redirects to something that is not a page";
            return self.skip(no, entry, why, true, line);
        };
        let is_in = if entry.is_start { scope.covers(&target) } else { scope.wants(&target) };
        if !is_in {
            let why = format!("it redirects to {target}, out of scope");
            return self.skip(no, entry, &why, true, line);
        }
        if entry.hops >= HOPS_MAX {
            return self.skip(no, entry, "it redirects too often", false, line);
        }
        let next = Entry {
            hops: entry.hops + 1,
            is_start: entry.is_start,
            ..Entry::new(target, entry.depth)
        };
        let mut text = format!("redirects to {}", next.url);
        let offered = self.frontier.replace(no, next);
        self.counts.traps += u64::from(offered == Offered::Trap);
        text += match offered {
            Offered::Queued => "",
            Offered::Seen => ", seen already",
            Offered::Trap => ", which looks endless",
            Offered::Full => ", but there are too many pages to tell apart",
            Offered::GivenUp => ", whose host was given up",
        };
        if offered != Offered::Queued {
            self.lose_start(entry, &format!("it {text}"), false);
        }
        self.log(format!("{line} {text}"));
        self.delete_stored(entry);
        self.close(no, Disposition::NotVisited);
    }

    fn skip(&mut self, no: u64, entry: &Entry, why: &str, hopeless: bool, line: &str) {
        self.lose_start(entry, why, hopeless);
        self.counts.skipped += 1;
        self.log(format!("{line} left out: {why}"));
        self.close(no, Disposition::Visited);
    }

    fn fail(&mut self, no: u64, entry: &Entry, why: &str, hopeless: bool, line: &str) {
        self.lose_start(entry, why, hopeless);
        self.counts.failed += 1;
        self.first_failure.get_or_insert_with(|| format!("{}: {why}", entry.url));
        self.log(format!("{line} failed: {why}"));
        self.close(no, Disposition::Visited);
    }

    fn give_up_host(&mut self, url: &Url) {
        let left = self.frontier.give_up(url);
        let host = url.host_str().unwrap_or_default();
        let why = "its host had too many errors and was given up";
        let count = left.len() as u64;
        self.log(format!("{host} had too many errors: given up, with {count} queued pages"));
        // Queued pages of this host count as failed only up to the limit `max_pages`, because the
        // crawl would not visit more pages.
        let asked_for = self.counts.visited + self.open.len() as u64;
        let count = self.shared.config.pages_max.saturating_sub(asked_for).min(count);
        self.counts.failed += count;
        self.counts.visited += count;
        left.iter().for_each(|entry| self.lose_start(entry, why, false));
    }

    fn lose_start(&mut self, entry: &Entry, why: &str, hopeless: bool) {
        if entry.is_start {
            self.counts.starts_lost += 1;
            self.losses.add(format!("{}: {why}", entry.url), hopeless);
        }
    }

    /// Finishes a page, so that later checkpoints do not contain it in their queue.
    pub(super) fn close(&mut self, no: u64, disposition: Disposition) {
        let Some(entry) = self.open.remove(&no) else { return };
        self.counts.visited += u64::from(disposition != Disposition::NotVisited);
        if disposition == Disposition::Crawled {
            self.counts.crawled += 1;
            self.counts.starts_read += u64::from(entry.is_start);
        }
    }
}
