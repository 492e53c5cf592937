//! Concurrent workers under limits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_core::limit::{LimitKey, Limits};
use evenkeel_core::{AttemptKey, JobNo};
use evenkeel_store::{
    AfterLoss, AttemptFilter, Claim, ClaimedAttempt, DueJob, Finish, FinishResult, LimitTerms,
    PageRequest, Permit, ReleaseStep, Requeue, RunCancelled, Scope, Store,
};

use super::limits::{key_of, queues_within};
use super::races::at_once;
use crate::Opened;
use crate::fixtures::{Begin, at, fire_of, new_job, now, queue_entry_of};
use crate::rig::{ALPHA, Held, Rig, claim_of};

const RUNS: usize = 300;
const KEYS: usize = 5;
const OF_TENANT: u32 = 12;

/// State shared by all workers of the test.
struct Race {
    scope: Scope,
    limits: BTreeMap<LimitKey, u32>,
    jobs: BTreeMap<JobNo, (DueJob, Option<LimitKey>)>,
    success: Finish,
    terms: LimitTerms,
    watch: Mutex<Watch>,
}

/// Running attempts per limit, as counted by the workers. Each worker adds its attempts after the
/// claim and removes them before it finishes them.
#[derive(Default)]
struct Watch {
    running: BTreeMap<LimitKey, u32>,
    done: usize,
}

impl Race {
    fn is_over(&self) -> bool {
        self.watch.lock().unwrap().done >= RUNS
    }

    fn enter(&self, claimed: &[ClaimedAttempt]) {
        let mut watch = self.watch.lock().unwrap();
        for limit in claimed.iter().flat_map(|attempt| &attempt.permits) {
            let running = watch.running.entry(*limit).or_default();
            *running += 1;
            assert!(*running <= self.limits[limit], "{running} of {limit:?} were claimed");
        }
    }

    fn leave(&self, ended: &[ClaimedAttempt]) {
        let mut watch = self.watch.lock().unwrap();
        for limit in ended.iter().flat_map(|attempt| &attempt.permits) {
            *watch.running.entry(*limit).or_default() -= 1;
        }
    }

    /// Asserts that the store has no more running attempts than each limit allows.
    async fn look(&self, store: &dyn Store) {
        let page = PageRequest::first(10_000);
        let runs =
            store.list_attempts(&self.scope, AttemptFilter::default(), page).await.unwrap().items;
        let mut running: BTreeMap<LimitKey, u32> = BTreeMap::new();
        for run in runs.iter().filter(|run| run.status == AttemptStatus::Running) {
            let of_tenant = LimitKey::of_tenant(self.scope.tenant);
            for limit in self.jobs[&run.key.job_no].1.into_iter().chain([of_tenant]) {
                *running.entry(limit).or_default() += 1;
            }
        }
        for (limit, running) in running {
            assert!(running <= self.limits[&limit], "{running} of {limit:?} run");
        }
    }

    /// Returns true for attempts that are requeued after their first start, as if their node had
    /// left or was lost.
    fn is_given_back(attempt: &ClaimedAttempt) -> bool {
        attempt.key.job_no.0 % 5 == 0 && attempt.fence == Fence(1)
    }

    async fn end(&self, store: &dyn Store, claim: &Claim, ended: &[ClaimedAttempt]) {
        self.leave(ended);
        let (back, over): (Vec<_>, Vec<_>) =
            ended.iter().partition(|attempt| Self::is_given_back(attempt));
        let back = back.into_iter().map(|attempt| Requeue {
            key: attempt.key,
            fence: attempt.fence,
            tenant: attempt.tenant,
            crashed: attempt.key.job_no.0 % 2 == 0,
            then: AfterLoss::Queue(queue_entry_of(
                &self.jobs[&attempt.key.job_no].0,
                at(120),
                at(60),
            )),
        });
        store.requeue(claim.node, back.collect(), now(100)).await.unwrap();
        let ends = over.iter().map(|attempt| Finish {
            key: attempt.key,
            fence: attempt.fence,
            started_at: attempt.key.scheduled_at,
            ..self.success.clone()
        });
        let results = store.finish(claim.node, ends.collect(), ALPHA).await.unwrap();
        assert!(results.iter().all(|result| *result == FinishResult::Done));
        let places = ended.iter().flat_map(|attempt| {
            attempt.permits.iter().map(|limit| Permit { limit: *limit, run: attempt.key })
        });
        let places: Vec<Permit> = places.collect();
        store.release_limited(&places, &self.terms, now(100)).await.unwrap();
        self.watch.lock().unwrap().done += over.len();
    }

