//! Tests the progress of running attempts, and which nodes run them.

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, NodeNo, Progress};
use evenkeel_store::{
    Attachments, Attempt, CheckpointDisposition, Finish, FinishResult, FireResult, PageRequest,
    ProgressNote, Prune,
};

use crate::Opened;
use crate::commands::Commands;
use crate::fixtures::{Begin, at, fire_of, new_job, now};
use crate::rig::{Held, Known, OVER, Rig};

/// Returns a progress note in which no field is set.
pub(super) fn silence(held: Held) -> ProgressNote {
    ProgressNote { key: held.key, fence: held.fence, progress: None, log: None, checkpoint: None }
}

pub(super) fn progress(done: u64) -> Progress {
    Progress { done: Some(done), message: Some(format!("page {done}")), ..Progress::default() }
}

fn says(held: Held, done: u64, log: &str) -> ProgressNote {
    ProgressNote { progress: Some(progress(done)), log: Some(log.into()), ..silence(held) }
}

/// Returns a result that also deletes the progress, log and checkpoint of the attempt.
pub(super) fn traceless(finish: Finish) -> Finish {
    Finish {
        attachments: Attachments { has_notes: true, checkpoint: CheckpointDisposition::Delete },
        ..finish
    }
}

pub(super) async fn note_for(rig: &Rig, node: NodeNo, batch: Vec<ProgressNote>) -> Vec<bool> {
    rig.store.save_progress(node, batch, now(62)).await.expect("notes can be saved")
}

pub(super) async fn note(rig: &Rig, note: ProgressNote) -> bool {
    note_for(rig, rig.node, vec![note]).await[0]
}

fn said(run: &Attempt) -> (Option<Progress>, Option<&str>) {
    (run.progress.clone(), run.log.as_deref())
}

const NOTHING: (Option<Progress>, Option<&str>) = (None, None);

async fn running(rig: &Rig, name: &str) -> (Known, Held) {
    let job = rig.add(new_job(name).build()).await;
    (job, rig.start(job, 60).await)
}

pub async fn a_note_is_shown_while_the_attempt_runs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, held) = running(&rig, "crawl").await;
    let before = rig.run(held.key).await;
    assert_eq!(said(&before), NOTHING);
    let whole = Progress {
        done: Some(7),
        total: Some(u64::MAX),
        items_processed: Some(7),
        items_saved: Some(-1),
        message: Some("it's \"half\" done — \0\n".into()),
    };
    let spoken =
        ProgressNote { progress: Some(whole.clone()), ..says(held, 0, "line one\nline two") };
    assert!(note(&rig, spoken).await);
    let run = rig.run(held.key).await;
    assert_eq!(said(&run), (Some(whole), Some("line one\nline two")));
    assert_eq!(Attempt { progress: None, log: None, ..run }, before, "nothing else has changed");
    assert_eq!(rig.finish(traceless(rig.success(held))).await, FinishResult::Done);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, said(&run)), (AttemptStatus::Completed, NOTHING));
}

pub async fn a_note_is_not_shown_after_an_end_without_attachments(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, held) = running(&rig, "crawl").await;
    assert!(note(&rig, says(held, 1, "line")).await);
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::Done);
    assert_eq!(said(&rig.run(held.key).await), NOTHING);
}

pub async fn lists_leave_notes_out(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, held) = running(&rig, "crawl").await;
    assert!(note(&rig, says(held, 1, "line")).await);
    for of in [Some(job), None] {
        let listed = rig.runs_page(of, PageRequest::first(9)).await.items;
        assert_eq!((listed[0].key, said(&listed[0])), (held.key, NOTHING));
    }
}

pub async fn fields_that_a_note_leaves_out_stay(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, held) = running(&rig, "crawl").await;
    let only_progress = |done| ProgressNote { progress: Some(progress(done)), ..silence(held) };
    let only_log = |log: &str| ProgressNote { log: Some(log.into()), ..silence(held) };
    let steps = [
        (silence(held), NOTHING),
        (only_log("a"), (None, Some("a"))),
        (only_progress(1), (Some(progress(1)), Some("a"))),
        (only_log("b"), (Some(progress(1)), Some("b"))),
        (silence(held), (Some(progress(1)), Some("b"))),
        (only_log(""), (Some(progress(1)), Some(""))),
        (only_progress(2), (Some(progress(2)), Some(""))),
    ];
    for (spoken, expected) in steps {
        assert!(note(&rig, spoken).await);
        assert_eq!(said(&rig.run(held.key).await), expected);
    }
}

