//! Tests that attempts in limit queues do not block other attempts, and that changed limits apply
//! to attempts that already wait.

use evenkeel_core::AttemptKey;
use evenkeel_core::limit::{LimitKey, Limits};
use evenkeel_core::order::Lane;
use evenkeel_store::{ClaimedAttempt, Finish, NewJob, Permit, ReleaseStep, Released};

use super::limits::{
    all_queues, claim_within, held, key_of, keys, queue, queues_within, release_all_limited,
    unpark_within,
};
use crate::Opened;
use crate::fixtures::{Begin, JobBuilder, at, fire_of, new_job, now};
use crate::rig::Rig;

/// Queues one attempt of each job in `jobs`, all at the same time.
async fn queue_all(rig: &Rig, jobs: impl IntoIterator<Item = JobBuilder>, secs: i64) {
    let jobs: Vec<NewJob> = jobs.into_iter().map(JobBuilder::build).collect();
    let numbers: Vec<_> = rig.add_all(jobs).await.iter().map(|job| job.no).collect();
    let due = rig.store.load_jobs(&numbers).await.expect("jobs can be loaded");
    let fires = due.iter().map(|job| fire_of(job, at(secs), Begin::Queued)).collect();
    rig.fire(fires, secs).await;
}

/// Returns `count` jobs with the same concurrency key, which allows one running attempt.
fn of_host(count: usize) -> impl Iterator<Item = JobBuilder> {
    (0..count).map(|n| new_job(&format!("host {n}")).limited("host", 1).priority(90))
}

fn tenant(most: u32) -> Limits {
    Limits { tenant: Some(most), ..Limits::default() }
}

fn success(rig: &Rig, attempt: &ClaimedAttempt) -> Finish {
    Finish { tenant: attempt.tenant, ..rig.success(held(attempt)) }
}

async fn end_all(rig: &Rig, claimed: &[ClaimedAttempt]) {
    rig.finish_all(claimed.iter().map(|attempt| success(rig, attempt)).collect()).await;
}

fn permits_of(claimed: &[ClaimedAttempt]) -> Vec<Permit> {
    let places = claimed.iter().flat_map(|attempt| {
        attempt.permits.iter().map(|limit| Permit { limit: *limit, run: attempt.key })
    });
    places.collect()
}

async fn step(rig: &Rig, step_over: ReleaseStep, secs: i64) -> Released {
    rig.store.release_all_limited(step_over, now(secs)).await.expect("limit queues can be read")
}

/// Fills the tenant's limit with two running attempts. In the limit queue of the tenant, `count`
/// attempts with the same concurrency key are ahead of one attempt without a key.
async fn a_full_tenant(rig: &Rig, count: usize) -> (Vec<ClaimedAttempt>, AttemptKey) {
    queue_all(rig, [new_job("first"), new_job("second")], 60).await;
    let running = claim_within(rig, &tenant(2), 9, 61).await;
    assert_eq!(running.len(), 2);
    queue_all(rig, of_host(count), 62).await;
    let (_, plain) = queue(rig, new_job("plain").priority(10), 63).await;
    for _ in 0..10 {
        assert_eq!(keys(&claim_within(rig, &tenant(2), 2_000, 64).await), []);
    }
    let parked = rig.store.queue_depths(10_000).await.unwrap().parked;
    assert_eq!(parked, [0, count as u64 + 1, 0]);
    (running, plain)
}

pub async fn an_attempt_that_also_waits_for_a_key_blocks_no_other(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (running, plain) = a_full_tenant(&rig, 50).await;
    end_all(&rig, &running).await;
    assert_eq!(unpark_within(&rig, &tenant(2), 65).await, 2);
    let claimed = claim_within(&rig, &tenant(2), 9, 65).await;
    assert_eq!((claimed.len(), claimed[1].key), (2, plain));
    assert_eq!(rig.store.queue_depths(100).await.unwrap().parked, [49, 0, 0]);
}

pub async fn an_end_releases_an_attempt_that_can_start(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (running, plain) = a_full_tenant(&rig, 60).await;
    end_all(&rig, &running).await;
    let terms = queues_within(&tenant(2)).terms;
    let released = rig.store.release_limited(&permits_of(&running), &terms, now(65)).await.unwrap();
    // If a release step reads the limit queue twice, it may release one attempt too many. This does
    // no harm, because the claim checks the limits again.
    assert!((2..=3).contains(&released), "{released}");
    let claimed = claim_within(&rig, &tenant(2), 9, 65).await;
    assert_eq!((claimed.len(), claimed[1].key), (2, plain));
}

