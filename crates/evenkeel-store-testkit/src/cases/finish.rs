//! Tests that the store checks the fence of each result of an attempt, counts the result once, and
//! then retries or ends the run.

use evenkeel_core::advance::{SkipReason, SkippedTimes};
use evenkeel_core::attempt::{AttemptStatus, Outcome};
use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptKey, History, JobNo, LogChunk, LogStream, NodeNo, RunLog, Span};
use evenkeel_store::{
    AttemptFilter, Finish, FinishResult, Fire, FireResult, LISTED_OUTPUT_CHARS, PageRequest,
    Results, Then,
};

use crate::Opened;
use crate::fixtures::{Begin, at, fire_of, new_job, now};
use crate::rig::{ALPHA, Held, Known, OVER, Rig};

/// Sends a result that the store must reject without changing the run or the job.
async fn refused(rig: &Rig, job: Known, node: NodeNo, finish: Finish) {
    let (run, before) = (rig.run(finish.key).await, rig.job(job).await);
    let census = rig.census().await;
    let key = finish.key;
    let answer = rig.store.finish(node, vec![finish], ALPHA).await.unwrap();
    assert_eq!(answer, [FinishResult::LeaseLost]);
    assert_eq!(rig.run(key).await, run);
    assert_eq!(rig.job(job).await, before);
    assert_eq!(rig.census().await, census);
}

pub async fn an_end_is_recorded_with_its_results(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let results = Results {
        error: Some("it's \"broken\" — twice".into()),
        output: Some("line one\nline two".into()),
        items_crawled: Some(120),
        items_indexed: Some(7),
        cpu_time: Some(Span::from_millis(1_250)),
        memory_peak_kb: Some(4_096),
    };
    let finish = Finish { results: results.clone(), ..rig.end(held, Outcome::TimedOut, OVER) };
    assert_eq!(rig.finish(finish).await, FinishResult::Done);
    let run = rig.run(held.key).await;
    assert_eq!((run.status, run.fence), (AttemptStatus::TimedOut, held.fence));
    assert_eq!((run.started_at, run.finished_at), (Some(at(60)), Some(at(65))));
    assert_eq!(run.results, results);
    assert_eq!(run.node, Some((rig.node, "node-1".into())));
}

pub async fn a_long_log_is_whole_in_a_read_and_cut_in_lists(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("prints").build()).await;
    let held = rig.start(job, 60).await;
    let line = LogChunk {
        stream: LogStream::Stderr,
        at: Some(at(60)),
        offset: 0,
        text: format!("\u{1e}{}\n", "é".repeat(2 * LISTED_OUTPUT_CHARS)),
    };
    let log = RunLog { total: line.end(), chunks: vec![line] };
    let results = Results { output: Some(log.encode()), ..Results::default() };
    rig.finish(Finish { results, ..rig.end(held, Outcome::Completed, OVER) }).await;
    let whole = rig.run(held.key).await;
    assert_eq!(whole.printed(), Some(log));
    for job in [None, Some(job.id)] {
        let filter = AttemptFilter { job };
        let page =
            rig.store.list_attempts(&rig.scope, filter, PageRequest::first(10)).await.unwrap();
        assert_eq!(page.items, [whole.clone().for_list()]);
        let shown = page.items[0].results.output.as_ref().unwrap();
        assert_eq!(shown.chars().count(), LISTED_OUTPUT_CHARS);
        assert!(page.items[0].printed().unwrap().lines(0, None).has_gap());
    }
}

pub async fn every_outcome_is_recorded_as_its_status(opened: Opened) {
    let rig = Rig::new(opened).await;
    for outcome in Outcome::ALL {
        let job = rig.add(new_job(&format!("{outcome:?}")).build()).await;
        let held = rig.start(job, 60).await;
        rig.finish(rig.end(held, outcome, OVER)).await;
        assert_eq!(rig.run(held.key).await.status, AttemptStatus::from(outcome));
        assert_eq!(rig.job(job).await.last_outcome, Some(outcome));
    }
}

pub async fn an_ended_run_is_no_longer_active(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    assert_eq!(rig.job(job).await.live, 1);
    rig.finish(rig.success(held)).await;
    let after = rig.job(job).await;
    assert_eq!((after.live, after.waiting, after.executions), (0, 0, 1));
    assert_eq!(after.next_at, Some(at(120)), "the schedule continues");
    assert_eq!(rig.owned(rig.node).await, []);
}

