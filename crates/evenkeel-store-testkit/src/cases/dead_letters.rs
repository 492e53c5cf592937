//! Dead letters.

use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::on_failure::{DeathReason, Hook};
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{AttemptKey, AttemptNo, Origin, Timestamp};
use evenkeel_store::{
    Action, DEAD_LETTER_ERROR_MAX, DeadFilter, DeadLetter, Finish, FinishResult, FireResult,
    PageRequest, Prune, Redriven, Results, Scope, Then, discard_unwritten_dead_letters,
};

use crate::Opened;
use crate::commands::{Commands, done};
use crate::fixtures::{Begin, at, new_job, now};
use crate::rig::{Held, Known, OVER, Rig};

const DEAD: Hook = Hook::DeadLetter(DeathReason::RetriesExhausted);

fn death(rig: &Rig, held: Held) -> Finish {
    let results = Results { error: Some("no answer".into()), ..Results::default() };
    Finish { hook: DEAD, results, ..rig.end(held, Outcome::Failed, OVER) }
}

/// Runs a job that fails five seconds after its start and leaves a dead letter.
async fn die(rig: &Rig, job: Known, secs: i64) -> AttemptKey {
    let held = rig.start(job, secs).await;
    assert_eq!(rig.finish(death(rig, held)).await, FinishResult::Done);
    held.key
}

async fn list(rig: &Rig, filter: DeadFilter) -> Vec<DeadLetter> {
    let page = PageRequest::first(1000);
    rig.store.list_dead(&rig.scope, filter, page).await.unwrap().items
}

async fn keys(rig: &Rig, filter: DeadFilter) -> Vec<AttemptKey> {
    list(rig, filter).await.into_iter().map(|message| message.key).collect()
}

async fn redrive(rig: &Rig, run: AttemptKey, secs: i64) -> Redriven {
    rig.store.redrive(&rig.scope, &[run], now(secs)).await.unwrap().remove(0)
}

fn accepted(redriven: Redriven) -> AttemptKey {
    match redriven {
        Redriven::Accepted(key) => key,
        other => panic!("not accepted: {other:?}"),
    }
}

pub async fn a_dead_letter_shows_how_its_run_died(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let error = "x".repeat(DEAD_LETTER_ERROR_MAX - 1) + "éééé";
    let results = Results { error: Some(error.clone()), ..Results::default() };
    let hook = Hook::DeadLetter(DeathReason::NotRetryable);
    rig.finish(Finish { hook, results, ..rig.end(held, Outcome::TimedOut, OVER) }).await;
    let expected = DeadLetter {
        key: held.key,
        job: job.id,
        job_name: Some("crawl".into()),
        died_at: at(65),
        reason: DeathReason::NotRetryable,
        outcome: Outcome::TimedOut,
        error: Some(error.chars().take(DEAD_LETTER_ERROR_MAX).collect()),
        redriven: None,
    };
    assert_eq!(list(&rig, DeadFilter::default()).await, std::slice::from_ref(&expected));
    let found = rig.store.get_dead(&rig.scope, held.key).await.unwrap();
    assert_eq!(found, Some(expected));
}

pub async fn a_dead_letter_has_the_last_attempt_and_is_found_by_any(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let first = rig.start(job, 60).await;
    rig.finish(rig.retry(first, at(70))).await;
    assert_eq!(list(&rig, DeadFilter::default()).await, []);
    let fired = rig.fire_delayed(&rig.delayed(70).await, Begin::Claimed, 70).await;
    let [FireResult::Fired(fence)] = fired[..] else { panic!("{fired:?}") };
    let key = first.key.with_attempt(AttemptNo(1));
    rig.finish(death(&rig, Held { key, fence })).await;
    for asked in [first.key, key, key.with_attempt(AttemptNo(9))] {
        let message = rig.store.get_dead(&rig.scope, asked).await.unwrap().unwrap();
        assert_eq!(message.key, key);
    }
}

