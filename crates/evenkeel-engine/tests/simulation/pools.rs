//! Tests that jobs for one pool do not wait for workers of another pool.

use std::time::Duration;

use evenkeel_core::job::DEFAULT_POOL;
use evenkeel_core::order::Priority;
use evenkeel_core::{Definition, JobNo, Span, Timestamp};
use evenkeel_engine::Engine;
use evenkeel_store::{AttemptStore, Roles, Signal, Store};

use crate::body::Time as _;
use crate::small_cluster::{SmallCluster, every, job, pass, run_paused};

const SCHEDULER: Roles = Roles { worker: false, ..Roles::ALL };
const WORKER: Roles = Roles { api: false, scheduler: false, worker: true };

fn cluster() -> SmallCluster {
    let cluster = SmallCluster::new(Duration::from_secs(1));
    cluster.record_starts();
    cluster
}

async fn start(
    cluster: &mut SmallCluster,
    name: &str,
    roles: Roles,
    pool: &str,
    workers: usize,
) -> Engine {
    (cluster.roles, cluster.pools) = (roles, vec![pool.into()]);
    cluster.start(name, workers).await
}

fn in_pool(pool: &str, priority: u8, definition: Definition) -> Definition {
    let priority = Priority::try_from(priority).unwrap();
    Definition { pool: pool.into(), priority, ..definition }
}

fn started(cluster: &SmallCluster, job: JobNo) -> Option<Timestamp> {
    let seen = cluster.seen.lock().unwrap();
    seen.starts.iter().flatten().find(|(key, _)| key.job_no == job).map(|(_, at)| *at)
}

async fn waiting(cluster: &SmallCluster, pool: &str) -> u32 {
    cluster.model.count_queued(&[pool.into()], 100_000).await.unwrap()
}

#[test]
fn due_job_of_another_pool_does_not_wait_for_local_slots() {
    run_paused(async {
        let mut cluster = cluster();
        let _home = start(&mut cluster, "home", Roles::ALL, DEFAULT_POOL, 1).await;
        let _browsers = start(&mut cluster, "browsers", WORKER, "chrome", 1).await;
        // The 20 jobs need twice the capacity of the workers all the time.
        for _ in 0..20 {
            cluster.register(in_pool(DEFAULT_POOL, 100, job(every(10), 1_000))).await;
        }
        pass(60).await;
        let due = cluster.time.db().saturating_add(Span::from_secs(5));
        let lowest = cluster.register(in_pool("chrome", 0, job(cluster.once_in(5), 1_000))).await;
        // No worker serves this pool. Jobs of a pool without workers must not block jobs of other
        // pools.
        cluster.register(in_pool("nobody", 100, job(cluster.once_in(4), 1_000))).await;
        // This job may run only on a node that has not joined the cluster.
        let banned = Definition {
            dont_run_on_nodes: vec!["home".into()],
            ..in_pool(DEFAULT_POOL, 0, job(cluster.once_in(5), 1_000))
        };
        let banned = cluster.register(banned).await;
        pass(10).await;
        let at = started(&cluster, lowest).expect("workers of its pool are idle");
        assert!(at.since(due) <= Span::from_secs(1), "{}", at.since(due));
        assert_eq!(waiting(&cluster, "nobody").await, 1);
        assert_eq!(started(&cluster, banned), None);
        let _guest = start(&mut cluster, "guest", WORKER, DEFAULT_POOL, 30).await;
        pass(10).await;
        assert!(started(&cluster, banned).is_some());
    });
}

#[test]
fn trigger_of_another_pool_does_not_wait_for_local_slots() {
    run_paused(async {
        let mut cluster = cluster();
        let _home = start(&mut cluster, "home", Roles::ALL, DEFAULT_POOL, 1).await;
        let _browsers = start(&mut cluster, "browsers", WORKER, "chrome", 1).await;
        let mut own = Vec::new();
        for _ in 0..1_000 {
            let later = cluster.once_in(1_000_000);
            own.push(cluster.register(in_pool(DEFAULT_POOL, 100, job(later, 1_000))).await);
        }
        let later = cluster.once_in(1_000_000);
        let lowest = cluster.register(in_pool("chrome", 0, job(later, 1_000))).await;
        pass(5).await;
        for no in own {
            cluster.trigger(no, None).await;
        }
        cluster.model.announce(Signal::Jobs).await.unwrap();
        pass(5).await;
        let triggered_at = cluster.time.db();
        cluster.trigger(lowest, None).await;
        cluster.model.announce(Signal::Jobs).await.unwrap();
        pass(10).await;
        let at = started(&cluster, lowest).expect("workers of its pool are idle");
        assert!(at.since(triggered_at) <= Span::from_secs(2), "{}", at.since(triggered_at));
    });
}

#[test]
fn queue_served_by_other_nodes_is_not_flooded() {
    run_paused(async {
        let mut cluster = cluster();
        let _scheduler = start(&mut cluster, "scheduler", SCHEDULER, DEFAULT_POOL, 1).await;
        let workers = start(&mut cluster, "workers", WORKER, DEFAULT_POOL, 4).await;
        for _ in 0..12_000 {
            cluster.register(in_pool(DEFAULT_POOL, 0, job(cluster.once_in(5), 1_000))).await;
        }
        pass(60).await;
        let in_queue = waiting(&cluster, DEFAULT_POOL).await;
        assert!((3_000..=4_000).contains(&in_queue), "{in_queue}");
        let so_far = cluster.seen.lock().unwrap().runs;
        assert!(so_far > 100, "{so_far}");
        // No worker claims any more, so the queue grows beyond its limit. Workers that join later
        // may be able to claim only the last queue entries.
        workers.drain(Duration::from_secs(5)).await;
        pass(60).await;
        assert!(waiting(&cluster, DEFAULT_POOL).await > 11_000);
    });
}
