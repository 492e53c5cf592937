//! Previews of schedules and next times of jobs.

use evenkeel_core::schedule::MovedBy;
use evenkeel_core::{JobId, Schedule, Timestamp, Zone};
use evenkeel_store::{JobState, Scope};
use serde_json::Value;

use super::Jobs;
use crate::describe::describe;
use crate::preview::{PREVIEW_TIMES_MAX, Preview, preview};
use crate::starts::{NextTime, Start, Starts};
use crate::{CommandError, kind};

/// The number of jobs of a slot that are counted, of all tenants.
pub const LOAD_COUNTED_MAX: u32 = 1000;

/// The number of jobs whose next time is in a slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotLoad {
    /// Start of the slot.
    pub slot: Timestamp,
    /// The number of the scope's jobs among the counted ones.
    pub jobs: u32,
    /// False if the slot has more than [`LOAD_COUNTED_MAX`] jobs.
    pub counted_all: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextTimes {
    pub job: JobId,
    pub kind: &'static str,
    /// The schedule in English.
    pub description: String,
    pub timezone: Zone,
    /// The next starts, given the schedule and the blackouts of the job.
    pub times: Vec<NextTime>,
    /// False for a periodic job, whose times are the latest possible.
    pub exact_times: bool,
}

impl Jobs {
    /// Previews a schedule, and counts the scope's jobs in the slots that it would use in the day
    /// after its first time.
    pub async fn preview(
        &self,
        scope: &Scope,
        document: &Value,
    ) -> Result<(Preview, Vec<SlotLoad>), CommandError> {
        let now = self.store.now().await?;
        let previewed =
            preview(document, now, PREVIEW_TIMES_MAX).map_err(CommandError::InvalidSchedule)?;
        let loads = if previewed.slots.is_empty() {
            Vec::new()
        } else {
            self.store.slot_loads(scope, &previewed.slots, LOAD_COUNTED_MAX).await?
        };
        let loads = previewed.slots.iter().zip(loads);
        let loads = loads.map(|(slot, load)| SlotLoad {
            slot: slot.start(),
            jobs: load.jobs,
            counted_all: load.counted_all,
        });
        let loads = loads.collect();
        Ok((previewed, loads))
    }

    /// Returns the next `count` times of a job, from its stored next time on.
    pub async fn next_times(
        &self,
        scope: &Scope,
        id: JobId,
        count: usize,
    ) -> Result<NextTimes, CommandError> {
        let (job, now) = self.get_with_now(scope, id).await?;
        let definition = &job.definition;
        // Resuming a job gives it a new time.
        let next = job.next_at.filter(|_| job.state == JobState::Active);
        let average = definition.average(job.history.average_good_duration);
        let mut starts: Vec<_> =
            Starts::new(definition, average, next, job.fired).take(count).collect();
        // A due job may be in a later blackout than the one that delayed it.
        let actual = job.next_start(now);
        if let Some((first, actual)) = starts.first_mut().zip(actual).filter(|(it, at)| it.at < *at)
        {
            *first = Start { at: actual, moved: Some(MovedBy::Blackout) };
        }
        let times =
            starts.into_iter().map(|start| NextTime::new(start, &definition.timezone)).collect();
        let exact = match &definition.schedule {
            Schedule::Cron(by) => by.cron.is_exact(),
            _ => true,
        };
        Ok(NextTimes {
            job: id,
            kind: kind(&definition.schedule),
            description: describe(definition, exact),
            timezone: definition.timezone.clone(),
            times,
            exact_times: !definition.schedule.follows_its_end(),
        })
    }
}