pub async fn ends_without_the_hook_leave_no_dead_letter(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["good", "bad", "dead", "lost"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    let mut held = Vec::new();
    for job in &jobs {
        held.push(rig.start(*job, 60).await);
    }
    let lost = Held { fence: held[3].fence.next(), ..held[3] };
    let batch = vec![
        rig.success(held[0]),
        rig.end(held[1], Outcome::Failed, OVER),
        death(&rig, held[2]),
        death(&rig, lost),
    ];
    let done = FinishResult::Done;
    assert_eq!(rig.finish_all(batch).await, [done, done, done, FinishResult::LeaseLost]);
    assert_eq!(keys(&rig, DeadFilter::default()).await, [held[2].key]);
    assert_eq!(rig.finish(death(&rig, held[2])).await, FinishResult::AlreadyDone);
    assert_eq!(keys(&rig, DeadFilter::default()).await.len(), 1);
}

pub async fn a_cancelled_run_leaves_no_dead_letter(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.store.cancel_run(&rig.scope, held.key, now(61)).await.unwrap();
    assert_eq!(rig.finish(death(&rig, held)).await, FinishResult::Done);
    assert_eq!(list(&rig, DeadFilter::default()).await, []);
    // `are_dead` finds no dead letter of the cancelled run.
    let other = rig.add(new_job("other").build()).await;
    let dead = rig.start(other, 60).await;
    rig.finish(death(&rig, dead)).await;
    let are_dead = rig.store.are_dead(&[held.key, dead.key, held.key, dead.key]).await;
    assert_eq!(are_dead.unwrap(), [false, true, false, true]);
    assert_eq!(rig.store.are_dead(&[]).await.unwrap(), [false; 0]);
    let mut returned = [death(&rig, held), death(&rig, dead), death(&rig, held)];
    // The store rejected the third result, so `discard_unwritten_dead_letters` does not change its
    // hook.
    let result = [FinishResult::Done, FinishResult::Done, FinishResult::LeaseLost];
    discard_unwritten_dead_letters(&*rig.store, &mut returned, &result).await;
    assert_eq!(returned.map(|end| end.hook), [Hook::None, DEAD, DEAD]);
}

pub async fn one_job_may_die_several_times_in_a_batch(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let (first, second) = (rig.start(job, 60).await, rig.start(job, 120).await);
    let stops = Then::EndRun { stop_job: true, next_at: None };
    let last = Finish { then: stops, ..death(&rig, second) };
    rig.finish_all(vec![death(&rig, first), last]).await;
    assert_eq!(keys(&rig, DeadFilter::default()).await, [second.key, first.key]);
}

pub async fn the_list_is_newest_first_page_by_page(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["a", "b", "c"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    for minute in 1..=3 {
        for job in &jobs {
            die(&rig, *job, minute * 60).await;
        }
    }
    let all = list(&rig, DeadFilter::default()).await;
    assert_eq!(all.len(), 9);
    assert!(all.is_sorted_by(|one, next| one.cursor() > next.cursor()));
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = PageRequest { after, ..PageRequest::first(2) };
        let page = rig.store.list_dead(&rig.scope, DeadFilter::default(), page).await.unwrap();
        assert_eq!((page.total, page.total_is_estimate), (9, false));
        seen.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, all);
    let page = PageRequest { offset: 7, ..PageRequest::first(5) };
    let last = rig.store.list_dead(&rig.scope, DeadFilter::default(), page).await.unwrap();
    assert_eq!((&last.items[..], last.next), (&all[7..], None));
}

pub async fn the_list_is_filtered_by_job_and_redrive(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all(["a", "b"].map(|name| new_job(name).build()).to_vec()).await;
    let first = die(&rig, jobs[0], 60).await;
    let second = die(&rig, jobs[1], 60).await;
    let third = die(&rig, jobs[1], 120).await;
    accepted(redrive(&rig, second, 130).await);
    let of = |job: Option<Known>, redriven| DeadFilter { job: job.map(|job| job.id), redriven };
    assert_eq!(keys(&rig, of(Some(jobs[1]), None)).await, [third, second]);
    assert_eq!(keys(&rig, of(Some(jobs[1]), Some(true))).await, [second]);
    assert_eq!(keys(&rig, of(None, Some(false))).await, [third, first]);
    let page = PageRequest::first(1);
    let page = rig.store.list_dead(&rig.scope, of(None, Some(false)), page).await.unwrap();
    assert_eq!((page.total, page.items.len()), (2, 1));
    let unknown = Known { id: crate::fixtures::fresh_id(), ..jobs[0] };
    assert_eq!(keys(&rig, of(Some(unknown), None)).await, []);
}

pub async fn a_redriven_dead_letter_is_a_new_run(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let dead = die(&rig, job, 60).await;
    let key = accepted(redrive(&rig, dead, 70).await);
    assert_eq!((key.job_no, key.scheduled_at, key.attempt), (job.no, at(70), AttemptNo::FIRST));
    assert_eq!(key.sequence.origin(), Origin::Redrive);
    let message = rig.store.get_dead(&rig.scope, dead).await.unwrap().unwrap();
    assert_eq!(message.redriven, Some((at(70), key)));
    assert_eq!((rig.job(job).await.live, rig.job(job).await.next_at), (1, Some(at(120))));
    let delayed = rig.delayed(70).await;
    assert_eq!((delayed[0].key, delayed[0].due), (key, at(70)));
    let fired = rig.fire_delayed(&delayed, Begin::Claimed, 70).await;
    let [FireResult::Fired(fence)] = fired[..] else { panic!("{fired:?}") };
    // If the run that redrives a dead letter also fails, it gets its own dead letter.
    rig.finish(death(&rig, Held { key, fence })).await;
    assert_eq!(keys(&rig, DeadFilter::default()).await, [key, dead]);
    assert_eq!(rig.run(key).await.status, AttemptStatus::Failed);
}

pub async fn a_dead_letter_is_redriven_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let dead = die(&rig, job, 60).await;
    let runs = [dead, dead];
    let answers = rig.store.redrive(&rig.scope, &runs, now(70)).await.unwrap();
    let key = accepted(answers[0].clone());
    assert_eq!(answers[1], Redriven::AlreadyRedriven(key));
    assert_eq!(redrive(&rig, dead, 80).await, Redriven::AlreadyRedriven(key));
    assert_eq!(rig.job(job).await.live, 1);
}

