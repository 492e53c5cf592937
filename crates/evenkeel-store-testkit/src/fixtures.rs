//! Builds jobs, fires and timestamps for test cases.

use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel_core::advance::{DueTime, advance};
use evenkeel_core::aging::Aging;
use evenkeel_core::job::DEFAULT_POOL;
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::{Interval, Once, Periodic, Schedule};
use evenkeel_core::{About, Definition, JobId, Slot, Span, Timestamp};
use evenkeel_store::{
    AfterLoss, DueJob, Fire, NewJob, NewNode, Now, QueueEntry, QueueWait, Requeue, Roles, Start,
    Trigger,
};
use uuid::Uuid;

/// Start time of every case: the start of a time slot in 2030.
pub const START: Timestamp = Slot(2_111_111).start();

/// Returns the time `secs` seconds after [`START`].
pub fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros(START.as_micros() + secs * 1_000_000)
}

/// Returns a clock that shows the time `secs` seconds after [`START`].
pub fn now(secs: i64) -> Now {
    Now::At(at(secs))
}

/// Returns an id that is unique in this process.
pub fn fresh_id() -> JobId {
    static GIVEN: AtomicU64 = AtomicU64::new(0);
    let mut bytes = [0; 10];
    bytes[2..].copy_from_slice(&GIVEN.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    JobId::new(START, bytes)
}

#[derive(Clone, Debug)]
pub struct JobBuilder {
    about: About,
    definition: Definition,
    next_at: Option<Timestamp>,
}

/// Returns a job called `name` that runs every minute, first one minute after [`START`].
pub fn new_job(name: &str) -> JobBuilder {
    let mut job = unnamed_job();
    job.about.name = Some(name.into());
    job
}

/// Returns a job without a name that runs every minute.
pub fn unnamed_job() -> JobBuilder {
    let once = Definition::noop(Schedule::Once(Once::NOW));
    let job = JobBuilder { about: About::default(), definition: once, next_at: None };
    job.every(60).first_at(60)
}

impl JobBuilder {
    /// Sets the interval in seconds.
    #[must_use]
    pub fn every(mut self, secs: u64) -> Self {
        let interval = Interval::new(Span::from_secs(secs), None).expect("a legal interval");
        self.definition.schedule = Schedule::Interval(interval);
        self
    }

    /// Sets the first scheduled time, in seconds after [`START`].
    #[must_use]
    pub fn first_at(mut self, secs: i64) -> Self {
        self.next_at = Some(at(secs));
        self
    }

    /// Removes the next scheduled time.
    #[must_use]
    pub fn never(mut self) -> Self {
        self.next_at = None;
        self
    }

    /// Sets a schedule with a single run, `secs` seconds after [`START`].
    #[must_use]
    pub fn once_at(mut self, secs: i64) -> Self {
        self.definition.schedule = Schedule::Once(Once { at: Some(at(secs)), ..Once::NOW });
        self.first_at(secs)
    }

    /// Sets a schedule that keeps the results at most `period` seconds old, with at least
    /// `cooldown` seconds between runs.
    #[must_use]
    pub fn periodic(mut self, period: u64, cooldown: u64) -> Self {
        let (period, cooldown) = (Span::from_secs(period), Span::from_secs(cooldown));
        let periodic = Periodic::new(period, Some(cooldown)).expect("a legal period");
        self.definition.schedule = Schedule::Periodic(periodic);
        self
    }

    /// Excludes nodes by name.
    #[must_use]
    pub fn not_on(mut self, nodes: &[&str]) -> Self {
        self.definition.dont_run_on_nodes = nodes.iter().map(|&name| name.into()).collect();
        self
    }

    #[must_use]
    pub fn configuration(mut self, configuration: &str) -> Self {
        self.about.configuration = Some(configuration.into());
        self
    }

    #[must_use]
    pub fn source(mut self, source_id: &str) -> Self {
        self.about.source_id = Some(source_id.into());
        self
    }

    #[must_use]
    pub fn target(mut self, number: i64) -> Self {
        self.about.target = Some(number);
        self
    }

    #[must_use]
    pub fn overlap(mut self, overlap: OverlapPolicy) -> Self {
        self.definition.overlap = overlap;
        self
    }

    #[must_use]
    pub fn misfire(mut self, misfire: MisfirePolicy) -> Self {
        self.definition.misfire = misfire;
        self
    }

    #[must_use]
    pub fn lane(mut self, lane: Lane) -> Self {
        self.definition.lane = lane;
        self
    }

    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.definition.priority = Priority::try_from(priority).expect("a legal priority");
        self
    }

    #[must_use]
    pub fn pool(mut self, pool: &str) -> Self {
        self.definition.pool = pool.into();
        self
    }

    /// Allows at most `most` concurrent runs with this concurrency key.
    #[must_use]
    pub fn limited(mut self, key: &str, most: u32) -> Self {
        self.definition.concurrency_key = Some(key.into());
        self.definition.concurrency_limit = Some(most);
        self
    }

    #[must_use]
    pub fn executor(mut self, kind: &str) -> Self {
        self.definition.executor.kind = kind.into();
        self
    }

    #[must_use]
    pub fn metadata(mut self, metadata: serde_json::Value) -> Self {
        self.about.metadata = metadata;
        self
    }

    pub fn build(self) -> NewJob {
        let Self { about, definition, next_at } = self;
        NewJob { id: fresh_id(), about, definition, next_at }
    }
}

