//! Tests that load profile counts stay correct while jobs are moved, changed, fired and registered
//! concurrently.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/rings.rs"]
mod rings;

use std::sync::Arc;

use evenkeel_core::attempt::Outcome;
use evenkeel_core::balance::{COST_MAX, Load, LoadProfile, LoadProfileKey, Move, Placement};
use evenkeel_core::{JobNo, Span};
use evenkeel_store::{
    Action, Finish, Fire, FireResult, JobChange, MoveBatch, Moved, NewJob, OwnedAttempt, Rebalance,
    RebalanceState, Then,
};
use evenkeel_store_postgres::{PostgresOptions, PostgresStore};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::balance::assert_counted;
use evenkeel_store_testkit::commands::Commands;
use evenkeel_store_testkit::fixtures::{Begin, at, definition_of, fire_of, now, unnamed_job};
use evenkeel_store_testkit::rig::{ALPHA, Held, Known, OVER, Rig};
use futures::future::join_all;
use tokio_postgres::Client;
use uuid::Uuid;

async fn rig(store: PostgresStore) -> Rig {
    Rig::new(Opened { store: Arc::new(store), guard: Box::new(()), reopen: None }).await
}

/// Returns a rebalance plan without stored moves, because the test passes the moves with each
/// batch.
fn plan(id: u128) -> Rebalance {
    Rebalance {
        id: Uuid::from_u128(id),
        state: RebalanceState::Planned,
        undoes: None,
        undone_by: None,
        created_by: "somebody".into(),
        created_at: at(0),
        touched_at: None,
        ended_at: None,
        parts: 1000,
        parts_done: 0,
        planned: 0,
        moved: 0,
        changed: 0,
        skipped: 0,
        summary: "{}".into(),
    }
}

async fn begun(rig: &Rig, id: u128) -> Uuid {
    let plan = plan(id);
    let id = plan.id;
    rig.store.plan_rebalance(&rig.scope, plan, vec![Vec::new(); 1000]).await.unwrap();
    let begun = rig.store.begin_rebalance(&rig.scope, id, at(0), now(0)).await.unwrap();
    let begun = begun.unwrap().into_inner();
    assert_eq!((begun.id, begun.state), (id, RebalanceState::Running));
    id
}

async fn all_placements(rig: &Rig) -> Vec<Placement> {
    rig.store.placements(&rig.scope, None, 100_000).await.unwrap()
}

/// Returns moves of all these jobs to start times `secs` seconds later.
async fn moves_by(
    rig: &Rig,
    rebalance: Uuid,
    part: u32,
    jobs: &[Placement],
    secs: u64,
) -> MoveBatch {
    let numbers: Vec<JobNo> = jobs.iter().map(|job| job.job).collect();
    let definitions = rig.store.load_jobs(&numbers).await.unwrap();
    let (mut moves, mut profiles) = (Vec::new(), Vec::new());
    for job in jobs {
        let Some(loaded) = definitions.iter().find(|loaded| loaded.no == job.job) else { continue };
        let new_at = job.next_at.saturating_add(Span::from_secs(secs));
        let profile = LoadProfile::of(&definition_of(loaded), new_at).unwrap().text();
        let key = LoadProfileKey::of(&profile);
        let (job, generation, old_at) = (job.job, job.generation, job.next_at);
        moves.push(Move { job, generation, old_at, new_at, profile: key });
        profiles.push((key, profile));
    }
    MoveBatch { rebalance, part, moves, profiles, even_live: false }
}

/// Applies the moves of jobs that have not changed.
async fn make(rig: &Rig, moves: MoveBatch, secs: i64) -> Moved {
    rig.store.move_jobs(&rig.scope, moves, now(secs)).await.unwrap()
}

