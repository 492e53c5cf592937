//! Fires due jobs, retries and triggers.
//!
//! A node runs one or more [`Scheduler`] loops. Each pass loads jobs that are due soon into memory
//! ([`load`], [`upcoming_jobs`]), then fires a batch of due jobs. [`fire`] handles jobs that this
//! node may start, [`enqueue`] handles jobs that must be queued, and [`fire_delayed`] handles
//! retries and triggers. [`start_capacity`] decides how many runs start on this node and how many
//! are queued.

mod claim_windows;
pub(crate) mod definitions;
mod delayed_queue;
pub(crate) mod dispatch_order;
pub(crate) mod due_by_destination;
pub(crate) mod due_jobs;
mod empty_queue;
mod enqueue;
mod fire;
mod fire_delayed;
pub(crate) mod job_entry;
mod load;
pub(crate) mod overlap_waits;
mod read_back;
mod start_capacity;
pub(crate) mod upcoming_jobs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use evenkeel_core::shard::shards_of;
use evenkeel_core::{JobNo, NodeNo, Shard, Timestamp};
use evenkeel_store::{Member, Signal, StoreError};
use tokio::sync::broadcast::error::RecvError;
use tracing::{debug, info};

use crate::cluster::node_context::{Backoff, NodeContext};
use crate::cluster::store_health::log_trouble;
use crate::settings::LINGER_FROM;
use delayed_queue::DelayedQueue;
use empty_queue::EmptyQueueWait;
use start_capacity::QueueObservation;

/// Delay before a full queue is checked again.
const QUEUE_WAIT: Duration = Duration::from_millis(20);
/// Delay after a batch of fires in which this node's copies of all jobs were outdated.
const STALE_WAIT: Duration = Duration::from_millis(20);

/// One of the scheduler loops of a node, with its share of the node's shards.
pub struct Scheduler {
    ctx: Arc<NodeContext>,
    /// Number of this scheduler among the schedulers of the node, from 0 to `count` - 1.
    index: usize,
    count: usize,
    /// Shards (groups of jobs) that this scheduler loads. Any scheduler of the node may fire the
    /// loaded jobs.
    shards: BTreeSet<Shard>,
    /// Nodes with the scheduler role, among which all shards are divided.
    schedulers: Vec<NodeNo>,
    /// Job shards that must be loaded a second time, with the time of the second load. After this
    /// node has loaded a shard, the store may still report changes of its jobs to the former owner
    /// of the shard.
    load_again: BTreeMap<Shard, Duration>,
    /// Value of `NodeContext::shard_absences` when this scheduler loaded its shards.
    absences_seen: u64,
    delayed: DelayedQueue,
    /// Times at which claim windows of queued attempts end, rounded up to seconds.
    window_ends: BTreeSet<Timestamp>,
    /// Time of the last check for attempts whose claim window has ended.
    windows_checked_at: Option<Duration>,
    /// Jobs whose active run must be cancelled, with the scheduled time of the run that replaces
    /// it.
    replacing: Vec<(JobNo, Timestamp)>,
    /// True if jobs in the store may have changed, so the next pass must read changes.
    look_ahead_now: bool,
    looked_ahead_at: Option<Duration>,
    /// Time since which no worker slot was free, with the count of slots given back until that
    /// time.
    no_slot_since: Option<(u64, Duration)>,
    empty_queue_wait: EmptyQueueWait,
    /// State of the queue for the pools that this node serves.
    own_queue: QueueObservation,
    /// True if the queue has no capacity for jobs that this node could also start itself.
    queue_is_full: bool,
    /// True if due jobs must wait until another scheduler of this node has queued jobs with a
    /// higher rank.
    is_held_back: bool,
    /// True if the last pass fired jobs that this node may start before jobs for pool queues.
    local_first: bool,
    /// State of the queue of each pool, for due jobs that this node may not start itself.
    pool_observations: BTreeMap<String, QueueObservation>,
    /// The pool for which this scheduler queued jobs last.
    last_pool: String,
    /// Number of jobs fired by the last batch. A high number indicates load.
    last_batch: usize,
    /// True if the store refused to fire jobs in this pass. On a full disk reads still succeed, so
    /// without this flag the loop would retry without delay.
    could_not_fire: bool,
}

/// Result of one scheduler pass, with the delay before the next pass.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pass {
    pub fired: usize,
    /// Delay after which the next pass starts at the latest.
    pub again_in: Duration,
    /// True if due jobs wait for a worker slot, so the next pass should start as soon as a slot
    /// becomes free.
    pub wants_slot: bool,
}

