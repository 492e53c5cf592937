//! Concurrency limits. A permit exists exactly while its attempt is running.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::limit::{
    Admission, Limit, LimitKey, LimitScope, Limits, OwnPermits, PermitCounts, ReleasePass,
};
use evenkeel_core::{AttemptKey, NodeNo, Timestamp};
use evenkeel_store::{
    Claim, LimitQueue, LimitStore, LimitTerms, Now, Permit, RELEASE_SCAN_MAX, RELEASED_MAX,
    ReleaseStep, Released, StoreError,
};

use super::ModelStore;
use super::data::{Data, Waiting, index};

/// A limit queue to read, the number of attempts to read of each lane, and how many permits are
/// free.
#[derive(Copy, Clone)]
struct Look {
    room: LimitKey,
    look: u32,
    own: OwnPermits,
}

impl Data {
    /// Returns the limits under which the attempt gets permits when it starts. If a limit is
    /// exhausted, moves the attempt to its limit queue and returns `None`.
    pub fn admit(&mut self, claim: &Claim, key: AttemptKey) -> Option<Vec<LimitKey>> {
        let Some(Waiting::Ready(ready)) = self.waiting.get(&(key.job_no, key)) else { return None };
        let (lane, limit) = (ready.order.lane, ready.limit);
        let tenant = self.job(key.job_no).tenant;
        let limits = claim.limits.on(tenant, lane, limit);
        let mut ledger = PermitCounts::default();
        for limit in &limits {
            ledger.note(limit.key, Some(self.running_under(limit.key)));
        }
        match ledger.admit(&limits) {
            Admission::Start => Some(limits.into_iter().map(|limit| limit.key).collect()),
            Admission::Park(full) => {
                let room = full.key.queue_pool();
                self.move_to(key, room, Some(full));
                None
            }
            Admission::Defer => None,
        }
    }

    pub fn running_under(&self, limit: LimitKey) -> u32 {
        self.permits.iter().filter(|(of, _)| *of == limit).count() as u32
    }

    /// Moves a waiting attempt into a limit queue or back to its pool.
    fn move_to(&mut self, key: AttemptKey, pool: String, parked: Option<Limit>) {
        let Some(Waiting::Ready(mut ready)) = self.stop_waiting(key) else { return };
        let home = std::mem::replace(&mut ready.pool, pool);
        ready.parked = parked.map(|limit| (home, limit));
        let lanes = self.queue.entry(ready.pool.clone()).or_default();
        lanes[ready.order.lane as usize].insert((ready.order, key.job_no, key));
        self.waiting.insert((key.job_no, key), Waiting::Ready(ready));
    }

    /// Moves an attempt from its limit queue back to its pool.
    pub fn send_home(&mut self, key: AttemptKey) -> bool {
        let home = match self.waiting.get(&(key.job_no, key)) {
            Some(Waiting::Ready(ready)) => ready.parked.as_ref().map(|(home, _)| home.clone()),
            Some(Waiting::Delayed { .. }) | None => None,
        };
        let is_parked = home.is_some();
        if let Some(home) = home {
            self.move_to(key, home, None);
        }
        is_parked
    }

    /// Returns the attempts of a limit queue that may be claimed now, in dispatch order.
    fn max_in_queue(&self, limit: LimitKey, aging: Aging, now: Timestamp) -> Vec<AttemptKey> {
        let all = Claim {
            node: NodeNo(0),
            node_name: String::new(),
            pools: vec![limit.queue_pool()],
            capacity: usize::MAX,
            guaranteed: [0; 3],
            aging,
            limits: Limits::default(),
        };
        self.first_places(&all, now).into_iter().map(|(_, _, key)| key).collect()
    }

    fn limits_on(&self, key: AttemptKey, limits: &Limits) -> Vec<Limit> {
        match self.waiting.get(&(key.job_no, key)) {
            Some(Waiting::Ready(ready)) => {
                limits.on(self.jobs[index(key.job_no)].tenant, ready.order.lane, ready.limit)
            }
            Some(Waiting::Delayed { .. }) | None => Vec::new(),
        }
    }

    /// Releases from a limit queue the attempts that could start now, and moves attempts that
    /// another limit blocks to the queue of that limit. Returns how many attempts went back to
    /// their pools, and whether permits are left for attempts that were not read.
    fn let_out(
        &mut self,
        look: Look,
        terms: &LimitTerms,
        to_wider: bool,
        now: Timestamp,
    ) -> (u32, bool) {
        let Look { room, look, own } = look;
        let mut lanes = [0; 3];
        let mut first = Vec::new();
        let mut others = PermitCounts::default();
        for key in self.max_in_queue(room, terms.aging, now) {
            let Some(Waiting::Ready(ready)) = self.waiting.get(&(key.job_no, key)) else {
                continue;
            };
            let of_lane = &mut lanes[ready.order.lane as usize];
            *of_lane += 1;
            if *of_lane <= look {
                let limits = self.limits_on(key, &terms.limits);
                for limit in &limits {
                    others.note(limit.key, Some(self.running_under(limit.key)));
                }
                first.push((key, limits));
            }
        }
        let leaving =
            ReleasePass { queue: room, own, others, to_wider }.select(first, RELEASED_MAX as usize);
        let is_cut = lanes.iter().any(|of_lane| *of_lane >= look)
            || leaving.to_queue.len() + leaving.to_limits.len() >= RELEASED_MAX as usize;
        let home = leaving.to_queue.len() as u32;
        for key in leaving.to_queue {
            self.send_home(key);
        }
        for (key, limit) in leaving.to_limits {
            self.send_home(key);
            self.move_to(key, limit.key.queue_pool(), Some(limit));
        }
        (home, is_cut && leaving.has_more)
    }

