//! Deduplication of jobs.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::dedup::{Dedup, DedupKey, DedupScope};
use evenkeel_core::{JobId, Span};
use evenkeel_store::{Action, Applied, FinishResult, Job, JobChange, JobState, NewJob, Registered};

use crate::Opened;
use crate::commands::{Commands, done, job_after, resume};
use crate::fixtures::{Begin, JobBuilder, at, new_job, now, unnamed_job};
use crate::rig::{Held, Known, OVER, Rig};

pub(super) const PENDING: DedupScope = DedupScope::Pending;
pub(super) const RUNNING: DedupScope = DedupScope::PendingOrRunning;
pub(super) const HOUR: DedupScope = DedupScope::Window(Span::from_secs(3600));

pub(super) fn keyed(job: JobBuilder, key: &str, scope: DedupScope) -> NewJob {
    let mut job = job.build();
    job.about.dedup = Some(Dedup { key: key.into(), by_target: false, scope });
    job
}

/// Returns a job that runs once, one minute after the start.
pub(super) fn once(key: &str) -> NewJob {
    keyed(unnamed_job().once_at(60), key, PENDING)
}

pub(super) fn recurring(key: &str) -> NewJob {
    keyed(unnamed_job(), key, PENDING)
}

pub(super) fn with_scope(mut job: NewJob, scope: DedupScope) -> NewJob {
    job.about.dedup.as_mut().unwrap().scope = scope;
    job
}

async fn register(rig: &Rig, jobs: Vec<NewJob>, secs: i64) -> Vec<Registered> {
    rig.store.register(&rig.scope, jobs, now(secs)).await.unwrap()
}

pub(super) async fn register_one(rig: &Rig, job: NewJob, secs: i64) -> Registered {
    register(rig, vec![job], secs).await[0]
}

/// Registers a job; no holder of its deduplication key may block the registration.
pub(super) async fn made(rig: &Rig, job: NewJob, secs: i64) -> Known {
    let id = job.id;
    match register_one(rig, job, secs).await {
        Registered::Created { no, .. } => Known { no, id },
        other => panic!("not created: {other:?}"),
    }
}

/// Tries to register this job and returns the job that blocks it.
pub(super) async fn kept_out(rig: &Rig, job: NewJob, secs: i64) -> Option<JobId> {
    match register_one(rig, job, secs).await {
        Registered::Duplicate(other) => Some(other),
        _ => None,
    }
}

pub(super) async fn act(rig: &Rig, job: Known, action: Action, secs: i64) -> Applied {
    rig.store.act(&rig.scope, job.id, action, now(secs)).await.unwrap()
}

pub(super) async fn fail(rig: &Rig, job: Known, secs: i64) -> Held {
    let held = rig.start(job, secs).await;
    assert_eq!(rig.finish(rig.end(held, Outcome::Failed, OVER)).await, FinishResult::Done);
    held
}

pub(super) const RETRY: Action = Action::Retry { n: 0, next_at: None };

/// Returns a command that changes the deduplication key of the job, or removes it.
pub(super) fn rekeyed(job: &Job, key: Option<&str>) -> Action {
    let dedup = key.map(|key| Dedup { key: key.into(), by_target: false, scope: PENDING });
    let about = evenkeel_core::About { dedup, ..job.about.clone() };
    Action::Change(Box::new(JobChange { about: Some(about), ..JobChange::default() }))
}

pub async fn a_second_job_with_a_key_returns_the_first(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    let other = made(&rig, once("b"), 0).await;
    assert_eq!(kept_out(&rig, once("a"), 1).await, Some(first.id));
    assert_eq!(kept_out(&rig, recurring("b"), 1).await, Some(other.id));
    assert_eq!(rig.census().await.jobs, 2);
    let shown = rig.job(first).await.about.dedup;
    assert_eq!(shown, Some(Dedup { key: "a".into(), by_target: false, scope: PENDING }));
    assert_eq!(rig.job(first).await.generation, 1);
}

pub async fn a_job_without_a_key_is_never_kept_out(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = (0..3).map(|_| unnamed_job().build()).collect();
    rig.add_all(jobs).await;
    assert_eq!(rig.census().await.jobs, 3);
}

