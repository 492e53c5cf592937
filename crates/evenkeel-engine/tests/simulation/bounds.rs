//! The model finds a node's attempts wherever they are; a database searches from the bound that the
//! node announced. This makes the model as blind as a database is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use evenkeel_core::{AttemptKey, NodeNo, Timestamp};
use evenkeel_store::{Fire, LongAttempt, OwnedAttempt, Start};

#[derive(Default)]
struct Bound {
    oldest_open: Timestamp,
    /// The oldest that was given to the node since its last ping.
    reached_back_to: Option<Timestamp>,
    long_runs: BTreeSet<AttemptKey>,
}

/// What each node announced.
#[derive(Default)]
pub struct Bounds(Mutex<BTreeMap<NodeNo, Bound>>);

impl Bounds {
    /// A ping has come through.
    pub fn pinged(&self, node: NodeNo, announced: Option<Timestamp>, long_runs: &[LongAttempt]) {
        let mut all = self.0.lock().unwrap();
        let bound = all.entry(node).or_default();
        if let Some(announced) = announced {
            let reached = bound.reached_back_to.take().unwrap_or(announced);
            bound.oldest_open = announced.min(reached);
        }
        bound.long_runs = long_runs.iter().map(|run| run.key).collect();
    }

    /// Attempts were given to a node.
    pub fn gave(&self, node: NodeNo, times: impl IntoIterator<Item = Timestamp>) {
        let Some(oldest) = times.into_iter().min() else { return };
        let mut all = self.0.lock().unwrap();
        let bound = all.entry(node).or_default();
        bound.oldest_open = bound.oldest_open.min(oldest);
        bound.reached_back_to = Some(bound.reached_back_to.map_or(oldest, |old| old.min(oldest)));
    }

    /// What a search from the bound finds.
    pub fn found(&self, node: NodeNo, owned: Vec<OwnedAttempt>) -> Vec<OwnedAttempt> {
        let all = self.0.lock().unwrap();
        let Some(bound) = all.get(&node) else { return owned };
        let visible = |key: AttemptKey| {
            key.scheduled_at >= bound.oldest_open || bound.long_runs.contains(&key)
        };
        owned.into_iter().filter(|owned| visible(owned.key)).collect()
    }
}

/// The times of what a batch starts at once.
pub fn claimed_times(batch: &[Fire]) -> Vec<Timestamp> {
    let claimed = |fire: &Fire| match fire.start {
        Some((at, Start::Claimed)) => Some(at),
        _ => None,
    };
    batch.iter().filter_map(claimed).collect()
}
