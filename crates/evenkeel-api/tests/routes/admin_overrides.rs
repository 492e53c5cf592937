//! Tests of status overrides during concurrent requests, and of refused status overrides.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::order::Priority;
use evenkeel_store::{Action, FinishResult, Scope, Store, Trigger};
use evenkeel_store_testkit::commands::{Commands, done};
use evenkeel_store_testkit::fixtures::{Begin, at, new_job, now, plain_trigger};
use evenkeel_store_testkit::rig::{Known, OVER};
use futures::FutureExt as _;
use serde_json::{Value, json};

use crate::world::{Answer, World};

const JOBS: &str = "/api/admin/jobs";
const BULK: &str = "/api/admin/jobs/bulk/status";

async fn set(world: &World, job: Known, status: &str) -> Answer {
    world.put(&format!("{JOBS}/{}/status", job.id), json!({"status": status})).await
}

/// Creates a job whose runs may overlap.
async fn job(world: &World, more: Value) -> Known {
    let mut document = json!({"schedule": "@every 30m", "overlap": "allow"});
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = world.create(document).await;
    world.known(&made).await
}

async fn live(world: &World, job: Known) -> u32 {
    world.rig.job(job).await.live
}

/// An action of a simulated concurrent request, and the store function before which the action
/// runs.
type Meanwhile = Arc<Mutex<Option<(&'static str, Box<dyn FnOnce() + Send>)>>>;

async fn interrupted() -> (World, Meanwhile) {
    let meanwhile = Meanwhile::default();
    let acts = Arc::clone(&meanwhile);
    let world = World::failing(move |_: &AtomicI64, verb: &str| {
        let mut next = acts.lock().unwrap();
        if next.as_ref().is_some_and(|(before, _)| *before == verb)
            && let Some((_, act)) = next.take()
        {
            act();
        }
        None
    });
    (world.await, meanwhile)
}

/// Triggers a run just before the named store function is called. The model store never blocks, so
/// the trigger completes at once.
fn trigger_before(verb: &'static str, meanwhile: &Meanwhile, world: &World, job: Known) {
    let (store, scope): (Arc<dyn Store>, Scope) = (Arc::clone(&world.rig.store), world.rig.scope);
    let act = move || {
        let asked = store.trigger(&scope, job.id, plain_trigger(77), now(0));
        asked.now_or_never().unwrap().unwrap();
    };
    *meanwhile.lock().unwrap() = Some((verb, Box::new(act)));
}

#[tokio::test]
async fn bulk_override_reports_jobs_left_without_time() {
    let slow = |clock: &AtomicI64, verb: &str| {
        if verb == "trigger" {
            clock.fetch_add(1_000_000, Ordering::Relaxed);
        }
        None
    };
    let world = World::failing(slow).await;
    let known = world.rig.add_all((0..40).map(|n| new_job(&format!("{n}")).build()).collect());
    let known = known.await;
    let ids: Vec<String> = known.iter().map(|job| job.id.to_string()).collect();
    let bulk = json!({"job_ids": ids, "status": "queued"});
    let answer = world.put(BULK, bulk.clone()).await.expect(200);
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 40);
    let (updated, failed) =
        (answer["updated"].as_u64().unwrap(), answer["failed"].as_u64().unwrap());
    assert!((20..30).contains(&updated), "{updated}");
    assert_eq!(updated + failed, 40);
    for (result, job) in results.iter().zip(&known) {
        assert_eq!(live(&world, *job).await, u32::from(result["ok"] == true));
        if result["ok"] == false {
            assert_eq!(result["error"]["type"], "/problems/timeout", "{result}");
            assert_eq!(result["uuid"], job.id.to_string());
        }
    }
    // Repeating the bulk request overrides the status of all jobs.
    let again = world.put(BULK, bulk).await.expect(200);
    assert_eq!((&again["updated"], &again["failed"]), (&json!(40), &json!(0)));
    assert_eq!(world.rig.census().await.live, 40);
}

#[tokio::test]
async fn bulk_retry_reports_jobs_left_without_time() {
    let slow = |clock: &AtomicI64, verb: &str| {
        if verb == "apply_commands" {
            clock.fetch_add(30_000_000, Ordering::Relaxed);
        }
        None
    };
    let world = World::failing(slow).await;
    let jobs = (0..1_500).map(|n| new_job(&format!("{n}")).build()).collect();
    let known = world.rig.add_all(jobs).await;
    for job in [known[0], known[1_499]] {
        let held = world.rig.start(job, 60).await;
        world.rig.finish(world.rig.end(held, Outcome::Failed, OVER)).await;
    }
    let ids: Vec<String> = known.iter().map(|job| job.id.to_string()).collect();
    let path = format!("{JOBS}/bulk/retry");
    let answer = world.post(&path, Some(json!({"job_ids": ids}))).await.expect(200);
    assert_eq!((&answer["updated"], &answer["failed"]), (&json!(1), &json!(1_499)));
    assert_eq!(answer["results"][0]["ok"], true);
    assert_eq!(answer["results"][1_499]["error"]["type"], "/problems/timeout");
    assert_eq!((live(&world, known[0]).await, live(&world, known[1_499]).await), (1, 0));
}

