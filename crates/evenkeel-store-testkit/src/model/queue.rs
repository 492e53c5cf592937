//! The queue from which workers claim attempts.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::lease::Fence;
use evenkeel_core::order::{DispatchKey, Lane};
use evenkeel_core::{AttemptKey, NodeNo, Timestamp};
use evenkeel_store::{
    AfterLoss, Cancellation, Claim, ClaimWindow, Claimed, ClaimedAttempt, FinishResult,
    OVERRIDE_ALPHA, OwnedAttempt, QueueEntry, QueuePosition, Requeue, Results,
};

use super::data::{Data, Place, Ready, RunRow, Waiting};

impl Data {
    pub fn enqueue(&mut self, key: AttemptKey, entry: QueueEntry, fence: Fence, crashes: u16) {
        let order = DispatchKey {
            lane: entry.lane,
            priority: Reverse(entry.priority),
            should_start_by: entry.should_start_by,
            ready_at: entry.since,
        };
        let lanes = self.queue.entry(entry.pool.clone()).or_default();
        lanes[entry.lane as usize].insert((order, key.job_no, key));
        let ready = Ready {
            pool: entry.pool,
            order,
            fence,
            crashes,
            window: ClaimWindow { from: entry.open_from, until: entry.open_until },
            forbidden_nodes: entry.forbidden_nodes,
            rise: entry.rise,
            is_own_priority: entry.is_own_priority,
            limit: entry.limit,
            parked: None,
        };
        self.waiting.insert((key.job_no, key), Waiting::Ready(ready));
    }

    /// Starts an attempt on a node; all starts of attempts use this function.
    pub fn start(
        &mut self,
        node: NodeNo,
        key: AttemptKey,
        fence: Fence,
        crashes: u16,
        now: Timestamp,
    ) -> Fence {
        let job = self.job(key.job_no);
        job.executions += 1;
        let run = RunRow {
            priority: None,
            tenant: job.tenant,
            status: AttemptStatus::Running,
            fence,
            crashes,
            node: Some(node),
            number: Some(job.executions),
            started_at: Some(now),
            finished_at: None,
            results: Results::default(),
            skipped: None,
        };
        self.runs.insert(key, run);
        self.running.insert((node, key));
        self.lower_bound(node, key);
        fence
    }

    pub fn claim(&mut self, claim: &Claim, now: Timestamp) -> Claimed {
        let mut left = claim.clone();
        let mut started = Vec::new();
        let mut anew = self.is_live(claim.node);
        while anew && left.capacity > 0 {
            anew = false;
            for place in self.first_places(&left, now) {
                let (order, no, key) = place;
                let Some(limits) = self.admit(claim, key) else {
                    anew = true;
                    continue;
                };
                let Some(Waiting::Ready(ready)) = self.stop_waiting(key) else { continue };
                let rank = Reverse(claim.aging.rank(order.priority.0, ready.rise, now));
                let fence = self.start(claim.node, key, ready.fence.next(), ready.crashes, now);
                self.permits.extend(limits.iter().map(|limit| (*limit, key)));
                let checkpoint = self.checkpoint_of(key).cloned();
                if let Some(run) = self.runs.get_mut(&key) {
                    run.priority = ready.own_priority();
                }
                let job = self.job(no);
                let attempt = ClaimedAttempt {
                    key,
                    fence,
                    tenant: job.tenant,
                    definition: job.text.clone(),
                    checkpoint,
                    since: ready.order.ready_at,
                    priority: ready.own_priority(),
                    permits: limits,
                };
                let place = (order.lane, rank, order.should_start_by, order.ready_at, no, key);
                started.push((place, attempt));
                left.capacity -= 1;
                let guaranteed = &mut left.guaranteed[order.lane as usize];
                *guaranteed = guaranteed.saturating_sub(1);
            }
        }
        started.sort_unstable_by_key(|(place, _)| *place);
        let attempts = started.into_iter().map(|(_, attempt)| attempt).collect();
        Claimed { now, attempts, again: false }
    }

