//! More is due than can run: who goes first, wherever it waits.

use std::time::Duration;

use evenkeel_core::aging::Aging;
use evenkeel_core::order::Priority;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::{Interval, Once, Schedule};
use evenkeel_core::{Definition, JobNo, Span, Timestamp};
use evenkeel_store::{
    AttemptStore, EventStore, JobStore, Now, QueueStore, Signal, Store, Trigger, Triggered,
};

use crate::body::Time as _;
use crate::calm::{Calm, job, play};

const POLL: Duration = Duration::from_secs(1);
const HOUR: u64 = 3600;

fn calm() -> Calm {
    let calm = Calm::new(POLL);
    calm.seen.lock().unwrap().starts = Some(Vec::new());
    calm
}

fn weighing(priority: u8, definition: Definition) -> Definition {
    Definition { priority: Priority::try_from(priority).unwrap(), ..definition }
}

/// Once, so many seconds from now.
fn once(calm: &Calm, secs: u64) -> Schedule {
    let at = calm.time.db().saturating_add(Span::from_secs(secs));
    Schedule::Once(Once { at: Some(at), tolerance: None })
}

/// Once, when nobody looks any more.
fn never(calm: &Calm) -> Schedule {
    once(calm, 1_000 * HOUR)
}

fn every(secs: u64) -> Schedule {
    Schedule::Interval(Interval::new(Span::from_secs(secs), None).unwrap())
}

async fn trigger(calm: &Calm, no: JobNo, priority: Option<u8>) {
    let title = calm.model.job_titles(&[no]).await.unwrap().remove(0).unwrap();
    let priority = priority.and_then(|number| Priority::try_from(number).ok());
    let ask = Trigger { n: 0, priority, idle_only: false };
    let asked = calm.model.trigger(&calm.scope().await, title.id, ask, Now::Database).await;
    assert!(matches!(asked, Ok(Triggered::Accepted(_))), "{asked:?}");
}

/// The jobs that were started, in order, and when.
fn starts(calm: &Calm) -> Vec<(JobNo, Timestamp)> {
    let seen = calm.seen.lock().unwrap();
    seen.starts.iter().flatten().map(|(key, at)| (key.job_no, *at)).collect()
}

/// How many were started before the first run of a job.
fn before(calm: &Calm, job: JobNo) -> Option<usize> {
    starts(calm).iter().position(|(no, _)| *no == job)
}

async fn pass(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}

#[test]
fn in_an_endless_stream_of_higher_priorities_the_lowest_starts_in_time() {
    play(async {
        let calm = calm();
        let _node = calm.start("node", 1).await;
        // Twice as much as there is room for.
        for _ in 0..20 {
            calm.register(weighing(100, job(every(10), 1_000))).await;
        }
        pass(60).await;
        let came = calm.time.db().saturating_add(Span::from_secs(5));
        let lowest = calm.register(weighing(0, job(once(&calm, 5), 1_000))).await;
        pass(3 * HOUR).await;
        let started = starts(&calm).into_iter().find(|(no, _)| *no == lowest).unwrap().1;
        let waited = started.since(came);
        // After an hour it gains ten within five minutes, and nine times more every five; by the next
        // time, at the latest, it is before all others.
        let hour = Span::from_secs(HOUR);
        let step = Span::from_secs(300);
        assert!(waited > hour.saturating_add(step.saturating_mul(9)), "{waited}");
        let latest =
            hour.saturating_add(step.saturating_mul(11)).saturating_add(Span::from_secs(5));
        assert!(waited <= latest, "{waited}");
    });
}

#[test]
fn a_trigger_of_high_priority_gets_ahead_of_any_number_of_others() {
    play(async {
        let calm = calm();
        let mut others = Vec::new();
        for _ in 0..12_000 {
            others.push(calm.register(weighing(0, job(never(&calm), 1_000))).await);
        }
        for no in others {
            trigger(&calm, no, None).await;
        }
        let (own, jobs) = (never(&calm), never(&calm));
        let own = calm.register(weighing(0, job(own, 1_000))).await;
        let jobs = calm.register(weighing(100, job(jobs, 1_000))).await;
        pass(10).await;
        let _node = calm.start("node", 4).await;
        pass(20).await;
        let so_far = starts(&calm).len();
        assert!(so_far > 20, "{so_far}");
        trigger(&calm, own, Some(100)).await;
        trigger(&calm, jobs, None).await;
        calm.model.announce(Signal::Jobs).await.unwrap();
        pass(10).await;
        for job in [own, jobs] {
            let before = before(&calm, job).unwrap();
            assert!(before < so_far + 16, "{before} of {so_far}");
        }
    });
}

#[test]
fn a_regular_time_of_high_priority_gets_ahead_of_a_full_queue() {
    play(async {
        let calm = calm();
        for _ in 0..12_000 {
            let no = calm.register(weighing(10, job(never(&calm), 1_000))).await;
            trigger(&calm, no, None).await;
        }
        let _node = calm.start("node", 4).await;
        pass(20).await;
        assert!(calm.model.count_queued(&["default".into()], 20_000).await.unwrap() > 11_000);
        let low = calm.register(weighing(0, job(once(&calm, 1), 1_000))).await;
        let high = calm.register(weighing(50, job(once(&calm, 2), 1_000))).await;
        let so_far = starts(&calm).len();
        pass(12).await;
        let before_high = before(&calm, high).unwrap();
        assert!(before_high < so_far + 24, "{before_high} of {so_far}");
        // The other one waits in memory, or behind all of them.
        assert_eq!(before(&calm, low), None);
    });
}

#[test]
fn a_run_keeps_its_own_priority_when_its_node_is_lost() {
    play(async {
        let calm = calm();
        let own = calm.register(weighing(0, job(never(&calm), 60_000))).await;
        let doomed = calm.start("doomed", 1).await;
        pass(3).await;
        trigger(&calm, own, Some(90)).await;
        calm.model.announce(Signal::Jobs).await.unwrap();
        pass(5).await;
        assert_eq!(before(&calm, own), Some(0));
        for _ in 0..5 {
            let definition = weighing(50, job(once(&calm, 1), 60_000));
            let definition = Definition { overlap: OverlapPolicy::Queue, ..definition };
            calm.register(definition).await;
        }
        pass(3).await;
        drop(doomed);
        // Until it is known to be lost, the others come first.
        let _heir = calm.start("heir", 1).await;
        pass(20 * 60).await;
        let again: Vec<usize> = (0..)
            .zip(starts(&calm))
            .filter(|(_, (no, _))| *no == own)
            .map(|(nth, _)| nth)
            .collect();
        assert!(matches!(again[..], [0, 1 | 2]), "{again:?}");
    });
}

#[test]
fn other_aging_numbers_reach_what_waits_already() {
    play(async {
        let mut calm = calm();
        let before = calm.start("before", 1).await;
        for _ in 0..50 {
            let no = calm.register(weighing(10, job(never(&calm), 600_000))).await;
            trigger(&calm, no, None).await;
        }
        calm.model.announce(Signal::Jobs).await.unwrap();
        pass(60).await;
        assert!(calm.model.count_queued(&["default".into()], 100).await.unwrap() > 40);
        before.drain(Duration::from_secs(1)).await;
        calm.aging = Aging { every: Span::from_secs(60), after: Span::ZERO, ..Aging::default() };
        let _after = calm.start("after", 1).await;
        pass(30).await;
        let left = calm.model.reprioritize(calm.aging, None, 1_000).await.unwrap();
        assert_eq!((left.changed, left.next), (0, None));
    });
}