pub async fn the_first_duplicate_of_a_batch_is_registered(opened: Opened) {
    let rig = Rig::new(opened).await;
    let old = made(&rig, once("old"), 0).await;
    let batch = vec![
        once("a"),
        unnamed_job().build(),
        once("a"),
        once("old"),
        once("b"),
        with_scope(once("a"), HOUR),
    ];
    let (a, b) = (batch[0].id, batch[4].id);
    let answers = register(&rig, batch, 1).await;
    let is_made = |n: usize| matches!(answers[n], Registered::Created { .. });
    assert!(is_made(0) && is_made(1) && is_made(4), "{answers:?}");
    assert_eq!(answers[2], Registered::Duplicate(a));
    assert_eq!(answers[3], Registered::Duplicate(old.id));
    assert_eq!(answers[5], Registered::Duplicate(a));
    assert_eq!(kept_out(&rig, once("b"), 2).await, Some(b));
    assert_eq!(rig.census().await.jobs, 4);
}

pub async fn a_duplicate_key_is_reported_before_a_taken_name(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, keyed(new_job("crawl"), "a", PENDING), 0).await;
    let again = keyed(new_job("crawl"), "a", PENDING);
    assert_eq!(register_one(&rig, again, 1).await, Registered::Duplicate(first.id));
    let namesake = keyed(new_job("crawl"), "b", PENDING);
    assert_eq!(register_one(&rig, namesake, 1).await, Registered::NameTaken(first.id));
    // A rejected job does not take its deduplication key, neither within its batch nor later.
    let batch = vec![keyed(new_job("crawl"), "b", PENDING), once("b"), once("b")];
    let b = batch[1].id;
    let answers = register(&rig, batch, 2).await;
    assert_eq!(answers[0], Registered::NameTaken(first.id));
    assert!(matches!(answers[1], Registered::Created { .. }), "{answers:?}");
    assert_eq!(answers[2], Registered::Duplicate(b));
    // The name of a job that was rejected as a duplicate stays free.
    let batch = vec![keyed(new_job("new"), "a", PENDING), keyed(new_job("new"), "c", PENDING)];
    let answers = register(&rig, batch, 3).await;
    assert_eq!(answers[0], Registered::Duplicate(first.id));
    assert!(matches!(answers[1], Registered::Created { .. }), "{answers:?}");
}

pub async fn a_key_belongs_to_one_executor_and_one_tenant(opened: Opened) {
    let rig = Rig::new(opened).await;
    made(&rig, once("a"), 0).await;
    made(&rig, keyed(unnamed_job().executor("http"), "a", PENDING), 0).await;
    let other = rig.tenant("other").await;
    rig.add_for(&other, once("a")).await;
    assert_eq!(rig.census().await.jobs, 3);
}

pub async fn a_one_off_job_holds_its_key_until_it_is_claimed(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    assert_eq!(kept_out(&rig, once("a"), 59).await, Some(first.id));
    rig.queue(first, 60).await;
    assert_eq!(kept_out(&rig, once("a"), 60).await, Some(first.id));
    rig.claim_one(61).await;
    let second = made(&rig, keyed(unnamed_job().once_at(90), "a", PENDING), 62).await;
    // The second job now holds the deduplication key.
    assert_eq!(kept_out(&rig, once("a"), 63).await, Some(second.id));
}

pub async fn a_running_holder_counts_if_the_new_job_says_so(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    let held = rig.start(first, 60).await;
    let newcomer = || with_scope(once("a"), RUNNING);
    assert_eq!(kept_out(&rig, newcomer(), 61).await, Some(first.id));
    rig.finish(rig.success(held)).await;
    made(&rig, newcomer(), 66).await;
}

pub async fn within_a_window_only_the_time_counts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, with_scope(once("a"), HOUR), 0).await;
    rig.run_successfully(first, 60).await;
    let newcomer = || with_scope(once("a"), HOUR);
    assert_eq!(kept_out(&rig, newcomer(), 3599).await, Some(first.id));
    let second = made(&rig, newcomer(), 3600).await;
    assert_eq!(kept_out(&rig, newcomer(), 3601).await, Some(second.id));
    assert_eq!(kept_out(&rig, newcomer(), 7199).await, Some(second.id));
}

