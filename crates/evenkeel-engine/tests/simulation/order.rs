//! While workers are scarce, a run of a lower priority does not start before one of a higher priority
//! that waits: not on one node, however many schedulers it has, and not on several.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_core::order::Priority;
use evenkeel_core::schedule::{Once, Schedule};
use evenkeel_core::{AttemptKey, Definition, JobNo, Span, Timestamp};
use evenkeel_store::{EventStore, JobStore, Now, Signal, Store, Trigger, Triggered};

use crate::body::{Lived, Time as _};
use crate::calm::{Calm, job, play};
use crate::checker::{Evidence, is_punctual};
use crate::world::{self, Faults, Scenario};

const POLL: Duration = Duration::from_secs(1);
/// A node learns of what others put into the queue by a signal, or at its next poll.
const UNDER_WAY: Span = Span::from_millis(1_500);

/// One run: how important, since when it waits, and when it started.
#[derive(Copy, Clone, Debug)]
struct Started {
    priority: u8,
    due: Timestamp,
    at: Timestamp,
}

/// The runs that started while more than `workers` of a higher priority, due for longer than
/// `under_way`, were waiting. `starts` are in the order in which they started.
fn overtaking(starts: &[Started], workers: usize, under_way: Span) -> Vec<Started> {
    let mut by_priority: BTreeMap<u8, Vec<(usize, Timestamp)>> = BTreeMap::new();
    for (nth, one) in starts.iter().enumerate() {
        by_priority.entry(one.priority).or_default().push((nth, one.due));
    }
    let passed_over = |nth: usize, one: &Started| {
        by_priority
            .range(one.priority + 1..)
            .flat_map(|(_, runs)| &runs[runs.partition_point(|(later, _)| *later <= nth)..])
            .filter(|(_, due)| due.saturating_add(under_way) <= one.at)
            .take(workers + 1)
            .count()
    };
    let overtakes =
        |(nth, one): (usize, &Started)| (passed_over(nth, one) > workers).then_some(*one);
    starts.iter().enumerate().filter_map(overtakes).collect()
}

/// The checker's part: regular times of jobs that wait for nothing but a worker.
pub fn higher_priorities_start_first(evidence: &Evidence<'_>, bad: &mut Vec<String>) {
    let Faults { crashes, store, time, full } = evidence.scenario.faults;
    if crashes || store || time || full || evidence.scenario.limits {
        return;
    }
    let before_the_end = Duration::from_secs(evidence.scenario.hours * 3600);
    let priority = |lived: &Lived| {
        let planned = evidence.plan.iter().find(|planned| planned.job == lived.key.job_no)?;
        let regular = lived.key == AttemptKey::regular(lived.key.job_no, lived.key.scheduled_at);
        let counts = regular && lived.began < before_the_end && is_punctual(planned);
        counts.then(|| planned.definition.priority.get())
    };
    let mut starts: Vec<Started> = evidence
        .book
        .iter()
        .filter_map(|lived| {
            let priority = priority(lived)?;
            Some(Started { priority, due: lived.key.scheduled_at, at: lived.began_db })
        })
        .collect();
    starts.sort_by_key(|one| one.at);
    let workers = evidence.scenario.workers * evidence.scenario.nodes;
    for one in overtaking(&starts, workers, UNDER_WAY) {
        bad.push(format!("order: {one:?} started before more than {workers} that go first"));
    }
}

#[test]
fn a_cluster_with_too_few_workers_keeps_the_order() {
    let mut late = 0;
    for seed in 700..702 {
        let scenario = Scenario { workers: 3, ..Scenario::dense(seed, Faults::NONE) };
        let outcome = world::run(scenario);
        // Lateness is promised only while there are workers.
        let (of_lateness, others): (Vec<_>, Vec<_>) =
            outcome.violations.into_iter().partition(|broken| broken.starts_with("I5: "));
        assert!(others.is_empty(), "seed {seed}: {others:?}");
        late += of_lateness.len();
    }
    assert!(late > 0, "no run has waited for a worker: there was nothing to order");
}

/// A cluster of which each node has so many schedulers.
fn calm(schedulers: usize) -> Calm {
    let mut calm = Calm::new(POLL);
    calm.schedulers = Some(schedulers);
    calm.seen.lock().unwrap().starts = Some(Vec::new());
    calm
}

fn once(at: Timestamp, priority: u8, mean_ms: u64) -> Definition {
    let schedule = Schedule::Once(Once { at: Some(at), tolerance: None });
    let priority = Priority::try_from(priority).unwrap();
    Definition { priority, ..job(schedule, mean_ms) }
}

async fn trigger(calm: &Calm, no: JobNo) {
    let title = calm.model.job_titles(&[no]).await.unwrap().remove(0).unwrap();
    let ask = Trigger { n: 0, priority: None, idle_only: false };
    let asked = calm.model.trigger(&calm.scope().await, title.id, ask, Now::Database).await;
    assert!(matches!(asked, Ok(Triggered::Accepted(_))), "{asked:?}");
}

