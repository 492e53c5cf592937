//! Pruning of attempts.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::{AttemptKey, Timestamp};
use evenkeel_store::{PageRequest, Prune};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{Begin, at, fire_of, new_job, now};
use crate::rig::{Known, OVER, Rig};

const LONG_AGO: Timestamp = Timestamp::MIN;

/// Prunes all attempts in steps of `limit`, and returns the number of deleted rows.
async fn prune(rig: &Rig, limit: u32, keep_per_job: u32, keep_since: Timestamp) -> u64 {
    let (mut after, mut deleted) = (None, 0);
    for _ in 0..1_000 {
        let step = Prune { after, limit, keep_per_job, keep_since };
        let done = rig.store.prune(step).await.unwrap();
        assert!(done.seen <= u64::from(limit), "the step read more attempts than its limit");
        assert!(done.deleted <= done.seen);
        deleted += done.deleted;
        if done.next.is_none() {
            return deleted;
        }
        assert!(done.next > after, "the next step starts after this one");
        after = done.next;
    }
    panic!("pruning does not end");
}

async fn run(rig: &Rig, job: Known, outcomes: &[Outcome]) {
    for (n, outcome) in (1..).zip(outcomes) {
        let held = rig.start(job, n * 60).await;
        rig.finish(rig.end(held, *outcome, OVER)).await;
    }
}

async fn times(rig: &Rig, job: Known) -> Vec<i64> {
    rig.times_of(job).await.into_iter().map(|(secs, _)| secs).collect()
}

pub async fn only_the_newest_of_each_job_are_kept(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (a, b) = (rig.add(new_job("a").build()).await, rig.add(new_job("b").build()).await);
    run(&rig, a, &[Outcome::Completed; 8]).await;
    run(&rig, b, &[Outcome::Completed; 2]).await;
    assert_eq!(prune(&rig, 100, 3, LONG_AGO).await, 5);
    assert_eq!(times(&rig, a).await, [480, 420, 360]);
    assert_eq!(times(&rig, b).await, [120, 60]);
    assert_eq!(rig.census().await.runs, 5);
}

pub async fn attempts_that_ended_before_the_limit_are_pruned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    run(&rig, job, &[Outcome::Completed; 6]).await;
    // Each attempt took five seconds, so the third attempt finished at 185 s.
    assert_eq!(prune(&rig, 100, 100, at(185)).await, 2);
    assert_eq!(times(&rig, job).await, [360, 300, 240, 180]);
    assert_eq!(prune(&rig, 100, 100, at(186)).await, 1);
    assert_eq!(times(&rig, job).await, [360, 300, 240]);
}

pub async fn the_newest_success_and_the_newest_failure_stay(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let outcomes = [
        Outcome::Completed,
        Outcome::Completed,
        Outcome::Failed,
        Outcome::TimedOut,
        Outcome::Cancelled,
        Outcome::Cancelled,
    ];
    run(&rig, job, &outcomes).await;
    assert_eq!(prune(&rig, 100, 0, at(9_000)).await, 4);
    assert_eq!(times(&rig, job).await, [240, 120]);
}

pub async fn a_partly_failed_attempt_is_a_success(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    run(&rig, job, &[Outcome::Completed, Outcome::PartlyFailed, Outcome::Failed]).await;
    assert_eq!(prune(&rig, 100, 0, at(9_000)).await, 1);
    assert_eq!(times(&rig, job).await, [180, 120]);
}

pub async fn running_and_waiting_attempts_stay(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["runs", "back", "queued"].map(|name| new_job(name).build()).to_vec();
    let jobs = rig.add_all(jobs).await;
    rig.start(jobs[0], 60).await;
    let held = rig.start(jobs[1], 60).await;
    rig.requeue(rig.requeue_of(held, jobs[1], true).await, 61).await;
    rig.queue(jobs[2], 60).await;
    assert_eq!(prune(&rig, 100, 0, at(9_000)).await, 0);
    for job in jobs {
        assert_eq!(times(&rig, job).await, [60]);
    }
    assert_eq!(rig.claim(9, 70).await.len(), 2);
}

pub async fn skip_records_are_pruned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").misfire(MisfirePolicy::Skip).build()).await;
    let fire = fire_of(&rig.due(job).await, at(300), Begin::Claimed);
    rig.fire(vec![fire], 300).await;
    assert_eq!(prune(&rig, 100, 100, at(0)).await, 0);
    assert_eq!(prune(&rig, 100, 100, at(9_000)).await, 1);
    assert_eq!(rig.runs_of(job).await, []);
}

pub async fn an_attempt_cancelled_before_its_start_is_pruned_by_age(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.queue(job, 60).await;
    rig.store.delete(&rig.scope, job.id, now(70)).await.unwrap();
    assert_eq!(prune(&rig, 100, 100, at(70)).await, 0);
    assert_eq!(prune(&rig, 100, 100, at(71)).await, 1);
}

pub async fn small_steps_reach_the_end(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all((0..3).map(|n| new_job(&format!("{n}")).build()).collect()).await;
    for job in &jobs {
        run(&rig, *job, &[Outcome::Completed; 7]).await;
    }
    assert_eq!(prune(&rig, 2, 3, LONG_AGO).await, 12);
    for job in jobs {
        assert_eq!(times(&rig, job).await, [420, 360, 300]);
    }
}

pub async fn a_step_continues_after_the_given_key(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    run(&rig, job, &[Outcome::Completed; 5]).await;
    let after = Some(AttemptKey::regular(job.no, at(120)));
    let step = Prune { after, limit: 100, keep_per_job: 0, keep_since: at(9_000) };
    assert_eq!(rig.store.prune(step).await.unwrap().deleted, 2);
    assert_eq!(times(&rig, job).await, [300, 120, 60]);
}

pub async fn an_empty_history_is_at_its_end(opened: Opened) {
    let rig = Rig::new(opened).await;
    let step = Prune { after: None, limit: 10, keep_per_job: 1, keep_since: at(0) };
    let done = rig.store.prune(step).await.unwrap();
    assert_eq!((done.seen, done.deleted, done.next), (0, 0, None));
}

pub async fn lists_continue_across_pruned_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let mut outcomes = [Outcome::Completed; 9];
    outcomes[1] = Outcome::Failed;
    run(&rig, job, &outcomes).await;
    assert_eq!(prune(&rig, 100, 2, LONG_AGO).await, 6);
    // No newer run points to the failed attempt any more, but pruning keeps the attempt.
    assert_eq!(times(&rig, job).await, [540, 480, 120]);
    assert_eq!(rig.runs_page(None, PageRequest::first(9)).await.items.len(), 3);
    let first = rig.runs_page(Some(job), PageRequest::first(2)).await;
    let rest = PageRequest { after: first.next, ..PageRequest::first(2) };
    let last = rig.runs_page(Some(job), rest).await;
    let left: Vec<_> = last.items.iter().map(|run| run.key.scheduled_at).collect();
    assert_eq!((left, last.next), (vec![at(120)], None));
}

pub async fn a_pruned_job_keeps_firing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    run(&rig, job, &[Outcome::Cancelled; 3]).await;
    assert_eq!(prune(&rig, 100, 0, at(9_000)).await, 3);
    let before = rig.due(job).await;
    assert!(before.head.is_some(), "the link to the run stays");
    rig.run_successfully(job, 240).await;
    rig.run_successfully(job, 300).await;
    assert_eq!(times(&rig, job).await, [300, 240]);
    assert_eq!(rig.job(job).await.executions, 5);
}
