//! Tests retries and triggers that wait for their due time.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, NodeNo};
use evenkeel_store::{
    Attempt, FinishResult, FireDelayed, FireResult, PageRequest, Results, RunLink,
};

use crate::Opened;
use crate::fixtures::{Begin, at, new_job, now};
use crate::rig::{Held, Known, Rig, delayed_fire_of, next_attempt};

const FIRED: FireResult = FireResult::Fired(Fence(1));

/// Adds a job whose first attempt was scheduled for 60 s, failed, and is retried at 90 s.
async fn failed(rig: &Rig, name: &str) -> (Known, AttemptKey) {
    let job = rig.add(new_job(name).build()).await;
    let held = rig.start(job, 60).await;
    assert_eq!(rig.finish(rig.retry(held, at(90))).await, FinishResult::Done);
    (job, next_attempt(held.key))
}

pub async fn a_retry_keeps_the_run_active_and_waits(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, _) = failed(&rig, "crawl").await;
    let after = rig.job(job).await;
    assert_eq!((after.live, after.waiting, after.executions), (1, 1, 1));
    let census = rig.census().await;
    assert_eq!((census.delayed, census.live, census.running), (1, 1, 0));
}

pub async fn a_delayed_attempt_is_returned_until_it_is_fired(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, retry) = failed(&rig, "crawl").await;
    assert_eq!(rig.delayed(89).await, []);
    let returned = rig.delayed(90).await;
    assert_eq!(returned.len(), 1);
    assert_eq!((returned[0].due, returned[0].key), (at(90), retry));
    assert_eq!(returned[0].job, rig.due(job).await);
    assert_eq!(rig.delayed(95).await, returned);
    assert_eq!(rig.fire_delayed(&returned, Begin::Claimed, 95).await, [FIRED]);
    assert_eq!(rig.delayed(99).await, []);
}

pub async fn a_delayed_attempt_fires_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    failed(&rig, "crawl").await;
    for begin in [Begin::Claimed, Begin::Queued] {
        let job = rig.add(new_job(&format!("{begin:?}")).build()).await;
        rig.trigger(job, 0, 90).await;
        let returned: Vec<_> =
            rig.delayed(90).await.into_iter().filter(|delayed| delayed.job.no == job.no).collect();
        assert!(matches!(rig.fire_delayed(&returned, begin, 91).await[..], [FireResult::Fired(_)]));
        assert_eq!(rig.fire_delayed(&returned, begin, 91).await, [FireResult::Stale]);
        assert_eq!(rig.job(job).await.live, 1);
    }
}

pub async fn a_started_retry_is_the_next_attempt_of_its_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, retry) = failed(&rig, "crawl").await;
    let head = rig.due(job).await.head;
    rig.fire_delayed(&rig.delayed(90).await, Begin::Claimed, 92).await;
    let run = rig.run(retry).await;
    assert_eq!((run.status, run.fence), (AttemptStatus::Running, Fence(1)));
    assert_eq!((run.number, run.started_at), (Some(2), Some(at(92))));
    assert_eq!(rig.due(job).await.head, head, "the run is the same");
    let after = rig.job(job).await;
    assert_eq!((after.live, after.waiting, after.executions), (1, 0, 2));
    let held = Held { key: retry, fence: Fence(1) };
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::Done);
    assert_eq!(rig.job(job).await.live, 0);
    assert_eq!(rig.times_of(job).await, [(60, 1), (60, 0)]);
}

pub async fn a_queued_retry_waits_for_a_worker(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, retry) = failed(&rig, "crawl").await;
    rig.fire_delayed(&rig.delayed(90).await, Begin::Queued, 92).await;
    assert_eq!(rig.run(retry).await.status, AttemptStatus::Pending);
    let after = rig.job(job).await;
    assert_eq!((after.live, after.waiting, after.executions), (1, 1, 1));
    let census = rig.census().await;
    assert_eq!((census.delayed, census.ready), (0, 1));
    assert_eq!(rig.times_of(job).await, [(60, 1), (60, 0)]);
    let held = rig.claim_one(93).await;
    assert_eq!((held.key, held.fence), (retry, Fence(1)));
    assert_eq!(rig.run(retry).await.number, Some(2));
}

pub async fn a_queued_trigger_is_the_new_head_when_it_is_fired(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let key = rig.trigger(job, 0, 70).await;
    rig.fire_delayed(&rig.delayed(70).await, Begin::Queued, 71).await;
    let link = RunLink { scheduled_at: at(70), sequence: key.sequence };
    assert_eq!(rig.due(job).await.head, Some(link));
    assert_eq!(rig.times_of(job).await, [(70, 0), (60, 0)]);
    assert_eq!(rig.claim_one(72).await.key, key);
    assert_eq!(rig.times_of(job).await, [(70, 0), (60, 0)]);
}