pub async fn more_attempts_than_one_step_reads_block_no_other(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (running, plain) = a_full_tenant(&rig, 2_100).await;
    end_all(&rig, &running).await;
    for (nth, again) in [true, true, false].into_iter().enumerate() {
        let released = step(&rig, queues_within(&tenant(2)), 65).await;
        assert_eq!((released.next, released.again), (None, again), "{nth}");
    }
    let claimed = claim_within(&rig, &tenant(2), 9, 65).await;
    assert_eq!((claimed.len(), claimed[1].key), (2, plain));
}

pub async fn an_attempt_of_a_full_tenant_blocks_no_other_in_the_queue_of_a_lane(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let batch = |name: &str| new_job(name).lane(Lane::Batch);
    let limits = Limits {
        tenants: [(rig.scope.tenant, 1)].into(),
        lanes: [None, None, Some(2)],
        ..Limits::default()
    };
    for n in 0..2 {
        let job = rig.add_for(&other, batch(&format!("theirs {n}")).build()).await;
        rig.queue(job, 60).await;
    }
    let running = claim_within(&rig, &limits, 9, 61).await;
    assert_eq!(running.len(), 2);
    queue_all(&rig, (0..30).map(|n| batch(&format!("ours {n}")).priority(90)), 62).await;
    let job = rig.add_for(&other, batch("their last").priority(10).build()).await;
    let theirs = rig.queue(job, 63).await;
    assert_eq!(keys(&claim_within(&rig, &limits, 99, 64).await), []);
    assert_eq!(rig.store.queue_depths(100).await.unwrap().parked, [0, 0, 31]);
    end_all(&rig, &running).await;
    assert_eq!(unpark_within(&rig, &limits, 65).await, 2);
    let claimed = claim_within(&rig, &limits, 9, 65).await;
    assert_eq!((claimed.len(), claimed[1].key), (2, theirs));
}

pub async fn an_attempt_of_a_full_lane_blocks_no_other_in_the_queue_of_a_key(opened: Opened) {
    let rig = Rig::new(opened).await;
    let critical = |name: &str| new_job(name).lane(Lane::Critical);
    let limits = Limits { lanes: [Some(1), None, None], ..Limits::default() };
    let (_, first) = queue(&rig, new_job("first").limited("host", 1), 60).await;
    let running = claim_within(&rig, &limits, 9, 61).await;
    assert_eq!(keys(&running), [first]);
    queue_all(&rig, (0..9).map(|n| critical(&format!("critical {n}")).limited("host", 1)), 62)
        .await;
    let (_, standard) = queue(&rig, new_job("standard").limited("host", 1), 63).await;
    assert_eq!(keys(&claim_within(&rig, &limits, 20, 64).await), []);
    let (_, fills) = queue(&rig, critical("fills the lane"), 65).await;
    assert_eq!(keys(&claim_within(&rig, &limits, 20, 66).await), [fills]);
    end_all(&rig, &running).await;
    assert_eq!(unpark_within(&rig, &limits, 67).await, 1);
    assert_eq!(keys(&claim_within(&rig, &limits, 20, 67).await), [standard]);
}

pub async fn an_attempt_with_a_free_key_waits_in_the_queue_of_its_tenant(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue_all(&rig, of_host(5), 60).await;
    let host = claim_within(&rig, &tenant(2), 1, 61).await;
    queue_all(&rig, (0..3).map(|n| new_job(&format!("plain {n}")).priority(10)), 62).await;
    let plain = claim_within(&rig, &tenant(2), 9, 63).await;
    assert_eq!((host.len(), plain.len()), (1, 1));
    assert_eq!(rig.store.queue_depths(100).await.unwrap().parked, [4, 2, 0]);
    end_all(&rig, &host).await;
    queue(&rig, new_job("takes its place").priority(100), 64).await;
    assert_eq!(claim_within(&rig, &tenant(2), 1, 65).await.len(), 1);
    // The concurrency key has a free permit, but the tenant has none. A release step without
    // `to_wider` moves no attempt to the tenant's limit queue.
    assert_eq!(unpark_within(&rig, &tenant(2), 66).await, 0);
    assert_eq!(rig.store.queue_depths(100).await.unwrap().parked, [4, 2, 0]);
    // When an attempt finishes, one attempt moves from the key's queue to the tenant's limit queue,
    // where it competes for the next permit.
    let terms = queues_within(&tenant(2)).terms;
    let ended = [Permit { limit: key_of(&rig, "host"), run: host[0].key }];
    assert_eq!(rig.store.release_limited(&ended, &terms, now(66)).await.unwrap(), 0);
    assert_eq!(rig.store.queue_depths(100).await.unwrap().parked, [3, 3, 0]);
    let step_over = ReleaseStep { to_wider: true, ..queues_within(&tenant(2)) };
    assert_eq!(step(&rig, step_over, 67).await.moved, 0);
    assert_eq!(rig.store.queue_depths(100).await.unwrap().parked, [2, 4, 0]);
    end_all(&rig, &plain).await;
    assert_eq!(unpark_within(&rig, &tenant(2), 68).await, 2);
    let next = claim_within(&rig, &tenant(2), 9, 68).await;
    let both = [key_of(&rig, "host"), LimitKey::of_tenant(rig.scope.tenant)];
    assert_eq!((next.len(), &next[0].permits[..]), (1, &both[..]));
}

