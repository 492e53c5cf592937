//! Who has waited long rises.
//!
//! At whole multiples of a length of time, whatever has waited longer than another gains priority.
//! Nothing is rewritten for that: when a run will gain what is known when it begins to wait, so its
//! place among all that have waited is a number that never changes, its [`Rise`]. What it ranks at
//! is the higher of its own priority and of what its rise says at that moment.

use serde::{Deserialize, Serialize};

use crate::order::Priority;
use crate::time::{Span, Timestamp};

/// How waiting counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Aging {
    /// How often whoever waits gains something, counted from 1970.
    pub every: Span,
    /// Who has waited longer than this gains.
    pub after: Span,
    /// So much; nothing if waiting does not count.
    pub step: u8,
    /// No higher than this, as people see it.
    pub cap: Priority,
}

impl Default for Aging {
    fn default() -> Self {
        Self {
            every: Span::from_secs(300),
            after: Span::from_secs(3600),
            step: 10,
            cap: Priority::MAX,
        }
    }
}

/// A run's place among those that have waited: the smaller one goes first, at any moment.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rise(pub i64);

impl Rise {
    /// The place of the same run if its priority is changed: what it has waited stays.
    #[must_use]
    pub fn with_priority(self, old: Priority, new: Priority) -> Self {
        Self(self.0 + i64::from(old.get()) - i64::from(new.get()))
    }
}

/// What a run ranks at, at some moment: the higher one goes first.
///
/// It goes on beyond [`Aging::cap`], so that of all that have waited the longest goes first. If it
/// stopped there, the deadlines of those at the top would decide for ever.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rank(pub i64);

impl Aging {
    /// The place of a run of this priority that waits since then.
    pub fn rise(&self, priority: Priority, since: Timestamp) -> Rise {
        let waited = since.as_micros().saturating_add_unsigned(self.after.as_micros());
        // The first time at which it gains comes after that, not with it.
        let first = self.times(waited) + 1;
        Rise(self.step() * first - i64::from(priority.get()))
    }

    /// What a run with this place ranks at by its waiting alone.
    pub fn risen(&self, rise: Rise, now: Timestamp) -> Rank {
        Rank(self.level(now) - rise.0)
    }

    /// What a run ranks at.
    pub fn rank(&self, priority: Priority, rise: Rise, now: Timestamp) -> Rank {
        self.risen(rise, now).max(Rank(i64::from(priority.get())))
    }

    /// Those that rank at least so high by their waiting have no larger rise than this.
    pub fn rise_of(&self, rank: Rank, now: Timestamp) -> Rise {
        Rise(self.level(now) - rank.0)
    }

    /// The priority of a run that waits since then, as people see it.
    pub fn effective(&self, priority: Priority, since: Timestamp, now: Timestamp) -> Priority {
        let Rank(rank) = self.rank(priority, self.rise(priority, since), now);
        let capped = rank.min(i64::from(self.cap.get()));
        let capped = u8::try_from(capped).ok().and_then(|number| Priority::try_from(number).ok());
        capped.map_or(priority, |capped| capped.max(priority))
    }

    /// Whoever waits since before this has gained something by now, and nobody else has.
    pub fn gained_before(&self, now: Timestamp) -> Timestamp {
        if self.step == 0 {
            return Timestamp::MIN;
        }
        let last = self.times(now.as_micros()).saturating_mul(self.every());
        Timestamp::from_micros(last.saturating_sub_unsigned(self.after.as_micros()))
    }

    /// How far everybody has come who began to wait at the epoch.
    fn level(&self, now: Timestamp) -> i64 {
        self.step() * (self.times(now.as_micros()) + 1)
    }

    /// How often somebody could have gained until then.
    fn times(&self, micros: i64) -> i64 {
        micros.div_euclid(self.every())
    }

    fn every(&self) -> i64 {
        i64::try_from(self.every.as_micros()).unwrap_or(i64::MAX).max(1_000_000)
    }

