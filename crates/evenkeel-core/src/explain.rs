//! Explains why a job does not run now, and what became of a past time.

mod past;

pub use past::{
    AskedTime, CommandKind, PastCommand, PastExplanation, PastFacts, PastMove, PastRun, Verdict,
    explain_past,
};

use serde::Serialize;

use crate::aging::Aging;
use crate::ids::{AttemptNo, Origin};
use crate::job::Definition;
use crate::limit::{Limit, LimitScope};
use crate::order::{Lane, Priority};
use crate::overlap::OverlapPolicy;
use crate::schedule::Schedule;
use crate::time::{Span, Timestamp};

/// The reason why a job does not run now, or [`Running`](Self::Running) if it runs. The variant
/// names (as `code`) and the field names are part of the API.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Why {
    Running {
        since: Timestamp,
    },
    NotDue {
        /// Time at which the next run starts: the next scheduled time, or the end of the blackout
        /// that contains the scheduled time.
        until: Timestamp,
        /// An earlier run of the job that may still be active at the next scheduled time.
        #[serde(flatten)]
        busy: Option<Busy>,
    },
    /// The job's cooldown after its previous run is not over yet.
    CoolingDown {
        until: Timestamp,
    },
    /// The next run time of a periodic job depends on when the active run finishes.
    AfterThisRun {
        /// The cooldown after the active run finishes.
        cooldown: Span,
        /// The latest possible next run time of the job.
        until: Timestamp,
    },
    /// The job is in a blackout, or a run that started now would probably last into a blackout.
    Blackout {
        until: Timestamp,
    },
    /// A run of the job failed and waits for its retry.
    RetryPending {
        until: Timestamp,
        /// Counted from 1.
        retry: u16,
    },
    /// A user triggered a run, which starts within a few seconds.
    TriggerPending {
        until: Timestamp,
    },
    /// A run waits for a worker.
    WaitingInQueue {
        scheduled_at: Timestamp,
        since: Timestamp,
        /// Number of attempts of the same tenant that are ahead of this run in the pool's queue;
        /// counting stops at 1,000.
        ahead: u32,
        /// The priority of the run or, if the run has no priority, of its job.
        priority: Priority,
        /// The priority of the run after aging.
        effective_priority: Priority,
    },
    /// The job forbids all live workers of its pool (`dont_run_on_nodes`).
    NoNodeAllowed {
        forbidden: Vec<String>,
    },
    /// No live node of the cluster is a worker.
    NoWorker,
    /// No live worker serves the pool of the job.
    NoWorkerForPool {
        pool: String,
    },
    /// The job has no executor, because its target has no URL yet. Runs of a job without an
    /// executor fail.
    NoExecutor,
    /// The scheduled time has been reached, but all workers are busy.
    NoCapacity {
        /// Time at which the scheduled time was reached.
        since: Timestamp,
    },
    /// The scheduled time has been reached, but an earlier run is still active.
    #[serde(rename = "previous_run_going_on")]
    PreviousRunActive {
        /// Time at which the scheduled time was reached.
        since: Timestamp,
        #[serde(flatten)]
        busy: Busy,
    },
    /// The scheduled time has been reached, and the run starts within a few seconds.
    Starting,
    Paused,
    Cancelled,
    /// The job has no further scheduled times.
    Over,
    /// The job has no further scheduled times, and its last run failed.
    GivenUp,
    /// A run waits because a concurrency limit is reached.
    Limited {
        scheduled_at: Timestamp,
        since: Timestamp,
        scope: LimitScope,
        /// The concurrency key, if the limit belongs to a concurrency key.
        key: Option<String>,
        /// The lane, if the limit belongs to a lane.
        lane: Option<Lane>,
        limit: u32,
        /// The number of active runs under this limit. `None` for lanes, because a tenant must not
        /// see how many runs other tenants have.
        running: Option<u32>,
    },
}

/// The state of an active run, and how the active run affects the next scheduled time.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Busy {
    pub earlier: EarlierRun,
    /// What happens to a scheduled time that is reached while a run is active.
    pub overlap: OverlapPolicy,
}

/// The state of an active run.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlierRun {
    #[serde(rename = "goes_on")]
    Running,
    /// The run has not started.
    #[serde(rename = "waits")]
    Waiting,
    /// The active run failed and waits for its retry.
    #[serde(rename = "is_retried")]
    RetryPending,
}

impl Why {
    /// Returns the latest time until which the job waits for this reason, if known.
    pub const fn until(&self) -> Option<Timestamp> {
        match self {
            Self::NotDue { until, .. }
            | Self::CoolingDown { until }
            | Self::AfterThisRun { until, .. }
            | Self::Blackout { until }
            | Self::RetryPending { until, .. }
            | Self::TriggerPending { until } => Some(*until),
            _ => None,
        }
    }
}