/// 2,000 one-off jobs, due at one instant, with the priority that `priority` gives the nth of them.
/// Says what started, in order.
fn burst(
    nodes: usize,
    schedulers: usize,
    mean_ms: u64,
    priority: impl Fn(usize) -> u8,
) -> Vec<Started> {
    const JOBS: usize = 2_000;
    play(async {
        let calm = calm(schedulers);
        let mut engines = Vec::new();
        for node in 0..nodes {
            engines.push(calm.start(&format!("node-{node}"), 2).await);
        }
        let due = calm.time.db().saturating_add(Span::from_secs(30));
        let mut priorities = BTreeMap::new();
        for nth in 0..JOBS {
            let no = calm.register(once(due, priority(nth), mean_ms)).await;
            priorities.insert(no, priority(nth));
        }
        tokio::time::sleep(Duration::from_secs(30 + 2 * JOBS as u64 * mean_ms / 1_000)).await;
        let seen = calm.seen.lock().unwrap();
        let starts: Vec<Started> = (seen.starts.iter().flatten())
            .map(|(key, at)| Started { priority: priorities[&key.job_no], due, at: *at })
            .collect();
        assert_eq!(starts.len(), JOBS, "all must have run");
        starts
    })
}

/// By turns, at random, and such that each scheduler has the jobs of one priority only.
const SPREADS: [fn(usize) -> u8; 3] = [
    |nth| [10, 40, 70, 90][nth / 7 % 4],
    |nth| [10, 40, 70, 90][((nth * 2_654_435_761 % 4_294_967_296) >> 20) & 3],
    |nth| if nth.is_multiple_of(2) { 90 } else { 10 },
];

#[test]
fn one_node_starts_nothing_before_a_higher_priority_however_many_schedulers_it_has() {
    for schedulers in [1, 2, 3] {
        for spread in SPREADS {
            // Short bodies start without the queue; while long ones run, what is due goes into it.
            for mean_ms in [10, 150] {
                let starts = burst(1, schedulers, mean_ms, spread);
                let bad = overtaking(&starts, 2, Span::ZERO);
                assert!(bad.is_empty(), "{schedulers}, {mean_ms} ms: {} {:?}", bad.len(), bad[0]);
            }
        }
    }
}

#[test]
fn two_nodes_start_nothing_before_a_higher_priority_but_what_is_under_way() {
    for spread in SPREADS {
        for mean_ms in [10, 150] {
            let starts = burst(2, 2, mean_ms, spread);
            let bad = overtaking(&starts, 4, UNDER_WAY);
            assert!(bad.is_empty(), "{mean_ms} ms: {} {:?}", bad.len(), bad[0]);
        }
    }
}

#[test]
fn triggers_have_one_order_with_regular_times() {
    play(async {
        let calm = calm(2);
        let _node = calm.start("node", 2).await;
        let due = calm.time.db().saturating_add(Span::from_secs(30));
        let far = due.saturating_add(Span::from_secs(1_000_000));
        let mut priorities = BTreeMap::new();
        let mut triggered = Vec::new();
        for nth in 0..400 {
            let priority = [10, 90, 40, 70][nth % 4];
            let no = calm.register(once(if nth < 200 { due } else { far }, priority, 100)).await;
            priorities.insert(no, priority);
            triggered.extend((nth >= 200).then_some(no));
        }
        tokio::time::sleep(Duration::from_secs(29)).await;
        for no in triggered {
            trigger(&calm, no).await;
        }
        calm.model.announce(Signal::Jobs).await.unwrap();
        tokio::time::sleep(Duration::from_secs(120)).await;
        let seen = calm.seen.lock().unwrap();
        let starts: Vec<Started> = (seen.starts.iter().flatten())
            .map(|(key, at)| Started { priority: priorities[&key.job_no], due, at: *at })
            .collect();
        assert_eq!(starts.len(), 400);
        // The triggers are in the queue when the regular times come due, and claims go on meanwhile.
        let bad = overtaking(&starts, 2, Span::from_millis(50));
        assert!(bad.is_empty(), "{} {:?}", bad.len(), bad[0]);
    });
}

#[test]
fn the_checker_sees_a_run_that_overtakes() {
    let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
    let run = |priority, due, start| Started { priority, due: at(due), at: at(start) };
    let starts = [run(90, 0, 1), run(10, 0, 2), run(90, 0, 3), run(90, 1, 4), run(40, 0, 5)];
    let found = |workers, under_way| overtaking(&starts, workers, Span::from_secs(under_way)).len();
    assert_eq!((found(1, 0), found(2, 0), found(3, 0)), (1, 1, 0));
    // One of those that go first was due for a second only.
    assert_eq!((found(1, 2), found(2, 2)), (1, 0));
}
