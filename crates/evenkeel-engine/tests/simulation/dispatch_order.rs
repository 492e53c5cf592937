//! While workers are scarce, no run starts before a waiting run of a higher priority. The dispatch
//! order is tested on one node with several schedulers and on several nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_core::order::Priority;
use evenkeel_core::schedule::{Once, Schedule};
use evenkeel_core::{AttemptKey, Definition, Span, Timestamp};
use evenkeel_store::{Signal, Store, Triggered};

use crate::body::{BodyRecord, Time as _};
use crate::checker::{Evidence, is_punctual};
use crate::small_cluster::{SmallCluster, job, run_paused};
use crate::world::{self, Faults, Scenario};

const POLL: Duration = Duration::from_secs(1);
/// Maximum delay until a node notices that another node has queued attempts, by a signal or by its
/// next poll.
const LEARN_DELAY: Span = Span::from_millis(1_500);

#[derive(Copy, Clone, Debug)]
struct Started {
    priority: u8,
    due: Timestamp,
    at: Timestamp,
}

/// Returns the runs that started although more than `workers` runs with a higher priority were
/// waiting. Only runs that were due for longer than `learn_delay` count as waiting. `starts` is
/// sorted by start time.
fn overtaking(starts: &[Started], workers: usize, learn_delay: Span) -> Vec<Started> {
    let mut by_priority: BTreeMap<u8, Vec<(usize, Timestamp)>> = BTreeMap::new();
    for (nth, one) in starts.iter().enumerate() {
        by_priority.entry(one.priority).or_default().push((nth, one.due));
    }
    let passed_over = |nth: usize, one: &Started| {
        by_priority
            .range(one.priority + 1..)
            .flat_map(|(_, runs)| &runs[runs.partition_point(|(later, _)| *later <= nth)..])
            .filter(|(_, due)| due.saturating_add(learn_delay) <= one.at)
            .take(workers + 1)
            .count()
    };
    let overtakes =
        |(nth, one): (usize, &Started)| (passed_over(nth, one) > workers).then_some(*one);
    starts.iter().enumerate().filter_map(overtakes).collect()
}

/// Checks the dispatch order of regular runs, for jobs that wait only for a free worker slot.
pub fn higher_ranks_start_first(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    let Faults { crashes, store, time, full } = evidence.scenario.faults;
    if crashes || store || time || full || evidence.scenario.limits {
        return;
    }
    let before_the_end = Duration::from_secs(evidence.scenario.hours * 3600);
    let priority = |body: &BodyRecord| {
        let planned = evidence.plan.iter().find(|planned| planned.job == body.key.job_no)?;
        let regular = body.key == AttemptKey::regular(body.key.job_no, body.key.scheduled_at);
        let counts = regular && body.began < before_the_end && is_punctual(planned);
        counts.then(|| planned.definition.priority.get())
    };
    let mut starts: Vec<Started> = evidence
        .records
        .iter()
        .filter_map(|body| {
            let priority = priority(body)?;
            Some(Started { priority, due: body.key.scheduled_at, at: body.began_db })
        })
        .collect();
    starts.sort_by_key(|one| one.at);
    let workers = evidence.scenario.workers * evidence.scenario.nodes;
    for one in overtaking(&starts, workers, LEARN_DELAY) {
        violations.push(format!(
            "order: {one:?} started before more than {workers} waiting runs of higher priority"
        ));
    }
}

#[test]
fn cluster_with_too_few_workers_keeps_the_dispatch_order() {
    let mut late = 0;
    for seed in 700..702 {
        let scenario = Scenario { workers: 3, ..Scenario::dense(seed, Faults::NONE) };
        let outcome = world::run(scenario);
        // Invariant I5 limits the lateness of starts only while there are enough workers.
        let (of_lateness, others): (Vec<_>, Vec<_>) =
            outcome.violations.into_iter().partition(|broken| broken.starts_with("I5: "));
        assert!(others.is_empty(), "seed {seed}: {others:?}");
        late += of_lateness.len();
    }
    assert!(late > 0, "no run waited for a worker, so the order was not tested");
}

fn cluster(schedulers: usize) -> SmallCluster {
    let mut cluster = SmallCluster::new(POLL);
    cluster.schedulers = Some(schedulers);
    cluster.record_starts();
    cluster
}

fn once(at: Timestamp, priority: u8, mean_ms: u64) -> Definition {
    let schedule = Schedule::Once(Once { at: Some(at), tolerance: None });
    let priority = Priority::try_from(priority).unwrap();
    Definition { priority, ..job(schedule, mean_ms) }
}