    /// Returns the queue positions that a claim gets, in dispatch order.
    pub fn first_places(&self, claim: &Claim, now: Timestamp) -> Vec<Place> {
        let waiting = Lane::ALL.map(|lane| self.first_of_lane(claim, lane, now));
        let mut shares = [0; Lane::ALL.len()];
        let mut left = claim.capacity;
        for lane in 0..shares.len() {
            shares[lane] = claim.guaranteed[lane].min(waiting[lane].len()).min(left);
            left -= shares[lane];
        }
        for lane in 0..shares.len() {
            let more = (waiting[lane].len() - shares[lane]).min(left);
            shares[lane] += more;
            left -= more;
        }
        waiting
            .into_iter()
            .zip(shares)
            .flat_map(|(lane, share)| lane.into_iter().take(share))
            .collect()
    }

    /// Returns all claimable attempts of a lane, sorted by their current rank, without an index.
    fn first_of_lane(&self, claim: &Claim, lane: Lane, now: Timestamp) -> Vec<Place> {
        let pools = claim.pools.iter().collect::<BTreeSet<_>>().into_iter();
        let pools = pools.filter_map(|pool| self.queue.get(pool));
        let may_go = |place: &Place| match self.waiting.get(&(place.1, place.2)) {
            Some(Waiting::Ready(ready)) => {
                let open = is_open(ready.window, now);
                let allowed = !ready.forbidden_nodes.contains(&claim.node_name);
                let rank = claim.aging.rank(ready.order.priority.0, ready.rise, now);
                (open && allowed).then_some((Reverse(rank), *place))
            }
            Some(Waiting::Delayed { .. }) | None => None,
        };
        let mut places: Vec<_> =
            pools.flat_map(|lanes| &lanes[lane as usize]).filter_map(may_go).collect();
        places.sort_unstable_by_key(|(rank, (order, no, key))| {
            (*rank, order.should_start_by, order.ready_at, *no, *key)
        });
        places.into_iter().map(|(_, place)| place).take(claim.capacity).collect()
    }

    pub fn requeue(&mut self, node: NodeNo, batch: Vec<Requeue>, now: Timestamp) -> Vec<bool> {
        batch.into_iter().map(|requeue| self.requeue_one(node, requeue, now)).collect()
    }

    fn requeue_one(&mut self, node: NodeNo, requeue: Requeue, now: Timestamp) -> bool {
        let key = requeue.key;
        if !self.running.contains(&(node, key)) {
            return false;
        }
        if let Some(finish) = requeue.finish() {
            let failed = self.finish(node, vec![finish], OVERRIDE_ALPHA) == [FinishResult::Done];
            if let Some(run) = self.runs.get_mut(&key).filter(|_| failed) {
                run.crashes = run.crashes.saturating_add(u16::from(requeue.crashed));
            }
            return failed;
        }
        let AfterLoss::Queue(entry) = requeue.then else { return false };
        let stops = self.find(key.job_no).is_none_or(|job| job.stops(key.scheduled_at));
        let asked_to_end = self.cancellations.get(&(node, key)).copied();
        let Some(run) = self.runs.get_mut(&key).filter(|run| run.fence == requeue.fence) else {
            return false;
        };
        run.fence = run.fence.next();
        run.crashes = run.crashes.saturating_add(u16::from(requeue.crashed));
        let (fence, crashes) = (run.fence, run.crashes);
        if stops || asked_to_end.is_some() {
            // No worker may start the attempt again, so it is finished here.
            run.status = match asked_to_end {
                Some(true) => Outcome::Superseded.into(),
                Some(false) | None => Outcome::Cancelled.into(),
            };
            run.finished_at = Some(now);
            self.job(key.job_no).last_outcome = Some(match asked_to_end {
                Some(true) => Outcome::Superseded,
                Some(false) | None => Outcome::Cancelled,
            });
            self.end_chain(key.job_no);
            self.tell_of_end(key.job_no);
        } else {
            run.status = AttemptStatus::Pending;
            self.enqueue(key, entry, fence, crashes);
        }
        self.notes.remove(&key);
        self.release(node, key);
        true
    }

