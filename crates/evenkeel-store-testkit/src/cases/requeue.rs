//! Tests attempts that go back to the queue.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_store::{FinishResult, Hook, Requeue, Then};

use crate::Opened;
use crate::fixtures::{Begin, at, new_job, now, place_of};
use crate::rig::{Held, OVER, Rig, next_attempt};

pub async fn a_requeued_attempt_has_a_higher_fence_and_the_same_number(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    assert!(rig.requeue(rig.requeue_of(held, job, true).await, 70).await);
    let run = rig.run(held.key).await;
    assert_eq!((run.key, run.status), (held.key, AttemptStatus::Pending));
    assert!(run.fence > held.fence);
    let after = rig.job(job).await;
    assert_eq!((after.live, after.waiting, after.executions), (1, 1, 1));
    assert_eq!(rig.owned(rig.node).await, []);
    let census = rig.census().await;
    assert_eq!((census.ready, census.running, census.live), (1, 0, 1));
}

pub async fn the_next_owner_has_a_higher_fence_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.requeue(rig.requeue_of(held, job, true).await, 70).await;
    let between = rig.run(held.key).await.fence;
    let again = rig.claim_one(71).await;
    assert_eq!(again.key, held.key);
    assert!(held.fence < between && between < again.fence);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.started_at), (AttemptStatus::Running, Some(at(71))));
    assert_eq!((run.fence, run.number), (again.fence, Some(2)), "a start is counted");
    assert_eq!(rig.finish(rig.success(again)).await, FinishResult::Done);
    assert_eq!(rig.job(job).await.live, 0);
}

pub async fn only_crashes_are_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let mut held = rig.start(job, 60).await;
    for (crashed, crashes) in [(true, 1), (false, 1), (true, 2)] {
        assert!(rig.requeue(rig.requeue_of(held, job, crashed).await, 70).await);
        assert_eq!(rig.run(held.key).await.crashes, crashes);
        held = rig.claim_one(71).await;
        assert_eq!(rig.run(held.key).await.crashes, crashes);
        assert_eq!(rig.owned(rig.node).await[0].crashes, crashes);
    }
}

pub async fn the_former_owner_can_neither_end_nor_requeue_the_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, true).await;
    assert!(rig.requeue(back.clone(), 70).await);
    for _ in 0..2 {
        let (run, before) = (rig.run(held.key).await, rig.job(job).await);
        assert_eq!(rig.finish(rig.success(held)).await, FinishResult::LeaseLost);
        assert_eq!(rig.finish(rig.retry(held, at(99))).await, FinishResult::LeaseLost);
        assert!(!rig.requeue(back.clone(), 75).await);
        assert_eq!((rig.run(held.key).await, rig.job(job).await), (run, before));
        // In the first pass of this loop, the former owner sends its result while the attempt
        // waits; in the second pass, while the next owner runs it.
        rig.claim(1, 80).await;
    }
}

pub async fn another_node_or_fence_requeues_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.join("node-2", 60).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, true).await;
    assert_eq!(rig.store.requeue(other, vec![back.clone()], now(70)).await.unwrap(), [false]);
    for fence in [Fence::NONE, held.fence.next()] {
        assert!(!rig.requeue(Requeue { fence, ..back.clone() }, 70).await);
    }
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Running);
    assert_eq!(rig.census().await.ready, 0);
}

pub async fn an_ended_or_waiting_attempt_is_not_requeued(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.success(held)).await;
    assert!(!rig.requeue(rig.requeue_of(held, job, true).await, 70).await);
    let key = rig.queue(job, 120).await;
    let waiting = Held { key, fence: Fence::NONE };
    assert!(!rig.requeue(rig.requeue_of(waiting, job, true).await, 121).await);
    assert_eq!(rig.census().await.ready, 1);
}

pub async fn results_are_in_the_order_of_the_batch(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["a", "b", "c"].map(|name| new_job(name).build()).to_vec();
    let mut batch = Vec::new();
    for job in rig.add_all(jobs).await {
        let held = rig.start(job, 60).await;
        batch.push(rig.requeue_of(held, job, false).await);
    }
    batch[1].fence = Fence(9);
    batch.reverse();
    let answers = rig.store.requeue(rig.node, batch, now(70)).await.unwrap();
    assert_eq!(answers, [true, false, true]);
    assert_eq!(rig.claim(9, 71).await.len(), 2);
}

pub async fn other_nodes_requeue_for_a_dead_node(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let heir = rig.join("node-1", 65).await;
    assert!(rig.requeue(rig.requeue_of(held, job, true).await, 66).await);
    let got = rig.claim_for(heir, 9, 67).await;
    assert_eq!(got[0].key, held.key);
    assert_eq!(rig.run(held.key).await.node, Some((heir, "node-1".into())));
}