/// Registers 2,000 one-time jobs that are due at the same instant, with priorities given by
/// `priority`. Returns their starts in order.
fn burst(
    nodes: usize,
    schedulers: usize,
    mean_ms: u64,
    priority: impl Fn(usize) -> u8,
) -> Vec<Started> {
    const JOBS: usize = 2_000;
    run_paused(async {
        let cluster = cluster(schedulers);
        let mut engines = Vec::new();
        for node in 0..nodes {
            engines.push(cluster.start(&format!("node-{node}"), 2).await);
        }
        let due = cluster.time.db().saturating_add(Span::from_secs(30));
        let mut priorities = BTreeMap::new();
        for nth in 0..JOBS {
            let no = cluster.register(once(due, priority(nth), mean_ms)).await;
            priorities.insert(no, priority(nth));
        }
        tokio::time::sleep(Duration::from_secs(30 + 2 * JOBS as u64 * mean_ms / 1_000)).await;
        let seen = cluster.seen.lock().unwrap();
        let starts: Vec<Started> = (seen.starts.iter().flatten())
            .map(|(key, at)| Started { priority: priorities[&key.job_no], due, at: *at })
            .collect();
        assert_eq!(starts.len(), JOBS, "all must have run");
        starts
    })
}

/// The priorities of the jobs alternate, are random, or are constant per scheduler.
const SPREADS: [fn(usize) -> u8; 3] = [
    |nth| [10, 40, 70, 90][nth / 7 % 4],
    |nth| [10, 40, 70, 90][((nth * 2_654_435_761 % 4_294_967_296) >> 20) & 3],
    |nth| if nth.is_multiple_of(2) { 90 } else { 10 },
];

#[test]
fn one_node_starts_higher_priorities_first_with_any_number_of_schedulers() {
    for schedulers in [1, 2, 3] {
        for spread in SPREADS {
            // Short runs start without being queued. Long runs occupy all workers, so due jobs are
            // queued.
            for mean_ms in [10, 150] {
                let starts = burst(1, schedulers, mean_ms, spread);
                let violations = overtaking(&starts, 2, Span::ZERO);
                assert!(
                    violations.is_empty(),
                    "{schedulers}, {mean_ms} ms: {} {:?}",
                    violations.len(),
                    violations[0]
                );
            }
        }
    }
}

#[test]
fn two_nodes_start_higher_priorities_first_within_the_learn_delay() {
    for spread in SPREADS {
        for mean_ms in [10, 150] {
            let starts = burst(2, 2, mean_ms, spread);
            let violations = overtaking(&starts, 4, LEARN_DELAY);
            assert!(
                violations.is_empty(),
                "{mean_ms} ms: {} {:?}",
                violations.len(),
                violations[0]
            );
        }
    }
}

#[test]
fn triggers_and_regular_times_share_one_order() {
    run_paused(async {
        let cluster = cluster(2);
        let _node = cluster.start("node", 2).await;
        let due = cluster.time.db().saturating_add(Span::from_secs(30));
        let far = due.saturating_add(Span::from_secs(1_000_000));
        let mut priorities = BTreeMap::new();
        let mut triggered = Vec::new();
        for nth in 0..400 {
            let priority = [10, 90, 40, 70][nth % 4];
            let no = cluster.register(once(if nth < 200 { due } else { far }, priority, 100)).await;
            priorities.insert(no, priority);
            triggered.extend((nth >= 200).then_some(no));
        }
        tokio::time::sleep(Duration::from_secs(29)).await;
        for no in triggered {
            assert!(matches!(cluster.trigger(no, None).await, Triggered::Accepted(_)));
        }
        cluster.model.announce(Signal::Jobs).await.unwrap();
        tokio::time::sleep(Duration::from_secs(120)).await;
        let seen = cluster.seen.lock().unwrap();
        let starts: Vec<Started> = (seen.starts.iter().flatten())
            .map(|(key, at)| Started { priority: priorities[&key.job_no], due, at: *at })
            .collect();
        assert_eq!(starts.len(), 400);
        // The triggered runs are queued while the regular runs become due, and workers claim at the
        // same time.
        let violations = overtaking(&starts, 2, Span::from_millis(50));
        assert!(violations.is_empty(), "{} {:?}", violations.len(), violations[0]);
    });
}

#[test]
fn checker_detects_an_overtaking_run() {
    let at = |secs: i64| Timestamp::from_micros(secs * 1_000_000);
    let run = |priority, due, start| Started { priority, due: at(due), at: at(start) };
    let starts = [run(90, 0, 1), run(10, 0, 2), run(90, 0, 3), run(90, 1, 4), run(40, 0, 5)];
    let found =
        |workers, learn_delay| overtaking(&starts, workers, Span::from_secs(learn_delay)).len();
    assert_eq!((found(1, 0), found(2, 0), found(3, 0)), (1, 1, 0));
    // One of the runs with a higher priority had been due for only a second, so it does not count
    // as waiting.
    assert_eq!((found(1, 2), found(2, 2)), (1, 0));
}