pub async fn another_fence_is_lease_lost_and_changes_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    for fence in [Fence::NONE, held.fence.next()] {
        refused(&rig, job, rig.node, rig.success(Held { fence, ..held })).await;
        refused(&rig, job, rig.node, rig.retry(Held { fence, ..held }, at(70))).await;
    }
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::Done);
}

pub async fn another_node_is_lease_lost_and_changes_nothing(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.join("node-2", 1).await;
    let held = rig.start(job, 60).await;
    refused(&rig, job, other, rig.success(held)).await;
}

pub async fn a_waiting_attempt_cannot_be_ended(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.queue(job, 60).await;
    for fence in [Fence::NONE, Fence(1)] {
        refused(&rig, job, rig.node, rig.success(Held { key, fence })).await;
    }
}

pub async fn an_unknown_attempt_is_lease_lost(opened: Opened) {
    let rig = Rig::new(opened).await;
    let key = AttemptKey::regular(JobNo(12_345), at(60));
    let finish = rig.success(Held { key, fence: Fence(1) });
    assert_eq!(rig.finish(finish).await, FinishResult::LeaseLost);
}

pub async fn a_second_finish_is_already_done_and_counts_once(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let finish = rig.end(held, Outcome::Failed, OVER);
    assert_eq!(rig.finish(finish.clone()).await, FinishResult::Done);
    let (run, before) = (rig.run(held.key).await, rig.job(job).await);
    assert_eq!(rig.finish(finish).await, FinishResult::AlreadyDone);
    let otherwise = rig.success(held);
    assert_eq!(rig.finish(otherwise).await, FinishResult::AlreadyDone);
    assert_eq!((rig.run(held.key).await, rig.job(job).await), (run, before));
}

pub async fn a_second_finish_adds_no_second_retry(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    let finish = rig.retry(held, at(90));
    assert_eq!(rig.finish(finish.clone()).await, FinishResult::Done);
    assert_eq!(rig.finish(finish.clone()).await, FinishResult::AlreadyDone);
    let delayed = rig.delayed(100).await;
    assert_eq!(delayed.len(), 1);
    rig.fire_delayed(&delayed, Begin::Claimed, 100).await;
    assert_eq!(rig.finish(finish).await, FinishResult::AlreadyDone);
    assert_eq!(rig.delayed(200).await, []);
}

pub async fn ends_of_a_batch_do_not_affect_each_other(opened: Opened) {
    let rig = Rig::new(opened).await;
    let jobs = ["a", "b", "c", "d"].map(|name| new_job(name).build()).to_vec();
    let mut batch = Vec::new();
    for job in rig.add_all(jobs).await {
        batch.push(rig.success(rig.start(job, 60).await));
    }
    assert_eq!(rig.finish(batch[2].clone()).await, FinishResult::Done);
    batch[1].fence = Fence(7);
    batch.reverse();
    let expected = [
        FinishResult::Done,
        FinishResult::AlreadyDone,
        FinishResult::LeaseLost,
        FinishResult::Done,
    ];
    assert_eq!(rig.finish_all(batch).await, expected);
    let census = rig.census().await;
    assert_eq!((census.running, census.live), (1, 1));
}

pub async fn one_job_may_end_several_times_in_a_batch(opened: Opened) {
    let rig = Rig::new(opened).await;
    let allow = evenkeel_core::overlap::OverlapPolicy::Allow;
    let job = rig.add(new_job("crawl").overlap(allow).build()).await;
    let other = rig.add(new_job("other").build()).await;
    let mut batch = Vec::new();
    let mut expected = History::default();
    for n in 1..=4_u8 {
        let held = rig.start(job, i64::from(n) * 60).await;
        let outcome = if n == 2 { Outcome::Failed } else { Outcome::Completed };
        let end = rig.end(held, outcome, OVER);
        let end = Finish {
            finished_at: end.started_at.saturating_add(Span::from_millis(1_500 * u64::from(n))),
            ..end
        };
        expected = expected.after(outcome, end.started_at, end.finished_at, ALPHA);
        batch.push(end);
    }
    batch.insert(2, rig.success(rig.start(other, 60).await));
    assert_eq!(rig.finish_all(batch).await, [FinishResult::Done; 5]);
    let after = rig.job(job).await;
    assert_eq!((after.live, after.executions), (0, 4));
    super::history::assert_same(after.history, expected);
    assert_eq!(rig.job(other).await.live, 0);
}

