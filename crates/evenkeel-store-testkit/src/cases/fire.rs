//! Tests that firing compares the job with the scheduler's decision, records the run, and sets the
//! next scheduled time.

use evenkeel_core::advance::{SkipReason, SkippedTimes};
use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{AttemptKey, Sequence};
use evenkeel_store::{Applied, Fire, FireResult, JobChange, RunLink};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{Begin, at, fire_of, new_job, now};
use crate::rig::Rig;

/// Asserts that the store rejects the firing and changes nothing, and returns the result.
async fn refused(rig: &Rig, fire: Fire, secs: i64) -> FireResult {
    let before = rig.census().await;
    let result = rig.fire(vec![fire], secs).await[0];
    assert_eq!(rig.census().await, before, "a refused fire changed something");
    result
}

pub async fn a_due_job_is_started_and_advanced(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(61), Begin::Claimed);
    let fired = rig.store.fire(rig.node, vec![fire], now(61)).await.unwrap();
    assert_eq!(fired.now, at(61));
    assert_eq!(fired.results, [FireResult::Fired(Fence(1))]);
    let after = rig.job(job).await;
    assert_eq!((after.next_at, after.last_fired_at), (Some(at(120)), Some(at(60))));
    assert_eq!((after.live, after.waiting, after.executions), (1, 0, 1));
    assert_eq!(after.generation, 1, "only commands raise the generation");
}

pub async fn a_started_attempt_is_running_on_the_node_that_fired_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 61).await;
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.fence, run.crashes), (AttemptStatus::Running, Fence(1), 0));
    assert_eq!(run.job, job.id);
    assert_eq!(run.node, Some((rig.node, "node-1".into())));
    assert_eq!((run.number, run.started_at, run.finished_at), (Some(1), Some(at(61)), None));
    assert_eq!(run.skipped, None);
}

pub async fn a_queued_attempt_is_pending_and_its_run_is_active(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    let run = rig.run(key).await;
    assert_eq!((run.status, run.fence, run.node), (AttemptStatus::Pending, Fence::NONE, None));
    assert_eq!((run.number, run.started_at, run.finished_at), (None, None, None));
    let after = rig.job(job).await;
    assert_eq!((after.live, after.waiting, after.executions), (1, 1, 0));
    assert_eq!(after.next_at, Some(at(120)));
    let census = rig.census().await;
    assert_eq!((census.ready, census.running, census.live), (1, 0, 1));
}

pub async fn a_queued_run_is_the_new_head_at_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    let link = RunLink { scheduled_at: key.scheduled_at, sequence: Sequence::REGULAR };
    assert_eq!(rig.due(job).await.head, Some(link));
}

pub async fn another_generation_is_stale(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    let older = Fire { generation: fire.generation - 1, ..fire.clone() };
    assert_eq!(refused(&rig, older, 60).await, FireResult::Stale);
    let newer = Fire { generation: fire.generation + 1, ..fire };
    assert_eq!(refused(&rig, newer, 60).await, FireResult::Stale);
}

pub async fn another_next_time_is_stale(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    let other = Fire { due: at(59), ..fire };
    assert_eq!(refused(&rig, other, 60).await, FireResult::Stale);
    assert_eq!(rig.job(job).await.next_at, Some(at(60)));
}

pub async fn another_head_is_stale(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    let link = RunLink { scheduled_at: at(0), sequence: Sequence::REGULAR };
    let invented = Fire { head: Some(link), ..fire };
    assert_eq!(refused(&rig, invented, 60).await, FireResult::Stale);
    rig.run_successfully(job, 60).await;
    let next = fire_of(&rig.due(job).await, at(120), Begin::Claimed);
    let deleted = Fire { head: None, ..next.clone() };
    assert_eq!(refused(&rig, deleted, 120).await, FireResult::Stale);
    let wrong_time = Fire { head: Some(link), ..next };
    assert_eq!(refused(&rig, wrong_time, 120).await, FireResult::Stale);
}

pub async fn a_future_time_is_early(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    assert_eq!(refused(&rig, fire.clone(), 59).await, FireResult::Early);
    assert_eq!(rig.fire(vec![fire], 60).await, [FireResult::Fired(Fence(1))]);
}

pub async fn a_job_with_an_active_run_is_busy_if_it_must_be_idle(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.start(job, 60).await;
    let fire = fire_of(&rig.due(job).await, at(120), Begin::Claimed);
    assert!(fire.idle_only);
    assert_eq!(refused(&rig, fire, 120).await, FireResult::Busy { retry_pending: false });
    assert_eq!(rig.job(job).await.next_at, Some(at(120)));
}

