//! Recomputes the rank of queued attempts after the aging settings change, on one node of the
//! cluster.
//!
//! When an attempt is queued, the store uses the aging settings to compute when the rank of the
//! attempt will rise. Settings change only when a node restarts, so the ranks of the whole queue
//! are recomputed whenever the cluster members change.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::aging::Aging;
use evenkeel_core::{AttemptKey, NodeNo};
use evenkeel_store::{Store, StoreError};
use tracing::info;

use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;

/// Attempts per step.
const STEP: u32 = 1000;
/// Delay after a step that changed ranks, so that claims never wait for the reprioritizer.
const PAUSE: Duration = Duration::from_millis(5);

/// Number of poll intervals between two checks for changed cluster members.
const POLLS_PER_CHECK: u32 = 10;

pub struct Reprioritizer {
    store: Arc<dyn Store>,
    aging: Aging,
    at: Option<AttemptKey>,
    changed: u64,
    missed: u64,
}

impl Reprioritizer {
    pub fn new(store: Arc<dyn Store>, aging: Aging) -> Self {
        Self { store, aging, at: None, changed: 0, missed: 0 }
    }

    /// Processes the next attempts.
    pub async fn run_once(&mut self) -> Result<Step, StoreError> {
        let step = self.store.reprioritize(self.aging, self.at, STEP).await?;
        self.at = step.next;
        self.changed += step.changed;
        self.missed += step.missed;
        if self.at.is_some() {
            return Ok(if step.changed > 0 { Step::Changed } else { Step::Looked });
        }
        let changed = std::mem::take(&mut self.changed);
        if changed > 0 {
            info!(
                runs.count = changed,
                "recomputed the priority of queued attempts after a change of the aging settings"
            );
        }
        Ok(if std::mem::take(&mut self.missed) > 0 { Step::Missed } else { Step::Done })
    }

    pub async fn run(mut self, ctx: Arc<NodeContext>) {
        let mut done_for: Option<Vec<NodeNo>> = None;
        let mut wait = ctx.settings.poll;
        while ctx.pause(wait).await {
            let members: Vec<NodeNo> =
                ctx.members.borrow().iter().map(|member| member.node).collect();
            wait = ctx.settings.poll * POLLS_PER_CHECK;
            if done_for.as_ref() == Some(&members) {
                continue;
            }
            if !ctx.is_housekeeper() {
                done_for = None;
                continue;
            }
            match self.run_once().await {
                Ok(Step::Done) => done_for = Some(members),
                Ok(Step::Missed) => {}
                Ok(Step::Changed) => wait = PAUSE,
                Ok(Step::Looked) => wait = Duration::ZERO,
                Err(error) => {
                    log_trouble(&error, "recomputing priorities in the queue failed; will retry");
                }
            }
        }
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// The ranks of all attempts that this step checked were right, and more attempts follow.
    Looked,
    /// This step changed the ranks of some attempts, and more attempts follow.
    Changed,
    /// All attempts were processed, but some were locked, so the loop starts again.
    Missed,
    /// All attempts are processed.
    Done,
}
