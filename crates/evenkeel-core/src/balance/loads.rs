//! Load by slot.

use super::rhythm::Rhythm;
use super::settings::BalanceSettings;
use crate::time::{Span, Timestamp};

/// The stretch of time in which load is counted: seven days, or 4096 slots if those are shorter.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Horizon {
    /// Where the first slot begins.
    pub start: Timestamp,
    /// How long each is.
    pub slot: Span,
    /// How many there are.
    pub slots: usize,
}

/// What is counted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Jobs, where their next run is.
    Next,
    /// Runs.
    Runs,
    /// What runs cost.
    Cost,
}

/// Load by slot.
#[derive(Clone, PartialEq, Debug)]
pub struct Loads {
    horizon: Horizon,
}

impl Horizon {
    /// The stretch that begins with the slot of `now`.
    pub fn new(_settings: &BalanceSettings, _now: Timestamp) -> Self {
        unimplemented!()
    }
}

impl Loads {
    /// No load.
    pub fn new(_horizon: Horizon) -> Self {
        unimplemented!()
    }

    /// Where it is counted.
    pub fn horizon(&self) -> Horizon {
        self.horizon
    }

    /// Adds `jobs` of a rhythm, whose runs cost `cost` (of all of them together, once each).
    pub fn add(&mut self, _rhythm: &Rhythm, _jobs: u64, _cost: Span) {
        unimplemented!()
    }

    /// Takes them away again.
    pub fn remove(&mut self, _rhythm: &Rhythm, _jobs: u64, _cost: Span) {
        unimplemented!()
    }

    /// How many jobs were added.
    pub fn jobs(&self) -> u64 {
        unimplemented!()
    }

    /// What each slot of the horizon holds; cost in seconds.
    pub fn by_slot(&self, _measure: Measure) -> Vec<f64> {
        unimplemented!()
    }
}