    /// Half of a worker's attempts keep running while it claims more attempts.
    async fn work(self: Arc<Self>, store: Arc<dyn Store>, claim: Claim) {
        let mut held: VecDeque<ClaimedAttempt> = VecDeque::new();
        let (mut idle, mut done_before) = (0, 0);
        while !self.is_over() {
            let claimed = store.claim(&claim, now(100)).await.unwrap().attempts;
            self.enter(&claimed);
            self.look(&*store).await;
            let found_none = claimed.is_empty();
            held.extend(claimed);
            let keeps = if found_none { 0 } else { held.len().div_ceil(2) };
            let ended: Vec<ClaimedAttempt> = held.drain(..held.len() - keeps).collect();
            self.end(&*store, &claim, &ended).await;
            if found_none && ended.is_empty() {
                let done = self.watch.lock().unwrap().done;
                idle = if done == done_before { idle + 1 } else { 0 };
                done_before = done;
                assert!(idle < 20_000, "no worker makes progress");
                // An idle worker releases attempts from limit queues, as the upkeep loop of a node
                // does.
                let step_over =
                    ReleaseStep { to_wider: idle % 8 == 0, ..queues_within(&self.terms.limits) };
                store.release_all_limited(step_over, now(100)).await.unwrap();
                // Leaves the processor to the workers that hold attempts.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        self.end(&*store, &claim, &Vec::from(held)).await;
    }

    /// Cancels some runs while the workers run.
    async fn cancel(self: Arc<Self>, store: Arc<dyn Store>) {
        for no in self.jobs.keys().step_by(17) {
            let run = AttemptKey::regular(*no, at(60));
            let cancelled = store.cancel_run(&self.scope, run, now(100)).await.unwrap();
            if matches!(cancelled, RunCancelled::Withdrawn(_)) {
                self.watch.lock().unwrap().done += 1;
            }
            tokio::task::yield_now().await;
        }
    }
}

pub async fn concurrent_workers_never_exceed_a_limit_and_all_runs_end(opened: Opened) {
    let rig = Rig::new(opened).await;
    let key = |n: usize| (n % (KEYS + 1) < KEYS).then_some(n % (KEYS + 1));
    let jobs = (0..RUNS).map(|n| {
        let job = new_job(&format!("job {n}")).priority((n % 90) as u8);
        // Some jobs have no concurrency key, so that only the tenant's limit applies to them.
        key(n).map_or(job.clone(), |key| job.limited(&key.to_string(), 1 + key as u32)).build()
    });
    let jobs = rig.add_all(jobs.collect()).await;
    let numbers: Vec<JobNo> = jobs.iter().map(|job| job.no).collect();
    let due = rig.store.load_jobs(&numbers).await.unwrap();
    let fires = due.iter().map(|job| fire_of(job, at(60), Begin::Queued)).collect();
    rig.fire(fires, 60).await;
    let limit_of = |key: usize| key_of(&rig, &key.to_string());
    let mut limits: BTreeMap<LimitKey, u32> =
        (0..KEYS).map(|key| (limit_of(key), 1 + key as u32)).collect();
    limits.insert(LimitKey::of_tenant(rig.scope.tenant), OF_TENANT);
    let keys: BTreeMap<JobNo, Option<usize>> =
        numbers.iter().enumerate().map(|(n, no)| (*no, key(n))).collect();
    let jobs = due.into_iter().map(|job| (job.no, (job.clone(), keys[&job.no].map(limit_of))));
    let some = AttemptKey::regular(numbers[0], at(60));
    let of_tenant = Limits { tenant: Some(OF_TENANT), ..Limits::default() };
    let race = Arc::new(Race {
        scope: rig.scope,
        limits,
        jobs: jobs.collect(),
        success: rig.success(Held { key: some, fence: Fence::NONE }),
        terms: queues_within(&of_tenant).terms,
        watch: Mutex::default(),
    });
    let nodes = [rig.node, rig.join("node-2", 0).await];
    at_once(&rig, 9, |n, store| {
        let race = Arc::clone(&race);
        let claim = Claim { limits: of_tenant.clone(), ..claim_of(nodes[n % 2], 1 + 3 * (n % 3)) };
        async move {
            match n {
                8 => race.cancel(store).await,
                _ => race.work(store, claim).await,
            }
        }
    })
    .await;
    assert_eq!(race.watch.lock().unwrap().done, RUNS);
    let census = rig.census().await;
    assert_eq!((census.ready, census.running, census.live), (0, 0, 0));
}
