//! How load was spread, hour by hour.

use evenkeel_core::{Span, Timestamp};
use evenkeel_store::{SavedScore, Scope};

use super::Balancing;
use crate::CommandError;

/// Scores are kept for this long.
const KEPT: Span = Span::from_secs(90 * 86_400);
/// Scores told at once, at most: all that are kept.
pub const SCORES_MAX: u32 = 90 * 24;
/// As much is told if nobody says how much.
const TOLD: Span = Span::from_secs(7 * 86_400);

/// Which scores.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ScoreQuery {
    /// Of this hour and later ones.
    pub from: Option<Timestamp>,
    /// Of earlier ones.
    pub until: Option<Timestamp>,
    /// At most this many.
    pub limit: u32,
}

/// Scores of a stretch of time.
#[derive(Clone, PartialEq, Debug)]
pub struct ScoreHistory {
    /// From this hour on.
    pub from: Timestamp,
    /// Before this moment.
    pub until: Timestamp,
    /// By time.
    pub scores: Vec<SavedScore>,
    /// There are more: they begin with this hour.
    pub next_from: Option<Timestamp>,
}

impl Balancing {
    /// How even the scope's load was, hour by hour: of the last seven days, unless somebody says
    /// otherwise.
    pub async fn history(
        &self,
        scope: &Scope,
        query: ScoreQuery,
    ) -> Result<ScoreHistory, CommandError> {
        let store = &self.balance.store;
        let now = store.now().await?;
        let until = query.until.unwrap_or_else(|| now.saturating_add(Span::from_secs(1)));
        // Nothing older is kept, but what is due to be forgotten may still be there.
        let oldest = now.saturating_sub(KEPT);
        let from = query.from.unwrap_or_else(|| until.saturating_sub(TOLD)).max(oldest);
        let mut scores = store.scores(scope, from, until, query.limit.saturating_add(1)).await?;
        let limit = query.limit as usize;
        let next_from = scores.get(limit).map(|next| next.hour);
        scores.truncate(limit);
        Ok(ScoreHistory { from, until, scores, next_from })
    }
}
