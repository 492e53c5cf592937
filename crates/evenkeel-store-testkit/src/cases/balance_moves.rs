//! Tests how rebalances move jobs to other start times.

use evenkeel_core::Slot;
use evenkeel_store::{
    Action, FinishResult, FireResult, JobState, MoveBatch, Moved, RebalanceState, Scope,
};
use uuid::Uuid;

use super::races::at_once;
use crate::Opened;
use crate::balance::{assert_counted, batch_of, begin_one, move_to};
use crate::commands::Commands;
use crate::fixtures::{Begin, at, fire_of, new_job, now};
use crate::rig::{Known, Rig};

/// Adds a job that runs every hour, first one hour after the start.
async fn hourly(rig: &Rig, name: &str) -> Known {
    rig.add(new_job(name).every(3600).first_at(3600).build()).await
}

async fn carry_out(rig: &Rig, batch: MoveBatch, secs: i64) -> Moved {
    let moved = rig.store.move_jobs(&rig.scope, batch, now(secs)).await.unwrap();
    assert_counted(&*rig.store, &[rig.scope]).await;
    moved
}

/// Moves one job in a separate rebalance, and returns true if it was moved.
async fn move_one(rig: &Rig, job: Known, to: i64, secs: i64) -> bool {
    let rebalance = begin_one(rig, 1, secs).await;
    let batch = batch_of(rebalance, 0, vec![move_to(&rig.job(job).await, at(to))]);
    let moved = carry_out(rig, batch, secs).await;
    end(rig, rebalance, secs).await;
    match moved {
        Moved::Done(made) => made[0],
        Moved::Stopped => panic!("the rebalance is running"),
    }
}

async fn end(rig: &Rig, rebalance: Uuid, secs: i64) {
    let state = RebalanceState::Done;
    rig.store.end_rebalance(&rig.scope, rebalance, state, now(secs)).await.unwrap();
}

pub async fn a_moved_job_has_its_new_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = hourly(&rig, "crawl").await;
    let before = rig.job(job).await;
    let rebalance = begin_one(&rig, 1, 5).await;
    let batch = batch_of(rebalance, 0, vec![move_to(&before, at(4500))]);
    assert_eq!(carry_out(&rig, batch, 9).await, Moved::Done(vec![true]));
    let after = rig.job(job).await;
    assert_eq!((after.next_at, after.generation), (Some(at(4500)), 2));
    assert_eq!((after.since, after.state), (at(9), JobState::Active));
    assert_eq!((after.definition, after.about), (before.definition, before.about));
    let [placement] = &rig.store.placements(&rig.scope, None, 9).await.unwrap()[..] else {
        panic!("one job")
    };
    assert_eq!((placement.placed_at, placement.next_at), (at(9), at(4500)));
}

pub async fn a_moved_job_runs_once_at_each_new_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = hourly(&rig, "crawl").await;
    let old = fire_of(&rig.due(job).await, at(3600), Begin::Claimed);
    assert!(move_one(&rig, job, 5400, 5).await);
    assert_eq!(rig.fire(vec![old.clone()], 3600).await, [FireResult::Stale]);
    rig.run_successfully(job, 5400).await;
    assert_eq!(rig.fire(vec![old], 5401).await, [FireResult::Stale]);
    rig.run_successfully(job, 9000).await;
    assert!(move_one(&rig, job, 10_800, 9001).await);
    rig.run_successfully(job, 10_800).await;
    assert_eq!(rig.times_of(job).await, [(10_800, 0), (9000, 0), (5400, 0)]);
    assert_counted(&*rig.store, &[rig.scope]).await;
}

pub async fn a_moved_job_is_loaded_with_the_slot_of_its_new_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = hourly(&rig, "crawl").await;
    assert!(move_one(&rig, job, 5400, 5).await);
    let shard = evenkeel_core::Shard::of(job.no);
    for (until, found) in [(5000, 0), (5400, 1)] {
        let loaded = rig.store.load_due(shard, Slot::of(at(until)), None, 9).await.unwrap();
        assert_eq!(loaded.len(), found, "{until}");
    }
}