pub async fn a_delayed_attempt_before_its_time_is_early(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, _) = failed(&rig, "crawl").await;
    let returned = rig.delayed(90).await;
    assert_eq!(rig.fire_delayed(&returned, Begin::Claimed, 89).await, [FireResult::Early]);
    assert_eq!(rig.job(job).await.waiting, 1);
    assert_eq!(rig.delayed(90).await, returned);
}

pub async fn a_delayed_attempt_with_another_due_time_is_stale(opened: Opened) {
    let rig = Rig::new(opened).await;
    failed(&rig, "crawl").await;
    let returned = rig.delayed(90).await;
    let other = FireDelayed { due: at(80), ..delayed_fire_of(&returned[0], Begin::Claimed) };
    let fired = rig.store.fire_delayed(rig.node, vec![other], now(95)).await.unwrap();
    assert_eq!(fired.results, [FireResult::Stale]);
    assert_eq!(rig.census().await.running, 0);
}

pub async fn delayed_attempts_of_a_batch_do_not_affect_each_other(opened: Opened) {
    let rig = Rig::new(opened).await;
    for name in ["a", "b", "c"] {
        failed(&rig, name).await;
    }
    let mut returned = rig.delayed(90).await;
    assert_eq!(rig.fire_delayed(&returned[1..2], Begin::Claimed, 90).await, [FIRED]);
    returned.reverse();
    let answers = rig.fire_delayed(&returned, Begin::Claimed, 91).await;
    assert_eq!(answers, [FIRED, FireResult::Stale, FIRED]);
}

pub async fn a_node_that_is_not_live_fires_no_delayed_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    failed(&rig, "crawl").await;
    let returned = rig.delayed(90).await;
    let former = rig.node;
    let live = rig.join("node-1", 90).await;
    rig.store.drain(live).await.unwrap();
    for node in [former, live, NodeNo(live.0 + 1_000)] {
        let batch = vec![delayed_fire_of(&returned[0], Begin::Queued)];
        let fired = rig.store.fire_delayed(node, batch, now(91)).await.unwrap();
        assert_eq!(fired.results, [FireResult::Stale]);
    }
    assert_eq!(rig.delayed(91).await, returned);
}

pub async fn delayed_attempts_come_oldest_first_up_to_the_limit(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs: Vec<_> = (0..6).map(|n| new_job(&format!("job {n}")).never().build()).collect();
    let jobs = rig.add_all(jobs).await;
    for (job, secs) in jobs.iter().zip([30, 10, 50, 20, 60, 40]) {
        rig.trigger(*job, 0, secs).await;
    }
    let due = |look: evenkeel_store::LookAhead| -> Vec<_> {
        look.delayed.iter().map(|delayed| delayed.due).collect()
    };
    assert_eq!(due(rig.look(100, 3).await), [10, 20, 30].map(at));
    assert_eq!(due(rig.look(100, 10).await), [10, 20, 30, 40, 50, 60].map(at));
    assert_eq!(due(rig.look(35, 10).await), [10, 20, 30].map(at));
}

/// Asserts that no worker has claimed the attempt yet.
fn assert_untouched(run: &Attempt, key: AttemptKey, job: Known) {
    assert_eq!((run.key, run.job, run.status), (key, job.id, AttemptStatus::Pending));
    assert_eq!((run.fence, run.crashes, &run.node), (Fence::NONE, 0, &None));
    assert_eq!((run.number, run.started_at, run.finished_at), (None, None, None));
    assert_eq!((&run.results, run.skipped), (&Results::default(), None));
}

pub async fn a_waiting_trigger_is_shown_as_pending_but_not_listed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("manual").never().build()).await;
    let key = rig.trigger(job, 0, 10).await;
    assert_untouched(&rig.run(key).await, key, job);
    assert_eq!(rig.find_run(next_attempt(key)).await, None);
    assert_eq!(rig.runs_of(job).await, []);
    assert_eq!(rig.runs_page(None, PageRequest::first(9)).await.items, []);
    rig.fire_delayed(&rig.delayed(10).await, Begin::Queued, 10).await;
    assert_untouched(&rig.run(key).await, key, job);
    assert_eq!(rig.times_of(job).await, [(10, 0)]);
}

pub async fn a_waiting_retry_is_pending_when_read_by_its_key(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, retry) = failed(&rig, "crawl").await;
    assert_untouched(&rig.run(retry).await, retry, job);
    assert_eq!(rig.find_run(next_attempt(retry)).await, None);
    let first = AttemptKey::regular(job.no, at(60));
    assert_eq!(
        rig.run(first).await.key,
        first,
        "a started attempt takes precedence over a waiting one"
    );
    assert_eq!(rig.times_of(job).await, [(60, 0)]);
}
