//! An attempt on its way through this node.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::aging::Aging;
use evenkeel_core::chain::{Ended, after_end};
use evenkeel_core::lease::Fence;
use evenkeel_core::on_failure::{Hook, hook_of};
use evenkeel_core::order::Priority;
use evenkeel_core::run::Outcome;
use evenkeel_core::{Definition, RunKey, Span, TenantNo, Timestamp};
use evenkeel_executors::{CancelHandle, News, Report, Wire};
use evenkeel_store::{
    CheckpointFate, Finish, LongRun, Note, Owned, Requeue, Results, Then, Ticket, Traces, Waited,
};
use tokio::task::AbortHandle;

use crate::meters::could_start;

/// An attempt that this node has claimed and must start. It has a place in
/// [`Slots`](crate::slots::Slots).
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Which one.
    pub key: RunKey,
    /// The right to write its results.
    pub fence: Fence,
    /// Whose it is.
    pub tenant: TenantNo,
    /// What to do.
    pub definition: Arc<Definition>,
    /// When the claim was committed.
    pub started_at: Timestamp,
    /// What it had waited by then.
    pub waited: Span,
    /// What an earlier attempt saved.
    pub checkpoint: Option<Vec<u8>>,
    /// The priority that this run was given, whatever its job's is.
    pub priority: Option<Priority>,
}

/// Where an attempt that this node has stands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Its body runs.
    Running,
    /// Its body has ended; only the store does not know yet.
    Ended,
    /// Its body was ended because the lease ran out. The store may still think it runs here.
    Abandoned,
}

/// An attempt this node has, from its start until the store knows its end.
#[derive(Debug)]
pub struct Open {
    /// The right to write its results.
    pub fence: Fence,
    tenant: TenantNo,
    definition: Arc<Definition>,
    started_at: Timestamp,
    /// What it had waited by then.
    waited: Span,
    /// When it started, on this node's clock.
    pub since: Duration,
    /// Ends its body.
    pub cancel: CancelHandle,
    /// What its body says.
    pub wire: Wire,
    /// Was it given a checkpoint?
    had_checkpoint: bool,
    /// The priority that this run was given.
    priority: Option<Priority>,
    /// Where it stands.
    pub stage: Stage,
    /// Its body.
    pub task: Option<AbortHandle>,
}

impl Open {
    /// An attempt whose body is about to run.
    pub fn new(attempt: &Attempt, cancel: CancelHandle, wire: Wire, since: Duration) -> Self {
        Self {
            fence: attempt.fence,
            tenant: attempt.tenant,
            definition: Arc::clone(&attempt.definition),
            started_at: attempt.started_at,
            waited: attempt.waited,
            since,
            cancel,
            wire,
            had_checkpoint: attempt.checkpoint.is_some(),
            priority: attempt.priority,
            stage: Stage::Running,
            task: None,
        }
    }

    /// Whose it is.
    pub fn tenant(&self) -> TenantNo {
        self.tenant
    }

    /// What becomes of what its body has said, when `then` follows.
    fn traces(&self, then: Then) -> Traces {
        let noted = self.wire.was_taken();
        let unsaved = self.wire.take_unstored();
        let checkpoint = match then {
            Then::Retry { .. } => unsaved.map_or(CheckpointFate::AsIs, CheckpointFate::Save),
            Then::EndChain { .. } if noted || self.had_checkpoint => CheckpointFate::Forget,
            Then::EndChain { .. } => CheckpointFate::AsIs,
        };
        Traces { noted, checkpoint }
    }

    /// What is written down of it when it has been open for long.
    pub fn long_run(&self, key: RunKey) -> LongRun {
        LongRun { key, fence: self.fence, started_at: self.started_at }
    }
}

/// What this node has to give back because it could not let it end.
#[derive(Clone, Debug)]
pub struct Interrupted {
    key: RunKey,
    fence: Fence,
    wire: Wire,
    tenant: TenantNo,
    definition: Arc<Definition>,
    waited: Span,
    priority: Option<Priority>,
}

impl Interrupted {
    /// An attempt whose body was ended.
    pub fn of(key: RunKey, open: &Open) -> Self {
        let definition = Arc::clone(&open.definition);
        let wire = open.wire.clone();
        let (fence, tenant, priority) = (open.fence, open.tenant, open.priority);
        Self { key, fence, wire, tenant, definition, waited: open.waited, priority }
    }

