//! Checks the stored counts of jobs by load profile, and provides helper functions for rebalances.

use std::collections::BTreeMap;

use evenkeel_core::balance::{Load, LoadProfileKey, Move, Placement};
use evenkeel_core::{Span, TenantNo, Timestamp};
use evenkeel_store::{
    BeganRebalance, Job, JobFilter, JobSort, JobState, LoadProfileCount, MoveBatch, PageRequest,
    Rebalance, RebalanceState, Scope, Store,
};
use uuid::Uuid;

use crate::fixtures::{at, fresh_id, now};
use crate::rig::Rig;

/// Reads all load profiles in small pages.
pub async fn all_profiles(store: &dyn Store) -> Vec<LoadProfileCount> {
    let mut all: Vec<LoadProfileCount> = Vec::new();
    loop {
        let after = all.last().map(|last| (last.tenant, last.key));
        let page = store.load_profiles(after, 7).await.expect("profiles can be read");
        assert!(page.len() <= 7);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// Reads the [`Placement`]s of all jobs of a tenant in small pages.
pub async fn all_placements(store: &dyn Store, scope: &Scope) -> Vec<Placement> {
    let mut all: Vec<Placement> = Vec::new();
    loop {
        let after = all.last().map(|last| last.job);
        let page = store.placements(scope, after, 5).await.expect("placements can be read");
        assert!(page.len() <= 5);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// Returns the jobs of a tenant that a rebalance considers, which are active and have a next
/// scheduled time, ordered by number.
async fn planned_jobs(store: &dyn Store, scope: &Scope) -> Vec<Job> {
    let (mut jobs, mut after) = (Vec::new(), None);
    loop {
        let page = PageRequest { after, ..PageRequest::first(100) };
        let page = store.list_jobs(scope, &JobFilter::default(), JobSort::default(), page).await;
        let page = page.expect("jobs can be listed");
        jobs.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    jobs.retain(|job| job.state == JobState::Active && job.next_at.is_some());
    jobs.sort_unstable_by_key(|job| job.no);
    jobs
}

/// Counts all jobs of these tenants and compares the result with the stored counts. `scopes` must
/// contain all tenants of the store.
pub async fn assert_counted(store: &dyn Store, scopes: &[Scope]) {
    let mut expected: BTreeMap<(TenantNo, LoadProfileKey), (String, u64, Span)> = BTreeMap::new();
    for scope in scopes {
        let jobs = planned_jobs(store, scope).await;
        let placements = all_placements(store, scope).await;
        assert_eq!(placements.len(), jobs.len());
        for (job, placement) in jobs.iter().zip(placements) {
            let average = job.history.average_good_duration;
            let load = job.next_at.and_then(|next_at| Load::of(&job.definition, average, next_at));
            assert_eq!(placement, placement_of(job, load.as_ref(), placement.cost));
            let Some(load) = load else { continue };
            if load.is_stated || average.is_none() {
                assert_eq!(placement.cost, load.cost);
            }
            let fresh = || (load.profile.clone(), 0, Span::ZERO);
            let together = expected.entry((scope.tenant, load.key)).or_insert_with(fresh);
            together.1 += 1;
            together.2 = together.2.saturating_add(placement.cost);
        }
    }
    let counted = all_profiles(store).await;
    let expected: Vec<LoadProfileCount> = expected
        .into_iter()
        .map(|((tenant, key), (profile, jobs, cost))| LoadProfileCount {
            tenant,
            key,
            profile,
            jobs,
            cost,
        })
        .collect();
    assert_eq!(counted, expected);
}

fn placement_of(job: &Job, load: Option<&Load>, cost: Span) -> Placement {
    Placement {
        job: job.no,
        seed: job.id.seed(),
        generation: job.generation,
        next_at: job.next_at.expect("planned jobs have a next scheduled time"),
        last_fired_at: job.last_fired_at,
        placed_at: job.since,
        is_live: job.live > 0,
        profile: load.map(|load| load.key),
        cost,
    }
}

/// Returns a rebalance plan that was made `secs` seconds after [`START`](crate::fixtures::START).
pub fn new_plan(parts: u32, secs: i64) -> Rebalance {
    Rebalance {
        id: fresh_id().0,
        state: RebalanceState::Planned,
        undoes: None,
        undone_by: None,
        created_by: "ada".into(),
        created_at: at(secs),
        touched_at: None,
        ended_at: None,
        parts,
        parts_done: 0,
        planned: u64::from(parts) * 2,
        moved: 0,
        changed: 0,
        skipped: 3,
        summary: r#"{"score": 0.25}"#.into(),
    }
}

/// Returns the batches of a rebalance plan, filled with arbitrary bytes.
pub fn parts_of(plan: &Rebalance) -> Vec<Vec<u8>> {
    (0..plan.parts).map(|part| vec![0, 255, part as u8]).collect()
}

/// Begins a rebalance with `parts` batches, `secs` seconds after [`START`](crate::fixtures::START).
pub async fn begin_one(rig: &Rig, parts: u32, secs: i64) -> Uuid {
    let plan = new_plan(parts, secs);
    let (id, bytes) = (plan.id, parts_of(&plan));
    rig.store.plan_rebalance(&rig.scope, plan, bytes).await.expect("a plan can be kept");
    let begun = rig.store.begin_rebalance(&rig.scope, id, Timestamp::MIN, now(secs)).await;
    let begun = begun.expect("a rebalance can begin").expect("the rebalance exists");
    let BeganRebalance::Now(begun) = begun else { panic!("{begun:?} prevents the rebalance") };
    assert_eq!((begun.id, begun.state), (id, RebalanceState::Running));
    id
}

/// Returns a move of this job to the start time `new_at`, and the new load profile of the job.
pub fn move_to(job: &Job, new_at: Timestamp) -> (Move, (LoadProfileKey, String)) {
    let load = Load::of(&job.definition, None, new_at).expect("the job has a load profile");
    let old_at = job.next_at.expect("the job has a next scheduled time");
    let one = Move { job: job.no, generation: job.generation, old_at, new_at, profile: load.key };
    (one, (load.key, load.profile))
}

pub fn batch_of(
    rebalance: Uuid,
    part: u32,
    moves: Vec<(Move, (LoadProfileKey, String))>,
) -> MoveBatch {
    let (moves, profiles) = moves.into_iter().unzip();
    MoveBatch { rebalance, part, moves, profiles, even_live: false }
}
