//! How load is spread.

use serde::{Deserialize, Serialize};

use crate::slot::Slot;
use crate::time::Span;

/// How the time of a job is chosen.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Where the fewest jobs have their next time.
    Next,
    /// Where all its times together meet the least load.
    #[default]
    Projected,
}

/// How far ahead a slot is looked for.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchWindow {
    /// One interval: the first run comes within it.
    #[default]
    Interval,
    /// A day, or one interval if that is longer.
    Document,
}

/// All that can be set about it.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct BalanceSettings {
    /// How a time is chosen.
    pub policy: Policy,
    /// How far ahead.
    pub search_window: SearchWindow,
    /// In slots of this length.
    pub slot: Span,
    /// A rebalance leaves alone what runs within this time.
    pub protection: Span,
    /// And what was placed within this time.
    pub cooldown: Span,
    /// Somebody is told when the score falls below.
    pub alert_below: f64,
}

impl Default for BalanceSettings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            search_window: SearchWindow::default(),
            slot: Slot::LENGTH,
            protection: Span::from_secs(30 * 60),
            cooldown: Span::from_secs(60 * 60),
            alert_below: 0.7,
        }
    }
}