#[tokio::test]
async fn run_that_starts_after_an_override_is_not_affected() {
    let (world, meanwhile) = interrupted().await;
    let job = job(&world, json!({})).await;
    for _ in 0..2 {
        world.rig.trigger(job, 1, 0).await;
    }
    // After the first two runs are overridden, a concurrent request triggers a third run.
    trigger_before("announce", &meanwhile, &world, job);
    let answer = set(&world, job, "success").await.expect(200);
    assert_eq!(answer["status"], "queued", "it is where the newcomer is");
    assert!(meanwhile.lock().unwrap().is_none());
    assert_eq!(live(&world, job).await, 1);
    assert_eq!(world.rig.job(job).await.succeeded_runs, 2);
}

#[tokio::test]
async fn two_concurrent_requests_queue_one_run() {
    let (world, meanwhile) = interrupted().await;
    for more in [json!({}), json!({"dedup_key": "a"})] {
        let job = job(&world, more).await;
        trigger_before("trigger", &meanwhile, &world, job);
        assert_eq!(set(&world, job, "queued").await.expect(200)["status"], "queued");
        assert!(meanwhile.lock().unwrap().is_none());
        assert_eq!(live(&world, job).await, 1);
    }
    // If the latest run failed, concurrent requests also queue only one run.
    let job = job(&world, json!({"dedup_key": "b"})).await;
    let held = world.rig.start(job, 1800).await;
    world.rig.finish(world.rig.end(held, Outcome::Failed, OVER)).await;
    trigger_before("apply_commands", &meanwhile, &world, job);
    assert_eq!(set(&world, job, "queued").await.expect(200)["status"], "queued");
    assert!(meanwhile.lock().unwrap().is_none());
    assert_eq!(live(&world, job).await, 1);
}

#[tokio::test]
async fn job_refused_by_its_dedup_window_is_reported() {
    let world = World::new().await;
    let dedup = json!({"dedup_key": "a", "dedup_scope": "window", "dedup_window_seconds": 3600});
    let job = job(&world, dedup).await;
    let refusal = set(&world, job, "queued").await.problem(409, "duplicate");
    assert_eq!(refusal["existing_id"], job.id.to_string());
}

#[tokio::test]
async fn run_of_a_paused_job_is_not_requeued_and_continues() {
    let world = World::new().await;
    let job = job(&world, json!({})).await;
    world.rig.trigger(job, 1, 0).await;
    world.rig.fire_delayed(&world.rig.delayed(0).await, Begin::Queued, 0).await;
    let held = world.rig.claim_one(1).await;
    world.pass(2);
    done(world.rig.store.act(&world.rig.scope, job.id, Action::Pause, now(2)).await.unwrap());
    let refusal = set(&world, job, "queued").await.problem(409, "job-state");
    assert!(refusal["detail"].as_str().unwrap().contains("resume"), "{refusal}");
    let bulk = json!({"job_ids": [job.id.to_string()], "status": "queued"});
    let many = world.put(BULK, bulk).await.expect(200);
    assert_eq!(many["results"][0]["error"]["type"], "/problems/job-state");
    assert_eq!(world.rig.run(held.key).await.status, AttemptStatus::Running);
    assert_eq!(world.rig.finish(world.rig.success(held)).await, FinishResult::Done);
    // After the run has finished, a new run of the job may be queued.
    assert_eq!(set(&world, job, "queued").await.expect(200)["status"], "queued");
}

#[tokio::test]
async fn run_whose_key_another_job_has_is_not_requeued() {
    let world = World::new().await;
    let once = |secs| {
        let schedule = json!({"kind": "once", "at": at(secs).to_string()});
        json!({"schedule": schedule, "dedup_key": "a"})
    };
    let first = job(&world, once(60)).await;
    let held = world.rig.start(first, 60).await;
    // The first job is running and not pending, so a second job may have the same deduplication
    // key.
    let second = job(&world, once(600)).await;
    let refusal = set(&world, first, "queued").await.problem(409, "duplicate");
    assert_eq!(refusal["existing_id"], second.id.to_string());
    assert_eq!(world.rig.run(held.key).await.status, AttemptStatus::Running);
}

#[tokio::test]
async fn requeued_run_keeps_its_priority() {
    let world = World::new().await;
    let job = job(&world, json!({"priority": 5})).await;
    let priority = Priority::try_from(90).ok();
    world.rig.trigger_with(job, Trigger { n: 0, priority, idle_only: false }, 0).await;
    world.rig.fire_delayed(&world.rig.delayed(0).await, Begin::Queued, 0).await;
    world.rig.claim_one(1).await;
    let back = set(&world, job, "queued").await.expect(200);
    assert_eq!((&back["priority"], &back["effective_priority"]), (&json!(5), &json!(90)));
    let waiting = world.rig.waiting_of(&world.rig.scope, job.id).await;
    assert_eq!(waiting[0].priority, priority);
    assert_eq!(world.rig.claim(1, 10).await[0].priority, priority);
}

#[tokio::test]
async fn override_ends_all_active_runs_of_a_job() {
    let world = World::new().await;
    let job = job(&world, json!({})).await;
    for n in 0..150 {
        world.rig.trigger(job, n, 0).await;
    }
    assert_eq!(set(&world, job, "failed").await.expect(200)["status"], "failed");
    assert_eq!((live(&world, job).await, world.rig.job(job).await.failed_runs), (0, 150));
}

#[tokio::test]
async fn due_run_without_a_live_node_is_reported() {
    let world = World::new().await;
    let job = job(&world, json!({})).await;
    world.pass(1800);
    assert!(world.rig.store.retire(world.rig.node).await.unwrap());
    let refusal = set(&world, job, "failed").await.problem(409, "job-state");
    assert!(refusal["detail"].as_str().unwrap().contains("no node"), "{refusal}");
}
