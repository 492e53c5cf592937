//! Counts the runs that start in each second, so that runs can be spread within a time slot.
//!
//! For jobs whose interval is shorter than 15 minutes, the start second is known from their load
//! profile. For other jobs, only the time slot is known, and their start second is computed from
//! the number of jobs in that time slot.

use std::collections::BTreeMap;

use super::hits::micros;
use super::place::NodeTurn;
use super::spread::Spread;
use crate::time::{Span, Timestamp};

const SECOND: u64 = 1_000_000;
/// Start seconds are counted only for jobs with an interval shorter than this many seconds.
const COUNTED_BELOW: u64 = 900;
/// The number of seconds over which the evenness of start seconds is computed.
const HOUR: usize = 3600;
/// The golden ratio as a fraction of 2^64. Multiples of the golden ratio, modulo 2^64, are spread
/// almost evenly, however many of them are used.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// For each interval in seconds, the number of jobs that start in each second of the interval,
/// counted from 1970.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Seconds(BTreeMap<usize, Vec<i64>>);

impl Seconds {
    /// Adds `jobs` jobs, or removes jobs if the number is negative.
    pub fn change(&mut self, every: Span, phase: u32, jobs: i64) {
        let Some(secs) = counted(every) else { return };
        let counts = self.0.entry(secs).or_insert_with(|| vec![0; secs]);
        if let Some(count) = counts.get_mut(phase as usize) {
            *count = count.saturating_add(jobs);
        }
        if counts.iter().all(|count| *count == 0) {
            self.0.remove(&secs);
        }
    }

    /// Returns for each second of an interval how many runs of other jobs start in that second on
    /// average.
    fn met(&self, secs: usize) -> Vec<f64> {
        let mut met = vec![0.0; secs];
        for (other, counts) in &self.0 {
            // Runs of jobs with different intervals start together if their start seconds are equal
            // modulo the greatest common divisor of the intervals. `share` is the part of this
            // job's runs that start together with a run of the other job.
            let common = gcd(secs, *other);
            let mut rests = vec![0_i64; common];
            for (phase, count) in counts.iter().enumerate() {
                rests[phase % common] += count;
            }
            let share = common as f64 / *other as f64;
            for (phase, met) in met.iter_mut().enumerate() {
                *met += rests[phase % common] as f64 * share;
            }
        }
        met
    }

    /// Counts the runs that start in each second of the hour from `start`.
    fn of_hour(&self, start: Timestamp) -> Vec<f64> {
        let start = start.as_micros().div_euclid(SECOND.cast_signed());
        let mut starts = vec![0.0; HOUR];
        for (secs, counts) in &self.0 {
            let first = usize::try_from(start.rem_euclid(*secs as i64)).unwrap_or_default();
            for (at, starts) in starts.iter_mut().enumerate() {
                *starts += counts[(first + at) % secs].max(0) as f64;
            }
        }
        starts
    }

    /// Returns how evenly the runs of the hour from `start` are spread over its seconds. Returns
    /// `None` if no job is counted by second.
    pub fn spread(&self, start: Timestamp) -> Option<Spread> {
        let starts = self.of_hour(start);
        let total: f64 = starts.iter().sum();
        if total <= 0.0 {
            return None;
        }
        let mean = total / HOUR as f64;
        let least_peak = mean.ceil();
        let over: f64 = starts.iter().map(|starts| (starts - least_peak).max(0.0)).sum();
        let peak_at =
            (0..HOUR).fold(0, |best, at| if starts[at] > starts[best] { at } else { best });
        let score = (1.0 - over / total).clamp(0.0, 1.0);
        Some(Spread { score, peak: starts[peak_at], peak_at, mean, least_peak })
    }
}

/// Returns the interval in seconds if runs with this interval are counted by second.
fn counted(every: Span) -> Option<usize> {
    let secs = every.as_micros() / SECOND;
    let is_counted = every.as_micros().is_multiple_of(SECOND) && (1..COUNTED_BELOW).contains(&secs);
    is_counted.then_some(secs as usize)
}

