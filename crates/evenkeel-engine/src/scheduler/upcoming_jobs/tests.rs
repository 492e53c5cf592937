use std::sync::Arc;

use evenkeel_core::blackout::Blackout;
use evenkeel_core::order::Priority;
use evenkeel_core::schedule::{Interval, Periodic, Schedule};
use evenkeel_core::{Definition, History, Span, TenantNo};
use evenkeel_store::{Fire, RunLink, Start};

use super::*;

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros(secs * 1_000_000)
}

fn hourly(priority: u8) -> Definition {
    let every = Interval::new(Span::from_secs(3600), None).unwrap();
    Definition {
        priority: Priority::try_from(priority).unwrap(),
        ..Definition::noop(Schedule::Interval(every))
    }
}

fn job(due: i64, average: u64) -> DueJob {
    DueJob {
        no: JobNo(1),
        tenant: TenantNo(1),
        next_at: Some(at(due)),
        generation: 1,
        live: 0,
        head: None,
        history: History {
            average_good_duration: Some(Span::from_secs(average)),
            ..History::default()
        },
        since: at(due - 10),
        fired: 0,
        definition: String::new(),
    }
}

fn entry_of(definition: Definition, job: &DueJob) -> JobEntry {
    let next_at = job.next_at.unwrap();
    JobEntry::new(job, next_at, Arc::new(definition), next_at.saturating_sub(Span::from_secs(5)))
}

fn entry(due: i64, priority: u8) -> JobEntry {
    entry_of(hourly(priority), &job(due, 0))
}

fn fired(entry: &JobEntry) -> Fire {
    Fire {
        job: JobNo(1),
        tenant: entry.tenant,
        generation: entry.generation,
        due: entry.next_at,
        head: entry.head,
        skip: None,
        start: Some((entry.next_at, Start::Claimed)),
        idle_only: true,
        next_at: None,
    }
}

fn due_jobs(upcoming: &mut UpcomingJobs, now: i64) -> Vec<i64> {
    upcoming.move_due(at(now));
    std::iter::from_fn(|| upcoming.take_due(Destination::ThisNode, Lane::Standard))
        .map(|taken| taken.ticket.job.0)
        .collect()
}

fn late(upcoming: &mut UpcomingJobs) -> Vec<i64> {
    let mut late: Vec<i64> = upcoming.late().drain(..).map(|job| job.0).collect();
    late.sort_unstable();
    late
}

#[test]
fn due_jobs_are_taken_in_dispatch_order() {
    let mut upcoming = UpcomingJobs::new(Aging::default());
    for (job, due, priority) in [(1, 30, 0), (2, 20, 0), (3, 25, 90), (4, 99, 100)] {
        upcoming.insert(JobNo(job), entry(due, priority));
    }
    assert_eq!(due_jobs(&mut upcoming, 50), [3, 2, 1]);
    assert_eq!(upcoming.next_try_at(), Some(at(99)));
}

#[test]
fn newer_copy_replaces_an_older_due_copy() {
    let mut upcoming = UpcomingJobs::new(Aging::default());
    upcoming.insert(JobNo(1), entry(10, 0));
    upcoming.move_due(at(50));
    upcoming.insert(JobNo(1), entry(70, 0));
    assert_eq!(due_jobs(&mut upcoming, 50), [0_i64; 0]);
    assert_eq!(due_jobs(&mut upcoming, 70), [1]);
}

#[test]
fn jobs_of_lost_shards_are_removed() {
    let mut upcoming = UpcomingJobs::new(Aging::default());
    upcoming.insert(JobNo(1), entry(10, 0));
    upcoming.insert(JobNo(2), entry(10, 0));
    upcoming.move_due(at(10));
    upcoming.retain_shards(|shard| shard == Shard(2));
    assert_eq!(due_jobs(&mut upcoming, 10), [2]);
    assert_eq!(upcoming.count(), 1);
}

