//! Tests that `explain` returns the right reasons why a job does not run.

use super::*;
use crate::blackout::Blackout;
use crate::schedule::{Interval, Periodic};

const NOW: Timestamp = Timestamp::from_micros(43_200_000_000);

fn later(secs: u64) -> Timestamp {
    NOW.saturating_add(Span::from_secs(secs))
}

fn earlier(secs: u64) -> Timestamp {
    NOW.saturating_sub(Span::from_secs(secs))
}

fn job() -> Definition {
    let every = Interval::new(Span::from_secs(3600), None).unwrap();
    Definition::noop(Schedule::Interval(every))
}

/// Returns a job with a blackout from `from` to `to` o'clock; the simulated time is noon.
fn in_blackout(from: i8, to: i8) -> Definition {
    let hour = |hour| jiff::civil::time(hour, 0, 0, 0);
    Definition { blackout_periods: vec![Blackout { start: hour(from), end: hour(to) }], ..job() }
}

fn worker(name: &str, pools: &[&str]) -> WorkerFacts {
    let pools = pools.iter().map(|pool| (*pool).to_owned()).collect();
    WorkerFacts { name: name.into(), pools }
}

fn workers() -> Vec<WorkerFacts> {
    vec![worker("a", &["default"]), worker("b", &["default", "chrome"])]
}

fn facts<'a>(definition: &'a Definition, workers: &'a [WorkerFacts]) -> Facts<'a> {
    Facts {
        definition,
        average: Span::ZERO,
        cancelled: false,
        paused: false,
        next_at: Some(later(600)),
        failed: false,
        last_end_at: None,
        live: 0,
        running_since: None,
        waiting: &[],
        workers,
        aging: Aging::default(),
    }
}

fn in_queue(open_from: Option<Timestamp>, open_until: Option<Timestamp>) -> Waiting {
    Waiting {
        scheduled_at: earlier(60),
        origin: Origin::Schedule,
        attempt: AttemptNo(0),
        priority: None,
        waits_for: WaitsFor::Worker { since: earlier(50), ahead: 7, open_from, open_until },
    }
}

fn codes(explanation: &Explanation) -> Vec<String> {
    let code = |why: &Why| serde_json::to_value(why).unwrap()["code"].as_str().unwrap().to_owned();
    explanation.reasons.iter().map(code).collect()
}

#[test]
fn job_before_its_time_is_not_due() {
    let (job, workers) = (job(), workers());
    let why = explain(&facts(&job, &workers), NOW);
    assert_eq!(why.reasons, [Why::NotDue { until: later(600), busy: None }]);
    assert_eq!(why.next_possible_start, Some(later(600)));
}

#[test]
fn paused_cancelled_and_finished_jobs_have_their_reasons() {
    let (job, workers) = (job(), workers());
    let cancelled = explain(&Facts { cancelled: true, ..facts(&job, &workers) }, NOW);
    assert_eq!((cancelled.reasons, cancelled.next_possible_start), (vec![Why::Cancelled], None));
    let paused = explain(&Facts { paused: true, ..facts(&job, &workers) }, NOW);
    assert_eq!((paused.reasons, paused.next_possible_start), (vec![Why::Paused], None));
    let over = explain(&Facts { next_at: None, ..facts(&job, &workers) }, NOW);
    assert_eq!((over.reasons, over.next_possible_start), (vec![Why::Over], None));
    let failed = explain(&Facts { next_at: None, failed: true, ..facts(&job, &workers) }, NOW);
    assert_eq!((failed.reasons, failed.next_possible_start), (vec![Why::GivenUp], None));
}

#[test]
fn blackout_reason_names_its_end() {
    let (job, workers) = (in_blackout(11, 14), workers());
    let due = explain(&Facts { next_at: Some(earlier(1800)), ..facts(&job, &workers) }, NOW);
    assert_eq!(due.reasons, [Why::Blackout { until: later(7200) }]);
    assert_eq!(due.next_possible_start, Some(later(7200)));
    let soon = explain(&facts(&job, &workers), NOW);
    assert_eq!(codes(&soon), ["not_due", "blackout"]);
    let names_the_end = |why: &Why| why.until() == Some(later(7200));
    assert!(soon.reasons.iter().all(names_the_end), "{:?}", soon.reasons);
    assert_eq!(soon.next_possible_start, Some(later(7200)));
}