pub async fn schedulers_are_notified_of_jobs_due_soon(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (soon, later) = (hourly(&rig, "soon").await, hourly(&rig, "later").await);
    assert_eq!(rig.look(0, 10).await.changed, []);
    assert!(move_one(&rig, later, 4500, 5).await);
    assert_eq!(rig.look(5, 10).await.changed, []);
    assert!(move_one(&rig, soon, 1799, 5).await);
    assert_eq!(rig.look(5, 10).await.changed, [rig.due(soon).await]);
}

pub async fn a_job_that_changed_since_the_plan_is_not_moved(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["good", "generation", "time", "paused", "deleted", "live", "waiting", "fired"];
    let mut jobs = Vec::new();
    for name in names {
        jobs.push(rig.add(new_job(name).every(3600).first_at(60).build()).await);
    }
    let [good, generation, time, paused, deleted, live, waiting, fired] = jobs[..] else {
        panic!("eight jobs")
    };
    rig.start(live, 60).await;
    rig.queue(waiting, 60).await;
    for job in [good, generation, time, paused, deleted, fired] {
        rig.run_successfully(job, 60).await;
    }
    let mut moves = Vec::new();
    for job in &jobs {
        moves.push(move_to(&rig.job(*job).await, at(4500)));
    }
    moves[1].0.generation += 1;
    moves[2].0.old_at = at(3659);
    rig.store.act(&rig.scope, paused.id, Action::Pause, now(70)).await.unwrap();
    rig.store.act(&rig.scope, deleted.id, Action::Delete, now(70)).await.unwrap();
    // The moves of the paused and the deleted job have the new generation, so that only the state
    // of these jobs prevents the moves.
    moves[3].0.generation += 1;
    moves[4].0.generation += 1;
    // A job cannot be moved to a scheduled time that was already fired.
    let last_fired = fired;
    let (one, profile) = move_to(&rig.job(last_fired).await, at(60));
    moves[7] = (one, profile);
    let before = {
        let mut before = Vec::new();
        for job in [generation, time, paused, live, waiting, fired] {
            before.push((job, rig.job(job).await));
        }
        before
    };
    let rebalance = begin_one(&rig, 2, 80).await;
    let answer = carry_out(&rig, batch_of(rebalance, 0, moves), 80).await;
    let made = vec![true, false, false, false, false, false, false, false];
    assert_eq!(answer, Moved::Done(made.clone()));
    for (job, before) in before {
        assert_eq!(rig.job(job).await, before);
    }
    assert_eq!(rig.store.get(&rig.scope, deleted.id).await.unwrap(), None);
    let kept = rig.store.get_rebalance(&rig.scope, rebalance).await.unwrap().unwrap();
    assert_eq!((kept.moved, kept.changed, kept.parts_done), (1, 7, 1));
    let part = rig.store.rebalance_part(&rig.scope, rebalance, 0).await.unwrap().unwrap();
    assert_eq!(part.made, Some(made));
}

pub async fn a_new_time_must_be_in_the_future_and_after_the_last_fired_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = hourly(&rig, "crawl").await;
    for (to, secs, moved) in [(99, 100, false), (100, 100, false), (101, 100, true)] {
        assert_eq!(move_one(&rig, job, to, secs).await, moved, "{to}");
    }
    rig.run_successfully(job, 101).await;
    // After the clock was set back, a job is still not moved to a time that was already fired.
    for (to, moved) in [(100, false), (101, false), (102, true)] {
        assert_eq!(move_one(&rig, job, to, 50).await, moved, "{to}");
    }
}

pub async fn a_due_job_is_not_moved_and_runs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = hourly(&rig, "crawl").await;
    assert!(!move_one(&rig, job, 5400, 3600).await, "a due job is not moved");
    assert!(!move_one(&rig, job, 5400, 3700).await, "late");
    assert_eq!(rig.job(job).await.next_at, Some(at(3600)));
    rig.run_successfully(job, 3700).await;
    assert_eq!(rig.times_of(job).await, [(3600, 0)]);
}

