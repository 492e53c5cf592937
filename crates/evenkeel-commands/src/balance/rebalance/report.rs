//! Reports rebalances and their moves.

use std::collections::BTreeMap;

use evenkeel_core::balance::{Granularity, Measure, Move};
use evenkeel_store::{MOVES_MAX, NOT_MADE, Page, PageRequest, Rebalance, Scope};
use uuid::Uuid;

use super::super::Balancing;
use super::{LISTED_MAX, ListedMove, PlanSummary, SkippedJob};
use crate::Result;

/// Maximum number of batches of moves that are read for one report.
const PARTS_READ_MAX: u32 = 50;

#[derive(Clone, PartialEq, Debug)]
pub struct RebalanceReport {
    pub rebalance: Rebalance,
    pub summary: PlanSummary,
    /// The first [`LISTED_MAX`] moved jobs.
    pub moved: Vec<ListedMove>,
    /// The first [`LISTED_MAX`] jobs that the rebalance did not move.
    pub skipped: Vec<SkippedJob>,
    /// Number of jobs that the rebalance did not move, by reason.
    pub skipped_by_reason: BTreeMap<String, u64>,
    /// Balance score now.
    pub score: f64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct MovesPage {
    /// The moves of the rebalance, in the order of execution.
    pub moves: Vec<ListedMove>,
    pub total: u64,
    /// Index of the first move on the next page.
    pub next: Option<u64>,
}

impl Balancing {
    /// Returns the report of a rebalance: its progress, and the moved and skipped jobs.
    pub async fn report(&self, scope: &Scope, id: Uuid) -> Result<RebalanceReport> {
        let rebalance = self.get(scope, id).await?;
        let summary = PlanSummary::of(&rebalance)?;
        let (mut moved, mut changed): (Vec<Move>, Vec<Move>) = (Vec::new(), Vec::new());
        for part in 0..rebalance.parts_done.min(PARTS_READ_MAX) {
            let has_changed = changed.len() as u64 >= rebalance.changed.min(LISTED_MAX as u64);
            if moved.len() >= LISTED_MAX && has_changed {
                break;
            }
            let (moves, made) = self.part(scope, id, part).await?;
            for (step, made) in moves.into_iter().zip(made.unwrap_or_default()) {
                if made { moved.push(step) } else { changed.push(step) }
            }
        }
        moved.truncate(LISTED_MAX);
        let moved = self.shown(&moved, |_| Some(true)).await?;
        let mut skipped = summary.skipped.clone();
        changed.truncate(LISTED_MAX.saturating_sub(skipped.len()));
        let ids = self.ids(changed.iter().map(|step| step.job)).await?;
        let reason = NOT_MADE.as_str();
        skipped
            .extend(ids.into_iter().flatten().map(|job| SkippedJob { job, reason: reason.into() }));
        let mut skipped_by_reason = summary.skipped_by_reason.clone();
        if rebalance.changed > 0 {
            *skipped_by_reason.entry(reason.into()).or_default() += rebalance.changed;
        }
        let score = self.score(scope).await?;
        Ok(RebalanceReport { rebalance, summary, moved, skipped, skipped_by_reason, score })
    }

    /// Lists the tenant's rebalances, newest first.
    pub async fn list(
        &self,
        scope: &Scope,
        page: PageRequest<Uuid>,
    ) -> Result<Page<Rebalance, Uuid>> {
        let PageRequest { limit, offset, after } = page;
        let after = match after {
            None => None,
            Some(id) => Some((self.get(scope, id).await?.created_at, id)),
        };
        let request = PageRequest { limit, offset, after };
        let found = self.balance.store.list_rebalances(scope, request).await?;
        let Page { items, total, total_is_estimate, next } = found;
        Ok(Page { items, total, total_is_estimate, next: next.map(|(_, id)| id) })
    }

    /// Lists up to `limit` moves of a rebalance, starting with the index `from`.
    pub async fn moves(&self, scope: &Scope, id: Uuid, from: u64, limit: u32) -> Result<MovesPage> {
        let total = self.get(scope, id).await?.planned;
        let until = from.saturating_add(limit.into()).min(total);
        let mut moves = Vec::new();
        let mut at = from;
        while at < until {
            // All batches of moves except the last one are full, so the batch that contains a move
            // can be computed.
            let (part, first) = (at / MOVES_MAX as u64, at % MOVES_MAX as u64);
            let count = (until - at).min(MOVES_MAX as u64 - first);
            let (batch, made) =
                self.part(scope, id, u32::try_from(part).unwrap_or(u32::MAX)).await?;
            let first = usize::try_from(first).unwrap_or(usize::MAX);
            let listed: Vec<Move> =
                batch.into_iter().skip(first).take(usize::try_from(count).unwrap_or(0)).collect();
            let made = |index: usize| made.as_ref().and_then(|all| all.get(first + index).copied());
            moves.extend(self.shown(&listed, made).await?);
            at += count;
        }
        Ok(MovesPage { moves, total, next: (until < total).then_some(until) })
    }

    /// Returns the tenant's present balance score.
    pub(super) async fn score(&self, scope: &Scope) -> Result<f64> {
        let now = self.balance.store.now().await?;
        Ok(self.own_loads(scope, now).await?.spread(Measure::Runs, Granularity::Slot).score)
    }
}