fn gcd(one: usize, other: usize) -> usize {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Returns the best start second within the interval for a new job. The best second has the fewest
/// runs of the job's tenant (`own`), then the fewest runs of all tenants (`all`). Among equally
/// good seconds, this node's preferred seconds come first, then the second farthest from busy
/// seconds. Returns `None` if runs with this interval are not counted by second.
pub(super) fn best_second(
    every: Span,
    own: &Seconds,
    all: &Seconds,
    turn: NodeTurn,
) -> Option<i64> {
    let secs = counted(every)?;
    let all_met = all.met(secs);
    let own_met = if own == all { all_met.clone() } else { own.met(secs) };
    let mut best: Vec<usize> = (0..secs).collect();
    for met in [&own_met, &all_met] {
        let least = best.iter().map(|second| met[*second]).fold(f64::INFINITY, f64::min);
        best.retain(|second| met[*second] <= least + 1e-9);
    }
    if best.iter().any(|second| turn.is_mine(*second as i64)) {
        best.retain(|second| turn.is_mine(*second as i64));
    }
    let apart = distances(&all_met);
    let farthest = best.iter().map(|second| apart[*second]).max()?;
    best.into_iter().find(|second| apart[*second] == farthest).map(|second| second as i64)
}

/// Returns for each second the distance to the nearest second that has more than the fewest runs.
/// The last second is next to the first.
fn distances(met: &[f64]) -> Vec<usize> {
    let secs = met.len();
    let least = met.iter().copied().fold(f64::INFINITY, f64::min);
    let mut apart = vec![secs; secs];
    // Walks around the circle of seconds twice in each direction, so that distances across its
    // start are found.
    let walk = (0..2 * secs).map(|step| step % secs);
    let back = walk.clone().rev();
    let mut pass = |walk: &mut dyn Iterator<Item = usize>| {
        let mut since = secs;
        for at in walk {
            since = if met[at] > least + 1e-9 { 0 } else { (since + 1).min(secs) };
            apart[at] = apart[at].min(since);
        }
    };
    pass(&mut { walk });
    pass(&mut { back });
    apart
}

/// Returns the offset within a time slot, in microseconds, for a new job if `before` runs are
/// already in that time slot. Each new job gets a start second in one of the widest gaps between
/// the start seconds of existing jobs. The start second of the first job differs between time
/// slots, so that not all time slots are busy in the same seconds.
pub(super) fn offset_after(before: u64, slot_no: i64, length: Span, turn: NodeTurn) -> i64 {
    let secs = (length.as_micros() / SECOND).max(1);
    let nth = before.wrapping_mul(u64::from(turn.of.max(1))).wrapping_add(turn.mine.into());
    // Multiplying the slot number by another fraction gives each time slot a different first
    // second.
    let first = slot_no.cast_unsigned().wrapping_mul(0xd1b5_4a32_d192_ed03);
    let part = first.wrapping_add(nth.wrapping_mul(GOLDEN));
    let second = (u128::from(part) * u128::from(secs)) >> 64;
    micros(Span::from_secs(second as u64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_764_590_400_000_000);

    fn secs(secs: u64) -> Span {
        Span::from_secs(secs)
    }

    /// Chooses the start seconds of `jobs` jobs with the same interval, one after the other.
    fn place(seconds: &mut Seconds, every: u64, jobs: usize) -> Vec<i64> {
        let mut placed = Vec::new();
        for _ in 0..jobs {
            let second = best_second(secs(every), seconds, seconds, NodeTurn::ALONE).unwrap();
            seconds.change(secs(every), second as u32, 1);
            placed.push(second);
        }
        placed
    }

    #[test]
    fn fifty_jobs_per_minute_get_fifty_seconds() {
        let mut seconds = Seconds::default();
        let placed: BTreeSet<i64> = place(&mut seconds, 60, 50).into_iter().collect();
        assert_eq!(placed.len(), 50);
        let spread = seconds.spread(START).unwrap();
        assert_eq!((spread.score, spread.peak, spread.least_peak), (1.0, 1.0, 1.0));
    }

    #[test]
    fn score_by_second_shows_jobs_that_share_one() {
        let mut seconds = Seconds::default();
        assert_eq!(seconds.spread(START), None);
        // Of 50 jobs, 13 start in a second that another of the jobs already uses.
        (0..50).for_each(|job| seconds.change(secs(60), job % 37, 1));
        let spread = seconds.spread(START).unwrap();
        assert!((spread.score - 37.0 / 50.0).abs() < 1e-9, "{spread:?}");
        assert_eq!((spread.peak, spread.least_peak), (2.0, 1.0));
        (0..50).for_each(|job| seconds.change(secs(60), job % 37, -1));
        assert_eq!(seconds, Seconds::default());
    }

    #[test]
    fn jobs_of_other_intervals_are_avoided_where_they_meet() {
        let mut seconds = Seconds::default();
        // Jobs that run every 30 seconds, in seconds 0 to 14 of each half minute.
        (0..15).for_each(|phase| seconds.change(secs(30), phase, 1));
        let placed = place(&mut seconds, 60, 30);
        assert!(placed.iter().all(|second| second % 30 >= 15), "{placed:?}");
        assert_eq!(seconds.spread(START).unwrap().peak, 1.0);
    }

    #[test]
    fn own_tenant_counts_first_and_nodes_take_turns() {
        let (mut own, mut all) = (Seconds::default(), Seconds::default());
        for phase in 0..8 {
            own.change(secs(10), phase, 1);
            all.change(secs(10), phase, 1);
        }
        all.change(secs(10), 8, 5);
        assert_eq!(best_second(secs(10), &own, &all, NodeTurn::ALONE), Some(9));
        let second = |mine| best_second(secs(60), &own, &own, NodeTurn { mine, of: 2 });
        assert_ne!(second(0), second(1));
        // Intervals of 1.5 s and of 15 minutes are not counted by second.
        let half = Span::from_millis(1_500);
        assert_eq!(best_second(half, &own, &all, NodeTurn::ALONE), None);
        assert_eq!(best_second(secs(900), &own, &all, NodeTurn::ALONE), None);
    }

    proptest! {
        #[test]
        fn no_second_gets_a_second_job_before_each_has_one(
            every in 1_u64..900, jobs in 1_usize..200,
        ) {
            let mut seconds = Seconds::default();
            let placed = place(&mut seconds, every, jobs);
            let counts = &seconds.0[&(every as usize)];
            let (most, least) = (counts.iter().max().unwrap(), counts.iter().min().unwrap());
            prop_assert!(most - least <= 1, "{placed:?}");
            let spread = seconds.spread(START).unwrap();
            prop_assert!(spread.score > 1.0 - 1e-9, "{spread:?}");
        }

        #[test]
        fn few_jobs_are_far_apart(every in 60_u64..900, jobs in 2_usize..20) {
            let mut placed = place(&mut Seconds::default(), every, jobs);
            placed.sort_unstable();
            let around = placed[0] + every as i64;
            let gaps = placed.windows(2).map(|two| two[1] - two[0]).chain([around - placed[jobs - 1]]);
            // Perfectly spread jobs start `every / jobs` seconds apart; the test accepts a third of
            // this distance.
            let least = gaps.min().unwrap();
            prop_assert!(least as usize >= every as usize / jobs / 3, "{placed:?}");
        }

        #[test]
        fn jobs_of_one_slot_get_seconds_far_apart(
            slot_no in any::<i64>(), length in prop::sample::select(vec![60_u64, 300, 900, 3600]),
            jobs in 2_u64..200, of in 1_u32..4,
        ) {
            prop_assume!(jobs * 3 <= length);
            let turn = NodeTurn { mine: 0, of };
            let offsets: BTreeSet<i64> =
                (0..jobs).map(|n| offset_after(n, slot_no, secs(length), turn)).collect();
            let whole = |offset: &i64| {
                offset % 1_000_000 == 0 && (0..length as i64 * 1_000_000).contains(offset)
            };
            prop_assert!(offsets.iter().all(whole));
            if of == 1 {
                prop_assert_eq!(offsets.len() as u64, jobs);
                let sorted: Vec<i64> = offsets.into_iter().collect();
                let least = sorted.windows(2).map(|two| two[1] - two[0]).min().unwrap() / 1_000_000;
                prop_assert!(least as u64 + 1 >= length / jobs / 3, "{least} s of {length}");
            }
        }
    }
}