pub async fn jobs_with_active_runs_are_moved_on_request(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = hourly(&rig, "crawl").await;
    let held = rig.start(job, 3600).await;
    assert!(!move_one(&rig, job, 8000, 3601).await);
    let rebalance = begin_one(&rig, 1, 3601).await;
    let batch = batch_of(rebalance, 0, vec![move_to(&rig.job(job).await, at(8000))]);
    let batch = MoveBatch { even_live: true, ..batch };
    assert_eq!(carry_out(&rig, batch, 3601).await, Moved::Done(vec![true]));
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::Done);
    assert_eq!(rig.job(job).await.next_at, Some(at(8000)));
    rig.run_successfully(job, 8000).await;
}

pub async fn a_move_to_a_profile_that_is_not_given_is_not_made(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (good, other) = (hourly(&rig, "good").await, hourly(&rig, "other").await);
    let before = rig.job(other).await;
    let rebalance = begin_one(&rig, 1, 1).await;
    let moves = vec![move_to(&before, at(5400)), move_to(&rig.job(good).await, at(4500))];
    let mut batch = batch_of(rebalance, 0, moves);
    batch.profiles.remove(0);
    assert_eq!(carry_out(&rig, batch, 2).await, Moved::Done(vec![false, true]));
    assert_eq!(rig.job(other).await, before);
    assert_eq!(rig.job(good).await.next_at, Some(at(4500)));
    let kept = rig.store.get_rebalance(&rig.scope, rebalance).await.unwrap().unwrap();
    assert_eq!((kept.parts_done, kept.moved, kept.changed), (1, 1, 1));
}

pub async fn jobs_of_other_tenants_are_not_moved(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let theirs = rig.add_for(&other, new_job("theirs").every(3600).first_at(3600).build()).await;
    let job = rig.store.get(&other, theirs.id).await.unwrap().unwrap();
    let rebalance = begin_one(&rig, 1, 0).await;
    let batch = batch_of(rebalance, 0, vec![move_to(&job, at(4500))]);
    let moved = rig.store.move_jobs(&rig.scope, batch, now(0)).await.unwrap();
    assert_eq!(moved, Moved::Done(vec![false]));
    assert_eq!(rig.store.get(&other, theirs.id).await.unwrap(), Some(job));
    assert_counted(&*rig.store, &[rig.scope, other]).await;
}

pub async fn batches_are_done_in_order_and_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = [hourly(&rig, "a").await, hourly(&rig, "b").await];
    let rebalance = begin_one(&rig, 2, 1).await;
    let mut batches = Vec::new();
    for (part, job) in jobs.into_iter().enumerate() {
        let moves = vec![move_to(&rig.job(job).await, at(4500))];
        batches.push(batch_of(rebalance, part as u32, moves));
    }
    assert_eq!(carry_out(&rig, batches[1].clone(), 2).await, Moved::Stopped);
    assert_eq!(carry_out(&rig, batches[0].clone(), 3).await, Moved::Done(vec![true]));
    assert_eq!(carry_out(&rig, batches[0].clone(), 4).await, Moved::Stopped);
    let kept = rig.store.get_rebalance(&rig.scope, rebalance).await.unwrap().unwrap();
    assert_eq!((kept.parts_done, kept.touched_at), (1, Some(at(3))));
    assert_eq!(carry_out(&rig, batches[1].clone(), 5).await, Moved::Done(vec![true]));
    let beyond = batch_of(rebalance, 2, Vec::new());
    assert_eq!(carry_out(&rig, beyond, 6).await, Moved::Stopped);
    let kept = rig.store.get_rebalance(&rig.scope, rebalance).await.unwrap().unwrap();
    assert_eq!((kept.parts_done, kept.moved, kept.changed), (2, 2, 0));
    assert_eq!((kept.touched_at, kept.state), (Some(at(5)), RebalanceState::Running));
}

