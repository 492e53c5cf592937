//! Load by slot.

use std::collections::BTreeMap;

use super::hits::{Grid, micros};
use super::rhythm::{Beat, Hours, Rhythm};
use super::settings::BalanceSettings;
use crate::slot::Slot;
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
///
/// What it takes in memory depends on the number of slots, not on that of jobs.
#[derive(Clone, PartialEq, Debug)]
pub struct Loads {
    horizon: Horizon,
    jobs: u64,
    /// All load that lies in slots.
    pub(super) sums: Sums,
    /// All of that together.
    total: Amounts,
    /// What of it nobody can move, in the first day.
    pub(super) fixed: Sums,
    /// The heaviest runs of the first day, as far as known: no less than the average of what was
    /// added together.
    pub(super) heaviest: Vec<i64>,
    /// What can be moved of the first day, by where it may be.
    pub(super) movable: BTreeMap<Where, Amounts>,
    /// Hours that some job shuns or prefers.
    pub(super) hours: Vec<Hours>,
    /// Jobs that may run at any time: how many there are of a period, and what they cost.
    pub(super) often: BTreeMap<Span, Amounts>,
    /// The next month.
    pub(super) far: Far,
}

/// Sums by slot; times in [`Grid::whole`] ones, costs in microseconds.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sums {
    pub next: Vec<i64>,
    pub runs: Vec<i64>,
    pub cost: Vec<i64>,
}

/// Sums of something else.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Amounts {
    pub next: i64,
    pub runs: i64,
    pub cost: i64,
}

/// Where a job may be: its next time in so many slots, each time in hours that it accepts.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Where {
    pub window: usize,
    /// Which of [`Loads::hours`].
    pub hours: Option<usize>,
}

/// Load of the next month, in slots of at least a quarter of an hour.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Far {
    pub grid: Grid,
    /// Jobs, where their next run is.
    pub next: Vec<u32>,
    /// Runs of jobs that do not run in every [`Horizon`].
    pub slow_runs: Vec<i64>,
    /// What they cost.
    pub slow_cost: Vec<i64>,
}

const DAY: Span = Span::from_secs(86_400);
const WEEK: Span = Span::from_secs(7 * 86_400);
const SLOTS_MAX: u64 = 4096;
/// No first time is later than this.
pub(super) const FAR: Span = Span::from_secs(31 * 86_400);

impl Horizon {
    /// The stretch that begins with the slot of `now`.
    pub fn new(settings: &BalanceSettings, now: Timestamp) -> Self {
        let slot = settings.slot.max(Span::from_secs(1));
        let start = now.as_micros() - now.as_micros().rem_euclid(micros(slot));
        let slots = (WEEK.as_micros() / slot.as_micros()).clamp(1, SLOTS_MAX);
        Self { start: Timestamp::from_micros(start), slot, slots: slots as usize }
    }

    /// How many of its slots are the first 24 hours.
    pub fn day(self) -> usize {
        self.slots.min((DAY.as_micros() / self.slot.as_micros()).max(1) as usize)
    }

    /// How long it is, in microseconds.
    pub(super) fn length(self) -> i64 {
        micros(self.slot) * self.slots as i64
    }

    pub(super) fn grid(self) -> Grid {
        Grid { start: self.start.as_micros(), slot: micros(self.slot), slots: self.slots }
    }

    /// Can a rebalance move it?
    pub(super) fn is_movable(self, rhythm: &Rhythm) -> bool {
        matches!(rhythm.beat, Beat::Every { every, .. } if !rhythm.fixed && every >= self.slot)
    }
}

impl Sums {
    fn new(slots: usize) -> Self {
        Self { next: vec![0; slots], runs: vec![0; slots], cost: vec![0; slots] }
    }

    pub fn of(&self, measure: Measure) -> &[i64] {
        match measure {
            Measure::Next => &self.next,
            Measure::Runs => &self.runs,
            Measure::Cost => &self.cost,
        }
    }

    fn add(&mut self, slot: usize, by: Amounts) {
        self.next[slot] += by.next;
        self.runs[slot] += by.runs;
        self.cost[slot] += by.cost;
    }
}