pub async fn dead_letters_of_one_job_are_redriven_as_its_overlap_policy_allows(opened: Opened) {
    let rig = Rig::new(opened).await;
    let lonely = rig.add(new_job("lonely").build()).await;
    let social = rig.add(new_job("social").overlap(OverlapPolicy::Allow).build()).await;
    let mut dead = Vec::new();
    for minute in [60, 120] {
        dead.push(die(&rig, lonely, minute).await);
        dead.push(die(&rig, social, minute).await);
    }
    let answers = rig.store.redrive(&rig.scope, &dead, now(130)).await.unwrap();
    assert!(matches!(answers[0], Redriven::Accepted(_)));
    assert_eq!(answers[2], Redriven::Busy);
    let (one, other) = (accepted(answers[1].clone()), accepted(answers[3].clone()));
    assert_ne!(one, other);
    let open = DeadFilter { redriven: Some(false), ..DeadFilter::default() };
    assert_eq!(keys(&rig, open).await, [dead[2]]);
    assert_eq!(rig.census().await.delayed, 3);
}

pub async fn a_dead_letter_of_an_ended_job_is_not_redriven(opened: Opened) {
    let rig = Rig::new(opened).await;
    let names = ["cancelled", "deleted", "paused"];
    let jobs = rig.add_all(names.map(|name| new_job(name).build()).to_vec()).await;
    let mut dead = Vec::new();
    for (job, action) in jobs.iter().zip([Action::Cancel, Action::Delete, Action::Pause]) {
        dead.push(die(&rig, *job, 60).await);
        done(rig.store.act(&rig.scope, job.id, action, now(70)).await.unwrap());
    }
    assert!(matches!(redrive(&rig, dead[0], 80).await, Redriven::NotAllowed(_)));
    assert_eq!(redrive(&rig, dead[1], 80).await, Redriven::JobGone);
    let key = accepted(redrive(&rig, dead[2], 70).await);
    assert!(key.scheduled_at > at(70), "a redriven run is scheduled after the pause");
    let never = AttemptKey::regular(jobs[0].no, at(9999));
    assert_eq!(redrive(&rig, never, 80).await, Redriven::NotFound);
    assert_eq!(rig.census().await.delayed, 1);
}

pub async fn dead_letters_are_deleted_separately(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let (first, second) = (die(&rig, job, 60).await, die(&rig, job, 120).await);
    let never = AttemptKey::regular(job.no, at(9999));
    let there = rig.store.delete_dead(&rig.scope, &[first, never]).await.unwrap();
    assert_eq!(there, [true, false]);
    assert_eq!(rig.store.delete_dead(&rig.scope, &[first]).await.unwrap(), [false]);
    assert_eq!(keys(&rig, DeadFilter::default()).await, [second]);
    assert_eq!(
        rig.run(first).await.status,
        AttemptStatus::Failed,
        "the run of a deleted dead letter is kept"
    );
    assert_eq!(rig.store.delete_dead(&rig.scope, &[]).await.unwrap(), [] as [bool; 0]);
    assert_eq!(rig.store.redrive(&rig.scope, &[], now(130)).await.unwrap(), []);
}

pub async fn dead_letters_of_other_tenants_are_not_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other: Scope = rig.tenant("other").await;
    let job = rig.add(new_job("crawl").build()).await;
    let dead = die(&rig, job, 60).await;
    let page = PageRequest::first(9);
    let seen = rig.store.list_dead(&other, DeadFilter::default(), page).await.unwrap();
    assert_eq!((seen.items.len(), seen.total), (0, 0));
    let of_job = DeadFilter { job: Some(job.id), redriven: None };
    let seen = rig.store.list_dead(&other, of_job, page).await.unwrap();
    assert_eq!((seen.items.len(), seen.total), (0, 0));
    assert_eq!(rig.store.get_dead(&other, dead).await.unwrap(), None);
    let answers = rig.store.redrive(&other, &[dead], now(70)).await.unwrap();
    assert_eq!(answers, [Redriven::NotFound]);
    assert_eq!(rig.store.delete_dead(&other, &[dead]).await.unwrap(), [false]);
    assert_eq!(keys(&rig, DeadFilter::default()).await, [dead]);
    assert_eq!(rig.job(job).await.live, 0);
}

