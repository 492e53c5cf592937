//! Tests which runs start first if more runs are due than can start, in memory and in the queue.

use std::time::Duration;

use evenkeel_core::aging::Aging;
use evenkeel_core::order::Priority;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::Schedule;
use evenkeel_core::{Definition, JobNo, Span, Timestamp};
use evenkeel_store::{AttemptStore, QueueStore, Signal, Store, Triggered};

use crate::body::Time as _;
use crate::small_cluster::{SmallCluster, every, job, pass, run_paused};

const POLL: Duration = Duration::from_secs(1);
const HOUR: u64 = 3600;

fn cluster() -> SmallCluster {
    let cluster = SmallCluster::new(POLL);
    cluster.record_starts();
    cluster
}

fn weighing(priority: u8, definition: Definition) -> Definition {
    Definition { priority: Priority::try_from(priority).unwrap(), ..definition }
}

/// Returns a schedule whose only run is after the end of the test.
fn never(cluster: &SmallCluster) -> Schedule {
    cluster.once_in(1_000 * HOUR)
}

/// Returns the started jobs in the order of their start, with the start time.
fn starts(cluster: &SmallCluster) -> Vec<(JobNo, Timestamp)> {
    let seen = cluster.seen.lock().unwrap();
    seen.starts.iter().flatten().map(|(key, at)| (key.job_no, *at)).collect()
}

/// Returns the number of runs that started before the first run of a job.
fn before(cluster: &SmallCluster, job: JobNo) -> Option<usize> {
    starts(cluster).iter().position(|(no, _)| *no == job)
}

#[test]
fn lowest_priority_starts_in_time_in_an_endless_stream_of_higher_ones() {
    run_paused(async {
        let cluster = cluster();
        let _node = cluster.start("node", 1).await;
        // The 20 jobs need twice the capacity of the workers.
        for _ in 0..20 {
            cluster.register(weighing(100, job(every(10), 1_000))).await;
        }
        pass(60).await;
        let came = cluster.time.db().saturating_add(Span::from_secs(5));
        let lowest = cluster.register(weighing(0, job(cluster.once_in(5), 1_000))).await;
        pass(3 * HOUR).await;
        let started = starts(&cluster).into_iter().find(|(no, _)| *no == lowest).unwrap().1;
        let waited = started.since(came);
        // After an hour of waiting, aging raises the rank of a job by 10 every five minutes. After
        // ten steps of aging the waiting job outranks all other jobs.
        let hour = Span::from_secs(HOUR);
        let step = Span::from_secs(300);
        assert!(waited > hour.saturating_add(step.saturating_mul(9)), "{waited}");
        let latest =
            hour.saturating_add(step.saturating_mul(11)).saturating_add(Span::from_secs(5));
        assert!(waited <= latest, "{waited}");
    });
}

#[test]
fn trigger_of_high_priority_overtakes_thousands_of_others() {
    run_paused(async {
        let cluster = cluster();
        let mut others = Vec::new();
        for _ in 0..12_000 {
            others.push(cluster.register(weighing(0, job(never(&cluster), 1_000))).await);
        }
        for no in others {
            assert!(matches!(cluster.trigger(no, None).await, Triggered::Accepted(_)));
        }
        let (own, jobs) = (never(&cluster), never(&cluster));
        let own = cluster.register(weighing(0, job(own, 1_000))).await;
        let jobs = cluster.register(weighing(100, job(jobs, 1_000))).await;
        pass(10).await;
        let _node = cluster.start("node", 4).await;
        pass(20).await;
        let so_far = starts(&cluster).len();
        assert!(so_far > 20, "{so_far}");
        assert!(matches!(cluster.trigger(own, Some(100)).await, Triggered::Accepted(_)));
        assert!(matches!(cluster.trigger(jobs, None).await, Triggered::Accepted(_)));
        cluster.model.announce(Signal::Jobs).await.unwrap();
        pass(10).await;
        for job in [own, jobs] {
            let before = before(&cluster, job).unwrap();
            assert!(before < so_far + 16, "{before} of {so_far}");
        }
    });
}

#[test]
fn regular_time_of_high_priority_overtakes_a_full_queue() {
    run_paused(async {
        let cluster = cluster();
        for _ in 0..12_000 {
            let no = cluster.register(weighing(10, job(never(&cluster), 1_000))).await;
            assert!(matches!(cluster.trigger(no, None).await, Triggered::Accepted(_)));
        }
        let _node = cluster.start("node", 4).await;
        pass(20).await;
        assert!(cluster.model.count_queued(&["default".into()], 20_000).await.unwrap() > 11_000);
        let low = cluster.register(weighing(0, job(cluster.once_in(1), 1_000))).await;
        let high = cluster.register(weighing(50, job(cluster.once_in(2), 1_000))).await;
        let so_far = starts(&cluster).len();
        pass(12).await;
        let before_high = before(&cluster, high).unwrap();
        assert!(before_high < so_far + 24, "{before_high} of {so_far}");
        // The job with the low priority still waits, in memory or at the end of the queue.
        assert_eq!(before(&cluster, low), None);
    });
}

#[test]
fn run_keeps_its_own_priority_when_its_node_is_lost() {
    run_paused(async {
        let cluster = cluster();
        let own = cluster.register(weighing(0, job(never(&cluster), 60_000))).await;
        let doomed = cluster.start("doomed", 1).await;
        pass(3).await;
        assert!(matches!(cluster.trigger(own, Some(90)).await, Triggered::Accepted(_)));
        cluster.model.announce(Signal::Jobs).await.unwrap();
        pass(5).await;
        assert_eq!(before(&cluster, own), Some(0));
        for _ in 0..5 {
            let definition = weighing(50, job(cluster.once_in(1), 60_000));
            let definition = Definition { overlap: OverlapPolicy::Queue, ..definition };
            cluster.register(definition).await;
        }
        pass(3).await;
        drop(doomed);
        // Other runs start first until the cluster notices that the node is lost.
        let _heir = cluster.start("heir", 1).await;
        pass(20 * 60).await;
        let again: Vec<usize> = (0..)
            .zip(starts(&cluster))
            .filter(|(_, (no, _))| *no == own)
            .map(|(nth, _)| nth)
            .collect();
        assert!(matches!(again[..], [0, 1 | 2]), "{again:?}");
    });
}

#[test]
fn changed_aging_settings_apply_to_queued_attempts() {
    run_paused(async {
        let mut cluster = cluster();
        let before = cluster.start("before", 1).await;
        for _ in 0..50 {
            let no = cluster.register(weighing(10, job(never(&cluster), 600_000))).await;
            assert!(matches!(cluster.trigger(no, None).await, Triggered::Accepted(_)));
        }
        cluster.model.announce(Signal::Jobs).await.unwrap();
        pass(60).await;
        assert!(cluster.model.count_queued(&["default".into()], 100).await.unwrap() > 40);
        before.drain(Duration::from_secs(1)).await;
        cluster.aging = Aging { every: Span::from_secs(60), after: Span::ZERO, ..Aging::default() };
        let _after = cluster.start("after", 1).await;
        pass(30).await;
        let left = cluster.model.reprioritize(cluster.aging, None, 1_000).await.unwrap();
        assert_eq!((left.changed, left.next), (0, None));
    });
}
