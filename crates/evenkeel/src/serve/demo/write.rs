//! Writes the past of the sample jobs through the store, as a node does, by a clock of the past.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use evenkeel_core::lease::Fence;
use evenkeel_core::{NodeNo, Timestamp};
use evenkeel_store::{Finish, FinishResult, Fire, FireDelayed, FireResult, Now, Store, StoreError};
use tokio::task::JoinSet;

use super::past::Op;
use crate::failure::Because as _;
use crate::{Failure, Result};

const WHY: &str = "the past of the sample jobs can't be stored";

/// The node that has run the past.
pub struct Writer {
    pub store: Arc<dyn Store>,
    pub node: NodeNo,
    /// Weight of the newest duration in the average of a job.
    pub alpha: f64,
}

/// The results of the fires of these jobs.
type Fired = std::result::Result<Vec<(usize, FireResult)>, StoreError>;

impl Writer {
    /// Writes in rounds, each with the next operation of every job. The store commits the operations
    /// of a round together, so hundreds of jobs need few commits.
    pub async fn write(&self, mut jobs: Vec<VecDeque<Op>>) -> Result {
        let mut fences = vec![Fence::NONE; jobs.len()];
        loop {
            let next = jobs.iter_mut().enumerate();
            let round: Vec<(usize, Op)> =
                next.filter_map(|(job, ops)| Some((job, ops.pop_front()?))).collect();
            if round.is_empty() {
                return Ok(());
            }
            self.round(round, &mut fences).await?;
        }
    }

    async fn round(&self, round: Vec<(usize, Op)>, fences: &mut [Fence]) -> Result {
        let mut fires: BTreeMap<Timestamp, Vec<(usize, Fire)>> = BTreeMap::new();
        let mut retries: BTreeMap<Timestamp, Vec<(usize, FireDelayed)>> = BTreeMap::new();
        let mut ended: Vec<Finish> = Vec::new();
        for (job, op) in round {
            match op {
                Op::Fire(at, fire) => fires.entry(at).or_default().push((job, fire)),
                Op::Retry(at, fire) => retries.entry(at).or_default().push((job, fire)),
                Op::Finish(finish) => ended.push(Finish { fence: fences[job], ..finish }),
            }
        }
        let mut firing: JoinSet<Fired> = JoinSet::new();
        let node = self.node;
        for (at, batch) in fires {
            let store = Arc::clone(&self.store);
            let (jobs, fires): (Vec<usize>, Vec<Fire>) = batch.into_iter().unzip();
            firing.spawn(async move {
                let fired = store.fire(node, fires, Now::At(at)).await?;
                Ok(jobs.into_iter().zip(fired.results).collect())
            });
        }
        for (at, batch) in retries {
            let store = Arc::clone(&self.store);
            let (jobs, fires): (Vec<usize>, Vec<FireDelayed>) = batch.into_iter().unzip();
            firing.spawn(async move {
                let fired = store.fire_delayed(node, fires, Now::At(at)).await?;
                Ok(jobs.into_iter().zip(fired.results).collect())
            });
        }
        if !ended.is_empty() {
            let results = self.store.finish(node, ended, self.alpha).await.because(WHY)?;
            if results.iter().any(|result| *result != FinishResult::Done) {
                return Err(refused("a result"));
            }
        }
        for fired in firing.join_all().await {
            for (job, result) in fired.because(WHY)? {
                let FireResult::Fired(fence) = result else { return Err(refused("to fire")) };
                // A skipped time has no fence, and changes nothing about the active run.
                if fence != Fence::NONE {
                    fences[job] = fence;
                }
            }
        }
        Ok(())
    }
}

fn refused(what: &str) -> Failure {
    Failure::failed(format!("{WHY}: the store refused {what}"))
}
