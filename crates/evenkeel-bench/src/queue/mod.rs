//! Measures how fast attempts are claimed from a queue, at a given depth.
//!
//! The queue is filled with attempts of random priorities, through the store's method `fire`.
//! Several concurrent tasks claim and finish attempts from the filled queue, as workers do. If the
//! queue becomes empty before the measurement ends, it is filled again; the time to fill it does
//! not count. The number of jobs does not depend on the depth, so two measurements differ only in
//! the queue. Each job has at most one queued attempt.

mod fill;
mod report;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

pub(crate) async fn measure(bench: &mut Bench, load: &QueueLoad) -> anyhow::Result<QueueReport> {
    let clock = bench.clock();
    ensure!(
        load.pending <= load.jobs,
        "--pending must not be above --jobs: each job has one queued attempt"
    );
    let progress = bench.progress(load.jobs + load.pending, "queueing");
    let (target, sources, scope, _, _) = bench.parts();
    let (store, chance) = (Arc::clone(&target.store), Arc::clone(&sources.chance));
    let (kind, durability) = (target.kind.to_owned(), target.durability.clone());
    let node = join(&*store, &*chance).await?;
    let filler = QueueFiller {
        store: &*store,
        scope,
        chance: &*chance,
        node,
        progress: &progress,
        limits: load.limits,
        dedup: load.dedup,
    };
    let mut jobs = filler.register(load.jobs).await?;
    // The jobs are shuffled, so that neighbours in the queue are not neighbours in the tables.
    shuffle(&mut jobs, &*chance);
    let mut jobs = jobs.into_iter();
    let pending = usize::try_from(load.pending)?;
    filler.queue(jobs.by_ref().take(pending).collect()).await?;
    let now = store.now().await?;
    let first = claim(&*store, node, now, 1).await?;
    check_order(&first)?;
    finish(&*store, node, &first, now).await?;

    let claimers = Claimers {
        store: &store,
        clock: &clock,
        node,
        tasks: load.tasks.max(1),
        finishes: !load.unfinished,
    };
    let mut left = Duration::from_secs(load.seconds);
    let (mut took, mut claimed, mut queued) = (Duration::ZERO, 0, load.pending);
    loop {
        let round = claimers.claim_all(now, left).await?;
        (took, claimed) = (took + round.took, claimed + round.claimed);
        left = left.saturating_sub(round.took);
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
        store: kind,
        durability,
        jobs: load.jobs,
        pending: load.pending,
        tasks: load.tasks.max(1),
        limits: load.limits,
        claimed,
        left,
        seconds: took.as_secs_f64(),
        claims_per_second: claimed as f64 / took.as_secs_f64().max(0.001),
        first_in_order: first.len(),
        kept: None,
        dedup: load.dedup,
        unfinished: load.unfinished,
    })
}

fn shuffle<T>(items: &mut [T], chance: &dyn Chance) {
    for last in (1..items.len()).rev() {
        items.swap(last, (chance.bits() % (last as u64 + 1)) as usize);
    }
}

struct Claimers<'a> {
    store: &'a Arc<dyn Store>,
    clock: &'a Arc<dyn Clock>,
    node: NodeNo,
    tasks: usize,
    finishes: bool,
}

/// Results of claiming attempts until the queue is empty or the measurement time is over.
struct Round {
    took: Duration,
    claimed: u64,
}

impl Claimers<'_> {
    /// Claims attempts until the queue is empty or `most` has passed. Also finishes them, unless
    /// `unfinished`.
    async fn claim_all(&self, now: Timestamp, most: Duration) -> anyhow::Result<Round> {
        let (node, tasks, finishes) = (self.node, self.tasks, self.finishes);
        let began = self.clock.monotonic();
        let until = began + most;
        let claimed = Arc::new(AtomicU64::new(0));
        let tasks_running = (0..tasks).map(|_| {
            let (store, clock) = (Arc::clone(self.store), Arc::clone(self.clock));
            let claimed = Arc::clone(&claimed);
            tokio::spawn(async move {
                while clock.monotonic() < until {
                    let batch = claim(&*store, node, now, tasks).await?;
                    if batch.is_empty() {
                        // Releases attempts from the limit queue, as the node's upkeep loop does.
                        let terms = LimitTerms::default();
                        let step = ReleaseStep { after: None, limit: 1_000, terms, to_wider: true };
                        if store.release_all_limited(step, Now::At(now)).await?.moved == 0 {
                            break;
                        }
                    }
                    if finishes {
                        finish(&*store, node, &batch, now).await?;
                    }
                    claimed.fetch_add(batch.len() as u64, Ordering::Relaxed);
                }
                anyhow::Ok(())
            })
        });
        let tasks_running: Vec<_> = tasks_running.collect();
        for task in tasks_running {
            task.await.context("a claiming task panicked")??;
        }
        let took = self.clock.monotonic().saturating_sub(began);
        Ok(Round { took, claimed: claimed.load(Ordering::Relaxed) })
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

/// Claims one batch of attempts, like one of several workers.
async fn claim(
    store: &dyn Store,
    node: NodeNo,
    now: Timestamp,
    tasks: usize,
) -> anyhow::Result<Vec<ClaimedAttempt>> {
    let capacity = (store.batch_sizing().batch / tasks).max(1);
    let request = Claim {
        node,
        node_name: "bench".into(),
        pools: vec![DEFAULT_POOL.into()],
        capacity,
        guaranteed: Shares::default().of(capacity),
        aging: Aging::default(),
        limits: Limits::default(),
    };
    Ok(store.claim(&request, Now::At(now)).await?.attempts)
}

async fn finish(
    store: &dyn Store,
    node: NodeNo,
    batch: &[ClaimedAttempt],
    now: Timestamp,
) -> anyhow::Result<()> {
    let end = |attempt: &ClaimedAttempt| Finish {
        key: attempt.key,
        fence: attempt.fence,
        tenant: attempt.tenant,
        outcome: Outcome::Completed,
        started_at: now,
        finished_at: now,
        results: Results::default(),
        then: Then::EndRun { stop_job: false, next_at: None },
        priority: None,
        hook: evenkeel_store::Hook::None,
        attachments: Attachments::default(),
        judge: false,
        unstored_since: None,
    };
    let ends = batch.iter().map(end).collect();
    let results = store.finish(node, ends, DEFAULT_ALPHA).await?;
    ensure!(
        results.iter().all(|result| *result == FinishResult::Done),
        "the store refused to finish an attempt"
    );
    let permits = batch.iter().flat_map(|attempt| {
        attempt.permits.iter().map(|limit| Permit { limit: *limit, run: attempt.key })
    });
    let permits: Vec<Permit> = permits.collect();
    if !permits.is_empty() {
        store.release_limited(&permits, &LimitTerms::default(), Now::At(now)).await?;
    }
    Ok(())
}

/// Returns an error unless the first claimed attempts have the highest priorities, in descending
/// order.
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
