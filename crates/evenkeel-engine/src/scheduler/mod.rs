//! Fires what is due: loads the near upcoming, waits for it, and turns due jobs into runs in batches.

mod claim_windows;
pub(crate) mod definitions;
mod delayed_queue;
pub(crate) mod dispatch_order;
pub(crate) mod due_by_destination;
pub(crate) mod due_jobs;
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
use delayed_queue::DelayedQueue;
use start_capacity::QueueObservation;

/// Between two looks at a full queue.
const QUEUE_WAIT: Duration = Duration::from_millis(20);
/// After a batch of which nothing was as it was known.
const STALE_WAIT: Duration = Duration::from_millis(20);

/// One of a node's schedulers, with its part of the node's shards.
pub struct Scheduler {
    ctx: Arc<NodeContext>,
    /// It is number `index` of `count`.
    index: usize,
    count: usize,
    /// The shards that it loads. What is due in them any scheduler of the node may fire.
    shards: BTreeSet<Shard>,
    /// Who shares all shards.
    schedulers: Vec<NodeNo>,
    /// Shards to load once more, and when: whoever had them before may have been told of changes
    /// in them after they were loaded here.
    load_again: BTreeMap<Shard, Duration>,
    /// As of which time away its shards are loaded.
    absences_seen: u64,
    /// Retries and triggers that are due soon.
    delayed: DelayedQueue,
    /// When attempts in the queue close, in whole seconds.
    window_ends: BTreeSet<Timestamp>,
    /// When those that have closed were last looked for.
    windows_checked_at: Option<Duration>,
    /// What goes on of these jobs is to make room for these times.
    replacing: Vec<(JobNo, Timestamp)>,
    /// Something may be new in the store.
    look: bool,
    /// When the store was last asked for what is new.
    looked_at: Option<Duration>,
    /// Since when no place could be had, and how many had been given back then.
    no_slot_since: Option<(u64, Duration)>,
    /// The queue when it was last seen to change.
    own_queue: QueueObservation,
    /// There is no room in the queue for what this node could start itself.
    queue_is_full: bool,
    /// What is due must wait until another scheduler has stored a batch that ranks higher.
    is_held_back: bool,
    /// Who had the first turn in the last pass: what may start here, or what goes into a queue.
    local_first: bool,
    /// The queues of pools for which something waits that this node may not start.
    pool_observations: BTreeMap<String, QueueObservation>,
    /// The one that was last served.
    last_pool: String,
    /// How many the last batch fired: many means load.
    last_batch: usize,
    /// In this pass the store refused to fire. Reads may go on to work meanwhile, as on a full disk,
    /// and then everything looks as if it only had to be fired once more.
    could_not_fire: bool,
}

/// What one pass did, and when to come again.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pass {
    /// Jobs and wakes that were fired.
    pub fired: usize,
    /// Come again after this time at the latest.
    pub again_in: Duration,
    /// Come again when a place comes free.
    pub wants_slot: bool,
}

impl Scheduler {
    /// Scheduler number `index` of `count` on this node, without shards yet.
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
            look: true,
            looked_at: None,
            no_slot_since: None,
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

    /// Takes the shards that are its own while `members` take part.
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
            "scheduler {} now looks after {} shards",
            self.index,
            mine.len()
        );
        let settled = self.settled_at();
        self.load_again.retain(|shard, _| mine.contains(shard));
        if self.ctx.store.is_shared() {
            // Also those it had: who comes may be somebody who was gone without knowing it, and
            // who was told of changes in any shard.
            self.load_again.extend(mine.iter().map(|shard| (*shard, settled)));
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
        self.look = true;
    }

    /// Brings memory up to date, then fires one batch of what is due.
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
        // Both may want the room of one queue, so each is first in every other pass.
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
            // Nothing but stale copies: perhaps this node is no longer alive. Its ping will tell.
            if self.last_batch == 0 && all_loaded { STALE_WAIT } else { Duration::ZERO }
        } else if woken > 0 && self.delayed.has_more_due() {
            // Until all that is due stands in the queue, nobody knows who goes first.
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
        // A free place is of no use to what waits for the queue, or for another scheduler.
        let waits = self.queue_is_full || self.is_held_back;
        let wants_slot = wants_slot && !waits && self.ctx.settings.roles.worker;
        Ok(Pass { fired: self.last_batch, again_in, wants_slot })
    }

    /// By then, on this node's clock, all others know which shards are its own.
    fn settled_at(&self) -> Duration {
        let leases = self.ctx.settings.leases;
        let handed_over = leases.silent_after.saturating_add(leases.ping);
        self.ctx.clock.monotonic() + Duration::from(handed_over)
    }

    /// Shards whose changes others may have been told of are loaded anew.
    fn unload_missed_shards(&mut self) {
        let away = self.ctx.shard_absences.load(Ordering::Acquire);
        if std::mem::replace(&mut self.absences_seen, away) != away {
            self.unload_shards();
            // Until they hear of this node again, they go on being told of changes there.
            let settled = self.settled_at();
            self.load_again.extend(self.shards.iter().map(|shard| (*shard, settled)));
        }
        let now = self.ctx.clock.monotonic();
        let due_jobs = &mut *self.ctx.due.lock();
        self.load_again.retain(|shard, settled| {
            let due = *settled <= now;
            if due {
                due_jobs.loaded.insert(*shard, None);
            }
            !due
        });
    }

    /// All its shards must be loaded again.
    fn unload_shards(&self) {
        let due_jobs = &mut *self.ctx.due.lock();
        for shard in &self.shards {
            due_jobs.loaded.insert(*shard, None);
        }
    }

    /// How long until something is due.
    fn until_next(&mut self) -> Duration {
        let next_look = self.ctx.due.lock().upcoming.next_look();
        let next = [self.delayed.next_due(), next_look].into_iter().flatten().min();
        let wait = next.map_or(Duration::MAX, |due| self.ctx.db_clock.until(due));
        // Under load a batch waits for company; alone it does not.
        let linger = if self.last_batch > 16 { self.ctx.settings.linger } else { Duration::ZERO };
        wait.max(linger).min(self.until_window_end())
    }

    /// Runs until the node stops.
    pub async fn run(mut self) {
        let ctx = Arc::clone(&self.ctx);
        let mut stopping = ctx.stopping.subscribe();
        let mut members = ctx.members.subscribe();
        // Subscribe before looking, or a wake-up falls between.
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
                        log_trouble(&error, "scheduling failed; will retry");
                    }
                    // Signals and ends are worth nothing until the store takes changes again.
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
                    Ok(Signal::Jobs) | Err(RecvError::Lagged(_)) => self.look = true,
                    Ok(
                        Signal::Ready
                        | Signal::Cancel
                        | Signal::Nodes
                        | Signal::Messages
                        | Signal::Events,
                    ) => {}
                    Err(RecvError::Closed) => return,
                },
                Ok(()) = ends.changed(), if self.index == 0 => {}
                () = ctx.worker.slots.freed(pass.again_in), if pass.wants_slot => {}
                () = tokio::time::sleep(pass.again_in) => {}
            }
        }
        debug!(node.no = ctx.node.0, "scheduler {} has stopped", self.index);
    }
}
