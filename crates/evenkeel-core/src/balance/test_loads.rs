//! Loads for tests.

use super::{BalanceSettings, Horizon, LoadProfile, Loads, Recurrence};
use crate::schedule::{Cron, CronSchedule, Dst, Interval, Schedule};
use crate::{Definition, Span, Timestamp, Zone};

/// A Monday.
pub(super) const NOON: Timestamp = Timestamp::from_micros(1_764_590_400_000_000);

pub(super) fn interval(secs: i64) -> Definition {
    let every = Span::from_secs(secs.unsigned_abs());
    Definition::noop(Schedule::Interval(Interval::new(every, None).unwrap()))
}

/// Returns the profile of a job that runs every `secs` seconds, from `offset` seconds after 1970.
pub(super) fn every(secs: i64, offset: i64) -> LoadProfile {
    let time = Timestamp::from_micros((offset + 100 * secs) * 1_000_000);
    LoadProfile::of(&interval(secs), time).unwrap()
}

/// Returns the load profile of a job that runs daily in this time slot of the day, in UTC.
pub(super) fn daily(slot: i64) -> LoadProfile {
    every(86_400, slot * 900)
}

/// Returns the load profile of a job that runs daily at nine by the local clock.
pub(super) fn nine() -> LoadProfile {
    let cron = Cron::parse("0 9 * * *").unwrap().resolved(7, true);
    let schedule = Schedule::Cron(CronSchedule { cron, max_duration: None });
    let recurrence = Recurrence::Clock { schedule, zone: Zone::utc(), dst: Dst::default() };
    LoadProfile { recurrence, fixed: true, from: None, hours: None }
}

pub(super) fn loads_with_slot(slot: Span) -> Loads {
    let settings = BalanceSettings { slot, ..BalanceSettings::default() };
    Loads::new(Horizon::new(&settings, NOON))
}

pub(super) fn loads_of(all: impl IntoIterator<Item = (LoadProfile, u64, Span)>) -> Loads {
    let mut loads = loads_with_slot(Span::from_secs(900));
    all.into_iter().for_each(|(profile, jobs, cost)| loads.add(&profile, jobs, cost));
    loads
}