pub async fn a_rebalance_that_is_not_running_moves_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = hourly(&rig, "crawl").await;
    let before = rig.job(job).await;
    let plan = crate::balance::new_plan(1, 0);
    let planned = plan.id;
    let parts = crate::balance::parts_of(&plan);
    rig.store.plan_rebalance(&rig.scope, plan, parts).await.unwrap();
    let stopped = begin_one(&rig, 1, 0).await;
    let state = RebalanceState::Stopped;
    rig.store.end_rebalance(&rig.scope, stopped, state, now(1)).await.unwrap();
    let done = begin_one(&rig, 1, 1).await;
    end(&rig, done, 1).await;
    let running = begin_one(&rig, 1, 2).await;
    let batch = |id| batch_of(id, 0, vec![move_to(&before, at(4500))]);
    for (scope, id) in [
        (rig.scope, planned),
        (rig.scope, stopped),
        (rig.scope, done),
        (rig.scope, Uuid::nil()),
        (other, running),
    ] {
        let moved = rig.store.move_jobs(&scope, batch(id), now(3)).await.unwrap();
        assert_eq!(moved, Moved::Stopped);
    }
    assert_eq!(rig.job(job).await, before);
    assert_counted(&*rig.store, &[rig.scope]).await;
    assert_eq!(carry_out(&rig, batch(running), 4).await, Moved::Done(vec![true]));
}

pub async fn a_thousand_jobs_are_moved_at_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let new = |n: i64| new_job(&format!("job {n}")).every(86_400).first_at(3600 + n % 7).build();
    let jobs = rig.add_all((0..1000).map(new).collect()).await;
    let rebalance = begin_one(&rig, 1, 0).await;
    let mut moves = Vec::new();
    for (n, job) in jobs.iter().enumerate() {
        moves.push(move_to(&rig.job(*job).await, at(4500 + (n as i64 % 90) * 900)));
    }
    let mut batch = batch_of(rebalance, 0, moves);
    batch.profiles.sort_unstable();
    batch.profiles.dedup();
    assert!(batch.profiles.len() < 100);
    batch.moves[500].generation = 7;
    let Moved::Done(made) = carry_out(&rig, batch, 0).await else {
        panic!("the rebalance is running")
    };
    assert_eq!(made.iter().filter(|made| **made).count(), 999);
    assert!(!made[500]);
    assert_eq!(rig.job(jobs[999]).await.next_at, Some(at(4500 + (999 % 90) * 900)));
}

pub async fn a_concurrent_fire_and_move_do_not_both_take_effect(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..20_i64 {
        let job = hourly(&rig, &format!("job {n}")).await;
        let fire = fire_of(&rig.due(job).await, at(3600), Begin::Claimed);
        let rebalance = begin_one(&rig, 1, 3600).await;
        let batch = batch_of(rebalance, 0, vec![move_to(&rig.job(job).await, at(4500))]);
        let (scope, node): (Scope, _) = (rig.scope, rig.node);
        let won = at_once(&rig, 2, |turn, store| {
            let (fire, batch) = (fire.clone(), batch.clone());
            async move {
                if (turn as i64 + n) % 2 == 0 {
                    let fired = store.fire(node, vec![fire], now(3600)).await.unwrap().results;
                    matches!(fired[..], [FireResult::Fired(_)])
                } else {
                    let moved = store.move_jobs(&scope, batch, now(3600)).await.unwrap();
                    moved == Moved::Done(vec![true])
                }
            }
        })
        .await;
        assert!(won[0] != won[1], "{won:?}");
        end(&rig, rebalance, 3601).await;
        assert_counted(&*rig.store, &[rig.scope]).await;
    }
}

pub async fn a_batch_done_concurrently_is_done_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = hourly(&rig, "crawl").await;
    let rebalance = begin_one(&rig, 1, 0).await;
    let batch = batch_of(rebalance, 0, vec![move_to(&rig.job(job).await, at(4500))]);
    let scope = rig.scope;
    let answers = at_once(&rig, 6, |_, store| {
        let batch = batch.clone();
        async move { store.move_jobs(&scope, batch, now(1)).await.unwrap() }
    })
    .await;
    let done = answers.iter().filter(|answer| **answer == Moved::Done(vec![true])).count();
    let stopped = answers.iter().filter(|answer| **answer == Moved::Stopped).count();
    assert_eq!((done, stopped), (1, 5), "{answers:?}");
    assert_eq!(rig.job(job).await.generation, 2);
    assert_counted(&*rig.store, &[rig.scope]).await;
}
