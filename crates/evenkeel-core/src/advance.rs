//! What to do with a job whose time has come.

use crate::job::Definition;
use crate::misfire::MisfirePolicy;
use crate::overlap::OverlapPolicy;
use crate::time::{Span, Timestamp};

/// Times that will not run, kept as one record.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SkippedTimes {
    /// The first of them.
    pub from: Timestamp,
    /// The last of them.
    pub to: Timestamp,
    /// How many there are.
    pub count: u64,
    /// Why.
    pub reason: SkipReason,
}

/// Why a scheduled time did not run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum SkipReason {
    /// Too late, by the misfire policy.
    Misfire,
    /// An earlier run was still going on.
    Overlap,
    /// An earlier run was waiting for its retry.
    RetryPending,
    /// A run with the same deduplication key was waiting.
    Dedup,
}

impl SkipReason {
    /// All of them, in the order of their stored numbers.
    pub const ALL: [Self; 4] = [Self::Misfire, Self::Overlap, Self::RetryPending, Self::Dedup];

    /// The word users see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Misfire => "misfire",
            Self::Overlap => "overlap",
            Self::RetryPending => "retry_pending",
            Self::Dedup => "dedup",
        }
    }
}

/// What becomes of a due job: some times skipped, one fired, and the next regular time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Advance {
    /// Missed times to record.
    pub skip: Option<SkippedTimes>,
    /// The time to fire, if one is left.
    pub fire: Option<Timestamp>,
    /// The next regular time, if there is one.
    pub next: Option<Timestamp>,
}

/// Decides what becomes of a job whose next time `due` is not after `now`.
///
/// A time that has `waited` for an earlier run of its job was seen in time: it is late, not missed.
pub fn advance(definition: &Definition, due: Timestamp, now: Timestamp, waited: bool) -> Advance {
    let schedule = &definition.schedule;
    let plain = Advance { skip: None, fire: Some(due), next: schedule.next_after(due) };
    if waited {
        return plain;
    }
    let missed_before = now.saturating_sub(definition.misfire_after);
    let Some((count, newest)) = schedule.times_before(due, missed_before) else {
        return plain;
    };
    let skipped = |count, to| SkippedTimes { from: due, to, count, reason: SkipReason::Misfire };
    match definition.misfire {
        MisfirePolicy::Skip => Advance {
            skip: Some(skipped(count, newest)),
            fire: None,
            next: schedule.next_after(newest),
        },
        MisfirePolicy::Last if count > 1 => Advance {
            skip: Some(skipped(count - 1, nth_time(definition, due, count - 2))),
            fire: Some(newest),
            next: schedule.next_after(newest),
        },
        MisfirePolicy::All if count > MisfirePolicy::ALL_MAX => {
            let dropped = count - MisfirePolicy::ALL_MAX;
            let first_kept = nth_time(definition, due, dropped);
            Advance {
                skip: Some(skipped(dropped, nth_time(definition, due, dropped - 1))),
                fire: Some(first_kept),
                next: schedule.next_after(first_kept),
            }
        }
        MisfirePolicy::Last | MisfirePolicy::All => plain,
    }
}

/// The `n`-th regular time after `due`, counting `due` as the zeroth.
fn nth_time(definition: &Definition, due: Timestamp, n: u64) -> Timestamp {
    match &definition.schedule {
        crate::Schedule::Once(_) => due,
        crate::Schedule::Interval(every) => due.saturating_add(every.every().saturating_mul(n)),
    }
}

/// Skips all times from `due` to `now`, as one record. Says what follows them.
pub fn skip_due(
    definition: &Definition,
    due: Timestamp,
    now: Timestamp,
    reason: SkipReason,
) -> (SkippedTimes, Option<Timestamp>) {
    let after_now = now.saturating_add(Span::from_micros(1));
    let (count, to) = definition.schedule.times_before(due, after_now).unwrap_or((1, due));
    (SkippedTimes { from: due, to, count, reason }, definition.schedule.next_after(to))
}

/// What is done with a due time when the store says that the job is still busy.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum WhenBusy {
    /// Record it as skipped and go on with the next time.
    Skip(SkipReason),
    /// Leave it due until the job is idle.
    Wait,
}

