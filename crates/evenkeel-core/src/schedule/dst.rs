//! What happens to local times that a clock change skips or repeats.

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

/// What happens to a local time that the clocks jump over.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// Runs at the first moment after the jump.
    #[default]
    Shift,
    Skip,
}

/// What happens to a local time that the clocks show twice.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    #[default]
    First,
    Last,
    Both,
}
