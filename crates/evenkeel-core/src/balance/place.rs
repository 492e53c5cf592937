//! Chooses the first scheduled time of a job so that runs are spread evenly over time.

use super::choose;
use super::constraints;
use super::hits::micros;
use super::load_profile::Recurrence;
use super::loads::{FAR, Loads};
use super::seconds::{best_second, offset_after};
use super::settings::{BalanceSettings, Policy, SearchWindow};
use crate::job::Definition;
use crate::schedule::{Interval, Schedule};
use crate::slot::Slot;
use crate::time::{Span, Timestamp};

#[derive(Copy, Clone, Debug)]
pub struct JobToPlace<'a> {
    pub definition: &'a Definition,
    /// The job's constant random number ([`JobId::seed`](crate::JobId::seed)), from which its
    /// second within the time slot is computed.
    pub seed: u64,
    /// The cost of a run.
    pub cost: Span,
    /// Exclusive lower bound of the chosen start time.
    pub after: Timestamp,
}

/// The position of a node among all nodes that choose start times for new jobs. Nodes learn with a
/// delay which start times other nodes have chosen. To avoid choosing the same time slot as another
/// node, each node prefers a different subset of equally good time slots.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct NodeTurn {
    /// The index of this node among all nodes, from 0.
    pub mine: u32,
    /// The number of nodes.
    pub of: u32,
}

impl NodeTurn {
    pub const ALONE: Self = Self { mine: 0, of: 1 };

    /// True if this node prefers the time slot with this number.
    pub(super) fn is_mine(self, slot: i64) -> bool {
        slot.rem_euclid(i64::from(self.of.max(1))) == i64::from(self.mine)
    }
}

impl Definition {
    /// True if the balancer chooses the job's start time and a rebalance may change it. False if
    /// the user set the start time, or if run times depend on local clocks or on when runs finish.
    pub fn is_placed(&self) -> bool {
        self.free_interval().is_some_and(|every| !every.is_exact())
    }

    /// Returns the job's interval if its first run may be at any time.
    fn free_interval(&self) -> Option<Interval> {
        match &self.schedule {
            Schedule::Interval(every) if every.anchor().is_none() => {
                Some(*every).filter(|_| self.bounds.start_at.is_none())
            }
            _ => None,
        }
    }
}

/// Returns the first scheduled time of a job that is created or restarted. The best time slot has
/// the least load of the job's tenant (`own`), then the least load of all tenants (`all`, which
/// includes `own`), then the earliest time.
pub fn first_time(
    settings: &BalanceSettings,
    job: JobToPlace<'_>,
    own: &Loads,
    all: &Loads,
    turn: NodeTurn,
) -> Option<Timestamp> {
    let unbalanced = || job.definition.timetable().first_after(job.after);
    let Some(interval) = job.definition.free_interval() else { return unbalanced() };
    let slot = own.horizon().slot;
    if interval.every() < slot {
        return place_short_interval(interval, job, own, all, turn);
    }
    let Some(candidates) = Candidates::of(settings, slot, interval, job) else {
        return unbalanced();
    };
    let wanted = constraints::best(job.definition, candidates, own.horizon());
    let wanted = wanted.as_deref();
    let best = match (candidates.count, settings.policy) {
        (1, _) => 0,
        (_, Policy::Next) => choose::next(candidates, own, all, turn, wanted),
        (_, Policy::Projected) => choose::projected(candidates, own, all, turn, wanted),
    };
    let time = candidates.time(best);
    // For jobs with blackouts or preferred hours, the candidates were compared at their exact
    // second, so the second must not change.
    let is_free = !interval.is_exact() && wanted.is_none();
    let spread = if is_free { candidates.spread_in_slot(time, all, turn) } else { None };
    Some(Timestamp::from_micros(spread.unwrap_or(time)))
}

