//! Tests that waiting raises the rank of an attempt without updates of its stored row.

use evenkeel_core::JobNo;
use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::order::Lane;
use evenkeel_store::{Claim, FireResult, QueuePosition, Start};

use crate::Opened;
use crate::fixtures::{Begin, JobBuilder, at, fire_of, new_job, now};
use crate::queue_play::{Play, steps};
use crate::rig::{Held, Rig, claim_of};

/// A deadline so far in the future that it does not affect the dispatch order.
const FAR: i64 = 1_000_000;
const HOUR: i64 = 3600;

/// Queues an attempt of the job, `secs` seconds after the start of the case.
async fn wait(rig: &Rig, job: JobBuilder, secs: i64) -> JobNo {
    wait_until(rig, job, secs, FAR).await
}

/// Queues an attempt of the job that should start by `deadline`. Both times are in seconds.
async fn wait_until(rig: &Rig, job: JobBuilder, secs: i64, deadline: i64) -> JobNo {
    let job = rig.add(job.first_at(secs).build()).await;
    let mut fire = fire_of(&rig.due(job).await, at(secs), Begin::Queued);
    if let Some((_, Start::Queued(entry))) = &mut fire.start {
        entry.should_start_by = at(deadline);
    }
    assert!(matches!(rig.fire(vec![fire], secs).await[..], [FireResult::Fired(_)]));
    job.no
}

async fn claim(rig: &Rig, claim: Claim, secs: i64) -> Vec<JobNo> {
    let claimed = rig.store.claim(&claim, now(secs)).await.unwrap();
    claimed.attempts.iter().map(|attempt| attempt.key.job_no).collect()
}

fn from_pool(rig: &Rig, pool: &str, capacity: usize) -> Claim {
    Claim { pools: vec![pool.into()], ..claim_of(rig.node, capacity) }
}

pub async fn an_attempt_that_has_waited_long_goes_before_a_higher_priority(opened: Opened) {
    let rig = Rig::new(opened).await;
    // The rank of the older attempt is 20, and rises by 10 every 300 s from 3,900 s on.
    for (moment, older_first) in
        [(3_300, false), (3_899, false), (4_799, false), (4_800, true), (5_100, true)]
    {
        let pool = moment.to_string();
        let named = |name: &str| new_job(&format!("{name} {pool}")).pool(&pool);
        let older = wait(&rig, named("older").priority(20), 10).await;
        let higher = wait(&rig, named("higher").priority(60), 3_000).await;
        let first = if older_first { older } else { higher };
        assert_eq!(claim(&rig, from_pool(&rig, &pool, 1), moment).await, [first], "{moment}");
        let second = if older_first { higher } else { older };
        assert_eq!(claim(&rig, from_pool(&rig, &pool, 5), moment).await, [second], "{moment}");
    }
}

pub async fn among_equal_ranks_the_earlier_deadline_goes_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (moment, older_first) in [(4_800, false), (5_100, true)] {
        let pool = moment.to_string();
        let named = |name: &str| new_job(&format!("{name} {pool}")).pool(&pool);
        let older = wait_until(&rig, named("older").priority(20), 10, 9_000).await;
        let nearer = wait_until(&rig, named("nearer").priority(60), 3_000, 8_000).await;
        let first = if older_first { older } else { nearer };
        assert_eq!(claim(&rig, from_pool(&rig, &pool, 1), moment).await, [first], "{moment}");
    }
}

pub async fn above_the_cap_the_longest_wait_still_goes_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    let oldest = wait_until(&rig, new_job("oldest").priority(0), 10, FAR).await;
    let older = wait_until(&rig, new_job("older").priority(0), 2 * HOUR, FAR).await;
    for n in 0..3 {
        let job = new_job(&format!("pressing {n}")).priority(100);
        wait_until(&rig, job, 40 * HOUR, 40 * HOUR).await;
    }
    assert_eq!(claim(&rig, claim_of(rig.node, 2), 48 * HOUR).await, [oldest, older]);
}