/// A waiting run of the job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    pub scheduled_at: Timestamp,
    pub origin: Origin,
    pub attempt: AttemptNo,
    /// The priority that was set for this run, if any.
    pub priority: Option<Priority>,
    pub waits_for: WaitsFor,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    Time(Timestamp),
    Worker {
        /// The first time at which a worker could have claimed the run.
        since: Timestamp,
        /// Number of attempts of the same tenant that are ahead of this run in the queue.
        ahead: u32,
        /// No worker may claim the run before this time.
        open_from: Option<Timestamp>,
        /// No worker may claim the run at or after this time.
        open_until: Option<Timestamp>,
    },
    /// A permit of a limit.
    Permit {
        /// The first time at which a worker could have claimed the run.
        since: Timestamp,
        limit: Limit,
        running: u32,
    },
}

/// The inputs of [`explain()`].
#[derive(Copy, Clone, Debug)]
pub struct Facts<'a> {
    pub definition: &'a Definition,
    /// The average duration of successful runs.
    pub average: Span,
    pub cancelled: bool,
    pub paused: bool,
    pub next_at: Option<Timestamp>,
    /// True if the last run failed.
    pub failed: bool,
    pub last_end_at: Option<Timestamp>,
    /// Active runs.
    pub live: u32,
    pub running_since: Option<Timestamp>,
    pub waiting: &'a [Waiting],
    pub workers: &'a [WorkerFacts],
    pub aging: Aging,
}

/// A live worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerFacts {
    pub name: String,
    pub pools: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The most important reason first.
    pub reasons: Vec<Why>,
    /// The earliest possible start of a run; `None` if the start depends on other runs, or if the
    /// job has no further run.
    pub next_possible_start: Option<Timestamp>,
}

/// If a due run has not started after this time, `explain` reports that all workers are busy.
const START_DELAY_MAX: Span = Span::from_secs(5);

pub fn explain(facts: &Facts<'_>, now: Timestamp) -> Explanation {
    let mut found =
        Found { facts, now, reasons: Vec::new(), starts: Vec::new(), awaits_capacity: false };
    if facts.cancelled {
        found.reasons.push(Why::Cancelled);
    } else {
        if facts.definition.executor.is_none() {
            found.reasons.push(Why::NoExecutor);
        }
        if let Some(since) = facts.running_since {
            found.reasons.push(Why::Running { since });
        }
        for waiting in facts.waiting {
            found.look_at_waiting(waiting);
        }
        found.look_at_schedule();
        if found.needs_a_worker() {
            found.check_workers();
        }
    }
    // If a run waits for a worker or a permit, the start time of the run is unknown.
    let next_possible_start = found.starts.into_iter().min().filter(|_| !found.awaits_capacity);
    Explanation { reasons: found.reasons, next_possible_start }
}

struct Found<'a> {
    facts: &'a Facts<'a>,
    now: Timestamp,
    reasons: Vec<Why>,
    /// The possible start times of all waiting and scheduled runs.
    starts: Vec<Timestamp>,
    /// True if a run starts as soon as a worker or permit is free.
    awaits_capacity: bool,
}

