//! Sample data: 500 jobs of a retailer with their past, for `serve --demo`.
//!
//! - `families` and `notable` are the jobs, as documents of the API; `words` are the names in them.
//! - `register` stores the jobs as of the past, and the balance scores since then. `past` computes
//!   their runs, `write` stores these runs, and `tally` counts the activity. `extras` adds targets,
//!   crawled pages and pauses.
//!
//! The content is always the same, up to the time of the start. It is written through the store's
//! operations only, before the engine starts, so that no node fires jobs of the past.

mod extras;
mod families;
mod notable;
mod past;
mod register;
mod sample;
mod tally;
#[cfg(test)]
mod tests;
mod words;
mod write;

use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::DEFAULT_TENANT;
use evenkeel_commands::ExecutorCheck;
use evenkeel_core::chance::Chance;
use evenkeel_core::{JobId, Timestamp};
use evenkeel_executors::Registry;
use evenkeel_store::{
    JobFilter, JobSort, Member, NewNode, NodeState, Now, PageRequest, Role, Roles, Scope, Store,
};
use uuid::Uuid;

use super::executors::Checks;
use crate::config::{ServeConfig, StoreChoice};
use crate::failure::Because as _;
use crate::{Failure, Result};
use past::Past;
use register::Registrar;
use sample::{Sample, Story};
use write::Writer;

/// Worker pools of the sample jobs. The pool `gpu` has no worker on purpose.
const POOLS: [&str; 2] = ["crawl", "reports"];
/// A stop waits at most this long, because the runs only sleep.
const DRAIN_GRACE: Duration = Duration::from_secs(2);
/// The setting of the store that says when the sample jobs were created.
const FILLED: &str = "demo-filled-at";
/// The metadata of all sample jobs.
const LABEL: (&str, &str) = ("demo", "true");

/// Returns the arguments of `evenkeel` that remove all sample jobs.
pub fn removal() -> String {
    format!("job delete --all --metadata {}={} --yes", LABEL.0, LABEL.1)
}

/// With `--demo`, adds the pools of the sample jobs to those of this node, and does not wait for
/// long runs when the server stops.
pub fn adapted(mut config: ServeConfig) -> ServeConfig {
    if config.demo {
        config.drain_grace = config.drain_grace.min(DRAIN_GRACE);
        config.pools.extend(POOLS.map(str::to_owned));
        config.pools.sort();
        config.pools.dedup();
    }
    config
}

/// Fills an empty store with the sample jobs and their past. A store that holds sample jobs, or held
/// them, stays as it is.
pub async fn fill_once(
    config: &ServeConfig,
    store: &Arc<dyn Store>,
    registry: &Arc<Registry>,
    chance: &dyn Chance,
) -> Result {
    let tenant = store.tenant(DEFAULT_TENANT).await.because("the store failed")?;
    let scope = Scope { tenant, role: Role::Admin };
    if store.all_job_counts().await.because("the store failed")?.total > 0 {
        return if has_samples(&**store, &scope).await? { Ok(()) } else { Err(not_empty(config)) };
    }
    let (now, members) = store.members().await.because("the store failed")?;
    let silent_after = config.leases.silent_after;
    let is_alive = |member: &&Member| {
        member.state == NodeState::Live && now.since(member.last_ping_at) < silent_after
    };
    if let Some(other) = members.iter().find(is_alive) {
        let what =
            format!("--demo can't fill {}: the node {} runs on it", config.store, other.name);
        return Err(Failure::failed(what).or_else("stop that node first, or use another store"));
    }
    let stamp = now.to_string();
    let filled_at = store.setting(FILLED, &stamp).await.because("the store failed")?;
    if filled_at != stamp {
        tracing::info!(
            demo.filled_at = filled_at,
            "the sample jobs of --demo were removed from this store; they are not created again"
        );
        return Ok(());
    }
    let executors = Checks(Arc::clone(registry));
    let demo = Demo { config, store, scope, executors: &executors, chance };
    let jobs = demo.fill(now).await?;
    tracing::info!(jobs.count = jobs, "created the sample jobs of the demo");
    Ok(())
}

async fn has_samples(store: &dyn Store, scope: &Scope) -> Result<bool> {
    let metadata = vec![(LABEL.0.to_owned(), LABEL.1.to_owned())];
    let filter = JobFilter { metadata, ..JobFilter::default() };
    let found = store.list_jobs(scope, &filter, JobSort::default(), PageRequest::first(1)).await;
    Ok(!found.because("the store failed")?.items.is_empty())
}

fn not_empty(config: &ServeConfig) -> Failure {
    let what = format!("--demo needs an empty store, but {} holds other jobs", config.store);
    let way_out = if config.store == StoreChoice::in_dir(&config.data_dir) {
        "leave --demo out, or start in another folder, for example with --data-dir demo-data"
    } else {
        "leave --demo out, or use an empty database"
    };
    Failure::failed(what).or_else(way_out)
}

/// Returns the sample jobs. The list of jobs begins with those that show something.
fn samples(now: Timestamp) -> Vec<Sample> {
    [notable::all(now), families::all()].concat()
}

struct Demo<'a> {
    config: &'a ServeConfig,
    store: &'a Arc<dyn Store>,
    scope: Scope,
    executors: &'a dyn ExecutorCheck,
    chance: &'a dyn Chance,
}

impl Demo<'_> {
    /// Returns the number of jobs.
    async fn fill(&self, now: Timestamp) -> Result<usize> {
        let Self { config, scope, .. } = *self;
        let store = &**self.store;
        // Times that count from the start of the server look better in whole seconds.
        let second =
            Timestamp::from_micros(now.as_micros() - now.as_micros().rem_euclid(1_000_000));
        extras::create_targets(self.store, scope, second).await?;
        let registrar = Registrar {
            store: self.store,
            scope,
            executors: self.executors,
            chance: self.chance,
            balance: config.balance,
            now: second,
        };
        let placed = registrar.register(samples(second)).await?;
        let jobs: Vec<(JobId, Story)> = placed.iter().map(|job| (job.id, job.story)).collect();
        extras::save_pages(store, &scope, &placed, second).await?;

        // The node that runs the past has left before this server joins.
        let identity = Uuid::from_u64_pair(self.chance.bits(), self.chance.bits());
        let name = config.node_name.clone();
        let node = NewNode { name, identity, roles: Roles::ALL, pools: config.pools.clone() };
        let joined = now.saturating_sub(register::PAST);
        let node = store.join(&node, Now::At(joined)).await.because("the store failed")?.node;
        let (runs, tally) = Past::new(scope.tenant, config.queue.aging, placed, now).play();
        let alpha = config.average_alpha;
        Writer { store: Arc::clone(self.store), node, alpha }.write(runs).await?;
        tally.store(store, node, now).await.because("the sample activity can't be stored")?;
        store.retire(node).await.because("the store failed")?;

        let paused = extras::pause(store, &scope, &jobs, second).await?;
        extras::record(store, &scope, &paused, jobs.len(), now).await?;
        Ok(jobs.len())
    }
}