impl Amounts {
    pub fn of(&self, measure: Measure) -> i64 {
        match measure {
            Measure::Next => self.next,
            Measure::Runs => self.runs,
            Measure::Cost => self.cost,
        }
    }

    fn add(&mut self, by: Self) {
        self.next += by.next;
        self.runs += by.runs;
        self.cost += by.cost;
    }
}

impl Loads {
    /// No load.
    pub fn new(horizon: Horizon) -> Self {
        let far_slot = horizon.slot.max(Slot::LENGTH);
        let start = horizon.start.as_micros();
        let far = Grid {
            start: start - start.rem_euclid(micros(far_slot)),
            slot: micros(far_slot),
            // The first may be over, and the last is only begun.
            slots: (FAR.as_micros() / far_slot.as_micros()) as usize + 2,
        };
        Self {
            horizon,
            jobs: 0,
            sums: Sums::new(horizon.slots),
            total: Amounts::default(),
            fixed: Sums::new(horizon.day()),
            heaviest: vec![0; horizon.day()],
            movable: BTreeMap::new(),
            hours: Vec::new(),
            often: BTreeMap::new(),
            far: Far {
                grid: far,
                next: vec![0; far.slots],
                slow_runs: vec![0; far.slots],
                slow_cost: vec![0; far.slots],
            },
        }
    }

    /// Where it is counted.
    pub fn horizon(&self) -> Horizon {
        self.horizon
    }

    /// Adds `jobs` of a rhythm, whose runs cost `cost` (of all of them together, once each).
    pub fn add(&mut self, rhythm: &Rhythm, jobs: u64, cost: Span) {
        self.jobs = self.jobs.saturating_add(jobs);
        let jobs = i64::try_from(jobs).unwrap_or(i64::MAX);
        self.change(rhythm, jobs, micros(cost));
    }

    /// Takes them away again.
    pub fn remove(&mut self, rhythm: &Rhythm, jobs: u64, cost: Span) {
        self.jobs = self.jobs.saturating_sub(jobs);
        let jobs = i64::try_from(jobs).unwrap_or(i64::MAX);
        self.change(rhythm, -jobs, -micros(cost));
    }

    fn change(&mut self, rhythm: &Rhythm, jobs: i64, cost: i64) {
        if let Beat::Often(period) = rhythm.beat {
            let by = Amounts { next: jobs, runs: jobs, cost };
            return keep(&mut self.often, period, by);
        }
        let grid = self.horizon.grid();
        let (day, whole) = (self.horizon.day(), grid.whole());
        let is_movable = self.horizon.is_movable(rhythm);
        let heavy = if jobs > 0 { cost / jobs } else { 0 };
        let mut of_day = Amounts::default();
        let mut first = None;
        let Self { sums, total, fixed, heaviest, .. } = self;
        grid.visit(rhythm, |hit| {
            first = first.or(Some(hit.slot));
            let by = Amounts {
                next: if hit.first { jobs * hit.times.min(whole) } else { 0 },
                runs: jobs * hit.times,
                cost: if whole == 1 { cost * hit.times } else { cost * hit.times / whole },
            };
            sums.add(hit.slot, by);
            total.add(by);
            if hit.slot >= day {
                return;
            }
            if is_movable {
                of_day.add(by);
                heaviest[hit.slot] = heaviest[hit.slot].max(heavy);
            } else {
                fixed.add(hit.slot, by);
            }
        });
        if of_day != Amounts::default() {
            let place = self.place_of(rhythm);
            keep(&mut self.movable, place, of_day);
        }
        self.change_far(rhythm, jobs, cost, first);
    }

    fn change_far(&mut self, rhythm: &Rhythm, jobs: i64, cost: i64, first: Option<usize>) {
        let near = self.horizon.grid();
        let Far { grid, next, slow_runs, slow_cost } = &mut self.far;
        let first = match first {
            Some(slot) if grid.slot == near.slot => Some(slot),
            _ => grid.first_of(rhythm, near.start),
        };
        if let Some(slot) = first {
            let sum = i64::from(next[slot]) + jobs;
            next[slot] = u32::try_from(sum.max(0)).unwrap_or(u32::MAX);
        }
        let length = near.end() - near.start;
        if matches!(rhythm.beat, Beat::Every { every, .. } if micros(every) > length) {
            grid.visit(rhythm, |hit| {
                slow_runs[hit.slot] += jobs;
                slow_cost[hit.slot] += cost;
            });
        }
    }

