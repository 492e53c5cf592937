//! Why does a job not run now?

use serde::Serialize;

use crate::aging::Aging;
use crate::ids::{AttemptNo, Origin};
use crate::job::Definition;
use crate::limit::{Limit, LimitScope};
use crate::order::{Lane, Priority};
use crate::overlap::OverlapPolicy;
use crate::schedule::Schedule;
use crate::time::{Span, Timestamp};

/// A reason why a job does not run now, or that it does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Why {
    /// It does.
    Running {
        /// Since then.
        since: Timestamp,
    },
    /// Its next time has not come.
    NotDue {
        /// It starts then: at its next time, or at the end of the blackout that this falls into.
        until: Timestamp,
        /// What may still be in its way then.
        #[serde(flatten)]
        busy: Option<Busy>,
    },
    /// Its pause after the run before is not over.
    CoolingDown {
        /// It is over then.
        until: Timestamp,
    },
    /// Its next time follows from the end of the run that goes on.
    AfterThisRun {
        /// Its pause after that.
        cooldown: Span,
        /// Its next time is then at the latest.
        until: Timestamp,
    },
    /// Nothing of it may start in these hours, or what starts now would run into them.
    Blackout {
        /// It may start then.
        until: Timestamp,
    },
    /// A run of it failed, and is tried again.
    RetryPending {
        /// Not before.
        until: Timestamp,
        /// Which retry it is, counted from 1.
        retry: u16,
    },
    /// Somebody asked for a run, which comes in a moment.
    TriggerPending {
        /// Not before.
        until: Timestamp,
    },
    /// A run of it waits for a worker.
    WaitingInQueue {
        /// The time the run is for.
        scheduled_at: Timestamp,
        /// Since then.
        since: Timestamp,
        /// So many of the same tenant are before it among the first of its pool, counted no further
        /// than a thousand.
        ahead: u32,
        /// Its own priority, or its job's.
        priority: Priority,
        /// What its waiting has made of that.
        effective_priority: Priority,
    },
    /// All workers of its pool that live may not run it.
    NoNodeAllowed {
        /// Those it stays away from.
        forbidden: Vec<String>,
    },
    /// No node that lives runs jobs.
    NoWorker,
    /// Nodes that live run jobs, but none of them those of its pool.
    NoWorkerForPool {
        /// Its pool.
        pool: String,
    },
    /// It has no executor: nobody knows the address of its target. Its runs fail.
    NoExecutor,
    /// Its time has come, and all workers have enough to do.
    NoCapacity {
        /// Its time came then.
        since: Timestamp,
    },
    /// Its time has come while an earlier run of it is not over.
    PreviousRunGoingOn {
        /// Its time came then.
        since: Timestamp,
        /// What is in its way.
        #[serde(flatten)]
        busy: Busy,
    },
    /// Its time has come, and it starts in a moment.
    Starting,
    /// Somebody stopped it for a while.
    Paused,
    /// Somebody ended it for good.
    Cancelled,
    /// It has no further time.
    Over,
    /// Neither has it, and its last run failed.
    GivenUp,
    /// A run of it waits because as many run as may at once.
    Limited {
        /// The time the run is for.
        scheduled_at: Timestamp,
        /// Since then.
        since: Timestamp,
        /// As many of what.
        scope: LimitScope,
        /// Its key, if it is that.
        key: Option<String>,
        /// Its lane, if it is that.
        lane: Option<Lane>,
        /// So many may.
        limit: u32,
        /// So many do. Nobody is told what others run in a lane.
        running: Option<u32>,
    },
}

/// A run that is not over, and what it means for the next time.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Busy {
    /// What that run does.
    pub earlier: EarlierRun,
    /// What becomes of a time that comes meanwhile.
    pub overlap: OverlapPolicy,
}

/// What a run that is not over does.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlierRun {
    /// It runs.
    GoesOn,
    /// It has not started.
    Waits,
    /// It failed, and waits for its retry.
    IsRetried,
}

impl Why {
    /// Until when it holds, at the latest, if that is known.
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

/// A run of the job that waits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The time it is for.
    pub scheduled_at: Timestamp,
    /// Why it exists.
    pub origin: Origin,
    /// Which try it is.
    pub attempt: AttemptNo,
    /// The priority that it was given, if it was.
    pub priority: Option<Priority>,
    /// For what.
    pub waits_for: WaitsFor,
}

/// What a run waits for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum WaitsFor {
    /// This moment.
    Time(Timestamp),
    /// A worker.
    Worker {
        /// It could first have been taken then.
        since: Timestamp,
        /// So many of the same tenant are before it.
        ahead: u32,
        /// Nobody may take it before.
        open_from: Option<Timestamp>,
        /// Nor from then on.
        open_until: Option<Timestamp>,
    },
    /// A place: as many run as may at once.
    Permit {
        /// It could first have been taken then.
        since: Timestamp,
        /// Of this limit.
        limit: Limit,
        /// So many run.
        running: u32,
    },
}

