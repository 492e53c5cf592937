use evenkeel_core::schedule::Interval;
use evenkeel_core::{About, Definition, JobId, Schedule};
use evenkeel_store::{BalanceStore as _, EventStore as _, JobStore as _, NewJob, Now};
use evenkeel_store_testkit::fixtures::{START, at};
use evenkeel_store_testkit::model::ModelStore;

use super::*;

const DAY: u64 = 86_400;

struct World {
    store: ModelStore,
    scope: Scope,
    scorer: BalanceScore,
}

/// Returns a store with `jobs` jobs that all run daily at the same time.
async fn crowded(jobs: u8) -> World {
    let store = ModelStore::new(Arc::new(|| START));
    let tenant = store.tenant("main").await.unwrap();
    let scope = Scope { tenant, role: Role::Operator };
    let every = Schedule::Interval(Interval::new(Span::from_secs(DAY), None).unwrap());
    let job = |n: u8| NewJob {
        id: JobId::new(START, [n; 10]),
        about: About::default(),
        definition: Definition::noop(every.clone()),
        next_at: Some(at(7200)),
    };
    store.register(&scope, (0..jobs).map(job).collect(), Now::Database).await.unwrap();
    let scorer = BalanceScore::new(Arc::new(store.clone()), BalanceSettings::default());
    World { store, scope, scorer }
}

impl World {
    async fn saved(&self) -> Vec<SavedScore> {
        self.store.scores(&self.scope, at(-7200), at(1_000_000), 100).await.unwrap()
    }

    fn events(&self) -> Vec<NewEvent> {
        self.store.events().take(100).0
    }
}

#[tokio::test]
async fn score_of_each_hour_is_stored_once() {
    let mut world = crowded(10).await;
    let hour = beginning(START).saturating_add(HOUR);
    for (secs, tenants) in [(0, 1), (60, 0), (3500, 0), (3700, 1), (3760, 0)] {
        let now = hour.saturating_add(Span::from_secs(secs));
        let tenants_saved = world.scorer.run_once(now, true).await.unwrap();
        assert_eq!(tenants_saved, tenants, "after {secs} s");
    }
    let saved = world.saved().await;
    assert_eq!(saved.len(), 2);
    assert!(saved.iter().all(|saved| saved.jobs == 10 && saved.score < 0.5 && saved.peak >= 10.0));
}

#[tokio::test]
async fn node_that_is_not_housekeeper_stores_no_scores() {
    let mut world = crowded(10).await;
    assert_eq!(world.scorer.run_once(START, false).await.unwrap(), 0);
    assert_eq!(world.saved().await, []);
}

#[tokio::test]
async fn event_is_emitted_when_a_score_falls_and_not_again_while_it_is_low() {
    let mut world = crowded(10).await;
    world.store.events().set_has_listeners(true);
    for secs in [0, 3600, 7200] {
        world.scorer.run_once(at(secs), true).await.unwrap();
    }
    let events = world.events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!((events[0].kind, events[0].job), (EventKind::DistributionDegraded, EventJob::None));
    assert!(events[0].data.contains("\"alert_below\":0.7"), "{}", events[0].data);
}

#[tokio::test]
async fn another_node_stores_no_second_score() {
    let mut world = crowded(10).await;
    world.store.events().set_has_listeners(true);
    world.scorer.run_once(START, true).await.unwrap();
    let mut other = BalanceScore::new(Arc::new(world.store.clone()), BalanceSettings::default());
    other.run_once(START, true).await.unwrap();
    assert_eq!((world.saved().await.len(), world.events().len()), (1, 1));
}

#[tokio::test]
async fn even_spread_raises_no_alert() {
    let mut world = crowded(1).await;
    world.store.events().set_has_listeners(true);
    world.scorer.run_once(START, true).await.unwrap();
    assert_eq!((world.saved().await[0].score, world.events().len()), (1.0, 0));
}
