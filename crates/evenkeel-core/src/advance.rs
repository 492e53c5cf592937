//! Decides what happens to a job whose next scheduled time has come: fire, skip or wait.

use crate::job::Definition;
use crate::misfire::MisfirePolicy;
use crate::named_enum;
use crate::overlap::OverlapPolicy;
use crate::time::{Span, Timestamp};

/// Consecutive scheduled times that are skipped, stored as one record.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SkippedTimes {
    pub from: Timestamp,
    pub to: Timestamp,
    pub count: u64,
    pub reason: SkipReason,
}

named_enum! {
    /// Why a scheduled time was skipped. The store saves the variant's number; 3 is unused.
    #[derive(Copy, Clone, PartialEq, Eq, Debug)]
    pub enum SkipReason {
        /// The scheduled time was missed, and the misfire policy does not make up for it.
        Misfire = 0 => "misfire",
        /// An earlier run of the same job was still active.
        Overlap = 1 => "overlap",
        /// An earlier run of the same job was waiting for its retry.
        RetryPending = 2 => "retry_pending",
        /// The scheduled time fell into a blackout, and one run after the blackout makes up for it.
        Blackout = 4 => "blackout",
        /// The store has no outcome of an earlier run, because the node of that run was lost or
        /// could not write the outcome. A run without a stored outcome may in fact have finished
        /// before the skipped scheduled time.
        EndNotStored = 5 => "end_not_stored",
    }
}

/// What the scheduler does with a due job: it records skipped scheduled times, fires at most one
/// run, and sets the next scheduled time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Advance {
    pub skip: Option<SkippedTimes>,
    pub fire: Option<Timestamp>,
    pub next: Option<Timestamp>,
}

/// A scheduled time of a job that has been reached.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DueTime {
    pub due: Timestamp,
    pub now: Timestamp,
    /// True if the scheduler noticed the scheduled time punctually, but an earlier run of the job
    /// was still active. A scheduled time that waited for an earlier run is late, but does not
    /// count as missed.
    pub waited: bool,
    /// The average duration of the job's successful runs.
    pub average: Span,
    /// Number of scheduled times of the job that have been fired so far.
    pub fired: u64,
}

/// Decides what happens to a job whose next scheduled time has been reached and that may start a
/// run now.
pub fn advance(definition: &Definition, at: DueTime) -> Advance {
    let mut advanced = advance_endless(definition, at);
    let over = |max| at.fired.saturating_add(1) >= max;
    if advanced.fire.is_some() && definition.bounds.max_runs.is_some_and(over) {
        advanced.next = None;
    }
    advanced
}

fn advance_endless(definition: &Definition, at: DueTime) -> Advance {
    let DueTime { due, now, .. } = at;
    let timetable = definition.timetable();
    let plain = Advance { skip: None, fire: Some(due), next: timetable.next_after(due) };
    if definition.schedule.follows_its_end() {
        // The next scheduled time of a periodic job is a whole period after its run starts, however
        // late the run starts.
        return Advance { next: timetable.next_after(due.max(now)), ..plain };
    }
    let missed_before = now.saturating_sub(definition.misfire_after);
    if at.waited && !makes_up(definition, due, now) {
        return newest_of(definition, at, SkipReason::Overlap);
    }
    let could_start = definition.may_start_from(due, at.average);
    if could_start > due && could_start >= missed_before {
        return newest_of(definition, at, SkipReason::Blackout);
    }
    // Scheduled times in a blackout that has only just ended do not count as missed.
    let missed_for_good = definition.blackouts().current_start(missed_before);
    let skipped = |count, to| SkippedTimes { from: due, to, count, reason: SkipReason::Misfire };
    match definition.misfire {
        MisfirePolicy::Skip => match timetable.times_before(due, missed_for_good) {
            None => plain,
            Some((count, newest)) => Advance {
                skip: Some(skipped(count, newest)),
                fire: None,
                next: timetable.next_after(newest),
            },
        },
        // One run makes up for the missed scheduled times and for the late ones after
        // `missed_before`.
        MisfirePolicy::Last if due < missed_before => {
            newest_of(definition, at, SkipReason::Misfire)
        }
        MisfirePolicy::Last => plain,
        MisfirePolicy::All => match timetable.times_before(due, missed_for_good) {
            Some((count, _)) if count > MisfirePolicy::ALL_MAX => {
                let dropped = count - MisfirePolicy::ALL_MAX;
                let first_kept = timetable.nth_after(due, dropped, missed_for_good);
                Advance {
                    skip: Some(skipped(dropped, last_before(definition, due, first_kept))),
                    fire: Some(first_kept),
                    next: timetable.next_after(first_kept),
                }
            }
            // One run after a blackout makes up for all scheduled times in the blackout.
            Some(_) | None if could_start > due => {
                newest_of(definition, DueTime { now: could_start, ..at }, SkipReason::Blackout)
            }
            Some(_) | None => plain,
        },
    }
}

