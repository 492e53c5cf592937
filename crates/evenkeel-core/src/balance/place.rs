//! Where a job is placed.

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

/// A job that needs a time.
#[derive(Copy, Clone, Debug)]
pub struct JobToPlace<'a> {
    /// What it is.
    pub definition: &'a Definition,
    /// Its own number, [`JobId::seed`](crate::JobId::seed): it says where in its slot it runs.
    pub seed: u64,
    /// What a run of it costs.
    pub cost: Span,
    /// Its time is after this moment.
    pub after: Timestamp,
}

/// Several nodes place at once, and each sees what the others did a little later. Of slots that are
/// equally good, each prefers its own.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct NodeTurn {
    /// Which node this is, from 0.
    pub mine: u32,
    /// How many there are.
    pub of: u32,
}

impl NodeTurn {
    /// Nobody else places.
    pub const ALONE: Self = Self { mine: 0, of: 1 };

    /// Is it this node's turn with the slot of this number?
    pub(super) fn is_mine(self, slot: i64) -> bool {
        slot.rem_euclid(i64::from(self.of.max(1))) == i64::from(self.mine)
    }
}

impl Definition {
    /// Is its time chosen by load, and may a rebalance choose another? Not if somebody else has said
    /// when it is, nor if its times follow from clocks or from its runs.
    pub fn is_placed(&self) -> bool {
        self.free_interval().is_some_and(|every| !every.is_exact())
    }

    /// Its interval, if its first time may be any.
    fn free_interval(&self) -> Option<Interval> {
        match &self.schedule {
            Schedule::Interval(every) if every.anchor().is_none() => {
                Some(*every).filter(|_| self.bounds.start_at.is_none())
            }
            _ => None,
        }
    }
}

/// The first time of a job that is created, or begins anew: the least of its tenant's load (`own`),
/// then of `all`, of which that is a part, then the earliest.
pub fn first_time(
    settings: &BalanceSettings,
    job: JobToPlace<'_>,
    own: &Loads,
    all: &Loads,
    turn: NodeTurn,
) -> Option<Timestamp> {
    let by_itself = || job.definition.timetable().first_after(job.after);
    let Some(interval) = job.definition.free_interval() else { return by_itself() };
    let slot = own.horizon().slot;
    if interval.every() < slot {
        return in_its_own_rhythm(interval, job, own, all, turn);
    }
    let Some(candidates) = Candidates::of(settings, slot, interval, job) else {
        return by_itself();
    };
    let wanted = constraints::best(job.definition, candidates, own.horizon());
    let wanted = wanted.as_deref();
    let best = match (candidates.count, settings.policy) {
        (1, _) => 0,
        (_, Policy::Next) => choose::next(candidates, own, all, turn, wanted),
        (_, Policy::Projected) => choose::projected(candidates, own, all, turn, wanted),
    };
    let time = candidates.time(best);
    // A job that is choosy about hours was compared with its own second.
    let is_free = !interval.is_exact() && wanted.is_none();
    let spread = if is_free { candidates.spread_in_slot(time, all, turn) } else { None };
    Some(Timestamp::from_micros(spread.unwrap_or(time)))
}

/// Runs that are closer together than slots are long are spread by the second; if seconds of such an
/// interval are not counted, by hash.
fn in_its_own_rhythm(
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

/// A job's own second of such a length of time, in microseconds.
pub(super) fn offset_within(length: Span, seed: u64) -> i64 {
    let secs = (length.as_micros() / 1_000_000).max(1);
    (seed % secs * 1_000_000).cast_signed()
}

/// How long the slots are that such a job chooses from: no shorter than what its rhythm tells
/// apart.
pub(super) fn unit_of(every: Span, slot: Span) -> Span {
    if every >= Span::from_secs(3600) {
        slot.max(Slot::LENGTH)
    } else {
        slot.max(Recurrence::step(every))
    }
}

/// The times that a job may have first: one in each slot of a stretch.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Candidates {
    /// The first of them.
    pub first: i64,
    /// How long the slots are.
    pub unit: i64,
    /// How many slots there are, at least one.
    pub count: usize,
    /// Its time is after this…
    after: i64,
    /// …and not later than this.
    latest: i64,
    /// The time between two runs.
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

    /// A time in the slot of `time` that is far from those of the jobs which are there; `None` if there
    /// is none in the window, or if another second of the slot would lead to other slots later.
    fn spread_in_slot(self, time: i64, all: &Loads, turn: NodeTurn) -> Option<i64> {
        if self.every % self.unit != 0 {
            return None;
        }
        let slot_no = time.div_euclid(self.unit);
        let start = slot_no * self.unit;
        let before = all.runs_between(start, start + self.unit);
        let length = Span::from_micros(self.unit.cast_unsigned());
        let at = start + offset_after(before, slot_no, length, turn);
        // The first and the last slot lie in the window in part.
        let is_possible = |at: &i64| (self.after + 1..=self.latest).contains(at);
        if self.every == self.unit {
            // It runs in every slot: its first time may be in the next one.
            return [at, at + self.every, at - self.every].into_iter().find(is_possible);
        }
        Some(at).filter(is_possible)
    }

    /// The number of the first one's slot, counted from the epoch.
    pub fn slot(self) -> i64 {
        self.first.div_euclid(self.unit)
    }
}

#[cfg(test)]
mod tests;
