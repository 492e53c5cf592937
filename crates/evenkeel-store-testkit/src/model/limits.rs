//! Limits of how many runs go on at once: nobody without a place, and no place without a run.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use evenkeel_core::aging::Aging;
use evenkeel_core::limit::{Ledger, Limit, LimitKey, LimitScope, Limits, Verdict, who_fits};
use evenkeel_core::{NodeNo, RunKey, Timestamp};
use evenkeel_store::{
    Claim, LimitPlace, LimitStore, Now, Rooms, StoreError, UNPARKED_MAX, Unparked,
};

use super::ModelStore;
use super::data::{Data, Waiting};

impl Data {
    /// The limits of which it has places if it starts, or `None`: then it is parked.
    pub fn admit(&mut self, claim: &Claim, key: RunKey) -> Option<Vec<LimitKey>> {
        let Some(Waiting::Ready(ready)) = self.waiting.get(&(key.job_no, key)) else { return None };
        let (lane, limit) = (ready.order.lane, ready.limit);
        let tenant = self.job(key.job_no).tenant;
        let limits = claim.limits.on(tenant, lane, limit);
        let mut ledger = Ledger::default();
        for limit in &limits {
            ledger.note(limit.key, Some(self.running_under(limit.key)));
        }
        match ledger.admit(&limits) {
            Verdict::Start => Some(limits.into_iter().map(|limit| limit.key).collect()),
            Verdict::Park(full) => {
                let room = full.key.room();
                self.move_to(key, room, Some(full));
                None
            }
            Verdict::Leave => None,
        }
    }

    /// How many run.
    pub fn running_under(&self, limit: LimitKey) -> u32 {
        self.places.iter().filter(|(of, _)| *of == limit).count() as u32
    }

    /// Moves what waits into a waiting room, or home.
    fn move_to(&mut self, key: RunKey, pool: String, parked: Option<Limit>) {
        let Some(Waiting::Ready(mut ready)) = self.stop_waiting(key) else { return };
        let home = std::mem::replace(&mut ready.pool, pool);
        ready.parked = parked.map(|limit| (home, limit));
        let lanes = self.queue.entry(ready.pool.clone()).or_default();
        lanes[ready.order.lane as usize].insert((ready.order, key.job_no, key));
        self.waiting.insert((key.job_no, key), Waiting::Ready(ready));
    }

    /// Moves it back into its pool, if it is in a waiting room.
    pub fn send_home(&mut self, key: RunKey) -> bool {
        let home = match self.waiting.get(&(key.job_no, key)) {
            Some(Waiting::Ready(ready)) => ready.parked.as_ref().map(|(home, _)| home.clone()),
            Some(Waiting::Wake { .. }) | None => None,
        };
        let is_parked = home.is_some();
        if let Some(home) = home {
            self.move_to(key, home, None);
        }
        is_parked
    }

    /// All in a waiting room that may be claimed now, in the order of dispatch.
    fn in_room(&self, limit: LimitKey, aging: Aging, now: Timestamp) -> Vec<RunKey> {
        let all = Claim {
            node: NodeNo(0),
            node_name: String::new(),
            pools: vec![limit.room()],
            room: usize::MAX,
            guaranteed: [0; 3],
            aging,
            limits: Limits::default(),
        };
        self.first_places(&all, now).into_iter().map(|(_, _, key)| key).collect()
    }

    fn unpark(&mut self, ended: &[LimitPlace], aging: Aging, now: Timestamp) -> u64 {
        let mut counts: BTreeMap<LimitKey, usize> = BTreeMap::new();
        for place in ended {
            *counts.entry(place.limit).or_default() += 1;
        }
        let mut moved = 0;
        for (limit, count) in counts {
            for key in self.in_room(limit, aging, now).into_iter().take(count) {
                moved += u64::from(self.send_home(key));
            }
        }
        moved
    }

    fn unpark_all(&mut self, rooms: Rooms, now: Timestamp) -> Unparked {
        let waiting: BTreeSet<LimitKey> = self
            .queue
            .iter()
            .filter(|(_, lanes)| lanes.iter().any(|lane| !lane.is_empty()))
            .filter_map(|(pool, _)| LimitKey::of_room(pool))
            .filter(|limit| Some(*limit) > rooms.after)
            .collect();
        let mut unparked = Unparked::default();
        for limit in waiting.iter().take(rooms.limit as usize) {
            let first = self.in_room(*limit, rooms.aging, now);
            let most: Vec<u32> = first.iter().map(|key| self.parked_under(*key)).collect();
            let fits = who_fits(most, self.running_under(*limit));
            let fits = first.into_iter().zip(fits).filter(|(_, fits)| *fits);
            let fits: Vec<RunKey> = fits.map(|(key, _)| key).take(UNPARKED_MAX as usize).collect();
            for key in fits {
                unparked.moved += u64::from(self.send_home(key));
            }
            unparked.next = Some(*limit);
        }
        if waiting.len() < rooms.limit as usize {
            unparked.next = None;
        }
        unparked
    }

    fn parked_under(&self, key: RunKey) -> u32 {
        match self.waiting.get(&(key.job_no, key)) {
            Some(Waiting::Ready(ready)) => ready.parked.as_ref().map_or(0, |(_, limit)| limit.most),
            Some(Waiting::Wake { .. }) | None => 0,
        }
    }

    /// What waits for places, by scope.
    pub fn parked(&self, limit: u32) -> [u64; LimitScope::ALL.len()] {
        let parked = self.waiting.values().filter_map(|waiting| match waiting {
            Waiting::Ready(ready) => ready.parked.as_ref().map(|(_, limit)| limit.key.scope()),
            Waiting::Wake { .. } => None,
        });
        let mut counts = [0; LimitScope::ALL.len()];
        parked.take(limit as usize).for_each(|scope| counts[scope as usize] += 1);
        counts
    }
}

#[async_trait]
impl LimitStore for ModelStore {
    async fn unpark(
        &self,
        ended: &[LimitPlace],
        aging: Aging,
        now: Now,
    ) -> Result<u64, StoreError> {
        Ok(self.lock().unpark(ended, aging, self.resolve(now)))
    }

    async fn unpark_all(&self, rooms: Rooms, now: Now) -> Result<Unparked, StoreError> {
        Ok(self.lock().unpark_all(rooms, self.resolve(now)))
    }

    async fn forget_places(
        &self,
        _after: Option<LimitPlace>,
        _limit: u32,
    ) -> Result<Option<LimitPlace>, StoreError> {
        Ok(None)
    }
}
