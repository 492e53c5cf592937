//! State of an attempt that this node owns, from the claim until its result is stored.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::after_attempt::{Ended, after_end};
use evenkeel_core::attempt::Loss;
use evenkeel_core::lease::Fence;
use evenkeel_core::on_failure::hook_of;
use evenkeel_core::order::Priority;
use evenkeel_core::{AttemptKey, Definition, Span, TenantNo, Timestamp};
use evenkeel_executors::{CancelHandle, LiveReport, LiveUpdate, Report};
use evenkeel_store::{
    Attachments, CheckpointDisposition, Finish, LongAttempt, ProgressNote, Results, Then,
};
use tokio::task::AbortHandle;

/// An attempt that this node has claimed and must start, and for which a worker slot was taken.
#[derive(Clone, Debug)]
pub struct AttemptToStart {
    pub key: AttemptKey,
    pub fence: Fence,
    pub tenant: TenantNo,
    pub definition: Arc<Definition>,
    /// Time of the claim's commit.
    pub started_at: Timestamp,
    /// Waiting time before the claim.
    pub waited: Span,
    /// The checkpoint that an earlier attempt of the run saved.
    pub checkpoint: Option<Vec<u8>>,
    /// Set if the run has another priority than its job.
    pub priority: Option<Priority>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AttemptStage {
    Running,
    /// The attempt has finished, but its result is not stored yet.
    Ended,
    /// The attempt is lost, which means that it no longer runs on this node and has no result. The
    /// store may still list a lost attempt as running on this node.
    Lost(LossInfo),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LossInfo {
    pub loss: Loss,
    pub at: Timestamp,
    /// Waiting time before the claim.
    pub waited: Span,
}

/// An attempt of this node that has started and whose result is not stored yet.
#[derive(Debug)]
pub struct OpenAttempt {
    pub fence: Fence,
    tenant: TenantNo,
    definition: Arc<Definition>,
    started_at: Timestamp,
    waited: Span,
    /// Start time of the attempt on this node's monotonic clock.
    pub since: Duration,
    pub cancel: CancelHandle,
    /// Receives progress, output and checkpoints from the running attempt.
    pub live: LiveReport,
    had_checkpoint: bool,
    priority: Option<Priority>,
    pub stage: AttemptStage,
    pub task: Option<AbortHandle>,
}

impl OpenAttempt {
    pub fn new(
        attempt: &AttemptToStart,
        cancel: CancelHandle,
        live: LiveReport,
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
            live,
            had_checkpoint: attempt.checkpoint.is_some(),
            priority: attempt.priority,
            stage: AttemptStage::Running,
            task: None,
        }
    }

    pub fn tenant(&self) -> TenantNo {
        self.tenant
    }

    pub fn lose(&mut self, loss: Loss, at: Timestamp) {
        self.stage = AttemptStage::Lost(LossInfo { loss, at, waited: self.waited });
    }

    pub fn lost(&self) -> Option<LossInfo> {
        match self.stage {
            AttemptStage::Lost(lost) => Some(lost),
            AttemptStage::Running | AttemptStage::Ended => None,
        }
    }

    /// Decides whether the store keeps or deletes the progress and the checkpoint of the attempt.
    fn attachments(&self, then: Then) -> Attachments {
        let noted = self.live.may_be_stored();
        let unsaved = self.live.take_unsaved_checkpoint();
        let checkpoint = match then {
            Then::Retry { .. } => {
                unsaved.map_or(CheckpointDisposition::Keep, CheckpointDisposition::Replace)
            }
            Then::EndRun { .. } if noted || self.had_checkpoint => CheckpointDisposition::Delete,
            Then::EndRun { .. } => CheckpointDisposition::Keep,
        };
        Attachments { has_notes: noted, checkpoint }
    }

    pub fn long_run(&self, key: AttemptKey) -> LongAttempt {
        LongAttempt { key, fence: self.fence, started_at: self.started_at }
    }
}

/// Returns new progress, output and checkpoint of an attempt since the last call, with their
/// version.
pub fn note_of(key: AttemptKey, fence: Fence, live: &LiveReport) -> Option<(ProgressNote, u64)> {
    let LiveUpdate { progress, log, checkpoint, version } = live.take_update()?;
    Some((ProgressNote { key, fence, progress, log, checkpoint }, version))
}

/// Returns the last checkpoint of an attempt, unless the checkpoint is known to be stored.
pub fn unsaved_note(key: AttemptKey, fence: Fence, live: &LiveReport) -> Option<ProgressNote> {
    let checkpoint = Some(live.take_unsaved_checkpoint()?);
    Some(ProgressNote { key, fence, progress: None, log: None, checkpoint })
}

/// Returns the latest start with which a run scheduled for `time` meets its deadline. The returned
/// time does not depend on past runs of the job.
pub fn deadline_without_history(definition: &Definition, time: Timestamp) -> Timestamp {
    must_end_by(definition, time).saturating_sub(definition.average(None))
}

fn must_end_by(definition: &Definition, time: Timestamp) -> Timestamp {
    definition.must_be_over_by(time, time.saturating_sub(Span::from_micros(1)))
}

/// Minimum duration of a run that is compared with its deadline; equals the minimum job interval.
const SHORTEST_PROMISE: Span = Span::from_secs(1);

/// True if the run finished after the deadline of its job. Runs shorter than one second are not
/// compared, because usually only a late start makes them late, and a late start is reported when
/// the run starts.
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

/// Builds the result that the finisher stores. `draw` is the random part of the delay before a
/// retry.
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
        again: report.retry,
        started_at: open.started_at,
        finished_at,
    };
    let then = after_end(&open.definition, ended, draw);
    Finish {
        judge: misses_its_deadline(
            &open.definition, key.scheduled_at, open.started_at, finished_at,
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
            items_crawled: report.items_processed,
            items_indexed: report.items_saved,
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
    fn run_that_ends_after_its_deadline_misses_it() {
        let hour = Span::from_secs(3600);
        let cron = Cron::parse("0 * * * *").unwrap();
        for schedule in [
            Schedule::Interval(Interval::new(hour, None).unwrap()),
            Schedule::Cron(CronSchedule { cron, max_duration: None }),
            Schedule::Periodic(Periodic::new(hour, None).unwrap()),
        ] {
            assert!(!breaks(schedule.clone(), 3600, 7190), "{schedule:?}");
            assert!(breaks(schedule.clone(), 3600, 7201), "{schedule:?}");
            // A run that starts after its deadline is reported at its start, not at its end.
            assert!(!breaks(schedule.clone(), 9000, 9000), "{schedule:?}");
        }
        // The deadline of a one-time job applies to its start, not to its end.
        assert!(!breaks(Schedule::Once(Once::NOW), 3600, 7201));
    }

    #[test]
    fn deadline_without_history_depends_on_the_scheduled_time_alone() {
        let every = Interval::new(Span::from_secs(60), None).unwrap();
        let job = Definition {
            average_override: Some(Span::from_secs(10)),
            ..Definition::noop(Schedule::Interval(every))
        };
        assert_eq!(deadline_without_history(&job, at(3600)), at(3650));
    }
}
