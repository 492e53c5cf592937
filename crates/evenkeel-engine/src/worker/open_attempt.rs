//! An attempt on its way through this node.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::chain::{Ended, after_end};
use evenkeel_core::lease::Fence;
use evenkeel_core::on_failure::{Hook, hook_of};
use evenkeel_core::order::Priority;
use evenkeel_core::run::{Loss, Outcome};
use evenkeel_core::{AttemptKey, Definition, Span, TenantNo, Timestamp};
use evenkeel_executors::{CancelHandle, News, Report, Wire};
use evenkeel_store::{
    Attachments, CheckpointDisposition, Finish, LongAttempt, OwnedAttempt, ProgressNote, Results,
    Then,
};
use tokio::task::AbortHandle;

/// An attempt that this node has claimed and must start. It has a place in
/// [`Slots`](crate::worker::slots::Slots).
#[derive(Clone, Debug)]
pub struct AttemptToStart {
    /// Which one.
    pub key: AttemptKey,
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
pub enum AttemptStage {
    /// Its body runs.
    Running,
    /// Its body has ended; only the store does not know yet.
    Ended,
    /// It has no body, and its result is not known. The store may still say that it runs here.
    Lost(LossInfo),
}

/// How this node lost an attempt.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LossInfo {
    /// Why.
    pub loss: Loss,
    /// When.
    pub at: Timestamp,
    /// What the attempt had waited when it was claimed.
    pub waited: Span,
}

/// An attempt this node has, from its start until the store knows its end.
#[derive(Debug)]
pub struct OpenAttempt {
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
    pub stage: AttemptStage,
    /// Its body.
    pub task: Option<AbortHandle>,
}

impl OpenAttempt {
    /// An attempt whose body is about to run.
    pub fn new(
        attempt: &AttemptToStart,
        cancel: CancelHandle,
        wire: Wire,
        since: Duration,
    ) -> Self {
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
            stage: AttemptStage::Running,
            task: None,
        }
    }

    /// Whose it is.
    pub fn tenant(&self) -> TenantNo {
        self.tenant
    }

    /// It has no body any more, and its result is not known.
    pub fn lose(&mut self, loss: Loss, at: Timestamp) {
        self.stage = AttemptStage::Lost(LossInfo { loss, at, waited: self.waited });
    }

    /// How this node lost it, if it did.
    pub fn lost(&self) -> Option<LossInfo> {
        match self.stage {
            AttemptStage::Lost(lost) => Some(lost),
            AttemptStage::Running | AttemptStage::Ended => None,
        }
    }

    /// What becomes of what its body has said, when `then` follows.
    fn attachments(&self, then: Then) -> Attachments {
        let noted = self.wire.was_taken();
        let unsaved = self.wire.take_unstored();
        let checkpoint = match then {
            Then::Retry { .. } => {
                unsaved.map_or(CheckpointDisposition::AsIs, CheckpointDisposition::Save)
            }
            Then::EndChain { .. } if noted || self.had_checkpoint => CheckpointDisposition::Forget,
            Then::EndChain { .. } => CheckpointDisposition::AsIs,
        };
        Attachments { has_notes: noted, checkpoint }
    }

    /// What is written down of it when it has been open for long.
    pub fn long_run(&self, key: AttemptKey) -> LongAttempt {
        LongAttempt { key, fence: self.fence, started_at: self.started_at }
    }
}

/// What a body has said since the last time, if anything, with its version.
pub fn note_of(key: AttemptKey, fence: Fence, wire: &Wire) -> Option<(ProgressNote, u64)> {
    let News { progress, log, checkpoint, version } = wire.take_news()?;
    Some((ProgressNote { key, fence, progress, log, checkpoint }, version))
}

/// The last checkpoint of a body, unless the store is known to have it.
pub fn unsaved_note(key: AttemptKey, fence: Fence, wire: &Wire) -> Option<ProgressNote> {
    let checkpoint = Some(wire.take_unstored()?);
    Some(ProgressNote { key, fence, progress: None, log: None, checkpoint })
}

/// By when the run for `time` must start, as far as that time alone tells: its job's past is not
/// known here.
pub fn deadline_without_history(definition: &Definition, time: Timestamp) -> Timestamp {
    must_end_by(definition, time).saturating_sub(definition.average(None))
}

fn must_end_by(definition: &Definition, time: Timestamp) -> Timestamp {
    definition.must_be_over_by(time, time.saturating_sub(Span::from_micros(1)))
}

/// No schedule has times closer together, or promises to be over sooner than that.
const SHORTEST_PROMISE: Span = Span::from_secs(1);

/// Did a run go on for so long that it cannot have kept its job's promise?
fn misses_its_deadline(
    definition: &Definition,
    time: Timestamp,
    started_at: Timestamp,
    finished_at: Timestamp,
) -> bool {
    definition.schedule.recurs()
        && finished_at.since(started_at) >= SHORTEST_PROMISE
        && finished_at > must_end_by(definition, time)
}

/// What to store of a body's end. `draw` is the chance in its retry.
pub fn finish_of(
    key: AttemptKey,
    open: &OpenAttempt,
    report: Report,
    took: Span,
    draw: f64,
) -> Finish {
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
        judge: misses_its_deadline(
            &open.definition,
            key.scheduled_at,
            open.started_at,
            finished_at,
        ),
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
        attachments: open.attachments(then),
        hook: hook_of(&open.definition, &ended, then),
        unstored_since: None,
    }
}

/// The failure of an attempt that no body was or will be started for.
pub fn refused(attempt: &OwnedAttempt, why: &str) -> Finish {
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
        attachments: Attachments { has_notes: true, checkpoint: CheckpointDisposition::Forget },
        judge: true,
        hook: Hook::None,
        unstored_since: None,
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
        misses_its_deadline(&Definition::noop(schedule), at(3600), at(started), at(finished))
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

    #[test]
    fn the_deadline_of_a_time_by_itself_is_its_own() {
        let every = Interval::new(Span::from_secs(60), None).unwrap();
        let job = Definition {
            average_override: Some(Span::from_secs(10)),
            ..Definition::noop(Schedule::Interval(every))
        };
        assert_eq!(deadline_without_history(&job, at(3600)), at(3650));
    }
}
