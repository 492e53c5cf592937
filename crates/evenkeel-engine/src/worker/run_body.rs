//! Runs the body (program, HTTP call or crawl) of an attempt within the duration limits and
//! blackouts of its job.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{AttemptId, Definition, JobNo, Span, Timestamp};
use evenkeel_executors::{CancelReason, Executor, Invocation, Report};
use tracing::{error, warn};

use super::Worker;

/// A time limit of an attempt, and what happens when the attempt reaches it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Limit {
    /// Logged.
    Expected,
    /// The attempt is cancelled.
    Allowed,
    /// The attempt is cancelled, because a blackout of its job begins.
    Blackout,
}

/// True if the job has a duration limit or blackouts. Most jobs have neither a duration limit nor
/// blackouts, so their attempts need no timer.
fn has_limits(definition: &Definition) -> bool {
    definition.max_expected_duration.is_some()
        || definition.max_allowed_duration.is_some()
        || !definition.blackout_periods.is_empty()
}

/// Returns the time limits that an attempt can reach, soonest first, with the delay from `now` to
/// each of them. The returned list ends with the first time limit that cancels the attempt.
/// `started_at` is the time at which the attempt was claimed.
fn limits_of(
    definition: &Definition,
    started_at: Timestamp,
    now: Timestamp,
) -> Vec<(Duration, Limit)> {
    let dark = !definition.blackout_periods.is_empty();
    let closing = dark.then(|| definition.blackouts().next_start(started_at)).flatten();
    let limits = [
        // If a blackout begins at the same moment as another limit, the blackout comes first,
        // because it is the more specific reason for cancelling the attempt.
        (closing.map(|closing| closing.since(now)), Limit::Blackout),
        (definition.max_allowed_duration, Limit::Allowed),
        (definition.max_expected_duration, Limit::Expected),
    ];
    let mut limits: Vec<_> = limits
        .into_iter()
        .filter_map(|(after, limit)| Some((Duration::from(after?), limit)))
        .collect();
    limits.sort_by_key(|(after, _)| *after);
    let end = limits.iter().position(|(_, limit)| *limit != Limit::Expected);
    limits.truncate(end.map_or(limits.len(), |end| end + 1));
    limits
}

impl Worker {
    pub(super) async fn run_body(&self, invocation: Invocation) -> Report {
        let kind = &invocation.definition.executor.kind;
        let Some(executor) = self.registry.get(kind) else {
            return Report::failed(format!("this node has no executor `{kind}`"));
        };
        if !has_limits(&invocation.definition) {
            return executor.run(invocation).await;
        }
        // The future with timers is boxed, so that the task of an attempt without limits stays
        // small.
        Box::pin(self.run_limited(&**executor, invocation)).await
    }

    async fn run_limited(&self, executor: &dyn Executor, invocation: Invocation) -> Report {
        let (key, id) = (invocation.key, invocation.id);
        let definition = Arc::clone(&invocation.definition);
        let now = self.db_clock.now().max(invocation.started_at);
        let limits = limits_of(&definition, invocation.started_at, now);
        if limits.first() == Some(&(Duration::ZERO, Limit::Blackout)) {
            // The blackout began between the claim and the start of the attempt.
            log_limit(id, key.job_no, &definition, Limit::Blackout);
            return Report::cancelled(CancelReason::Blackout);
        }
        let mut body = executor.run(invocation);
        let mut before = Duration::ZERO;
        for (after, limit) in limits {
            tokio::select! {
                biased;
                report = &mut body => return report,
                () = tokio::time::sleep(after - before) => {}
            }
            before = after;
            log_limit(id, key.job_no, &definition, limit);
            match limit {
                Limit::Expected => {}
                Limit::Allowed => self.cancel(key, CancelReason::TooLong),
                Limit::Blackout => self.cancel(key, CancelReason::Blackout),
            }
        }
        body.await
    }
}

fn log_limit(id: AttemptId, job: JobNo, definition: &Definition, limit: Limit) {
    match (limit, definition.max_expected_duration) {
        (Limit::Expected, Some(expected)) => {
            warn!(
                run.id = %id,
                job.no = job.0,
                expected_ms = expected.as_millis(),
                allowed_ms = definition.max_allowed_duration.map(Span::as_millis),
                "run takes longer than its max_expected_duration; it continues until it ends or reaches max_allowed_duration"
            );
        }
        (Limit::Blackout, _) => {
            error!(run.id = %id, job.no = job.0, "blackout of the job begins; stopping its run");
        }
        (Limit::Expected | Limit::Allowed, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::blackout::Blackout;
    use evenkeel_core::schedule::{Once, Schedule};

    use super::*;

    fn job() -> Definition {
        Definition::noop(Schedule::Once(Once::NOW))
    }

    fn dark(start: i8, end: i8) -> Blackout {
        let hour = |hour| jiff::civil::time(hour, 0, 0, 0);
        Blackout { start: hour(start), end: hour(end) }
    }

    const NOON: Timestamp = Timestamp::from_micros(12 * 3600 * 1_000_000);

    #[test]
    fn job_without_limits_has_no_timers() {
        assert!(!has_limits(&job()));
        assert_eq!(limits_of(&job(), NOON, NOON), []);
    }

    #[test]
    fn limits_are_sorted_and_end_with_a_cancelling_one() {
        let job = Definition {
            max_expected_duration: Some(Span::from_secs(60)),
            max_allowed_duration: Some(Span::from_secs(2 * 3600)),
            blackout_periods: vec![dark(13, 14)],
            ..job()
        };
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        assert_eq!(
            limits_of(&job, NOON, NOON),
            [(minute, Limit::Expected), (hour, Limit::Blackout)]
        );
        let open = Definition { blackout_periods: Vec::new(), ..job };
        assert_eq!(
            limits_of(&open, NOON, NOON),
            [(minute, Limit::Expected), (2 * hour, Limit::Allowed)]
        );
    }

    #[test]
    fn body_that_begins_in_a_blackout_is_cancelled_at_once() {
        let job = Definition { blackout_periods: vec![dark(11, 14)], ..job() };
        let at_once = [(Duration::ZERO, Limit::Blackout)];
        assert_eq!(limits_of(&job, NOON, NOON), at_once);
        // The attempt was claimed before the blackout, but the answer to the claim arrived during
        // the blackout.
        let morning = Timestamp::from_micros(10 * 3600 * 1_000_000);
        assert_eq!(limits_of(&job, morning, NOON), at_once);
    }
}
