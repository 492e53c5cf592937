//! Tests jobs whose next scheduled time depends on the end of a run, and counts of fired times.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::{Shard, Slot};
use evenkeel_store::{
    Applied, FinishResult, FireResult, JobChange, JobFilter, JobSort, PageRequest, Then,
};

use super::races::at_once;
use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{Begin, JobBuilder, at, fire_of, new_job, now};
use crate::rig::{ALPHA, Held, Known, OVER, Rig};

/// Returns a job whose data must be at most ten minutes old, with at least one minute between runs.
fn periodic(name: &str) -> JobBuilder {
    new_job(name).periodic(600, 60)
}

/// Returns the effect of a result that ends the run and sets the job's next scheduled time to
/// `secs`.
fn next(secs: i64) -> Then {
    Then::EndRun { stop_job: false, next_at: Some(at(secs)) }
}

async fn end(rig: &Rig, held: Held, then: Then) {
    let end = rig.end(held, Outcome::Completed, then);
    assert_eq!(rig.finish(end).await, FinishResult::Done);
}

/// Returns the changed jobs of which the scheduler is notified.
async fn returned(rig: &Rig) -> Vec<i64> {
    rig.look(0, 10_000).await.changed.iter().map(|job| job.no.0).collect()
}

pub async fn the_next_time_follows_the_end(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(periodic("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let provisional = rig.job(job).await;
    assert_eq!(provisional.next_at, Some(at(660)));
    end(&rig, held, next(125)).await;
    let after = rig.job(job).await;
    assert_eq!((after.next_at, after.last_fired_at), (Some(at(125)), Some(at(60))));
    assert_eq!((after.generation, after.since), (1, at(0)));
    assert_eq!(rig.due(job).await.next_at, Some(at(125)));
}

pub async fn the_next_time_may_be_later_than_the_provisional_one(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(periodic("crawl").build()).await;
    let held = rig.start(job, 60).await;
    end(&rig, held, next(9_000)).await;
    assert_eq!(rig.job(job).await.next_at, Some(at(9_000)));
}

pub async fn the_scheduler_is_notified_however_far_the_time_is(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(periodic("crawl").build()).await;
    for (now, then) in [(60, 125), (125, 90_000)] {
        let held = rig.start(job, now).await;
        returned(&rig).await;
        end(&rig, held, next(then)).await;
        assert_eq!(returned(&rig).await, [job.no.0]);
        assert_eq!(returned(&rig).await, [0; 0]);
    }
}

pub async fn a_fire_for_the_provisional_time_is_stale(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(periodic("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let provisional = fire_of(&rig.due(job).await, at(660), Begin::Claimed);
    end(&rig, held, next(125)).await;
    assert_eq!(rig.fire(vec![provisional], 660).await, [FireResult::Stale]);
    let held = rig.start(job, 125).await;
    assert_eq!(held.key.scheduled_at, at(125));
    assert_eq!(rig.job(job).await.next_at, Some(at(725)));
}

pub async fn the_job_is_loaded_with_the_slot_of_its_new_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(periodic("crawl").build()).await;
    let shard = Shard::of(job.no);
    let loaded = async |secs| {
        let found = rig.store.load_due(shard, Slot::of(at(secs)), None, 10).await.unwrap();
        found.len()
    };
    for (now, then, before, from) in [(60, 5_000, 4_000, 5_000), (5_000, 5_100, 4_000, 5_100)] {
        let held = rig.start(job, now).await;
        end(&rig, held, next(then)).await;
        assert_eq!((loaded(before).await, loaded(from).await), (0, 1), "{then}");
    }
}

pub async fn ends_do_not_move_other_schedules(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    returned(&rig).await;
    end(&rig, held, next(125)).await;
    assert_eq!(rig.job(job).await.next_at, Some(at(120)));
    assert_eq!(returned(&rig).await, [0; 0]);
}

pub async fn an_end_without_a_next_time_keeps_the_provisional_one(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(periodic("crawl").build()).await;
    let held = rig.start(job, 60).await;
    end(&rig, held, OVER).await;
    assert_eq!(rig.job(job).await.next_at, Some(at(660)));
}

pub async fn a_job_without_a_next_time_gets_none(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(periodic("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let none = JobChange { next_at: Some(None), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, none, now(61)).await.unwrap();
    end(&rig, held, next(125)).await;
    assert_eq!(rig.job(job).await.next_at, None);
    assert_eq!(rig.due(job).await.next_at, None);
}

pub async fn a_time_not_after_the_last_fired_time_is_ignored(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(periodic("crawl").build()).await;
    let held = rig.start(job, 60).await;
    end(&rig, held, next(60)).await;
    assert_eq!(rig.job(job).await.next_at, Some(at(660)));
    let held = rig.start(job, 660).await;
    end(&rig, held, next(659)).await;
    assert_eq!(rig.job(job).await.next_at, Some(at(1_260)));
}

pub async fn the_current_schedule_decides(opened: Opened) {
    let rig = Rig::new(opened).await;
    let was = rig.add(periodic("was").build()).await;
    let result = rig.add(new_job("result").build()).await;
    let (first, second) = (rig.start(was, 60).await, rig.start(result, 60).await);
    let change = |job: JobBuilder| {
        let definition = Some(job.build().definition);
        JobChange { definition, ..JobChange::default() }
    };
    let update = async |job: Known, change| {
        let changed = rig.store.update(&rig.scope, job.id, change, now(61)).await.unwrap();
        assert!(matches!(changed, Applied::Done(_)));
    };
    update(was, change(new_job("was"))).await;
    update(result, change(periodic("result"))).await;
    end(&rig, first, next(125)).await;
    end(&rig, second, next(125)).await;
    assert_eq!(rig.job(was).await.next_at, Some(at(660)));
    assert_eq!(rig.job(result).await.next_at, Some(at(125)));
}

pub async fn an_end_decided_under_an_older_schedule_changes_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["periodic", "interval", "bounded"];
    let jobs = rig.add_all(names.map(|name| periodic(name).build()).to_vec()).await;
    let mut held = Vec::new();
    for job in &jobs {
        held.push(rig.start(*job, 60).await);
    }
    let schedules = [periodic("periodic"), new_job("interval"), periodic("bounded")];
    for (job, other) in jobs.iter().zip(schedules) {
        let definition = Some(other.build().definition);
        let next_at = Some(Some(at(300)));
        let change = JobChange { next_at, definition, ..JobChange::default() };
        rig.store.update(&rig.scope, job.id, change, now(61)).await.unwrap();
    }
    returned(&rig).await;
    // The last run reached a bound that ends the job, but the bound was removed in the meantime.
    let stop = Then::EndRun { stop_job: true, next_at: None };
    for (held, then) in held.into_iter().zip([next(125), next(125), stop]) {
        end(&rig, held, then).await;
    }
    for job in &jobs {
        assert_eq!(rig.job(*job).await.next_at, Some(at(300)));
    }
    assert_eq!(returned(&rig).await, [0; 0]);
    // Runs that start under the new schedule set the next scheduled time.
    let (first, last) = (rig.start(jobs[0], 300).await, rig.start(jobs[2], 300).await);
    end(&rig, first, next(365)).await;
    end(&rig, last, stop).await;
    assert_eq!(rig.job(jobs[0]).await.next_at, Some(at(365)));
    assert_eq!(rig.job(jobs[2]).await.next_at, None);
}

pub async fn an_attempt_that_started_at_the_moment_of_the_change_counts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(periodic("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let change = JobChange { next_at: Some(Some(at(300))), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, change, now(60)).await.unwrap();
    end(&rig, held, next(125)).await;
    assert_eq!(rig.job(job).await.next_at, Some(at(125)));
}

pub async fn a_stopped_or_deleted_job_gets_no_next_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let stopped = rig.add(periodic("stopped").build()).await;
    let deleted = rig.add(periodic("deleted").build()).await;
    let (first, second) = (rig.start(stopped, 60).await, rig.start(deleted, 60).await);
    let stop = Then::EndRun { stop_job: true, next_at: Some(at(125)) };
    rig.finish(rig.end(first, Outcome::Failed, stop)).await;
    assert_eq!(rig.job(stopped).await.next_at, None);
    returned(&rig).await;
    rig.store.delete(&rig.scope, deleted.id, now(61)).await.unwrap();
    end(&rig, second, next(125)).await;
    assert_eq!(returned(&rig).await, [0; 0]);
    assert_eq!(rig.store.load_jobs(&[deleted.no]).await.unwrap(), []);
}

pub async fn a_refused_end_moves_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(periodic("crawl").build()).await;
    let held = rig.start(job, 60).await;
    returned(&rig).await;
    let stale = Held { fence: held.fence.next(), ..held };
    let end = rig.end(stale, Outcome::Completed, next(125));
    assert_eq!(rig.finish(end).await, FinishResult::LeaseLost);
    assert_eq!(rig.job(job).await.next_at, Some(at(660)));
    assert_eq!(returned(&rig).await, [0; 0]);
}

pub async fn the_scheduler_is_notified_of_a_failed_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["failed", "timed out", "retried", "good", "cancelled"];
    let jobs = rig.add_all(jobs.map(|name| new_job(name).build()).to_vec()).await;
    let mut held = Vec::new();
    for job in &jobs {
        held.push(rig.start(*job, 60).await);
    }
    returned(&rig).await;
    rig.finish_all(vec![
        rig.end(held[0], Outcome::Failed, OVER),
        rig.end(held[1], Outcome::TimedOut, OVER),
        rig.retry(held[2], at(90)),
        rig.success(held[3]),
        rig.end(held[4], Outcome::Cancelled, OVER),
    ])
    .await;
    let mut news = returned(&rig).await;
    news.sort_unstable();
    assert_eq!(news, [jobs[0].no.0, jobs[1].no.0, jobs[4].no.0]);
}

pub async fn a_concurrent_end_and_change_leave_the_time_of_the_change(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..10 {
        let job = rig.add(periodic(&format!("job {n}")).build()).await;
        let held = rig.start(job, 60).await;
        let ended = rig.end(held, Outcome::Completed, next(125));
        let (scope, node) = (rig.scope, rig.node);
        at_once(&rig, 2, |n, store| {
            let ended = ended.clone();
            let change = JobChange { next_at: Some(Some(at(300))), ..JobChange::default() };
            async move {
                if n == 0 {
                    let done = store.finish(node, vec![ended], ALPHA).await.unwrap();
                    assert_eq!(done, [FinishResult::Done]);
                } else {
                    let done = store.update(&scope, job.id, change, now(61)).await.unwrap();
                    assert!(matches!(done, Applied::Done(_)));
                }
            }
        })
        .await;
        let after = rig.job(job).await;
        assert_eq!(after.next_at, Some(at(300)));
        assert_eq!((after.generation, after.live, after.since), (2, 0, at(61)));
        let found = rig.store.load_due(Shard::of(job.no), Slot::of(at(300)), None, 100).await;
        assert!(found.unwrap().iter().any(|one| one.no == job.no));
        rig.start(job, 300).await;
    }
}

pub async fn fired_regular_times_are_counted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    assert_eq!((rig.due(job).await.fired, rig.job(job).await.fired), (0, 0));
    rig.run_successfully(job, 60).await;
    rig.queue(job, 120).await;
    assert_eq!((rig.due(job).await.fired, rig.job(job).await.fired), (2, 2));
    let held = rig.claim_one(121).await;
    rig.finish(rig.success(held)).await;
    assert_eq!(rig.due(job).await.fired, 2);
    // Of several missed scheduled times, only one is fired.
    rig.start(job, 600).await;
    assert_eq!(rig.due(job).await.fired, 3);
}

pub async fn skips_triggers_and_retries_do_not_count_as_fired(opened: Opened) {
    let rig = Rig::new(opened).await;
    let skip = evenkeel_core::misfire::MisfirePolicy::Skip;
    let job = rig.add(new_job("crawl").misfire(skip).build()).await;
    let fire = fire_of(&rig.due(job).await, at(300), Begin::Claimed);
    assert_eq!(fire.start, None);
    rig.fire(vec![fire], 300).await;
    rig.trigger(job, 0, 301).await;
    rig.fire_delayed(&rig.delayed(301).await, Begin::Queued, 301).await;
    let held = rig.claim_one(302).await;
    rig.finish(rig.retry(held, at(310))).await;
    rig.fire_delayed(&rig.delayed(310).await, Begin::Claimed, 310).await;
    assert_eq!((rig.due(job).await.fired, rig.job(job).await.fired), (0, 0));
    assert_eq!(rig.job(job).await.executions, 2);
}

pub async fn a_refused_fire_does_not_count(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    assert_eq!(rig.fire(vec![fire.clone()], 59).await, [FireResult::Early]);
    assert!(matches!(rig.fire(vec![fire.clone()], 60).await[..], [FireResult::Fired(_)]));
    assert_eq!(rig.fire(vec![fire], 60).await, [FireResult::Stale]);
    let busy = fire_of(&rig.due(job).await, at(120), Begin::Queued);
    assert!(matches!(rig.fire(vec![busy], 120).await[..], [FireResult::Busy { .. }]));
    assert_eq!(rig.due(job).await.fired, 1);
}

pub async fn the_promise_counts_from_the_registration_or_a_new_next_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let since = async || (rig.job(job).await.since, rig.due(job).await.since);
    assert_eq!(since().await, (at(0), at(0)));
    rig.run_successfully(job, 60).await;
    assert_eq!(since().await, (at(0), at(0)));
    let other = new_job("crawl").every(30).build();
    let change = JobChange { definition: Some(other.definition), ..JobChange::default() };
    rig.store.update(&rig.scope, job.id, change, now(70)).await.unwrap();
    assert_eq!(since().await, (at(0), at(0)));
    for (next_at, secs) in [(Some(at(300)), 80), (None, 90), (Some(at(400)), 100)] {
        let change = JobChange { next_at: Some(next_at), ..JobChange::default() };
        rig.store.update(&rig.scope, job.id, change, now(secs)).await.unwrap();
        assert_eq!(since().await, (at(secs), at(secs)));
    }
}

