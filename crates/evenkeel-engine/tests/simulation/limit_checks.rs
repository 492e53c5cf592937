//! Checks that concurrency limits are never exceeded, and that no permit stays unused while a run
//! waits for it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::limit::Limits;
use evenkeel_core::{AttemptKey, JobNo};
use evenkeel_store_testkit::model::ModelStore;

use crate::checker::Evidence;

/// Interval of checking permits.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// Maximum number of checks in a row (2.5 s) that may find the same run waiting although a permit
/// is free.
const CHECKS_MAX: u32 = 25;

/// Records runs that keep waiting although a permit is free.
pub async fn watch_idle_permits(model: ModelStore, limits: Limits, idle: Arc<Mutex<Vec<String>>>) {
    let mut seen: BTreeMap<AttemptKey, u32> = BTreeMap::new();
    loop {
        tokio::time::sleep(CHECK_EVERY).await;
        let waiting = model.held_up_by_nothing(&limits);
        let again = waiting.into_iter().map(|run| (run, 1 + seen.get(&run).copied().unwrap_or(0)));
        seen = again.collect();
        let late = seen.iter().filter(|(_, checks)| **checks == CHECKS_MAX);
        let messages = late.map(|(run, _)| format!("{run:?} waits although a permit is free"));
        idle.lock().unwrap().extend(messages);
    }
}

/// Checks the number of simultaneous executions per concurrency key, per tenant and per lane in
/// true time.
pub fn limits_are_kept(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    let mut under: BTreeMap<JobNo, Vec<(&str, i64)>> = BTreeMap::new();
    for planned in evidence.plan {
        let definition = &planned.definition;
        let most = definition.key_limit().map(|limit| i64::from(limit.most));
        let of_key = definition.concurrency_key.as_deref().zip(most);
        let shared = evidence.scenario.shared_limits.map(|(tenant, lane)| {
            [("the tenant", i64::from(tenant)), ("the lane", i64::from(lane))]
        });
        let all = of_key.into_iter().chain(shared.into_iter().flatten());
        under.insert(planned.job, all.collect());
    }
    // If an execution ends when another starts, the end is counted first.
    let mut moments: Vec<(Duration, i64, &str, i64)> = Vec::new();
    for body in evidence.records {
        for (key, most) in under.get(&body.key.job_no).into_iter().flatten() {
            moments.push((body.began, 1, key, *most));
            moments.push((body.ended, -1, key, *most));
        }
    }
    moments.sort_unstable();
    let mut running: BTreeMap<&str, i64> = BTreeMap::new();
    for (at, change, key, most) in moments {
        let running = running.entry(key).or_default();
        *running += change;
        if change > 0 && *running > most {
            violations.push(format!("{running} runs of {key} at {at:?}, the limit is {most}"));
        }
    }
}
