//! Lists of attempts.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptKey, AttemptNo};
use evenkeel_store::{Attempt, PageRequest, Then};

use crate::Opened;
use crate::fixtures::{Begin, at, fresh_id, new_job};
use crate::rig::{Held, Known, Rig, next_attempt};

fn keys(runs: &[Attempt]) -> Vec<AttemptKey> {
    runs.iter().map(|run| run.key).collect()
}

async fn all_pages(rig: &Rig, job: Option<Known>, limit: u32) -> Vec<AttemptKey> {
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = rig.runs_page(job, PageRequest { limit, offset: 0, after }).await;
        assert!(page.items.len() <= limit as usize);
        seen.extend(keys(&page.items));
        after = page.next;
        if after.is_none() {
            return seen;
        }
    }
}

/// Adds a job with a skip record, a run of three attempts, a triggered run, and a queued attempt.
async fn eventful(rig: &Rig, name: &str) -> Known {
    let job = rig.add(new_job(name).build()).await;
    rig.run_successfully(job, 60).await;
    let mut held = rig.start(job, 400).await;
    for due in [410, 420] {
        rig.finish(rig.retry(held, at(due))).await;
        let mut delayed = rig.delayed(due).await;
        delayed.retain(|delayed| delayed.job.no == job.no);
        rig.fire_delayed(&delayed, Begin::Claimed, due).await;
        held = Held { key: next_attempt(held.key), ..held };
    }
    rig.finish(rig.success(held)).await;
    let key = rig.trigger(job, 0, 430).await;
    let mut delayed = rig.delayed(430).await;
    delayed.retain(|delayed| delayed.job.no == job.no);
    rig.fire_delayed(&delayed, Begin::Claimed, 430).await;
    rig.finish(rig.success(Held { key, ..held })).await;
    rig.queue(job, 440).await;
    job
}

const EVENTFUL: [(i64, u16); 7] =
    [(420, 0), (430, 0), (360, 2), (360, 1), (360, 0), (120, 0), (60, 0)];

pub async fn attempts_of_a_job_come_newest_run_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = eventful(&rig, "crawl").await;
    assert_eq!(rig.times_of(job).await, EVENTFUL);
    let page = rig.runs_page(Some(job), PageRequest::first(100)).await;
    assert!(page.total == 7 || page.total_is_estimate);
    assert_eq!(page.next, None);
}

pub async fn attempts_of_all_jobs_come_newest_scheduled_time_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    eventful(&rig, "a").await;
    eventful(&rig, "b").await;
    let page = rig.runs_page(None, PageRequest::first(100)).await;
    let listed = keys(&page.items);
    assert_eq!(listed.len(), 14);
    assert!(listed.is_sorted_by(|one, next| one.scheduled_at >= next.scheduled_at));
    assert!(page.total == 14 || page.total_is_estimate);
    assert_eq!(page.next, None);
}

pub async fn attempts_of_one_run_come_newest_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    eventful(&rig, "crawl").await;
    let page = rig.runs_page(None, PageRequest::first(100)).await;
    let of_chain = page.items.iter().filter(|run| run.key.scheduled_at == at(360));
    let attempts: Vec<u16> = of_chain.map(|run| run.key.attempt.0).collect();
    assert_eq!(attempts, [2, 1, 0]);
}

pub async fn pages_of_one_job_cover_all_attempts_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = eventful(&rig, "crawl").await;
    eventful(&rig, "other").await;
    let whole = keys(&rig.runs_of(job).await);
    for limit in 1..=8 {
        assert_eq!(all_pages(&rig, Some(job), limit).await, whole, "pages of {limit}");
    }
}

pub async fn pages_of_all_jobs_cover_all_attempts_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    eventful(&rig, "a").await;
    eventful(&rig, "b").await;
    let whole = all_pages(&rig, None, 100).await;
    for limit in [1, 2, 3, 5, 13, 14] {
        assert_eq!(all_pages(&rig, None, limit).await, whole, "pages of {limit}");
    }
}

