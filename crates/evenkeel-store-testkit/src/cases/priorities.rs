//! Tests priorities of runs, and changes of the priority of their job.

use evenkeel_core::JobNo;
use evenkeel_core::order::Priority;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_store::{JobChange, Postpone, Trigger};

use crate::Opened;
use crate::commands::Commands as _;
use crate::fixtures::{Begin, at, new_job, now};
use crate::rig::{Held, Known, Rig, next_attempt};

const HOUR: i64 = 3600;

fn priority(number: u8) -> Option<Priority> {
    Priority::try_from(number).ok()
}

fn ask(number: u8) -> Trigger {
    Trigger { n: 0, priority: priority(number), idle_only: false }
}

async fn recount_load(rig: &Rig, job: Known, number: u8, secs: i64) {
    let mut definition = rig.job(job).await.definition;
    definition.priority = priority(number).unwrap();
    let change = JobChange { definition: Some(definition), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, change, now(secs)).await.unwrap();
}

async fn queue(rig: &Rig, name: &str, number: u8, secs: i64) -> Known {
    let job = rig.add(new_job(name).priority(number).first_at(secs).build()).await;
    rig.queue(job, secs).await;
    job
}

/// Claims attempts and returns their jobs in dispatch order.
async fn claim(rig: &Rig, secs: i64) -> Vec<(JobNo, Option<Priority>)> {
    let claimed = rig.claim(100, secs).await;
    claimed.iter().map(|attempt| (attempt.key.job_no, attempt.priority)).collect()
}

/// Returns the priorities that waiting attempts of a job have instead of the job's own priority.
async fn given(rig: &Rig, job: Known) -> Vec<Option<Priority>> {
    let waiting = rig.waiting_of(&rig.scope, job.id).await;
    waiting.iter().map(|attempt| attempt.priority).collect()
}

pub async fn a_trigger_may_have_a_priority_of_its_own(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = queue(&rig, "other", 50, 60).await;
    let job = rig.add(new_job("crawl").priority(10).build()).await;
    rig.trigger_with(job, ask(90), 70).await;
    assert_eq!(given(&rig, job).await, [priority(90)]);
    let delayed = rig.delayed(70).await;
    assert_eq!(delayed[0].priority, priority(90));
    rig.fire_delayed(&delayed, Begin::Queued, 70).await;
    assert_eq!(given(&rig, job).await, [priority(90)]);
    assert_eq!(claim(&rig, 71).await, [(job.no, priority(90)), (other.no, None)]);
}

pub async fn a_run_without_its_own_priority_has_the_jobs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").priority(10).build()).await;
    rig.trigger(job, 0, 70).await;
    let delayed = rig.delayed(70).await;
    assert_eq!((delayed[0].priority, given(&rig, job).await), (None, vec![None]));
    rig.fire_delayed(&delayed, Begin::Queued, 70).await;
    assert_eq!(given(&rig, job).await, [None]);
    assert_eq!(claim(&rig, 71).await, [(job.no, None)]);
}

pub async fn a_trigger_beside_others_keeps_its_priority(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").priority(10).overlap(OverlapPolicy::Allow).build()).await;
    let held = rig.start(job, 60).await;
    // The job has an active run, so a store may use another SQL statement to add the triggered run.
    rig.trigger_with(job, ask(33), 70).await;
    rig.trigger_with(job, ask(44), 71).await;
    assert_eq!(given(&rig, job).await, [priority(33), priority(44)]);
    rig.finish(rig.success(held)).await;
}

pub async fn a_retry_keeps_the_priority_of_its_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").priority(10).build()).await;
    rig.trigger_with(job, ask(90), 70).await;
    rig.fire_delayed(&rig.delayed(70).await, Begin::Queued, 70).await;
    let claimed = rig.claim(1, 71).await.remove(0);
    let held = Held { key: claimed.key, fence: claimed.fence };
    let mut end = rig.retry(held, at(80));
    end.priority = claimed.priority;
    rig.finish(end).await;
    let delayed = rig.delayed(80).await;
    assert_eq!((delayed[0].key, delayed[0].priority), (next_attempt(held.key), priority(90)));
    assert_eq!(given(&rig, job).await, [priority(90)]);
}

pub async fn a_postponed_run_keeps_its_priority(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.trigger_with(job, ask(90), 70).await;
    let put_off = Postpone { due: at(70), key, until: at(500) };
    rig.store.postpone(&[put_off]).await.unwrap();
    let delayed = rig.delayed(500).await;
    assert_eq!((delayed[0].due, delayed[0].priority), (at(500), priority(90)));
}

pub async fn a_changed_priority_applies_to_queued_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let raised = queue(&rig, "raised", 10, 60).await;
    let middle = queue(&rig, "middle", 50, 60).await;
    let lowered = queue(&rig, "lowered", 90, 60).await;
    recount_load(&rig, raised, 80, 65).await;
    recount_load(&rig, lowered, 20, 65).await;
    assert_eq!(claim(&rig, 70).await, [(raised.no, None), (middle.no, None), (lowered.no, None)]);
}

pub async fn a_changed_priority_keeps_the_waiting_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let old = queue(&rig, "old", 0, 10).await;
    let new = queue(&rig, "new", 85, 6_000).await;
    // The old attempt had rank 80 because of its waiting time, and has rank 90 with the new
    // priority.
    recount_load(&rig, old, 10, 6_000).await;
    assert_eq!(claim(&rig, 6_000).await, [(old.no, None), (new.no, None)]);
}

pub async fn a_changed_priority_does_not_apply_to_runs_with_their_own(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").priority(10).build()).await;
    let middle = queue(&rig, "middle", 50, 60).await;
    rig.trigger_with(job, ask(90), 70).await;
    rig.fire_delayed(&rig.delayed(70).await, Begin::Queued, 70).await;
    recount_load(&rig, job, 5, 75).await;
    assert_eq!(given(&rig, job).await, [priority(90)]);
    assert_eq!(claim(&rig, 80).await, [(job.no, priority(90)), (middle.no, None)]);
}

pub async fn another_change_moves_no_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let old = queue(&rig, "old", 0, 10).await;
    let new = queue(&rig, "new", 99, 9 * HOUR).await;
    for job in [old, new] {
        recount_load(&rig, job, if job == old { 0 } else { 99 }, 9 * HOUR).await;
    }
    assert_eq!(claim(&rig, 9 * HOUR).await, [(old.no, None), (new.no, None)]);
}