/// Decides what becomes of `due`, which cannot start because the job is busy.
pub fn when_busy(
    definition: &Definition,
    due: Timestamp,
    now: Timestamp,
    retry_pending: bool,
) -> WhenBusy {
    let missed = due < now.saturating_sub(definition.misfire_after);
    let makes_up = missed && definition.misfire == MisfirePolicy::All;
    match definition.overlap {
        OverlapPolicy::Skip if !makes_up => WhenBusy::Skip(if retry_pending {
            SkipReason::RetryPending
        } else {
            SkipReason::Overlap
        }),
        OverlapPolicy::Skip | OverlapPolicy::Queue | OverlapPolicy::Allow => WhenBusy::Wait,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::{Interval, Schedule};

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn every(secs: u64, misfire: MisfirePolicy) -> Definition {
        let interval = Interval::new(Span::from_secs(secs), None).unwrap();
        Definition { misfire, ..Definition::noop(Schedule::Interval(interval)) }
    }

    #[test]
    fn a_time_that_is_a_little_late_just_fires() {
        let advanced = advance(&every(10, MisfirePolicy::Skip), at(100), at(155), false);
        assert_eq!(advanced, Advance { skip: None, fire: Some(at(100)), next: Some(at(110)) });
    }

    #[test]
    fn of_missed_times_the_last_policy_runs_the_newest() {
        let advanced = advance(&every(10, MisfirePolicy::Last), at(100), at(200), false);
        assert_eq!(advanced.fire, Some(at(130)));
        assert_eq!(advanced.next, Some(at(140)));
        let skip = advanced.skip.unwrap();
        assert_eq!((skip.from, skip.to, skip.count), (at(100), at(120), 3));
    }

    #[test]
    fn the_skip_policy_runs_none_of_them() {
        let advanced = advance(&every(10, MisfirePolicy::Skip), at(100), at(200), false);
        assert_eq!((advanced.fire, advanced.next), (None, Some(at(140))));
        assert_eq!(advanced.skip.map(|skip| skip.count), Some(4));
    }

    #[test]
    fn the_all_policy_drops_what_is_beyond_its_bound() {
        let advanced = advance(&every(1, MisfirePolicy::All), at(1000), at(1260), false);
        assert_eq!(advanced.skip.map(|skip| (skip.count, skip.to)), Some((100, at(1099))));
        assert_eq!((advanced.fire, advanced.next), (Some(at(1100)), Some(at(1101))));
    }

    #[test]
    fn a_busy_job_skips_or_waits_as_its_policy_says() {
        let job = |overlap| Definition { overlap, ..every(10, MisfirePolicy::Last) };
        let when = |overlap, pending| when_busy(&job(overlap), at(100), at(101), pending);
        assert_eq!(when(OverlapPolicy::Skip, false), WhenBusy::Skip(SkipReason::Overlap));
        assert_eq!(when(OverlapPolicy::Skip, true), WhenBusy::Skip(SkipReason::RetryPending));
        assert_eq!(when(OverlapPolicy::Queue, false), WhenBusy::Wait);
    }

    #[test]
    fn missed_times_that_must_all_run_wait_for_each_other() {
        let job = every(10, MisfirePolicy::All);
        assert_eq!(when_busy(&job, at(100), at(900), false), WhenBusy::Wait);
    }

    #[test]
    fn a_time_that_waited_for_an_earlier_run_is_not_missed() {
        let advanced = advance(&every(10, MisfirePolicy::Skip), at(100), at(900), true);
        assert_eq!((advanced.skip, advanced.fire), (None, Some(at(100))));
    }

    #[test]
    fn a_long_overlap_is_one_record() {
        let job = every(10, MisfirePolicy::Last);
        let (skip, next) = skip_due(&job, at(100), at(155), SkipReason::Overlap);
        assert_eq!((skip.from, skip.to, skip.count), (at(100), at(150), 6));
        assert_eq!(next, Some(at(160)));
        let (skip, next) = skip_due(&job, at(100), at(150), SkipReason::Overlap);
        assert_eq!((skip.to, skip.count, next), (at(150), 6, Some(at(160))));
    }

    proptest! {
        /// I1 and I11: walking on from any time, each regular time is fired or skipped once.
        #[test]
        fn every_time_is_accounted_for_once_and_the_rhythm_is_kept(
            secs in 1_u64..90, now in 100_i64..5_000,
            policy in prop::sample::select(vec![
                MisfirePolicy::Last, MisfirePolicy::Skip, MisfirePolicy::All,
            ]),
        ) {
            let job = every(secs, policy);
            let (mut due, mut accounted) = (at(100), 0_u64);
            while due <= at(now) {
                let step = advance(&job, due, at(now), false);
                if let Some(skip) = step.skip {
                    prop_assert_eq!(skip.from, due);
                    accounted += skip.count;
                }
                accounted += u64::from(step.fire.is_some());
                let next = step.next.unwrap();
                prop_assert!(next > due);
                if let Some(fired) = step.fire {
                    prop_assert!(fired >= due && fired < next && fired <= at(now));
                }
                due = next;
            }
            let (expected, _) = job.schedule.times_before(at(100), due).unwrap();
            prop_assert_eq!(accounted, expected);
        }
    }
}
