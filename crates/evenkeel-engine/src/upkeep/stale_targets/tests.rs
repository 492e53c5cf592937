use evenkeel_core::order::Priority;
use evenkeel_core::schedule::Interval;
use evenkeel_core::{About, Definition, Schedule, Span};
use evenkeel_store::{
    Action, AttemptFilter, AttemptStore as _, JobCommand, JobStore as _, NewJob, NewTarget,
    TargetStore as _,
};
use evenkeel_store_testkit::fixtures::{START, at};
use evenkeel_store_testkit::model::ModelStore;

use super::*;

const DAY: i64 = 86_400;

struct Always;

impl Chance for Always {
    fn bits(&self) -> u64 {
        7
    }
}

struct World {
    store: ModelStore,
    scope: Scope,
    checker: StaleChecker,
}

impl World {
    async fn new(batch: u32) -> Self {
        let store = ModelStore::new(Arc::new(|| START));
        let tenant = store.tenant("main").await.unwrap();
        let scope = Scope { tenant, role: Role::Operator };
        let settings = Staleness { batch, ..Staleness::default() };
        let chance = Arc::new(Always);
        let checker = StaleChecker::new(Arc::new(store.clone()), chance, settings);
        Self { store, scope, checker }
    }

    /// Creates a target at `START`.
    async fn target(&self) -> i64 {
        let made = self.store.create_target(&self.scope, NewTarget::default(), Now::At(START));
        match made.await.unwrap() {
            evenkeel_store::CreatedTarget::Created(target) => target.number,
            other => panic!("{other:?}"),
        }
    }

    /// Registers a job of the target. The job is due `days` days after `START`.
    async fn job(&self, n: u8, target: i64, days: i64) -> JobId {
        let every = Interval::new(Span::from_secs(400 * 86_400), None).unwrap();
        let id = JobId::new(START, [n; 10]);
        let job = NewJob {
            id,
            about: About { target: Some(target), ..About::default() },
            definition: Definition::noop(Schedule::Interval(every)),
            next_at: Some(at(days * DAY)),
        };
        self.store.register(&self.scope, vec![job], Now::At(START)).await.unwrap();
        id
    }

    async fn pass(&mut self, days: i64) -> StalePass {
        self.checker.run_once(at(days * DAY)).await.unwrap()
    }

    async fn waiting(&self, job: JobId) -> u32 {
        self.store.get(&self.scope, job).await.unwrap().unwrap().waiting
    }
}

#[tokio::test]
async fn stale_target_is_triggered_once_while_its_run_waits() {
    let mut world = World::new(500).await;
    let target = world.target().await;
    let job = world.job(1, target, 300).await;
    assert_eq!(world.pass(30).await, StalePass::default());
    let pass = world.pass(31).await;
    assert_eq!(pass, StalePass { stale: 1, triggered: 1, ..StalePass::default() });
    assert_eq!(world.waiting(job).await, 1);
    let pass = world.pass(32).await;
    assert_eq!(pass, StalePass { stale: 1, busy: 1, ..StalePass::default() });
    assert_eq!(world.waiting(job).await, 1);
}

#[tokio::test]
async fn target_with_a_due_job_is_not_triggered() {
    let mut world = World::new(500).await;
    let target = world.target().await;
    let job = world.job(1, target, 31).await;
    let pass = world.pass(31).await;
    assert_eq!(pass, StalePass { stale: 1, busy: 1, ..StalePass::default() });
    assert_eq!(world.waiting(job).await, 0);
}

#[tokio::test]
async fn target_without_an_active_job_is_counted_only() {
    let mut world = World::new(500).await;
    world.target().await;
    let target = world.target().await;
    let id = world.job(1, target, 300).await;
    let pause = JobCommand { id, if_generation: None, if_fired: None, action: Action::Pause };
    world.store.apply_commands(&world.scope, vec![pause], Now::At(START)).await.unwrap();
    let pass = world.pass(31).await;
    assert_eq!(pass, StalePass { stale: 2, without_job: 2, ..StalePass::default() });
    let runs = world.store.list_attempts(
        &world.scope,
        AttemptFilter::default(),
        evenkeel_store::PageRequest::first(9),
    );
    assert_eq!(runs.await.unwrap().items.len(), 0);
}

#[tokio::test]
async fn pass_stops_at_its_limit_and_the_next_resumes_there() {
    let mut world = World::new(2).await;
    let mut jobs = Vec::new();
    for n in 0..5 {
        let target = world.target().await;
        jobs.push(world.job(n, target, 300).await);
    }
    let mut passes = Vec::new();
    for hours in 0..4 {
        let now = at(31 * DAY + hours * 6 * 3600);
        let pass = world.checker.run_once(now).await.unwrap();
        passes.push((pass.triggered, pass.limit_reached));
    }
    assert_eq!(passes, [(2, true), (2, true), (1, false), (0, false)]);
    for job in jobs {
        assert_eq!(world.waiting(job).await, 1);
    }
}

#[tokio::test]
async fn tenant_with_many_stale_targets_leaves_runs_for_the_others() {
    let mut world = World::new(2).await;
    for n in 0..5 {
        let target = world.target().await;
        world.job(n, target, 300).await;
    }
    let other = world.store.tenant("other").await.unwrap();
    let first = std::mem::replace(&mut world.scope.tenant, other);
    let target = world.target().await;
    let theirs = world.job(9, target, 300).await;
    let pass = world.pass(31).await;
    assert_eq!((pass.triggered, pass.limit_reached), (3, true));
    assert_eq!(world.waiting(theirs).await, 1);
    assert_eq!(world.checker.limited_tenants, BTreeMap::from([(first, 2)]));
    let pass = world.pass(32).await;
    assert_eq!((pass.triggered, pass.limit_reached), (2, true));
    let pass = world.pass(33).await;
    assert_eq!((pass.triggered, pass.limit_reached), (1, false));
    assert_eq!(world.checker.limited_tenants, BTreeMap::new());
}

#[tokio::test]
async fn job_without_executor_is_not_triggered() {
    let mut world = World::new(500).await;
    let target = world.target().await;
    let job = world.job(1, target, 300).await;
    let mut definition = world.store.get(&world.scope, job).await.unwrap().unwrap().definition;
    definition.executor.kind = evenkeel_core::job::ExecutorSpec::NONE.into();
    let change = evenkeel_store::JobChange { definition: Some(definition), ..Default::default() };
    let order = JobCommand {
        id: job,
        if_generation: None,
        if_fired: None,
        action: Action::Change(Box::new(change)),
    };
    world.store.apply_commands(&world.scope, vec![order], Now::At(START)).await.unwrap();
    let pass = world.pass(31).await;
    assert_eq!(pass, StalePass { stale: 1, without_job: 1, ..StalePass::default() });
    assert_eq!(world.waiting(job).await, 0);
}

#[tokio::test]
async fn many_targets_are_read_in_steps() {
    let mut world = World::new(5_000).await;
    for _ in 0..STEP * 2 + 1 {
        world.target().await;
    }
    let pass = world.pass(31).await;
    assert_eq!((pass.stale, pass.without_job), (STEP * 2 + 1, STEP * 2 + 1));
    assert_eq!(world.checker.at, None);
}

#[tokio::test]
async fn no_target_is_stale_without_a_limit() {
    let mut world = World::new(500).await;
    world.checker.settings.after = None;
    let target = world.target().await;
    world.job(1, target, 300).await;
    assert_eq!(world.pass(3_000).await, StalePass::default());
}

#[test]
fn stale_targets_have_the_lowest_priority_by_default() {
    assert_eq!(Staleness::default().priority, Priority::try_from(0).unwrap());
}
