//! Tests the counts of waiting attempts by pool and lane.

use evenkeel_core::order::Lane;
use evenkeel_store::{FinishResult, QueueDepth, QueueDepths, QueueFront};

use super::limits::queue_many;
use crate::Opened;
use crate::fixtures::{JobBuilder, at, new_job};
use crate::rig::Rig;

async fn queue(rig: &Rig, job: JobBuilder, secs: i64) {
    let job = rig.add(job.build()).await;
    rig.queue(job, secs).await;
}

async fn depths(rig: &Rig, limit: u32) -> QueueDepths {
    rig.store.queue_depths(limit).await.expect("queued attempts can be counted")
}

/// Returns the counts of waiting attempts, and true if they are lower bounds.
async fn counts(rig: &Rig, limit: u32) -> (Vec<(String, Lane, u64)>, bool) {
    let QueueDepths { depths, is_lower_bound, .. } = depths(rig, limit).await;
    let count = |depth: QueueDepth| (depth.pool, depth.lane, depth.waiting);
    (depths.into_iter().map(count).collect(), is_lower_bound)
}

pub async fn an_empty_queue_has_no_depth(opened: Opened) {
    let rig = Rig::new(opened).await;
    // Running attempts, and due jobs that are not fired yet, do not wait for a worker.
    let job = rig.add(new_job("runs").build()).await;
    rig.start(job, 60).await;
    rig.add(new_job("due").build()).await;
    assert_eq!(depths(&rig, 100).await, QueueDepths::default());
}

pub async fn queued_attempts_are_counted_by_pool_lane_and_priority(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (name, pool, lane, priority, secs) in [
        ("a", "default", Lane::Standard, 0, 63),
        ("b", "default", Lane::Standard, 9, 61),
        ("c", "default", Lane::Standard, 55, 62),
        ("d", "default", Lane::Batch, 100, 64),
        ("e", "chrome", Lane::Critical, 10, 65),
    ] {
        queue(&rig, new_job(name).pool(pool).lane(lane).priority(priority), secs).await;
    }
    let found = depths(&rig, 100).await;
    let depth = |pool: &str, lane, waiting, secs, tens: &[(usize, u64)]| {
        let (pool, oldest) = (pool.into(), at(secs));
        let mut depth = QueueDepth { waiting, oldest, ..QueueDepth::none(pool, lane) };
        tens.iter().for_each(|(ten, count)| depth.by_tens[*ten] = *count);
        depth
    };
    let expected = vec![
        depth("chrome", Lane::Critical, 1, 65, &[(1, 1)]),
        depth("default", Lane::Standard, 3, 61, &[(0, 2), (5, 1)]),
        depth("default", Lane::Batch, 1, 64, &[(10, 1)]),
    ];
    assert_eq!(found, QueueDepths { depths: expected, ..QueueDepths::default() });
}

pub async fn a_claimed_attempt_is_not_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..3 {
        queue(&rig, new_job(&format!("job {n}")), 60).await;
    }
    rig.claim(2, 61).await;
    assert_eq!(counts(&rig, 100).await.0, [("default".into(), Lane::Standard, 1)]);
    rig.claim(2, 61).await;
    assert_eq!(counts(&rig, 100).await.0, []);
}

pub async fn queued_attempts_of_all_tenants_are_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = rig.add_for(&other, new_job("theirs").build()).await;
    rig.queue(job, 60).await;
    queue(&rig, new_job("ours"), 60).await;
    assert_eq!(counts(&rig, 100).await.0, [("default".into(), Lane::Standard, 2)]);
}

pub async fn a_deep_lane_is_counted_in_part_and_hides_no_other(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..30 {
        queue(&rig, new_job(&format!("deep {n}")).pool("a"), 60).await;
    }
    queue(&rig, new_job("one").pool("z"), 60).await;
    let (found, is_lower_bound) = counts(&rig, 10).await;
    // The first pass reads 6 rows of pool `a`. The second pass uses the rest of the limit of 10
    // rows, and reads 9 rows of this pool.
    assert_eq!(found, [("a".into(), Lane::Standard, 9), ("z".into(), Lane::Standard, 1)]);
    assert!(is_lower_bound);
    let (found, is_lower_bound) = counts(&rig, 40).await;
    assert_eq!(found, [("a".into(), Lane::Standard, 30), ("z".into(), Lane::Standard, 1)]);
    assert!(!is_lower_bound);
    // Even a limit of 0 shows in which pools and lanes attempts wait.
    assert_eq!(counts(&rig, 0).await.0.len(), 2);
}