/// All that the answer follows from.
#[derive(Copy, Clone, Debug)]
pub struct Facts<'a> {
    /// What the job does.
    pub definition: &'a Definition,
    /// How long a good run of it takes.
    pub average: Span,
    /// Somebody ended it for good.
    pub cancelled: bool,
    /// Somebody stopped it for a while.
    pub paused: bool,
    /// Its next regular time.
    pub next_at: Option<Timestamp>,
    /// Its last run failed.
    pub failed: bool,
    /// When its last run ended.
    pub last_end_at: Option<Timestamp>,
    /// Chains of it that are not over.
    pub live: u32,
    /// Since when an attempt of it runs, if one does.
    pub running_since: Option<Timestamp>,
    /// What waits of it.
    pub waiting: &'a [Waiting],
    /// The nodes that live and run jobs.
    pub workers: &'a [WorkerFacts],
    /// How waiting counts.
    pub aging: Aging,
}

/// A node that lives and runs jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerFacts {
    /// Its name.
    pub name: String,
    /// The pools whose jobs it runs.
    pub pools: Vec<String>,
}

/// The answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// All reasons, the one that matters most first.
    pub reasons: Vec<Why>,
    /// The first moment at which a run may start; `None` if that depends on others, or none follows.
    pub next_possible_start: Option<Timestamp>,
}

/// What is due for longer than this and does not start is held up by something.
const A_MOMENT: Span = Span::from_secs(5);

/// Why a job does not run at `now`.
pub fn explain(facts: &Facts<'_>, now: Timestamp) -> Explanation {
    let mut found =
        Found { facts, now, reasons: Vec::new(), starts: Vec::new(), awaits_room: false };
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
            found.look_at_workers();
        }
    }
    // What waits for room may start at any moment, and nobody knows at which.
    let next_possible_start = found.starts.into_iter().min().filter(|_| !found.awaits_room);
    Explanation { reasons: found.reasons, next_possible_start }
}

struct Found<'a> {
    facts: &'a Facts<'a>,
    now: Timestamp,
    reasons: Vec<Why>,
    /// Moments at which something of it may start.
    starts: Vec<Timestamp>,
    /// Something of it starts as soon as a worker is free.
    awaits_room: bool,
}

impl Found<'_> {
    /// When what is due at `due` starts, now at the earliest. Each reason that waits for this names
    /// this moment, and no other.
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
                    self.note_due(due);
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
                    self.awaits_room = true;
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
                self.awaits_room = true;
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
                // When it may start depends on when that run ends.
                self.reasons.push(Why::AfterThisRun { cooldown, until: start });
                return;
            }
            if cooldown.is_none() || facts.last_end_at.is_none() {
                self.reasons.push(Why::NotDue { until: start, busy });
            } else if start == next {
                self.reasons.push(Why::CoolingDown { until: next });
            }
            self.note_blackout(next, start);
            // Only who ends what is in the way is sure of the time.
            if busy.is_none_or(|busy| busy.overlap == OverlapPolicy::Replace) {
                self.starts.push(start);
            }
        } else if let Some(busy) = busy {
            self.reasons.push(Why::PreviousRunGoingOn { since: next, busy });
        } else {
            self.note_blackout(self.now, start);
            if start <= self.now {
                self.note_due(next);
            }
            self.starts.push(start);
        }
    }

    /// What may be in the way of its next time.
    fn busy(&self, follows_its_end: bool) -> Option<Busy> {
        let facts = self.facts;
        let overlap = match facts.definition.overlap {
            // One whose times follow from its ends waits, whatever its policy.
            _ if follows_its_end => OverlapPolicy::Queue,
            OverlapPolicy::Allow => return None,
            overlap => overlap,
        };
        let is_retry = |waiting: &Waiting| {
            waiting.attempt.0 > 0 && matches!(waiting.waits_for, WaitsFor::Time(_))
        };
        let earlier = if facts.running_since.is_some() || facts.waiting.is_empty() {
            EarlierRun::GoesOn
        } else if facts.waiting.iter().all(is_retry) {
            EarlierRun::IsRetried
        } else {
            EarlierRun::Waits
        };
        (facts.live > 0).then_some(Busy { earlier, overlap })
    }

    /// Something was due at `due`, and may start now.
    fn note_due(&mut self, due: Timestamp) {
        // What a blackout held back could not start before its end.
        let possible = self.facts.definition.may_start_from(due, self.facts.average);
        if self.now.since(possible) > A_MOMENT {
            self.reasons.push(Why::NoCapacity { since: due });
            self.awaits_room = true;
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

    /// Is there something that a worker could take now?
    fn needs_a_worker(&self) -> bool {
        self.reasons.iter().any(|reason| {
            matches!(reason, Why::WaitingInQueue { .. } | Why::NoCapacity { .. } | Why::Starting)
        })
    }

    /// If there is nobody to run it, that matters more than anything else.
    fn look_at_workers(&mut self) {
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
        // When that will be another one depends on others.
        self.starts.clear();
    }
}

#[cfg(test)]
mod tests;
