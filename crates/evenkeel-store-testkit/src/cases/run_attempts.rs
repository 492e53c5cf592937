//! The attempts of given runs.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::{AttemptKey, AttemptNo, Timestamp};
use evenkeel_store::{Finish, LAST_ERROR_MAX, Results, RunAttempt, Scope, Then};

use crate::Opened;
use crate::fixtures::{Begin, at, new_job};
use crate::rig::{Held, Known, OVER, Rig, next_attempt};

/// Attempt number, status and due time.
type Seen = (u16, AttemptStatus, Option<Timestamp>);

async fn read(
    rig: &Rig,
    scope: &Scope,
    runs: &[AttemptKey],
    newest: u32,
) -> Vec<(AttemptKey, RunAttempt)> {
    let found = rig.store.attempts_of_runs(scope, runs, newest).await;
    let found = found.expect("attempts of runs can be read");
    found.into_iter().map(|one| (one.attempt.key, one)).collect()
}

async fn seen(rig: &Rig, run: AttemptKey, newest: u32) -> Vec<Seen> {
    let found = read(rig, &rig.scope, &[run], newest).await;
    found.iter().map(|(key, one)| (key.attempt.0, one.attempt.status, one.due)).collect()
}

/// Starts a run at 60 s whose first `failures` attempts fail; the next attempt waits until the
/// returned due time.
async fn failing(rig: &Rig, job: Known, failures: i64) -> (AttemptKey, Timestamp) {
    let mut held = rig.start(job, 60).await;
    let first = held.key;
    for nth in 1..=failures {
        let due = 60 + 10 * nth;
        rig.finish(rig.retry(held, at(due))).await;
        if nth < failures {
            rig.fire_delayed(&rig.delayed(due).await, Begin::Claimed, due).await;
            held = Held { key: next_attempt(held.key), ..held };
        }
    }
    (first, at(60 + 10 * failures))
}

pub async fn a_run_has_its_attempts_in_order_and_its_waiting_retry(opened: Opened) {
    use AttemptStatus::{Completed, Failed, Pending, Running};
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let (first, due) = failing(&rig, job, 2).await;
    let two = [(0, Failed, None), (1, Failed, None)];
    assert_eq!(seen(&rig, first, 9).await, [&two[..], &[(2, Pending, Some(due))]].concat());
    rig.fire_delayed(&rig.delayed(80).await, Begin::Queued, 80).await;
    assert_eq!(seen(&rig, first, 9).await, [&two[..], &[(2, Pending, None)]].concat());
    let held = rig.claim_one(81).await;
    assert_eq!(seen(&rig, first, 9).await, [&two[..], &[(2, Running, None)]].concat());
    rig.finish(rig.success(held)).await;
    assert_eq!(seen(&rig, first, 9).await, [&two[..], &[(2, Completed, None)]].concat());
}

pub async fn a_run_that_never_started_has_its_waiting_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let queued = rig.queue(job, 60).await;
    assert_eq!(seen(&rig, queued, 9).await, [(0, AttemptStatus::Pending, None)]);
    let other = rig.add(new_job("other").build()).await;
    let triggered = rig.trigger(other, 0, 70).await;
    assert_eq!(seen(&rig, triggered, 9).await, [(0, AttemptStatus::Pending, Some(at(70)))]);
}

pub async fn a_requeued_attempt_is_one_attempt_of_its_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let back = rig.requeue_of(held, job, true).await;
    assert!(rig.requeue(back, 65).await);
    assert_eq!(seen(&rig, held.key, 9).await, [(0, AttemptStatus::Pending, None)]);
    let found = read(&rig, &rig.scope, &[held.key], 9).await;
    assert_eq!(found[0].1.attempt, rig.run(held.key).await);
}

pub async fn a_long_run_has_its_first_and_newest_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let (first, _) = failing(&rig, job, 5).await;
    let numbers = async |newest| -> Vec<u16> {
        seen(&rig, first, newest).await.into_iter().map(|(number, ..)| number).collect()
    };
    assert_eq!(numbers(2).await, [0, 3, 4, 5], "number 5 waits");
    assert_eq!(numbers(1).await, [0, 4, 5]);
    assert_eq!(numbers(5).await, [0, 1, 2, 3, 4, 5]);
}

pub async fn attempts_of_several_runs_come_in_key_order(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (a, b) = (rig.add(new_job("a").build()).await, rig.add(new_job("b").build()).await);
    let one = rig.run_successfully(a, 60).await;
    let two = rig.run_successfully(b, 60).await;
    let three = rig.run_successfully(a, 120).await;
    let unknown = AttemptKey::regular(b.no, at(120));
    let found = read(&rig, &rig.scope, &[three, unknown, two, one], 9).await;
    let keys: Vec<AttemptKey> = found.iter().map(|(key, _)| *key).collect();
    assert_eq!(keys, [one, two, three]);
    for (key, one) in found {
        assert_eq!((one.attempt, one.due), (rig.run(key).await, None));
    }
    assert_eq!(read(&rig, &rig.scope, &[], 9).await, []);
}

pub async fn the_attempt_number_of_a_run_key_is_ignored(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let (first, _) = failing(&rig, job, 2).await;
    let whole = seen(&rig, first, 9).await;
    assert_eq!(seen(&rig, first.with_attempt(AttemptNo(7)), 9).await, whole);
}

pub async fn a_skip_record_is_a_run_with_one_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.start(job, 400).await;
    let record = AttemptKey::regular(job.no, at(60));
    let found = read(&rig, &rig.scope, &[record], 9).await;
    assert_eq!(found.len(), 1);
    let attempt = &found[0].1.attempt;
    assert_eq!(attempt.status, AttemptStatus::Skipped);
    assert_eq!(attempt.skipped.map(|skipped| skipped.from), Some(at(60)));
}

pub async fn attempts_of_runs_have_no_output_and_short_errors(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let results = Results {
        error: Some("ü".repeat(LAST_ERROR_MAX + 9)),
        output: Some("long".into()),
        ..Results::default()
    };
    let failed = Finish { results, ..rig.end(held, Outcome::Failed, OVER) };
    rig.finish(failed).await;
    let found = read(&rig, &rig.scope, &[held.key], 9).await;
    let shown = &found[0].1.attempt.results;
    assert_eq!(shown.output, None);
    assert_eq!(shown.error, Some("ü".repeat(LAST_ERROR_MAX)));
}

pub async fn attempts_of_runs_of_another_tenant_are_not_returned(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.end(held, Outcome::Failed, Then::Retry { due: at(90) })).await;
    let second = rig.add(new_job("second").build()).await;
    let queued = rig.queue(second, 60).await;
    let runs = [held.key, queued];
    assert_eq!(read(&rig, &rig.scope, &runs, 9).await.len(), 3);
    assert_eq!(read(&rig, &other, &runs, 9).await, []);
}
