//! No more of a key run at once than may.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_core::JobNo;

use crate::checker::Evidence;

/// Counts the bodies of each key, as they began and ended in true time.
pub fn no_limit_is_exceeded(evidence: &Evidence<'_>, bad: &mut Vec<String>) {
    let keyed = evidence.plan.iter().filter_map(|planned| {
        let definition = &planned.definition;
        let most = definition.key_limit()?.most as i64;
        Some((planned.job, (definition.concurrency_key.as_deref()?, most)))
    });
    let keyed: BTreeMap<JobNo, (&str, i64)> = keyed.collect();
    // An end comes before a beginning at the same moment.
    let mut moments: Vec<(Duration, i64, &str, i64)> = Vec::new();
    for lived in evidence.book {
        if let Some((key, most)) = keyed.get(&lived.key.job_no) {
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