    fn release_limited(&mut self, ended: &[Permit], terms: &LimitTerms, now: Timestamp) -> u64 {
        let mut counts: BTreeMap<LimitKey, u32> = BTreeMap::new();
        for place in ended {
            *counts.entry(place.limit).or_default() += 1;
        }
        let mut moved = 0;
        for (room, free) in counts {
            loop {
                let look = Look { room, look: RELEASED_MAX, own: OwnPermits::Free(free) };
                let (home, again) = self.let_out(look, terms, true, now);
                moved += u64::from(home);
                if !again {
                    break;
                }
            }
        }
        moved
    }

    fn release_all_limited(&mut self, rooms: &ReleaseStep, now: Timestamp) -> Released {
        let waiting: BTreeSet<LimitKey> = self
            .queue
            .iter()
            .filter(|(_, lanes)| lanes.iter().any(|lane| !lane.is_empty()))
            .filter_map(|(pool, _)| LimitKey::of_queue_pool(pool))
            .filter(|limit| Some(*limit) > rooms.after)
            .collect();
        let (mut unparked, mut looked_at) = (Released::default(), 0);
        for (nth, key) in waiting.iter().enumerate() {
            let room = self.room(*key);
            let most = rooms.terms.limits.max_in_queue(*key, room.highest);
            let running = self.running_under(*key);
            let look = room.look(most.map_or(u32::MAX, |most| most.saturating_sub(running)));
            let is_full = looked_at > 0 && looked_at + look > RELEASE_SCAN_MAX;
            if is_full || nth == rooms.limit as usize {
                return unparked;
            }
            looked_at += look;
            if look > 0 {
                let own = OwnPermits::Running { running, highest: most.unwrap_or(u32::MAX) };
                let look = Look { room: *key, look, own };
                let (home, again) = self.let_out(look, &rooms.terms, rooms.to_wider, now);
                unparked.moved += u64::from(home);
                unparked.again |= again;
            }
            unparked.next = Some(*key);
        }
        if waiting.len() < rooms.limit as usize {
            unparked.next = None;
        }
        unparked
    }

    /// Returns the lowest and the highest limit that was in effect when an attempt of the queue
    /// started to wait.
    fn room(&self, key: LimitKey) -> LimitQueue {
        let turned_away = self.waiting.values().filter_map(|waiting| match waiting {
            Waiting::Ready(ready) => ready.parked.as_ref().map(|(_, limit)| *limit),
            Waiting::Delayed { .. } => None,
        });
        let most = turned_away.filter(|limit| limit.key == key).map(|limit| limit.most);
        let (lowest, highest) =
            most.fold((u32::MAX, 0), |(low, high), most| (most.min(low), most.max(high)));
        LimitQueue { key, lowest, highest }
    }

    /// Counts the attempts that wait for permits, by the scope of the limit.
    pub fn parked(&self, limit: u32) -> [u64; LimitScope::ALL.len()] {
        let parked = self.waiting.values().filter_map(|waiting| match waiting {
            Waiting::Ready(ready) => ready.parked.as_ref().map(|(_, limit)| limit.key.scope()),
            Waiting::Delayed { .. } => None,
        });
        let mut counts = [0; LimitScope::ALL.len()];
        parked.take(limit as usize).for_each(|scope| counts[scope as usize] += 1);
        counts
    }
}

impl ModelStore {
    /// Returns attempts that wait for permits although all their limits have free permits.
    pub fn held_up_by_nothing(&self, limits: &Limits) -> Vec<AttemptKey> {
        let (data, now) = (self.lock(), self.resolve(Now::Database));
        let rooms = data.queue.keys().filter_map(|pool| LimitKey::of_queue_pool(pool));
        let waiting = rooms.flat_map(|room| data.max_in_queue(room, Aging::default(), now));
        let has_places = |key: &AttemptKey| {
            let limits = data.limits_on(*key, limits);
            limits.iter().all(|limit| data.running_under(limit.key) < limit.most)
        };
        waiting.filter(has_places).collect()
    }
}

#[async_trait]
impl LimitStore for ModelStore {
    async fn release_limited(
        &self,
        ended: &[Permit],
        terms: &LimitTerms,
        now: Now,
    ) -> Result<u64, StoreError> {
        Ok(self.lock().release_limited(ended, terms, self.resolve(now)))
    }

    async fn release_all_limited(
        &self,
        rooms: ReleaseStep,
        now: Now,
    ) -> Result<Released, StoreError> {
        Ok(self.lock().release_all_limited(&rooms, self.resolve(now)))
    }

    async fn prune_permits(
        &self,
        _after: Option<Permit>,
        _limit: u32,
    ) -> Result<Option<Permit>, StoreError> {
        Ok(None)
    }
}