    /// What its body has saved and the store may not have.
    pub fn unsaved(&self) -> Option<Note> {
        unsaved_note(self.key, self.fence, &self.wire)
    }

    /// Back into the queue, unharmed.
    pub fn requeue(&self, now: Timestamp, aging: &Aging) -> Requeue {
        let since = now.saturating_sub(self.waited);
        let waited = Waited { since, priority: self.priority, aging };
        Requeue {
            key: self.key,
            fence: self.fence,
            tenant: self.tenant,
            crashed: false,
            ticket: ticket_of(&self.definition, self.key, now, waited),
        }
    }
}

/// What a body has said since the last time, if anything, with its version.
pub fn note_of(key: RunKey, fence: Fence, wire: &Wire) -> Option<(Note, u64)> {
    let News { progress, log, checkpoint, version } = wire.take_news()?;
    Some((Note { key, fence, progress, log, checkpoint }, version))
}

/// The last checkpoint of a body, unless the store is known to have it.
pub fn unsaved_note(key: RunKey, fence: Fence, wire: &Wire) -> Option<Note> {
    let checkpoint = Some(wire.take_unstored()?);
    Some(Note { key, fence, progress: None, log: None, checkpoint })
}

/// An attempt of a node goes back into the queue; it counts if its worker `crashed`.
pub fn requeue_of(
    owned: &Owned,
    definition: &Definition,
    crashed: bool,
    now: Timestamp,
    aging: &Aging,
) -> Requeue {
    let since = now.saturating_sub(waited_before(owned, definition));
    let waited = Waited { since, priority: owned.priority, aging };
    Requeue {
        key: owned.key,
        fence: owned.fence,
        tenant: owned.tenant,
        crashed,
        ticket: ticket_of(definition, owned.key, now, waited),
    }
}

/// What an attempt had waited when it started, as far as the store tells: of one that began as a
/// retry, or that ran before, it is not known how much of the time since then it waited.
fn waited_before(owned: &Owned, definition: &Definition) -> Span {
    if owned.key.attempt != evenkeel_core::Attempt::FIRST || owned.fence != Fence::NONE.next() {
        return Span::ZERO;
    }
    let average = definition.average(None);
    owned.started_at.since(could_start(definition, owned.key.scheduled_at, average))
}

/// The place of an attempt that comes back into the queue at `now`. What it had waited before it
/// started is not lost; while it ran, it did not wait.
fn ticket_of(definition: &Definition, key: RunKey, now: Timestamp, waited: Waited<'_>) -> Ticket {
    let should_start_by = deadline_by_itself(definition, key.scheduled_at);
    Ticket::new(definition, should_start_by, definition.average(None), now, waited)
}

/// By when the run for `time` must start, as far as that time alone tells: its job's past is not
/// known here.
pub fn deadline_by_itself(definition: &Definition, time: Timestamp) -> Timestamp {
    over_by(definition, time).saturating_sub(definition.average(None))
}

fn over_by(definition: &Definition, time: Timestamp) -> Timestamp {
    definition.must_be_over_by(time, time.saturating_sub(Span::from_micros(1)))
}

/// No schedule has times closer together, or promises to be over sooner than that.
const SHORTEST_PROMISE: Span = Span::from_secs(1);

/// Did a run go on for so long that it cannot have kept its job's promise?
fn breaks_its_promise(
    definition: &Definition,
    time: Timestamp,
    started_at: Timestamp,
    finished_at: Timestamp,
) -> bool {
    definition.schedule.recurs()
        && finished_at.since(started_at) >= SHORTEST_PROMISE
        && finished_at > over_by(definition, time)
}

/// What to store of a body's end. `draw` is the chance in its retry.
pub fn finish_of(key: RunKey, open: &Open, report: Report, took: Span, draw: f64) -> Finish {
    let finished_at = open.started_at.saturating_add(took);
    let ended = Ended {
        attempt: key.attempt,
        outcome: report.outcome,
        again: report.again,
        started_at: open.started_at,
        finished_at,
    };
    let then = after_end(&open.definition, ended, draw);
    Finish {
        watch: breaks_its_promise(&open.definition, key.scheduled_at, open.started_at, finished_at),
        key,
        fence: open.fence,
        tenant: open.tenant,
        outcome: report.outcome,
        started_at: open.started_at,
        finished_at,
        results: Results {
            error: report.error,
            output: report.output,
            items_crawled: report.items_crawled,
            items_indexed: report.items_indexed,
            cpu_time: report.cpu_time,
            memory_peak_kb: report.memory_peak_kb,
        },
        then,
        priority: open.priority,
        traces: open.traces(then),
        hook: hook_of(&open.definition, &ended, then),
    }
}

