//! Clients send commands to existing jobs.

use evenkeel_core::chance::Chance;
use evenkeel_core::next_time::{ScheduleState, next_after_change, next_after_resume};
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::{Interval, Schedule};
use evenkeel_core::{Definition, Span, Timestamp};
use evenkeel_store::{Action, Applied, Job, JobChange, JobCommand, JobState, JobStore, Now, Scope};

use super::World;
use super::jobs::PlannedJob;
use crate::body::Time as _;

/// The effect of an acknowledged command on the scheduled times of a job.
#[derive(Copy, Clone, Debug)]
pub enum ScheduleChange {
    /// The job was paused or cancelled. `next_at` is the scheduled time at which the job would have
    /// run next.
    Stopped { at: Timestamp, next_at: Option<Timestamp>, for_good: bool },
    /// The job was resumed. `first` is the first scheduled time after the job was resumed.
    Resumed { at: Timestamp, first: Timestamp, every: Span },
    /// The job was rescheduled. The job next runs at `first`, and would have run at `next_at`
    /// without the change.
    Moved { next_at: Option<Timestamp>, first: Timestamp, every: Span },
}

impl PlannedJob {
    /// Commands are sent only to jobs whose expected run times are easy to compute.
    pub(super) fn accepts_commands(&self) -> bool {
        let Definition { schedule, bounds, overlap, .. } = &self.definition;
        matches!(schedule, Schedule::Interval(_))
            && bounds.max_runs.is_none()
            && *overlap != OverlapPolicy::Replace
    }
}

impl World {
    /// Pauses, resumes, changes or cancels a random job.
    pub(super) async fn send_command(&mut self, scope: &Scope) {
        let index = self.chance.bits() as usize % self.plan.len();
        if !self.plan[index].accepts_commands() {
            return;
        }
        let id = self.plan[index].id;
        let Some(job) = self.model.get(scope, id).await.unwrap() else { return };
        let (action, change) = match (job.state, self.chance.bits() % 8) {
            (JobState::Cancelled | JobState::Deleted, _) => return,
            (JobState::Active, 0..4) => self.stop(&job, Action::Pause),
            (JobState::Active, 4..7) => self.change(&job),
            (JobState::Paused, 0..7) => self.resume(&job),
            // Only some jobs are cancelled, so that enough active jobs are left.
            (JobState::Active | JobState::Paused, _) if index.is_multiple_of(3) => {
                self.stop(&job, Action::Cancel)
            }
            (JobState::Active | JobState::Paused, _) => return,
        };
        let order = JobCommand { id, if_generation: Some(job.generation), if_fired: None, action };
        let answers = self.model.apply_commands(scope, vec![order], Now::Database).await.unwrap();
        assert!(matches!(answers[..], [Applied::Done(_)]), "{answers:?}");
        self.plan[index].changes.push(change);
    }

    fn stop(&self, job: &Job, action: Action) -> (Action, ScheduleChange) {
        let for_good = action == Action::Cancel;
        let change = ScheduleChange::Stopped { at: self.time.db(), next_at: job.next_at, for_good };
        (action, change)
    }

    fn resume(&self, job: &Job) -> (Action, ScheduleChange) {
        let at = self.time.db();
        let next_at = next_after_resume(&job.definition, so_far(job), at, |after| {
            job.definition.timetable().first_after(after)
        });
        let (first, every) = (next_at.unwrap(), every(&job.definition));
        (Action::Resume { next_at }, ScheduleChange::Resumed { at, first, every })
    }

    fn change(&self, job: &Job) -> (Action, ScheduleChange) {
        let shortest = self.scenario.shortest;
        let secs = shortest * [2, 5, 10, 30][self.chance.bits() as usize % 4];
        let every = Span::from_secs(secs);
        let schedule = Schedule::Interval(Interval::new(every, None).unwrap());
        let definition = Definition { schedule, ..job.definition.clone() };
        let next_at = next_after_change(&definition, so_far(job), self.time.db(), |after| {
            definition.timetable().first_after(after)
        });
        let moved = ScheduleChange::Moved { next_at: job.next_at, first: next_at.unwrap(), every };
        let definition = Some(definition);
        let change = JobChange { definition, next_at: Some(next_at), ..JobChange::default() };
        (Action::Change(Box::new(change)), moved)
    }
}

fn so_far(job: &Job) -> ScheduleState {
    ScheduleState {
        fired: job.fired,
        last_fired_at: job.last_fired_at,
        live: job.live,
        last_outcome: job.last_outcome,
        since: Some(job.since),
    }
}

fn every(definition: &Definition) -> Span {
    match &definition.schedule {
        Schedule::Interval(interval) => interval.every(),
        other => panic!("{other:?} accepts no commands"),
    }
}