pub async fn an_offset_skips_the_first_items(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = eventful(&rig, "crawl").await;
    for filter in [None, Some(job)] {
        let whole = all_pages(&rig, filter, 100).await;
        let page = |offset, after| PageRequest { limit: 2, offset, after };
        let items = rig.runs_page(filter, page(3, None)).await.items;
        assert_eq!(keys(&items), whole[3..5]);
        let items = rig.runs_page(filter, page(1, Some(whole[2]))).await.items;
        assert_eq!(keys(&items), whole[4..6]);
        let items = rig.runs_page(filter, page(50, None)).await.items;
        assert_eq!(keys(&items), []);
    }
}

pub async fn runs_are_ordered_by_firing_not_by_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.trigger(job, 0, 70).await;
    rig.fire_delayed(&rig.delayed(70).await, Begin::Claimed, 70).await;
    rig.finish(rig.success(Held { key, fence: evenkeel_core::lease::Fence(1) })).await;
    // The run that is scheduled for 60 s is fired after the triggered run.
    rig.run_successfully(job, 80).await;
    assert_eq!(rig.times_of(job).await, [(60, 0), (70, 0)]);
}

pub async fn a_listed_attempt_equals_the_single_read(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = eventful(&rig, "crawl").await;
    let mut all = rig.runs_page(None, PageRequest::first(100)).await.items;
    let mut one_job = rig.runs_of(job).await;
    all.sort_by_key(|run| run.key);
    one_job.sort_by_key(|run| run.key);
    assert_eq!(all, one_job);
    for run in all {
        // For the key with attempt number 0, the store returns the newest attempt of the run
        // instead.
        if run.key.attempt > AttemptNo::FIRST || run.key.scheduled_at != at(360) {
            assert_eq!(rig.run(run.key).await, run);
        }
    }
}

pub async fn attempt_0_stands_for_the_latest_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = eventful(&rig, "crawl").await;
    let first = AttemptKey::regular(job.no, at(360));
    assert_eq!(rig.run(first).await.key, first.with_attempt(AttemptNo(2)));
    for attempt in [1, 2].map(AttemptNo) {
        assert_eq!(rig.run(first.with_attempt(attempt)).await.key.attempt, attempt);
    }
    assert_eq!(rig.find_run(first.with_attempt(AttemptNo(3))).await, None);
}

pub async fn attempt_0_stands_for_a_queued_retry(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(70))).await;
    assert_eq!(rig.run(held.key).await.key, held.key, "a delayed attempt is not the latest");
    rig.fire_delayed(&rig.delayed(70).await, Begin::Queued, 70).await;
    let latest = rig.run(held.key).await;
    assert_eq!((latest.key, latest.status), (next_attempt(held.key), AttemptStatus::Pending));
}

pub async fn an_unknown_run_is_not_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    assert_eq!(rig.find_run(AttemptKey::regular(job.no, at(60))).await, None);
    let unknown = Known { id: fresh_id(), ..job };
    let page = rig.runs_page(Some(unknown), PageRequest::first(9)).await;
    assert_eq!((page.items, page.total, page.next), (Vec::new(), 0, None));
}

pub async fn a_job_that_never_ran_has_no_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    assert_eq!(rig.runs_of(job).await, []);
    assert_eq!(rig.runs_page(None, PageRequest::first(9)).await.items, []);
}

pub async fn attempts_of_other_jobs_are_not_listed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (a, b) = (rig.add(new_job("a").build()).await, rig.add(new_job("b").build()).await);
    rig.run_successfully(a, 60).await;
    rig.queue(b, 60).await;
    let ended = rig.start(a, 120).await;
    rig.finish(rig.end(ended, Outcome::Failed, Then::EndRun { stop_job: true, next_at: None }))
        .await;
    assert_eq!(rig.times_of(a).await, [(120, 0), (60, 0)]);
    assert_eq!(rig.times_of(b).await, [(60, 0)]);
}