#[test]
fn every_reason_that_waits_for_a_blackout_names_its_end() {
    let workers = workers();
    let periodic = Periodic::new(Span::from_secs(7200), Some(Span::from_secs(600))).unwrap();
    let cooling = Definition { schedule: Schedule::Periodic(periodic), ..in_blackout(11, 14) };
    let rested = Facts { last_end_at: Some(earlier(1)), ..facts(&cooling, &workers) };
    assert_eq!(explain(&rested, NOW).reasons, [Why::Blackout { until: later(7200) }]);
    let job = in_blackout(11, 14);
    for (attempt, code) in [(0, "trigger_pending"), (1, "retry_pending")] {
        let waits_for = WaitsFor::Time(later(60));
        let waiting = [Waiting { attempt: AttemptNo(attempt), waits_for, ..in_queue(None, None) }];
        let asked = Facts { live: 1, waiting: &waiting, next_at: None, ..facts(&job, &workers) };
        let why = explain(&asked, NOW);
        assert_eq!(codes(&why), [code, "blackout"]);
        assert!(why.reasons.iter().all(|why| why.until() == Some(later(7200))));
        assert_eq!(why.next_possible_start, Some(later(7200)));
    }
}

#[test]
fn job_that_avoids_a_blackout_waits_for_its_end() {
    let (job, workers) = (Definition { avoid_blackout: true, ..in_blackout(13, 14) }, workers());
    let long = Facts {
        average: Span::from_secs(5400),
        next_at: Some(earlier(1)),
        ..facts(&job, &workers)
    };
    assert_eq!(explain(&long, NOW).reasons, [Why::Blackout { until: later(7200) }]);
}

#[test]
fn queued_run_names_its_position() {
    let (job, workers) = (job(), workers());
    let waiting = [in_queue(None, None)];
    let queued = Facts { live: 1, waiting: &waiting, ..facts(&job, &workers) };
    let why = explain(&queued, NOW);
    assert_eq!(codes(&why), ["waiting_in_queue", "not_due"]);
    // The run's start time is unknown, because it starts when the next worker is free.
    assert_eq!(why.next_possible_start, None);
    let closed = [in_queue(None, Some(earlier(1)))];
    let in_blackout = in_blackout(11, 13);
    let why = explain(&Facts { live: 1, waiting: &closed, ..facts(&in_blackout, &workers) }, NOW);
    assert_eq!(why.reasons[0], Why::Blackout { until: later(3600) });
    let later_open = [in_queue(Some(later(60)), None)];
    let why = explain(&Facts { live: 1, waiting: &later_open, ..facts(&job, &workers) }, NOW);
    assert_eq!(why.next_possible_start, Some(later(60)));
}

#[test]
fn forbidden_workers_are_the_first_reason() {
    let (workers, names) = (workers(), vec!["a".to_owned(), "b".to_owned()]);
    let shy = Definition { dont_run_on_nodes: names.clone(), ..job() };
    let waiting = [in_queue(None, None)];
    let queued = Facts { live: 1, waiting: &waiting, ..facts(&shy, &workers) };
    let why = explain(&queued, NOW);
    assert_eq!(why.reasons[0], Why::NoNodeAllowed { forbidden: names });
    assert_eq!(why.next_possible_start, None);
    let alone = Facts { workers: &[], ..queued };
    assert_eq!(explain(&alone, NOW).reasons[0], Why::NoWorker);
    let half = Definition { dont_run_on_nodes: vec!["a".into()], ..job() };
    let queued = Facts { live: 1, waiting: &waiting, ..facts(&half, &workers) };
    assert_eq!(codes(&explain(&queued, NOW)), ["waiting_in_queue", "not_due"]);
}

#[test]
fn pool_without_workers_is_the_first_reason() {
    let (workers, waiting) = (workers(), [in_queue(None, None)]);
    let elsewhere = Definition { pool: "gpu".into(), ..job() };
    let queued = Facts { live: 1, waiting: &waiting, ..facts(&elsewhere, &workers) };
    let why = explain(&queued, NOW);
    assert_eq!(codes(&why), ["no_worker_for_pool", "waiting_in_queue", "not_due"]);
    assert_eq!(why.reasons[0], Why::NoWorkerForPool { pool: "gpu".into() });
    assert_eq!(why.next_possible_start, None);
    // A job without workers for its pool gets the reason `no_worker_for_pool` only when a run is
    // due or queued.
    let due = Facts { next_at: Some(earlier(60)), ..facts(&elsewhere, &workers) };
    assert_eq!(codes(&explain(&due, NOW)), ["no_worker_for_pool"]);
    assert_eq!(codes(&explain(&facts(&elsewhere, &workers), NOW)), ["not_due"]);
    let no_workers = Facts { workers: &[], ..queued };
    assert_eq!(explain(&no_workers, NOW).reasons[0], Why::NoWorker);
    let chrome = Definition { pool: "chrome".into(), ..job() };
    let served = Facts { live: 1, waiting: &waiting, ..facts(&chrome, &workers) };
    assert_eq!(codes(&explain(&served, NOW)), ["waiting_in_queue", "not_due"]);
    // The job forbids the only worker that serves its pool; workers of other pools do not count.
    let shy = Definition { dont_run_on_nodes: vec!["b".into()], ..chrome };
    let forbidden = Facts { live: 1, waiting: &waiting, ..facts(&shy, &workers) };
    assert_eq!(codes(&explain(&forbidden, NOW))[0], "no_node_allowed");
}

