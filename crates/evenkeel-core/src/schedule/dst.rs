//! What becomes of local times that a change of the clocks leaves out or repeats.

use serde::{Deserialize, Serialize};

/// A job's policy across changes of the clocks.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Dst {
    /// For times that do not exist.
    #[serde(default)]
    pub gap: Gap,
    /// For times that exist twice.
    #[serde(default)]
    pub overlap: Overlap,
}

impl Dst {
    /// Is it what jobs have that say nothing?
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What becomes of a local time that the clocks jump over.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// It runs at the first moment after.
    #[default]
    Shift,
    /// It does not run.
    Skip,
}

/// What becomes of a local time that the clocks show twice.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It runs the first time.
    #[default]
    First,
    /// It runs the second time.
    Last,
    /// It runs both times.
    Both,
}
