//! Time slots of 15 minutes. Load is counted per time slot, and the scheduler loads upcoming jobs
//! one time slot at a time.

use serde::{Deserialize, Serialize};

use crate::time::{Span, Timestamp};

/// The number of a 15-minute time slot, counted from 1970.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(pub i32);

impl Slot {
    pub const LENGTH: Span = Span::from_secs(15 * 60);
    const MICROS: i64 = 15 * 60 * 1_000_000;

    pub const fn of(moment: Timestamp) -> Self {
        Self(moment.as_micros().div_euclid(Self::MICROS) as i32)
    }

    pub const fn start(self) -> Timestamp {
        Timestamp::from_micros(self.0 as i64 * Self::MICROS)
    }

    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_moment_lies_in_its_slot(micros in 0_i64..1 << 52) {
            let moment = Timestamp::from_micros(micros);
            let slot = Slot::of(moment);
            prop_assert!(slot.start() <= moment && moment < slot.next().start());
        }
    }
}
