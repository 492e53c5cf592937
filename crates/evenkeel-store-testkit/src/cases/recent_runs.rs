//! The newest runs of many jobs.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::{Prune, RECENT_JOBS_MAX, RECENT_RUNS_MAX, RecentRun};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{Begin, at, fresh_id, new_job, now};
use crate::rig::{Held, Known, OVER, Rig, next_attempt};

async fn recent(rig: &Rig, jobs: &[JobId], each: u32) -> Vec<RecentRun> {
    rig.store.recent_runs(&rig.scope, jobs, each).await.expect("recent runs can be read")
}

/// Returns the statuses of the newest runs of a job, with their scheduled times in seconds.
async fn seen(rig: &Rig, job: Known, each: u32) -> Vec<(i64, AttemptStatus)> {
    let found = recent(rig, &[job.id], each).await;
    assert!(found.iter().all(|run| run.job == job.id && run.key.job_no == job.no));
    let secs = |run: &RecentRun| run.key.scheduled_at.since(at(0)).as_micros() / 1_000_000;
    found.iter().map(|run| (secs(run).cast_signed(), run.status)).collect()
}

/// Fires the delayed attempts of `job` that are due, and leaves them in the queue or claims them.
async fn fire_delayed(rig: &Rig, job: Known, begin: Begin, secs: i64) {
    let mut delayed = rig.delayed(secs).await;
    delayed.retain(|delayed| delayed.job.no == job.no);
    rig.fire_delayed(&delayed, begin, secs).await;
}

pub async fn newest_runs_of_each_job_come_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (a, b) = (rig.add(new_job("a").build()).await, rig.add(new_job("b").build()).await);
    let mut of_a = Vec::new();
    for secs in [60, 120, 180, 240] {
        of_a.insert(0, rig.run_successfully(a, secs).await);
    }
    let of_b = rig.run_successfully(b, 60).await;
    let keys = async |each| -> Vec<AttemptKey> {
        recent(&rig, &[b.id, a.id], each).await.iter().map(|run| run.key).collect()
    };
    assert_eq!(keys(9).await, [&[of_b], &of_a[..]].concat());
    assert_eq!(keys(3).await, [&[of_b], &of_a[..3]].concat());
    assert_eq!(keys(1).await, [of_b, of_a[0]]);
    assert_eq!(keys(0).await, []);
    assert_eq!(recent(&rig, &[], 9).await, []);
}

pub async fn a_recent_run_has_its_outcome_and_its_times(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let start = rig.run(held.key).await.started_at;
    let run = |status, finished_at| RecentRun {
        job: job.id,
        key: held.key,
        status,
        started_at: start,
        finished_at,
    };
    assert_eq!(recent(&rig, &[job.id], 9).await, [run(AttemptStatus::Running, None)]);
    rig.finish(rig.end(held, Outcome::TimedOut, OVER)).await;
    let end = rig.run(held.key).await.finished_at;
    assert!(start.is_some() && end.is_some());
    assert_eq!(recent(&rig, &[job.id], 9).await, [run(AttemptStatus::TimedOut, end)]);
}

pub async fn a_run_with_several_attempts_is_one_recent_run(opened: Opened) {
    use AttemptStatus::{Completed, Pending, Running};
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let first = rig.start(job, 120).await;
    rig.finish(rig.retry(first, at(130))).await;
    assert_eq!(seen(&rig, job, 9).await, [(120, Pending), (60, Completed)], "its retry waits");
    let waiting = recent(&rig, &[job.id], 1).await[0];
    assert_eq!((waiting.key, waiting.finished_at), (first.key, None));
    fire_delayed(&rig, job, Begin::Queued, 130).await;
    assert_eq!(seen(&rig, job, 9).await, [(120, Pending), (60, Completed)], "it is queued");
    let second = rig.claim_one(131).await;
    assert_eq!(second.key, next_attempt(first.key));
    assert_eq!(seen(&rig, job, 9).await, [(120, Running), (60, Completed)]);
    rig.finish(rig.success(second)).await;
    assert_eq!(seen(&rig, job, 2).await, [(120, Completed), (60, Completed)]);
    let run = recent(&rig, &[job.id], 1).await[0];
    let started: Option<Timestamp> = Some(at(120));
    assert_eq!((run.key, run.started_at), (first.key, started), "the first attempt started it");
    assert_eq!(run.finished_at, rig.run(second.key).await.finished_at);
}

pub async fn queued_runs_are_recent_runs(opened: Opened) {
    use AttemptStatus::{Completed, Pending};
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    rig.trigger(job, 0, 70).await;
    assert_eq!(seen(&rig, job, 9).await, [(60, Completed)], "the trigger is not yet fired");
    fire_delayed(&rig, job, Begin::Queued, 70).await;
    assert_eq!(seen(&rig, job, 9).await, [(70, Pending), (60, Completed)]);
    let run = recent(&rig, &[job.id], 1).await[0];
    assert_eq!((run.started_at, run.finished_at), (None, None));
}

