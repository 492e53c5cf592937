//! Tests which waiting attempts and expected runs users see.

use evenkeel_core::order::Lane;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{AttemptKey, JobNo, Slot};
use evenkeel_store::{
    ClaimWindow, Fire, JobChange, Registered, Scope, SlotLoad, Start, WaitingAttempt, WaitsFor,
};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{Begin, at, fire_of, fresh_id, new_job, now, unnamed_job};
use crate::rig::{Known, Rig, next_attempt};

async fn waiting(rig: &Rig, job: Known) -> Vec<WaitingAttempt> {
    rig.waiting_of(&rig.scope, job.id).await
}

async fn ahead(rig: &Rig, job: Known) -> u32 {
    match waiting(rig, job).await[..] {
        [WaitingAttempt { waits_for: WaitsFor::Worker { ahead: Some(ahead), .. }, .. }] => ahead,
        ref other => panic!("{other:?}"),
    }
}

/// Returns a waiting attempt with the priority of its job.
fn attempt(key: AttemptKey, waits_for: WaitsFor) -> WaitingAttempt {
    WaitingAttempt { key, priority: None, waits_for }
}

async fn queue_all(rig: &Rig, jobs: Vec<JobNo>) {
    for jobs in jobs.chunks(1_000) {
        let due = rig.store.load_jobs(jobs).await.unwrap();
        let fires: Vec<Fire> = due.iter().map(|job| fire_of(job, at(60), Begin::Queued)).collect();
        rig.fire(fires, 60).await;
    }
}

pub async fn a_queued_attempt_shows_its_waiting_time_and_window(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    assert_eq!(waiting(&rig, job).await, []);
    let mut fire = fire_of(&rig.due(job).await, at(63), Begin::Queued);
    if let Some((_, Start::Queued(entry))) = &mut fire.start {
        (entry.open_from, entry.open_until) = (Some(at(80)), Some(at(90)));
    }
    rig.fire(vec![fire], 63).await;
    let key = AttemptKey::regular(job.no, at(60));
    let window = ClaimWindow { from: Some(at(80)), until: Some(at(90)) };
    let waits_for = WaitsFor::Worker { since: at(63), ahead: Some(0), window };
    assert_eq!(waiting(&rig, job).await, [attempt(key, waits_for)]);
    let window = ClaimWindow { from: None, until: Some(at(200)) };
    rig.store.set_claim_windows(&[(key, window)]).await.unwrap();
    let waits_for = WaitsFor::Worker { since: at(63), ahead: Some(0), window };
    assert_eq!(waiting(&rig, job).await, [attempt(key, waits_for)]);
    rig.claim_one(80).await;
    assert_eq!(waiting(&rig, job).await, []);
}

pub async fn retries_and_triggers_show_when_they_may_start(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(900))).await;
    let trigger = rig.trigger(job, 0, 70).await;
    let returned = waiting(&rig, job).await;
    let retry = attempt(next_attempt(held.key), WaitsFor::Time(at(900)));
    assert_eq!(returned, [retry, attempt(trigger, WaitsFor::Time(at(70)))]);
}

pub async fn up_to_a_hundred_attempts_come_oldest_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let mut keys = Vec::new();
    for n in 0..55 {
        keys.push(rig.queue(job, 60 + n * 60).await);
        keys.push(rig.trigger(job, 0, 61 + n * 60).await);
    }
    let returned: Vec<AttemptKey> = waiting(&rig, job).await.iter().map(|one| one.key).collect();
    assert_eq!(returned, keys[..100]);
}

pub async fn attempts_ahead_are_those_that_would_be_claimed_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let mut jobs = Vec::new();
    for (name, lane, priority) in [
        ("batch", Lane::Batch, 90),
        ("light", Lane::Standard, 10),
        ("heavy", Lane::Standard, 90),
        ("first", Lane::Critical, 0),
    ] {
        let job = rig.add(new_job(name).lane(lane).priority(priority).build()).await;
        rig.queue(job, 60).await;
        jobs.push(job);
    }
    let elsewhere = rig.add(new_job("elsewhere").pool("big").lane(Lane::Critical).build()).await;
    rig.queue(elsewhere, 60).await;
    let theirs = new_job("theirs").lane(Lane::Critical).priority(50).build();
    let theirs = rig.add_for(&other, theirs).await;
    rig.queue(theirs, 60).await;
    let mut counted = Vec::new();
    for job in jobs {
        counted.push(ahead(&rig, job).await);
    }
    assert_eq!(counted, [3, 2, 1, 0], "attempts of other tenants are not revealed");
    assert_eq!(ahead(&rig, elsewhere).await, 0);
    let returned = rig.waiting_of(&other, theirs.id).await;
    assert!(
        matches!(returned[0].waits_for, WaitsFor::Worker { ahead: Some(0), .. }),
        "{returned:?}"
    );
}