impl Found<'_> {
    /// Returns when a run with the scheduled time `due` can start, at the earliest now. All reasons
    /// get the end of a blackout from `next_start`, so that they show the same time.
    fn next_start(&self, due: Timestamp) -> Timestamp {
        let Facts { definition, average, .. } = *self.facts;
        definition.next_start(due, average, self.now).max(self.now)
    }

    fn look_at_waiting(&mut self, waiting: &Waiting) {
        match waiting.waits_for {
            WaitsFor::Time(due) => {
                let start = self.next_start(due);
                let retry = waiting.attempt.0;
                if due > self.now && retry > 0 {
                    self.reasons.push(Why::RetryPending { until: start, retry });
                } else if due > self.now {
                    self.reasons.push(Why::TriggerPending { until: start });
                } else if start <= self.now {
                    self.add_due(due);
                }
                self.note_blackout(due.max(self.now), start);
                self.starts.push(start);
            }
            WaitsFor::Worker { since, ahead, open_from, open_until } => {
                let closed = open_until.is_some_and(|until| until <= self.now);
                let opens = open_from.filter(|from| *from > self.now);
                let start = match opens {
                    Some(from) => from,
                    None if closed => self.next_start(self.now),
                    None => self.now,
                };
                let scheduled_at = waiting.scheduled_at;
                self.note_blackout(self.now, start);
                let priority = waiting.priority.unwrap_or(self.facts.definition.priority);
                let effective_priority = self.facts.aging.effective(priority, since, self.now);
                self.reasons.push(Why::WaitingInQueue {
                    scheduled_at,
                    since,
                    ahead,
                    priority,
                    effective_priority,
                });
                if start > self.now {
                    self.starts.push(start);
                } else {
                    self.awaits_capacity = true;
                }
            }
            WaitsFor::Permit { since, limit, running } => {
                let definition = self.facts.definition;
                let scope = limit.key.scope();
                self.reasons.push(Why::Limited {
                    scheduled_at: waiting.scheduled_at,
                    since,
                    scope,
                    key: definition.concurrency_key.clone().filter(|_| scope == LimitScope::Key),
                    lane: (scope == LimitScope::Lane).then_some(definition.lane),
                    limit: limit.most,
                    running: (scope != LimitScope::Lane).then_some(running),
                });
                self.awaits_capacity = true;
            }
        }
    }

    fn look_at_schedule(&mut self) {
        let facts = self.facts;
        if facts.paused {
            self.reasons.push(Why::Paused);
            return;
        }
        let Some(next) = facts.next_at else {
            if facts.live == 0 {
                self.reasons.push(if facts.failed { Why::GivenUp } else { Why::Over });
            }
            return;
        };
        let start = self.next_start(next);
        let cooldown = match &facts.definition.schedule {
            Schedule::Periodic(periodic) => Some(periodic.cooldown()),
            _ => None,
        };
        let busy = self.busy(cooldown.is_some());
        if next > self.now {
            if let Some(cooldown) = cooldown.filter(|_| facts.live > 0) {
                // The start of the next run depends on when the active run finishes.
                self.reasons.push(Why::AfterThisRun { cooldown, until: start });
                return;
            }
            if cooldown.is_none() || facts.last_end_at.is_none() {
                self.reasons.push(Why::NotDue { until: start, busy });
            } else if start == next {
                self.reasons.push(Why::CoolingDown { until: next });
            }
            self.note_blackout(next, start);
            // While a run is active, the next start is certain only with the overlap policy
            // `replace`, which ends the active run.
            if busy.is_none_or(|busy| busy.overlap == OverlapPolicy::Replace) {
                self.starts.push(start);
            }
        } else if let Some(busy) = busy {
            self.reasons.push(Why::PreviousRunActive { since: next, busy });
        } else {
            self.note_blackout(self.now, start);
            if start <= self.now {
                self.add_due(next);
            }
            self.starts.push(start);
        }
    }

    /// Returns the active run that may block the next scheduled time.
    fn busy(&self, follows_its_end: bool) -> Option<Busy> {
        let facts = self.facts;
        let overlap = match facts.definition.overlap {
            // A periodic job always waits for its active run, whatever its overlap policy.
            _ if follows_its_end => OverlapPolicy::Queue,
            OverlapPolicy::Allow => return None,
            overlap => overlap,
        };
        let is_retry = |waiting: &Waiting| {
            waiting.attempt.0 > 0 && matches!(waiting.waits_for, WaitsFor::Time(_))
        };
        let earlier = if facts.running_since.is_some() || facts.waiting.is_empty() {
            EarlierRun::Running
        } else if facts.waiting.iter().all(is_retry) {
            EarlierRun::RetryPending
        } else {
            EarlierRun::Waiting
        };
        (facts.live > 0).then_some(Busy { earlier, overlap })
    }

    /// Adds the reason why a run with the scheduled time `due`, which may start now, has not
    /// started.
    fn add_due(&mut self, due: Timestamp) {
        // A blackout may have delayed the run, so the delay counts from the end of the blackout.
        let possible = self.facts.definition.may_start_from(due, self.facts.average);
        if self.now.since(possible) > START_DELAY_MAX {
            self.reasons.push(Why::NoCapacity { since: due });
            self.awaits_capacity = true;
        } else {
            self.reasons.push(Why::Starting);
        }
    }

    fn note_blackout(&mut self, wanted: Timestamp, start: Timestamp) {
        let reason = Why::Blackout { until: start };
        if start > wanted && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// True if a worker could claim a run now.
    fn needs_a_worker(&self) -> bool {
        self.reasons.iter().any(|reason| {
            matches!(reason, Why::WaitingInQueue { .. } | Why::NoCapacity { .. } | Why::Starting)
        })
    }

    /// If no suitable worker exists, this becomes the first reason, because it matters most.
    fn check_workers(&mut self) {
        let Definition { pool, dont_run_on_nodes: forbidden, .. } = self.facts.definition;
        let workers = self.facts.workers;
        let mut serving = workers.iter().filter(|worker| worker.pools.contains(pool)).peekable();
        let reason = if workers.is_empty() {
            Why::NoWorker
        } else if serving.peek().is_none() {
            Why::NoWorkerForPool { pool: pool.clone() }
        } else if serving.all(|worker| forbidden.contains(&worker.name)) {
            Why::NoNodeAllowed { forbidden: forbidden.clone() }
        } else {
            return;
        };
        self.reasons.retain(|other| !matches!(other, Why::NoCapacity { .. } | Why::Starting));
        self.reasons.insert(0, reason);
        // While no suitable worker exists, no possible start time is known.
        self.starts.clear();
    }
}

#[cfg(test)]
mod tests;
