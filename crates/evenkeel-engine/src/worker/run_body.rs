//! Runs a body within the limits of its job.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::{AttemptId, Definition, JobNo, Timestamp};
use evenkeel_executors::{CancelReason, Executor, Invocation, Report};
use tracing::{error, warn};

use super::Worker;

/// What happens to a body that goes on for too long.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Limit {
    /// It is told in the log.
    Expected,
    /// It is ended.
    Allowed,
    /// It is ended: a blackout of its job begins.
    Blackout,
}

/// Has the job any limit? Most have none, and pay nothing for those that have.
fn has_limits(definition: &Definition) -> bool {
    definition.max_expected_duration.is_some()
        || definition.max_allowed_duration.is_some()
        || !definition.blackout_periods.is_empty()
}

/// When a body of an attempt that was claimed at `started_at` and begins at `now` meets which limit,
/// soonest first, up to its end.
fn limits_of(
    definition: &Definition,
    started_at: Timestamp,
    now: Timestamp,
) -> Vec<(Duration, Limit)> {
    let dark = !definition.blackout_periods.is_empty();
    let closing = dark.then(|| definition.blackouts().closing(started_at)).flatten();
    let limits = [
        // At one moment the blackout goes first: it says more.
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
        // Apart, so that the task of a body without limits is not larger for them.
        Box::pin(self.run_limited(&**executor, invocation)).await
    }

    async fn run_limited(&self, executor: &dyn Executor, invocation: Invocation) -> Report {
        let (key, id) = (invocation.key, invocation.id);
        let definition = Arc::clone(&invocation.definition);
        let now = self.db_clock.now().max(invocation.started_at);
        let limits = limits_of(&definition, invocation.started_at, now);
        if limits.first() == Some(&(Duration::ZERO, Limit::Blackout)) {
            // It began between the decision to start and the start.
            tell(id, key.job_no, &definition, Limit::Blackout);
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
            tell(id, key.job_no, &definition, limit);
            match limit {
                Limit::Expected => {}
                Limit::Allowed => self.cancel(key, CancelReason::TooLong),
                Limit::Blackout => self.cancel(key, CancelReason::Blackout),
            }
        }
        body.await
    }
}

fn tell(id: AttemptId, job: JobNo, definition: &Definition, limit: Limit) {
    match (limit, definition.max_expected_duration) {
        (Limit::Expected, Some(expected)) => {
            let allowed = definition.max_allowed_duration;
            let allowed = allowed.map_or("any time".to_owned(), |allowed| allowed.to_string());
            warn!(
                run.id = %id,
                job.no = job.0,
                "a run of job {job} goes on for longer than the {expected} expected; {allowed} is \
                 allowed"
            );
        }
        (Limit::Blackout, _) => {
            error!(run.id = %id, job.no = job.0, "a blackout of job {job} ends its run");
        }
        (Limit::Expected | Limit::Allowed, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::Span;
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
    fn a_job_without_limits_has_none() {
        assert!(!has_limits(&job()));
        assert_eq!(limits_of(&job(), NOON, NOON), []);
    }

    #[test]
    fn limits_come_in_order_and_none_after_the_end() {
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
    fn what_begins_in_a_blackout_is_ended_at_once() {
        let job = Definition { blackout_periods: vec![dark(11, 14)], ..job() };
        let at_once = [(Duration::ZERO, Limit::Blackout)];
        assert_eq!(limits_of(&job, NOON, NOON), at_once);
        // The answer to its claim came late.
        let morning = Timestamp::from_micros(10 * 3600 * 1_000_000);
        assert_eq!(limits_of(&job, morning, NOON), at_once);
    }
}
