//! Runs one crawl from beginning to end.

mod checkpointing;
mod pending;
mod process_visit;
mod sitemaps;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{JobNo, PageId, Progress};
use evenkeel_outbound::reqwest::Url;
use rustc_hash::FxHashSet;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::archive::{ArchiveError, Listener, PageArchive};
use crate::clock::now;
use crate::contents::Contents;
use crate::counts::CrawlCounts;
use crate::crawler::{CrawlRequest, Shared};
use crate::ending::{Ended, Ending, Losses, judge};
use crate::entry::{Entry, Lookup};
use crate::export::Export;
use crate::frontier::Frontier;
use crate::visit::{Visit, visit};
use pending::Pending;

/// Maximum number of concurrent requests to all hosts of a crawl.
const IN_FLIGHT_MAX: usize = 8;
/// Minimum time that a crawl waits for a page before it saves the pages that it has already read.
const QUIET_MIN: Duration = Duration::from_millis(100);
/// Maximum number of pages in one call to the archive.
const BATCH: usize = 32;

/// One crawl. The future of `run` can be dropped at any moment to interrupt the crawl;
/// `save_interrupted` then returns a checkpoint.
pub struct Crawl {
    shared: Arc<Shared>,
    archive: Arc<dyn PageArchive>,
    listener: Arc<dyn Listener>,
    job: JobNo,
    export_name: String,
    export: Option<Export>,
    frontier: Frontier,
    contents: Contents,
    counts: CrawlCounts,
    /// Pages that were taken from the queue and are being requested or wait to be saved.
    open: BTreeMap<u64, Entry>,
    pending: Pending,
    losses: Losses,
    first_failure: Option<String>,
    /// URL hashes of pages that named another page as their canonical page.
    pointers: FxHashSet<u64>,
    sitemaps_read: bool,
    saved_at: Instant,
    saving_took: Duration,
    saved_bytes: usize,
    is_changed: bool,
}

impl std::fmt::Debug for Crawl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crawl").field("counts", &self.counts).finish_non_exhaustive()
    }
}

