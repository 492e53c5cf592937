//! Triggered runs.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{AttemptKey, AttemptNo, Origin, Sequence};
use evenkeel_store::{FinishResult, RunLink, Triggered};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{Begin, at, fresh_id, new_job, now, plain_trigger};
use crate::rig::{Held, Known, Rig};

async fn ask(rig: &Rig, job: Known, n: u32, secs: i64) -> Triggered {
    rig.store.trigger(&rig.scope, job.id, plain_trigger(n), now(secs)).await.unwrap()
}

pub async fn the_key_consists_of_now_and_the_number(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = AttemptKey {
        scheduled_at: at(10),
        job_no: job.no,
        sequence: Sequence::new(Origin::Trigger, 7),
        attempt: AttemptNo::FIRST,
    };
    assert_eq!(ask(&rig, job, 7, 10).await, Triggered::Accepted(key));
}

pub async fn a_taken_number_is_replaced_by_the_next(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let mut keys = Vec::new();
    for begin in [Begin::Claimed, Begin::Queued] {
        keys.push(rig.trigger(job, 3, 10).await);
        rig.fire_delayed(&rig.delayed(10).await, begin, 10).await;
    }
    // The first triggered run is running, the second is queued, and the later triggered runs wait
    // for their due time.
    keys.push(rig.trigger(job, 3, 10).await);
    keys.push(rig.trigger(job, 3, 10).await);
    let numbers: Vec<Sequence> = keys.iter().map(|key| key.sequence).collect();
    assert_eq!(numbers, [3, 4, 5, 6].map(|n| Sequence::new(Origin::Trigger, n)));
}

pub async fn a_triggered_run_is_active_and_waits(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.trigger(job, 0, 10).await;
    let after = rig.job(job).await;
    assert_eq!((after.live, after.waiting, after.executions), (1, 1, 0));
    let census = rig.census().await;
    assert_eq!((census.delayed, census.live, census.runs), (1, 1, 0));
}

pub async fn a_trigger_does_not_change_the_schedule(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let before = rig.job(job).await;
    rig.trigger(job, 0, 10).await;
    rig.fire_delayed(&rig.delayed(10).await, Begin::Claimed, 10).await;
    let after = rig.job(job).await;
    assert_eq!((after.next_at, after.last_fired_at), (before.next_at, before.last_fired_at));
    assert_eq!(after.generation, before.generation);
}

pub async fn a_trigger_is_due_now(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.trigger(job, 0, 10).await;
    let delayed = rig.delayed(10).await;
    assert_eq!(delayed.len(), 1);
    assert_eq!((delayed[0].key, delayed[0].due), (key, at(10)));
    assert_eq!(delayed[0].job, rig.due(job).await);
    assert_eq!(delayed[0].job.live, 1);
}

pub async fn a_fired_trigger_is_the_newest_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let before = rig.due(job).await.head;
    let key = rig.trigger(job, 0, 70).await;
    assert_eq!(
        rig.due(job).await.head,
        before,
        "a trigger becomes the newest run when it is fired"
    );
    rig.fire_delayed(&rig.delayed(70).await, Begin::Claimed, 71).await;
    let link = RunLink { scheduled_at: at(70), sequence: key.sequence };
    assert_eq!(rig.due(job).await.head, Some(link));
    let run = rig.run(key).await;
    assert_eq!((run.status, run.number), (AttemptStatus::Running, Some(2)));
    let held = Held { key, fence: run.fence };
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::Done);
    assert_eq!(rig.job(job).await.live, 0);
    rig.run_successfully(job, 120).await;
    assert_eq!(rig.times_of(job).await, [(120, 0), (70, 0), (60, 0)]);
}

pub async fn a_job_that_runs_is_busy_unless_overlap_is_allowed(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (name, overlap, busy) in [
        ("skip", OverlapPolicy::Skip, true),
        ("queue", OverlapPolicy::Queue, true),
        ("allow", OverlapPolicy::Allow, false),
    ] {
        let job = rig.add(new_job(name).overlap(overlap).build()).await;
        rig.start(job, 60).await;
        let answer = ask(&rig, job, 0, 61).await;
        assert_eq!(answer == Triggered::Busy, busy, "{name}: {answer:?}");
        assert_eq!(rig.job(job).await.live, if busy { 1 } else { 2 });
    }
}

pub async fn a_job_that_was_triggered_is_busy(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.trigger(job, 0, 10).await;
    assert_eq!(ask(&rig, job, 1, 11).await, Triggered::Busy);
    assert_eq!(rig.census().await.delayed, 1);
}

pub async fn a_job_without_a_next_time_can_be_triggered(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("manual").never().build()).await;
    let key = rig.trigger(job, 0, 10).await;
    rig.fire_delayed(&rig.delayed(10).await, Begin::Queued, 10).await;
    assert_eq!(rig.claim_one(11).await.key, key);
}

pub async fn an_unknown_job_is_not_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let nobody = Known { id: fresh_id(), ..job };
    assert_eq!(ask(&rig, nobody, 0, 1).await, Triggered::NotFound);
    rig.store.delete(&rig.scope, job.id, now(1)).await.unwrap();
    assert_eq!(ask(&rig, job, 0, 2).await, Triggered::NotFound);
}
