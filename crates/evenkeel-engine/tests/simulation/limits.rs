//! No more run at once than may, and no place stands idle that somebody waits for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::limit::Limits;
use evenkeel_core::{AttemptKey, JobNo};
use evenkeel_store_testkit::model::ModelStore;

use crate::checker::Evidence;

/// Places are looked at this often,
const LOOK: Duration = Duration::from_millis(100);
/// and so many looks in a row, somebody who could start may be found waiting: two seconds and a bit.
const LOOKS: u32 = 25;

/// Writes down who waits for places that are there.
pub async fn watch_places(model: ModelStore, limits: Limits, idle: Arc<Mutex<Vec<String>>>) {
    let mut seen: BTreeMap<AttemptKey, u32> = BTreeMap::new();
    loop {
        tokio::time::sleep(LOOK).await;
        let waiting = model.held_up_by_nothing(&limits);
        let again = waiting.into_iter().map(|run| (run, 1 + seen.get(&run).copied().unwrap_or(0)));
        seen = again.collect();
        let late = seen.iter().filter(|(_, looks)| **looks == LOOKS);
        let told = late.map(|(run, _)| format!("{run:?} waits for a place while there are some"));
        idle.lock().unwrap().extend(told);
    }
}

/// Counts the bodies of each key, of the tenant and of the lane, as they began and ended in true time.
pub fn no_limit_is_exceeded(evidence: &Evidence<'_>, bad: &mut Vec<String>) {
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
    // An end comes before a beginning at the same moment.
    let mut moments: Vec<(Duration, i64, &str, i64)> = Vec::new();
    for lived in evidence.book {
        for (key, most) in under.get(&lived.key.job_no).into_iter().flatten() {
            moments.push((lived.began, 1, key, *most));
            moments.push((lived.ended, -1, key, *most));
        }
    }
    moments.sort_unstable();
    let mut running: BTreeMap<&str, i64> = BTreeMap::new();
    for (at, change, key, most) in moments {
        let running = running.entry(key).or_default();
        *running += change;
        if change > 0 && *running > most {
            bad.push(format!("{running} of {key} run at {at:?}, and {most} may"));
        }
    }
}
