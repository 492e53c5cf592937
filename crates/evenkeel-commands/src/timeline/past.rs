//! Makes marks of stored runs.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::timeline::expected_end;
use evenkeel_core::{Span, Timestamp};

use super::{Mark, MarkStatus};
use crate::run_list::Run;

/// Makes the mark of a run, whose job is not read yet.
pub(super) fn mark_of(run: &Run) -> Mark {
    let attempts = || run.attempts().map(|one| &one.attempt);
    // The first attempt of a long run may no longer be kept.
    let start = run.started_at().or_else(|| attempts().find_map(|attempt| attempt.started_at));
    let node = attempts().filter_map(|attempt| attempt.node.as_ref()).last();
    Mark {
        job: run.job,
        job_name: None,
        pool: None,
        node: node.map(|(_, name)| name.clone()),
        scheduled_at: run.key.scheduled_at,
        start,
        end: run.finished_at(),
        status: MarkStatus::Run(run.status()),
        run: Some(run.key),
        start_is_estimate: false,
        end_is_estimate: false,
        moved_by: None,
        lane: 0,
    }
}

/// Adds the expected end of a running run, if the average duration of the job is known.
pub(super) fn expect_end(mark: &mut Mark, average: Span, now: Timestamp) {
    if mark.status == MarkStatus::Run(AttemptStatus::Running) {
        mark.end = mark.start.and_then(|start| expected_end(start, average, now));
        mark.end_is_estimate = mark.end.is_some();
    }
}