pub async fn stopping_the_job_removes_its_next_time(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.end(held, Outcome::Failed, Then::EndRun { stop_job: true, next_at: None }))
        .await;
    let after = rig.job(job).await;
    assert_eq!((after.next_at, after.live), (None, 0));
    assert_eq!(after.last_fired_at, Some(at(60)));
    assert_eq!(rig.due(job).await.next_at, None);
    let shard = evenkeel_core::Shard::of(job.no);
    let until = evenkeel_core::Slot::of(at(900_000));
    assert_eq!(rig.store.load_due(shard, until, None, 10).await.unwrap(), []);
}

pub async fn a_draining_node_may_finish_its_attempts(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.store.drain(rig.node).await.unwrap();
    assert_eq!(rig.finish(rig.success(held)).await, FinishResult::Done);
}

pub async fn other_nodes_finish_for_a_dead_node(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.join("node-1", 61).await;
    let lost = rig.end(held, Outcome::Failed, OVER);
    assert_eq!(rig.finish(lost).await, FinishResult::Done);
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Failed);
}

pub async fn a_text_with_a_nul_is_stored(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let other = rig.add(new_job("other").build()).await;
    let held = rig.start(job, 60).await;
    let beside = rig.start(other, 60).await;
    let text = Some("before\0after".to_owned());
    let results = Results { error: text.clone(), output: text, ..Results::default() };
    let finish = Finish { results, ..rig.end(held, Outcome::Failed, OVER) };
    let answer = rig.finish_all(vec![finish, rig.success(beside)]).await;
    assert_eq!(answer, [FinishResult::Done; 2]);
    assert_eq!(rig.run(held.key).await.status, AttemptStatus::Failed);
    assert_eq!(rig.job(job).await.live, 0);
}

pub async fn an_attempt_without_results_has_none(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let key = rig.run_successfully(job, 60).await;
    assert_eq!(rig.run(key).await.results, Results::default());
}

pub async fn an_empty_batch_is_accepted(opened: Opened) {
    let rig = Rig::new(opened).await;
    assert_eq!(rig.finish_all(Vec::new()).await, []);
    assert!(rig.store.requeue(rig.node, Vec::new(), now(1)).await.unwrap().is_empty());
}

pub async fn a_late_end_corrects_the_skip_records_since_then(opened: Opened) {
    let rig = Rig::new(opened).await;
    let (job, other) = (rig.add(new_job("a").build()).await, rig.add(new_job("b").build()).await);
    let (held, unrelated) = (rig.start(job, 60).await, rig.start(other, 60).await);
    let skip = async |job, secs, reason| {
        let fire = fire_of(&rig.due(job).await, at(secs), Begin::Claimed);
        let skip = Some(SkippedTimes { from: at(secs), to: at(secs), count: 1, reason });
        let fire = Fire { skip, start: None, idle_only: false, ..fire };
        assert!(matches!(rig.fire(vec![fire], secs).await[..], [FireResult::Fired(_)]));
    };
    skip(job, 120, SkipReason::Overlap).await;
    skip(job, 180, SkipReason::Overlap).await;
    skip(job, 240, SkipReason::RetryPending).await;
    skip(job, 300, SkipReason::Overlap).await;
    skip(other, 180, SkipReason::Overlap).await;
    // Queues another run, which becomes the newest run of the job.
    let fire = fire_of(&rig.due(job).await, at(360), Begin::Queued);
    rig.fire(vec![Fire { idle_only: false, ..fire }], 360).await;
    let late = Finish { unstored_since: Some(at(150)), ..rig.success(held) };
    let ends = vec![late, rig.success(unrelated)];
    assert_eq!(rig.finish_all(ends).await, [FinishResult::Done; 2]);
    let reason = async |job: Known, secs| {
        let run = rig.run(AttemptKey::regular(job.no, at(secs))).await;
        run.skipped.map(|skip| skip.reason)
    };
    for (secs, expected) in [
        (120, SkipReason::Overlap),
        (180, SkipReason::EndNotStored),
        (240, SkipReason::RetryPending),
        (300, SkipReason::EndNotStored),
    ] {
        assert_eq!(reason(job, secs).await, Some(expected), "{secs}");
    }
    assert_eq!(reason(other, 180).await, Some(SkipReason::Overlap));
}
