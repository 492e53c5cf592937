//! The balancer's settings.

use serde::{Deserialize, Serialize};

use crate::slot::Slot;
use crate::time::Span;

/// How the balancer chooses the start time of a job.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Chooses the time slot in which the fewest jobs have their next run.
    Next,
    /// Chooses the start time whose future runs fall into the least busy time slots.
    #[default]
    Projected,
}

/// How far ahead the balancer looks for a start time.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchWindow {
    /// The search covers one interval of the job, so the first run is at most one interval away.
    #[default]
    Interval,
    /// The search covers one day, or one interval of the job if the interval is longer.
    Document,
}

#[derive(Copy, Clone, PartialEq, Debug)]
pub struct BalanceSettings {
    pub policy: Policy,
    pub search_window: SearchWindow,
    /// Length of a time slot.
    pub slot: Span,
    /// A rebalance does not move jobs whose next run starts within this time from now.
    pub protection: Span,
    /// A rebalance does not move jobs whose start time was chosen or changed less than this time
    /// ago.
    pub cooldown: Span,
    /// Evenkeel raises a warning when the evenness score falls below this value.
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