impl Scheduler {
    /// Creates scheduler `index` of the `count` schedulers of a node, without shards.
    pub fn new(ctx: Arc<NodeContext>, index: usize, count: usize) -> Self {
        let aging = ctx.settings.aging;
        Self {
            ctx,
            index,
            count,
            shards: BTreeSet::new(),
            schedulers: Vec::new(),
            load_again: BTreeMap::new(),
            absences_seen: 0,
            delayed: DelayedQueue::new(aging),
            window_ends: BTreeSet::new(),
            windows_checked_at: None,
            replacing: Vec::new(),
            look_ahead_now: true,
            looked_ahead_at: None,
            no_slot_since: None,
            empty_queue_wait: EmptyQueueWait::default(),
            own_queue: QueueObservation::default(),
            queue_is_full: false,
            is_held_back: false,
            local_first: false,
            pool_observations: BTreeMap::new(),
            last_pool: String::new(),
            last_batch: 0,
            could_not_fire: false,
        }
    }

    /// Determines the shards of this scheduler from the list of cluster members.
    pub fn take_shards(&mut self, members: &[Member]) {
        let schedulers = self.ctx.schedulers(members);
        if schedulers == self.schedulers {
            return;
        }
        let mine: Vec<Shard> = shards_of(self.ctx.node, &schedulers)
            .into_iter()
            .filter(|shard| usize::from(shard.0) % self.count == self.index)
            .collect();
        info!(
            node.no = self.ctx.node.0,
            shards.count = mine.len(),
            nodes.count = schedulers.len(),
            scheduler.index = self.index,
            "schedulers joined or left the cluster; this scheduler takes its new share of the job shards"
        );
        let handed_over_at = self.handover_ends_at();
        self.load_again.retain(|shard, _| mine.contains(shard));
        if self.ctx.store.is_shared() {
            // Shards that this node already owned are loaded again as well, because the store may
            // have reported changes of their jobs to a node that now rejoins.
            self.load_again.extend(mine.iter().map(|shard| (*shard, handed_over_at)));
        }
        self.schedulers = schedulers;
        let mine: BTreeSet<Shard> = mine.into_iter().collect();
        {
            let due_jobs = &mut *self.ctx.due.lock();
            for lost in self.shards.difference(&mine) {
                due_jobs.loaded.remove(lost);
            }
            for shard in &mine {
                due_jobs.loaded.entry(*shard).or_default();
            }
            due_jobs.upcoming.retain_shards(|shard| due_jobs.loaded.contains_key(&shard));
        }
        self.shards = mine;
        self.delayed.retain(|key| self.shards.contains(&Shard::of(key.job_no)));
        self.windows_checked_at = None;
        self.look_ahead_now = true;
    }

    /// Loads changes of jobs, then fires one batch of due jobs.
    pub async fn run_once(&mut self) -> Result<Pass, StoreError> {
        let poll = self.ctx.settings.poll;
        if !self.ctx.may_start() || self.shards.is_empty() {
            return Ok(Pass { fired: 0, again_in: poll, wants_slot: false });
        }
        self.unload_missed_shards();
        let all_loaded = self.load_shards().await?;
        self.reload_stale().await?;
        self.look_ahead_if_needed().await?;
        (self.queue_is_full, self.is_held_back) = (false, false);
        self.retry_ended_overlaps();
        self.ctx.due.lock().upcoming.move_due(self.ctx.db_now());
        let (woken, delayed_wants_slot) = self.fire_delayed().await?;
        let now = self.ctx.db_now();
        self.ctx.due.lock().upcoming.move_due(now);
        // Jobs that this node may start and jobs for pool queues may compete for capacity of the
        // same queue, so the two kinds take turns at being fired first.
        self.local_first = !self.local_first;
        let ((fired_here, due_wants_slot), (fired_elsewhere, queues_again_in)) = if self.local_first
        {
            let here = self.fire_local(now).await?;
            (here, self.fire_to_pools(now).await?)
        } else {
            let elsewhere = self.fire_to_pools(now).await?;
            (self.fire_local(now).await?, elsewhere)
        };
        self.report_late_jobs();
        self.end_replaced().await?;
        self.reopen_closed_windows().await?;
        self.last_batch = woken + fired_here + fired_elsewhere;
        let wants_slot = delayed_wants_slot || due_wants_slot;
        let has_stale = !self.ctx.due.lock().reload.is_empty();
        let again_in = if !all_loaded || has_stale {
            // If all jobs of the batch were outdated in memory, this node may have been declared
            // dead. The next ping will show whether this node was declared dead.
            if self.last_batch == 0 && all_loaded { STALE_WAIT } else { Duration::ZERO }
        } else if woken > 0 && self.delayed.has_more_due() {
            // The attempt that must start first is known only when all due attempts are loaded.
            Duration::ZERO
        } else if self.is_held_back {
            self.ctx.settings.linger
        } else if self.queue_is_full {
            QUEUE_WAIT
        } else if wants_slot {
            self.ctx.settings.stall
        } else {
            self.until_next().min(poll)
        };
        let again_in = queues_again_in.map_or(again_in, |queues| queues.min(again_in));
        // Jobs that wait for queue capacity or for another scheduler cannot use a free worker slot.
        let waits = self.queue_is_full || self.is_held_back;
        let wants_slot = wants_slot && !waits && self.ctx.settings.roles.worker;
        Ok(Pass { fired: self.last_batch, again_in, wants_slot })
    }