pub async fn waiting_does_not_count_beyond_its_lane(opened: Opened) {
    let rig = Rig::new(opened).await;
    let batch = wait(&rig, new_job("batch").lane(Lane::Batch).priority(100), 10).await;
    let critical = wait(&rig, new_job("critical").lane(Lane::Critical), 20 * HOUR).await;
    let standard = wait(&rig, new_job("standard"), 20 * HOUR).await;
    let all = claim(&rig, claim_of(rig.node, 3), 20 * HOUR).await;
    assert_eq!(all, [critical, standard, batch]);
}

pub async fn waiting_counts_across_pools(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..5 {
        wait(&rig, new_job(&format!("new {n}")).pool("a").priority(50), 5 * HOUR).await;
    }
    let old = wait(&rig, new_job("old").pool("b").priority(0), 10).await;
    let newest = wait(&rig, new_job("high").pool("b").priority(90), 5 * HOUR).await;
    let pools: Vec<String> = vec!["a".into(), "b".into(), "a".into()];
    let both = Claim { pools, ..claim_of(rig.node, 2) };
    assert_eq!(claim(&rig, both.clone(), 5 * HOUR).await, [old, newest]);
    assert_eq!(claim(&rig, both, 5 * HOUR).await.len(), 2);
}

pub async fn guaranteed_capacity_goes_to_the_longest_wait(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut critical = Vec::new();
    for n in 0..4 {
        let job = new_job(&format!("critical {n}")).lane(Lane::Critical);
        critical.push(wait(&rig, job, 5 * HOUR + n).await);
        wait(&rig, new_job(&format!("new {n}")).priority(90), 5 * HOUR).await;
    }
    let old = wait(&rig, new_job("old").priority(0), 10).await;
    let wanted = Claim { guaranteed: [0, 1, 1], ..claim_of(rig.node, 3) };
    let got = claim(&rig, wanted, 5 * HOUR + 10).await;
    assert_eq!(got, [critical[0], critical[1], old]);
}

pub async fn capacity_is_shared_by_new_and_old_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for n in 0..6 {
        // After six hours, the old attempts have ranks of 570 and more, in the order in which they
        // were queued.
        old.push(wait(&rig, new_job(&format!("old {n}")).priority(0), 10 + 300 * n).await);
        let priority = 100 - n as u8;
        new.push(wait(&rig, new_job(&format!("new {n}")).priority(priority), 6 * HOUR).await);
    }
    assert_eq!(claim(&rig, claim_of(rig.node, 4), 6 * HOUR).await, old[..4]);
    let mixed = claim(&rig, claim_of(rig.node, 5), 6 * HOUR).await;
    assert_eq!(mixed, [old[4], old[5], new[0], new[1], new[2]]);
}

pub async fn without_steps_waiting_changes_no_rank(opened: Opened) {
    let rig = Rig::new(opened).await;
    wait(&rig, new_job("old").priority(0), 10).await;
    let new = wait(&rig, new_job("new").priority(1), 90 * HOUR).await;
    let aging = Aging { step: 0, ..Aging::default() };
    let wanted = Claim { aging, ..claim_of(rig.node, 1) };
    assert_eq!(claim(&rig, wanted, 90 * HOUR).await, [new]);
}

pub async fn a_stream_of_higher_priorities_starves_no_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let lowest = wait(&rig, new_job("lowest").priority(0), 10).await;
    for n in 1..60 {
        let secs = n * 300;
        for twin in ["a", "b"] {
            // Each new attempt has an earlier deadline than the attempt that has waited longest.
            let job = new_job(&format!("{twin} {n}")).priority(100);
            wait_until(&rig, job, secs, secs).await;
        }
        if claim(&rig, claim_of(rig.node, 1), secs).await == [lowest] {
            assert!(n > 20, "the attempt was claimed too early");
            return;
        }
    }
    panic!("the attempt is never claimed");
}

pub async fn a_closed_attempt_does_not_block_older_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..3 {
        let job = rig.add(new_job(&format!("closed {n}")).priority(0).first_at(5).build()).await;
        let mut fire = fire_of(&rig.due(job).await, at(5), Begin::Queued);
        if let Some((_, Start::Queued(entry))) = &mut fire.start {
            (entry.open_from, entry.open_until) = (Some(at(90 * HOUR)), None);
        }
        rig.fire(vec![fire], 5).await;
    }
    let forbidden = new_job("forbidden").priority(0).not_on(&["node-1"]);
    wait(&rig, forbidden, 6).await;
    let old = wait(&rig, new_job("old").priority(0), 10).await;
    wait(&rig, new_job("new").priority(100), 9 * HOUR).await;
    assert_eq!(claim(&rig, claim_of(rig.node, 1), 9 * HOUR).await, [old]);
}

