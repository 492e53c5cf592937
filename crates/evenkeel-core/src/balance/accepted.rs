//! Which slots of a day accept jobs that shun or prefer some hours.

use std::collections::HashMap;
use std::sync::Arc;

use super::load_profile::Hours;
use super::loads::Horizon;
use crate::blackout::Blackouts;
use crate::time::Timestamp;

/// So many different hours are told apart; jobs with others count as if they accepted all. Each is
/// looked up slot by slot, and then poured on its own whenever a spread is looked at.
const HOURS_MAX: usize = 1000;
/// Fewer, if a day has many slots: all of them together hold so many.
const SLOTS_MAX: usize = 4_096_000;

/// The slots of the first day that accept jobs, by the hours that these shun or prefer.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Accepted {
    /// Different ones: hours that come to the same slots are one.
    slots: Vec<Arc<[bool]>>,
    by_slots: HashMap<Arc<[bool]>, usize>,
    /// What was looked up before. Shared, because load is copied more often than new hours come.
    by_hours: Arc<HashMap<Hours, usize>>,
}

impl Accepted {
    /// The number of the slots that accept jobs with such hours; `None` if there are too many
    /// different ones to say.
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

    /// Does this slot of the day accept them?
    pub fn accepts(&self, index: usize, slot: usize) -> bool {
        self.slots[index][slot]
    }
}

/// The slots of the first day in which such jobs would start.
fn slots_of(hours: &Hours, horizon: Horizon) -> Arc<[bool]> {
    let grid = horizon.grid();
    let dark = Blackouts::new(&hours.dark, &hours.zone);
    let preferred = Blackouts::new(hours.preferred.as_slice(), &hours.zone);
    let accepts = |slot: usize| {
        let middle = grid.start + grid.slot * slot as i64 + grid.slot / 2;
        let middle = Timestamp::from_micros(middle);
        !dark.is_in_blackout(middle) && (preferred.is_empty() || preferred.is_in_blackout(middle))
    };
    (0..horizon.day()).map(accepts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::settings::BalanceSettings;
    use crate::blackout::LocalHours;
    use crate::zone::Zone;

    const NOON: Timestamp = Timestamp::from_micros(1_764_590_400_000_000);

    /// From so many seconds after midnight until noon.
    fn preferring(secs: i32) -> Hours {
        let start = jiff::civil::time(0, 0, 0, 0) + jiff::SignedDuration::from_secs(secs.into());
        let preferred = LocalHours { start, end: jiff::civil::time(12, 0, 0, 0) };
        Hours { zone: Zone::utc(), dark: Vec::new(), preferred: Some(preferred) }
    }

    #[test]
    fn hours_that_come_to_the_same_slots_are_one() {
        let horizon = Horizon::new(&BalanceSettings::default(), NOON);
        let mut accepted = Accepted::default();
        let mut index = |secs| accepted.index_of(&preferring(secs), horizon);
        let first = index(3600);
        assert_eq!(index(3661), first);
        assert_ne!(index(3600 + 900), first);
        assert_eq!(index(3600), first);
        let accepts = |slot| accepted.accepts(first.unwrap(), slot);
        // The day begins at noon: one o'clock is thirteen hours later.
        assert!(!accepts(13 * 4 - 1) && accepts(13 * 4) && accepts(95) && !accepts(0));
    }

    #[test]
    fn of_too_many_the_first_are_told_apart() {
        let horizon = Horizon::new(&BalanceSettings::default(), NOON);
        let mut accepted = Accepted::default();
        let index: Vec<_> =
            (0..1500).map(|secs| accepted.index_of(&preferring(secs), horizon)).collect();
        assert_eq!(index.iter().filter(|index| index.is_some()).count(), HOURS_MAX);
        // The same as before, so that what is taken away is taken from where it was added.
        for secs in [0, 999, 1000, 1499] {
            assert_eq!(accepted.index_of(&preferring(secs), horizon), index[secs as usize]);
        }
    }
}
