//! How evenly load is spread.

use super::loads::{Loads, Measure};

/// What is compared.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Grain {
    /// The slots of the next 24 hours.
    Slot,
    /// Their hours.
    Hour,
}

/// How evenly the load of the next 24 hours is spread.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Spread {
    /// The share of the load that is where an even spread could have it: 1 is as even as these jobs
    /// allow.
    pub score: f64,
    /// The most that lies in one.
    pub peak: f64,
    /// Which one that is, counted from the first.
    pub peak_at: usize,
    /// What lies in one on average.
    pub mean: f64,
    /// No spread of these jobs has a lower peak.
    pub least_peak: f64,
}

impl Loads {
    /// How even they are.
    pub fn spread(&self, _measure: Measure, _grain: Grain) -> Spread {
        unimplemented!()
    }

    /// What each hour of the day, UTC, holds of the next 24 hours.
    pub fn by_hour(&self, _measure: Measure) -> [f64; 24] {
        unimplemented!()
    }
}
