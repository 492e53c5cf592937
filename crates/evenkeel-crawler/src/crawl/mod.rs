//! One crawl from beginning to end.

mod line;
mod pending;
mod saving;
mod settle;
mod sitemaps;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{JobNo, PageId, Progress};
use evenkeel_outbound::reqwest::Url;
use rustc_hash::FxHashSet;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::clock::now;
use crate::contents::Contents;
use crate::crawler::{Order, Shared};
use crate::ending::{Ended, Ending, Losses, judge};
use crate::entry::{Entry, Lookup};
use crate::export::Export;
use crate::frontier::Frontier;
use crate::archive::{ArchiveError, Listener, PageArchive};
use crate::tally::Tally;
use crate::visit::{Visit, visit};
use pending::Pending;

/// Requests under way at once, over all hosts of a crawl.
const IN_FLIGHT_MAX: usize = 8;
/// Nothing is waited for more shortly than this before what was read is kept.
const QUIET_MIN: Duration = Duration::from_millis(100);
/// Pages that are looked up or kept at once.
const BATCH: usize = 32;

/// One crawl. It can be dropped at any moment while it runs, and then be asked for what a later one
/// can go on from.
pub struct Crawl {
    shared: Arc<Shared>,
    archive: Arc<dyn PageArchive>,
    listener: Arc<dyn Listener>,
    job: JobNo,
    export_name: String,
    export: Option<Export>,
    frontier: Frontier,
    contents: Contents,
    tally: Tally,
    /// What was taken from the queue and is not yet settled: under way, or waiting to be kept.
    open: BTreeMap<u64, Entry>,
    pending: Pending,
    losses: Losses,
    first_failure: Option<String>,
    /// Pages that named another one as the original.
    pointers: FxHashSet<u64>,
    sitemaps_read: bool,
    saved_at: Instant,
    saving_took: Duration,
    saved_bytes: usize,
    is_changed: bool,
}

impl std::fmt::Debug for Crawl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crawl").field("tally", &self.tally).finish_non_exhaustive()
    }
}

