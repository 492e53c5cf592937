//! Measures how fast attempts are claimed from a queue, at a given depth.
//!
//! The queue is filled with attempts of random priorities, through the store's method `fire`.
//! Several concurrent tasks claim and finish attempts from the filled queue, as workers do. If the
//! queue becomes empty before the measurement ends, it is filled again; the time to fill it does
//! not count. The number of jobs does not depend on the queue depth, so two measurements with
//! different queue depths differ only in the queue. Each job has at most one queued attempt.

mod fill;
mod report;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use evenkeel_core::aging::Aging;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::chance::Chance;
use evenkeel_core::history::DEFAULT_ALPHA;
use evenkeel_core::job::DEFAULT_POOL;
use evenkeel_core::limit::Limits;
use evenkeel_core::order::{Priority, Shares};
use evenkeel_core::{Definition, JobNo, NodeNo, Timestamp};
use evenkeel_engine::Clock;
use evenkeel_store::{
    Attachments, Claim, ClaimedAttempt, Finish, FinishResult, LimitTerms, NewNode, Now, Permit,
    ReleaseStep, Results, Roles, Store, Then,
};
use uuid::Uuid;

use crate::args::QueueLoad;
use crate::run::Bench;
use fill::QueueFiller;

pub use report::QueueReport;

pub(crate) async fn measure(bench: &Bench, load: &QueueLoad) -> anyhow::Result<QueueReport> {
    ensure!(
        load.pending <= load.jobs,
        "--pending must not be above --jobs: each job has one queued attempt"
    );
    let progress = bench.progress(load.jobs + load.pending, "queueing");
    let (store, chance) = (&bench.target.store, &*bench.sources.chance);
    let node = join(&**store, chance).await?;
    let QueueLoad { limits, dedup, .. } = *load;
    let filler = QueueFiller { registrar: bench.registrar(&progress), node, limits, dedup };
    let mut jobs = filler.register(load.jobs).await?;
    // The jobs are shuffled, so that attempts that are neighbours in the queue belong to jobs in
    // different parts of the job table.
    shuffle(&mut jobs, chance);
    let mut jobs = jobs.into_iter();
    let pending = usize::try_from(load.pending)?;
    filler.queue(jobs.by_ref().take(pending).collect()).await?;
    let (tasks, finishes) = (load.tasks.max(1), !load.unfinished);
    let (now, clock) = (store.now().await?, Arc::clone(&bench.sources.clock));
    let claimer = Claimer { store: Arc::clone(store), clock, node, now, tasks, finishes };
    let first = claimer.claim(1).await?;
    check_order(&first)?;
    claimer.finish(&first).await?;

    let mut left = Duration::from_secs(load.seconds);
    let (mut took, mut claimed, mut queued) = (Duration::ZERO, 0, load.pending);
    loop {
        let (round_took, claimed_now) = claimer.claim_all(left).await?;
        (took, claimed) = (took + round_took, claimed + claimed_now);
        left = left.saturating_sub(round_took);
        let next: Vec<JobNo> = jobs.by_ref().take(pending).collect();
        if left.is_zero() || next.len() < pending {
            break;
        }
        filler.queue(next).await?;
        queued += load.pending;
    }
    progress.finish_and_clear();
    let left = queued.saturating_sub(claimed + first.len() as u64);
    let census = store.census().await?;
    ensure!(census.ready == left, "{} attempts are queued instead of {left}", census.ready);
    Ok(QueueReport {
        store: bench.target.kind.into(),
        durability: bench.target.durability.clone(),
        jobs: load.jobs,
        pending: load.pending,
        tasks,
        limits,
        claimed,
        left,
        seconds: took.as_secs_f64(),
        claims_per_second: claimed as f64 / took.as_secs_f64().max(0.001),
        first_in_order: first.len(),
        kept: None,
        dedup,
        unfinished: load.unfinished,
    })
}

fn shuffle<T>(items: &mut [T], chance: &dyn Chance) {
    for last in (1..items.len()).rev() {
        items.swap(last, (chance.bits() % (last as u64 + 1)) as usize);
    }
}

#[derive(Clone)]
struct Claimer {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    node: NodeNo,
    /// The fixed current time that is passed to all calls of the store.
    now: Timestamp,
    /// Number of tasks that claim concurrently.
    tasks: usize,
    finishes: bool,
}

