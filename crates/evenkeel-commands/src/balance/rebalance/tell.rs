//! What has become of rebalances.

use std::collections::BTreeMap;

use evenkeel_core::Timestamp;
use evenkeel_core::balance::{Grain, Measure, Move};
use evenkeel_store::{MOVES_MAX, NOT_MADE, Page, PageRequest, Rebalance, Scope};
use uuid::Uuid;

use super::super::Balancing;
use super::{LISTED_MAX, MoveShown, Outlook, SkippedJob};
use crate::CommandError;

/// Batches that are looked at for what is told one by one.
const PARTS_LOOKED_AT_MAX: u32 = 50;

/// A rebalance, and what has become of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Rebalanced {
    /// Itself.
    pub rebalance: Rebalance,
    /// What it would come to.
    pub outlook: Outlook,
    /// The first [`LISTED_MAX`] jobs that were moved.
    pub moved: Vec<MoveShown>,
    /// The first [`LISTED_MAX`] that were not.
    pub skipped: Vec<SkippedJob>,
    /// How many were not, by reason.
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// How even the load is now.
    pub score: f64,
}

/// Some of the moves of a rebalance.
#[derive(Clone, PartialEq, Debug)]
pub struct MovesPage {
    /// In the order in which they are made.
    pub moves: Vec<MoveShown>,
    /// How many there are.
    pub total: u64,
    /// The place of the one that follows, if one does.
    pub next: Option<u64>,
}

impl Balancing {
    /// What has become of a rebalance.
    pub async fn report(&self, scope: &Scope, id: Uuid) -> Result<Rebalanced, CommandError> {
        let found = self.balance.store.get_rebalance(scope, id).await?;
        let rebalance = found.ok_or(CommandError::NotFound)?;
        let outlook = Outlook::of(&rebalance)?;
        let (mut moved, mut changed): (Vec<Move>, Vec<Move>) = (Vec::new(), Vec::new());
        for part in 0..rebalance.parts_done.min(PARTS_LOOKED_AT_MAX) {
            let has_changed = changed.len() as u64 >= rebalance.changed.min(LISTED_MAX as u64);
            if moved.len() >= LISTED_MAX && has_changed {
                break;
            }
            let (moves, made) = self.part(scope, id, part).await?;
            for (one, made) in moves.into_iter().zip(made.unwrap_or_default()) {
                if made { moved.push(one) } else { changed.push(one) }
            }
        }
        moved.truncate(LISTED_MAX);
        let moved = self.shown(&moved, |_| Some(true)).await?;
        let mut skipped = outlook.skipped.clone();
        changed.truncate(LISTED_MAX.saturating_sub(skipped.len()));
        let ids = self.ids(changed.iter().map(|one| one.job)).await?;
        let reason = NOT_MADE.as_str();
        skipped
            .extend(ids.into_iter().flatten().map(|job| SkippedJob { job, reason: reason.into() }));
        let mut skipped_by_reason = outlook.skipped_by_reason.clone();
        if rebalance.changed > 0 {
            *skipped_by_reason.entry(reason.into()).or_default() += rebalance.changed;
        }
        let score = self.score(scope).await?;
        Ok(Rebalanced { rebalance, outlook, moved, skipped, skipped_by_reason, score })
    }

    /// The scope's rebalances, newest first, after one of them.
    pub async fn list(
        &self,
        scope: &Scope,
        page: PageRequest<Uuid>,
    ) -> Result<Page<Rebalance, Uuid>, CommandError> {
        let store = &self.balance.store;
        let after = match page.after {
            None => None,
            Some(id) => {
                let last = store.get_rebalance(scope, id).await?.ok_or(CommandError::NotFound)?;
                Some((last.created_at, id))
            }
        };
        let request: PageRequest<(Timestamp, Uuid)> =
            PageRequest { limit: page.limit, offset: page.offset, after };
        let found = store.list_rebalances(scope, request).await?;
        Ok(Page {
            items: found.items,
            total: found.total,
            total_is_estimate: found.total_is_estimate,
            next: found.next.map(|(_, id)| id),
        })
    }

    /// The moves of a rebalance from the place `from` on, at most `limit`.
    pub async fn moves(
        &self,
        scope: &Scope,
        id: Uuid,
        from: u64,
        limit: u32,
    ) -> Result<MovesPage, CommandError> {
        let found = self.balance.store.get_rebalance(scope, id).await?;
        let rebalance = found.ok_or(CommandError::NotFound)?;
        let total = rebalance.planned;
        let until = from.saturating_add(limit.into()).min(total);
        let mut moves = Vec::new();
        let mut at = from;
        while at < until {
            // All batches but the last are full.
            let (part, first) = (at / MOVES_MAX as u64, at % MOVES_MAX as u64);
            let count = (until - at).min(MOVES_MAX as u64 - first);
            let (batch, made) =
                self.part(scope, id, u32::try_from(part).unwrap_or(u32::MAX)).await?;
            let first = usize::try_from(first).unwrap_or(usize::MAX);
            let asked: Vec<Move> =
                batch.into_iter().skip(first).take(usize::try_from(count).unwrap_or(0)).collect();
            let made = |place: usize| made.as_ref().and_then(|all| all.get(first + place).copied());
            moves.extend(self.shown(&asked, made).await?);
            at += count;
        }
        Ok(MovesPage { moves, total, next: (until < total).then_some(until) })
    }

    /// How even the scope's load is now.
    pub(super) async fn score(&self, scope: &Scope) -> Result<f64, CommandError> {
        let now = self.balance.store.now().await?;
        Ok(self.own_loads(scope, now).await?.spread(Measure::Runs, Grain::Slot).score)
    }
}
