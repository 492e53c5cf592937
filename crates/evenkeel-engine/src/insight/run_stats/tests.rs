use evenkeel_core::lease::Fence;
use evenkeel_core::{AttemptNo, JobNo};
use evenkeel_store::{Attachments, Results, Then};

use super::*;

fn end(secs: i64, attempt: u16, outcome: Outcome, error: Option<&str>) -> Finish {
    let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
    let key = AttemptKey::regular(JobNo(1), at(secs)).with_attempt(AttemptNo(attempt));
    Finish {
        key,
        fence: Fence(1),
        tenant: TenantNo(1),
        outcome,
        started_at: at(secs),
        finished_at: at(secs + 2),
        results: Results { error: error.map(Into::into), ..Results::default() },
        then: Then::EndRun { stop_job: false, next_at: None },
        priority: None,
        attachments: Attachments::default(),
        judge: false,
        unstored_since: None,
        hook: evenkeel_store::Hook::None,
    }
}

#[test]
fn only_stored_results_count() {
    let stats = PendingStats::default();
    let batch = [
        end(1, 0, Outcome::Completed, None),
        end(2, 1, Outcome::Completed, None),
        end(3, 0, Outcome::Completed, None),
        end(4, 0, Outcome::Superseded, None),
        end(5, 2, Outcome::TimedOut, None),
    ];
    use FinishResult::{AlreadyDone, Done, LeaseLost};
    stats.ended(&batch, &[Done, Done, AlreadyDone, Done, LeaseLost]);
    let sums = stats.take();
    let tally = sums.tenants[&TenantNo(1)];
    assert_eq!((tally.completed, tally.cancelled, tally.retries), (2, 1, 1));
    assert_eq!((tally.timed_out, tally.success_duration), (0, Span::from_secs(4)));
    assert!(stats.take().is_empty());
}

#[test]
fn similar_failures_form_one_group_with_the_newest_error() {
    let stats = PendingStats::default();
    let batch = [
        end(1, 0, Outcome::Failed, Some("no route to 10.0.0.1")),
        end(9, 0, Outcome::Failed, Some("no route to 10.0.0.2")),
        end(5, 0, Outcome::Failed, Some("no route to 10.0.0.3")),
        end(6, 0, Outcome::TimedOut, None),
    ];
    stats.ended(&batch, &[FinishResult::Done; 4]);
    let sums = stats.take();
    let groups: Vec<(u64, &str)> =
        sums.failures.values().map(|group| (group.count, group.error.as_str())).collect();
    assert_eq!(groups.len(), 2);
    assert!(groups.contains(&(3, "no route to 10.0.0.2")));
    assert!(groups.contains(&(1, "timed out")));
}

#[test]
fn totals_survive_a_failed_write() {
    let stats = PendingStats::default();
    let failed = end(1, 0, Outcome::Failed, Some("oh"));
    stats.ended(std::slice::from_ref(&failed), &[FinishResult::Done]);
    let unwritten = stats.take();
    stats.ended(&[end(2, 0, Outcome::Failed, Some("oh"))], &[FinishResult::Done]);
    stats.put_back(unwritten);
    let sums = stats.take();
    assert_eq!(sums.tenants[&TenantNo(1)].failed, 2);
    let group = sums.failures.values().next().unwrap();
    assert_eq!((group.count, group.at), (2, Timestamp::from_micros(4_000_000)));
    let activity = sums.activity.deltas();
    assert_eq!((activity.len(), activity[0].counts.failed), (1, 2));
}

#[test]
fn every_counted_result_is_activity() {
    let stats = PendingStats::default();
    let batch =
        [end(1, 0, Outcome::Completed, None), end(2, 0, Outcome::Failed, None)].map(|end| Finish {
            finished_at: end.started_at.saturating_add(Span::from_secs(900)),
            ..end
        });
    stats.ended(&batch, &[FinishResult::Done, FinishResult::LeaseLost]);
    let activity = stats.take().activity.deltas();
    assert_eq!((activity.len(), activity[0].slot), (1, evenkeel_core::Slot(1)));
    let counts = activity[0].counts;
    assert_eq!((counts.completed, counts.failed, counts.busy), (1, 0, Span::from_secs(900)));
}

#[test]
fn activity_alone_is_written() {
    let stats = PendingStats::default();
    let mut batch = BatchActivity::at(Timestamp::from_micros(1));
    batch.fired_delayed(TenantNo(1), AttemptNo::FIRST);
    stats.active(&batch);
    assert!(!stats.take().is_empty());
}

#[test]
fn failure_groups_are_bounded() {
    let stats = PendingStats::default();
    fill(&stats, GROUPS_MAX + 100, 'x');
    let sums = stats.take();
    assert_eq!(sums.failures.len(), GROUPS_MAX);
    assert_eq!(sums.tenants[&TenantNo(1)].failed, GROUPS_MAX as u64 + 100);
}

/// Adds `count` different errors.
fn fill(stats: &PendingStats, count: usize, prefix: char) {
    for n in 0..count {
        let message = |digit: u8| char::from(digit + b'a' - b'0');
        let error: String =
            std::iter::once(prefix).chain(n.to_string().bytes().map(message)).collect();
        let failed = end(1, 0, Outcome::Failed, Some(&error));
        stats.ended(&[failed], &[FinishResult::Done]);
    }
}

#[test]
fn totals_put_back_stay_within_the_bounds() {
    let stats = PendingStats::default();
    let key = AttemptKey::regular(JobNo(1), Timestamp::from_micros(1));
    fill(&stats, GROUPS_MAX, 'x');
    for _ in 0..ENDED_ELSEWHERE_MAX + 5 {
        stats.ended_elsewhere(TenantNo(1), key);
    }
    let unwritten = stats.take();
    assert_eq!(unwritten.ended_elsewhere.len(), ENDED_ELSEWHERE_MAX);
    fill(&stats, 100, 'y');
    for _ in 0..5 {
        stats.ended_elsewhere(TenantNo(1), key);
    }
    stats.put_back(unwritten);
    let sums = stats.take();
    assert_eq!(
        (sums.failures.len(), sums.ended_elsewhere.len()),
        (GROUPS_MAX, ENDED_ELSEWHERE_MAX)
    );
    assert_eq!(sums.tenants[&TenantNo(1)].failed, GROUPS_MAX as u64 + 100);
}

#[test]
fn long_error_is_truncated() {
    let stats = PendingStats::default();
    let error = "é".repeat(ERROR_CHARS_MAX + 1);
    stats.ended(&[end(1, 0, Outcome::Failed, Some(&error))], &[FinishResult::Done]);
    let sums = stats.take();
    let kept = &sums.failures.values().next().unwrap().error;
    assert_eq!(kept.chars().count(), ERROR_CHARS_MAX);
}

#[test]
fn thousands_of_results_stored_by_other_nodes_are_kept() {
    let stats = PendingStats::default();
    for n in 0..5_000 {
        stats
            .ended_elsewhere(TenantNo(1), AttemptKey::regular(JobNo(n), Timestamp::from_micros(1)));
    }
    assert_eq!(stats.take().ended_elsewhere.len(), 5_000);
}
