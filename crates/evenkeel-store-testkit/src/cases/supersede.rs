//! Tests that a newer scheduled time replaces the active runs of a job.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{AttemptKey, JobNo};
use evenkeel_store::{
    Cancellation, FinishResult, FireResult, JobChange, RunCancelled, Supersede, Then,
};

use super::races::at_once;
use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{Begin, JobBuilder, at, fire_of, new_job, now};
use crate::rig::{ALPHA, Held, Known, OVER, Rig, cancelled, claim_of, next_attempt};

fn replacing(name: &str) -> JobBuilder {
    new_job(name).overlap(OverlapPolicy::Replace)
}

/// Returns the request of a scheduler that reads the job now and replaces its active runs.
async fn decide(rig: &Rig, job: Known) -> Supersede {
    let seen = rig.due(job).await;
    let due = seen.next_at.expect("the job has a next time");
    Supersede { job: job.no, generation: seen.generation, due }
}

async fn supersede(rig: &Rig, jobs: &[Known], secs: i64) {
    let mut batch = Vec::new();
    for job in jobs {
        batch.push(decide(rig, *job).await);
    }
    rig.store.supersede(&batch, now(secs)).await.unwrap();
}

fn superseded(held: Held) -> Cancellation {
    Cancellation { key: held.key, superseded: true }
}

/// Asserts that the attempt is recorded as superseded without having run, and that no worker can
/// claim it.
async fn is_recorded(rig: &Rig, job: Known, key: AttemptKey, secs: i64) {
    let run = rig.run(key).await;
    assert_eq!((run.status, run.finished_at), (AttemptStatus::Superseded, Some(at(secs))));
    assert_eq!(rig.delayed(10_000).await, []);
    assert_eq!(rig.claim(10, secs).await, []);
    let after = rig.job(job).await;
    assert_eq!((after.live, after.waiting), (0, 0));
    assert_eq!(rig.cancellations().await, []);
}

pub async fn a_queued_attempt_is_recorded_as_superseded(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    supersede(&rig, &[job], 120).await;
    is_recorded(&rig, job, key, 120).await;
    let run = rig.run(key).await;
    assert_eq!((run.started_at, run.number, run.node), (None, None, None));
    assert_eq!(rig.times_of(job).await, [(60, 0)]);
}

pub async fn a_delayed_retry_is_recorded_as_superseded(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(900))).await;
    supersede(&rig, &[job], 120).await;
    is_recorded(&rig, job, next_attempt(held.key), 120).await;
    assert_eq!(rig.times_of(job).await, [(60, 1), (60, 0)]);
}

pub async fn a_delayed_trigger_is_recorded_as_superseded(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    let key = rig.trigger(job, 0, 59).await;
    let returned = rig.delayed(59).await;
    supersede(&rig, &[job], 60).await;
    assert_eq!(rig.fire_delayed(&returned, Begin::Claimed, 61).await, [FireResult::Stale]);
    is_recorded(&rig, job, key, 60).await;
    assert_eq!(rig.runs_of(job).await.len(), 1);
}

pub async fn a_requeued_attempt_is_recorded_as_superseded(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, true).await;
    assert!(rig.requeue(back, 65).await);
    supersede(&rig, &[job], 120).await;
    is_recorded(&rig, job, held.key, 120).await;
    let run = rig.run(held.key).await;
    assert_eq!((run.started_at, run.number), (Some(at(60)), Some(1)));
}

pub async fn a_running_attempt_is_returned_as_superseded_until_it_has_ended(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    let other = rig.add(replacing("other").build()).await;
    let held = rig.start(job, 60).await;
    rig.start(other, 60).await;
    for _ in 0..2 {
        supersede(&rig, &[job], 120).await;
        assert_eq!(rig.cancellations().await, [superseded(held)]);
    }
    assert_eq!((rig.job(job).await.live, rig.job(other).await.live), (1, 1));
    let end = rig.end(held, Outcome::Superseded, OVER);
    assert_eq!(rig.finish(end.clone()).await, FinishResult::Done);
    assert_eq!(rig.finish(end).await, FinishResult::AlreadyDone);
    assert_eq!(rig.cancellations().await, []);
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Superseded);
    assert_eq!(rig.job(job).await.last_outcome, Some(Outcome::Superseded));
}