pub async fn a_note_with_another_fence_or_node_is_refused(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, held) = running(&rig, "crawl").await;
    let other = rig.join("node-2", 1).await;
    assert!(note(&rig, says(held, 1, "mine")).await);
    for fence in [Fence::NONE, held.fence.next()] {
        assert!(!note(&rig, says(Held { fence, ..held }, 2, "stale")).await);
    }
    assert_eq!(note_for(&rig, other, vec![says(held, 3, "theirs")]).await, [false]);
    let never = Held { key: AttemptKey::regular(held.key.job_no, at(7)), ..held };
    assert!(!note(&rig, says(never, 4, "never")).await);
    assert_eq!(said(&rig.run(held.key).await), (Some(progress(1)), Some("mine")));
}

pub async fn a_note_of_a_waiting_or_ended_attempt_is_refused(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, ended) = running(&rig, "ended").await;
    rig.finish(rig.success(ended)).await;
    let job = rig.add(new_job("waits").build()).await;
    let waits = rig.queue(job, 60).await;
    for fence in [Fence::NONE, Fence(1)] {
        assert!(!note(&rig, says(Held { key: waits, fence }, 1, "early")).await);
    }
    assert!(!note(&rig, says(ended, 1, "late")).await);
    assert_eq!(said(&rig.run(ended.key).await), NOTHING);
    let held = rig.claim_one(61).await;
    assert_eq!(said(&rig.run(held.key).await), NOTHING);
}

pub async fn notes_of_a_batch_do_not_affect_each_other(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, a) = running(&rig, "a").await;
    let (_, b) = running(&rig, "b").await;
    let (_, c) = running(&rig, "c").await;
    rig.finish(rig.success(b)).await;
    let batch = vec![says(c, 3, "c"), says(b, 2, "b"), silence(a)];
    assert_eq!(note_for(&rig, rig.node, batch).await, [true, false, true]);
    assert_eq!(said(&rig.run(a.key).await), NOTHING);
    assert_eq!(said(&rig.run(c.key).await), (Some(progress(3)), Some("c")));
    assert_eq!(said(&rig.run(b.key).await), NOTHING);
}

pub async fn a_requeued_attempt_starts_without_notes(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, held) = running(&rig, "crawl").await;
    assert!(note(&rig, says(held, 9, "of its former number")).await);
    assert!(rig.requeue(rig.requeue_of(held, job, true).await, 70).await);
    assert_eq!(said(&rig.run(held.key).await), NOTHING);
    assert!(!note(&rig, says(held, 10, "attempts of its former number")).await);
    let again = rig.claim_one(71).await;
    assert_eq!((again.key, said(&rig.run(held.key).await)), (held.key, NOTHING));
    assert!(!note(&rig, says(held, 11, "attempts of its former number")).await);
    assert!(note(&rig, ProgressNote { progress: Some(progress(1)), ..silence(again) }).await);
    assert_eq!(said(&rig.run(held.key).await), (Some(progress(1)), None));
}

pub async fn attempt_0_shows_the_notes_of_the_latest_attempt(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, held) = running(&rig, "crawl").await;
    assert!(note(&rig, says(held, 5, "first")).await);
    rig.finish(rig.retry(held, at(90))).await;
    let fired = rig.fire_delayed(&rig.delayed(90).await, Begin::Claimed, 90).await;
    let FireResult::Fired(fence) = fired[0] else { panic!("not fired: {fired:?}") };
    let second = Held { key: crate::rig::next_attempt(held.key), fence };
    assert_eq!(said(&rig.run(held.key).await), NOTHING);
    assert!(note(&rig, says(second, 1, "second")).await);
    assert_eq!(said(&rig.run(held.key).await), (Some(progress(1)), Some("second")));
}

pub async fn a_note_with_a_nul_is_stored(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, held) = running(&rig, "crawl").await;
    let (_, beside) = running(&rig, "other").await;
    let batch = vec![says(held, 1, "before\0after"), says(beside, 2, "beside")];
    assert_eq!(note_for(&rig, rig.node, batch).await, [true, true]);
    let log = rig.run(held.key).await.log.unwrap();
    assert!(log.starts_with("before") && log.ends_with("after"), "{log:?}");
    assert_eq!(rig.run(beside.key).await.log.as_deref(), Some("beside"));
}

