//! Several pools: what is for the workers of one does not wait for those of another.

use std::time::Duration;

use evenkeel_core::job::DEFAULT_POOL;
use evenkeel_core::order::Priority;
use evenkeel_core::schedule::{Interval, Once, Schedule};
use evenkeel_core::{Definition, JobNo, Span, Timestamp};
use evenkeel_engine::Engine;
use evenkeel_store::{AttemptStore, EventStore, JobStore, Now, Roles, Signal, Store, Trigger};

use crate::body::Time as _;
use crate::calm::{Calm, job, play};

const SCHEDULER: Roles = Roles { worker: false, ..Roles::ALL };
const WORKER: Roles = Roles { api: false, scheduler: false, worker: true };

fn calm() -> Calm {
    let calm = Calm::new(Duration::from_secs(1));
    calm.seen.lock().unwrap().starts = Some(Vec::new());
    calm
}

async fn start(calm: &mut Calm, name: &str, roles: Roles, pool: &str, workers: usize) -> Engine {
    (calm.roles, calm.pools) = (roles, vec![pool.into()]);
    calm.start(name, workers).await
}

fn in_pool(pool: &str, priority: u8, definition: Definition) -> Definition {
    let priority = Priority::try_from(priority).unwrap();
    Definition { pool: pool.into(), priority, ..definition }
}

/// Once, so many seconds from now.
fn once(calm: &Calm, secs: u64) -> Schedule {
    let at = calm.time.db().saturating_add(Span::from_secs(secs));
    Schedule::Once(Once { at: Some(at), tolerance: None })
}

fn every(secs: u64) -> Schedule {
    Schedule::Interval(Interval::new(Span::from_secs(secs), None).unwrap())
}

async fn trigger(calm: &Calm, no: JobNo) {
    let title = calm.model.job_titles(&[no]).await.unwrap().remove(0).unwrap();
    let ask = Trigger { n: 0, priority: None, idle_only: false };
    calm.model.trigger(&calm.scope().await, title.id, ask, Now::Database).await.unwrap();
}

/// When a job was first started.
fn started(calm: &Calm, job: JobNo) -> Option<Timestamp> {
    let seen = calm.seen.lock().unwrap();
    seen.starts.iter().flatten().find(|(key, _)| key.job_no == job).map(|(_, at)| *at)
}

async fn pass(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}

async fn waiting(calm: &Calm, pool: &str) -> u32 {
    calm.model.count_queued(&[pool.into()], 100_000).await.unwrap()
}

#[test]
fn a_due_job_of_another_pool_does_not_wait_for_room_here() {
    play(async {
        let mut calm = calm();
        let _home = start(&mut calm, "home", Roles::ALL, DEFAULT_POOL, 1).await;
        let _browsers = start(&mut calm, "browsers", WORKER, "chrome", 1).await;
        // Twice as much as there is room for, without an end.
        for _ in 0..20 {
            calm.register(in_pool(DEFAULT_POOL, 100, job(every(10), 1_000))).await;
        }
        pass(60).await;
        let due = calm.time.db().saturating_add(Span::from_secs(5));
        let lowest = calm.register(in_pool("chrome", 0, job(once(&calm, 5), 1_000))).await;
        // Nobody serves this pool; it is in nobody's way.
        calm.register(in_pool("nobody", 100, job(once(&calm, 4), 1_000))).await;
        // This one may run on a node that is not there, and nowhere else.
        let banned = Definition {
            dont_run_on_nodes: vec!["home".into()],
            ..in_pool(DEFAULT_POOL, 0, job(once(&calm, 5), 1_000))
        };
        let banned = calm.register(banned).await;
        pass(10).await;
        let at = started(&calm, lowest).expect("workers of its pool are idle");
        assert!(at.since(due) <= Span::from_secs(1), "{}", at.since(due));
        assert_eq!(waiting(&calm, "nobody").await, 1);
        assert_eq!(started(&calm, banned), None);
        let _guest = start(&mut calm, "guest", WORKER, DEFAULT_POOL, 30).await;
        pass(10).await;
        assert!(started(&calm, banned).is_some());
    });
}

#[test]
fn a_trigger_of_another_pool_does_not_wait_for_room_here() {
    play(async {
        let mut calm = calm();
        let _home = start(&mut calm, "home", Roles::ALL, DEFAULT_POOL, 1).await;
        let _browsers = start(&mut calm, "browsers", WORKER, "chrome", 1).await;
        let mut own = Vec::new();
        for _ in 0..1_000 {
            let later = once(&calm, 1_000_000);
            own.push(calm.register(in_pool(DEFAULT_POOL, 100, job(later, 1_000))).await);
        }
        let later = once(&calm, 1_000_000);
        let lowest = calm.register(in_pool("chrome", 0, job(later, 1_000))).await;
        pass(5).await;
        for no in own {
            trigger(&calm, no).await;
        }
        calm.model.announce(Signal::Jobs).await.unwrap();
        pass(5).await;
        let asked = calm.time.db();
        trigger(&calm, lowest).await;
        calm.model.announce(Signal::Jobs).await.unwrap();
        pass(10).await;
        let at = started(&calm, lowest).expect("workers of its pool are idle");
        assert!(at.since(asked) <= Span::from_secs(2), "{}", at.since(asked));
    });
}

#[test]
fn a_queue_that_others_empty_is_not_flooded() {
    play(async {
        let mut calm = calm();
        let _scheduler = start(&mut calm, "scheduler", SCHEDULER, DEFAULT_POOL, 1).await;
        let workers = start(&mut calm, "workers", WORKER, DEFAULT_POOL, 4).await;
        for _ in 0..12_000 {
            calm.register(in_pool(DEFAULT_POOL, 0, job(once(&calm, 5), 1_000))).await;
        }
        pass(60).await;
        let in_queue = waiting(&calm, DEFAULT_POOL).await;
        assert!((3_000..=4_000).contains(&in_queue), "{in_queue}");
        let so_far = calm.seen.lock().unwrap().runs;
        assert!(so_far > 100, "{so_far}");
        // Nobody takes from it any more: perhaps others could take what stands behind.
        workers.drain(Duration::from_secs(5)).await;
        pass(60).await;
        assert!(waiting(&calm, DEFAULT_POOL).await > 11_000);
    });
}