pub async fn a_running_attempt_is_returned_to_its_node(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    let other = rig.join("node-2", 0).await;
    let held = rig.start_on(other, job, 60).await;
    supersede(&rig, &[job], 120).await;
    assert_eq!(rig.cancellations().await, []);
    assert_eq!(rig.store.cancellations(other).await.unwrap(), [superseded(held)]);
}

pub async fn all_active_runs_of_a_job_are_superseded(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let first = rig.start(job, 60).await;
    let second = rig.start(job, 120).await;
    let waits = rig.queue(job, 180).await;
    supersede(&rig, &[job], 240).await;
    assert_eq!(rig.cancellations().await, [superseded(first), superseded(second)]);
    assert_eq!(rig.run(waits).await.status, AttemptStatus::Superseded);
    assert_eq!(rig.job(job).await.live, 2);
}

pub async fn a_superseded_run_is_not_retried(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    let held = rig.start(job, 60).await;
    supersede(&rig, &[job], 120).await;
    assert_eq!(rig.finish(rig.retry(held, at(130))).await, FinishResult::Done);
    assert_eq!(rig.delayed(10_000).await, []);
    assert_eq!(rig.job(job).await.live, 0);
}

pub async fn a_failure_of_a_superseded_run_does_not_stop_the_job(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    let held = rig.start(job, 60).await;
    supersede(&rig, &[job], 120).await;
    let stop = Then::EndRun { stop_job: true, next_at: None };
    rig.finish(rig.end(held, Outcome::Failed, stop)).await;
    assert_eq!(rig.job(job).await.next_at, Some(at(120)));
}

pub async fn a_superseded_attempt_is_not_requeued(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, true).await;
    supersede(&rig, &[job], 120).await;
    assert!(rig.requeue(back, 125).await);
    is_recorded(&rig, job, held.key, 125).await;
}

pub async fn a_cancelled_attempt_stays_cancelled(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let asked = rig.store.cancel_run(&rig.scope, held.key, now(61)).await.unwrap();
    assert_eq!(asked, RunCancelled::Asked(held.key));
    supersede(&rig, &[job], 120).await;
    assert_eq!(rig.cancellations().await, [cancelled(held)]);
}

pub async fn the_job_continues_with_the_newer_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let held = rig.start(job, 120).await;
    let due = fire_of(&rig.due(job).await, at(180), Begin::Claimed);
    assert!(matches!(rig.fire(vec![due.clone()], 180).await[..], [FireResult::Busy { .. }]));
    let before = rig.job(job).await;
    supersede(&rig, &[job], 180).await;
    assert!(matches!(rig.fire(vec![due.clone()], 180).await[..], [FireResult::Busy { .. }]));
    assert_eq!(rig.job(job).await, before);
    rig.finish(rig.end(held, Outcome::Superseded, OVER)).await;
    // The job's history records only the start time of the superseded run.
    let history = rig.job(job).await.history;
    assert_eq!(history.consecutive_failures, 0);
    assert_eq!(history.last_start_at, Some(at(120)));
    assert_eq!(history.last_good_start_at, before.history.last_good_start_at);
    assert!(matches!(rig.fire(vec![due], 181).await[..], [FireResult::Fired(_)]));
    assert_eq!(rig.times_of(job).await, [(180, 0), (120, 0), (60, 0)]);
}

pub async fn jobs_that_are_idle_deleted_or_unknown_are_left_alone(opened: Opened) {
    let rig = Rig::new(opened).await;
    let idle = rig.add(replacing("idle").build()).await;
    let deleted = rig.add(replacing("deleted").build()).await;
    let queued = rig.add(replacing("queued").build()).await;
    rig.run_successfully(idle, 60).await;
    let held = rig.start(deleted, 60).await;
    let was = decide(&rig, deleted).await;
    rig.store.delete(&rig.scope, deleted.id, now(61)).await.unwrap();
    let key = rig.queue(queued, 60).await;
    let before = rig.job(idle).await;
    let unknown = Supersede { job: JobNo(987_654), ..was };
    let batch = [decide(&rig, idle).await, was, unknown, decide(&rig, queued).await];
    rig.store.supersede(&batch, now(120)).await.unwrap();
    supersede(&rig, &[], 120).await;
    assert_eq!(rig.job(idle).await, before);
    assert_eq!(rig.cancellations().await, [cancelled(held)]);
    assert_eq!(rig.run(key).await.status, AttemptStatus::Superseded);
}

