//! Tests which attempts wait for a worker longer than their deadline allows.

use std::collections::BTreeSet;

use evenkeel_core::condition::Reason;
use evenkeel_core::{AttemptKey, JobNo, Shard};
use evenkeel_store::OverdueInQueue;

use super::judging::{job_to_judge, judgement, mark};
use crate::Opened;
use crate::fixtures::{at, new_job, now, unnamed_job};
use crate::rig::Rig;

/// Returns the jobs with overdue attempts, reading `limit` attempts per call of the store.
async fn overdue(rig: &Rig, shards: &[Shard], limit: u32, secs: i64) -> Vec<JobNo> {
    let (mut found, mut after) = (BTreeSet::new(), None);
    loop {
        let look = rig.store.overdue_in_queue(shards, after, limit, now(secs)).await.unwrap();
        assert!(look.jobs.len() <= limit as usize);
        found.extend(look.jobs);
        assert!(look.next.is_none_or(|next| Some(next) > after), "the rebalance is running");
        after = look.next;
        if after.is_none() {
            return found.into_iter().collect();
        }
    }
}

pub async fn an_attempt_that_waits_past_its_deadline_is_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let shard = [Shard::of(job.no)];
    // The attempt is overdue if it does not start within one minute.
    rig.queue(job, 60).await;
    assert_eq!(overdue(&rig, &shard, 10, 120).await, []);
    assert_eq!(overdue(&rig, &shard, 10, 121).await, [job.no]);
    mark(&rig, &[job]).await;
    assert_eq!(overdue(&rig, &shard, 10, 121).await, []);
    let well = judgement(&job_to_judge(&rig, job, 121).await, Reason::OnTime, None);
    rig.store.judge(vec![well], now(121)).await.unwrap();
    assert_eq!(overdue(&rig, &shard, 10, 121).await, [job.no]);
    rig.claim_one(122).await;
    assert_eq!(overdue(&rig, &shard, 10, 900).await, []);
}

pub async fn overdue_attempts_are_found_by_shard_in_small_steps(opened: Opened) {
    let rig = Rig::new(opened).await;
    let allow = evenkeel_core::overlap::OverlapPolicy::Allow;
    let jobs = ["a", "b", "c"].map(|name| new_job(name).overlap(allow).build());
    let jobs = rig.add_all(jobs.to_vec()).await;
    for job in &jobs {
        rig.queue(*job, 60).await;
        rig.queue(*job, 120).await;
    }
    // A retry that waits for its due time is not overdue, because it does not wait for a worker.
    let retried = rig.add(new_job("retried").build()).await;
    let held = rig.start(retried, 60).await;
    rig.finish(rig.retry(held, at(70))).await;
    let all: Vec<Shard> = Shard::all().collect();
    let numbers: Vec<JobNo> = jobs.iter().map(|job| job.no).collect();
    for limit in [1, 2, 4, 6, 10] {
        assert_eq!(overdue(&rig, &all, limit, 900).await, numbers);
        assert_eq!(overdue(&rig, &[Shard::of(jobs[1].no)], limit, 900).await, [jobs[1].no]);
        assert_eq!(overdue(&rig, &[], limit, 900).await, []);
    }
}

pub async fn a_scan_reads_no_more_than_its_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = (0..40).map(|_| unnamed_job().build()).collect();
    let jobs = rig.add_all(jobs).await;
    for job in &jobs {
        rig.queue(*job, 60).await;
    }
    // All attempts have the same scheduled time, so their keys are in the order of their jobs.
    let last = jobs[39].no;
    let look = async |after, limit| {
        rig.store.overdue_in_queue(&[Shard::of(last)], after, limit, now(900)).await.unwrap()
    };
    let first = look(None, 30).await;
    let next = Some(AttemptKey::regular(jobs[29].no, at(60)));
    assert_eq!(first, OverdueInQueue { jobs: Vec::new(), next });
    assert_eq!(look(next, 30).await, OverdueInQueue { jobs: vec![last], next: None });
    assert_eq!(look(None, 0).await, OverdueInQueue::default());
}
