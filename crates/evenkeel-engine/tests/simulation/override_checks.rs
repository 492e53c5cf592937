//! Checks that overridden outcomes are kept, and that running attempts whose outcome was overridden
//! are cancelled.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_core::AttemptKey;
use evenkeel_store::Attempt;

use crate::body::BodyRecord;
use crate::checker::Evidence;
use crate::world::Override;

/// Maximum time from an override until the attempt stops running, without faults.
const BY_MESSAGE: Duration = Duration::from_secs(1);
/// Maximum time from an override until the attempt stops running, if messages get lost. If the
/// message about the override is lost, the reconciler cancels the attempt, or the node's lease
/// ends.
const BY_RECONCILER: Duration = Duration::from_secs(15);

/// I8: the store keeps the overridden outcome, and the run does not start again.
pub fn overrides_hold(evidence: &Evidence<'_>, runs: &[Attempt], violations: &mut Vec<String>) {
    let stored: BTreeMap<AttemptKey, &Attempt> = runs.iter().map(|run| (run.key, run)).collect();
    let ended = evidence.overrides.iter().filter_map(|change| Some((change, change.end?)));
    for (change, (status, fence)) in ended {
        let is = stored.get(&change.key).map(|run| (run.status, run.fence.0));
        if is != Some((status, fence)) {
            violations.push(format!("I8: {change:?} was acknowledged, but {is:?} is stored"));
        }
        let of_run = |body: &&BodyRecord| body.key.first_attempt() == change.key.first_attempt();
        let later = |body: &&BodyRecord| {
            body.key.attempt > change.key.attempt
                || body.key.attempt == change.key.attempt && body.fence >= fence
        };
        for body in evidence.records.iter().filter(of_run).filter(later) {
            violations.push(format!("I8: {body:?} began after {change:?}"));
        }
    }
}

/// Running attempts stop soon after their outcome was overridden.
pub fn overridden_bodies_end(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    let faults = evidence.scenario.faults;
    let no_faults = !faults.delay_changes() && !faults.time;
    let soon = if no_faults { BY_MESSAGE } else { BY_RECONCILER };
    for body in evidence.records {
        let late =
            fence_ended_at(evidence.overrides, body).is_some_and(|at| body.ended > at + soon);
        if late {
            violations.push(format!("{body:?} still runs although its outcome was overridden"));
        }
    }
}

/// Returns the time at which an override made the fence of an execution invalid.
pub fn fence_ended_at(overrides: &[Override], body: &BodyRecord) -> Option<Duration> {
    let about =
        |change: &&Override| change.key == body.key && change.ended_fence == Some(body.fence);
    overrides.iter().find(about).map(|change| change.at)
}

/// Returns the time at which an execution ended or its outcome was overridden, whichever is
/// earlier.
pub fn may_run_until(overrides: &[Override], body: &BodyRecord) -> Duration {
    fence_ended_at(overrides, body).map_or(body.ended, |at| body.ended.min(at))
}
