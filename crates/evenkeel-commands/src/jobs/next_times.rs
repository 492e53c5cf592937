//! Previews schedules, and returns the next start times of jobs.

use evenkeel_core::schedule::MovedBy;
use evenkeel_core::{JobId, Schedule, Timestamp, Zone};
use evenkeel_store::{JobState, Scope};
use serde_json::Value;

use super::Jobs;
use crate::describe::describe;
use crate::preview::{PREVIEW_TIMES_MAX, Preview, preview};
use crate::starts::{NextTime, Start, Starts};
use crate::{CommandError, Result, kind};

/// Maximum number of jobs that are counted per time slot, over all tenants.
pub const LOAD_COUNTED_MAX: u32 = 1000;

/// Number of jobs whose next run time falls into a time slot.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SlotLoad {
    /// Start of the time slot.
    pub slot: Timestamp,
    /// Number of jobs of the tenant among the counted jobs of all tenants.
    pub jobs: u32,
    /// False if the time slot has more than [`LOAD_COUNTED_MAX`] jobs.
    pub counted_all: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextTimes {
    pub job: JobId,
    pub kind: &'static str,
    pub description: String,
    pub timezone: Zone,
    /// Next start times of the job, given its schedule and blackouts.
    pub times: Vec<NextTime>,
    /// False for a periodic job, for which `times` are the latest possible start times.
    pub exact_times: bool,
}

impl Jobs {
    /// Previews a schedule. Also counts the tenant's jobs in the time slots in which the schedule
    /// would start runs, within 24 hours of its first start time.
    pub async fn preview(
        &self,
        scope: &Scope,
        document: &Value,
    ) -> Result<(Preview, Vec<SlotLoad>)> {
        let now = self.store.now().await?;
        let previewed =
            preview(document, now, PREVIEW_TIMES_MAX).map_err(CommandError::InvalidSchedule)?;
        let loads = if previewed.slots.is_empty() {
            Vec::new()
        } else {
            self.store.slot_loads(scope, &previewed.slots, LOAD_COUNTED_MAX).await?
        };
        let loads = previewed.slots.iter().zip(loads).map(|(slot, load)| SlotLoad {
            slot: slot.start(),
            jobs: load.jobs,
            counted_all: load.counted_all,
        });
        let loads = loads.collect();
        Ok((previewed, loads))
    }

    /// Returns the next `count` start times of a job, beginning with its stored next run time.
    pub async fn next_times(&self, scope: &Scope, id: JobId, count: usize) -> Result<NextTimes> {
        let (job, now) = self.get_with_now(scope, id).await?;
        let definition = &job.definition;
        // A paused job has no next start times, because resuming the job sets a new next run time.
        let next = job.next_at.filter(|_| job.state == JobState::Active);
        let average = definition.average(job.history.average_good_duration);
        let mut starts: Vec<_> =
            Starts::new(definition, average, next, job.fired).take(count).collect();
        // If a blackout has begun since the job was due, its overdue run starts after this
        // blackout.
        let actual = job.next_start(now);
        if let Some((first, actual)) = starts.first_mut().zip(actual).filter(|(it, at)| it.at < *at)
        {
            *first = Start { at: actual, moved: Some(MovedBy::Blackout), ..*first };
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