/// Chooses the start time of a job whose interval is shorter than a time slot. The job starts in
/// the least busy second. If load is not counted by second for its interval, the job starts in a
/// second that is computed from its seed.
fn place_short_interval(
    interval: Interval,
    job: JobToPlace<'_>,
    own: &Loads,
    all: &Loads,
    turn: NodeTurn,
) -> Option<Timestamp> {
    let every = micros(interval.every());
    let offset = if interval.is_exact() {
        0
    } else {
        let best = best_second(interval.every(), &own.seconds, &all.seconds, turn);
        best.map_or_else(|| offset_within(interval.every(), job.seed), |secs| secs * 1_000_000)
    };
    let after = job.after.as_micros();
    let time = after + 1 + (offset - after - 1).rem_euclid(every);
    let latest = job.definition.bounds.end_at.unwrap_or(Timestamp::MAX).min(Timestamp::MAX);
    Some(Timestamp::from_micros(time)).filter(|time| *time <= latest)
}

/// Returns an offset within `length` that depends only on the job's seed, in microseconds.
pub(super) fn offset_within(length: Span, seed: u64) -> i64 {
    let secs = (length.as_micros() / 1_000_000).max(1);
    (seed % secs * 1_000_000).cast_signed()
}

/// Returns the length of the time slots in which start times of jobs with this interval are
/// compared. The returned length is at least the resolution of load profiles.
pub(super) fn unit_of(every: Span, slot: Span) -> Span {
    if every >= Span::from_secs(3600) {
        slot.max(Slot::LENGTH)
    } else {
        slot.max(Recurrence::step(every))
    }
}

/// The possible first run times of a job: one in each of several consecutive time slots.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Candidates {
    /// The earliest candidate start time, in microseconds since 1970.
    pub first: i64,
    /// Length of a time slot.
    pub unit: i64,
    /// At least 1.
    pub count: usize,
    /// Exclusive lower bound of the chosen start time.
    after: i64,
    /// Inclusive upper bound of the chosen start time.
    latest: i64,
    pub every: i64,
}

impl Candidates {
    fn of(
        settings: &BalanceSettings,
        slot: Span,
        interval: Interval,
        job: JobToPlace<'_>,
    ) -> Option<Self> {
        let every = interval.every();
        let unit = unit_of(every, slot);
        let offset = if interval.is_exact() { 0 } else { offset_within(unit, job.seed) };
        let window = match settings.search_window {
            SearchWindow::Interval => every,
            SearchWindow::Document => every.max(Span::from_secs(86_400)),
        };
        let latest = job.definition.bounds.end_at.unwrap_or(Timestamp::MAX).min(Timestamp::MAX);
        let latest = job.after.saturating_add(window.min(FAR)).min(latest).as_micros();
        let (unit, after) = (micros(unit), job.after.as_micros());
        let first = after + 1 + (offset - after - 1).rem_euclid(unit);
        let count = usize::try_from((latest - first).div_euclid(unit) + 1).ok()?;
        (count > 0).then_some(Self { first, unit, count, after, latest, every: micros(every) })
    }

    pub fn time(self, candidate: usize) -> i64 {
        self.first + self.unit * candidate as i64
    }

    /// Returns a start time in the same time slot as `time`, far from the start times of other jobs
    /// in that time slot. Returns `None` if no such start time is inside the search window, or if
    /// starting in another second would move later runs into other time slots.
    fn spread_in_slot(self, time: i64, all: &Loads, turn: NodeTurn) -> Option<i64> {
        if self.every % self.unit != 0 {
            return None;
        }
        let slot_no = time.div_euclid(self.unit);
        let start = slot_no * self.unit;
        let before = all.runs_between(start, start + self.unit);
        let length = Span::from_micros(self.unit.cast_unsigned());
        let at = start + offset_after(before, slot_no, length, turn);
        // The first and the last time slot are only partly inside the search window.
        let is_possible = |at: &i64| (self.after + 1..=self.latest).contains(at);
        if self.every == self.unit {
            // If a job runs in every time slot, its first run may also be in the next time slot.
            return [at, at + self.every, at - self.every].into_iter().find(is_possible);
        }
        Some(at).filter(is_possible)
    }

    /// Number of the time slot of the first candidate start time, counted from 1970.
    pub fn slot(self) -> i64 {
        self.first.div_euclid(self.unit)
    }
}

#[cfg(test)]
mod tests;
