//! Priority aging: a run that waits long gains priority.
//!
//! At whole multiples of `every`, each run that has waited longer than `after` gains `step` points
//! of priority. Aging updates no rows in the database, because the times at which a run gains
//! priority are known when the run begins to wait. Each run has a constant number, its [`Rise`], by
//! which waiting runs are ordered. The rank of a run is the higher of two values: its configured
//! priority, and the priority that follows from its [`Rise`] and the current time.

use serde::{Deserialize, Serialize};

use crate::order::Priority;
use crate::time::{Span, Timestamp};

/// The aging settings.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Aging {
    /// Interval at which waiting runs gain priority; the intervals are counted from 1970.
    pub every: Span,
    /// How long a run must wait before it gains priority.
    pub after: Span,
    /// Priority points that a waiting run gains per interval; 0 turns aging off.
    pub step: u8,
    /// The highest effective priority that aging can reach.
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

/// A constant number that orders waiting runs by aging; the run with the smallest is first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rise(pub i64);

impl Rise {
    /// Returns the new [`Rise`] of a run whose configured priority changes from `old` to `new`. The
    /// run keeps the priority that it has gained by waiting.
    #[must_use]
    pub fn with_priority(self, old: Priority, new: Priority) -> Self {
        Self(self.0 + i64::from(old.get()) - i64::from(new.get()))
    }
}

/// The rank of a run at a given moment: the run with the higher rank starts first.
///
/// Ranks grow beyond [`Aging::cap`], so that among long-waiting runs the run that has waited
/// longest starts first. If ranks stopped growing at the cap, only deadlines would order the runs
/// whose rank has reached the cap.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rank(pub i64);

impl Aging {
    /// Returns the [`Rise`] of a run with this configured priority that has waited since `since`.
    pub fn rise(&self, priority: Priority, since: Timestamp) -> Rise {
        let waited = since.as_micros().saturating_add_unsigned(self.after.as_micros());
        let first = self.times(waited) + 1;
        Rise(self.step() * first - i64::from(priority.get()))
    }

    /// Returns the rank of a run before its configured priority is applied as a minimum.
    pub fn risen(&self, rise: Rise, now: Timestamp) -> Rank {
        Rank(self.level(now) - rise.0)
    }

    pub fn rank(&self, priority: Priority, rise: Rise, now: Timestamp) -> Rank {
        self.risen(rise, now).max(Rank(i64::from(priority.get())))
    }

    /// Returns the largest [`Rise`] for which [`risen`](Self::risen) is at least `rank`.
    pub fn rise_of(&self, rank: Rank, now: Timestamp) -> Rise {
        Rise(self.level(now) - rank.0)
    }

    /// Returns the effective priority that users see for a run that has waited since `since`.
    pub fn effective(&self, priority: Priority, since: Timestamp, now: Timestamp) -> Priority {
        let Rank(rank) = self.rank(priority, self.rise(priority, since), now);
        let capped = rank.min(i64::from(self.cap.get()));
        let capped = u8::try_from(capped).ok().and_then(|number| Priority::try_from(number).ok());
        capped.map_or(priority, |capped| capped.max(priority))
    }

    /// Returns a time T: all runs that began to wait before T have gained priority by `now`.
    pub fn gained_before(&self, now: Timestamp) -> Timestamp {
        if self.step == 0 {
            return Timestamp::MIN;
        }
        let last = self.times(now.as_micros()).saturating_mul(self.every());
        Timestamp::from_micros(last.saturating_sub_unsigned(self.after.as_micros()))
    }

    /// Returns the number from which the [`Rise`] of a run is subtracted to get its rank.
    fn level(&self, now: Timestamp) -> i64 {
        self.step() * (self.times(now.as_micros()) + 1)
    }

    /// Returns how many aging intervals fit into this many microseconds.
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

    /// Simulates aging step by step: at every multiple of `every`, each run that has waited long
    /// enough gains `step`.
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
    fn run_waiting_over_an_hour_gains_ten_every_five_minutes() {
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
    fn zero_step_turns_aging_off() {
        let aging = Aging { step: 0, ..Aging::default() };
        assert_eq!(aging.effective(priority(7), at(0), at(900 * HOUR)).get(), 7);
    }

    #[test]
    fn longest_waiting_run_goes_first_above_the_cap() {
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
        fn effective_priority_matches_a_simulated_clock(
            aging in any_aging(), base in 0_u8..=100, since in 0_i64..20_000, waited in 0_i64..50_000,
        ) {
            let now = since + waited;
            let seen = aging.effective(priority(base), at(since), at(now)).get();
            prop_assert_eq!(seen, step_by_step(&aging, base, since, now));
        }

        #[test]
        fn priority_change_keeps_the_waiting_time(
            aging in any_aging(), old in 0_u8..=100, new in 0_u8..=100, since in 0_i64..50_000,
        ) {
            let (old, new) = (priority(old), priority(new));
            let changed = aging.rise(old, at(since)).with_priority(old, new);
            prop_assert_eq!(changed, aging.rise(new, at(since)));
        }

        #[test]
        fn gained_before_separates_runs_that_gained(
            aging in any_aging(), base in 0_u8..=100, since in 0_i64..20_000, waited in 0_i64..50_000,
        ) {
            let now = at(since + waited);
            let rise = aging.rise(priority(base), at(since));
            let gained = aging.rank(priority(base), rise, now) > Rank(i64::from(base));
            prop_assert_eq!(gained, at(since) < aging.gained_before(now));
        }

        #[test]
        fn rank_never_falls(
            aging in any_aging(), base in 0_u8..=100, since in 0_i64..20_000, now in 0_i64..50_000,
            later in 0_i64..50_000,
        ) {
            let rise = aging.rise(priority(base), at(since));
            let rank = |secs| aging.rank(priority(base), rise, at(secs));
            prop_assert!(rank(now) <= rank(now + later));
        }

        /// Checks that the runs with the highest ranks are among the first runs by priority or the
        /// first runs by [`Rise`].
        #[test]
        fn next_runs_are_among_the_first_by_priority_or_by_rise(
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
            // Each of the `count` runs with the highest ranks is among the first `count` runs by
            // priority, or has a [`Rise`] that reaches the priority of the last of these `count`
            // runs.
            if let Some(last) = by_priority.get(count - 1) {
                let reach = aging.rise_of(Rank(i64::from(last.0.get())), at(now));
                for run in by_rank.iter().take(count) {
                    prop_assert!(by_priority[..count].contains(run) || run.1 <= reach);
                }
            }
        }
    }
}
