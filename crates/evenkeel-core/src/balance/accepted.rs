//! Time slots of a day in which jobs with blackouts or preferred hours may start.

use std::collections::HashMap;
use std::sync::Arc;

use super::load_profile::Hours;
use super::loads::Horizon;
use crate::blackout::Blackouts;

/// Maximum number of different combinations of blackouts and preferred hours, because each
/// combination costs computing time. Jobs with further combinations of blackouts and preferred
/// hours count as if they could start in every time slot.
const HOURS_MAX: usize = 1000;
/// Maximum number of time slots that are stored for all combinations of blackouts and preferred
/// hours together. `SLOTS_MAX` limits memory use if a day has very many time slots.
const SLOTS_MAX: usize = 4_096_000;

/// For each combination of blackouts and preferred hours, the time slots of the balancing horizon's
/// first day in which jobs may start.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Accepted {
    /// Distinct sets of time slots. Combinations of blackouts and preferred hours that allow the
    /// same time slots share a set.
    slots: Vec<Arc<[bool]>>,
    by_slots: HashMap<Arc<[bool]>, usize>,
    /// Index of the set of time slots for each known combination of blackouts and preferred hours.
    /// Copies of `Loads` share this map, because `Loads` is copied often and the map rarely
    /// changes.
    by_hours: Arc<HashMap<Hours, usize>>,
}

impl Accepted {
    /// Returns the index of the set of time slots for `hours`, or `None` if too many combinations
    /// of blackouts and preferred hours are known already.
    pub fn index_of(&mut self, hours: &Hours, horizon: Horizon) -> Option<usize> {
        if let Some(index) = self.by_hours.get(hours) {
            return Some(*index);
        }
        if self.by_hours.len() >= HOURS_MAX.min(SLOTS_MAX / horizon.day().max(1)) {
            return None;
        }
        let found = slots_of(hours, horizon);
        let index = *self.by_slots.entry(found).or_insert_with_key(|found| {
            self.slots.push(Arc::clone(found));
            self.slots.len() - 1
        });
        Arc::make_mut(&mut self.by_hours).insert(hours.clone(), index);
        Some(index)
    }

    pub fn accepts(&self, index: usize, slot: usize) -> bool {
        self.slots[index][slot]
    }
}

/// Returns the time slots of the balancing horizon's first day in which jobs with these blackouts
/// and preferred hours may start.
fn slots_of(hours: &Hours, horizon: Horizon) -> Arc<[bool]> {
    let grid = horizon.grid();
    let blackouts = Blackouts::new(&hours.blackouts, &hours.zone);
    let preferred = Blackouts::new(hours.preferred.as_slice(), &hours.zone);
    let accepts = |slot: usize| {
        let middle = grid.middle_of(slot);
        !blackouts.is_in_blackout(middle)
            && (preferred.is_empty() || preferred.is_in_blackout(middle))
    };
    (0..horizon.day()).map(accepts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::settings::BalanceSettings;
    use crate::blackout::LocalHours;
    use crate::time::Timestamp;
    use crate::zone::Zone;

    const NOON: Timestamp = Timestamp::from_micros(1_764_590_400_000_000);

    /// Returns preferred hours from `secs` seconds after midnight until noon.
    fn preferring(secs: i32) -> Hours {
        let start = jiff::civil::time(0, 0, 0, 0) + jiff::SignedDuration::from_secs(secs.into());
        let preferred = LocalHours { start, end: jiff::civil::time(12, 0, 0, 0) };
        Hours { zone: Zone::utc(), blackouts: Vec::new(), preferred: Some(preferred) }
    }

    #[test]
    fn hours_with_the_same_slots_share_a_set() {
        let horizon = Horizon::new(&BalanceSettings::default(), NOON);
        let mut accepted = Accepted::default();
        let mut index = |secs| accepted.index_of(&preferring(secs), horizon);
        let first = index(3600);
        assert_eq!(index(3661), first);
        assert_ne!(index(3600 + 900), first);
        assert_eq!(index(3600), first);
        let accepts = |slot| accepted.accepts(first.unwrap(), slot);
        // The first day of this test begins at noon, so one o'clock is thirteen hours later.
        assert!(!accepts(13 * 4 - 1) && accepts(13 * 4) && accepts(95) && !accepts(0));
    }

    #[test]
    fn first_hours_keep_their_sets_when_there_are_too_many() {
        let horizon = Horizon::new(&BalanceSettings::default(), NOON);
        let mut accepted = Accepted::default();
        let index: Vec<_> =
            (0..1500).map(|secs| accepted.index_of(&preferring(secs), horizon)).collect();
        assert_eq!(index.iter().filter(|index| index.is_some()).count(), HOURS_MAX);
        // The index of a set of time slots never changes, so that load is removed from the set to
        // which it was added.
        for secs in [0, 999, 1000, 1499] {
            assert_eq!(accepted.index_of(&preferring(secs), horizon), index[secs as usize]);
        }
    }
}
