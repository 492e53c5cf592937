//! The load profile of a job describes in which time slots its runs fall.

use serde::{Deserialize, Serialize};

use crate::blackout::{Blackout, LocalHours};
use crate::hash::fnv1a;
use crate::job::Definition;
use crate::schedule::{CalendarInterval, CronSchedule, Dst, Schedule};
use crate::slot::Slot;
use crate::time::{Span, Timestamp};
use crate::zone::Zone;

/// Identifies a load profile: equal profiles have equal keys. Never 0.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoadProfileKey(pub i64);

/// Two jobs have the same load profile if their runs always fall into the same time slots and a
/// rebalance may move them to the same other time slots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LoadProfile {
    #[serde(flatten)]
    pub recurrence: Recurrence,
    /// True if a rebalance may not move the job to other start times.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
    /// The first time slot in which a run of the job is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Slot>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<Hours>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recurrence {
    Every {
        every: Span,
        /// Offset of the run times within the interval: run time modulo `every`, in
        /// [`steps`](Recurrence::step).
        phase: u32,
    },
    /// The job runs at times that depend on local clocks, such as those of a cron expression.
    Clock {
        schedule: Schedule,
        #[serde(default, skip_serializing_if = "Zone::is_utc")]
        zone: Zone,
        #[serde(default, skip_serializing_if = "Dst::is_default")]
        dst: Dst,
    },
    /// The job runs once per period, and each run time depends on when the previous run finishes.
    Often(Span),
    Once(Slot),
}

/// Blackouts and preferred hours of a job.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Hours {
    #[serde(default, skip_serializing_if = "Zone::is_utc")]
    pub zone: Zone,
    #[serde(default, rename = "dark", skip_serializing_if = "Vec::is_empty")]
    pub blackouts: Vec<Blackout>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<LocalHours>,
}

impl Recurrence {
    /// Resolution in which the offset of run times within an interval is stored. For intervals of
    /// at least one hour that are a multiple of 15 minutes, the resolution is 15 minutes, because
    /// load is counted in time slots of that length. For other intervals, the resolution is finer,
    /// so that the time slot of each run is still known.
    pub const fn step(every: Span) -> Span {
        let secs = every.as_micros() / 1_000_000;
        match secs {
            0..900 => Span::from_secs(1),
            900..3600 => Span::from_secs(60),
            _ if secs.is_multiple_of(900) => Slot::LENGTH,
            _ if secs.is_multiple_of(300) => Span::from_secs(300),
            _ => Span::from_secs(60),
        }
    }

    fn every(every: Span, time: Timestamp) -> Self {
        let rest = time.as_micros().rem_euclid(every.as_micros().cast_signed());
        let steps = rest / Self::step(every).as_micros().cast_signed();
        Self::Every { every, phase: u32::try_from(steps).unwrap_or(u32::MAX) }
    }
}

impl LoadProfile {
    /// Returns the load profile of a job whose next scheduled time is `next_at`. Returns `None` for
    /// a job that runs once as soon as possible, because such a job causes no foreseeable load.
    pub fn of(definition: &Definition, next_at: Timestamp) -> Option<Self> {
        let recurrence = match &definition.schedule {
            Schedule::Interval(interval) => Recurrence::every(interval.every(), next_at),
            Schedule::Once(once) => Recurrence::Once(Slot::of(once.at?)),
            Schedule::Periodic(periodic) => Recurrence::Often(periodic.period()),
            Schedule::Calendar(_) | Schedule::Cron(_) => Recurrence::Clock {
                schedule: without_tolerance(&definition.schedule),
                zone: definition.timezone.clone(),
                dst: definition.dst,
            },
        };
        // Moving the job to a later start time could push its last run beyond `end_at` and lose
        // that run.
        let fixed = !definition.is_placed() || definition.bounds.end_at.is_some();
        let start = definition.bounds.start_at.map(Slot::of);
        let has_hours =
            !definition.blackout_periods.is_empty() || definition.prefer_window.is_some();
        let hours = has_hours.then(|| Hours {
            zone: definition.timezone.clone(),
            blackouts: definition.blackout_periods.clone(),
            preferred: definition.prefer_window,
        });
        // Blackouts and preferred hours matter only for jobs that a rebalance can move.
        Some(Self { recurrence, fixed, from: start, hours: hours.filter(|_| !fixed) })
    }

    /// Returns the load profile that the job has after a rebalance moves it so that it runs at
    /// `time`.
    #[must_use]
    pub fn moved_to(&self, time: Timestamp) -> Self {
        let recurrence = match self.recurrence {
            Recurrence::Every { every, .. } => Recurrence::every(every, time),
            _ => self.recurrence.clone(),
        };
        Self { recurrence, ..self.clone() }
    }

    /// Returns the load profile as JSON, in the form that is stored.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl LoadProfileKey {
    /// Returns the key of the load profile with this JSON text.
    pub fn of(text: &str) -> Self {
        Self(fnv1a(text).max(1).cast_signed())
    }
}

/// Removes the deadline tolerance of a schedule, because the tolerance does not affect load.
fn without_tolerance(schedule: &Schedule) -> Schedule {
    match schedule {
        Schedule::Cron(by) => {
            Schedule::Cron(CronSchedule { cron: by.cron.clone(), max_duration: None })
        }
        Schedule::Calendar(every) => {
            Schedule::Calendar(CalendarInterval { tolerance: None, ..*every })
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Cron, Interval};

    const NOON: Timestamp = Timestamp::from_micros(1_764_590_400_000_000);

    fn every(secs: u64) -> Definition {
        Definition::noop(Schedule::Interval(Interval::new(Span::from_secs(secs), None).unwrap()))
    }

    #[test]
    fn firing_keeps_the_load_profile() {
        for secs in [7, 900, 1200, 3600, 5000, 86_400, 604_800] {
            let definition = every(secs);
            let first = LoadProfile::of(&definition, NOON);
            let later = NOON.saturating_add(Span::from_secs(secs * 1234));
            assert_eq!(LoadProfile::of(&definition, later), first, "every {secs} s");
        }
    }

    #[test]
    fn times_in_one_slot_share_a_profile() {
        let daily = every(86_400);
        let later = NOON.saturating_add(Span::from_secs(899));
        assert_eq!(LoadProfile::of(&daily, NOON), LoadProfile::of(&daily, later));
        let next = NOON.saturating_add(Span::from_secs(900));
        assert_ne!(LoadProfile::of(&daily, NOON), LoadProfile::of(&daily, next));
    }

    #[test]
    fn profile_reads_back_and_has_its_own_key() {
        let cron = Cron::parse("0 9 * * 1-5").unwrap().resolved(7, true);
        let cron = Schedule::Cron(CronSchedule { cron, max_duration: None });
        let berlin = Zone::get("Europe/Berlin").unwrap();
        let cron = Definition { timezone: berlin, ..Definition::noop(cron) };
        let mut keys = std::collections::BTreeSet::new();
        for definition in [every(60), every(3600), cron] {
            let profile = LoadProfile::of(&definition, NOON).unwrap();
            let text = profile.text();
            assert_eq!(serde_json::from_str::<LoadProfile>(&text).unwrap(), profile, "{text}");
            assert!(keys.insert(LoadProfileKey::of(&text)));
        }
    }
}
