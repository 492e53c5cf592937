//! What follows from a page that was asked for.

use std::sync::Arc;

use evenkeel_core::PageId;
use evenkeel_core::page::PageContent;
use evenkeel_outbound::reqwest::Url;
use serde_json::Value;

use super::Crawl;
use super::line::Line;
use super::pending::Disposition;
use crate::contents::Standing;
use crate::entry::Entry;
use crate::frontier::Offered;
use crate::normal_url::{key_of, resolve};
use crate::visit::{Found, FoundPage, TRIES, Visit};

/// Redirects in a row that are followed.
const HOPS_MAX: u8 = 10;
/// A host is given up after so many answers in a row that spoke of trouble, each with a longer
/// pause after it.
const TROUBLES_MAX: u32 = 10;
/// Bytes of a page's links that are kept.
const LINKS_BYTES_MAX: usize = 128 * 1024;

impl Crawl {
    /// Deals with a page that was asked for.
    pub(super) fn settle(&mut self, visit: Visit) {
        self.is_changed = true;
        self.frontier.release(&visit.entry.url);
        let mut line = Line::of(&visit);
        let Visit { no, entry, found, status, .. } = visit;
        let url = entry.url.clone();
        let was_asked_for = !matches!(found, Found::Forbidden | Found::NoRules(_));
        self.tally.requests += u64::from(was_asked_for);
        // A page that we could not read is no fault of its host.
        let is_trouble = matches!(
            found,
            Found::Trouble { .. } | Found::Failed { hopeless: true, .. } | Found::NoRules(_)
        );
        let troubles = self.frontier.note(&entry.url, is_trouble);
        let is_over = troubles >= TROUBLES_MAX || self.frontier.is_given_up(&entry.url);
        match found {
            Found::Page(page) => self.page(no, &entry, *page, status, line),
            Found::Unchanged => self.unchanged(no, &entry, line),
            Found::Gone => {
                self.lose_start(&entry, "it is not there", false);
                self.tally.gone += 1;
                self.log(&line, "gone");
                self.forget_known(&entry);
                self.close(no, Disposition::Visited);
            }
            Found::Redirect(location) => self.redirect(no, &entry, &location, &line),
            Found::Forbidden => {
                self.lose_start(&entry, "robots.txt does not allow it to be crawled", true);
                self.tally.skipped += 1;
                self.log(&line, "forbidden by robots.txt");
                self.close(no, Disposition::NotVisited);
            }
            Found::Skipped(why) => self.skip(no, &entry, &why, false, &line),
            Found::Trouble { why, tries } if !is_over && entry.tries + 1 < tries => {
                let tries = entry.tries + 1;
                line.what = format!("later: {why}");
                self.again_later(no, Entry { tries, ..entry }, &line);
            }
            // It was not asked for, so that is no try of it: it ends when its host is given up. Only
            // a start does not wait for so long.
            Found::NoRules(why) if !is_over && (!entry.is_start || entry.tries + 1 < TRIES) => {
                let tries = entry.tries + u8::from(entry.is_start);
                line.what = format!("later: {why}");
                self.again_later(no, Entry { tries, ..entry }, &line);
            }
            Found::NoRules(why) => self.fail(no, &entry, &why, false, &line),
            Found::Trouble { why, .. } => self.fail(no, &entry, &why, false, &line),
            Found::Failed { why, hopeless } => self.fail(no, &entry, &why, hopeless, &line),
        }
        if troubles == TROUBLES_MAX {
            self.give_up_host(&url);
        }
    }

    fn again_later(&mut self, no: u64, entry: Entry, line: &Line) {
        self.listener.log(&line.text());
        self.open.remove(&no);
        self.frontier.put_last(entry);
    }