pub async fn a_job_with_a_waiting_retry_is_busy_with_retry_pending(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.add(new_job("other").build()).await;
    let held = rig.start(job, 60).await;
    rig.start(other, 60).await;
    rig.finish(rig.retry(held, at(130))).await;
    let fire = fire_of(&rig.due(job).await, at(120), Begin::Queued);
    assert_eq!(refused(&rig, fire.clone(), 120).await, FireResult::Busy { retry_pending: true });
    let beside = fire_of(&rig.due(other).await, at(120), Begin::Queued);
    assert_eq!(refused(&rig, beside, 120).await, FireResult::Busy { retry_pending: false });
    // After the retry was queued, it waits for a worker and no longer for its due time.
    rig.fire_delayed(&rig.delayed(130).await, Begin::Queued, 130).await;
    assert_eq!(refused(&rig, fire, 130).await, FireResult::Busy { retry_pending: false });
}

pub async fn a_job_with_a_waiting_trigger_is_busy_without_retry_pending(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.trigger(job, 0, 50).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    assert_eq!(refused(&rig, fire, 60).await, FireResult::Busy { retry_pending: false });
}

pub async fn a_job_that_need_not_be_idle_may_overlap(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    rig.start(job, 60).await;
    rig.start(job, 120).await;
    let after = rig.job(job).await;
    assert_eq!((after.live, after.waiting, after.executions), (2, 0, 2));
}

pub async fn a_deleted_job_is_stale(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    rig.store.delete(&rig.scope, job.id, now(1)).await.unwrap();
    assert_eq!(refused(&rig, fire.clone(), 60).await, FireResult::Stale);
    let raised = Fire { generation: fire.generation + 1, ..fire };
    assert_eq!(refused(&rig, raised, 60).await, FireResult::Stale);
}

pub async fn an_unknown_job_is_stale(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    let unknown = Fire { job: evenkeel_core::JobNo(job.no.0 + 1_000), ..fire };
    assert_eq!(refused(&rig, unknown, 60).await, FireResult::Stale);
}

pub async fn a_job_without_a_next_time_is_stale(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    let change = JobChange { next_at: Some(None), ..JobChange::default() };
    let changed = rig.store.update(&rig.scope, job.id, change, now(1)).await.unwrap();
    assert!(matches!(changed, Applied::Done(_)));
    let raised = Fire { generation: fire.generation + 1, ..fire };
    assert_eq!(refused(&rig, raised, 60).await, FireResult::Stale);
}

pub async fn one_time_never_fires_twice(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    assert_eq!(rig.fire(vec![fire.clone()], 60).await, [FireResult::Fired(Fence(1))]);
    assert_eq!(refused(&rig, fire.clone(), 60).await, FireResult::Stale);
    let with_new_head = Fire { head: rig.due(job).await.head, ..fire };
    assert_eq!(refused(&rig, with_new_head, 60).await, FireResult::Stale);
}

pub async fn jobs_of_a_batch_do_not_affect_each_other(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["good", "stale", "early", "busy", "also good"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    rig.start(jobs[3], 60).await;
    let mut batch = Vec::new();
    for job in &jobs {
        batch.push(fire_of(&rig.due(*job).await, at(60), Begin::Claimed));
    }
    batch[1].generation += 1;
    let far = JobChange { next_at: Some(Some(at(600))), ..JobChange::default() };
    rig.store.update(&rig.scope, jobs[2].id, far, now(1)).await.unwrap();
    batch[2] = fire_of(&rig.due(jobs[2]).await, at(600), Begin::Claimed);
    let good = FireResult::Fired(Fence(1));
    assert_eq!(
        rig.fire(batch, 120).await,
        [
            good,
            FireResult::Stale,
            FireResult::Early,
            FireResult::Busy { retry_pending: false },
            good
        ]
    );
    let census = rig.census().await;
    assert_eq!((census.running, census.live), (3, 3));
}

pub async fn results_are_in_the_order_of_the_batch(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs: Vec<_> = (0..20).map(|n| new_job(&format!("job {n}")).build()).collect();
    let jobs = rig.add_all(jobs).await;
    let mut batch = Vec::new();
    // Multiplying by 7 modulo 20 shuffles the order, because 7 and 20 have no common factor.
    for place in 0..20 {
        let at_place = place * 7 % 20;
        let mut fire = fire_of(&rig.due(jobs[at_place]).await, at(60), Begin::Claimed);
        fire.generation += i32::from(at_place % 3 == 0);
        batch.push(fire);
    }
    let expected: Vec<FireResult> = (0..20)
        .map(|place| match place * 7 % 20 % 3 {
            0 => FireResult::Stale,
            _ => FireResult::Fired(Fence(1)),
        })
        .collect();
    assert_eq!(rig.fire(batch, 60).await, expected);
}

pub async fn a_dead_node_fires_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Queued);
    let former = rig.node;
    rig.join("node-1", 1).await;
    let before = rig.census().await;
    assert_eq!(rig.fire_for(former, vec![fire], 60).await, [FireResult::Stale]);
    assert_eq!(rig.census().await, before);
}

