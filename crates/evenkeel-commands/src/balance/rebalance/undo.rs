//! Taking a rebalance back.

use std::collections::{BTreeMap, HashMap};

use evenkeel_core::balance::{
    Beat, Horizon, LoadProfile, LoadProfileKey, Loads, Move, Placement, SkipReason, moved_back,
};
use evenkeel_core::{JobNo, Timestamp};
use evenkeel_store::{Now, Rebalance, RebalanceState, Scope};
use uuid::Uuid;

use super::super::{Balancing, apart};
use super::draft::count;
use super::{
    LISTED_MAX, Outlook, RebalanceConflict, Running, Shape, SkippedJob, is_silent, undo_until,
};
use crate::CommandError;

impl Balancing {
    /// Takes a rebalance back: each job that is still on the rhythm it was given goes back to the
    /// one it had.
    pub async fn undo(&self, scope: &Scope, id: Uuid, by: &str) -> Result<Running, CommandError> {
        let store = &self.balance.store;
        let turn = self.turn().await?;
        let now = store.now().await?;
        let done = self.to_take_back(scope, id, now).await?;
        let (before, known) = {
            let counts = self.tenant_load_profiles(scope).await?;
            let horizon = Horizon::new(self.balance.settings(), now);
            apart(move || count(horizon, &counts)).await?
        };
        let mut back = Back::new(before, known, now);
        for part in 0..done.parts_done {
            let (moves, made) = self.part(scope, id, part).await?;
            let made = made.unwrap_or_default();
            let made = moves.into_iter().zip(made).filter_map(|(one, made)| made.then_some(one));
            let made: Vec<Move> = made.collect();
            let places = self.places(scope, &made).await?;
            for one in &made {
                back.take(one, places.get(&one.job));
            }
        }
        // As stores like it best.
        back.moves.sort_unstable_by_key(|one| one.job);
        let outlook = self.outlook_back(&back).await?;
        let changed = back.changed.len() as u64;
        let undo =
            self.keep_moves(scope, &back.moves, changed, &outlook, Some(id), by, now).await?;
        drop(turn);
        self.start(scope, &undo, back.rhythms, now).await
    }

    /// The rebalance, if it can be taken back.
    async fn to_take_back(
        &self,
        scope: &Scope,
        id: Uuid,
        now: Timestamp,
    ) -> Result<Rebalance, CommandError> {
        let store = &self.balance.store;
        let mut done = store.get_rebalance(scope, id).await?.ok_or(CommandError::NotFound)?;
        if is_silent(&done, now) {
            // Whoever did it is gone; should it come back, it finds it stopped.
            let stopped = RebalanceState::Stopped;
            let ended = store.end_rebalance(scope, id, stopped, Now::Database).await?;
            done = ended.ok_or(CommandError::NotFound)?;
        }
        let why = match done.state {
            RebalanceState::Planned => Some("nothing was moved yet".into()),
            RebalanceState::Running => Some("stop it first, or wait for its end".into()),
            RebalanceState::Done | RebalanceState::Stopped => {
                if let Some(by) = self.taken_back_by(scope, &done, now).await? {
                    Some(format!("it was undone already, by {by}"))
                } else if done.moved == 0 {
                    Some("it moved nothing".into())
                } else if now >= undo_until(&done) {
                    Some(format!("it could be undone until {}", undo_until(&done)))
                } else {
                    None
                }
            }
        };
        match why {
            None => Ok(done),
            Some(why) => Err(CommandError::Rebalance(RebalanceConflict::state(&done, why))),
        }
    }

    /// The undo that took it back, unless that left something: it was stopped, its node died, or jobs
    /// had just run when it came to them.
    async fn taken_back_by(
        &self,
        scope: &Scope,
        done: &Rebalance,
        now: Timestamp,
    ) -> Result<Option<Uuid>, CommandError> {
        let Some(by) = done.undone_by else { return Ok(None) };
        let Some(undo) = self.balance.store.get_rebalance(scope, by).await? else {
            return Ok(Some(by));
        };
        match undo.state {
            RebalanceState::Running if !is_silent(&undo, now) => {
                Err(CommandError::Rebalance(RebalanceConflict::UnderWay { id: by }))
            }
            _ => Ok(undo.is_complete().then_some(by)),
        }
    }

    async fn outlook_back(&self, back: &Back) -> Result<Outlook, CommandError> {
        let listed = back.changed.iter().take(LISTED_MAX).copied();
        let ids = self.ids(listed).await?;
        let reason = SkipReason::Changed.as_str();
        let skipped =
            ids.into_iter().flatten().map(|job| SkippedJob { job, reason: reason.into() });
        let mut by_reason = BTreeMap::new();
        if !back.changed.is_empty() {
            by_reason.insert(reason.to_owned(), back.changed.len() as u64);
        }
        Ok(Outlook {
            max_moves: None,
            target_score: None,
            filter: None,
            before: Shape::of(&back.before),
            after: Shape::of(&back.after),
            skipped_by_reason: by_reason,
            skipped: skipped.collect(),
        })
    }
}

/// The way back, as it is made up.
struct Back {
    now: Timestamp,
    known: HashMap<LoadProfileKey, LoadProfile>,
    moves: Vec<Move>,
    rhythms: HashMap<LoadProfileKey, String>,
    /// Jobs that went elsewhere since.
    changed: Vec<JobNo>,
    before: Loads,
    after: Loads,
}

impl Back {
    fn new(before: Loads, known: HashMap<LoadProfileKey, LoadProfile>, now: Timestamp) -> Self {
        let after = before.clone();
        let (moves, rhythms, changed) = (Vec::new(), HashMap::new(), Vec::new());
        Self { now, known, moves, rhythms, changed, before, after }
    }

    /// Adds the way back of a job that was moved.
    fn take(&mut self, done: &Move, place: Option<&Placement>) {
        let Some((place, rhythm, new_at)) = self.way_back(done, place) else {
            self.changed.push(done.job);
            return;
        };
        let target = rhythm.moved_to(new_at);
        let text = target.text();
        let key = LoadProfileKey::of(&text);
        self.after.remove(&rhythm, 1, place.cost);
        self.after.add(&target, 1, place.cost);
        self.rhythms.entry(key).or_insert(text);
        self.moves.push(Move {
            job: done.job,
            generation: place.generation,
            old_at: place.next_at,
            new_at,
            rhythm: key,
        });
    }

    fn way_back(
        &self,
        done: &Move,
        place: Option<&Placement>,
    ) -> Option<(Placement, LoadProfile, Timestamp)> {
        let place = *place?;
        if place.generation != done.generation.wrapping_add(1) {
            return None;
        }
        let rhythm = self.known.get(&place.rhythm?)?;
        let Beat::Every { every, .. } = rhythm.beat else { return None };
        let new_at = moved_back(done, every, place.next_at, self.now)?;
        Some((place, rhythm.clone(), new_at))
    }
}