pub async fn a_claim_returns_since_when_the_attempt_waited(opened: Opened) {
    let rig = Rig::new(opened).await;
    wait(&rig, new_job("crawl"), 70).await;
    let claimed = rig.claim(1, 500).await;
    assert_eq!((claimed[0].since, claimed[0].priority), (at(70), None));
}

pub async fn a_requeued_attempt_keeps_its_waiting_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("old").priority(0).first_at(10).build()).await;
    rig.queue(job, 10).await;
    let held = rig.claim_one(20).await;
    let back = rig.requeue_of(held, job, false).await;
    assert!(rig.requeue(back, 5 * HOUR).await);
    wait(&rig, new_job("new").priority(100), 5 * HOUR).await;
    let claimed = rig.claim(1, 5 * HOUR).await;
    assert_eq!((claimed[0].key.job_no, claimed[0].since), (job.no, at(10)));
    let again = Held { key: claimed[0].key, fence: claimed[0].fence };
    rig.finish(rig.success(again)).await;
}

pub async fn attempts_ahead_are_counted_by_rank(opened: Opened) {
    let rig = Rig::new(opened).await;
    let now_is = 6_000;
    wait(&rig, new_job("critical").lane(Lane::Critical), now_is).await;
    for n in 0..2 {
        wait(&rig, new_job(&format!("new {n}")).priority(50), now_is).await;
    }
    // The old attempt has rank 80 because of its waiting time.
    wait(&rig, new_job("old").priority(0), 10).await;
    wait(&rig, new_job("batch").lane(Lane::Batch).priority(100), now_is).await;
    wait(&rig, new_job("elsewhere").pool("big").priority(100), now_is).await;
    let closed = rig.add(new_job("closed").priority(100).first_at(now_is).build()).await;
    let mut fire = fire_of(&rig.due(closed).await, at(now_is), Begin::Queued);
    if let Some((_, Start::Queued(entry))) = &mut fire.start {
        entry.open_from = Some(at(9_000));
    }
    rig.fire(vec![fire], now_is).await;
    let pools = [evenkeel_core::job::DEFAULT_POOL.to_owned(), "big".to_owned()];
    let twice = [pools[0].clone(), pools[0].clone()];
    for (pools, lane, rank, limit, count) in [
        (&pools[..1], Lane::Critical, 1, 9, 0),
        (&pools[..1], Lane::Critical, 0, 9, 1),
        (&pools[..1], Lane::Standard, 81, 9, 0),
        (&pools[..1], Lane::Standard, 80, 9, 1),
        (&pools[..1], Lane::Standard, 51, 9, 1),
        (&pools[..1], Lane::Standard, 50, 9, 3),
        (&pools[..1], Lane::Standard, 0, 9, 3),
        (&pools[..1], Lane::Standard, 0, 2, 2),
        (&pools[..1], Lane::Standard, 0, 0, 0),
        (&pools[..1], Lane::Batch, 200, 9, 0),
        (&pools[..1], Lane::Batch, 100, 9, 1),
        (&pools[..], Lane::Standard, 81, 9, 1),
        (&twice[..], Lane::Standard, 0, 9, 3),
        (&[], Lane::Batch, 0, 9, 0),
    ] {
        let place = QueuePosition { lane, rank: Rank(rank), aging: Aging::default() };
        let ahead = rig.store.count_queued_ahead(pools, place, limit, now(now_is)).await.unwrap();
        assert_eq!(ahead, count, "{pools:?} {lane:?} {rank} {limit}");
    }
}

pub async fn claims_return_the_order_of_the_model_after_random_steps(opened: Opened) {
    let (tested, model) = (Rig::new(opened).await, crate::paging::model().await);
    let mut tested = Play::new(tested).await;
    let mut model = Play::new(model).await;
    for (nth, step) in steps(7, 400).into_iter().enumerate() {
        let expected = model.play(&step).await;
        assert_eq!(tested.play(&step).await, expected, "step {nth}: {step:?}");
    }
}
