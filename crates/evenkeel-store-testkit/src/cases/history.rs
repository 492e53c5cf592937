//! Tests that the stored history of a job equals the history that `evenkeel-core` computes.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::{History, Span};
use evenkeel_store::{Finish, FinishResult};

use crate::Opened;
use crate::fixtures::new_job;
use crate::rig::{ALPHA, OVER, Rig};

/// Asserts that the stored and the expected history of a job are equal, except that a database may
/// round the average by one microsecond, which also changes the variance.
pub(super) fn assert_same(stored: History, expected: History) {
    let micros = |history: History| history.average_good_duration.map(Span::as_micros);
    match (micros(stored), micros(expected)) {
        (Some(stored), Some(expected)) => assert!(stored.abs_diff(expected) <= 1),
        (stored, expected) => assert_eq!(stored, expected),
    }
    let off = (stored.duration_variance - expected.duration_variance).abs();
    assert!(off <= 1.0 + expected.duration_variance * 1e-4, "{stored:?} is not {expected:?}");
    let exact = History {
        average_good_duration: expected.average_good_duration,
        duration_variance: expected.duration_variance,
        ..stored
    };
    assert_eq!(exact, expected);
}

pub async fn a_new_job_has_no_history(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let found = rig.job(job).await;
    assert_eq!((found.history, found.last_outcome), (History::default(), None));
    assert_eq!(rig.due(job).await.history.average_good_duration, None);
}

pub async fn a_cancelled_attempt_leaves_only_its_times(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let failed = rig.start(job, 60).await;
    rig.finish(rig.end(failed, Outcome::Failed, OVER)).await;
    let before = rig.job(job).await.history;
    let held = rig.start(job, 120).await;
    let end = rig.end(held, Outcome::Cancelled, OVER);
    let times = (Some(end.started_at), Some(end.finished_at));
    rig.finish(end).await;
    let after = rig.job(job).await.history;
    assert_eq!((after.last_start_at, after.last_end_at), times);
    assert_eq!((after.consecutive_failures, after.last_good_end_at), (1, None));
    assert_eq!(after.average_good_duration, before.average_good_duration);
}

pub async fn a_retried_attempt_counts_as_well(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let held = rig.start(job, 60).await;
    rig.finish(rig.retry(held, crate::fixtures::at(70))).await;
    let after = rig.job(job).await;
    assert_eq!(after.history.consecutive_failures, 1);
    assert_eq!(after.last_outcome, Some(Outcome::Failed));
}

pub async fn the_scheduler_gets_the_average(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    rig.run_successfully(job, 60).await;
    assert_eq!(rig.due(job).await.history.average_good_duration, Some(Span::from_secs(5)));
}

pub async fn any_sequence_of_ends_gives_the_history_of_core(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let mut expected = History::default();
    // A fixed sequence of pseudo-random numbers, so that a failure can be reproduced.
    let mut dice = 0x2545_f491_4f6c_dd1d_u64;
    for n in 1..=60 {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let outcome = match dice % 8 {
            0 => Outcome::Failed,
            1 => Outcome::TimedOut,
            2 => Outcome::Cancelled,
            3 => Outcome::PartlyFailed,
            _ => Outcome::Completed,
        };
        let held = rig.start(job, n * 60).await;
        let end = rig.end(held, outcome, OVER);
        let took = Span::from_micros(dice.rotate_left(20) % 50_000_000);
        let end = Finish { finished_at: end.started_at.saturating_add(took), ..end };
        expected = expected.after(outcome, end.started_at, end.finished_at, ALPHA);
        assert_eq!(rig.finish(end).await, FinishResult::Done);
        let stored = rig.job(job).await;
        assert_same(stored.history, expected);
        assert_eq!(stored.last_outcome, Some(outcome));
        // The next expected history is computed from the stored history, so that rounding errors do
        // not accumulate.
        expected = stored.history;
    }
}

pub async fn alpha_is_set_by_the_caller(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let mut expected = History::default();
    for (n, secs, alpha) in [(1, 10, 0.5), (2, 20, 0.5), (3, 40, 0.25)] {
        let held = rig.start(job, n * 60).await;
        let end = rig.success(held);
        let end =
            Finish { finished_at: end.started_at.saturating_add(Span::from_secs(secs)), ..end };
        expected = expected.after(end.outcome, end.started_at, end.finished_at, alpha);
        rig.store.finish(rig.node, vec![end], alpha).await.unwrap();
    }
    assert_same(rig.job(job).await.history, expected);
}