#[test]
fn retry_and_cooldown_name_their_end() {
    let (job, workers) = (job(), workers());
    let retry = |due| Waiting {
        scheduled_at: earlier(60),
        origin: Origin::Schedule,
        attempt: AttemptNo(2),
        priority: None,
        waits_for: WaitsFor::Time(due),
    };
    let waiting = [retry(later(30))];
    let retried = Busy { earlier: EarlierRun::RetryPending, overlap: OverlapPolicy::Skip };
    let why = explain(&Facts { live: 1, waiting: &waiting, ..facts(&job, &workers) }, NOW);
    assert_eq!(why.reasons[0], Why::RetryPending { until: later(30), retry: 2 });
    assert_eq!(why.reasons[1], Why::NotDue { until: later(600), busy: Some(retried) });
    assert_eq!(why.next_possible_start, Some(later(30)));
    let late = [retry(later(900))];
    let before = Facts { live: 1, waiting: &late, ..facts(&job, &workers) };
    // The job skips the scheduled time before the retry, because its overlap policy is `skip`.
    assert_eq!(explain(&before, NOW).next_possible_start, Some(later(900)));
    let came = explain(&Facts { next_at: Some(earlier(1)), ..before }, NOW);
    assert_eq!(came.reasons[1], Why::PreviousRunActive { since: earlier(1), busy: retried },);
    let due = |secs| [retry(earlier(secs))];
    let why = explain(&Facts { live: 1, waiting: &due(1), ..facts(&job, &workers) }, NOW);
    assert_eq!((&why.reasons[0], why.next_possible_start), (&Why::Starting, Some(NOW)));
    let why = explain(&Facts { live: 1, waiting: &due(60), ..facts(&job, &workers) }, NOW);
    let full = Why::NoCapacity { since: earlier(60) };
    assert_eq!((&why.reasons[0], why.next_possible_start), (&full, None));
    let periodic = Periodic::new(Span::from_secs(86_400), None).unwrap();
    let job = Definition::noop(Schedule::Periodic(periodic));
    let rests = Facts { last_end_at: Some(earlier(60)), ..facts(&job, &workers) };
    assert_eq!(explain(&rests, NOW).reasons, [Why::CoolingDown { until: later(600) }]);
}

#[test]
fn due_time_during_an_active_run_is_a_reason() {
    let (job, workers) = (job(), workers());
    let runs = Facts {
        next_at: Some(earlier(5)),
        live: 1,
        running_since: Some(earlier(3600)),
        ..facts(&job, &workers)
    };
    let why = explain(&runs, NOW);
    assert_eq!(codes(&why), ["running", "previous_run_going_on"]);
    assert_eq!(why.next_possible_start, None);
    let periodic = Periodic::new(Span::from_secs(60), None).unwrap();
    let fresh = Definition::noop(Schedule::Periodic(periodic));
    let why = explain(&Facts { definition: &fresh, ..runs }, NOW);
    let busy = Busy { earlier: EarlierRun::Running, overlap: OverlapPolicy::Queue };
    let waits = Why::PreviousRunActive { since: earlier(5), busy };
    assert_eq!(why.reasons[1], waits);
    let allows = Definition { overlap: OverlapPolicy::Allow, ..job.clone() };
    let why = explain(&Facts { definition: &allows, ..runs }, NOW);
    assert_eq!(codes(&why), ["running", "starting"]);
}

#[test]
fn due_run_starts_soon_or_lacks_capacity() {
    let (job, workers) = (job(), workers());
    let due = |secs| Facts { next_at: Some(earlier(secs)), ..facts(&job, &workers) };
    assert_eq!(explain(&due(1), NOW).reasons, [Why::Starting]);
    assert_eq!(explain(&due(60), NOW).reasons, [Why::NoCapacity { since: earlier(60) }]);
    let alone = Facts { workers: &[], ..due(60) };
    let why = explain(&alone, NOW);
    assert_eq!((why.reasons, why.next_possible_start), (vec![Why::NoWorker], None));
}