pub async fn the_attempts_of_surplus_pools_are_counted_together(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = (0..303).map(|n| {
        let lane = if n < 301 { Lane::Standard } else { Lane::Batch };
        new_job(&format!("job {n}")).pool(&format!("p{n:03}")).lane(lane).priority(42).build()
    });
    for job in rig.add_all(jobs.collect()).await {
        rig.queue(job, 60).await;
    }
    // Attempts in a limit queue are not counted as waiting in a pool.
    queue_many(&rig, "host", 1, 3).await;
    assert_eq!(rig.claim(9, 80).await.len(), 1);
    let found = depths(&rig, 10_000).await;
    assert_eq!((found.depths.len(), found.is_lower_bound), (300, false));
    let others: Vec<(Lane, u64, u64)> =
        found.others.iter().map(|one| (one.lane, one.waiting, one.by_tens[4])).collect();
    assert_eq!(others, [(Lane::Standard, 1, 1), (Lane::Batch, 2, 2)]);
    assert!(found.others.iter().all(|one| one.oldest == at(60) && one.pool.is_empty()));
    assert!(depths(&rig, 3).await.is_lower_bound, "no more rows are read than allowed");
}

pub async fn a_claimed_attempt_has_its_waiting_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    queue(&rig, new_job("crawl"), 63).await;
    let claimed = rig.claim(5, 70).await;
    assert_eq!(claimed.iter().map(|attempt| attempt.since).collect::<Vec<_>>(), [at(63)]);
}

/// Returns the checksum of the queue front of the pool `default`.
async fn front(rig: &Rig, rows: u32) -> QueueFront {
    rig.store.queue_front(&["default".into()], rows).await.expect("the queue front can be read")
}

pub async fn the_front_changes_when_an_attempt_is_taken(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(front(&rig, 5).await, QueueFront::default());
    for n in 0..6 {
        let lane = if n < 3 { Lane::Standard } else { Lane::Batch };
        queue(&rig, new_job(&format!("job {n}")).lane(lane), 60 + n).await;
    }
    let mut before = vec![front(&rig, 5).await];
    assert_eq!(before[0], front(&rig, 5).await);
    for _ in 0..6 {
        assert_eq!(rig.claim(1, 70).await.len(), 1);
        let now = front(&rig, 5).await;
        assert!(!before.contains(&now), "{now:?} of {before:?}");
        before.push(now);
    }
    assert_eq!(before.last(), Some(&QueueFront::default()));
    // The checksum of the first queued runs changes when another run of the same job is queued.
    let job = rig.add(new_job("again").build()).await;
    rig.queue(job, 60).await;
    let first = front(&rig, 5).await;
    let held = rig.claim_one(70).await;
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::Done);
    rig.queue(job, 120).await;
    assert_ne!(front(&rig, 5).await, first);
}

pub async fn the_front_covers_the_given_pools_and_length(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..4 {
        queue(&rig, new_job(&format!("job {n}")).priority(50), 9_060).await;
    }
    let before = front(&rig, 3).await;
    queue(&rig, new_job("elsewhere").pool("chrome").priority(100), 9_060).await;
    // The new attempt ranks behind the others by waiting time and by priority, so the queue front
    // stays the same.
    queue(&rig, new_job("behind").priority(10), 9_090).await;
    assert_eq!(front(&rig, 3).await, before);
    queue(&rig, new_job("ahead").priority(60), 9_090).await;
    let ahead = front(&rig, 3).await;
    assert_ne!(ahead, before);
    // This attempt has waited longest, so it changes the queue front although its priority is
    // lowest.
    queue(&rig, new_job("old").priority(0), 60).await;
    assert_ne!(front(&rig, 3).await, ahead);
}