/// Why a crawl cannot continue.
#[derive(Debug, thiserror::Error)]
enum CrawlError {
    #[error("pages can't be saved: {0}")]
    Archive(#[from] ArchiveError),
    #[error("the crawler failed: {0}")]
    Broken(#[from] tokio::task::JoinError),
    #[error("the export can't be written: {0}")]
    Export(#[from] std::io::Error),
}

impl Crawl {
    pub(crate) fn new(shared: Arc<Shared>, request: CrawlRequest) -> Self {
        let CrawlRequest { job, export_name, archive, listener, checkpoint, .. } = request;
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
            counts: CrawlCounts::default(),
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
            for entry in crawl.starts() {
                crawl.frontier.offer(entry);
            }
        }
        crawl
    }

    fn starts(&self) -> Vec<Entry> {
        let start = |url: &Url| Entry { is_start: true, ..Entry::new(url.clone(), 0) };
        self.shared.config.starts.iter().map(start).collect()
    }

    /// Runs the crawl to its end and returns the result. Dropping the future aborts open requests.
    pub async fn run(&mut self) -> Ended {
        let ending = match self.run_all().await {
            Ok(()) => judge(&self.counts, &self.losses, self.first_failure.as_deref()),
            Err(stuck) => {
                self.listener.checkpoint(self.save().await);
                Ending::Failed { error: stuck.to_string(), hopeless: false }
            }
        };
        self.report_progress();
        self.log_summary();
        if matches!(ending, Ending::Failed { .. }) && self.counts.starts_read == 0 {
            // The next attempt of the run must start from the beginning, so a checkpoint with only
            // the start URLs replaces any earlier checkpoint.
            self.listener.checkpoint(self.save_beginning());
        }
        Ended { ending, counts: self.counts.clone() }
    }

    async fn run_all(&mut self) -> Result<(), CrawlError> {
        if self.shared.config.ndjson
            && let Some(dir) = &self.shared.settings.export_dir
        {
            let bytes_max = self.shared.config.store_bytes_max;
            self.export = Some(Export::open(dir, &self.export_name, bytes_max).await?);
        }
        self.report_progress();
        self.crawl_all().await?;
        self.flush().await?;
        if let Some(export) = self.export.take() {
            export.complete().await?;
        }
        Ok(())
    }

    async fn crawl_all(&mut self) -> Result<(), CrawlError> {
        let mut visits: JoinSet<Visit> = JoinSet::new();
        loop {
            self.start_visits(&mut visits).await?;
            // While the crawl waits for a slow page, it saves the pages that it has already read
            // and reports progress.
            let quiet = self.shared.settings.checkpoint_every.max(QUIET_MIN);
            let Ok(next) = tokio::time::timeout(quiet, visits.join_next()).await else {
                self.save_if_due().await?;
                self.report_progress();
                continue;
            };
            match next {
                Some(visit) => self.process(visit?),
                None => {
                    self.flush().await?;
                    if self.sitemaps_read || !self.starts_are_done() {
                        return Ok(());
                    }
                }
            }
            // Start pages count as read only once they are saved.
            if self.pending.is_full() || (visits.is_empty() && !self.starts_are_done()) {
                self.flush().await?;
            }
            if self.starts_are_done() && self.counts.starts_read == 0 {
                return Ok(());
            }
            if !self.sitemaps_read && self.starts_are_done() {
                self.read_sitemaps().await;
            }
            self.report_progress();
            self.save_if_due().await?;
        }
    }

    fn starts_are_done(&self) -> bool {
        let starts = self.shared.config.starts.len() as u64;
        self.counts.starts_read + self.counts.starts_lost >= starts
    }

    /// Starts as many page visits as the limits of the crawl allow.
    async fn start_visits(&mut self, visits: &mut JoinSet<Visit>) -> Result<(), CrawlError> {
        let config = &self.shared.config;
        let (pages_max, connections) = (config.pages_max, config.connections);
        let requests_max = config.requests_max();
        while visits.len() < IN_FLIGHT_MAX
            && self.counts.requests + (visits.len() as u64) < requests_max
            && self.counts.visited + (self.open.len() as u64) < pages_max
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

    /// Looks up page `no` and the next queued pages in the archive.
    async fn look_up(&mut self, no: u64) -> Result<(), CrawlError> {
        let job = self.job;
        let id = |entry: &Entry| PageId::of(job, entry.url.as_str());
        let first = self.open.get(&no).map(id);
        let next = self.frontier.not_looked_up(BATCH - 1).into_iter().map(|entry| id(entry));
        let ids: Vec<PageId> = first.into_iter().chain(next).collect();
        let archive = Arc::clone(&self.archive);
        let known = pending::with_retries(|| archive.known(&ids)).await?;
        let mut known: BTreeMap<PageId, _> =
            known.into_iter().map(|page| (page.id, Arc::new(page))).collect();
        // The queue is unchanged since the first call of `not_looked_up`, so the second call
        // returns the same entries.
        let queued = self.frontier.not_looked_up(BATCH - 1);
        for entry in self.open.get_mut(&no).into_iter().chain(queued) {
            entry.known = Lookup::Done(known.remove(&id(entry)));
        }
        Ok(())
    }

    /// Completes once the crawl has waited for responses for `longest` without receiving a byte.
    /// The time in which the crawler pauses between requests or waits for a permit does not count.
    pub fn silent_for(&self, longest: Duration) -> impl Future<Output = ()> + use<> {
        let shared = Arc::clone(&self.shared);
        async move { shared.silence.lasts(longest).await }
    }

    pub const fn counts(&self) -> &CrawlCounts {
        &self.counts
    }

    fn report_progress(&self) {
        let CrawlCounts { visited, crawled, indexed, .. } = self.counts;
        let left = self.shared.config.pages_max.saturating_sub(visited);
        let queued = ((self.frontier.queued + self.open.len()) as u64).min(left);
        self.listener.progress(Progress {
            done: Some(visited),
            total: Some(visited + queued),
            items_processed: i64::try_from(crawled).ok(),
            items_saved: i64::try_from(indexed).ok(),
            message: Some(format!("{visited} pages done, {queued} queued")),
        });
    }

    fn log_summary(&self) {
        let CrawlCounts { visited, crawled, indexed, copies, skipped, gone, failed, .. } =
            self.counts;
        self.log(format!(
            "{visited} pages done: {crawled} read, {indexed} new or changed, {copies} copies, \
             {skipped} left out, {gone} gone, {failed} failed"
        ));
        let CrawlCounts { requests, traps, .. } = self.counts;
        if self.frontier.left_out > 0 {
            self.log(format!("{} links left out: the queue was full", self.frontier.left_out));
        }
        if requests >= self.shared.config.requests_max() {
            self.log(format!("ended after {requests} requests: most of them led to no new page"));
        }
        if traps > 0 {
            self.log(format!("{traps} links left out: they look endless"));
        }
    }

    fn log(&self, line: impl AsRef<str>) {
        self.listener.log(line.as_ref());
    }
}