#[test]
fn next_time_of_a_running_periodic_job_is_unknown() {
    let (cooldown, workers) = (Span::from_secs(600), workers());
    let periodic = Periodic::new(Span::from_secs(3600), Some(cooldown)).unwrap();
    let job = Definition::noop(Schedule::Periodic(periodic));
    let after = Why::AfterThisRun { cooldown, until: later(600) };
    let running = Facts {
        live: 1,
        running_since: Some(earlier(60)),
        last_end_at: Some(earlier(5000)),
        ..facts(&job, &workers)
    };
    let why = explain(&running, NOW);
    assert_eq!(why.reasons, [Why::Running { since: earlier(60) }, after.clone()]);
    assert_eq!(why.next_possible_start, None);
    // While a retry of the periodic job waits, no other run of the job may start.
    let waits_for = WaitsFor::Time(later(30));
    let waiting = [Waiting { attempt: AttemptNo(1), waits_for, ..in_queue(None, None) }];
    let why = explain(&Facts { running_since: None, waiting: &waiting, ..running }, NOW);
    assert_eq!(why.reasons, [Why::RetryPending { until: later(30), retry: 1 }, after]);
    assert_eq!(why.next_possible_start, Some(later(30)));
    let idle = explain(&Facts { live: 0, running_since: None, ..running }, NOW);
    assert_eq!(idle.reasons, [Why::CoolingDown { until: later(600) }]);
    assert_eq!(idle.next_possible_start, Some(later(600)));
}

#[test]
fn next_start_of_a_running_job_depends_on_its_overlap_policy() {
    let workers = workers();
    let start = |overlap| {
        let job = Definition { overlap, ..job() };
        let runs = Facts { live: 1, running_since: Some(earlier(60)), ..facts(&job, &workers) };
        let why = explain(&runs, NOW);
        assert_eq!(codes(&why), ["running", "not_due"]);
        why.next_possible_start
    };
    // It is unknown whether the active run will have finished by the next scheduled time.
    assert_eq!(start(OverlapPolicy::Skip), None);
    assert_eq!(start(OverlapPolicy::Queue), None);
    assert_eq!(start(OverlapPolicy::Replace), Some(later(600)));
    assert_eq!(start(OverlapPolicy::Allow), Some(later(600)));
}

#[test]
fn run_held_by_a_blackout_starts_soon_after_it() {
    let (job, workers) = (in_blackout(11, 12), workers());
    let due = Facts { next_at: Some(earlier(1800)), ..facts(&job, &workers) };
    assert_eq!(explain(&due, NOW).reasons, [Why::Starting]);
    assert_eq!(codes(&explain(&due, later(60))), ["no_capacity"]);
}

#[test]
fn queued_run_shows_its_effective_priority() {
    let (job, workers) = (job(), workers());
    let since = earlier(2 * 3600);
    let seen = |priority: Option<Priority>| {
        let waits_for = WaitsFor::Worker { since, ahead: 0, open_from: None, open_until: None };
        let waiting = [Waiting { priority, waits_for, ..in_queue(None, None) }];
        let facts = Facts { live: 1, waiting: &waiting, ..facts(&job, &workers) };
        match explain(&facts, NOW).reasons[..] {
            [Why::WaitingInQueue { priority, effective_priority, .. }, ..] => {
                (priority.get(), effective_priority.get())
            }
            ref other => panic!("{other:?}"),
        }
    };
    assert_eq!(seen(None), (job.priority.get(), 100));
    assert_eq!(seen(Priority::try_from(42).ok()), (42, 100));
}

#[test]
fn limited_run_names_its_limit() {
    use crate::limit::{KeyDigest, LimitKey};
    let workers = workers();
    let tenant = crate::TenantNo(3);
    let job = Definition { concurrency_key: Some("example.com".into()), ..job() };
    let why = |key: LimitKey| {
        let limit = Limit { key, most: 2 };
        let waits_for = WaitsFor::Permit { since: earlier(50), limit, running: 2 };
        let waiting = [Waiting { waits_for, ..in_queue(None, None) }];
        let facts = Facts { live: 1, waiting: &waiting, ..facts(&job, &workers) };
        let mut explanation = explain(&facts, NOW);
        assert_eq!(explanation.next_possible_start, None, "it is unknown when a run ends");
        explanation.reasons.remove(0)
    };
    let limited = |scope, key: Option<&str>, lane, running| Why::Limited {
        scheduled_at: earlier(60),
        since: earlier(50),
        scope,
        key: key.map(Into::into),
        lane,
        limit: 2,
        running,
    };
    assert_eq!(
        why(LimitKey::of_key(tenant, KeyDigest::of("example.com"))),
        limited(LimitScope::Key, Some("example.com"), None, Some(2))
    );
    let of_tenant = limited(LimitScope::Tenant, None, None, Some(2));
    assert_eq!(why(LimitKey::of_tenant(tenant)), of_tenant);
    let of_lane = limited(LimitScope::Lane, None, Some(Lane::Standard), None);
    assert_eq!(why(LimitKey::of_lane(Lane::Standard)), of_lane);
}