pub async fn equal_attempts_have_a_fixed_order(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["a", "b", "c"].map(|name| new_job(name).build());
    let jobs = rig.add_all(jobs.to_vec()).await;
    let mut batch = Vec::new();
    for job in &jobs {
        batch.push(fire_of(&rig.due(*job).await, at(60), Begin::Queued));
    }
    rig.fire(batch, 60).await;
    for (place, job) in jobs.iter().enumerate() {
        assert_eq!(ahead(&rig, *job).await, place as u32);
    }
    let claimed = rig.claim(10, 61).await;
    let order: Vec<i64> = claimed.iter().map(|one| one.key.job_no.0).collect();
    assert_eq!(order, jobs.iter().map(|job| job.no.0).collect::<Vec<_>>());
}

pub async fn attempts_ahead_are_counted_up_to_a_thousand(opened: Opened) {
    let rig = Rig::new(opened).await;
    let many = (0..1_005).map(|n| new_job(&format!("job {n}")).priority(90).build()).collect();
    let mut jobs = rig.add_all(many).await;
    jobs.push(rig.add(new_job("last").priority(1).build()).await);
    queue_all(&rig, jobs.iter().map(|job| job.no).collect()).await;
    assert_eq!(ahead(&rig, jobs[1_005]).await, 1_000);
    assert_eq!(ahead(&rig, jobs[1_004]).await, 1_000);
    assert_eq!(ahead(&rig, jobs[999]).await, 999);
}

pub async fn attempts_ahead_are_counted_only_on_request(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = rig.add(new_job("first").priority(90).build()).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    rig.queue(first, 60).await;
    let key = rig.queue(job, 60).await;
    let trigger = rig.trigger(job, 0, 70).await;
    let mut expected = waiting(&rig, job).await;
    assert_eq!(expected[0].key, key);
    assert_eq!(expected[1], attempt(trigger, WaitsFor::Time(at(70))));
    let WaitsFor::Worker { ahead, .. } = &mut expected[0].waits_for else { panic!("{expected:?}") };
    assert_eq!(ahead.take(), Some(1));
    let returned = rig.store.waiting_attempts(&rig.scope, job.id, None, now(100)).await.unwrap();
    assert_eq!(returned, expected, "everything but the queue positions is returned");
}

/// Another tenant fills all but one of the 10,000 queue positions that the store reads.
pub async fn own_attempts_are_found_among_the_first_ten_thousand(opened: Opened) {
    let rig = Rig::new(opened).await;
    let neighbour = rig.tenant("neighbour").await;
    let theirs = (0..9_999).map(|_| unnamed_job().priority(90).build()).collect();
    let registered = rig.store.register(&neighbour, theirs, now(0)).await.unwrap();
    let theirs = registered.into_iter().map(|answer| match answer {
        Registered::Created { no, .. } => no,
        Registered::NameTaken(by) | Registered::Duplicate(by) => panic!("it is {by}"),
    });
    queue_all(&rig, theirs.collect()).await;
    let ours = (0..3).map(|_| unnamed_job().priority(1).build()).collect();
    let ours = rig.add_all(ours).await;
    queue_all(&rig, ours.iter().map(|job| job.no).collect()).await;
    for (job, expected) in ours.into_iter().zip([0, 1, 1]) {
        assert_eq!(ahead(&rig, job).await, expected);
    }
}

pub async fn only_attempts_of_the_scope_are_returned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.queue(job, 60).await;
    assert_eq!(waiting(&rig, job).await.len(), 1);
    assert_eq!(rig.waiting_of(&other, job.id).await, []);
    let nobody = Known { id: fresh_id(), ..job };
    assert_eq!(waiting(&rig, nobody).await, []);
    rig.store.delete(&rig.scope, job.id, now(61)).await.unwrap();
    assert_eq!(waiting(&rig, job).await, []);
}

async fn loads(rig: &Rig, scope: &Scope, secs: &[i64], limit: u32) -> Vec<SlotLoad> {
    let slots: Vec<Slot> = secs.iter().map(|secs| Slot::of(at(*secs))).collect();
    rig.store.slot_loads(scope, &slots, limit).await.unwrap()
}

