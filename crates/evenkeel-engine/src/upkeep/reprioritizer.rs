//! Lets what waits already wait as this node's settings say, on one node of all.
//!
//! Where an attempt stands among those that have waited is written down when it comes into the
//! queue. Settings change when a node is started anew; so whenever members have come or gone, the
//! queue is gone through once.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_core::aging::Aging;
use evenkeel_core::{AttemptKey, NodeNo};
use evenkeel_store::{Store, StoreError};
use tracing::info;

use crate::cluster::node_context::NodeContext;
use crate::cluster::store_health::log_trouble;

/// Attempts that are looked at in one go.
const STEP: u32 = 1000;
/// Between two steps that had something to change, so that claims never wait.
const PAUSE: Duration = Duration::from_millis(5);

/// Whether members have come or gone is looked at this often, in polls.
const POLLS_A_LOOK: u32 = 10;

/// Goes through the queue.
pub struct Reprioritizer {
    store: Arc<dyn Store>,
    aging: Aging,
    at: Option<AttemptKey>,
    changed: u64,
    missed: u64,
}

impl Reprioritizer {
    /// Through the queue of a store.
    pub fn new(store: Arc<dyn Store>, aging: Aging) -> Self {
        Self { store, aging, at: None, changed: 0, missed: 0 }
    }

    /// Goes one step further. Says whether the end was reached, with nothing left to do.
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
            info!(runs.count = changed, "{changed} runs that wait rise as is set now");
        }
        Ok(if std::mem::take(&mut self.missed) > 0 { Step::Missed } else { Step::Done })
    }

    /// Runs until the node stops.
    pub async fn run(mut self, ctx: Arc<NodeContext>) {
        let mut done_for: Option<Vec<NodeNo>> = None;
        let mut wait = ctx.settings.poll;
        while ctx.pause(wait).await {
            let members: Vec<NodeNo> =
                ctx.members.borrow().iter().map(|member| member.node).collect();
            wait = ctx.settings.poll * POLLS_A_LOOK;
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
                    log_trouble(&error, "recomputing priorities failed; will retry");
                }
            }
        }
    }
}

/// What a step did.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// All it looked at was as it should be; there is more.
    Looked,
    /// Something was changed; there is more.
    Changed,
    /// The end was reached, but somebody was busy with some: it begins anew.
    Missed,
    /// The end was reached.
    Done,
}
