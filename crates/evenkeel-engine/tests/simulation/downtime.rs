//! The cluster is down for a month, then recovers.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::{Cron, CronSchedule, Interval, Periodic, Schedule};
use evenkeel_core::{Definition, JobNo, Span, Timestamp};

use crate::small_cluster::{SmallCluster, job, run_paused};

const MONTH: Duration = Duration::from_secs(30 * 86_400);
const POLL: Duration = Duration::from_secs(1);

#[test]
fn month_of_downtime_causes_no_flood_of_runs() {
    run_paused(async {
        let cluster = SmallCluster::new(POLL);
        let minutely = || Schedule::Interval(Interval::new(Span::from_secs(60), None).unwrap());
        let cron = || {
            let cron = Cron::parse("* * * * *").unwrap();
            Schedule::Cron(CronSchedule { cron, max_duration: None })
        };
        let periodic = Periodic::new(Span::from_secs(60), Some(Span::from_secs(50))).unwrap();
        let mut most: BTreeMap<JobNo, usize> = BTreeMap::new();
        for schedule in [minutely(), cron()] {
            for (misfire, made_up) in [
                (MisfirePolicy::Last, 1),
                (MisfirePolicy::Skip, 0),
                (MisfirePolicy::All, MisfirePolicy::ALL_MAX as usize),
            ] {
                for overlap in [OverlapPolicy::Skip, OverlapPolicy::Queue, OverlapPolicy::Replace] {
                    let definition = Definition { misfire, overlap, ..job(schedule.clone(), 100) };
                    most.insert(cluster.register(definition).await, made_up + 12);
                }
            }
        }
        most.insert(cluster.register(job(Schedule::Periodic(periodic), 100)).await, 13);
        let node = cluster.start("node", 64).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        drop(node);
        tokio::time::sleep(MONTH).await;
        let before = cluster.seen.lock().unwrap().runs;
        assert!(before >= 150, "{before}");
        cluster.record_starts();
        let _node = cluster.start("node", 64).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        let mut counts: BTreeMap<JobNo, usize> = BTreeMap::new();
        let seen = cluster.seen.lock().unwrap();
        for (key, _) in seen.starts.as_ref().unwrap() {
            *counts.entry(key.job_no).or_default() += 1;
        }
        for (job, most) in &most {
            let count = counts.get(job).copied().unwrap_or(0);
            assert!((9..=*most).contains(&count), "job {job} ran {count} times, {most} at most");
        }
        assert_eq!(seen.violations, Vec::<String>::new());
    });
}

#[test]
fn periodic_job_starts_milliseconds_after_its_pause() {
    run_paused(async {
        // The poll interval is so long that the test passes only if the end of a run wakes the
        // scheduler.
        let cluster = SmallCluster::new(Duration::from_secs(600));
        let pause = Span::from_secs(20);
        let periodic = Periodic::new(Span::from_secs(300), Some(pause)).unwrap();
        let _node = cluster.start("node", 4).await;
        cluster.record_starts();
        cluster.register(job(Schedule::Periodic(periodic), 1_000)).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let seen = cluster.seen.lock().unwrap();
        let starts: &Vec<(_, Timestamp)> = seen.starts.as_ref().unwrap();
        assert!(starts.len() > 150, "{}", starts.len());
        for pair in starts.windows(2) {
            // Each run takes 0.5 s to 1.5 s.
            let gap = pair[1].1.since(pair[0].1).as_millis();
            assert!((20_500..21_520).contains(&gap), "{gap} ms from {:?}", pair[0]);
            let late = pair[1].1.since(pair[1].0.scheduled_at).as_millis();
            assert!(late < 20, "{late} ms late: {:?}", pair[1]);
        }
    });
}
