//! One crawl from beginning to end.

mod pending;
mod settle;
mod sitemaps;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{JobNo, PageId, Progress};
use rustc_hash::FxHashSet;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::checkpoint::{Checkpoint, Head};
use crate::clock::now;
use crate::contents::Contents;
use crate::crawler::{Order, Shared};
use crate::ending::{Ended, Ending, Losses, judge};
use crate::export::Export;
use crate::frontier::{Entry, Frontier, Lookup};
use crate::keeper::{KeeperError, Listener, PageKeeper};
use crate::tally::Tally;
use crate::visit::{Visit, visit};
use pending::Pending;

/// Requests under way at once, over all hosts of a crawl.
const IN_FLIGHT_MAX: usize = 8;
/// Pages that are looked up or kept at once.
const BATCH: usize = 32;
/// What is left is kept within this time when a crawl is ended.
const WIND_UP_MAX: Duration = Duration::from_millis(500);
/// A checkpoint may take this part of the time at most.
const CHECKPOINT_SHARE: u32 = 20;

/// One crawl. It can be dropped at any moment while it runs, and then be asked for what a later one
/// can go on from.
pub struct Crawl {
    shared: Arc<Shared>,
    keeper: Arc<dyn PageKeeper>,
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
    Keeper(#[from] KeeperError),
    #[error("the crawler broke: {0}")]
    Broken(#[from] tokio::task::JoinError),
    #[error("the export can't be written: {0}")]
    Export(#[from] std::io::Error),
}

impl Crawl {
    pub(crate) fn new(shared: Arc<Shared>, order: Order) -> Self {
        let Order { job, export_name, keeper, listener, checkpoint, .. } = order;
        let queue_max = shared.config.queue_max();
        let mut crawl = Self {
            frontier: Frontier::new(queue_max),
            shared,
            keeper,
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
            is_changed: false,
        };
        let resumed = checkpoint.is_some_and(|data| crawl.resume(&data));
        if !resumed {
            crawl.start();
        }
        crawl
    }

    fn start(&mut self) {
        for url in &self.shared.config.starts {
            let mut entry = Entry::new(url.clone(), 0);
            entry.is_start = true;
            self.frontier.offer(entry);
        }
    }

    /// Goes on from a checkpoint, if it is of any use.
    fn resume(&mut self, data: &[u8]) -> bool {
        let config = &self.shared.config;
        let Checkpoint { head, queue, seen, contents } =
            match Checkpoint::decode(data, config.fingerprint) {
                Ok(checkpoint) => checkpoint,
                Err(error) => {
                    let line = format!("the checkpoint is not used: {error}; starting afresh");
                    self.listener.log(&line);
                    return false;
                }
            };
        let Tally { visited, .. } = head.tally;
        let cut = match head.cut {
            0 => String::new(),
            cut => format!(", {cut} did not fit into the checkpoint"),
        };
        let waiting = queue.len();
        self.listener.log(&format!("going on: {visited} pages done, {waiting} queued{cut}"));
        self.frontier = Frontier::with_seen(config.queue_max(), seen);
        queue.into_iter().for_each(|entry| self.frontier.put_last(entry));
        self.contents = contents;
        self.tally = head.tally;
        self.sitemaps_read = head.sitemaps_read;
        self.losses.first = head.first_loss;
        self.losses.hopeful = self.losses.first.is_some();
        true
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
            let mut fresh = Checkpoint::default();
            fresh.head.fingerprint = self.shared.config.fingerprint;
            let mut frontier = Frontier::new(self.shared.config.queue_max());
            std::mem::swap(&mut self.frontier, &mut frontier);
            self.start();
            fresh.queue = self.frontier.entries().into_iter().map(|(_, e)| e.clone()).collect();
            fresh.seen = self.frontier.seen().iter().copied().collect();
            self.listener.checkpoint(fresh.encode(self.shared.settings.checkpoint_bytes_max));
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
        let mut visits: JoinSet<Visit> = JoinSet::new();
        self.tell();
        loop {
            self.send_out(&mut visits).await?;
            match visits.join_next().await {
                Some(visit) => self.settle(visit?),
                None => {
                    self.flush().await?;
                    if self.sitemaps_read || !self.starts_are_settled() {
                        break;
                    }
                }
            }
            if self.pending.is_full() || visits.is_empty() {
                self.flush().await?;
            }
            if self.starts_are_settled() && self.tally.starts_read == 0 {
                break;
            }
            if !self.sitemaps_read && self.starts_are_settled() {
                self.read_sitemaps().await;
            }
            self.tell();
            self.save_if_due().await?;
        }
        if let Some(export) = self.export.take() {
            export.complete().await?;
        }
        Ok(())
    }

    fn starts_are_settled(&self) -> bool {
        let starts = self.shared.config.starts.len() as u64;
        self.tally.starts_read + self.tally.starts_lost >= starts
    }

    /// Sends out as many requests as may be under way.
    async fn send_out(&mut self, visits: &mut JoinSet<Visit>) -> Result<(), Stuck> {
        let config = &self.shared.config;
        let (pages_max, connections) = (config.pages_max, config.connections);
        while visits.len() < IN_FLIGHT_MAX
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
        let keeper = Arc::clone(&self.keeper);
        let known = pending::insist(|| keeper.known(&ids)).await?;
        let mut known: BTreeMap<PageId, _> =
            known.into_iter().map(|page| (page.id, Arc::new(page))).collect();
        // Nothing was queued in the meantime, so these are the same.
        let queued = self.frontier.not_looked_up(BATCH - 1);
        for entry in self.open.get_mut(&no).into_iter().chain(queued) {
            entry.known = Lookup::Done(known.remove(&id(entry)));
        }
        Ok(())
    }

    /// What a later crawl can go on from.
    pub async fn save(&self) -> Vec<u8> {
        let open = self.open.values();
        let queued = self.frontier.entries();
        let bare = |entry: &Entry| Entry { known: Lookup::NotYet, ..entry.clone() };
        let checkpoint = Checkpoint {
            head: Head {
                fingerprint: self.shared.config.fingerprint,
                tally: self.tally.clone(),
                sitemaps_read: self.sitemaps_read,
                first_loss: self.losses.first.clone(),
                cut: 0,
            },
            queue: open.chain(queued.iter().map(|(_, entry)| *entry)).map(bare).collect(),
            seen: self.frontier.seen().iter().copied().collect(),
            contents: self.contents.clone(),
        };
        let bytes_max = self.shared.settings.checkpoint_bytes_max;
        // Packing a large one takes a moment, and does not fail.
        let packing = tokio::task::spawn_blocking(move || checkpoint.encode(bytes_max));
        packing.await.unwrap_or_default()
    }

    /// The same for a crawl that was ended in the middle: what is read already is kept first, if
    /// the keeper is quick about it.
    pub async fn wind_up(&mut self) -> Vec<u8> {
        // If it is not, those pages are in the checkpoint, and will be read again.
        let _ = tokio::time::timeout(WIND_UP_MAX, self.flush()).await;
        self.save().await
    }

    /// Pages that the checkpoint no longer has are kept before it is handed over.
    async fn save_if_due(&mut self) -> Result<(), Stuck> {
        let every = self.shared.settings.checkpoint_every;
        let pause = every.max(self.saving_took * CHECKPOINT_SHARE);
        if !self.is_changed || now() - self.saved_at < pause {
            return Ok(());
        }
        self.flush().await?;
        let started = now();
        self.listener.checkpoint(self.save().await);
        self.saved_at = now();
        self.saving_took = self.saved_at - started;
        self.is_changed = false;
        Ok(())
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
        if self.tally.traps > 0 {
            let line = format!("{} links left out: they look endless", self.tally.traps);
            self.listener.log(&line);
        }
    }
}