/// Returns the expected job counts of time slots that were counted completely.
fn all<const N: usize>(jobs: [u32; N]) -> [SlotLoad; N] {
    jobs.map(|jobs| SlotLoad { jobs, counted_all: true })
}

pub async fn jobs_are_counted_by_the_slot_of_their_next_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (name, secs) in [("a", 60), ("b", 899), ("c", 900), ("d", 4_500)] {
        rig.add(new_job(name).every(7_200).first_at(secs).build()).await;
    }
    rig.add(new_job("never").never().build()).await;
    let scope = rig.scope;
    assert_eq!(loads(&rig, &scope, &[4_500, 0, 900, 1_800], 10).await, all([1, 2, 1, 0]));
    assert_eq!(loads(&rig, &scope, &[0, 0, 899], 10).await, all([2, 2, 2]));
    assert_eq!(loads(&rig, &scope, &[], 10).await, []);
}

pub async fn slot_loads_are_counted_up_to_the_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = (0..20).map(|n| new_job(&format!("job {n}")).build()).collect();
    rig.add_all(jobs).await;
    let scope = rig.scope;
    for (limit, jobs) in [(0, 0), (7, 7), (19, 19), (20, 20), (21, 20), (u32::MAX, 20)] {
        let load = SlotLoad { jobs, counted_all: limit >= 20 };
        assert_eq!(loads(&rig, &scope, &[60], limit).await, [load]);
    }
    assert_eq!(
        loads(&rig, &scope, &[9_000], 0).await,
        all([0]),
        "an empty slot is counted completely"
    );
}

pub async fn the_limit_applies_to_each_slot(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..10 {
        rig.add(new_job(&format!("job {n}")).first_at(60 + n % 2 * 900).build()).await;
    }
    assert_eq!(loads(&rig, &rig.scope, &[60, 960], 5).await, all([5, 5]));
}

pub async fn a_job_is_counted_where_its_next_time_is_now(opened: Opened) {
    let rig = Rig::new(opened).await;
    let scope = rig.scope;
    let fired = rig.add(new_job("fired").every(3_600).build()).await;
    let moved = rig.add(new_job("moved").build()).await;
    let gone = rig.add(new_job("gone").build()).await;
    assert_eq!(loads(&rig, &scope, &[60, 3_660, 9_000], 10).await, all([3, 0, 0]));
    rig.start(fired, 60).await;
    let change = JobChange { next_at: Some(Some(at(9_000))), ..JobChange::default() };
    rig.store.update(&scope, moved.id, change, now(60)).await.unwrap();
    rig.store.delete(&scope, gone.id, now(60)).await.unwrap();
    assert_eq!(loads(&rig, &scope, &[60, 3_660, 9_000], 10).await, all([0, 1, 1]));
}

pub async fn jobs_of_other_tenants_are_not_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    rig.add(new_job("ours").build()).await;
    for name in ["a", "b", "c"] {
        rig.add_for(&other, new_job(name).build()).await;
    }
    assert_eq!(loads(&rig, &rig.scope, &[60], 4).await, all([1]));
    assert_eq!(loads(&rig, &other, &[60], 10).await, all([3]));
}

/// The two tenants together have 300 jobs, spread over all shards. Of any 100 of these jobs, at
/// most 3 belong to the smaller tenant.
pub async fn jobs_of_a_large_tenant_are_read_and_not_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let neighbour = rig.tenant("neighbour").await;
    let theirs = (0..297).map(|_| unnamed_job().build()).collect();
    rig.store.register(&neighbour, theirs, now(0)).await.unwrap();
    rig.add_all((0..3).map(|_| unnamed_job().build()).collect()).await;
    let (ours, theirs) = (rig.scope, neighbour);
    for limit in [1, 100, 299] {
        let [seen] = loads(&rig, &ours, &[60], limit).await[..] else { panic!("one slot") };
        let [rest] = loads(&rig, &theirs, &[60], limit).await[..] else { panic!("one slot") };
        assert!(!seen.counted_all && !rest.counted_all, "of {limit}: {seen:?}, {rest:?}");
        assert!(seen.jobs <= 3 && rest.jobs <= 297, "of {limit}: {seen:?}, {rest:?}");
        assert_eq!(seen.jobs + rest.jobs, limit, "every counted job has a tenant");
    }
    assert_eq!(loads(&rig, &ours, &[60], 300).await, all([3]));
    assert_eq!(loads(&rig, &theirs, &[60], 300).await, all([297]));
}