pub async fn a_raised_limit_of_a_tenant_applies_to_waiting_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue_all(&rig, (0..20).map(|n| new_job(&format!("job {n}"))), 60).await;
    assert_eq!(claim_within(&rig, &tenant(2), 99, 61).await.len(), 2);
    assert_eq!(unpark_within(&rig, &tenant(2), 62).await, 0);
    assert_eq!(unpark_within(&rig, &tenant(10), 62).await, 8);
    assert_eq!(claim_within(&rig, &tenant(10), 99, 62).await.len(), 8);
    // The limit was lowered below the number of running attempts, so no attempt is released.
    assert_eq!(unpark_within(&rig, &tenant(3), 63).await, 0);
    assert_eq!(rig.census().await.running, 10);
}

pub async fn without_their_limit_all_attempts_are_released_at_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = |n: usize| new_job(&format!("job {n}")).lane(Lane::Batch);
    queue_all(&rig, (0..30).map(job), 60).await;
    let lanes = Limits { lanes: [None, None, Some(2)], ..Limits::default() };
    assert_eq!(claim_within(&rig, &lanes, 99, 61).await.len(), 2);
    assert_eq!(claim_within(&rig, &tenant(5), 99, 62).await.len(), 0);
    // The running attempts hold permits of the lane limit only, so all three permits of the tenant
    // are free.
    assert_eq!(unpark_within(&rig, &tenant(3), 63).await, 3);
    assert_eq!(claim_within(&rig, &tenant(3), 99, 63).await.len(), 3);
    assert_eq!(release_all_limited(&rig, 64).await, 25);
    assert_eq!(claim_within(&rig, &Limits::default(), 99, 64).await.len(), 25);
}

pub async fn a_step_reads_a_bounded_number_of_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let room = |key: &'static str| {
        (0..3).map(move |n| new_job(&format!("{key} {n}")).limited(key, if n < 2 { 2 } else { 1 }))
    };
    queue_all(&rig, ["a", "b", "c"].into_iter().flat_map(room), 60).await;
    let claimed = rig.claim(99, 61).await;
    assert_eq!(claimed.len(), 6);
    queue_all(&rig, ["a", "b", "c"].map(|key| new_job(key).limited(key, 2)), 62).await;
    assert_eq!(keys(&rig.claim(99, 63).await), []);
    end_all(&rig, &claimed).await;
    // Jobs with the same concurrency key have different limits, so a release step reads up to 1,000
    // attempts of each limit queue.
    let first = step(&rig, all_queues(), 64).await;
    assert!(first.next.is_some() && !first.again, "{first:?}");
    let second = step(&rig, ReleaseStep { after: first.next, ..all_queues() }, 64).await;
    assert_eq!((first.moved, second.moved, second.next), (4, 2, None));
}

pub async fn attempts_that_have_waited_long_block_no_other(opened: Opened) {
    let rig = Rig::new(opened).await;
    let low = of_host(40).map(|job| job.priority(10));
    queue_all(&rig, low, 60).await;
    // At 20,000 s the old attempts rank higher than the 1,000 new attempts.
    let later = 20_000;
    queue_all(&rig, (0..1_000).map(|n| new_job(&format!("plain {n}")).priority(50)), later).await;
    let first = rig.claim(1, later).await;
    assert_eq!(first[0].permits, [key_of(&rig, "host")]);
    let second = rig.claim(1, later).await;
    assert_eq!((second.len(), &second[0].permits[..]), (1, &[][..]));
}