    /// Returns the time at which all other nodes have certainly noticed which shards this node
    /// owns.
    fn handover_ends_at(&self) -> Duration {
        let leases = self.ctx.settings.leases;
        let handed_over = leases.silent_after.saturating_add(leases.ping);
        self.ctx.clock.monotonic() + Duration::from(handed_over)
    }

    /// Unloads the shards of this scheduler if the store may have reported changes of their jobs to
    /// other nodes.
    fn unload_missed_shards(&mut self) {
        let away = self.ctx.shard_absences.load(Ordering::Acquire);
        if std::mem::replace(&mut self.absences_seen, away) != away {
            self.unload_shards();
            // The store reports changes of this node's jobs to other nodes until they notice that
            // this node is back.
            let handed_over_at = self.handover_ends_at();
            self.load_again.extend(self.shards.iter().map(|shard| (*shard, handed_over_at)));
        }
        let now = self.ctx.clock.monotonic();
        let due_jobs = &mut *self.ctx.due.lock();
        self.load_again.retain(|shard, handed_over_at| {
            let due = *handed_over_at <= now;
            if due {
                due_jobs.loaded.insert(*shard, None);
            }
            !due
        });
    }

    fn unload_shards(&self) {
        let due_jobs = &mut *self.ctx.due.lock();
        for shard in &self.shards {
            due_jobs.loaded.insert(*shard, None);
        }
    }

    fn until_next(&mut self) -> Duration {
        let next_try_at = self.ctx.due.lock().upcoming.next_try_at();
        let next = [self.delayed.next_due(), next_try_at].into_iter().flatten().min();
        let wait = next.map_or(Duration::MAX, |due| self.ctx.db_clock.until(due));
        // Under load, wait a few milliseconds so that the next batch contains more jobs.
        let linger =
            if self.last_batch >= LINGER_FROM { self.ctx.settings.linger } else { Duration::ZERO };
        wait.max(linger).min(self.until_window_end())
    }

    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        let mut stopping = ctx.stopping.subscribe();
        let mut members = ctx.members.subscribe();
        // Subscribe to signals before the first pass, or the scheduler could miss a signal.
        let mut signals = ctx.store.signals().subscribe();
        let mut ends = ctx.overlap_waits.ends();
        let mut backoff = Backoff::default();
        members.mark_changed();
        while !*stopping.borrow_and_update() {
            if members.has_changed().unwrap_or(false) {
                let now_members = members.borrow_and_update().clone();
                self.take_shards(&now_members);
            }
            ends.mark_unchanged();
            let passed = self.run_once().await;
            let could_not_fire = std::mem::take(&mut self.could_not_fire);
            let pass = match passed {
                Ok(pass) if !could_not_fire => {
                    backoff.reset();
                    pass
                }
                failed => {
                    if let Err(error) = failed {
                        log_trouble(&error, "finding and firing due jobs failed; will retry");
                    }
                    // While the store refuses writes, signals must not shorten the delay before the
                    // next try.
                    ctx.pause(backoff.next()).await;
                    continue;
                }
            };
            if pass.again_in.is_zero() {
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                biased;
                _ = stopping.changed() => {}
                _ = members.changed(), if self.index == 0 => {
                    members.mark_changed();
                    ctx.due.members_changed.notify_waiters();
                }
                () = ctx.due.members_changed.notified(), if self.index > 0 => {}
                signal = signals.recv() => match signal {
                    Ok(Signal::Jobs) | Err(RecvError::Lagged(_)) => self.look_ahead_now = true,
                    // Signals other than `Signal::Jobs` only start the next pass early.
                    Ok(_) => {}
                    Err(RecvError::Closed) => return,
                },
                Ok(()) = ends.changed(), if self.index == 0 => {}
                () = ctx.worker.slots.freed(pass.again_in), if pass.wants_slot => {}
                () = tokio::time::sleep(pass.again_in) => {}
            }
        }
        debug!(node.no = ctx.node.0, scheduler.index = self.index, "scheduler stopped");
    }
}
