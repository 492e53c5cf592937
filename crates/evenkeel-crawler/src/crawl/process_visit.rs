//! Processes the result of a visit: saves the page, follows its links, or retries it.

use std::sync::Arc;

use evenkeel_core::PageId;
use evenkeel_core::page::PageContent;
use evenkeel_outbound::reqwest::Url;
use serde_json::Value;

use super::Crawl;
use super::log_line::LogLine;
use super::pending::Disposition;
use crate::contents::CopyCheck;
use crate::entry::Entry;
use crate::frontier::Offered;
use crate::normal_url::{key_of, resolve};
use crate::visit::{ReadPage, TRIES, Visit, VisitResult};

/// Maximum number of redirects in a row.
const HOPS_MAX: u8 = 10;
/// The crawl stops visiting a host after this many errors in a row. The pause after each error is
/// longer than the pause before.
const HOST_ERRORS_MAX: u32 = 10;
/// Maximum number of bytes of the links that are saved with a page.
const LINKS_BYTES_MAX: usize = 128 * 1024;

impl Crawl {
    /// Processes the result of a page visit.
    pub(super) fn process(&mut self, visit: Visit) {
        self.is_changed = true;
        self.frontier.release(&visit.entry.url);
        let mut line = LogLine::of(&visit);
        let Visit { no, entry, found, status, .. } = visit;
        let url = entry.url.clone();
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
            VisitResult::Unchanged => self.unchanged(no, &entry, line),
            VisitResult::Gone => {
                self.lose_start(&entry, "it is not there", false);
                self.counts.gone += 1;
                self.log(&line, "gone");
                self.delete_stored(&entry);
                self.close(no, Disposition::Visited);
            }
            VisitResult::Redirect(location) => self.redirect(no, &entry, &location, &line),
            VisitResult::Forbidden => {
                self.lose_start(&entry, "robots.txt does not allow it to be crawled", true);
                self.counts.skipped += 1;
                self.log(&line, "forbidden by robots.txt");
                self.close(no, Disposition::NotVisited);
            }
            VisitResult::Skipped(why) => self.skip(no, &entry, &why, false, &line),
            VisitResult::HostError { why, tries } if !is_over && entry.tries + 1 < tries => {
                let tries = entry.tries + 1;
                line.what = format!("will retry: {why}");
                self.retry_later(no, Entry { tries, ..entry }, &line);
            }
            // A page whose robots.txt cannot be read is not requested, so this counts as a try only
            // for a start page. Other pages fail when the crawl gives up their host.
            VisitResult::RobotsUnavailable(why)
                if !is_over && (!entry.is_start || entry.tries + 1 < TRIES) =>
            {
                let tries = entry.tries + u8::from(entry.is_start);
                line.what = format!("will retry: {why}");
                self.retry_later(no, Entry { tries, ..entry }, &line);
            }
            VisitResult::RobotsUnavailable(why) => self.fail(no, &entry, &why, false, &line),
            VisitResult::HostError { why, .. } => self.fail(no, &entry, &why, false, &line),
            VisitResult::Failed { why, hopeless } => self.fail(no, &entry, &why, hopeless, &line),
        }
        if host_errors == HOST_ERRORS_MAX {
            self.give_up_host(&url);
        }
    }

    fn retry_later(&mut self, no: u64, entry: Entry, line: &LogLine) {
        self.listener.log(&line.text());
        self.open.remove(&no);
        self.frontier.put_last(entry);
    }

    fn page(&mut self, no: u64, entry: &Entry, page: ReadPage, status: Option<u16>, line: LogLine) {
        let id = PageId::of(self.job, entry.url.as_str());
        let ReadPage { content_type, mut etag, mut last_modified, extract, hash } = page;
        self.follow(entry, &extract.links);
        if extract.directives.noindex {
            self.log(&line, "noindex");
            self.counts.skipped += 1;
            return self.finish_without_saving(no, entry);
        }
        if let Some(original) = extract.canonical.filter(|url| *url != entry.url)
            && self.visits_original(entry, original)
        {
            self.log(&line, "copy of its canonical page");
            self.counts.copies += 1;
            return self.finish_without_saving(no, entry);
        }
        if !self.represents_content(&hash, id, entry) {
            self.log(&line, "the same as another page");
            self.counts.copies += 1;
            return self.finish_without_saving(no, entry);
        }
        let mut links = extract.links;
        let mut bytes = 0;
        let fits = |link: &&String| {
            bytes += link.len();
            bytes <= LINKS_BYTES_MAX
        };
        links.truncate(links.iter().take_while(fits).count());
        if entry.known.page().is_some_and(|k| k.content_hash == hash && k.links != links) {
            // If the server reports the page as unchanged, the archive keeps its old links. Without
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

    fn unchanged(&mut self, no: u64, entry: &Entry, line: LogLine) {
        let Some(known) = entry.known.page().map(Arc::clone) else {
            return self.close(no, Disposition::Crawled);
        };
        self.follow(entry, &known.links);
        if self.represents_content(&known.content_hash, known.id, entry) {
            self.log(&line, "unchanged");
            self.pending.mark_seen(no, known.id);
        } else {
            self.log(&line, "the same as another page");
            self.counts.copies += 1;
            self.finish_without_saving(no, entry);
        }
    }

    /// Returns true if the page represents its content, and removes the page that represented the
    /// content before.
    fn represents_content(&mut self, hash: &[u8; 32], id: PageId, entry: &Entry) -> bool {
        match self.contents.note(hash, id, entry.url.as_str()) {
            CopyCheck::Unique => true,
            CopyCheck::Copy => false,
            CopyCheck::Replaces(worse) => {
                self.counts.copies += 1;
                if let Some(no) = self.pending.withdraw(worse.page) {
                    self.close(no, Disposition::Crawled);
                } else {
                    self.pending.delete(worse.page);
                    self.counts.indexed -= u64::from(worse.indexed).min(self.counts.indexed);
                }
                true
            }
        }
    }

    /// Finishes a page that was read but must not be saved, and deletes the stored version of the
    /// page.
    fn finish_without_saving(&mut self, no: u64, entry: &Entry) {
        self.delete_stored(entry);
        self.close(no, Disposition::Crawled);
    }

    /// Deletes the stored version of a page. If the crawl ends before the deletion, the next crawl
    /// makes the same decision.
    fn delete_stored(&mut self, entry: &Entry) {
        if let Some(known) = entry.known.page() {
            self.pending.delete(known.id);
        }
    }

    /// True if the crawl visits the canonical page `original` instead of this page. Returns false
    /// for two pages that name each other as canonical page.
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
            if config.scope.wants(&url)
                && self.frontier.offer(Entry::new(url, entry.depth + 1)) == Offered::Trap
            {
                self.counts.traps += 1;
            }
        }
    }

    /// Queues the target of a redirect at the position of the page that redirected.
    fn redirect(&mut self, no: u64, entry: &Entry, location: &str, line: &LogLine) {
        let scope = &self.shared.config.scope;
        let Some(target) = resolve(&entry.url, location) else {
            return self.skip(
                no,
                entry,
                "it redirects to something that is not a page",
                true,
                line,
            );
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
        let text = format!("redirects to {}", next.url);
        let why_not = match self.frontier.replace(no, next) {
            Offered::Queued => None,
            Offered::Seen => Some("seen already"),
            Offered::Trap => {
                self.counts.traps += 1;
                Some("which looks endless")
            }
            Offered::Full => Some("but there are too many pages to tell apart"),
            Offered::GivenUp => Some("whose host was given up"),
        };
        match why_not {
            None => self.log(line, &text),
            Some(why_not) => {
                let text = format!("{text}, {why_not}");
                self.lose_start(entry, &format!("it {text}"), false);
                self.log(line, &text);
            }
        }
        self.delete_stored(entry);
        self.close(no, Disposition::NotVisited);
    }

    fn skip(&mut self, no: u64, entry: &Entry, why: &str, hopeless: bool, line: &LogLine) {
        self.lose_start(entry, why, hopeless);
        self.counts.skipped += 1;
        self.log(line, &format!("left out: {why}"));
        self.close(no, Disposition::Visited);
    }

    fn fail(&mut self, no: u64, entry: &Entry, why: &str, hopeless: bool, line: &LogLine) {
        self.lose_start(entry, why, hopeless);
        self.counts.failed += 1;
        self.first_failure.get_or_insert_with(|| format!("{}: {why}", entry.url));
        self.log(line, &format!("failed: {why}"));
        self.close(no, Disposition::Visited);
    }

    fn give_up_host(&mut self, url: &Url) {
        let left = self.frontier.give_up(url);
        let host = url.host_str().unwrap_or_default();
        let why = "its host had too many errors and was given up";
        let text =
            format!("{host} had too many errors: given up, with {} queued pages", left.len());
        self.listener.log(&text);
        // Of the queued pages of this host, only those that would have been visited count as
        // failed.
        let asked_for = self.counts.visited + self.open.len() as u64;
        let count = self.shared.config.pages_max.saturating_sub(asked_for).min(left.len() as u64);
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

    /// Finishes a page, so that checkpoints no longer contain its entry.
    pub(super) fn close(&mut self, no: u64, disposition: Disposition) {
        let Some(entry) = self.open.remove(&no) else { return };
        self.counts.visited += u64::from(disposition != Disposition::NotVisited);
        if disposition == Disposition::Crawled {
            self.counts.crawled += 1;
            self.counts.starts_read += u64::from(entry.is_start);
        }
    }

    fn log(&self, line: &LogLine, what: &str) {
        self.listener.log(&line.with(what));
    }
}
