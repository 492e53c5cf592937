//! A scheduler's copy of one job.

use std::cmp::Reverse;
use std::sync::Arc;

use evenkeel_core::advance::SkipReason;
use evenkeel_core::order::DispatchKey;
use evenkeel_core::{Definition, Past, Sequence, TenantNo, Timestamp};
use evenkeel_store::{DueJob, Fire, RunLink};

use crate::scheduler::due_by_destination::Destination;

/// A scheduler's copy of one job, with what it needs to fire the job's next time.
#[derive(Clone, Debug)]
pub struct JobEntry {
    pub tenant: TenantNo,
    pub generation: i32,
    pub next_at: Timestamp,
    /// The newest run.
    pub head: Option<RunLink>,
    /// Reference time and average duration, which determine the deadline.
    past: Past,
    /// Regular times fired so far.
    pub fired: u64,
    pub definition: Arc<Definition>,
    /// Set if the due time must be recorded as skipped.
    pub skip: Option<SkipReason>,
    /// When to try the next time: when it may start, or later if the job was busy.
    pub try_at: Timestamp,
    /// How often the due time was tried while the job was busy.
    pub waits: u8,
    /// The active run was cancelled in favour of the next time.
    pub replaces: bool,
    /// Runs may start on this node without being queued.
    pub is_direct: bool,
    /// The next time was reported to the judge as late.
    pub reported_late: bool,
    /// The next time will change when the active run ends.
    awaits_end: bool,
    /// Latest start of the next time that meets the deadline. Cached: some schedules compute it
    /// slowly, and the dispatch order must not change while the entry is in it.
    should_start_by: Timestamp,
    /// Earliest possible start of the next time.
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
            since: earliest_start(&definition, next_at, &past),
            definition,
        }
        .postponed_by_blackout(now)
    }

    /// Returns the job after it was fired at `now`, with its next time. The started run is assumed
    /// to succeed; the store reports if it does not.
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
            since: earliest_start(&self.definition, next_at, &past),
            ..self
        }
        .postponed_by_blackout(now)
    }

    /// Takes over new facts about an otherwise unchanged job. Returns whether its dispatch key
    /// changed.
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

    /// Returns the end of a blackout if the job may not start now.
    pub fn opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        if self.definition.blackout_periods.is_empty() {
            return None;
        }
        Some(self.definition.may_start_from(now, self.past.average)).filter(|open| *open > now)
    }

    pub fn past(&self) -> &Past {
        &self.past
    }

    /// Time since which the next time counts as waiting, once it is due.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    pub fn should_start_by(&self) -> Timestamp {
        self.should_start_by
    }

    /// Latest start of the run for `scheduled` that meets its deadline.
    pub fn deadline_of(&self, scheduled: Timestamp) -> Timestamp {
        if scheduled == self.next_at {
            return self.should_start_by;
        }
        should_start_by(&self.definition, scheduled, &self.past)
    }

    /// True if the next time will miss its deadline before it can be tried, and this was not
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

fn earliest_start(definition: &Definition, time: Timestamp, past: &Past) -> Timestamp {
    crate::insight::run_metrics::earliest_start(definition, time, past.average)
}

/// The active run is assumed to succeed, unless one of its attempts has failed.
fn past_of(job: &DueJob, definition: &Definition) -> Past {
    let past = definition.past(&job.history, job.since);
    let hopeful = job.live > 0 && job.history.consecutive_failures == 0;
    match job.head.filter(|_| hopeful) {
        Some(head) => Past { reference: past.reference.max(head.scheduled_at), ..past },
        None => past,
    }
}
