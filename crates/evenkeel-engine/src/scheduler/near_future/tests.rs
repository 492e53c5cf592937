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

fn entry_of(definition: Definition, job: &DueJob) -> Entry {
    let next_at = job.next_at.unwrap();
    Entry::new(job, next_at, Arc::new(definition), next_at.saturating_sub(Span::from_secs(5)))
}

fn entry(due: i64, priority: u8) -> Entry {
    entry_of(hourly(priority), &job(due, 0))
}

fn fired(entry: &Entry) -> Fire {
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

fn due_jobs(future: &mut NearFuture, now: i64) -> Vec<i64> {
    future.ripen(at(now));
    std::iter::from_fn(|| future.take_due(Line::Here, Lane::Standard))
        .map(|taken| taken.job.0)
        .collect()
}

fn late(future: &mut NearFuture) -> Vec<i64> {
    let mut late: Vec<i64> = future.late().drain(..).map(|job| job.0).collect();
    late.sort_unstable();
    late
}

#[test]
fn what_is_due_comes_in_the_order_of_dispatch() {
    let mut future = NearFuture::new(Aging::default());
    for (job, due, priority) in [(1, 30, 0), (2, 20, 0), (3, 25, 90), (4, 99, 100)] {
        future.insert(JobNo(job), entry(due, priority));
    }
    assert_eq!(due_jobs(&mut future, 50), [3, 2, 1]);
    assert_eq!(future.next_look(), Some(at(99)));
}

#[test]
fn a_newer_copy_replaces_the_older_wherever_it_was() {
    let mut future = NearFuture::new(Aging::default());
    future.insert(JobNo(1), entry(10, 0));
    future.ripen(at(50));
    future.insert(JobNo(1), entry(70, 0));
    assert_eq!(due_jobs(&mut future, 50), [0_i64; 0]);
    assert_eq!(due_jobs(&mut future, 70), [1]);
}

#[test]
fn lost_shards_are_forgotten() {
    let mut future = NearFuture::new(Aging::default());
    future.insert(JobNo(1), entry(10, 0));
    future.insert(JobNo(2), entry(10, 0));
    future.ripen(at(10));
    future.retain_shards(|shard| shard == Shard(2));
    assert_eq!(due_jobs(&mut future, 10), [2]);
    assert_eq!(future.count(), 1);
}

#[test]
fn news_of_a_job_that_is_due_move_it_in_the_order() {
    let mut future = NearFuture::new(Aging::default());
    future.insert(JobNo(1), entry(20, 0));
    future.insert(JobNo(2), entry(10, 0));
    future.ripen(at(50));
    future.refresh(&job(20, 3000));
    assert_eq!(future.waiting(), [0, 2, 0]);
    assert_eq!(due_jobs(&mut future, 50), [1, 2]);
    assert_eq!(future.get(JobNo(1)).unwrap().should_start_by(), at(620));
}

#[test]
fn what_should_have_started_is_told_once_for_each_time() {
    let mut future = NearFuture::new(Aging::default());
    for (job, due, priority) in [(1, 10, 0), (2, 20, 90), (3, 30, 0), (4, 9_000, 0)] {
        future.insert(JobNo(job), entry(due, priority));
    }
    future.ripen(at(100));
    future.sweep(at(3_615));
    assert_eq!(late(&mut future), [1]);
    future.sweep(at(3_621));
    assert_eq!(late(&mut future), [2]);
    future.sweep(at(3_625));
    assert_eq!(late(&mut future), [0_i64; 0]);
    // What comes in late is known at once.
    future.insert(JobNo(5), entry(15, 50));
    future.ripen(at(3_626));
    assert_eq!(late(&mut future), [5]);
    future.sweep(at(3_700));
    assert_eq!(late(&mut future), [3]);
}

#[test]
fn what_cannot_start_in_time_is_told_when_that_is_known() {
    let hour = |hour| jiff::civil::time(hour, 0, 0, 0);
    let blackout = Blackout { start: hour(1), end: hour(3) };
    let dark = Definition { blackout_periods: vec![blackout], ..hourly(0) };
    let mut future = NearFuture::new(Aging::default());
    // The hour in which it must run is dark.
    future.insert(JobNo(1), entry_of(dark, &job(3_600, 0)));
    assert_eq!(future.next_look(), Some(at(3 * 3600)));
    assert_eq!(late(&mut future), [1]);
    assert_eq!(due_jobs(&mut future, 3 * 3600), [1]);
    assert_eq!(late(&mut future), [0_i64; 0]);
}

#[test]
fn after_it_was_fired_a_job_is_taken_to_be_well() {
    let before = entry_of(hourly(0), &job(3_600, 60));
    let after = before.clone().after(&fired(&before), at(7_200), at(3_600));
    assert_eq!((after.fired, after.past().reference), (1, at(3_600)));
    assert_eq!(after.should_start_by(), at(7_200 + 3_600 - 60));
    // It was not: its first time counts still.
    let head = RunLink { scheduled_at: at(3_600), sequence: evenkeel_core::Sequence::REGULAR };
    let mut known = NearFuture::new(Aging::default());
    known.insert(JobNo(1), after);
    let failed = DueJob { head: Some(head), fired: 1, since: at(3_590), ..job(7_200, 60) };
    known.refresh(&failed);
    assert_eq!(known.get(JobNo(1)).unwrap().should_start_by(), at(7_200 - 60));
    assert_eq!(late(&mut known), [1]);
}

#[test]
fn a_job_whose_next_time_follows_from_its_end_is_not_in_trouble_while_it_runs() {
    let periodic = Periodic::new(Span::from_secs(3600), None).unwrap();
    let before = entry_of(Definition::noop(Schedule::Periodic(periodic)), &job(3_600, 60));
    let mut future = NearFuture::new(Aging::default());
    let after = before.clone().after(&fired(&before), at(7_200), at(3_600));
    future.insert(JobNo(1), after);
    assert_eq!(late(&mut future), [0_i64; 0]);
}

#[test]
fn what_has_waited_long_goes_before_higher_priorities_that_have_not() {
    let mut future = NearFuture::new(Aging::default());
    future.insert(JobNo(1), entry(10, 0));
    future.insert(JobNo(2), entry(3_000, 90));
    future.ripen(at(3_899));
    assert_eq!(future.first_rank(Line::Here, Lane::Standard).unwrap().0, 90);
    // It gains ten at 3,900 s, and as much every 300 s; its deadline is the nearer one.
    future.ripen(at(3_900 + 8 * 300 - 1));
    assert_eq!(future.first_rank(Line::Here, Lane::Standard).unwrap().0, 90);
    future.insert(JobNo(3), entry(6_000, 90));
    assert_eq!(due_jobs(&mut future, 3_900 + 8 * 300), [1, 2, 3]);
}

#[test]
fn in_an_endless_stream_of_higher_priorities_the_lowest_is_taken() {
    let mut future = NearFuture::new(Aging::default());
    future.insert(JobNo(0), entry(10, 0));
    let taken = (1..).find(|n| {
        let now = n * 60;
        for job in [2 * n, 2 * n + 1] {
            future.insert(JobNo(job), entry(now, 100));
        }
        future.ripen(at(now));
        let taken = future.take_due(Line::Here, Lane::Standard).unwrap();
        let job = taken.job;
        future.put_back(taken, None);
        job == JobNo(0)
    });
    // At 6,600 s it ranks as high as they do, and must start before all of them.
    assert_eq!(taken, Some(6_600 / 60));
}

#[test]
fn news_of_a_job_that_has_risen_leave_it_there_once() {
    let mut future = NearFuture::new(Aging::default());
    future.insert(JobNo(1), entry(20, 0));
    future.insert(JobNo(2), entry(9_000, 100));
    future.ripen(at(9_000));
    future.refresh(&job(20, 3_000));
    assert_eq!(future.waiting(), [0, 2, 0]);
    let taken = future.take_due(Line::Here, Lane::Standard).unwrap();
    assert_eq!((taken.job, due_jobs(&mut future, 9_000)), (JobNo(1), vec![2]));
    assert!(future.put_back(taken, Some(entry(20, 0))));
    future.ripen(at(9_001));
    future.remove(JobNo(1));
    assert_eq!(due_jobs(&mut future, 9_002), [0_i64; 0]);
}

/// A job that is due at 10 s and was taken.
fn taken() -> (NearFuture, TakenDue) {
    let mut future = NearFuture::new(Aging::default());
    future.insert(JobNo(1), entry(10, 0));
    future.ripen(at(10));
    let taken = future.take_due(Line::Here, Lane::Standard).unwrap();
    (future, taken)
}

#[test]
fn a_job_that_is_being_fired_is_due_again_only_when_it_is_put_back() {
    let (mut future, taken) = taken();
    assert_eq!((future.next_look(), due_jobs(&mut future, 99)), (None, vec![]));
    assert!(future.put_back(taken, Some(entry(50, 0))));
    assert_eq!((future.next_look(), due_jobs(&mut future, 99)), (Some(at(50)), vec![1]));
}

#[test]
fn news_of_a_job_that_is_being_fired_make_it_stale() {
    for news in [
        |future: &mut NearFuture| future.insert(JobNo(1), entry(30, 0)),
        |future: &mut NearFuture| future.refresh(&job(10, 0)),
        |future: &mut NearFuture| future.remove(JobNo(1)),
        |future: &mut NearFuture| future.retain_shards(|_| false),
    ] {
        let (mut future, taken) = taken();
        news(&mut future);
        assert_eq!(due_jobs(&mut future, 99), [0_i64; 0]);
        assert!(!future.put_back(taken, Some(entry(50, 0))));
        assert_eq!((future.count(), due_jobs(&mut future, 99)), (0, vec![]));
    }
}

#[test]
fn a_job_that_was_loaded_again_while_it_was_fired_is_not_overwritten() {
    let (mut future, first) = taken();
    future.retain_shards(|_| false);
    future.insert(JobNo(1), entry(20, 0));
    assert!(!future.put_back(first, Some(entry(50, 0))));
    future.ripen(at(20));
    let second = future.take_due(Line::Here, Lane::Standard).unwrap();
    assert!(future.put_back(second, Some(entry(80, 0))));
    assert_eq!(due_jobs(&mut future, 99), [1]);
}

#[test]
fn a_job_waits_since_its_blackout_ended() {
    let hour = |hour| jiff::civil::time(hour, 0, 0, 0);
    let blackout = Blackout { start: hour(0), end: hour(3) };
    let dark = Definition { blackout_periods: vec![blackout], ..hourly(0) };
    let mut future = NearFuture::new(Aging::default());
    future.insert(JobNo(1), entry_of(dark, &job(3_600, 0)));
    future.insert(JobNo(2), entry(3 * 3600, 10));
    // In the dark it could not have started.
    assert_eq!(future.get(JobNo(1)).unwrap().since(), at(3 * 3600));
    assert_eq!(due_jobs(&mut future, 3 * 3600), [2, 1]);
}

#[test]
fn what_is_for_others_waits_in_a_line_of_its_pool() {
    let to = |pool: &str, priority| {
        let definition = Definition { pool: pool.into(), ..hourly(priority) };
        let mut entry = entry_of(definition, &job(10, 0));
        entry.is_direct = false;
        entry
    };
    let mut future = NearFuture::new(Aging::default());
    future.insert(JobNo(1), to("chrome", 0));
    future.insert(JobNo(2), to("chrome", 50));
    future.insert(JobNo(3), to("mail", 0));
    future.insert(JobNo(4), entry(10, 100));
    future.ripen(at(20));
    assert_eq!((future.waiting(), future.waiting_in(Line::Here)), ([0, 4, 0], [0, 1, 0]));
    assert_eq!(future.pools_after("").collect::<Vec<_>>(), ["chrome", "mail"]);
    assert_eq!(future.pools_after("chrome").collect::<Vec<_>>(), ["mail", "chrome"]);
    assert_eq!(future.pools_after("x").next(), Some("chrome"));
    assert_eq!(future.take_due(Line::Pool("chrome"), Lane::Standard).unwrap().job, JobNo(2));
    // Late is late, wherever it waits.
    future.sweep(at(3_615));
    assert_eq!(late(&mut future), [1, 3, 4]);
    // News of the job, and that it is gone, find it where it is.
    future.refresh(&job(10, 3_000));
    future.remove(JobNo(3));
    assert_eq!((future.count_pools(), future.waiting()), (1, [0, 2, 0]));
    assert_eq!(due_jobs(&mut future, 20), [4]);
}