#[test]
fn refreshing_a_due_job_moves_it_in_dispatch_order() {
    let mut upcoming = UpcomingJobs::new(Aging::default());
    upcoming.insert(JobNo(1), entry(20, 0));
    upcoming.insert(JobNo(2), entry(10, 0));
    upcoming.move_due(at(50));
    upcoming.refresh(&job(20, 3000));
    assert_eq!(upcoming.waiting(), [0, 2, 0]);
    assert_eq!(due_jobs(&mut upcoming, 50), [1, 2]);
    assert_eq!(upcoming.get(JobNo(1)).unwrap().should_start_by(), at(620));
}

#[test]
fn late_job_is_reported_once_per_due_time() {
    let mut upcoming = UpcomingJobs::new(Aging::default());
    for (job, due, priority) in [(1, 10, 0), (2, 20, 90), (3, 30, 0), (4, 9_000, 0)] {
        upcoming.insert(JobNo(job), entry(due, priority));
    }
    upcoming.move_due(at(100));
    upcoming.find_late(at(3_615));
    assert_eq!(late(&mut upcoming), [1]);
    upcoming.find_late(at(3_621));
    assert_eq!(late(&mut upcoming), [2]);
    upcoming.find_late(at(3_625));
    assert_eq!(late(&mut upcoming), [0_i64; 0]);
    // A job that is already late when it is inserted is reported at once.
    upcoming.insert(JobNo(5), entry(15, 50));
    upcoming.move_due(at(3_626));
    assert_eq!(late(&mut upcoming), [5]);
    upcoming.find_late(at(3_700));
    assert_eq!(late(&mut upcoming), [3]);
}

#[test]
fn job_blocked_past_its_deadline_is_reported_at_once() {
    let hour = |hour| jiff::civil::time(hour, 0, 0, 0);
    let blackout = Blackout { start: hour(1), end: hour(3) };
    let dark = Definition { blackout_periods: vec![blackout], ..hourly(0) };
    let mut upcoming = UpcomingJobs::new(Aging::default());
    // A blackout covers the whole hour in which the job must run.
    upcoming.insert(JobNo(1), entry_of(dark, &job(3_600, 0)));
    assert_eq!(upcoming.next_try_at(), Some(at(3 * 3600)));
    assert_eq!(late(&mut upcoming), [1]);
    assert_eq!(due_jobs(&mut upcoming, 3 * 3600), [1]);
    assert_eq!(late(&mut upcoming), [0_i64; 0]);
}

#[test]
fn fired_run_is_assumed_to_succeed_until_the_store_disagrees() {
    let before = entry_of(hourly(0), &job(3_600, 60));
    let after = before.clone().after(&fired(&before), at(7_200), at(3_600));
    assert_eq!((after.fired, after.past().reference), (1, at(3_600)));
    assert_eq!(after.should_start_by(), at(7_200 + 3_600 - 60));
    // The run failed, so the deadline still counts from the scheduled time of the first run.
    let head = RunLink { scheduled_at: at(3_600), sequence: evenkeel_core::Sequence::REGULAR };
    let mut known = UpcomingJobs::new(Aging::default());
    known.insert(JobNo(1), after);
    let failed = DueJob { head: Some(head), fired: 1, since: at(3_590), ..job(7_200, 60) };
    known.refresh(&failed);
    assert_eq!(known.get(JobNo(1)).unwrap().should_start_by(), at(7_200 - 60));
    assert_eq!(late(&mut known), [1]);
}

#[test]
fn periodic_job_is_not_late_while_its_run_is_active() {
    let periodic = Periodic::new(Span::from_secs(3600), None).unwrap();
    let before = entry_of(Definition::noop(Schedule::Periodic(periodic)), &job(3_600, 60));
    let mut upcoming = UpcomingJobs::new(Aging::default());
    let after = before.clone().after(&fired(&before), at(7_200), at(3_600));
    upcoming.insert(JobNo(1), after);
    assert_eq!(late(&mut upcoming), [0_i64; 0]);
}

