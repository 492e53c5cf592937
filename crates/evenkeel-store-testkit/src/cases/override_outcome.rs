//! Tests how operators override the outcomes of runs.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptKey, Span};
use evenkeel_store::{
    DeadFilter, FinishResult, FireResult, LiveState, MessageKind, NodeMessage, OutcomeOverride,
    OverrideAction, OverrideResult, PageRequest, ProgressNote, Then,
};

use crate::Opened;
use crate::fixtures::{Begin, at, new_job, now, queue_entry_of};
use crate::rig::{Held, Known, OVER, Rig, next_attempt};

pub(super) fn ended(
    key: AttemptKey,
    seen: LiveState,
    outcome: Outcome,
    secs: i64,
) -> OutcomeOverride {
    let error = outcome.is_failure().then(|| "a listener is announced".to_owned());
    OutcomeOverride {
        key,
        expected: seen,
        at: at(secs),
        action: OverrideAction::Ended { outcome, error, then: OVER },
    }
}

pub(super) fn runs(held: Held) -> LiveState {
    LiveState::Running { fence: held.fence, started_at: held.key.scheduled_at }
}

pub(super) async fn result_of(rig: &Rig, request: OutcomeOverride) -> OverrideResult {
    rig.store.override_outcome(&rig.scope, request).await.expect("an outcome can be overridden")
}

pub(super) async fn apply(rig: &Rig, request: OutcomeOverride) -> bool {
    match result_of(rig, request).await {
        OverrideResult::Done => true,
        OverrideResult::Changed => false,
        other => panic!("it was refused: {other:?}"),
    }
}

pub(super) async fn back(rig: &Rig, held: Held, job: Known, secs: i64) -> OutcomeOverride {
    let entry = queue_entry_of(&rig.due(job).await, held.key.scheduled_at, at(secs));
    let verdict = OverrideAction::Queued(Box::new(entry));
    OutcomeOverride { key: held.key, expected: runs(held), at: at(secs), action: verdict }
}

pub(super) async fn messages(rig: &Rig) -> Vec<NodeMessage> {
    rig.store.take_messages(rig.node, 99).await.expect("messages can be taken")
}

pub async fn a_running_attempt_ends_as_given_and_its_worker_is_refused(opened: Opened) {
    let rig = Rig::new(opened).await;
    for (name, outcome) in [("good", Outcome::Completed), ("bad", Outcome::Failed)] {
        let job = rig.add(new_job(name).build()).await;
        let held = rig.start(job, 60).await;
        assert!(apply(&rig, ended(held.key, runs(held), outcome, 70)).await);
        let run = rig.run(held.key).await;
        assert_eq!((run.status, run.fence), (outcome.into(), held.fence.next()));
        assert_eq!((run.started_at, run.finished_at), (Some(at(60)), Some(at(70))));
        assert_eq!(run.results.error.is_some(), outcome.is_failure());
        assert_eq!(run.node.as_ref().map(|(node, _)| *node), Some(rig.node));
        for end in [rig.success(held), rig.retry(held, at(90))] {
            assert_eq!(rig.finish(end).await, FinishResult::LeaseLost);
        }
        assert_eq!(rig.run(held.key).await, run);
        let shown = rig.job(job).await;
        assert_eq!((shown.live, shown.last_outcome), (0, Some(outcome)));
        assert_eq!((shown.next_at, shown.executions), (Some(at(120)), 1));
        let (good, bad) = (u64::from(outcome.is_success()), u64::from(outcome.is_failure()));
        assert_eq!((shown.succeeded_runs, shown.failed_runs), (good, bad));
        assert_eq!(shown.history.last_end_at, Some(at(70)));
    }
    assert_eq!(rig.owned(rig.node).await, []);
    assert_eq!(rig.delayed(1_000).await, []);
}

pub async fn the_node_of_the_attempt_gets_a_message(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = [rig.add(new_job("a").build()).await, rig.add(new_job("b").build()).await];
    let (first, second) = (rig.start(jobs[0], 60).await, rig.start(jobs[1], 60).await);
    assert!(apply(&rig, ended(first.key, runs(first), Outcome::Completed, 70)).await);
    let returned =
        |held: Held| NodeMessage { key: held.key, fence: held.fence, kind: MessageKind::Ended };
    assert_eq!(messages(&rig).await, [returned(first)]);
    let again = back(&rig, second, jobs[1], 70).await;
    assert!(apply(&rig, again).await);
    assert_eq!(messages(&rig).await, [returned(second)]);
}