pub async fn a_waiting_retry_counts_and_is_never_refused(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    let held = rig.start(first, 60).await;
    rig.finish(rig.retry(held, at(100))).await;
    assert_eq!(kept_out(&rig, once("a"), 70).await, Some(first.id));
    rig.fire_delayed(&rig.delayed(100).await, Begin::Claimed, 100).await;
    // The first job is running again and no longer pending, so its deduplication key is free. The
    // next retry of the first job starts, whichever job holds the deduplication key by then.
    made(&rig, keyed(unnamed_job().once_at(500), "a", PENDING), 101).await;
    let running = rig.job(first).await.running.unwrap();
    let fence = rig.run(running).await.fence;
    rig.finish(rig.retry(Held { key: running, fence }, at(200))).await;
    assert_eq!(rig.delayed(200).await.len(), 1);
}

pub async fn a_recurring_job_holds_its_key_until_it_ends(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, recurring("a"), 0).await;
    rig.run_successfully(first, 60).await;
    assert_eq!(kept_out(&rig, once("a"), 70).await, Some(first.id));
    done(act(&rig, first, Action::Pause, 71).await);
    assert_eq!(kept_out(&rig, once("a"), 72).await, Some(first.id));
    done(act(&rig, first, resume(Some(at(180))), 73).await);
    assert_eq!(kept_out(&rig, once("a"), 74).await, Some(first.id));
    done(act(&rig, first, Action::Cancel, 75).await);
    made(&rig, once("a"), 76).await;
}

pub async fn a_deleted_job_keeps_no_job_out(opened: Opened) {
    let rig = Rig::new(opened).await;
    for scope in [PENDING, RUNNING, HOUR] {
        let first = made(&rig, with_scope(once("a"), scope), 0).await;
        rig.start(first, 60).await;
        done(act(&rig, first, Action::Delete, 61).await);
        let second = made(&rig, with_scope(once("a"), scope), 62).await;
        done(act(&rig, second, Action::Delete, 63).await);
    }
}

pub async fn a_paused_one_off_job_releases_its_key_and_takes_it_back_if_free(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    done(act(&rig, first, Action::Pause, 1).await);
    let second = made(&rig, once("a"), 2).await;
    let refused = act(&rig, first, resume(Some(at(60))), 3).await;
    assert_eq!(refused, Applied::Duplicate(second.id));
    assert_eq!(rig.job(first).await.state, JobState::Paused);
    rig.run_successfully(second, 60).await;
    let back = job_after(act(&rig, first, resume(Some(at(100))), 70).await);
    assert_eq!(back.next_at, Some(at(100)));
    assert_eq!(kept_out(&rig, once("a"), 71).await, Some(first.id));
}

pub async fn a_failed_run_is_not_retried_beside_another_holder(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    fail(&rig, first, 60).await;
    let second = made(&rig, keyed(unnamed_job().once_at(90), "a", PENDING), 70).await;
    assert_eq!(act(&rig, first, RETRY, 71).await, Applied::Duplicate(second.id));
    assert_eq!((rig.job(first).await.live, rig.job(first).await.generation), (0, 1));
    rig.run_successfully(second, 90).await;
    done(act(&rig, first, RETRY, 100).await);
    assert_eq!(kept_out(&rig, once("a"), 101).await, Some(first.id));
}

pub async fn a_failed_run_may_be_retried_within_its_own_window(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, with_scope(once("a"), HOUR), 0).await;
    fail(&rig, first, 60).await;
    done(act(&rig, first, RETRY, 71).await);
    // The retry of the first job starts a new deduplication window of one hour.
    assert_eq!(kept_out(&rig, with_scope(once("a"), HOUR), 3670).await, Some(first.id));
}

pub async fn of_commands_in_a_batch_the_first_gets_the_key(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut jobs = Vec::new();
    for secs in [60, 90] {
        let job = made(&rig, keyed(unnamed_job().once_at(secs), "a", PENDING), secs - 1).await;
        fail(&rig, job, secs).await;
        jobs.push(job);
    }
    let order = |job: &Known| evenkeel_store::JobCommand {
        id: job.id,
        if_generation: None,
        if_fired: None,
        action: RETRY,
    };
    let orders = jobs.iter().map(order).collect();
    let answers = rig.store.apply_commands(&rig.scope, orders, now(100)).await.unwrap();
    assert!(matches!(answers[0], Applied::Done(_)), "{answers:?}");
    assert_eq!(answers[1], Applied::Duplicate(jobs[0].id));
}