/// Returns the last scheduled time before `time`. Both `due` and `time` are scheduled times, and
/// `due` is before `time`.
fn last_before(definition: &Definition, due: Timestamp, time: Timestamp) -> Timestamp {
    definition.timetable().times_before(due, time).map_or(due, |(_, last)| last)
}

/// True if the scheduled time `due` was missed and the misfire policy runs every missed time, one
/// after the other.
fn makes_up(definition: &Definition, due: Timestamp, now: Timestamp) -> bool {
    let missed = due < now.saturating_sub(definition.misfire_after);
    missed && definition.misfire == MisfirePolicy::All
}

/// Fires the newest scheduled time from `due` to `now`, and skips the older ones.
fn newest_of(definition: &Definition, at: DueTime, reason: SkipReason) -> Advance {
    let DueTime { due, now, .. } = at;
    let timetable = definition.timetable();
    let times = timetable.times_before(due, now.saturating_add(Span::from_micros(1)));
    let (count, newest) = times.unwrap_or((1, due));
    let skip = (count > 1).then(|| SkippedTimes {
        from: due,
        to: last_before(definition, due, newest),
        count: count - 1,
        reason,
    });
    Advance { skip, fire: Some(newest), next: timetable.next_after(newest) }
}

/// Returns a record that skips all scheduled times from `due` to `now`. Also returns the first
/// scheduled time after `now`.
pub fn skip_due(
    definition: &Definition,
    due: Timestamp,
    now: Timestamp,
    reason: SkipReason,
) -> (SkippedTimes, Option<Timestamp>) {
    let timetable = definition.timetable();
    let after_now = now.saturating_add(Span::from_micros(1));
    let (count, to) = timetable.times_before(due, after_now).unwrap_or((1, due));
    (SkippedTimes { from: due, to, count, reason }, timetable.next_after(to))
}

/// What the scheduler does with a scheduled time that is reached while an earlier run of the job is
/// active.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum WhenBusy {
    /// Records the scheduled time as skipped and continues with the next scheduled time.
    Skip(SkipReason),
    /// The scheduled time waits until the job has no active run.
    Wait,
    /// Ends the active run with the outcome `superseded`. The scheduled time waits until the
    /// superseded run has finished.
    Replace,
}