/// Returns a new node with all roles.
pub fn new_node(name: &str) -> NewNode {
    let pools = vec![DEFAULT_POOL.into()];
    NewNode { name: name.into(), identity: identity(name), roles: Roles::ALL, pools }
}

/// Returns the identity that a node called `name` keeps across restarts.
pub fn identity(name: &str) -> Uuid {
    let mut bytes = [b'-'; 16];
    for (to, from) in bytes.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    Uuid::new_v8(bytes)
}

/// How a fired attempt starts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Begin {
    Claimed,
    Queued,
}

impl Begin {
    pub fn of(self, job: &DueJob, should_start_by: Timestamp, now: Timestamp) -> Start {
        match self {
            Self::Claimed => Start::Claimed,
            Self::Queued => Start::Queued(queue_entry_of(job, should_start_by, now)),
        }
    }
}

/// Returns the queue entry of an attempt of `job` that is queued at `now` and must start by
/// `should_start_by`.
pub fn queue_entry_of(job: &DueJob, should_start_by: Timestamp, now: Timestamp) -> QueueEntry {
    let waited = QueueWait { since: now, priority: None, aging: &Aging::default() };
    queue_entry_with(job, should_start_by, now, waited)
}

/// Returns the queue entry of an attempt that has already waited.
pub fn queue_entry_with(
    job: &DueJob,
    should_start_by: Timestamp,
    now: Timestamp,
    waited: QueueWait<'_>,
) -> QueueEntry {
    let definition = definition_of(job);
    let average = definition.average(job.history.average_good_duration);
    QueueEntry::new(&definition, should_start_by, average, now, waited)
}

/// Returns a trigger with the priority of the job; `n` distinguishes triggers at the same time.
pub fn plain_trigger(n: u32) -> Trigger {
    Trigger { n, priority: None, idle_only: false }
}

pub fn definition_of(job: &DueJob) -> Definition {
    serde_json::from_str(&job.definition).expect("a stored definition reads back")
}

/// Returns the firing that `evenkeel-core` decides for `job` at `now`.
pub fn fire_of(job: &DueJob, now: Timestamp, begin: Begin) -> Fire {
    let definition = definition_of(job);
    let due = job.next_at.expect("the job has a next time");
    let average = definition.average(job.history.average_good_duration);
    let time = DueTime { due, now, waited: false, average, fired: job.fired };
    let advance = advance(&definition, time);
    Fire {
        job: job.no,
        tenant: job.tenant,
        generation: job.generation,
        due,
        head: job.head,
        skip: advance.skip,
        start: advance
            .fire
            .map(|time| (time, begin.of(job, time.saturating_add(Span::from_secs(60)), now))),
        idle_only: definition.overlap != OverlapPolicy::Allow,
        next_at: advance.next,
    }
}

/// Returns the queue entry of a requeued attempt.
pub fn place_of(back: &mut Requeue) -> &mut QueueEntry {
    match &mut back.then {
        AfterLoss::Queue(entry) => entry,
        AfterLoss::Fail(end) => panic!("a failed attempt has no queue entry: {end:?}"),
    }
}