pub async fn a_queued_attempt_ends_as_given(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    assert!(apply(&rig, ended(key, LiveState::Waiting, Outcome::Completed, 70)).await);
    let run = rig.run(key).await;
    assert_eq!((run.status, run.node.clone()), (AttemptStatus::Completed, None));
    assert_eq!((run.started_at, run.finished_at), (None, Some(at(70))));
    assert_eq!(rig.claim(10, 71).await, []);
    let census = rig.census().await;
    assert_eq!((census.ready, census.live, census.running, census.runs), (0, 0, 0, 1));
    let shown = rig.job(job).await;
    assert_eq!((shown.last_outcome, shown.succeeded_runs), (Some(Outcome::Completed), 1));
    assert_eq!(shown.history.last_good_end_at, Some(at(70)));
    assert_eq!(shown.executions, 0, "no worker ran the attempt");
    assert_eq!(messages(&rig).await, []);
    // The job continues.
    rig.run_successfully(job, 120).await;
    assert_eq!(rig.times_of(job).await, [(120, 0), (60, 0)]);
}

pub async fn a_delayed_retry_ends_as_given(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, at(90))).await;
    // The request to override an outcome may name any attempt of the run.
    assert!(apply(&rig, ended(held.key, LiveState::Waiting, Outcome::Failed, 70)).await);
    assert_eq!(rig.delayed(1_000).await, []);
    let run = rig.run(next_attempt(held.key)).await;
    assert_eq!((run.status, run.finished_at), (AttemptStatus::Failed, Some(at(70))));
    assert_eq!(run.results.error.as_deref(), Some("a listener is announced"));
    let census = rig.census().await;
    assert_eq!((census.delayed, census.live), (0, 0));
    assert_eq!(rig.times_of(job).await, [(60, 1), (60, 0)]);
    assert_eq!(rig.job(job).await.history.consecutive_failures, 2);
}

pub async fn a_delayed_trigger_ends_as_given(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let key = rig.trigger(job, 0, 70).await;
    let returned = rig.delayed(70).await;
    assert!(apply(&rig, ended(key, LiveState::Waiting, Outcome::Completed, 71)).await);
    assert_eq!(rig.fire_delayed(&returned, Begin::Claimed, 72).await, [FireResult::Stale]);
    assert_eq!(rig.run(key).await.status, AttemptStatus::Completed);
    assert_eq!(rig.census().await.live, 0);
    assert_eq!(rig.times_of(job).await, [(70, 0), (60, 0)]);
    rig.run_successfully(job, 120).await;
    assert_eq!(rig.times_of(job).await, [(120, 0), (70, 0), (60, 0)]);
}

pub async fn a_requeued_attempt_ends_as_given(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let requeue = rig.requeue_of(held, job, true).await;
    assert!(rig.requeue(requeue, 65).await);
    assert!(apply(&rig, ended(held.key, LiveState::Waiting, Outcome::Failed, 70)).await);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.crashes), (AttemptStatus::Failed, 1));
    assert_eq!(run.fence, held.fence.next().next());
    assert_eq!(run.node.map(|(node, _)| node), Some(rig.node));
    assert_eq!(rig.claim(10, 71).await, []);
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::LeaseLost);
}

pub async fn a_run_in_another_state_is_left_alone(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    let held = rig.claim_one(61).await;
    let other = Held { fence: held.fence.next(), ..held };
    for wrong in [
        ended(key, LiveState::Waiting, Outcome::Completed, 70),
        ended(key, runs(other), Outcome::Completed, 70),
        ended(next_attempt(key), runs(held), Outcome::Completed, 70),
        back(&rig, other, job, 70).await,
    ] {
        assert!(!apply(&rig, wrong.clone()).await, "{wrong:?}");
    }
    let run = rig.run(key).await;
    assert_eq!((run.status, run.fence), (AttemptStatus::Running, held.fence));
    assert_eq!(messages(&rig).await, []);
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::Done);
    for late in [ended(key, runs(held), Outcome::Failed, 80), back(&rig, held, job, 80).await] {
        assert!(!apply(&rig, late).await);
    }
    assert_eq!(rig.run(key).await.status, AttemptStatus::Completed);
}

pub async fn an_attempt_put_back_is_claimed_again(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let again = back(&rig, held, job, 70).await;
    assert!(apply(&rig, again.clone()).await);
    assert!(!apply(&rig, again).await);
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::LeaseLost);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.crashes), (AttemptStatus::Pending, 0));
    let second = rig.claim_one(71).await;
    assert_eq!((second.key, second.fence), (held.key, held.fence.next().next()));
    assert_eq!(rig.finish(rig.success(second)).await, FinishResult::Done);
    assert_eq!(rig.job(job).await.live, 0);
}