#[test]
fn long_wait_outranks_higher_priorities() {
    let mut upcoming = UpcomingJobs::new(Aging::default());
    upcoming.insert(JobNo(1), entry(10, 0));
    upcoming.insert(JobNo(2), entry(3_000, 90));
    upcoming.move_due(at(3_899));
    assert_eq!(upcoming.first_rank(Destination::ThisNode, Lane::Standard).unwrap().0, 90);
    // Aging raises the rank of the first job by 10 at 3,900 s and then every 300 s. The first job
    // also has the earliest deadline.
    upcoming.move_due(at(3_900 + 8 * 300 - 1));
    assert_eq!(upcoming.first_rank(Destination::ThisNode, Lane::Standard).unwrap().0, 90);
    upcoming.insert(JobNo(3), entry(6_000, 90));
    assert_eq!(due_jobs(&mut upcoming, 3_900 + 8 * 300), [1, 2, 3]);
}

#[test]
fn lowest_priority_is_taken_from_an_endless_stream_of_higher_ones() {
    let mut upcoming = UpcomingJobs::new(Aging::default());
    upcoming.insert(JobNo(0), entry(10, 0));
    let taken = (1..).find(|n| {
        let now = n * 60;
        for job in [2 * n, 2 * n + 1] {
            upcoming.insert(JobNo(job), entry(now, 100));
        }
        upcoming.move_due(at(now));
        let taken = upcoming.take_due(Destination::ThisNode, Lane::Standard).unwrap();
        let job = taken.ticket.job;
        upcoming.put_back(taken.ticket, None);
        job == JobNo(0)
    });
    // At 6,600 s the waiting job has the same rank as the other jobs, and the earliest deadline.
    assert_eq!(taken, Some(6_600 / 60));
}

#[test]
fn refreshing_an_aged_job_keeps_one_entry() {
    let mut upcoming = UpcomingJobs::new(Aging::default());
    upcoming.insert(JobNo(1), entry(20, 0));
    upcoming.insert(JobNo(2), entry(9_000, 100));
    upcoming.move_due(at(9_000));
    upcoming.refresh(&job(20, 3_000));
    assert_eq!(upcoming.waiting(), [0, 2, 0]);
    let taken = upcoming.take_due(Destination::ThisNode, Lane::Standard).unwrap();
    assert_eq!((taken.ticket.job, due_jobs(&mut upcoming, 9_000)), (JobNo(1), vec![2]));
    assert!(upcoming.put_back(taken.ticket, Some(entry(20, 0))));
    upcoming.move_due(at(9_001));
    upcoming.remove(JobNo(1));
    assert_eq!(due_jobs(&mut upcoming, 9_002), [0_i64; 0]);
}

fn taken() -> (UpcomingJobs, TakenDue) {
    let mut upcoming = UpcomingJobs::new(Aging::default());
    upcoming.insert(JobNo(1), entry(10, 0));
    upcoming.move_due(at(10));
    let taken = upcoming.take_due(Destination::ThisNode, Lane::Standard).unwrap();
    (upcoming, taken)
}

#[test]
fn taken_job_is_due_again_only_after_it_was_put_back() {
    let (mut upcoming, taken) = taken();
    assert_eq!((upcoming.next_try_at(), due_jobs(&mut upcoming, 99)), (None, vec![]));
    assert!(upcoming.put_back(taken.ticket, Some(entry(50, 0))));
    assert_eq!((upcoming.next_try_at(), due_jobs(&mut upcoming, 99)), (Some(at(50)), vec![1]));
}