impl Claimer {
    /// Claims attempts until the queue is empty or the duration `most` has passed. Also finishes
    /// the claimed attempts, if `finishes`. Returns the time that claiming took and the number of
    /// claimed attempts.
    async fn claim_all(&self, most: Duration) -> anyhow::Result<(Duration, u64)> {
        let began = self.clock.monotonic();
        let running = (0..self.tasks).map(|_| {
            let claimer = self.clone();
            tokio::spawn(async move { claimer.claim_until(began + most).await })
        });
        let mut claimed = 0;
        for task in running.collect::<Vec<_>>() {
            claimed += task.await.context("a claiming task panicked")??;
        }
        Ok((self.clock.monotonic().saturating_sub(began), claimed))
    }

    async fn claim_until(&self, until: Duration) -> anyhow::Result<u64> {
        let mut claimed = 0;
        while self.clock.monotonic() < until {
            let batch = self.claim(self.tasks).await?;
            if batch.is_empty() {
                // Releases attempts from the limit queue, as the node's upkeep loop does.
                let terms = LimitTerms::default();
                let step = ReleaseStep { after: None, limit: 1_000, terms, to_wider: true };
                if self.store.release_all_limited(step, Now::At(self.now)).await?.moved == 0 {
                    break;
                }
            }
            if self.finishes {
                self.finish(&batch).await?;
            }
            claimed += batch.len() as u64;
        }
        Ok(claimed)
    }

    /// Claims one batch of attempts: the store's batch size divided by the number of tasks.
    async fn claim(&self, tasks: usize) -> anyhow::Result<Vec<ClaimedAttempt>> {
        let capacity = (self.store.batch_sizing().batch / tasks).max(1);
        let request = Claim {
            node: self.node,
            node_name: "bench".into(),
            pools: vec![DEFAULT_POOL.into()],
            capacity,
            guaranteed: Shares::default().of(capacity),
            aging: Aging::default(),
            limits: Limits::default(),
        };
        Ok(self.store.claim(&request, Now::At(self.now)).await?.attempts)
    }

    async fn finish(&self, batch: &[ClaimedAttempt]) -> anyhow::Result<()> {
        let end = |attempt: &ClaimedAttempt| Finish {
            key: attempt.key,
            fence: attempt.fence,
            tenant: attempt.tenant,
            outcome: Outcome::Completed,
            started_at: self.now,
            finished_at: self.now,
            results: Results::default(),
            then: Then::EndRun { stop_job: false, next_at: None },
            priority: None,
            hook: evenkeel_store::Hook::None,
            attachments: Attachments::default(),
            judge: false,
            unstored_since: None,
        };
        let ends = batch.iter().map(end).collect();
        let results = self.store.finish(self.node, ends, DEFAULT_ALPHA).await?;
        ensure!(
            results.iter().all(|result| *result == FinishResult::Done),
            "the store refused to finish an attempt"
        );
        let permits = batch.iter().flat_map(|attempt| {
            attempt.permits.iter().map(|limit| Permit { limit: *limit, run: attempt.key })
        });
        let permits: Vec<Permit> = permits.collect();
        if !permits.is_empty() {
            let terms = LimitTerms::default();
            self.store.release_limited(&permits, &terms, Now::At(self.now)).await?;
        }
        Ok(())
    }
}

async fn join(store: &dyn Store, chance: &dyn Chance) -> anyhow::Result<NodeNo> {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&chance.bits().to_be_bytes());
    let node = NewNode {
        identity: Uuid::new_v8(bytes),
        name: "bench".into(),
        roles: Roles::ALL,
        pools: vec!["default".into()],
    };
    Ok(store.join(&node, Now::Database).await?.node)
}

/// Returns an error unless the priorities of the first claimed attempts are in descending order.
fn check_order(first: &[ClaimedAttempt]) -> anyhow::Result<()> {
    let priorities = first.iter().map(|attempt| {
        let definition: Definition = serde_json::from_str(&attempt.definition)?;
        Ok(definition.priority)
    });
    let priorities = priorities.collect::<anyhow::Result<Vec<Priority>>>()?;
    ensure!(
        priorities.is_sorted_by(|one, next| one >= next),
        "the first claimed attempts are not in the order of their priorities"
    );
    Ok(())
}