/// Checks that every job has the load profile of its definition, and that the counts match the
/// jobs.
async fn assert_counts_are_true(rig: &Rig, observer: &Client, options: &PostgresOptions) {
    let schema = options.schema.as_deref().unwrap();
    let sql = format!(
        "SELECT (SELECT count(*) FROM {schema}.job_state
                  WHERE counted <> (slot IS NOT NULL AND load_profile <> 0)),
                (SELECT count(*)
                   FROM {schema}.load_profile r
                   FULL JOIN (SELECT tenant_no, load_profile AS key, count(*) AS jobs,
                                     sum(cost_us) AS cost_us
                                FROM {schema}.job_state WHERE counted GROUP BY 1, 2) AS s
                  USING (tenant_no, key)
                  WHERE coalesce(r.jobs, 0) <> coalesce(s.jobs, 0)
                     OR coalesce(r.cost_us, 0) <> coalesce(s.cost_us, 0))"
    );
    let row = observer.query_one(&sql, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (0, 0));
    let placements = all_placements(rig).await;
    let numbers: Vec<JobNo> = placements.iter().map(|job| job.job).collect();
    let loaded = rig.store.load_jobs(&numbers).await.unwrap();
    for job in &placements {
        let loaded = loaded.iter().find(|loaded| loaded.no == job.job).unwrap();
        let load = Load::of(&definition_of(loaded), None, job.next_at);
        assert_eq!(job.profile, load.map(|load| load.key), "job {}", job.job);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_is_moved_or_fired_and_never_both() {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    let observer = common::observer(&options.url).await;
    let jobs: Vec<NewJob> =
        (0..200).map(|n| unnamed_job().every(3600).first_at(60 + n * 4).build()).collect();
    let numbers: Vec<JobNo> = rig.add_all(jobs).await.iter().map(|job| job.no).collect();
    let rebalance = begun(&rig, 1).await;
    let (mut fired_in_all, mut moved_in_all) = (0, 0);
    for round in 0..20 {
        let secs = 1000 + i64::from(round) * 3600;
        let placements = all_placements(&rig).await;
        let loaded = rig.store.load_jobs(&numbers).await.unwrap();
        let due = loaded.iter().filter(|job| job.next_at <= Some(at(secs)));
        let fires: Vec<Fire> = due.map(|job| fire_of(job, at(secs), Begin::Claimed)).collect();
        // The test moves and fires the same due jobs concurrently; a job that was moved is due in
        // the next round.
        let wanted: Vec<Placement> =
            placements.into_iter().filter(|job| job.next_at <= at(secs)).collect();
        let moves = moves_by(&rig, rebalance, round, &wanted, 3000).await;
        let pieces = fires.chunks(50).map(|piece| rig.fire(piece.to_vec(), secs));
        let (moved, fired) = tokio::join!(make(&rig, moves, secs - 900), join_all(pieces));
        let fired = fired.concat();
        let Moved::Done(moved) = moved else { panic!("it was not stopped") };
        for (fire, fired) in fires.iter().zip(&fired) {
            let nth = wanted.iter().position(|job| job.job == fire.job).unwrap();
            let was_fired = matches!(fired, FireResult::Fired(_));
            assert!(was_fired != moved[nth], "{fired:?}, moved: {}", moved[nth]);
            fired_in_all += u64::from(was_fired);
            moved_in_all += u64::from(moved[nth]);
        }
        let owned = rig.owned(rig.node).await;
        let held = |owned: &OwnedAttempt| Held { key: owned.key, fence: owned.fence };
        rig.finish_all(owned.iter().map(|owned| rig.success(held(owned))).collect()).await;
    }
    assert_counts_are_true(&rig, &observer, &options).await;
    let kept = rig.store.get_rebalance(&rig.scope, rebalance).await.unwrap().unwrap();
    assert_eq!((kept.moved, kept.changed), (moved_in_all, fired_in_all));
    assert_eq!(rig.census().await.running, 0);
}

/// Fires and finishes the due runs of these jobs. Some of the finished runs stop their job.
async fn fire_and_finish(rig: &Rig, worker: usize, jobs: &[JobNo]) {
    let node = rig.join(&format!("worker-{worker}"), 0).await;
    for round in 0..20 {
        let loaded = rig.store.load_jobs(jobs).await.unwrap();
        let due = loaded.iter().filter(|job| job.next_at.is_some());
        let begin = if round % 2 == 0 { Begin::Claimed } else { Begin::Queued };
        let batch: Vec<Fire> = due.map(|job| fire_of(job, at(100_000), begin)).collect();
        rig.fire_for(node, batch, 100_000).await;
        rig.claim_for(node, 50, 100_000).await;
        let owned = rig.owned(node).await;
        let ends: Vec<Finish> = owned.iter().map(|owned| end_of(rig, owned, round)).collect();
        rig.store.finish(node, ends, ALPHA).await.unwrap();
    }
}

fn end_of(rig: &Rig, owned: &OwnedAttempt, round: i64) -> Finish {
    let held = Held { key: owned.key, fence: owned.fence };
    let stop = Then::EndRun { stop_job: true, next_at: None };
    match (owned.key.job_no.0 + round) % 9 {
        0 => rig.end(held, Outcome::Failed, stop),
        _ => rig.end(held, Outcome::Completed, OVER),
    }
}

async fn apply_commands(rig: &Rig, jobs: &[Known]) {
    for (nth, job) in (0..).zip(jobs) {
        let next_at = Some(at(100_000 + nth * 1000));
        let act = async |action| {
            rig.store.act(&rig.scope, job.id, action, now(200)).await.unwrap();
        };
        let every = Span::from_secs(7200 + nth.cast_unsigned());
        let definition = unnamed_job().every(every.as_micros() / 1_000_000).build().definition;
        match nth % 4 {
            0 => {
                act(Action::Pause).await;
                act(Action::Resume { next_at }).await;
            }
            1 => {
                let change = JobChange {
                    definition: Some(definition),
                    next_at: Some(next_at),
                    ..JobChange::default()
                };
                act(Action::Change(Box::new(change))).await;
            }
            2 => act(Action::Delete).await,
            _ => act(Action::Pause).await,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn load_counts_stay_correct_under_concurrency_without_deadlocks() {
    let (store, options) = rings::open(common::url()).await;
    let rig = rig(store).await;
    let observer = common::observer(&options.url).await;
    let new = |n: i64| match n % 3 {
        0 => unnamed_job().once_at(60 + n * 900).build(),
        1 => unnamed_job().every(3600 * n.cast_unsigned()).first_at(n * 1000).build(),
        _ => unnamed_job().every(86_400).first_at(n * 1000).build(),
    };
    let jobs = rig.add_all((1..=80).map(new).collect()).await;
    let numbers: Vec<JobNo> = jobs.iter().map(|job| job.no).collect();
    let rebalance = begun(&rig, 1).await;
    let workers = (0..2).map(|worker| fire_and_finish(&rig, worker, &numbers));
    let mover = async {
        for part in 0..40 {
            let jobs = all_placements(&rig).await;
            let moves = moves_by(&rig, rebalance, part, &jobs, 900).await;
            let moved = make(&rig, moves, 200).await;
            assert!(matches!(moved, Moved::Done(_)), "{moved:?}");
        }
    };
    // Two tasks register jobs with the same load profiles, one of them in reverse order.
    let registrars = (0..2).map(async |which| {
        for round in 0..20 {
            let mut batch: Vec<NewJob> = (1..=30).map(|n| new(n + round)).collect();
            if which == 1 {
                batch.reverse();
            }
            rig.register(batch).await;
        }
    });
    let recounter = async {
        for _ in 0..20 {
            rig.store.recount_load(None, 10_000).await.unwrap();
        }
    };
    tokio::join!(
        join_all(workers),
        mover,
        join_all(registrars),
        recounter,
        apply_commands(&rig, &jobs[20..])
    );
    assert_counts_are_true(&rig, &observer, &options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_several_rebalances_that_begin_at_once_runs() {
    let (store, _options) = common::open().await;
    let rig = rig(store).await;
    for id in 1..=6 {
        rig.store.plan_rebalance(&rig.scope, plan(id), Vec::new()).await.unwrap();
    }
    let begin = |id| {
        let id = Uuid::from_u128(id);
        rig.store.begin_rebalance(&rig.scope, id, at(-30), now(0))
    };
    let answers = join_all((1..=6).map(begin)).await;
    let answers: Vec<Rebalance> =
        answers.into_iter().map(|answer| answer.unwrap().unwrap().into_inner()).collect();
    assert!(answers.iter().all(|one| one.state == RebalanceState::Running));
    assert!(answers.iter().all(|one| one.id == answers[0].id), "{answers:?}");
    let mut running = 0;
    for id in 1..=6 {
        let one = rig.store.get_rebalance(&rig.scope, Uuid::from_u128(id)).await.unwrap().unwrap();
        running += u32::from(one.state == RebalanceState::Running);
    }
    assert_eq!(running, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_moves_waits_for_a_stop_and_then_moves_nothing() {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    rig.add(unnamed_job().every(3600).build()).await;
    let rebalance = begun(&rig, 1).await;
    let (stopper, observer) =
        (common::observer(&options.url).await, common::observer(&options.url).await);
    let schema = options.schema.as_deref().unwrap();
    let stop = format!("BEGIN; UPDATE {schema}.rebalance SET state = 3");
    stopper.batch_execute(&stop).await.unwrap();
    let jobs = all_placements(&rig).await;
    let release = async {
        let waits = "SELECT count(*) FROM pg_stat_activity
                      WHERE application_name = $1 AND wait_event_type = 'Lock'";
        let name = &options.application_name;
        while observer.query_one(waits, &[name]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        stopper.batch_execute("COMMIT").await.unwrap();
    };
    let moves = moves_by(&rig, rebalance, 0, &jobs, 900).await;
    let (moved, ()) = tokio::join!(make(&rig, moves, 0), release);
    assert_eq!(moved, Moved::Stopped);
    assert_eq!(all_placements(&rig).await, jobs);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cost_of_a_run_is_capped() {
    let (store, _options) = common::open().await;
    let rig = rig(store).await;
    let forever = Span::from_micros(u64::MAX / 4);
    let jobs = (0..5).map(|_| {
        let mut job = unnamed_job().build();
        job.definition.cost = Some(forever);
        job
    });
    let jobs = rig.add_all(jobs.collect()).await;
    let cost = async || rig.store.load_profiles(None, 10).await.unwrap()[0].cost;
    assert_eq!(cost().await, COST_MAX.saturating_mul(5));
    for job in &jobs[1..] {
        rig.store.delete(&rig.scope, job.id, now(0)).await.unwrap();
    }
    assert_eq!(cost().await, COST_MAX);
    assert_eq!(rig.store.recount_load(None, 10).await.unwrap().changed, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn recounting_repairs_counts_of_jobs_without_a_next_time() {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    let new = |secs| unnamed_job().every(secs).build();
    let jobs = rig.add_all(vec![new(3600), new(3600), new(86_400)]).await;
    let observer = common::observer(&options.url).await;
    let schema = options.schema.as_deref().unwrap();
    let spoil = format!(
        "UPDATE {schema}.job_state SET slot = NULL, next_at = NULL WHERE job_no IN ({}, {});
         INSERT INTO {schema}.load_profile SELECT tenant_no, 7, '', -1, -5 FROM {schema}.load_profile LIMIT 1",
        jobs[0].no.0, jobs[2].no.0
    );
    observer.batch_execute(&spoil).await.unwrap();
    assert_eq!(rig.store.recount_load(None, 10).await.unwrap().changed, 2);
    assert_counted(&*rig.store, &[rig.scope]).await;
    let sql = format!("SELECT count(*), sum(jobs)::int8 FROM {schema}.load_profile");
    let left = observer.query_one(&sql, &[]).await.unwrap();
    assert_eq!((left.get::<_, i64>(0), left.get::<_, i64>(1)), (1, 1));
    assert_eq!(rig.store.recount_load(None, 10).await.unwrap().changed, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn unused_load_profiles_leave_no_rows() {
    let (store, options) = common::open().await;
    let rig = rig(store).await;
    let job = rig.add(unnamed_job().build()).await;
    rig.store.delete(&rig.scope, job.id, now(0)).await.unwrap();
    let observer = common::observer(&options.url).await;
    let sql = format!("SELECT count(*) FROM {}.load_profile", options.schema.as_deref().unwrap());
    let rows = async || observer.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0);
    assert_eq!((rows().await, rig.store.load_profiles(None, 10).await.unwrap()), (1, Vec::new()));
    rig.store.recount_load(None, 10).await.unwrap();
    assert_eq!(rows().await, 0);
}