pub async fn a_late_supersede_does_not_end_the_newer_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let runs = rig.add(replacing("runs").build()).await;
    let waits = rig.add(replacing("waits").build()).await;
    let mut late = Vec::new();
    for job in [runs, waits] {
        rig.queue(job, 60).await;
        late.push(decide(&rig, job).await);
        supersede(&rig, &[job], 120).await;
    }
    let running = rig.start(runs, 120).await;
    let waiting = rig.queue(waits, 120).await;
    rig.store.supersede(&late, now(121)).await.unwrap();
    assert_eq!(rig.cancellations().await, []);
    assert_eq!(rig.run(running.key).await.status, AttemptStatus::Running);
    assert_eq!(rig.run(waiting).await.status, AttemptStatus::Pending);
    assert_eq!((rig.job(runs).await.live, rig.job(waits).await.live), (1, 1));
}

pub async fn a_supersede_from_before_a_change_has_no_effect(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(replacing("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    let decided = decide(&rig, job).await;
    rig.store.update(&rig.scope, job.id, JobChange::default(), now(61)).await.unwrap();
    rig.store.supersede(&[decided], now(120)).await.unwrap();
    assert_eq!(rig.run(key).await.status, AttemptStatus::Pending);
    supersede(&rig, &[job], 120).await;
    assert_eq!(rig.run(key).await.status, AttemptStatus::Superseded);
}

pub async fn a_concurrent_supersede_and_claim_end_the_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..10 {
        let job = rig.add(replacing(&format!("job {n}")).build()).await;
        let key = rig.queue(job, 60).await;
        let (claim, decided) = (claim_of(rig.node, 10), decide(&rig, job).await);
        let claimed: Vec<usize> = at_once(&rig, 2, |n, store| {
            let claim = claim.clone();
            async move {
                if n == 0 {
                    store.supersede(&[decided], now(120)).await.unwrap();
                    0
                } else {
                    store.claim(&claim, now(120)).await.unwrap().attempts.len()
                }
            }
        })
        .await;
        let run = rig.run(key).await;
        if claimed[1] == 0 {
            assert_eq!((run.status, rig.job(job).await.live), (AttemptStatus::Superseded, 0));
        } else {
            // An attempt that was claimed during the first call of `supersede` is found by the
            // second call.
            supersede(&rig, &[job], 121).await;
            let held = Held { key, fence: run.fence };
            assert_eq!(rig.cancellations().await, [superseded(held)]);
            rig.finish(rig.end(held, Outcome::Superseded, OVER)).await;
        }
        assert_eq!(rig.job(job).await.live, 0);
    }
}

pub async fn a_concurrent_supersede_and_end_end_the_attempt_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..10 {
        let job = rig.add(replacing(&format!("job {n}")).build()).await;
        let held = rig.start(job, 60).await;
        let due = fire_of(&rig.due(job).await, at(120), Begin::Claimed);
        let (end, node) = (rig.retry(held, at(130)), rig.node);
        let decided = decide(&rig, job).await;
        at_once(&rig, 3, |n, store| {
            let (end, due) = (end.clone(), due.clone());
            async move {
                match n {
                    0 => store.supersede(&[decided], now(120)).await.unwrap(),
                    1 => {
                        let done = store.finish(node, vec![end], ALPHA).await.unwrap();
                        assert_eq!(done, [FinishResult::Done]);
                    }
                    _ => {
                        store.fire(node, vec![due], now(120)).await.unwrap();
                    }
                }
            }
        })
        .await;
        // Whichever call came first, another `supersede` leaves no waiting attempt of the job.
        supersede(&rig, &[job], 121).await;
        let census = rig.census().await;
        assert_eq!((census.delayed, census.ready), (0, 0));
        assert_eq!(census.running, u64::from(rig.job(job).await.live));
        for asked in rig.cancellations().await {
            assert!(asked.superseded);
            let fence = rig.run(asked.key).await.fence;
            let end = rig.end(Held { key: asked.key, fence }, Outcome::Superseded, OVER);
            assert_eq!(rig.finish(end).await, FinishResult::Done);
        }
        assert_eq!(rig.census().await.live, 0);
    }
}