#[test]
fn change_of_a_taken_job_makes_it_stale() {
    for news in [
        |upcoming: &mut UpcomingJobs| upcoming.insert(JobNo(1), entry(30, 0)),
        |upcoming: &mut UpcomingJobs| upcoming.refresh(&job(10, 0)),
        |upcoming: &mut UpcomingJobs| upcoming.remove(JobNo(1)),
        |upcoming: &mut UpcomingJobs| upcoming.retain_shards(|_| false),
    ] {
        let (mut upcoming, taken) = taken();
        news(&mut upcoming);
        assert_eq!(due_jobs(&mut upcoming, 99), [0_i64; 0]);
        assert!(!upcoming.put_back(taken.ticket, Some(entry(50, 0))));
        assert_eq!((upcoming.count(), due_jobs(&mut upcoming, 99)), (0, vec![]));
    }
}

#[test]
fn job_reloaded_while_taken_is_not_overwritten() {
    let (mut upcoming, first) = taken();
    upcoming.retain_shards(|_| false);
    upcoming.insert(JobNo(1), entry(20, 0));
    assert!(!upcoming.put_back(first.ticket, Some(entry(50, 0))));
    upcoming.move_due(at(20));
    let second = upcoming.take_due(Destination::ThisNode, Lane::Standard).unwrap();
    assert!(upcoming.put_back(second.ticket, Some(entry(80, 0))));
    assert_eq!(due_jobs(&mut upcoming, 99), [1]);
}

#[test]
fn job_waits_since_the_end_of_its_blackout() {
    let hour = |hour| jiff::civil::time(hour, 0, 0, 0);
    let blackout = Blackout { start: hour(0), end: hour(3) };
    let dark = Definition { blackout_periods: vec![blackout], ..hourly(0) };
    let mut upcoming = UpcomingJobs::new(Aging::default());
    upcoming.insert(JobNo(1), entry_of(dark, &job(3_600, 0)));
    upcoming.insert(JobNo(2), entry(3 * 3600, 10));
    // The waiting time of the job counts from the end of the blackout.
    assert_eq!(upcoming.get(JobNo(1)).unwrap().since(), at(3 * 3600));
    assert_eq!(due_jobs(&mut upcoming, 3 * 3600), [2, 1]);
}

#[test]
fn jobs_for_other_pools_are_ordered_by_pool() {
    let to = |pool: &str, priority| {
        let definition = Definition { pool: pool.into(), ..hourly(priority) };
        let mut entry = entry_of(definition, &job(10, 0));
        entry.is_direct = false;
        entry
    };
    let mut upcoming = UpcomingJobs::new(Aging::default());
    upcoming.insert(JobNo(1), to("chrome", 0));
    upcoming.insert(JobNo(2), to("chrome", 50));
    upcoming.insert(JobNo(3), to("mail", 0));
    upcoming.insert(JobNo(4), entry(10, 100));
    upcoming.move_due(at(20));
    assert_eq!(
        (upcoming.waiting(), upcoming.waiting_in(Destination::ThisNode)),
        ([0, 4, 0], [0, 1, 0])
    );
    assert_eq!(upcoming.pools_after("").collect::<Vec<_>>(), ["chrome", "mail"]);
    assert_eq!(upcoming.pools_after("chrome").collect::<Vec<_>>(), ["mail", "chrome"]);
    assert_eq!(upcoming.pools_after("x").next(), Some("chrome"));
    assert_eq!(
        upcoming.take_due(Destination::PoolQueue("chrome"), Lane::Standard).unwrap().ticket.job,
        JobNo(2)
    );
    // Late jobs are found for all destinations.
    upcoming.find_late(at(3_615));
    assert_eq!(late(&mut upcoming), [1, 3, 4]);
    // Jobs of all destinations can be refreshed and removed.
    upcoming.refresh(&job(10, 3_000));
    upcoming.remove(JobNo(3));
    assert_eq!((upcoming.count_pools(), upcoming.waiting()), (1, [0, 2, 0]));
    assert_eq!(due_jobs(&mut upcoming, 20), [4]);
}