pub async fn a_job_shows_since_when_it_runs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let since = async || rig.job(job).await.running_since;
    assert_eq!(since().await, None);
    rig.queue(job, 60).await;
    assert_eq!(since().await, None);
    let held = rig.claim_one(63).await;
    assert_eq!(since().await, Some(at(63)));
    let back = rig.requeue_of(held, job, false).await;
    assert!(rig.requeue(back, 65).await);
    assert_eq!(since().await, None);
    let held = rig.claim_one(66).await;
    assert_eq!(since().await, Some(at(66)));
    rig.finish(rig.retry(held, at(90))).await;
    assert_eq!(since().await, None);
    rig.fire_delayed(&rig.delayed(90).await, Begin::Claimed, 91).await;
    assert_eq!(since().await, Some(at(91)));
    let page = PageRequest::first(10);
    let listed = rig
        .store
        .list_jobs(&rig.scope, &JobFilter::default(), JobSort::default(), page)
        .await
        .unwrap();
    assert_eq!(listed.items[0].running_since, Some(at(91)));
}

pub async fn skipped_times_do_not_hide_a_running_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.start(job, 60).await;
    for secs in [120, 180] {
        let mut skip = fire_of(&rig.due(job).await, at(secs), Begin::Claimed);
        skip.skip = Some(evenkeel_core::advance::SkippedTimes {
            from: at(secs),
            to: at(secs),
            count: 1,
            reason: evenkeel_core::advance::SkipReason::Overlap,
        });
        (skip.start, skip.idle_only) = (None, false);
        assert!(matches!(rig.fire(vec![skip], secs).await[..], [FireResult::Fired(_)]));
    }
    assert_eq!(rig.job(job).await.running_since, Some(at(60)));
}