    fn page(&mut self, no: u64, entry: &Entry, page: FoundPage, status: Option<u16>, line: Line) {
        let id = PageId::of(self.job, entry.url.as_str());
        let FoundPage { content_type, mut etag, mut last_modified, extract, hash } = page;
        self.follow(entry, &extract.links);
        if extract.orders.noindex {
            self.log(&line, "noindex");
            self.tally.skipped += 1;
            return self.drop_known(no, entry);
        }
        if let Some(original) = extract.canonical.filter(|url| *url != entry.url)
            && self.points_to(entry, original)
        {
            self.log(&line, "a copy by its own words");
            self.tally.copies += 1;
            return self.drop_known(no, entry);
        }
        if !self.stands_alone(&hash, id, entry) {
            self.log(&line, "the same as another page");
            self.tally.copies += 1;
            return self.drop_known(no, entry);
        }
        let mut links = extract.links;
        let mut bytes = 0;
        let fits = |link: &&String| {
            bytes += link.len();
            bytes <= LINKS_BYTES_MAX
        };
        links.truncate(links.iter().take_while(fits).count());
        if entry.known.page().is_some_and(|k| k.content_hash == hash && k.links != links) {
            // The archive keeps the links it has. Without validators the page is read in full the
            // next time, and its new links are followed again.
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
        self.pending.keep(no, content, line);
    }

    fn unchanged(&mut self, no: u64, entry: &Entry, line: Line) {
        let Some(known) = entry.known.page().map(Arc::clone) else {
            return self.close(no, Disposition::Crawled);
        };
        self.follow(entry, &known.links);
        if self.stands_alone(&known.content_hash, known.id, entry) {
            self.log(&line, "unchanged");
            self.pending.see(no, known.id);
        } else {
            self.log(&line, "the same as another page");
            self.tally.copies += 1;
            self.drop_known(no, entry);
        }
    }

    /// Is it the page that stands for its content? If another one did, that one is forgotten.
    fn stands_alone(&mut self, hash: &[u8; 32], id: PageId, entry: &Entry) -> bool {
        match self.contents.note(hash, id, entry.url.as_str()) {
            Standing::Only => true,
            Standing::Copy => false,
            Standing::Better(worse) => {
                self.tally.copies += 1;
                if let Some(no) = self.pending.withdraw(worse.page) {
                    self.close(no, Disposition::Crawled);
                } else {
                    self.pending.forget(worse.page);
                    self.tally.indexed -= u64::from(worse.indexed).min(self.tally.indexed);
                }
                true
            }
        }
    }

    /// A page that was read and is not to be kept, nor to stay.
    fn drop_known(&mut self, no: u64, entry: &Entry) {
        self.forget_known(entry);
        self.close(no, Disposition::Crawled);
    }

    /// Should the crawl end before the archive is told, the next one finds the same.
    fn forget_known(&mut self, entry: &Entry) {
        if let Some(known) = entry.known.page() {
            self.pending.forget(known.id);
        }
    }

    /// Is `original` crawled instead of this page? Two pages that name each other are not.
    fn points_to(&mut self, entry: &Entry, original: Url) -> bool {
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
                self.tally.traps += 1;
            }
        }
    }

    /// Where a page redirects to takes its place, and is judged like any other.
    fn redirect(&mut self, no: u64, entry: &Entry, location: &str, line: &Line) {
        let scope = &self.shared.config.scope;
        let Some(target) = resolve(&entry.url, location) else {
            return self.skip(no, entry, "it redirects to what is no page", true, line);
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
                self.tally.traps += 1;
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
        self.forget_known(entry);
        self.close(no, Disposition::NotVisited);
    }

    fn skip(&mut self, no: u64, entry: &Entry, why: &str, hopeless: bool, line: &Line) {
        self.lose_start(entry, why, hopeless);
        self.tally.skipped += 1;
        self.log(line, &format!("left out: {why}"));
        self.close(no, Disposition::Visited);
    }

    fn fail(&mut self, no: u64, entry: &Entry, why: &str, hopeless: bool, line: &Line) {
        self.lose_start(entry, why, hopeless);
        self.tally.failed += 1;
        self.first_failure.get_or_insert_with(|| format!("{}: {why}", entry.url));
        self.log(line, &format!("failed: {why}"));
        self.close(no, Disposition::Visited);
    }

    fn give_up_host(&mut self, url: &Url) {
        let left = self.frontier.give_up(url);
        let host = url.host_str().unwrap_or_default();
        let why = "its host is in trouble and was given up";
        let text = format!("{host} is in trouble: given up, with {} queued pages", left.len());
        self.listener.log(&text);
        // Only those that would have been asked for have failed.
        let asked_for = self.tally.visited + self.open.len() as u64;
        let count = self.shared.config.pages_max.saturating_sub(asked_for).min(left.len() as u64);
        self.tally.failed += count;
        self.tally.visited += count;
        left.iter().for_each(|entry| self.lose_start(entry, why, false));
    }

    fn lose_start(&mut self, entry: &Entry, why: &str, hopeless: bool) {
        if entry.is_start {
            self.tally.starts_lost += 1;
            self.losses.add(format!("{}: {why}", entry.url), hopeless);
        }
    }

    /// The page is done with, and no longer in checkpoints.
    pub(super) fn close(&mut self, no: u64, fate: Disposition) {
        let Some(entry) = self.open.remove(&no) else { return };
        self.tally.visited += u64::from(fate != Disposition::NotVisited);
        if fate == Disposition::Crawled {
            self.tally.crawled += 1;
            self.tally.starts_read += u64::from(entry.is_start);
        }
    }

    fn log(&self, line: &Line, what: &str) {
        self.listener.log(&line.saying(what));
    }
}
