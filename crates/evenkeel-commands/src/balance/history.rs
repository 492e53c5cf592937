//! Reads the hourly history of the balance score.

use evenkeel_core::{Span, Timestamp};
use evenkeel_store::{SavedScore, Scope};

use super::Balancing;
use crate::Result;

/// Time after which balance scores are no longer returned.
const RETENTION: Span = Span::from_secs(90 * 86_400);
/// Maximum page size, which covers all retained balance scores.
pub const SCORES_MAX: u32 = 90 * 24;
/// Default period of a query.
const DEFAULT_PERIOD: Span = Span::from_secs(7 * 86_400);

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ScoreQuery {
    /// The query returns balance scores of this hour and later.
    pub from: Option<Timestamp>,
    /// The query returns balance scores before this time.
    pub until: Option<Timestamp>,
    pub limit: u32,
}

#[derive(Clone, PartialEq, Debug)]
pub struct ScoreHistory {
    pub from: Timestamp,
    pub until: Timestamp,
    pub scores: Vec<SavedScore>,
    /// Hour of the first balance score on the next page.
    pub next_from: Option<Timestamp>,
}

impl Balancing {
    /// Returns the hourly balance scores of the tenant; by default those of the last seven days.
    pub async fn history(&self, scope: &Scope, query: ScoreQuery) -> Result<ScoreHistory> {
        let store = &self.balance.store;
        let now = store.now().await?;
        let until = query.until.unwrap_or_else(|| now.saturating_add(Span::from_secs(1)));
        // Balance scores that are older than [`RETENTION`] may still be stored, but are not
        // returned.
        let oldest = now.saturating_sub(RETENTION);
        let from = query.from.unwrap_or_else(|| until.saturating_sub(DEFAULT_PERIOD)).max(oldest);
        let mut scores = store.scores(scope, from, until, query.limit.saturating_add(1)).await?;
        let limit = query.limit as usize;
        let next_from = scores.get(limit).map(|next| next.hour);
        scores.truncate(limit);
        Ok(ScoreHistory { from, until, scores, next_from })
    }
}