pub async fn a_changed_key_is_taken_and_the_old_one_released(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    let second = made(&rig, once("b"), 0).await;
    let refused = act(&rig, first, rekeyed(&rig.job(first).await, Some("b")), 1).await;
    assert_eq!(refused, Applied::Duplicate(second.id));
    assert_eq!(rig.job(first).await.about.dedup.unwrap().key, "a");
    done(act(&rig, first, rekeyed(&rig.job(first).await, Some("c")), 2).await);
    assert_eq!(kept_out(&rig, once("c"), 3).await, Some(first.id));
    let third = made(&rig, once("a"), 3).await;
    done(act(&rig, second, rekeyed(&rig.job(second).await, None), 4).await);
    made(&rig, once("b"), 5).await;
    // A job that is changed but gets the same deduplication key again keeps the key.
    let third_now = rig.job(third).await;
    done(act(&rig, third, rekeyed(&third_now, Some("a")), 6).await);
    assert_eq!(kept_out(&rig, once("a"), 7).await, Some(third.id));
}

pub async fn another_executor_is_another_key(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    let second = made(&rig, keyed(unnamed_job().executor("http"), "a", PENDING), 0).await;
    let change = |job: &Job, kind: &str| {
        let mut definition = job.definition.clone();
        definition.executor.kind = kind.into();
        Action::Change(Box::new(JobChange { definition: Some(definition), ..JobChange::default() }))
    };
    let job = rig.job(first).await;
    assert_eq!(act(&rig, first, change(&job, "http"), 1).await, Applied::Duplicate(second.id));
    done(act(&rig, first, change(&job, "shell"), 2).await);
    made(&rig, once("a"), 3).await;
}

/// Prunes deduplication keys that were taken before `before`, two keys per step. Returns the number
/// of deleted keys and of steps.
async fn forget(rig: &Rig, before: i64) -> (u64, u32) {
    let (mut after, mut deleted, mut steps) = (None, 0, 0);
    loop {
        let step = rig.store.prune_dedup(at(before), after, 2).await.unwrap();
        (deleted, steps, after) = (deleted + step.deleted, steps + 1, step.next);
        if after.is_none() {
            return (deleted, steps);
        }
    }
}

pub async fn a_deleted_job_leaves_no_key(opened: Opened) {
    let rig = Rig::new(opened).await;
    for n in 0..7 {
        let job = made(&rig, once(&format!("key {n}")), 0).await;
        if n % 2 == 0 {
            done(act(&rig, job, Action::Delete, 1).await);
        }
    }
    // Pruning reads the three remaining deduplication keys in two steps.
    assert_eq!(forget(&rig, 10).await, (0, 2));
    for n in 0..7 {
        let is_kept_out = kept_out(&rig, once(&format!("key {n}")), 2).await.is_some();
        assert_eq!(is_kept_out, n % 2 == 1, "key {n}");
    }
}

pub async fn keys_that_keep_no_job_out_are_pruned_in_steps(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut jobs = Vec::new();
    for n in 0..5 {
        let job = made(&rig, with_scope(once(&format!("key {n}")), HOUR), n).await;
        rig.run_successfully(job, 60).await;
        jobs.push(job);
    }
    made(&rig, recurring("recurring"), 0).await;
    let paused = made(&rig, once("paused"), 0).await;
    done(act(&rig, paused, Action::Pause, 1).await);
    let running = made(&rig, once("running"), 0).await;
    rig.start(running, 60).await;
    // Of the eight deduplication keys, pruning deletes only the keys that ended jobs took in the
    // first two seconds.
    assert_eq!(forget(&rig, 2).await, (2, 5));
    for (n, job) in jobs.iter().enumerate() {
        let newcomer = with_scope(once(&format!("key {n}")), HOUR);
        let expected = (n >= 2).then_some(job.id);
        assert_eq!(kept_out(&rig, newcomer, 70).await, expected, "key {n}");
    }
    let last = DedupKey::from_bytes([u8::MAX; 16]);
    let end = rig.store.prune_dedup(at(100), Some((rig.scope.tenant, last)), 2).await.unwrap();
    assert_eq!((end.deleted, end.next), (0, None));
}

pub async fn keys_are_held_after_a_restart(opened: Opened) {
    let rig = Rig::new(opened).await;
    let first = made(&rig, once("a"), 0).await;
    let rig = rig.restart().await;
    assert_eq!(kept_out(&rig, once("a"), 1).await, Some(first.id));
}
