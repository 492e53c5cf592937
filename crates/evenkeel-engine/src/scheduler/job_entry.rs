//! What the scheduler knows of one job.

use std::cmp::Reverse;
use std::sync::Arc;

use evenkeel_core::advance::SkipReason;
use evenkeel_core::order::DispatchKey;
use evenkeel_core::{Definition, Past, Sequence, TenantNo, Timestamp};
use evenkeel_store::{DueJob, Fire, RunLink};

use crate::scheduler::due_by_destination::Destination;

/// What is known of one job.
#[derive(Clone, Debug)]
pub struct JobEntry {
    /// Whose it is.
    pub tenant: TenantNo,
    /// As of this generation.
    pub generation: i32,
    /// Its next regular time.
    pub next_at: Timestamp,
    /// Its newest chain.
    pub head: Option<RunLink>,
    /// What its promise depends on.
    past: Past,
    /// How many of its regular times have been fired.
    pub fired: u64,
    /// What it does.
    pub definition: Arc<Definition>,
    /// The time that has come must be skipped, for this reason.
    pub skip: Option<SkipReason>,
    /// When to look at it: when its next time may start, or later if it was busy then.
    pub look_at: Timestamp,
    /// How often it was busy when its next time had come and had to wait.
    pub waits: u8,
    /// What goes on of it was asked to make room for its next time.
    pub replaces: bool,
    /// Its runs may start on this node without waiting in the queue.
    pub is_direct: bool,
    /// The judge was told that its next time is in trouble.
    pub told: bool,
    /// Its next time will be another one when what goes on of it ends.
    awaits_end: bool,
    /// By when the run for its next time must start. Kept: some schedules take long to say so, and
    /// the order of dispatch must not change under those who stand in it.
    should_start_by: Timestamp,
    /// When its next time could first start, whatever it waited for since then.
    since: Timestamp,
}

impl JobEntry {
    /// A job as the store has it at `now`.
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
            look_at: next_at,
            waits: 0,
            replaces: false,
            is_direct: true,
            told: false,
            awaits_end: job.live > 0 && definition.schedule.follows_its_end(),
            should_start_by: should_start_by(&definition, next_at, &past),
            since: earliest_start(&definition, next_at, &past),
            definition,
        }
        .postponed_by_blackout(now)
    }

    /// The same job after it was fired at `now`, with its next time. What was started is taken to
    /// end well; the store tells if it does not.
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
            look_at: next_at,
            waits: 0,
            replaces: false,
            told: false,
            awaits_end: started.is_some() && self.definition.schedule.follows_its_end(),
            should_start_by: should_start_by(&self.definition, next_at, &past),
            since: earliest_start(&self.definition, next_at, &past),
            ..self
        }
        .postponed_by_blackout(now)
    }

    /// Takes over what the store has learnt of a job that is the same otherwise. Says whether its
    /// place in the order of dispatch is another one.
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
        let look_at = self.definition.may_start_from(self.next_at.max(now), self.past.average);
        Self { look_at, ..self }
    }

    /// When it may start, if that is not now.
    pub fn opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        if self.definition.blackout_periods.is_empty() {
            return None;
        }
        Some(self.definition.may_start_from(now, self.past.average)).filter(|open| *open > now)
    }

    /// What its promise depends on.
    pub fn past(&self) -> &Past {
        &self.past
    }

    /// Since when its next time waits, once it has come.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// By when the run for its next time must start to keep its promise.
    pub fn should_start_by(&self) -> Timestamp {
        self.should_start_by
    }

    /// By when the run for `scheduled` must start.
    pub fn deadline_of(&self, scheduled: Timestamp) -> Timestamp {
        if scheduled == self.next_at {
            return self.should_start_by;
        }
        should_start_by(&self.definition, scheduled, &self.past)
    }

    /// Will it break its promise before anybody looks at it?
    pub fn will_be_late(&self) -> bool {
        self.should_start_by < self.look_at && !self.told && !self.awaits_end
    }

    /// Where it waits when it is due.
    pub fn destination(&self) -> Destination<'_> {
        if self.is_direct {
            Destination::ThisNode
        } else {
            Destination::PoolQueue(&self.definition.pool)
        }
    }

    /// Its place in the order of dispatch.
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

/// What goes on is taken to end well, unless an attempt of it has failed already.
fn past_of(job: &DueJob, definition: &Definition) -> Past {
    let past = definition.past(&job.history, job.since);
    let hopeful = job.live > 0 && job.history.consecutive_failures == 0;
    match job.head.filter(|_| hopeful) {
        Some(head) => Past { reference: past.reference.max(head.scheduled_at), ..past },
        None => past,
    }
}