    /// Removes an attempt from its node.
    pub fn release(&mut self, node: NodeNo, key: AttemptKey) {
        self.running.remove(&(node, key));
        self.permits.retain(|(_, holder)| *holder != key);
        self.cancellations.remove(&(node, key));
    }

    pub fn find_owned(&self, node: NodeNo, keys: &[AttemptKey]) -> Vec<OwnedAttempt> {
        let held = keys.iter().filter(|key| self.running.contains(&(node, **key)));
        held.filter_map(|key| self.owned_one(*key)).collect()
    }

    pub fn owned(&self, node: NodeNo, limit: u32) -> Vec<OwnedAttempt> {
        let finds = |key: &AttemptKey| self.node(node).is_none_or(|row| row.bound.finds(*key));
        let held = self.running_on(node).filter(finds).take(limit as usize);
        held.filter_map(|key| self.owned_one(key)).collect()
    }

    pub fn running_on(&self, node: NodeNo) -> impl Iterator<Item = AttemptKey> {
        let no_job = evenkeel_core::JobNo(i64::MIN);
        let first = AttemptKey::regular(no_job, Timestamp::from_micros(i64::MIN));
        let held = self.running.range((node, first)..);
        held.take_while(move |(of, _)| *of == node).map(|(_, key)| *key)
    }

    pub fn owned_one(&self, key: AttemptKey) -> Option<OwnedAttempt> {
        let (run, job) = (self.runs.get(&key)?, self.find(key.job_no)?);
        Some(OwnedAttempt {
            key,
            fence: run.fence,
            tenant: run.tenant,
            started_at: run.started_at?,
            crashes: run.crashes,
            definition: job.text.clone(),
            priority: run.priority,
        })
    }

    pub fn cancellations(&mut self, node: NodeNo) -> Vec<Cancellation> {
        let running = &self.running;
        self.cancellations.retain(|held, _| held.0 != node || running.contains(held));
        let of_node = self.cancellations.iter().filter(|((of, _), _)| *of == node);
        of_node
            .map(|((_, key), superseded)| Cancellation { key: *key, superseded: *superseded })
            .collect()
    }

    pub fn waiting_ahead(
        &self,
        pools: &[String],
        place: QueuePosition,
        limit: u32,
        now: Timestamp,
    ) -> u32 {
        let QueuePosition { lane, rank, aging } = place;
        let waiting = pools.iter().collect::<BTreeSet<_>>().into_iter();
        let waiting = waiting.filter_map(|pool| self.queue.get(pool)).flatten().flatten();
        let is_ahead = |place: &&Place| match self.waiting.get(&(place.1, place.2)) {
            Some(Waiting::Ready(ready)) if ready.window.from.is_none() => {
                let theirs = aging.rank(ready.order.priority.0, ready.rise, now);
                ready.order.lane == lane && theirs >= rank
            }
            Some(Waiting::Ready(_) | Waiting::Delayed { .. }) | None => false,
        };
        waiting.filter(is_ahead).take(limit as usize).count() as u32
    }

    pub fn waiting(&self, pools: &[String], limit: u32) -> u32 {
        let lanes = pools.iter().filter_map(|pool| self.queue.get(pool)).flatten();
        let open = |place: &&Place| match self.waiting.get(&(place.1, place.2)) {
            Some(Waiting::Ready(ready)) => ready.window.from.is_none(),
            Some(Waiting::Delayed { .. }) | None => false,
        };
        lanes.flatten().filter(open).take(limit as usize).count() as u32
    }
}

fn is_open(window: ClaimWindow, now: Timestamp) -> bool {
    window.from.is_none_or(|from| from <= now) && window.until.is_none_or(|until| now < until)
}
