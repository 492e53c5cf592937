//! A scheduler's copy of one job in memory.

use std::cmp::Reverse;
use std::sync::Arc;

use evenkeel_core::advance::SkipReason;
use evenkeel_core::order::DispatchKey;
use evenkeel_core::{Definition, Past, Sequence, TenantNo, Timestamp};
use evenkeel_store::{DueJob, Fire, RunLink};

use crate::scheduler::due_by_destination::Destination;

/// A scheduler's copy of one job, with all data needed to fire its next run.
#[derive(Clone, Debug)]
pub struct JobEntry {
    pub tenant: TenantNo,
    pub generation: i32,
    pub next_at: Timestamp,
    /// The newest run.
    pub head: Option<RunLink>,
    /// Reference time and average duration of past runs, from which the next deadline is computed.
    past: Past,
    /// Number of scheduled times fired so far.
    pub fired: u64,
    pub definition: Arc<Definition>,
    /// Set if the next scheduled time must be recorded as skipped.
    pub skip: Option<SkipReason>,
    /// Time at which the scheduler tries to fire the next run. During a blackout, or while the job
    /// still has an active run, this time is later than the scheduled time.
    pub try_at: Timestamp,
    /// Number of failed tries to fire the next run while the job had an active run.
    pub waits: u8,
    /// True if the active run was cancelled so that the next run can start.
    pub replaces: bool,
    /// True if runs of the job may start on this node without being queued.
    pub is_direct: bool,
    /// True if the next run was already reported to the `Judge` loop as late.
    pub reported_late: bool,
    /// True if the next scheduled time will be computed anew when the active run ends.
    awaits_end: bool,
    /// Latest start of the next run that meets the deadline. The latest start is cached, because it
    /// is slow to compute for some schedules, and because a sort key must not change while the job
    /// is in the dispatch order.
    should_start_by: Timestamp,
    /// Earliest possible start of the next run.
    since: Timestamp,
}

impl JobEntry {
    pub fn new(
        job: &DueJob,
        next_at: Timestamp,
        definition: Arc<Definition>,
        now: Timestamp,
    ) -> Self {
        let past = past_of(job, &definition);
        Self {
            tenant: job.tenant,
            generation: job.generation,
            next_at,
            head: job.head,
            past,
            fired: job.fired,
            skip: None,
            try_at: next_at,
            waits: 0,
            replaces: false,
            is_direct: true,
            reported_late: false,
            awaits_end: job.live > 0 && definition.schedule.follows_its_end(),
            should_start_by: should_start_by(&definition, next_at, &past),
            since: definition.may_start_from(next_at, past.average),
            definition,
        }
        .postponed_by_blackout(now)
    }

    /// Returns this copy of the job, updated after a fire at `now`, with the next scheduled time
    /// `next_at`. The deadline in the updated copy is right only if the started run succeeds. If a
    /// run fails, the store reports a change of its job, so the job is loaded again.
    pub fn after(self, fire: &Fire, next_at: Timestamp, now: Timestamp) -> Self {
        let started = fire.start.as_ref().map(|(scheduled, _)| *scheduled);
        let newest = started.or(fire.skip.map(|skip| skip.from));
        let reference = started.map_or(self.past.reference, |time| time.max(self.past.reference));
        let past = Past { reference, ..self.past };
        Self {
            next_at,
            head: newest.map(|scheduled_at| RunLink { scheduled_at, sequence: Sequence::REGULAR }),
            past,
            fired: self.fired + u64::from(started.is_some()),
            skip: None,
            try_at: next_at,
            waits: 0,
            replaces: false,
            reported_late: false,
            awaits_end: started.is_some() && self.definition.schedule.follows_its_end(),
            should_start_by: should_start_by(&self.definition, next_at, &past),
            since: self.definition.may_start_from(next_at, past.average),
            ..self
        }
        .postponed_by_blackout(now)
    }

    /// Updates the run history in this copy of a job whose definition and next scheduled time have
    /// not changed. Returns whether the dispatch key of the job has changed.
    pub fn refresh(&mut self, job: &DueJob) -> bool {
        let past = past_of(job, &self.definition);
        self.fired = job.fired;
        self.awaits_end = job.live > 0 && self.definition.schedule.follows_its_end();
        if self.past == past {
            return false;
        }
        self.past = past;
        let before = self.should_start_by;
        self.should_start_by = should_start_by(&self.definition, self.next_at, &past);
        self.should_start_by != before
    }

    fn postponed_by_blackout(self, now: Timestamp) -> Self {
        if self.definition.blackout_periods.is_empty() {
            return self;
        }
        let try_at = self.definition.may_start_from(self.next_at.max(now), self.past.average);
        Self { try_at, ..self }
    }

    /// Returns the end of the blackout that forbids starting the job at `now`, if there is one.
    pub fn opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        Some(self.definition.may_start_from(now, self.past.average)).filter(|open| *open > now)
    }

    pub fn past(&self) -> &Past {
        &self.past
    }

    /// Returns the time from which the waiting time of the next run counts.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    pub fn should_start_by(&self) -> Timestamp {
        self.should_start_by
    }

    /// Returns the latest start with which the run for `scheduled` meets its deadline.
    pub fn deadline_of(&self, scheduled: Timestamp) -> Timestamp {
        if scheduled == self.next_at {
            return self.should_start_by;
        }
        should_start_by(&self.definition, scheduled, &self.past)
    }

    /// True if the deadline of the next run passes before the run can start, and this was not
    /// reported yet.
    pub fn will_be_late(&self) -> bool {
        self.should_start_by < self.try_at && !self.reported_late && !self.awaits_end
    }

    pub fn destination(&self) -> Destination<'_> {
        if self.is_direct {
            Destination::ThisNode
        } else {
            Destination::PoolQueue(&self.definition.pool)
        }
    }

    pub fn dispatch_key(&self) -> DispatchKey {
        DispatchKey {
            lane: self.definition.lane,
            priority: Reverse(self.definition.priority),
            should_start_by: self.should_start_by,
            ready_at: self.since,
        }
    }
}

fn should_start_by(definition: &Definition, time: Timestamp, past: &Past) -> Timestamp {
    definition.must_be_over_by(time, past.reference).saturating_sub(past.average)
}

/// Returns the run history from which the next deadline is computed. An active run counts as
/// successful, unless one of its attempts has failed.
fn past_of(job: &DueJob, definition: &Definition) -> Past {
    let past = definition.past(&job.history, job.since);
    let hopeful = job.live > 0 && job.history.consecutive_failures == 0;
    match job.head.filter(|_| hopeful) {
        Some(head) => Past { reference: past.reference.max(head.scheduled_at), ..past },
        None => past,
    }
}
