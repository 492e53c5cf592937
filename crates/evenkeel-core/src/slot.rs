//! The 15-minute buckets of the plan: load is counted in them, and the near future is loaded by
//! them.

use serde::{Deserialize, Serialize};

use crate::time::{Span, Timestamp};

/// A quarter of an hour, counted from the epoch.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(pub i32);

impl Slot {
    /// How long one is.
    pub const LENGTH: Span = Span::from_secs(15 * 60);
    const MICROS: i64 = 15 * 60 * 1_000_000;

    /// The slot a moment lies in.
    pub const fn of(moment: Timestamp) -> Self {
        Self(moment.as_micros().div_euclid(Self::MICROS) as i32)
    }

    /// Its first moment.
    pub const fn start(self) -> Timestamp {
        Timestamp::from_micros(self.0 as i64 * Self::MICROS)
    }

    /// The slot after it.
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