pub async fn a_dead_letter_outlives_its_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let dead = die(&rig, job, 60).await;
    die(&rig, job, 120).await;
    let keep_since = Timestamp::from_micros(i64::MAX);
    let prune = Prune { after: None, limit: 100, keep_per_job: 1, keep_since };
    rig.store.prune(prune).await.unwrap();
    assert_eq!(rig.find_run(dead).await, None);
    let message = rig.store.get_dead(&rig.scope, dead).await.unwrap().unwrap();
    assert_eq!(message.error.as_deref(), Some("no answer"));
    accepted(redrive(&rig, dead, 130).await);
}

pub async fn a_purge_deletes_dead_letters(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = rig.add_all(["gone", "stays"].map(|name| new_job(name).build()).to_vec()).await;
    for minute in 1..=3 {
        die(&rig, jobs[0], minute * 60).await;
    }
    let kept = die(&rig, jobs[1], 60).await;
    rig.store.delete(&rig.scope, jobs[0].id, now(300)).await.unwrap();
    assert_eq!(keys(&rig, DeadFilter::default()).await.len(), 4);
    let mut steps = 0;
    while rig.store.purge(&rig.scope, jobs[0].id, 2).await.unwrap() >= 2 {
        steps += 1;
    }
    assert!(steps >= 3, "three dead letters and three runs, two per step: {steps}");
    assert_eq!(keys(&rig, DeadFilter::default()).await, [kept]);
    assert_eq!(rig.runs_of(jobs[0]).await.len(), 0);
}

pub async fn old_and_surplus_dead_letters_are_pruned_in_steps(opened: Opened) {
    let rig = Rig::new(opened).await;
    let other = rig.tenant("other").await;
    let job = rig.add(new_job("crawl").build()).await;
    let theirs = rig.add_for(&other, new_job("crawl").build()).await;
    let mut dead = Vec::new();
    for minute in 1..=8 {
        dead.push(die(&rig, job, minute * 60).await);
    }
    let held = rig.start(theirs, 60).await;
    rig.finish(Finish { tenant: other.tenant, ..death(&rig, held) }).await;
    let forget = |before, keep, limit| rig.store.prune_dead(at(before), keep, limit);
    assert_eq!(forget(65, 100, 10).await.unwrap(), 0, "dead letters have the time of the failure");
    assert_eq!(forget(150, 100, 1).await.unwrap(), 1);
    assert_eq!(
        forget(150, 100, 10).await.unwrap(),
        2,
        "one dead letter of the other tenant, and two of the first in total"
    );
    assert_eq!(keys(&rig, DeadFilter::default()).await.len(), 6);
    assert_eq!(forget(0, 3, 2).await.unwrap(), 2);
    assert_eq!(forget(0, 3, 2).await.unwrap(), 1);
    assert_eq!(forget(0, 3, 2).await.unwrap(), 0);
    assert_eq!(keys(&rig, DeadFilter::default()).await, [dead[7], dead[6], dead[5]]);
}

pub async fn concurrent_redrives_of_a_dead_letter_succeed_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").overlap(OverlapPolicy::Allow).build()).await;
    let (first, second) = (die(&rig, job, 60).await, die(&rig, job, 120).await);
    let mut tasks = Vec::new();
    for n in 0..8 {
        let (store, scope) = (rig.second().await, rig.scope);
        let runs = if n % 2 == 0 { [first, second] } else { [second, first] };
        tasks.push(tokio::spawn(
            async move { store.redrive(&scope, &runs, now(130)).await.unwrap() },
        ));
    }
    let mut begun = Vec::new();
    for task in tasks {
        begun.extend(task.await.unwrap().into_iter().filter_map(|answer| match answer {
            Redriven::Accepted(key) => Some(key),
            _ => None,
        }));
    }
    assert_eq!(begun.len(), 2, "{begun:?}");
    assert_eq!((rig.job(job).await.live, rig.census().await.delayed), (2, 2));
}

pub async fn dead_letters_survive_a_restart(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    die(&rig, job, 60).await;
    let before = list(&rig, DeadFilter::default()).await;
    let rig = rig.restart().await;
    assert_eq!(list(&rig, DeadFilter::default()).await, before);
}