pub async fn a_thousand_notes_are_stored_at_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let new = |n| new_job(&format!("job {n}")).build();
    let jobs = rig.add_all((0..1_000).map(new).collect()).await;
    let numbers: Vec<_> = jobs.iter().map(|job| job.no).collect();
    let loaded = rig.store.load_jobs(&numbers).await.unwrap();
    let fires = loaded.iter().map(|job| fire_of(job, at(60), Begin::Claimed)).collect();
    assert_eq!(rig.fire(fires, 60).await, [FireResult::Fired(Fence(1)); 1_000]);
    let held = |job: &Known| Held { key: AttemptKey::regular(job.no, at(60)), fence: Fence(1) };
    for round in 1..=3 {
        let one = |job: &Known| ProgressNote {
            checkpoint: Some(vec![7; 100]),
            ..says(held(job), round, &"line\n".repeat(50))
        };
        let answers = note_for(&rig, rig.node, jobs.iter().map(one).collect()).await;
        assert_eq!(answers, [true; 1_000]);
    }
    let last = rig.run(held(&jobs[999]).key).await;
    assert_eq!(last.progress, Some(progress(3)));
    let ends = jobs.iter().map(|job| traceless(rig.success(held(job)))).collect();
    assert_eq!(rig.finish_all(ends).await, [FinishResult::Done; 1_000]);
    assert_eq!(rig.census().await.running, 0);
}

pub async fn an_empty_batch_is_accepted(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert!(note_for(&rig, rig.node, Vec::new()).await.is_empty());
}

pub async fn a_refused_end_leaves_the_notes(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (_, held) = running(&rig, "crawl").await;
    let other = rig.join("node-2", 1).await;
    assert!(note(&rig, says(held, 1, "line")).await);
    let stale = traceless(rig.success(Held { fence: held.fence.next(), ..held }));
    assert_eq!(rig.finish(stale).await, FinishResult::LeaseLost);
    let theirs = vec![traceless(rig.success(held))];
    let answer = rig.store.finish(other, theirs, crate::rig::ALPHA).await.unwrap();
    assert_eq!(answer, [FinishResult::LeaseLost]);
    assert_eq!(said(&rig.run(held.key).await), (Some(progress(1)), Some("line")));
}

/// A trigger at the same time gets the attempt key of the pruned run again, which shows whether
/// data of the old run is left.
pub async fn pruning_leaves_nothing_to_a_later_run_with_the_same_key(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").never().build()).await;
    let start = async || {
        let key = rig.trigger(job, 0, 60).await;
        let delayed = rig.delayed(60).await;
        let fired = rig.fire_delayed(&delayed, Begin::Claimed, 60).await;
        let FireResult::Fired(fence) = fired[0] else { panic!("not fired: {fired:?}") };
        (Held { key, fence }, delayed[0].has_checkpoint)
    };
    let (held, _) = start().await;
    let leaves = ProgressNote { checkpoint: Some(vec![1]), ..says(held, 1, "line") };
    assert!(note(&rig, leaves).await);
    let cancelled = rig.end(held, evenkeel_core::attempt::Outcome::Cancelled, OVER);
    assert_eq!(rig.finish(cancelled).await, FinishResult::Done);
    let step = Prune { after: None, limit: 100, keep_per_job: 0, keep_since: at(9_000) };
    assert_eq!(rig.store.prune(step).await.unwrap().deleted, 1);
    let (again, has_checkpoint) = start().await;
    assert_eq!((again, has_checkpoint), (held, false));
    assert_eq!(said(&rig.run(held.key).await), NOTHING);
}

pub async fn the_node_of_a_running_attempt_is_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["mine", "theirs", "waits", "ended"].map(|name| new_job(name).build()).to_vec();
    let jobs = rig.add_all(jobs).await;
    let other = rig.join("node-2", 1).await;
    let mine = rig.start(jobs[0], 60).await;
    let theirs = rig.start_on(other, jobs[1], 63).await;
    let waits = rig.queue(jobs[2], 60).await;
    let ended = rig.run_successfully(jobs[3], 60).await;
    let find = async |key| rig.store.find_running(key).await.unwrap();
    for (node, held) in [(rig.node, mine), (other, theirs)] {
        let found = find(held.key).await.unwrap();
        assert_eq!((found.node, found.attempt.fence), (node, held.fence));
        assert_eq!(vec![found.attempt], rig.owned(node).await);
    }
    for key in [waits, ended, AttemptKey::regular(jobs[0].no, at(7))] {
        assert_eq!(find(key).await, None);
    }
    assert!(rig.requeue(rig.requeue_of(mine, jobs[0], false).await, 70).await);
    assert_eq!(find(mine.key).await, None, "the attempt waits again");
    rig.store.delete(&rig.scope, jobs[1].id, now(71)).await.unwrap();
    assert_eq!(find(theirs.key).await.unwrap().node, other, "the other attempt is still running");
}