pub async fn a_retry_can_be_requeued(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(90))).await;
    rig.fire_delayed(&rig.delayed(90).await, Begin::Claimed, 90).await;
    let second = Held { key: next_attempt(held.key), fence: Fence(1) };
    assert!(rig.requeue(rig.requeue_of(second, job, true).await, 91).await);
    assert_eq!(rig.claim_one(92).await.key, second.key);
    assert_eq!(rig.times_of(job).await, [(60, 1), (60, 0)]);
}

pub async fn a_requeued_attempt_is_listed_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let held = rig.start(job, 120).await;
    rig.requeue(rig.requeue_of(held, job, true).await, 130).await;
    assert_eq!(rig.times_of(job).await, [(120, 0), (60, 0)]);
    let all = rig.runs_page(None, evenkeel_store::PageRequest::first(9)).await;
    assert_eq!(all.items.len(), 2);
}

pub async fn a_requeued_attempt_shows_its_former_node(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    assert!(rig.requeue(rig.requeue_of(held, job, false).await, 70).await);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.fence), (AttemptStatus::Pending, held.fence.next()));
    assert_eq!(run.node, Some((rig.node, "node-1".into())));
    assert_eq!((run.number, run.started_at), (Some(1), Some(at(60))));
}

pub async fn a_requeued_attempt_has_its_new_queue_entry(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (a, b) = (rig.add(new_job("a").build()).await, rig.add(new_job("b").build()).await);
    let held = rig.start(a, 60).await;
    rig.queue(b, 60).await;
    let mut back = rig.requeue_of(held, a, false).await;
    place_of(&mut back).priority = evenkeel_core::order::Priority::MAX;
    assert!(rig.requeue(back.clone(), 70).await);
    let order: Vec<_> = rig.claim(9, 71).await.iter().map(|one| one.key.job_no).collect();
    assert_eq!(order, [a.no, b.no]);
}

pub async fn a_lost_attempt_that_fails_ends_with_its_error(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    assert!(rig.requeue(rig.lost_end(held, true, OVER, Hook::None), 70).await);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.fence, run.crashes), (AttemptStatus::Failed, held.fence, 1));
    assert_eq!(run.results.error.as_deref(), Some("its node died"));
    assert_eq!((run.started_at, run.finished_at), (Some(at(60)), Some(at(64))));
    let after = rig.job(job).await;
    assert_eq!((after.live, after.waiting, after.history.consecutive_failures), (0, 0, 1));
    assert_eq!(rig.owned(rig.node).await, []);
    assert_eq!(rig.claim(9, 71).await.len(), 0);
    assert_eq!(rig.delayed(9_999).await.len(), 0, "the retry policy of the job does not matter");
}

pub async fn a_loss_without_a_crash_is_not_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let retry = Then::Retry { due: at(90) };
    assert!(rig.requeue(rig.lost_end(held, false, retry, Hook::None), 70).await);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.crashes), (AttemptStatus::Failed, 0));
    assert_eq!(rig.delayed(9_999).await.len(), 0, "a lost run is not retried");
    assert_eq!(rig.job(job).await.live, 0);
}

pub async fn only_the_owner_fails_an_attempt_and_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.join("node-2", 60).await;
    let held = rig.start(job, 60).await;
    let lost = rig.lost_end(held, true, OVER, Hook::None);
    assert_eq!(rig.store.requeue(other, vec![lost.clone()], now(70)).await.unwrap(), [false]);
    assert!(!rig.requeue(Requeue { fence: held.fence.next(), ..lost.clone() }, 70).await);
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Running);
    assert!(rig.requeue(lost.clone(), 70).await);
    assert!(!rig.requeue(lost, 71).await);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.crashes), (AttemptStatus::Failed, 1));
    assert_eq!(rig.job(job).await.history.consecutive_failures, 1);
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::AlreadyDone);
}

pub async fn a_batch_may_requeue_some_and_fail_others(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["a", "b", "c", "d"].map(|name| new_job(name).build()).to_vec();
    let (mut batch, mut keys) = (Vec::new(), Vec::new());
    for (n, job) in rig.add_all(jobs).await.into_iter().enumerate() {
        let held = rig.start(job, 60).await;
        keys.push(held.key);
        batch.push(match n % 2 {
            0 => rig.requeue_of(held, job, true).await,
            _ => rig.lost_end(held, true, OVER, Hook::None),
        });
    }
    batch[3].fence = Fence(9);
    let answers = rig.store.requeue(rig.node, batch, now(70)).await.unwrap();
    assert_eq!(answers, [true, true, true, false]);
    let mut statuses = Vec::new();
    for key in keys {
        let run = rig.run(key).await;
        statuses.push((run.status, run.crashes));
    }
    use AttemptStatus::{Failed, Pending, Running};
    assert_eq!(statuses, [(Pending, 1), (Failed, 1), (Pending, 1), (Running, 0)]);
    assert_eq!(rig.claim(9, 71).await.len(), 2);
}