/// What stops a crawl in the middle.
#[derive(Debug, thiserror::Error)]
enum Stuck {
    #[error("pages can't be kept: {0}")]
    Keeper(#[from] ArchiveError),
    #[error("the crawler broke: {0}")]
    Broken(#[from] tokio::task::JoinError),
    #[error("the export can't be written: {0}")]
    Export(#[from] std::io::Error),
}

impl Crawl {
    pub(crate) fn new(shared: Arc<Shared>, order: Order) -> Self {
        let Order { job, export_name, archive, listener, checkpoint, .. } = order;
        let queue_max = shared.config.queue_max();
        let mut crawl = Self {
            frontier: Frontier::new(queue_max),
            shared,
            archive,
            listener,
            job,
            export_name,
            export: None,
            contents: Contents::default(),
            tally: Tally::default(),
            open: BTreeMap::new(),
            pending: Pending::default(),
            losses: Losses::default(),
            first_failure: None,
            pointers: FxHashSet::default(),
            sitemaps_read: false,
            saved_at: now(),
            saving_took: Duration::ZERO,
            saved_bytes: 0,
            is_changed: false,
        };
        let resumed = checkpoint.is_some_and(|data| crawl.resume(&data));
        if !resumed {
            crawl.start();
        }
        crawl
    }

    fn start(&mut self) {
        for entry in self.starts() {
            self.frontier.offer(entry);
        }
    }

    fn starts(&self) -> Vec<Entry> {
        let start = |url: &Url| Entry { is_start: true, ..Entry::new(url.clone(), 0) };
        self.shared.config.starts.iter().map(start).collect()
    }

    /// Crawls to the end. If this is dropped, requests under way are too.
    pub async fn run(&mut self) -> Ended {
        let ending = match self.go().await {
            Ok(()) => judge(&self.tally, &self.losses, self.first_failure.as_deref()),
            Err(stuck) => {
                self.listener.checkpoint(self.save().await);
                Ending::Failed { error: stuck.to_string(), hopeless: false }
            }
        };
        self.tell();
        self.sum_up();
        if matches!(ending, Ending::Failed { .. }) && self.tally.starts_read == 0 {
            // Another try begins at the beginning, whatever an earlier checkpoint says.
            self.listener.checkpoint(self.save_beginning());
        }
        Ended { ending, tally: self.tally.clone() }
    }

    async fn go(&mut self) -> Result<(), Stuck> {
        if self.shared.config.ndjson
            && let Some(dir) = &self.shared.settings.export_dir
        {
            let room = self.shared.config.store_bytes_max;
            self.export = Some(Export::open(dir, &self.export_name, room).await?);
        }
        self.tell();
        self.crawl_all().await?;
        self.flush().await?;
        if let Some(export) = self.export.take() {
            export.complete().await?;
        }
        Ok(())
    }

    async fn crawl_all(&mut self) -> Result<(), Stuck> {
        let mut visits: JoinSet<Visit> = JoinSet::new();
        loop {
            self.send_out(&mut visits).await?;
            // While a slow page is waited for, what is read already is kept and told.
            let quiet = self.shared.settings.checkpoint_every.max(QUIET_MIN);
            let Ok(next) = tokio::time::timeout(quiet, visits.join_next()).await else {
                self.save_if_due().await?;
                self.tell();
                continue;
            };
            match next {
                Some(visit) => self.settle(visit?),
                None => {
                    self.flush().await?;
                    if self.sitemaps_read || !self.starts_are_settled() {
                        return Ok(());
                    }
                }
            }
            // What follows a start is decided when it is kept.
            if self.pending.is_full() || (visits.is_empty() && !self.starts_are_settled()) {
                self.flush().await?;
            }
            if self.starts_are_settled() && self.tally.starts_read == 0 {
                return Ok(());
            }
            if !self.sitemaps_read && self.starts_are_settled() {
                self.read_sitemaps().await;
            }
            self.tell();
            self.save_if_due().await?;
        }
    }

    fn starts_are_settled(&self) -> bool {
        let starts = self.shared.config.starts.len() as u64;
        self.tally.starts_read + self.tally.starts_lost >= starts
    }

    /// Sends out as many requests as may be under way.
    async fn send_out(&mut self, visits: &mut JoinSet<Visit>) -> Result<(), Stuck> {
        let config = &self.shared.config;
        let (pages_max, connections) = (config.pages_max, config.connections);
        let requests_max = config.requests_max();
        while visits.len() < IN_FLIGHT_MAX
            && self.tally.requests + (visits.len() as u64) < requests_max
            && self.tally.visited + (self.open.len() as u64) < pages_max
        {
            let Some((no, entry)) = self.frontier.pick(connections) else { break };
            let is_looked_up = entry.known != Lookup::NotYet;
            self.open.insert(no, entry);
            if !is_looked_up {
                self.look_up(no).await?;
            }
            if let Some(entry) = self.open.get(&no) {
                visits.spawn(visit(Arc::clone(&self.shared), no, entry.clone()));
            }
        }
        Ok(())
    }

    /// Asks what is known of this page, and of those that come next.
    async fn look_up(&mut self, no: u64) -> Result<(), Stuck> {
        let job = self.job;
        let id = |entry: &Entry| PageId::of(job, entry.url.as_str());
        let first = self.open.get(&no).map(id);
        let next = self.frontier.not_looked_up(BATCH - 1).into_iter().map(|entry| id(entry));
        let ids: Vec<PageId> = first.into_iter().chain(next).collect();
        let archive = Arc::clone(&self.archive);
        let known = pending::insist(|| archive.known(&ids)).await?;
        let mut known: BTreeMap<PageId, _> =
            known.into_iter().map(|page| (page.id, Arc::new(page))).collect();
        // Nothing was queued in the meantime, so these are the same.
        let queued = self.frontier.not_looked_up(BATCH - 1);
        for entry in self.open.get_mut(&no).into_iter().chain(queued) {
            entry.known = Lookup::Done(known.remove(&id(entry)));
        }
        Ok(())
    }

    /// Resolves when the crawl has waited for answers for so long without getting a byte. The time in
    /// which it waits by itself, between requests or for its turn, does not count.
    pub fn silent_for(&self, longest: Duration) -> impl Future<Output = ()> + use<> {
        let shared = Arc::clone(&self.shared);
        async move { shared.silence.lasts(longest).await }
    }

    /// What it has done so far.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    fn tell(&self) {
        let Tally { visited, crawled, indexed, .. } = self.tally;
        let left = self.shared.config.pages_max.saturating_sub(visited);
        let queued = ((self.frontier.queued() + self.open.len()) as u64).min(left);
        self.listener.progress(Progress {
            done: Some(visited),
            total: Some(visited + queued),
            items_crawled: i64::try_from(crawled).ok(),
            items_indexed: i64::try_from(indexed).ok(),
            message: Some(format!("{visited} pages done, {queued} queued")),
        });
    }

    fn sum_up(&self) {
        let Tally { visited, crawled, indexed, copies, skipped, gone, failed, .. } = self.tally;
        self.listener.log(&format!(
            "{visited} pages done: {crawled} read, {indexed} new or changed, {copies} copies, \
             {skipped} left out, {gone} gone, {failed} failed"
        ));
        if self.frontier.left_out > 0 {
            let line = format!("{} links left out: the queue was full", self.frontier.left_out);
            self.listener.log(&line);
        }
        if self.tally.requests >= self.shared.config.requests_max() {
            let requests = self.tally.requests;
            let line = format!("ended after {requests} requests: most of them led to no new page");
            self.listener.log(&line);
        }
        if self.tally.traps > 0 {
            let line = format!("{} links left out: they look endless", self.tally.traps);
            self.listener.log(&line);
        }
    }
}