pub async fn a_draining_node_fires_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    rig.store.drain(rig.node).await.unwrap();
    assert_eq!(refused(&rig, fire, 60).await, FireResult::Stale);
}

pub async fn an_unknown_or_gone_node_fires_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let fire = fire_of(&rig.due(job).await, at(60), Begin::Claimed);
    let unknown = evenkeel_core::NodeNo(rig.node.0 + 1_000);
    assert_eq!(rig.fire_for(unknown, vec![fire.clone()], 60).await, [FireResult::Stale]);
    assert!(rig.store.retire(rig.node).await.unwrap());
    assert_eq!(refused(&rig, fire, 60).await, FireResult::Stale);
}

pub async fn skipped_times_are_recorded_and_linked_before_the_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    // The scheduled times from 120 s on were missed; the misfire policy `last` runs only the newest
    // of them.
    let held = rig.start(job, 400).await;
    assert_eq!(held.key.scheduled_at, at(360));
    assert_eq!(rig.times_of(job).await, [(360, 0), (120, 0), (60, 0)]);
    let skip = rig.run(AttemptKey::regular(job.no, at(120))).await;
    let times = SkippedTimes { from: at(120), to: at(300), count: 4, reason: SkipReason::Misfire };
    assert_eq!((skip.status, skip.skipped), (AttemptStatus::Skipped, Some(times)));
    assert_eq!((skip.started_at, skip.node), (None, None));
    let after = rig.job(job).await;
    assert_eq!((after.last_fired_at, after.next_at), (Some(at(360)), Some(at(420))));
    assert_eq!((after.live, after.executions), (1, 2));
}

pub async fn a_skip_record_has_the_number_of_the_attempt_before_it(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let held = rig.start(job, 400).await;
    assert_eq!(rig.run(AttemptKey::regular(job.no, at(120))).await.number, Some(1));
    assert_eq!(rig.run(held.key).await.number, Some(2));
}

pub async fn times_may_be_skipped_without_firing_any(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").misfire(MisfirePolicy::Skip).build()).await;
    let fire = fire_of(&rig.due(job).await, at(300), Begin::Claimed);
    assert_eq!(fire.start, None);
    assert!(matches!(rig.fire(vec![fire], 300).await[..], [FireResult::Fired(_)]));
    let after = rig.job(job).await;
    assert_eq!((after.live, after.executions), (0, 0));
    assert_eq!((after.last_fired_at, after.next_at), (Some(at(180)), Some(at(240))));
    assert_eq!(rig.times_of(job).await, [(60, 0)]);
    let census = rig.census().await;
    assert_eq!((census.runs, census.skipped_times, census.running), (1, 3, 0));
    let link = RunLink { scheduled_at: at(60), sequence: Sequence::REGULAR };
    assert_eq!(rig.due(job).await.head, Some(link));
}

pub async fn a_busy_job_may_still_skip(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.start(job, 60).await;
    let fire = fire_of(&rig.due(job).await, at(120), Begin::Claimed);
    let skip =
        SkippedTimes { from: at(120), to: at(120), count: 1, reason: SkipReason::RetryPending };
    let fire = Fire { skip: Some(skip), start: None, idle_only: false, ..fire };
    assert!(matches!(rig.fire(vec![fire], 120).await[..], [FireResult::Fired(_)]));
    let after = rig.job(job).await;
    assert_eq!((after.live, after.next_at), (1, Some(at(180))));
    assert_eq!(rig.run(AttemptKey::regular(job.no, at(120))).await.skipped, Some(skip));
}

pub async fn a_job_whose_last_time_fired_has_no_next_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("once").once_at(60).build()).await;
    rig.run_successfully(job, 60).await;
    let after = rig.job(job).await;
    assert_eq!((after.next_at, after.last_fired_at), (None, Some(at(60))));
    assert_eq!(rig.due(job).await.next_at, None);
}

pub async fn numbers_count_the_attempts_of_a_job_from_one(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    for n in 1..=4 {
        let key = rig.run_successfully(job, n * 60).await;
        assert_eq!(rig.run(key).await.number, u64::try_from(n).ok());
    }
    assert_eq!(rig.job(job).await.executions, 4);
}

pub async fn an_empty_batch_is_accepted(opened: Opened) {
    let rig = Rig::new(opened).await;
    let fired = rig.store.fire(rig.node, Vec::new(), now(7)).await.unwrap();
    assert_eq!((fired.now, fired.results), (at(7), Vec::new()));
    let fired = rig.store.fire_delayed(rig.node, Vec::new(), now(8)).await.unwrap();
    assert_eq!((fired.now, fired.results), (at(8), Vec::new()));
}
