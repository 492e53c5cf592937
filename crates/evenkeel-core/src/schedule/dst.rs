//! Policies for run times that clocks skip or repeat, for example when daylight saving time begins
//! or ends.

use serde::{Deserialize, Serialize};

#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Dst {
    #[serde(default)]
    pub gap: Gap,
    #[serde(default)]
    pub overlap: Overlap,
}

impl Dst {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What happens to a run whose local time is skipped when clocks are set forward.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// The job runs at the first moment after the clock change.
    #[default]
    Shift,
    Skip,
}

/// What happens to a run whose local time occurs twice when clocks are set back.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    #[default]
    First,
    Last,
    Both,
}