    /// Where a rhythm that can be moved may be.
    fn place_of(&mut self, rhythm: &Rhythm) -> Where {
        let Beat::Every { every, .. } = rhythm.beat else {
            return Where { window: self.horizon.day(), hours: None };
        };
        let window = (every.as_micros() / self.horizon.slot.as_micros()).max(1);
        let window = usize::try_from(window).unwrap_or(usize::MAX).min(self.horizon.day());
        // What runs more often than daily runs at all hours, whatever it prefers.
        let hours = rhythm.hours.as_ref().filter(|_| every >= DAY).map(|hours| {
            self.hours.iter().position(|known| known == hours).unwrap_or_else(|| {
                self.hours.push(hours.clone());
                self.hours.len() - 1
            })
        });
        Where { window, hours }
    }

    /// What a run costs on average, in microseconds; of runs as [`Grid::whole`] counts them.
    pub(super) fn average_cost(&self) -> f64 {
        if self.total.runs > 0 { self.total.cost as f64 / self.total.runs as f64 } else { 0.0 }
    }

    /// How many jobs were added.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }
}

/// Adds to what is kept under a key, and forgets what has become nothing.
fn keep<K: Ord + Copy>(kept: &mut BTreeMap<K, Amounts>, key: K, by: Amounts) {
    let amounts = kept.entry(key).or_default();
    amounts.add(by);
    if *amounts == Amounts::default() {
        kept.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::balance::test_loads::{NOON, daily, every, loads_of, loads_with_slot, nine};
    use crate::schedule::Periodic;

    const MINUTE: Span = Span::from_secs(60);

    fn total(loads: &Loads, measure: Measure) -> f64 {
        loads.by_slot(measure).iter().sum()
    }

    #[test]
    fn a_slot_holds_its_quarter_of_an_hour() {
        let now = NOON.saturating_add(Span::from_secs(899));
        let horizon = Horizon::new(&BalanceSettings::default(), now);
        assert_eq!((horizon.start, horizon.slots, horizon.day()), (NOON, 672, 96));
        let later = NOON.saturating_add(Span::from_secs(900));
        assert_eq!(Horizon::new(&BalanceSettings::default(), later).start, later);
    }

    #[test]
    fn short_slots_make_a_short_horizon() {
        let settings = BalanceSettings { slot: Span::from_secs(1), ..BalanceSettings::default() };
        assert_eq!(Horizon::new(&settings, NOON).slots, 4096);
    }

    #[test]
    fn a_job_counts_in_every_slot_that_it_hits() {
        let loads = loads_of([(every(3600, 1800), 2, MINUTE)]);
        let runs = loads.by_slot(Measure::Runs);
        let hit: Vec<usize> = (0..672).filter(|slot| runs[*slot] > 0.0).collect();
        assert_eq!(hit, (0..168).map(|hour| hour * 4 + 2).collect::<Vec<_>>());
        assert_eq!(runs[2], 2.0);
        assert_eq!(loads.by_slot(Measure::Cost)[6], 60.0);
        assert_eq!(loads.by_slot(Measure::Next)[2], 2.0);
        assert_eq!(total(&loads, Measure::Next), 2.0);
        assert_eq!(loads.jobs(), 2);
    }

    #[test]
    fn odd_intervals_hit_the_slots_of_their_times() {
        for secs in [1200, 1500, 25_200, 129_600, 6000, 4200, 604_800, 2_592_000] {
            for offset in [0, 17, 899, 1000, 3599] {
                let loads = loads_of([(every(secs, offset), 1, MINUTE)]);
                let mut expected = vec![0.0; 672];
                let first = (offset - NOON.as_micros() / 1_000_000).rem_euclid(secs);
                let times = (0..).map(|n| first + n * secs).take_while(|secs| *secs < 604_800);
                times.for_each(|secs| expected[(secs / 900) as usize] += 1.0);
                assert_eq!(loads.by_slot(Measure::Runs), expected, "every {secs} at {offset}");
            }
        }
    }

    #[test]
    fn what_is_shorter_than_a_slot_counts_as_often_as_it_runs() {
        let loads = loads_of([(every(60, 7), 1, MINUTE)]);
        assert!(loads.by_slot(Measure::Runs).iter().all(|runs| *runs == 15.0));
        assert_eq!(loads.by_slot(Measure::Cost)[0], 900.0);
        assert_eq!(total(&loads, Measure::Next), 1.0);
        let loads = loads_of([(every(420, 0), 1, MINUTE)]);
        assert!(loads.by_slot(Measure::Runs).iter().all(|runs| [2.0, 3.0].contains(runs)));
        assert_eq!(total(&loads, Measure::Runs), 604_800.0 / 420.0);
    }

    #[test]
    fn clocks_and_periods_count_too() {
        let loads = loads_of([(nine(), 1, MINUTE)]);
        let runs = loads.by_slot(Measure::Runs);
        let hit: Vec<usize> = (0..672).filter(|slot| runs[*slot] > 0.0).collect();
        assert_eq!(hit, (0..7).map(|day| day * 96 + 84).collect::<Vec<_>>());
        assert_eq!(total(&loads, Measure::Next), 1.0);
        let period = Periodic::new(Span::from_secs(86_400), None).unwrap().period();
        let often = Rhythm { beat: Beat::Often(period), fixed: true, from: None, hours: None };
        let loads = loads_of([(often, 96, MINUTE)]);
        assert!(loads.by_slot(Measure::Runs).iter().all(|runs| (runs - 1.0).abs() < 1e-9));
        assert!((total(&loads, Measure::Next) - 96.0).abs() < 1e-9);
    }

    #[test]
    fn a_phase_that_is_known_less_exactly_than_slots_are_long_is_shared_out() {
        let mut loads = loads_with_slot(Span::from_secs(300));
        loads.add(&daily(0), 3, MINUTE);
        assert_eq!(loads.by_slot(Measure::Runs)[143..148], [0.0, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!(loads.by_slot(Measure::Cost)[144], 20.0);
        assert_eq!(total(&loads, Measure::Next), 3.0);
    }

    fn rhythm() -> impl Strategy<Value = Rhythm> {
        let intervals =
            vec![60, 420, 900, 1200, 1500, 3600, 6000, 25_200, 86_400, 604_800, 864_000];
        prop_oneof![
            (prop::sample::select(intervals), 0_i64..1_000_000)
                .prop_map(|(secs, offset)| every(secs, offset)),
            Just(nine()),
            (0_i32..3000).prop_map(|slot| Rhythm {
                beat: Beat::Once(Slot(Slot::of(NOON).0 + slot)),
                fixed: true,
                from: None,
                hours: None,
            }),
        ]
    }

    proptest! {
        #[test]
        fn counts_are_what_a_recount_gives_after_any_adds_and_removes(
            kept in prop::collection::vec((rhythm(), 1_u64..50, 0_u64..9000), 0..12),
            gone in prop::collection::vec((rhythm(), 1_u64..50, 0_u64..9000), 0..12),
            slot in prop::sample::select(vec![60_u64, 300, 900, 1200, 3600]),
        ) {
            let mut loads = loads_with_slot(Span::from_secs(slot));
            let mut recount = loads.clone();
            for (rhythm, jobs, secs) in &gone {
                loads.add(rhythm, *jobs, Span::from_secs(*secs));
            }
            for (rhythm, jobs, secs) in &kept {
                loads.add(rhythm, *jobs, Span::from_secs(*secs));
                recount.add(rhythm, *jobs, Span::from_secs(*secs));
            }
            for (rhythm, jobs, secs) in gone.iter().rev() {
                loads.remove(rhythm, *jobs, Span::from_secs(*secs));
            }
            // What the heaviest run was is not known after a removal.
            loads.heaviest.clone_from(&recount.heaviest);
            prop_assert_eq!(loads, recount);
        }
    }
}
