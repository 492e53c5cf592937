//! How fast attempts are claimed from a queue, however deep it is.
//!
//! The queue is filled through the store's own verb, with attempts of random priorities. Then several
//! tasks claim and finish, as workers do. A queue that is empty before the time is over is filled
//! again, which does not count. The number of jobs is the same whatever the depth, so that two
//! measurements differ in the queue alone; of each job one attempt waits at most.

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

use crate::run::Bench;
use fill::Filling;

pub use report::QueueReport;

/// What is asked for.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Amounts {
    /// Registered jobs.
    pub(crate) jobs: u64,
    /// Attempts that wait when the measurement begins.
    pub(crate) pending: u64,
    /// Tasks that claim.
    pub(crate) tasks: usize,
    /// For this long at most.
    pub(crate) seconds: u64,
    /// Are they under limits?
    pub(crate) limits: bool,
    /// With keys.
    pub(crate) dedup: bool,
    /// What was claimed goes on.
    pub(crate) unfinished: bool,
}

/// Measures.
pub(crate) async fn measure(bench: &mut Bench, amounts: &Amounts) -> anyhow::Result<QueueReport> {
    let clock = bench.clock();
    ensure!(amounts.pending <= amounts.jobs, "each job waits once: give at least as many --jobs");
    let progress = bench.progress(amounts.jobs + amounts.pending, "queueing");
    let (target, sources, scope, _, _) = bench.parts();
    let (store, chance) = (Arc::clone(&target.store), Arc::clone(&sources.chance));
    let (kind, durability) = (target.kind.to_owned(), target.durability.clone());
    let node = join(&*store, &*chance).await?;
    let filling = Filling {
        store: &*store,
        scope,
        chance: &*chance,
        node,
        progress: &progress,
        limits: amounts.limits,
        dedup: amounts.dedup,
    };
    let mut jobs = filling.register(amounts.jobs).await?;
    // Neighbours in the queue are no neighbours in the tables, whatever the depth.
    shuffle(&mut jobs, &*chance);
    let mut jobs = jobs.into_iter();
    let pending = usize::try_from(amounts.pending)?;
    filling.queue(jobs.by_ref().take(pending).collect()).await?;
    let now = store.now().await?;
    let first = claim(&*store, node, now, 1).await?;
    check_order(&first)?;
    finish(&*store, node, &first, now).await?;

    let work = Work {
        store: &store,
        clock: &clock,
        node,
        tasks: amounts.tasks.max(1),
        finishes: !amounts.unfinished,
    };
    let mut left = Duration::from_secs(amounts.seconds);
    let (mut took, mut claimed, mut queued) = (Duration::ZERO, 0, amounts.pending);
    loop {
        let round = work.claim_all(now, left).await?;
        (took, claimed) = (took + round.took, claimed + round.claimed);
        left = left.saturating_sub(round.took);
        let next: Vec<JobNo> = jobs.by_ref().take(pending).collect();
        if left.is_zero() || next.len() < pending {
            break;
        }
        filling.queue(next).await?;
        queued += amounts.pending;
    }
    progress.finish_and_clear();
    let left = queued.saturating_sub(claimed + first.len() as u64);
    let census = store.census().await?;
    ensure!(census.ready == left, "{} wait, and {left} should", census.ready);
    Ok(QueueReport {
        store: kind,
        durability,
        jobs: amounts.jobs,
        pending: amounts.pending,
        tasks: amounts.tasks.max(1),
        limits: amounts.limits,
        claimed,
        left,
        seconds: took.as_secs_f64(),
        claims_per_second: claimed as f64 / took.as_secs_f64().max(0.001),
        first_in_order: first.len(),
        kept: None,
        dedup: amounts.dedup,
        unfinished: amounts.unfinished,
    })
}

fn shuffle<T>(items: &mut [T], chance: &dyn Chance) {
    for last in (1..items.len()).rev() {
        items.swap(last, (chance.bits() % (last as u64 + 1)) as usize);
    }
}

/// Those that claim.
struct Work<'a> {
    store: &'a Arc<dyn Store>,
    clock: &'a Arc<dyn Clock>,
    node: NodeNo,
    tasks: usize,
    finishes: bool,
}

/// What they did at a stretch.
struct Round {
    took: Duration,
    claimed: u64,
}

impl Work<'_> {
    /// Claims, and mostly finishes, until nothing is left, or for so long.
    async fn claim_all(&self, now: Timestamp, most: Duration) -> anyhow::Result<Round> {
        let (node, tasks, finishes) = (self.node, self.tasks, self.finishes);
        let began = self.clock.monotonic();
        let until = began + most;
        let claimed = Arc::new(AtomicU64::new(0));
        let work = (0..tasks).map(|_| {
            let (store, clock) = (Arc::clone(self.store), Arc::clone(self.clock));
            let claimed = Arc::clone(&claimed);
            tokio::spawn(async move {
                while clock.monotonic() < until {
                    let batch = claim(&*store, node, now, tasks).await?;
                    if batch.is_empty() {
                        // What waits for places is brought back, as by whoever keeps house.
                        let terms = LimitTerms::default();
                        let rooms =
                            ReleaseStep { after: None, limit: 1_000, terms, to_wider: true };
                        if store.release_all_limited(rooms, Now::At(now)).await?.moved == 0 {
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
        let work: Vec<_> = work.collect();
        for task in work {
            task.await.context("a task that claims failed")??;
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

/// A batch such as a worker takes, for one of several.
async fn claim(
    store: &dyn Store,
    node: NodeNo,
    now: Timestamp,
    tasks: usize,
) -> anyhow::Result<Vec<ClaimedAttempt>> {
    let room = (store.batch_sizing().batch / tasks).max(1);
    let wanted = Claim {
        node,
        node_name: "bench".into(),
        pools: vec![DEFAULT_POOL.into()],
        capacity: room,
        guaranteed: Shares::default().of(room),
        aging: Aging::default(),
        limits: Limits::default(),
    };
    Ok(store.claim(&wanted, Now::At(now)).await?.attempts)
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
    ensure!(results.iter().all(|result| *result == FinishResult::Done), "an end was refused");
    let places = batch.iter().flat_map(|attempt| {
        attempt.permits.iter().map(|limit| Permit { limit: *limit, run: attempt.key })
    });
    let places: Vec<Permit> = places.collect();
    if !places.is_empty() {
        store.release_limited(&places, &LimitTerms::default(), Now::At(now)).await?;
    }
    Ok(())
}

/// Those that came first are of the highest priorities, highest first.
fn check_order(first: &[ClaimedAttempt]) -> anyhow::Result<()> {
    let priorities = first.iter().map(|attempt| {
        let definition: Definition = serde_json::from_str(&attempt.definition)?;
        Ok(definition.priority)
    });
    let priorities = priorities.collect::<anyhow::Result<Vec<Priority>>>()?;
    ensure!(priorities.is_sorted_by(|one, next| one >= next), "the first are not in order");
    Ok(())
}