pub async fn a_requeued_run_is_one_recent_run(opened: Opened) {
    use AttemptStatus::{Completed, Pending};
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let held = rig.start(job, 120).await;
    assert!(rig.requeue(rig.requeue_of(held, job, true).await, 125).await);
    assert_eq!(seen(&rig, job, 9).await, [(120, Pending), (60, Completed)]);
}

pub async fn a_skip_record_is_a_recent_run(opened: Opened) {
    use AttemptStatus::{Completed, Running, Skipped};
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    rig.start(job, 400).await;
    assert_eq!(seen(&rig, job, 9).await, [(360, Running), (120, Skipped), (60, Completed)]);
}

pub async fn recent_runs_are_ordered_by_firing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.trigger(job, 0, 70).await;
    fire_delayed(&rig, job, Begin::Claimed, 70).await;
    rig.finish(rig.success(Held { key, fence: evenkeel_core::lease::Fence(1) })).await;
    // The run that is scheduled for 60 s is fired after the triggered run.
    rig.run_successfully(job, 80).await;
    let completed = AttemptStatus::Completed;
    assert_eq!(seen(&rig, job, 9).await, [(60, completed), (70, completed)]);
}

pub async fn jobs_without_visible_runs_have_no_recent_runs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let [own, idle, deleted] = ["own", "idle", "deleted"].map(|name| new_job(name).build());
    let (own, idle, deleted) = (rig.add(own).await, rig.add(idle).await, rig.add(deleted).await);
    let foreign = rig.add_for(&other, new_job("foreign").build()).await;
    for job in [own, deleted, foreign] {
        rig.run_successfully(job, 60).await;
    }
    rig.store.delete(&rig.scope, deleted.id, now(70)).await.unwrap();
    let jobs = [foreign.id, deleted.id, idle.id, fresh_id(), own.id];
    let found = recent(&rig, &jobs, 9).await;
    assert_eq!(found.iter().map(|run| run.job).collect::<Vec<_>>(), [own.id]);
    let of_other = rig.store.recent_runs(&other, &jobs, 9).await.unwrap();
    assert_eq!(of_other.iter().map(|run| run.job).collect::<Vec<_>>(), [foreign.id]);
}

pub async fn recent_runs_are_read_up_to_the_limits(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = 0..=RECENT_JOBS_MAX;
    let jobs = rig.add_all(names.map(|nth| new_job(&format!("{nth}")).build()).collect()).await;
    for nth in 1..=i64::from(RECENT_RUNS_MAX) + 1 {
        rig.run_successfully(jobs[0], nth * 60).await;
    }
    for job in &jobs[1..] {
        rig.run_successfully(*job, 60).await;
    }
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let found = recent(&rig, &ids, u32::MAX).await;
    let runs_of_first = found.iter().filter(|run| run.job == ids[0]).count();
    assert_eq!(runs_of_first, RECENT_RUNS_MAX as usize);
    let rest: Vec<JobId> = found[runs_of_first..].iter().map(|run| run.job).collect();
    assert_eq!(rest, ids[1..RECENT_JOBS_MAX]);
}

pub async fn recent_runs_end_where_history_was_pruned(opened: Opened) {
    use AttemptStatus::{Cancelled, Completed};
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let mut held = rig.start(job, 120).await;
    for due in [130, 140] {
        rig.finish(rig.retry(held, at(due))).await;
        fire_delayed(&rig, job, Begin::Claimed, due).await;
        held = Held { key: next_attempt(held.key), ..held };
    }
    rig.finish(rig.end(held, Outcome::Cancelled, OVER)).await;
    assert_eq!(seen(&rig, job, 9).await, [(120, Cancelled), (60, Completed)]);
    // Deletes the first attempt of the newest run, which links it to the previous run.
    let prune = Prune { after: None, limit: 100, keep_per_job: 1, keep_since: Timestamp::MIN };
    rig.store.prune(prune).await.unwrap();
    assert_eq!(rig.times_of(job).await, [(120, 2), (120, 1), (60, 0)]);
    assert_eq!(seen(&rig, job, 9).await, [(120, Cancelled)]);
    assert_eq!(recent(&rig, &[job.id], 9).await[0].started_at, None);
    // Deletes a whole run between two others.
    let second = rig.add(new_job("second").build()).await;
    for (secs, outcome) in [(60, Outcome::Completed), (120, Outcome::Cancelled)] {
        let held = rig.start(second, secs).await;
        rig.finish(rig.end(held, outcome, OVER)).await;
    }
    rig.start(second, 180).await;
    rig.store.prune(prune).await.unwrap();
    assert_eq!(rig.times_of(second).await, [(180, 0), (60, 0)]);
    assert_eq!(seen(&rig, second, 9).await, [(180, AttemptStatus::Running)]);
}