    fn step(&self) -> i64 {
        i64::from(self.step)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3600;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn priority(number: u8) -> Priority {
        Priority::try_from(number).unwrap()
    }

    /// What a clock that gives everybody a bit now and then would make of it.
    fn step_by_step(aging: &Aging, base: u8, since: i64, now: i64) -> u8 {
        let every = (aging.every.as_micros() / 1_000_000) as i64;
        let after = (aging.after.as_micros() / 1_000_000) as i64;
        let mut priority = u32::from(base);
        for time in (0..=now / every).map(|nth| nth * every).filter(|time| *time > since + after) {
            assert!(time <= now);
            priority = (priority + u32::from(aging.step)).min(u32::from(aging.cap.get()));
        }
        priority.max(u32::from(base)) as u8
    }

    #[test]
    fn waiting_for_over_an_hour_gains_ten_every_five_minutes() {
        let aging = Aging::default();
        let since = 10 * HOUR + 1;
        let seen = |secs| aging.effective(priority(20), at(since), at(secs)).get();
        assert_eq!(seen(since + HOUR), 20);
        assert_eq!(seen(11 * HOUR + 299), 20);
        assert_eq!(seen(11 * HOUR + 300), 30);
        assert_eq!(seen(11 * HOUR + 600), 40);
        assert_eq!(seen(20 * HOUR), 100);
    }

    #[test]
    fn without_steps_nothing_rises() {
        let aging = Aging { step: 0, ..Aging::default() };
        assert_eq!(aging.effective(priority(7), at(0), at(900 * HOUR)).get(), 7);
    }

    #[test]
    fn above_the_cap_whoever_has_waited_longer_still_goes_first() {
        let aging = Aging::default();
        let rank = |base, since| {
            let rise = aging.rise(priority(base), at(since));
            aging.rank(priority(base), rise, at(48 * HOUR))
        };
        assert!(rank(0, HOUR) > rank(100, 47 * HOUR));
        assert!(rank(100, HOUR) > rank(0, HOUR));
    }

    fn any_aging() -> impl Strategy<Value = Aging> {
        (1_u64..2000, 0_u64..9000, 0_u8..=100, 0_u8..=100).prop_map(|(every, after, step, cap)| {
            let (every, after) = (Span::from_secs(every), Span::from_secs(after));
            Aging { every, after, step, cap: priority(cap) }
        })
    }

    proptest! {
        #[test]
        fn it_is_what_a_clock_would_make_of_it(
            aging in any_aging(), base in 0_u8..=100, since in 0_i64..20_000, waited in 0_i64..50_000,
        ) {
            let now = since + waited;
            let seen = aging.effective(priority(base), at(since), at(now)).get();
            prop_assert_eq!(seen, step_by_step(&aging, base, since, now));
        }

        #[test]
        fn another_priority_takes_nothing_of_what_was_waited(
            aging in any_aging(), old in 0_u8..=100, new in 0_u8..=100, since in 0_i64..50_000,
        ) {
            let (old, new) = (priority(old), priority(new));
            let changed = aging.rise(old, at(since)).with_priority(old, new);
            prop_assert_eq!(changed, aging.rise(new, at(since)));
        }

        #[test]
        fn who_has_gained_is_told_by_when_it_came(
            aging in any_aging(), base in 0_u8..=100, since in 0_i64..20_000, waited in 0_i64..50_000,
        ) {
            let now = at(since + waited);
            let rise = aging.rise(priority(base), at(since));
            let gained = aging.rank(priority(base), rise, now) > Rank(i64::from(base));
            prop_assert_eq!(gained, at(since) < aging.gained_before(now));
        }

        #[test]
        fn a_rank_never_falls(
            aging in any_aging(), base in 0_u8..=100, since in 0_i64..20_000, now in 0_i64..50_000,
            later in 0_i64..50_000,
        ) {
            let rise = aging.rise(priority(base), at(since));
            let rank = |secs| aging.rank(priority(base), rise, at(secs));
            prop_assert!(rank(now) <= rank(now + later));
        }

        /// Why two orders that never change are enough.
        #[test]
        fn whoever_goes_first_is_among_the_first_by_priority_or_by_rise(
            aging in any_aging(),
            runs in prop::collection::vec((0_u8..=100, 0_i64..30_000, 0_u8..4), 1..60),
            now in 0_i64..50_000, count in 1_usize..20,
        ) {
            let runs: Vec<_> = runs.into_iter().enumerate().map(|(no, (base, since, deadline))| {
                (priority(base), aging.rise(priority(base), at(since)), (deadline, no))
            }).collect();
            let mut by_priority = runs.clone();
            by_priority.sort_by_key(|run| (std::cmp::Reverse(run.0), run.2));
            let mut by_rise = runs.clone();
            by_rise.sort_by_key(|run| (run.1, run.2));
            let mut by_rank = runs;
            by_rank.sort_by_key(|run| (std::cmp::Reverse(aging.rank(run.0, run.1, at(now))), run.2));
            let firsts = by_priority.iter().take(count).chain(by_rise.iter().take(count));
            let firsts: Vec<_> = firsts.collect();
            for run in by_rank.iter().take(count) {
                prop_assert!(firsts.contains(&run));
            }
            // And only those of the second order that reach the last of the first matter.
            if let Some(last) = by_priority.get(count - 1) {
                let reach = aging.rise_of(Rank(i64::from(last.0.get())), at(now));
                for run in by_rank.iter().take(count) {
                    prop_assert!(by_priority[..count].contains(run) || run.1 <= reach);
                }
            }
        }
    }
}