pub async fn a_waiting_attempt_is_not_put_back(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    let entry = queue_entry_of(&rig.due(job).await, at(60), at(70));
    let verdict = OverrideAction::Queued(Box::new(entry));
    let again = OutcomeOverride { key, expected: LiveState::Waiting, at: at(70), action: verdict };
    assert!(!apply(&rig, again).await);
    assert_eq!(rig.claim_one(71).await.key, key);
}

pub async fn an_override_causes_no_retry_and_no_dead_letter(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let mut failed = ended(held.key, runs(held), Outcome::Failed, 70);
    if let OverrideAction::Ended { then, .. } = &mut failed.action {
        *then = Then::Retry { due: at(80) };
    }
    assert!(apply(&rig, failed).await);
    assert_eq!(rig.delayed(1_000).await, []);
    assert_eq!(rig.job(job).await.live, 0);
    let filter = DeadFilter::default();
    let dead = rig.store.list_dead(&rig.scope, filter, PageRequest::first(9)).await.unwrap();
    assert_eq!(dead.items, []);
}

pub async fn an_override_does_not_change_the_average(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    let before = rig.job(job).await.history;
    let held = rig.start(job, 120).await;
    assert!(apply(&rig, ended(held.key, runs(held), Outcome::Completed, 179)).await);
    let key = rig.queue(job, 180).await;
    assert!(apply(&rig, ended(key, LiveState::Waiting, Outcome::Completed, 181)).await);
    let after = rig.job(job).await.history;
    assert_eq!(after.average_good_duration, before.average_good_duration);
    assert_eq!(after.duration_deviation(), before.duration_deviation());
    assert_eq!(after.last_good_end_at, Some(at(181)));
}

pub async fn an_override_starts_no_average(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    assert!(apply(&rig, ended(key, LiveState::Waiting, Outcome::Completed, 61)).await);
    let held = rig.start(job, 120).await;
    assert!(apply(&rig, ended(held.key, runs(held), Outcome::Completed, 179)).await);
    let request = rig.job(job).await.history;
    assert_eq!((request.average_good_duration, request.duration_variance), (None, 0.0));
    assert_eq!(request.last_good_end_at, Some(at(179)));
    // Only runs that a worker executed to their end set the average duration.
    rig.run_successfully(job, 180).await;
    let after = rig.job(job).await.history;
    assert_eq!(after.average_good_duration, Some(Span::from_secs(5)));
    assert_eq!(after.duration_deviation(), Some(Span::ZERO));
}

pub async fn a_periodic_job_continues_after_an_override(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").periodic(600, 60).build()).await;
    let key = rig.queue(job, 60).await;
    let mut end = ended(key, LiveState::Waiting, Outcome::Completed, 70);
    if let OverrideAction::Ended { then, .. } = &mut end.action {
        *then = Then::EndRun { stop_job: false, next_at: Some(at(130)) };
    }
    rig.look(0, 100).await;
    assert!(apply(&rig, end).await);
    assert_eq!(rig.job(job).await.next_at, Some(at(130)));
    let returned: Vec<_> = rig.look(0, 100).await.changed.iter().map(|job| job.no).collect();
    assert_eq!(returned, [job.no]);
}

pub async fn an_override_notifies_the_scheduler(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.look(0, 100).await;
    assert!(apply(&rig, ended(held.key, runs(held), Outcome::Completed, 70)).await);
    let returned: Vec<_> = rig.look(0, 100).await.changed.iter().map(|job| job.no).collect();
    assert_eq!(returned, [job.no]);
}

pub async fn an_override_deletes_notes_and_checkpoint(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let Held { key, fence } = held;
    let log = Some("half".to_owned());
    let note = ProgressNote { key, fence, progress: None, log, checkpoint: Some(vec![7]) };
    assert_eq!(rig.store.save_progress(rig.node, vec![note], now(61)).await.unwrap(), [true]);
    assert!(apply(&rig, ended(key, runs(held), Outcome::Failed, 70)).await);
    assert_eq!(rig.run(key).await.log, None);
}

pub async fn runs_of_other_tenants_are_left_alone(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let (ours, queued) = (rig.add(new_job("a").build()).await, rig.add(new_job("b").build()).await);
    let held = rig.start(ours, 60).await;
    let key = rig.queue(queued, 60).await;
    for wrong in [
        ended(held.key, runs(held), Outcome::Completed, 70),
        back(&rig, held, ours, 70).await,
        ended(key, LiveState::Waiting, Outcome::Completed, 70),
    ] {
        let result = rig.store.override_outcome(&other, wrong).await.unwrap();
        assert_eq!(result, OverrideResult::Changed);
    }
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Running);
    assert_eq!(rig.claim_one(71).await.key, key);
}