/// The failure of an attempt that no body was or will be started for.
pub fn refused(attempt: &Owned, why: &str) -> Finish {
    Finish {
        key: attempt.key,
        fence: attempt.fence,
        tenant: attempt.tenant,
        outcome: Outcome::Failed,
        started_at: attempt.started_at,
        finished_at: attempt.started_at,
        results: Results { error: Some(why.to_owned()), ..Results::default() },
        then: Then::EndChain { stop_job: false, next_at: None },
        priority: attempt.priority,
        traces: Traces { noted: true, checkpoint: CheckpointFate::Forget },
        watch: true,
        hook: Hook::None,
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::schedule::{Cron, CronSchedule, Interval, Once, Periodic, Schedule};

    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn breaks(schedule: Schedule, started: i64, finished: i64) -> bool {
        breaks_its_promise(&Definition::noop(schedule), at(3600), at(started), at(finished))
    }

    #[test]
    fn a_run_that_is_over_too_late_breaks_its_promise() {
        let hour = Span::from_secs(3600);
        let cron = Cron::parse("0 * * * *").unwrap();
        for schedule in [
            Schedule::Interval(Interval::new(hour, None).unwrap()),
            Schedule::Cron(CronSchedule { cron, max_duration: None }),
            Schedule::Periodic(Periodic::new(hour, None).unwrap()),
        ] {
            assert!(!breaks(schedule.clone(), 3600, 7190), "{schedule:?}");
            assert!(breaks(schedule.clone(), 3600, 7201), "{schedule:?}");
            // That it began late was noticed then.
            assert!(!breaks(schedule.clone(), 9000, 9000), "{schedule:?}");
        }
        // It promised to start.
        assert!(!breaks(Schedule::Once(Once::NOW), 3600, 7201));
    }

    fn owned(attempt: u16, fence: u32) -> Owned {
        let key = RunKey::regular(evenkeel_core::JobNo(1), at(3_600));
        Owned {
            key: key.with_attempt(evenkeel_core::Attempt(attempt)),
            fence: Fence(fence),
            tenant: TenantNo(1),
            started_at: at(3_700),
            crashes: 0,
            definition: String::new(),
            priority: None,
        }
    }

    #[test]
    fn the_time_in_which_it_ran_does_not_count_as_waiting() {
        let every = Interval::new(Span::from_secs(60), None).unwrap();
        let job = Definition::noop(Schedule::Interval(every));
        let (ten_hours_later, aging) = (at(3_700 + 36_000), Aging::default());
        // A retry waited for less, and one that ran before does not know for how long.
        for (attempt, fence, waited) in [(0, 1, 100), (1, 1, 0), (0, 3, 0)] {
            let owned = owned(attempt, fence);
            let ticket = requeue_of(&owned, &job, true, ten_hours_later, &aging).ticket;
            assert_eq!(ticket.since, at(3_700 + 36_000 - waited), "{attempt} {fence}");
            assert_eq!(ticket.should_start_by, deadline_by_itself(&job, at(3_600)));
        }
        // One that this node claimed knows it.
        let (cancel, _) = evenkeel_executors::cancellation();
        let attempt = Attempt {
            key: owned(1, 1).key,
            fence: Fence(5),
            tenant: TenantNo(1),
            definition: Arc::new(job.clone()),
            started_at: at(3_700),
            waited: Span::from_secs(30),
            checkpoint: None,
            priority: None,
        };
        let open = Open::new(&attempt, cancel, Wire::default(), Duration::ZERO);
        let back = Interrupted::of(attempt.key, &open).requeue(ten_hours_later, &aging);
        assert_eq!(back.ticket.since, at(3_700 + 36_000 - 30));
        assert_eq!(back.ticket.should_start_by, deadline_by_itself(&job, at(3_600)));
    }

    #[test]
    fn the_deadline_of_a_time_by_itself_is_its_own() {
        let every = Interval::new(Span::from_secs(60), None).unwrap();
        let job = Definition {
            average_override: Some(Span::from_secs(10)),
            ..Definition::noop(Schedule::Interval(every))
        };
        assert_eq!(deadline_by_itself(&job, at(3600)), at(3650));
    }
}
