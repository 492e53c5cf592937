//! Is everything still as it was when a rebalance was planned?

use std::collections::HashMap;
use std::pin::pin;

use evenkeel_core::balance::{LoadProfile, LoadProfileKey, Move, Placement, decode_moves};
use evenkeel_core::{JobNo, Timestamp};
use evenkeel_store::{Rebalance, RebalancePart, Scope, StoreError};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use uuid::Uuid;

use super::super::Balancing;
use super::draft::readable;
use super::{CHANGED_LISTED_MAX, ChangedJob, RebalanceConflict};
use crate::CommandError;

/// So many batches are looked over side by side.
const PARTS_AT_ONCE: usize = 4;

/// What was found out about the moves that are left to make.
#[derive(Default)]
pub(super) struct Checked {
    /// The rhythms they lead to, as they are stored; but for moves that can't be made any more, which
    /// stores leave out.
    pub(super) rhythms: HashMap<LoadProfileKey, String>,
    changed: Vec<(JobNo, &'static str)>,
    changed_total: u64,
}

impl Balancing {
    /// Looks at all jobs that a rebalance has yet to move.
    pub(super) async fn check(
        &self,
        scope: &Scope,
        rebalance: &Rebalance,
        now: Timestamp,
    ) -> Result<Checked, CommandError> {
        let counts = self.tenant_load_profiles(scope).await?;
        let known = readable(&counts).map(|(count, rhythm)| (count.key, rhythm)).collect();
        let mut checked = Checked::default();
        // As when it is moved.
        let even_live = rebalance.undoes.is_some();
        let looks = stream::iter(rebalance.parts_done..rebalance.parts).map(|part| async move {
            let (moves, _) = self.part(scope, rebalance.id, part).await?;
            let places = self.places(scope, &moves).await?;
            Ok::<_, StoreError>((moves, places))
        });
        let mut looks = pin!(looks.buffered(PARTS_AT_ONCE));
        while let Some((moves, places)) = looks.try_next().await? {
            for one in &moves {
                checked.look_at(one, places.get(&one.job), &known, even_live, now);
            }
        }
        Ok(checked)
    }

    /// Says what has changed, if something has.
    pub(super) async fn refuse_changes(&self, checked: &Checked) -> Result<(), CommandError> {
        if checked.changed_total == 0 {
            return Ok(());
        }
        let ids = self.ids(checked.changed.iter().map(|(job, _)| *job)).await?;
        let changed = checked.changed.iter().zip(ids);
        let changed = changed
            .filter_map(|((_, reason), job)| Some(ChangedJob { job: job?, reason }))
            .collect();
        let total = checked.changed_total;
        Err(CommandError::Rebalance(RebalanceConflict::PlanChanged { changed, total }))
    }

    /// A batch of a rebalance: its moves, and for each whether it was made.
    pub(super) async fn part(
        &self,
        scope: &Scope,
        id: Uuid,
        part: u32,
    ) -> Result<(Vec<Move>, Option<Vec<bool>>), StoreError> {
        let row = || format!("part {part} of rebalance {id}");
        let found = self.balance.store.rebalance_part(scope, id, part).await?;
        let Some(RebalancePart { moves, made }) = found else {
            return Err(StoreError::corrupt(row(), "moves", "it is not there"));
        };
        let moves =
            decode_moves(&moves).map_err(|error| StoreError::corrupt(row(), "moves", error))?;
        Ok((moves, made))
    }

    /// Where the jobs of some moves are.
    pub(super) async fn places(
        &self,
        scope: &Scope,
        moves: &[Move],
    ) -> Result<HashMap<JobNo, Placement>, StoreError> {
        let jobs: Vec<JobNo> = moves.iter().map(|one| one.job).collect();
        let places = self.balance.store.placements_of(scope, &jobs).await?;
        Ok(places.into_iter().map(|place| (place.job, place)).collect())
    }
}

impl Checked {
    fn look_at(
        &mut self,
        one: &Move,
        place: Option<&Placement>,
        known: &HashMap<LoadProfileKey, LoadProfile>,
        even_live: bool,
        now: Timestamp,
    ) {
        match still_fits(one, place, known, even_live, now) {
            Ok(text) => {
                self.rhythms.entry(one.rhythm).or_insert(text);
            }
            Err(reason) => {
                self.changed_total += 1;
                if self.changed.len() < CHANGED_LISTED_MAX {
                    self.changed.push((one.job, reason));
                }
            }
        }
    }
}

/// The rhythm a move leads to, or why it can't be made any more.
fn still_fits(
    one: &Move,
    place: Option<&Placement>,
    known: &HashMap<LoadProfileKey, LoadProfile>,
    even_live: bool,
    now: Timestamp,
) -> Result<String, &'static str> {
    let place = place.ok_or("not_active")?;
    if place.generation != one.generation {
        return Err("changed");
    }
    if place.next_at != one.old_at {
        return Err("ran");
    }
    if place.is_live && !even_live {
        return Err("job_running");
    }
    if one.new_at <= now {
        return Err("too_late");
    }
    let rhythm = place.rhythm.and_then(|key| known.get(&key)).ok_or("changed")?;
    let text = rhythm.moved_to(one.new_at).text();
    if LoadProfileKey::of(&text) == one.rhythm { Ok(text) } else { Err("changed") }
}