/// Decides what happens to the scheduled time `due` when no run can start because an earlier run is
/// active.
pub fn when_busy(
    definition: &Definition,
    due: Timestamp,
    now: Timestamp,
    retry_pending: bool,
) -> WhenBusy {
    // The next scheduled time of a periodic job depends on when the active run finishes.
    if definition.schedule.follows_its_end() {
        return WhenBusy::Wait;
    }
    match definition.overlap {
        _ if makes_up(definition, due, now) => WhenBusy::Wait,
        OverlapPolicy::Skip if retry_pending => WhenBusy::Skip(SkipReason::RetryPending),
        OverlapPolicy::Skip => WhenBusy::Skip(SkipReason::Overlap),
        OverlapPolicy::Queue | OverlapPolicy::Allow => WhenBusy::Wait,
        OverlapPolicy::Replace => WhenBusy::Replace,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::blackout::Blackout;
    use crate::job::Bounds;
    use crate::schedule::{Interval, Periodic, Schedule};

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn every(secs: u64, misfire: MisfirePolicy) -> Definition {
        let interval = Interval::new(Span::from_secs(secs), None).unwrap();
        Definition { misfire, ..Definition::noop(Schedule::Interval(interval)) }
    }

    fn due(due: Timestamp, now: Timestamp) -> DueTime {
        DueTime { due, now, waited: false, average: Span::ZERO, fired: 0 }
    }

    #[test]
    fn time_within_tolerance_fires() {
        let advanced = advance(&every(10, MisfirePolicy::Skip), due(at(100), at(155)));
        assert_eq!(advanced, Advance { skip: None, fire: Some(at(100)), next: Some(at(110)) });
    }

    #[test]
    fn last_policy_runs_the_newest_missed_time() {
        let advanced = advance(&every(10, MisfirePolicy::Last), due(at(100), at(200)));
        assert_eq!(advanced.fire, Some(at(200)));
        assert_eq!(advanced.next, Some(at(210)));
        let skip = advanced.skip.unwrap();
        assert_eq!((skip.from, skip.to, skip.count), (at(100), at(190), 10));
        assert_eq!(skip.reason, SkipReason::Misfire);
    }

    #[test]
    fn skip_policy_runs_no_missed_time() {
        let advanced = advance(&every(10, MisfirePolicy::Skip), due(at(100), at(200)));
        assert_eq!((advanced.fire, advanced.next), (None, Some(at(140))));
        assert_eq!(advanced.skip.map(|skip| skip.count), Some(4));
    }

    #[test]
    fn all_policy_skips_times_beyond_its_bound() {
        let advanced = advance(&every(1, MisfirePolicy::All), due(at(1000), at(1260)));
        assert_eq!(advanced.skip.map(|skip| (skip.count, skip.to)), Some((100, at(1099))));
        assert_eq!((advanced.fire, advanced.next), (Some(at(1100)), Some(at(1101))));
    }

    #[test]
    fn busy_job_skips_or_waits_by_its_overlap_policy() {
        let job = |overlap| Definition { overlap, ..every(10, MisfirePolicy::Last) };
        let when = |overlap, pending| when_busy(&job(overlap), at(100), at(101), pending);
        assert_eq!(when(OverlapPolicy::Skip, false), WhenBusy::Skip(SkipReason::Overlap));
        assert_eq!(when(OverlapPolicy::Skip, true), WhenBusy::Skip(SkipReason::RetryPending));
        assert_eq!(when(OverlapPolicy::Queue, false), WhenBusy::Wait);
        assert_eq!(when(OverlapPolicy::Replace, true), WhenBusy::Replace);
    }

    #[test]
    fn all_policy_runs_missed_times_one_after_the_other() {
        let job = every(10, MisfirePolicy::All);
        assert_eq!(when_busy(&job, at(100), at(900), false), WhenBusy::Wait);
    }

    #[test]
    fn newest_time_runs_after_an_earlier_run_held_up_several() {
        let waited = DueTime { waited: true, ..due(at(100), at(905)) };
        let advanced = advance(&every(10, MisfirePolicy::Skip), waited);
        assert_eq!((advanced.fire, advanced.next), (Some(at(900)), Some(at(910))));
        let skip = advanced.skip.unwrap();
        assert_eq!((skip.from, skip.to, skip.count), (at(100), at(890), 80));
        assert_eq!(skip.reason, SkipReason::Overlap);
        let all = advance(&every(10, MisfirePolicy::All), waited);
        assert_eq!((all.skip, all.fire), (None, Some(at(100))));
    }

    #[test]
    fn times_in_a_blackout_run_once_at_its_end() {
        let blackout =
            Blackout { start: jiff::civil::time(1, 0, 0, 0), end: jiff::civil::time(2, 0, 0, 0) };
        for misfire in [MisfirePolicy::Last, MisfirePolicy::Skip, MisfirePolicy::All] {
            let job = Definition { blackout_periods: vec![blackout], ..every(600, misfire) };
            let advanced = advance(&job, due(at(3600), at(7201)));
            assert_eq!((advanced.fire, advanced.next), (Some(at(7200)), Some(at(7800))));
            let skip = advanced.skip.unwrap();
            assert_eq!((skip.from, skip.to, skip.count), (at(3600), at(6600), 6));
            assert_eq!(skip.reason, SkipReason::Blackout);
        }
    }

    #[test]
    fn times_before_a_blackout_are_missed_and_times_in_it_are_not() {
        let blackout =
            Blackout { start: jiff::civil::time(1, 0, 0, 0), end: jiff::civil::time(2, 0, 0, 0) };
        let job =
            Definition { blackout_periods: vec![blackout], ..every(600, MisfirePolicy::Skip) };
        let first = advance(&job, due(at(1800), at(7201)));
        assert_eq!(first.skip.map(|skip| (skip.count, skip.to)), Some((3, at(3000))));
        assert_eq!((first.fire, first.next), (None, Some(at(3600))));
        let second = advance(&job, due(at(3600), at(7201)));
        assert_eq!(second.fire, Some(at(7200)));
    }

    #[test]
    fn old_blackout_is_made_up_for_with_one_run() {
        let hour = |hour| jiff::civil::time(hour, 0, 0, 0);
        let blackout = Blackout { start: hour(1), end: hour(2) };
        let job = Definition { blackout_periods: vec![blackout], ..every(600, MisfirePolicy::All) };
        let advanced = advance(&job, due(at(3600), at(18_000)));
        assert_eq!((advanced.fire, advanced.next), (Some(at(7200)), Some(at(7800))));
        assert_eq!(advanced.skip.map(|skip| (skip.count, skip.to)), Some((6, at(6600))));
    }

    #[test]
    fn periodic_job_recurs_until_its_end() {
        let periodic = Periodic::new(Span::from_secs(86_400), Some(Span::from_secs(3600))).unwrap();
        let bounds = Bounds { end_at: Some(at(72_000)), ..Bounds::default() };
        let job = Definition { bounds, ..Definition::noop(Schedule::Periodic(periodic)) };
        assert_eq!(advance(&job, due(at(100), at(100))).next, Some(at(72_000)));
        assert_eq!(advance(&job, due(at(72_000), at(72_000))).next, None);
    }

    #[test]
    fn job_without_remaining_runs_has_no_next_time() {
        let bounds = Bounds { max_runs: Some(3), ..Bounds::default() };
        let job = Definition { bounds, ..every(10, MisfirePolicy::Last) };
        let step = |fired| advance(&job, DueTime { fired, ..due(at(100), at(100)) });
        assert_eq!((step(1).fire, step(1).next), (Some(at(100)), Some(at(110))));
        assert_eq!((step(2).fire, step(2).next), (Some(at(100)), None));
    }

    #[test]
    fn delayed_periodic_job_runs_once() {
        let periodic = Periodic::new(Span::from_secs(60), None).unwrap();
        let job = Definition {
            misfire: MisfirePolicy::Skip,
            ..Definition::noop(Schedule::Periodic(periodic))
        };
        let advanced = advance(&job, due(at(100), at(90_000)));
        assert_eq!(advanced, Advance { skip: None, fire: Some(at(100)), next: Some(at(90_060)) });
        assert_eq!(when_busy(&job, at(100), at(101), true), WhenBusy::Wait);
    }

    #[test]
    fn long_overlap_is_one_record() {
        let job = every(10, MisfirePolicy::Last);
        let (skip, next) = skip_due(&job, at(100), at(155), SkipReason::Overlap);
        assert_eq!((skip.from, skip.to, skip.count), (at(100), at(150), 6));
        assert_eq!(next, Some(at(160)));
        let (skip, next) = skip_due(&job, at(100), at(150), SkipReason::Overlap);
        assert_eq!((skip.to, skip.count, next), (at(150), 6, Some(at(160))));
    }

    proptest! {
        /// Invariants I1 and I11: each scheduled time is fired or skipped exactly once, however
        /// late the scheduler is.
        #[test]
        fn every_time_is_fired_or_skipped_once_and_the_rhythm_is_kept(
            secs in 1_u64..90, now in 100_i64..5_000,
            policy in prop::sample::select(vec![
                MisfirePolicy::Last, MisfirePolicy::Skip, MisfirePolicy::All,
            ]),
        ) {
            let job = every(secs, policy);
            let (mut next_at, mut accounted) = (at(100), 0_u64);
            while next_at <= at(now) {
                let step = advance(&job, due(next_at, at(now)));
                if let Some(skip) = step.skip {
                    prop_assert_eq!(skip.from, next_at);
                    accounted += skip.count;
                }
                accounted += u64::from(step.fire.is_some());
                let next = step.next.unwrap();
                prop_assert!(next > next_at);
                if let Some(fired) = step.fire {
                    prop_assert!(fired >= next_at && fired < next && fired <= at(now));
                }
                next_at = next;
            }
            let (expected, _) = job.timetable().times_before(at(100), next_at).unwrap();
            prop_assert_eq!(accounted, expected);
        }
    }
}
