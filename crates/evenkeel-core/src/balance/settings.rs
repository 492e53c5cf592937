//! The balancer's settings.

use serde::{Deserialize, Serialize};

use crate::slot::Slot;
use crate::time::Span;

/// How the balancer chooses the time of a job.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The slot with the fewest next times of jobs.
    Next,
    /// The slot from which all future times of the job meet the least load.
    #[default]
    Projected,
}

/// How far ahead the balancer searches a slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchWindow {
    /// One interval: the first run comes within it.
    #[default]
    Interval,
    /// One day, or one interval if that is longer.
    Document,
}

#[derive(Copy, Clone, PartialEq, Debug)]
pub struct BalanceSettings {
    pub policy: Policy,
    pub search_window: SearchWindow,
    /// The length of a slot.
    pub slot: Span,
    /// A rebalance does not move jobs that run within this time.
    pub protection: Span,
    /// A rebalance does not move jobs that were placed within this time.
    pub cooldown: Span,
    /// A warning is raised when the score falls below this.
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
