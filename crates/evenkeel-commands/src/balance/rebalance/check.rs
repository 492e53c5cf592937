//! Checks whether the jobs of a rebalance plan have changed since the plan was made.

use std::collections::HashMap;
use std::pin::pin;

use evenkeel_core::balance::{LoadProfileKey, Move, Placement, decode_moves};
use evenkeel_core::{JobNo, Timestamp};
use evenkeel_store::{Rebalance, RebalancePart, Scope, StoreError};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use uuid::Uuid;

use super::super::Balancing;
use super::plan::{Profiles, readable};
use super::{CHANGED_LISTED_MAX, ChangedJob, RebalanceConflict};
use crate::Result;

/// Maximum number of batches of moves that are checked concurrently.
const PARTS_AT_ONCE: usize = 4;

/// The result of checking the remaining moves of a rebalance.
#[derive(Default)]
pub(super) struct Checked {
    /// New load profiles, as stored texts, for all moves that are still possible. The store skips a
    /// move whose new load profile is missing in this map.
    pub(super) profiles: HashMap<LoadProfileKey, String>,
    changed: Vec<(JobNo, &'static str)>,
    changed_total: u64,
}

impl Balancing {
    /// Checks whether the jobs that a rebalance has not moved yet can still be moved as planned.
    pub(super) async fn check(
        &self,
        scope: &Scope,
        rebalance: &Rebalance,
        now: Timestamp,
    ) -> Result<Checked> {
        let counts = self.tenant_load_profiles(scope).await?;
        let known: Profiles =
            readable(&counts).map(|(count, profile)| (count.key, profile)).collect();
        let mut checked = Checked::default();
        // Only an undo moves jobs with active runs.
        let even_live = rebalance.undoes.is_some();
        let checks = stream::iter(rebalance.parts_done..rebalance.parts).map(|part| async move {
            let (moves, _) = self.part(scope, rebalance.id, part).await?;
            let places = self.places(scope, &moves).await?;
            Ok::<_, StoreError>((moves, places))
        });
        let mut checks = pin!(checks.buffered(PARTS_AT_ONCE));
        while let Some((moves, places)) = checks.try_next().await? {
            for step in &moves {
                match new_profile(step, places.get(&step.job), &known, even_live, now) {
                    Ok(text) => drop(checked.profiles.entry(step.profile).or_insert(text)),
                    Err(reason) => {
                        checked.changed_total += 1;
                        if checked.changed.len() < CHANGED_LISTED_MAX {
                            checked.changed.push((step.job, reason));
                        }
                    }
                }
            }
        }
        Ok(checked)
    }

    /// Returns an error that lists the changed jobs, if any job has changed since the rebalance was
    /// planned.
    pub(super) async fn refuse_changes(&self, checked: &Checked) -> Result<()> {
        if checked.changed_total == 0 {
            return Ok(());
        }
        let ids = self.ids(checked.changed.iter().map(|(job, _)| *job)).await?;
        let changed = checked.changed.iter().zip(ids);
        let changed =
            changed.filter_map(|((_, reason), job)| Some(ChangedJob { job: job?, reason }));
        let (changed, total) = (changed.collect(), checked.changed_total);
        Err(RebalanceConflict::PlanChanged { changed, total }.into())
    }

    /// Returns the moves in one batch of a rebalance, and whether each move was made.
    pub(super) async fn part(
        &self,
        scope: &Scope,
        id: Uuid,
        part: u32,
    ) -> Result<(Vec<Move>, Option<Vec<bool>>), StoreError> {
        let row = || format!("part {part} of rebalance {id}");
        let found = self.balance.store.rebalance_part(scope, id, part).await?;
        let Some(RebalancePart { moves, made }) = found else {
            return Err(StoreError::corrupt(row(), "moves", "the part is missing"));
        };
        let corrupt = |error| StoreError::corrupt(row(), "moves", error);
        Ok((decode_moves(&moves).map_err(corrupt)?, made))
    }

    /// Returns the present start times of the jobs in `moves`.
    pub(super) async fn places(
        &self,
        scope: &Scope,
        moves: &[Move],
    ) -> Result<HashMap<JobNo, Placement>, StoreError> {
        let jobs: Vec<JobNo> = moves.iter().map(|step| step.job).collect();
        let places = self.balance.store.placements_of(scope, &jobs).await?;
        Ok(places.into_iter().map(|place| (place.job, place)).collect())
    }
}

/// Returns the load profile of a job after its move, or the reason why the move is no longer
/// possible.
fn new_profile(
    step: &Move,
    place: Option<&Placement>,
    known: &Profiles,
    even_live: bool,
    now: Timestamp,
) -> Result<String, &'static str> {
    let place = place.ok_or("not_active")?;
    if place.generation != step.generation {
        return Err("changed");
    }
    if place.next_at != step.old_at {
        return Err("ran");
    }
    if place.is_live && !even_live {
        return Err("job_running");
    }
    if step.new_at <= now {
        return Err("too_late");
    }
    let profile = place.profile.and_then(|key| known.get(&key)).ok_or("changed")?;
    let text = profile.moved_to(step.new_at).text();
    if LoadProfileKey::of(&text) == step.profile { Ok(text) } else { Err("changed") }
}
