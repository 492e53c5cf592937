//! The times of a job, as load is counted.

use serde::{Deserialize, Serialize};

use crate::blackout::{Blackout, LocalHours};
use crate::job::Definition;
use crate::schedule::{CronSchedule, Dst, Schedule};
use crate::slot::Slot;
use crate::time::{Span, Timestamp};
use crate::zone::Zone;

/// Names a rhythm: equal ones have equal keys. Never 0.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LoadProfileKey(pub i64);

/// When jobs run, as far as load is concerned: jobs that run in the same slots for ever, and that
/// may be moved to the same others, have the same one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LoadProfile {
    /// When.
    #[serde(flatten)]
    pub recurrence: Recurrence,
    /// Nobody may move it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fixed: bool,
    /// Not before this slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Slot>,
    /// Hours that it shuns or prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<Hours>,
}

/// When a job runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recurrence {
    /// A fixed time apart.
    Every {
        /// So far.
        every: Span,
        /// Its times, divided by `every`, leave a rest of so many [`steps`](Recurrence::step).
        phase: u32,
    },
    /// When the clocks show something.
    Clock {
        /// What.
        schedule: Schedule,
        /// Which clocks.
        #[serde(default, skip_serializing_if = "Zone::is_utc")]
        zone: Zone,
        /// What it does when they are changed.
        #[serde(default, skip_serializing_if = "Dst::is_default")]
        dst: Dst,
    },
    /// Once in every such time; when, follows from its runs.
    Often(Span),
    /// One time, in this slot.
    Once(Slot),
}

/// Local hours that a job shuns or prefers.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Hours {
    /// Whose clocks they are meant by.
    #[serde(default, skip_serializing_if = "Zone::is_utc")]
    pub zone: Zone,
    /// It never starts in these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dark: Vec<Blackout>,
    /// It would best run in these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred: Option<LocalHours>,
}

impl Recurrence {
    /// How finely the phase of such an interval is kept. From an hour on, a quarter of one, if the
    /// interval is whole quarters: what lies in one slot is one. Otherwise finer, so that it is
    /// known which slot each of its times lies in.
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
}

impl LoadProfile {
    /// The rhythm of a job whose next regular time is `next_at`; `None` if it is in no plan: it
    /// runs once, as soon as it can.
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
        // A later time may be one after the end: a run would be lost.
        let fixed = !definition.is_placed() || definition.bounds.end_at.is_some();
        let start = definition.bounds.start_at.map(Slot::of);
        let has_hours =
            !definition.blackout_periods.is_empty() || definition.prefer_window.is_some();
        let hours = has_hours.then(|| Hours {
            zone: definition.timezone.clone(),
            dark: definition.blackout_periods.clone(),
            preferred: definition.prefer_window,
        });
        // Hours matter only to what can be moved.
        Some(Self { recurrence, fixed, from: start, hours: hours.filter(|_| !fixed) })
    }

    /// The same, moved so that `time` is one of its times.
    #[must_use]
    pub fn moved_to(&self, time: Timestamp) -> Self {
        let recurrence = match self.recurrence {
            Recurrence::Every { every, .. } => Recurrence::every(every, time),
            _ => self.recurrence.clone(),
        };
        Self { recurrence, ..self.clone() }
    }

    /// As it is stored.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Recurrence {
    fn every(every: Span, time: Timestamp) -> Self {
        let rest = time.as_micros().rem_euclid(every.as_micros().cast_signed());
        let steps = rest / Self::step(every).as_micros().cast_signed();
        Self::Every { every, phase: u32::try_from(steps).unwrap_or(u32::MAX) }
    }
}

impl LoadProfileKey {
    /// The key of a rhythm that is stored like this.
    pub fn of(text: &str) -> Self {
        // FNV-1a: short texts, no enemy, the same for ever.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(hash.max(1).cast_signed())
    }
}

/// Runs that may take another time are no other load.
fn without_tolerance(schedule: &Schedule) -> Schedule {
    match schedule {
        Schedule::Cron(by) => {
            Schedule::Cron(CronSchedule { cron: by.cron.clone(), max_duration: None })
        }
        Schedule::Calendar(every) => {
            let mut every = *every;
            every.tolerance = None;
            Schedule::Calendar(every)
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
    fn firing_does_not_change_it() {
        for secs in [7, 900, 1200, 3600, 5000, 86_400, 604_800] {
            let definition = every(secs);
            let first = LoadProfile::of(&definition, NOON);
            let later = NOON.saturating_add(Span::from_secs(secs * 1234));
            assert_eq!(LoadProfile::of(&definition, later), first, "every {secs} s");
        }
    }

    #[test]
    fn what_lies_in_one_slot_is_one() {
        let daily = every(86_400);
        let later = NOON.saturating_add(Span::from_secs(899));
        assert_eq!(LoadProfile::of(&daily, NOON), LoadProfile::of(&daily, later));
        let next = NOON.saturating_add(Span::from_secs(900));
        assert_ne!(LoadProfile::of(&daily, NOON), LoadProfile::of(&daily, next));
    }

    #[test]
    fn it_reads_back_and_its_key_is_its_own() {
        let cron = Cron::parse("0 9 * * 1-5").unwrap().settled(7, true);
        let cron = Schedule::Cron(CronSchedule { cron, max_duration: None });
        let berlin = Zone::get("Europe/Berlin").unwrap();
        let cron = Definition { timezone: berlin, ..Definition::noop(cron) };
        let mut keys = std::collections::BTreeSet::new();
        for definition in [every(60), every(3600), cron] {
            let rhythm = LoadProfile::of(&definition, NOON).unwrap();
            let text = rhythm.text();
            assert_eq!(serde_json::from_str::<LoadProfile>(&text).unwrap(), rhythm, "{text}");
            assert!(keys.insert(LoadProfileKey::of(&text)));
        }
    }
}
