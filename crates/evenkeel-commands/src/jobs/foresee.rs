//! Questions about the future.

use evenkeel_core::schedule::MovedBy;
use evenkeel_core::{JobId, Schedule, Timestamp, Zone};
use evenkeel_store::{JobState, Scope};
use serde_json::Value;

use super::Jobs;
use crate::describe::describe;
use crate::preview::{PREVIEW_TIMES_MAX, Preview, preview};
use crate::starts::{NextTime, Start, Starts};
use crate::{CommandError, kind};

/// So many jobs of a slot are looked at, whoever's they are.
pub const LOAD_COUNTED_MAX: u32 = 1000;

/// How many jobs have their next time in a slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotLoad {
    /// Its first moment.
    pub slot: Timestamp,
    /// How many of the scope's own there are among those that were looked at.
    pub jobs: u32,
    /// All were looked at, and not only the first [`LOAD_COUNTED_MAX`].
    pub counted_all: bool,
}

/// The next times of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Foreseen {
    /// Which job.
    pub job: JobId,
    /// The word for its kind of schedule.
    pub kind: &'static str,
    /// Its schedule in plain English.
    pub description: String,
    /// The zone its times are meant in.
    pub timezone: Zone,
    /// Its next starts, if nothing is in the way but its own rules.
    pub times: Vec<NextTime>,
    /// Are they exact? Otherwise they are the latest there can be.
    pub exact_times: bool,
}

impl Jobs {
    /// What a schedule would do, and how many of the scope's jobs have their next time in the slots
    /// it would hit in the day from its first time on.
    pub async fn preview(
        &self,
        scope: &Scope,
        document: &Value,
    ) -> Result<(Preview, Vec<SlotLoad>), CommandError> {
        let now = self.store.now().await?;
        let seen =
            preview(document, now, PREVIEW_TIMES_MAX).map_err(CommandError::InvalidSchedule)?;
        let loads = if seen.slots.is_empty() {
            Vec::new()
        } else {
            self.store.slot_loads(scope, &seen.slots, LOAD_COUNTED_MAX).await?
        };
        let loads = seen.slots.iter().zip(loads);
        let loads = loads.map(|(slot, load)| SlotLoad {
            slot: slot.start(),
            jobs: load.jobs,
            counted_all: load.counted_all,
        });
        let loads = loads.collect();
        Ok((seen, loads))
    }

    /// The next `count` times of a job, from its stored next time on.
    pub async fn next_times(
        &self,
        scope: &Scope,
        id: JobId,
        count: usize,
    ) -> Result<Foreseen, CommandError> {
        let (job, now) = self.get_with_now(scope, id).await?;
        let definition = &job.definition;
        // Who resumes a job gives it a new time.
        let next = job.next_at.filter(|_| job.state == JobState::Active);
        let average = definition.average(job.history.average_good_duration);
        let mut starts: Vec<_> =
            Starts::new(definition, average, next, job.fired).take(count).collect();
        // One that is due may be in a later blackout than the one that it fell into.
        let real = job.next_start(now);
        if let Some((first, real)) = starts.first_mut().zip(real).filter(|(it, at)| it.at < *at) {
            *first = Start { at: real, moved: Some(MovedBy::Blackout) };
        }
        let times =
            starts.into_iter().map(|start| NextTime::new(start, &definition.timezone)).collect();
        let exact = match &definition.schedule {
            Schedule::Cron(by) => by.cron.is_exact(),
            _ => true,
        };
        Ok(Foreseen {
            job: id,
            kind: kind(&definition.schedule),
            description: describe(definition, exact),
            timezone: definition.timezone.clone(),
            times,
            exact_times: !definition.schedule.follows_its_end(),
        })
    }
}
