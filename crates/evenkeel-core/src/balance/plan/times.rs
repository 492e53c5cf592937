//! Computes the next scheduled time of a job that a rebalance moves.

use super::Placement;
use crate::balance::hits::micros;
use crate::balance::moves::Move;
use crate::time::{Span, Timestamp};

/// Returns the next scheduled time of a job that is moved so that its run times modulo `every` are
/// `rest`. Returns `None` if the job would have to wait too long for its next run.
///
/// The new scheduled time is the possible time closest to one interval after the last run, so the
/// gap between the two runs is half an interval to one and a half intervals. If the closest time is
/// not after `quiet_until`, the first possible time after `quiet_until` is taken, as long as the
/// gap between the two runs is below two intervals. So moving a job repeatedly never postpones its
/// next run for ever. For a job that never ran or has not run for a long time, the new scheduled
/// time is the possible time closest to its current next scheduled time.
pub(super) fn time_on(
    job: &Placement,
    every: Span,
    rest: i64,
    quiet_until: Timestamp,
) -> Option<Timestamp> {
    let every = micros(every);
    let next = job.next_at.as_micros();
    let last = job.last_fired_at.map(Timestamp::as_micros);
    let (from, until) = match last {
        Some(last) if next < last + 2 * every => (last + (every + 1) / 2, last + 2 * every),
        _ => (next - every / 2, next + every),
    };
    let from = from.max(quiet_until.as_micros() + 1);
    let at = from + (rest - from).rem_euclid(every);
    (at < until.min(Timestamp::MAX.as_micros())).then_some(Timestamp::from_micros(at))
}

/// Returns the next scheduled time of a job for which the move `done` is undone, if its next
/// scheduled time is `next_at` now. Returns `None` if the job is already due, or if its start times
/// were changed after the move.
///
/// If the job has not run since the move and its old scheduled time is still in the future, the
/// result is the old scheduled time. Otherwise, the result is a whole number of intervals away from
/// the old scheduled time, later than `now`, and as close to `next_at` as possible.
pub fn moved_back(
    done: &Move,
    every: Span,
    next_at: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    let every = micros(every);
    let (old, next) = (done.old_at.as_micros(), next_at.as_micros());
    if every == 0 || next_at <= now || (next - done.new_at.as_micros()) % every != 0 {
        return None;
    }
    if next_at == done.new_at && done.old_at > now {
        return Some(done.old_at);
    }
    let from = (next - (every - 1) / 2).max(now.as_micros() + 1);
    let at = from + (old - from).rem_euclid(every);
    (at <= Timestamp::MAX.as_micros()).then_some(Timestamp::from_micros(at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::balance::load_profile::LoadProfileKey;
    use crate::balance::plan::samples::{NOON, placement};
    use crate::ids::JobNo;

    fn after(secs: i64) -> Timestamp {
        Timestamp::from_micros(NOON.as_micros() + secs * 1_000_000)
    }

    #[test]
    fn closest_time_to_the_old_one_is_taken() {
        let every = Span::from_secs(86_400);
        let job = placement(1, 86_400, after(50_000));
        for shift in [-43_200, -43_199, -3600, -1, 0, 1, 3600, 43_199] {
            let rest = after(50_000 + shift).as_micros().rem_euclid(micros(every));
            assert_eq!(time_on(&job, every, rest, NOON), Some(after(50_000 + shift)));
        }
    }

    #[test]
    fn time_that_is_too_near_comes_an_interval_later() {
        let every = Span::from_secs(86_400);
        let job = placement(1, 86_400, after(3600));
        let rest = after(1800).as_micros().rem_euclid(micros(every));
        assert_eq!(time_on(&job, every, rest, after(1800)), Some(after(1800 + 86_400)));
        assert_eq!(time_on(&job, every, rest, after(1799)), Some(after(1800)));
    }

    #[test]
    fn repeated_moves_do_not_postpone_a_run_for_ever() {
        let every = Span::from_secs(3600);
        let mut job = placement(1, 3600, after(1000));
        let last = job.last_fired_at.unwrap();
        for n in 0..50 {
            let rest = after(n * 1234).as_micros().rem_euclid(micros(every));
            if let Some(at) = time_on(&job, every, rest, NOON) {
                job.next_at = at;
            }
            assert!(job.next_at.since(last) < Span::from_secs(7200));
        }
    }

    proptest! {
        #[test]
        fn gap_is_between_half_an_interval_and_two(
            every in 1_i64..40_000_000_000_000,
            next in 1_i64..1 << 45,
            rest in 0_i64..40_000_000_000_000,
            quiet in 0_i64..1 << 45,
        ) {
            let next = next.max(every);
            let mut job = placement(1, 86_400, Timestamp::from_micros(next));
            job.last_fired_at = Some(Timestamp::from_micros(next - every));
            let (rest, quiet) = (rest % every, Timestamp::from_micros(quiet % next));
            let span = Span::from_micros(every.cast_unsigned());
            let at = time_on(&job, span, rest, quiet).expect("nothing to wait for");
            prop_assert_eq!(at.as_micros().rem_euclid(every), rest);
            prop_assert!(at > quiet);
            let gap = at.as_micros() - (next - every);
            prop_assert!(2 * gap >= every && gap < 2 * every, "{} of {}", gap, every);
            let pushed = Timestamp::from_micros(at.as_micros() - every) <= quiet;
            prop_assert!(pushed || 2 * gap <= 3 * every);
        }

        #[test]
        fn new_time_is_after_the_last_run_and_near_for_any_past(
            every in 1_i64..1 << 42,
            last in prop::option::of(0_i64..1 << 45),
            gap in 1_i64..1 << 44,
            rest in 0_i64..1 << 42,
            quiet in 0_i64..1 << 45,
        ) {
            let next = last.unwrap_or(0) + gap;
            let mut job = placement(1, 86_400, Timestamp::from_micros(next));
            job.last_fired_at = last.map(Timestamp::from_micros);
            let quiet = Timestamp::from_micros(quiet % next);
            let span = Span::from_micros(every.cast_unsigned());
            if let Some(at) = time_on(&job, span, rest % every, quiet) {
                let at = at.as_micros();
                prop_assert!(at > quiet.as_micros());
                prop_assert!(last.is_none_or(|last| 2 * (at - last) >= every));
                prop_assert!(at < next + 2 * every);
                prop_assert!(last.is_none_or(|last| gap >= 2 * every || at < last + 2 * every));
            }
        }

        #[test]
        fn undo_restores_the_old_phase_after_any_number_of_runs(
            every in 2_i64..1 << 42,
            old in 1_i64..1 << 45,
            rest in 0_i64..1 << 42,
            fires in 0_i64..20,
            early in 1_i64..1 << 42,
        ) {
            let old = old.max(every);
            let span = Span::from_micros(every.cast_unsigned());
            let mut job = placement(1, 86_400, Timestamp::from_micros(old));
            job.last_fired_at = Some(Timestamp::from_micros(old - every));
            let before = Timestamp::from_micros(old - 1 - early % every);
            let new_at = time_on(&job, span, rest % every, before).expect("a time");
            let done = Move {
                job: JobNo(1),
                generation: 1,
                old_at: job.next_at,
                new_at,
                profile: LoadProfileKey(1),
            };
            let next = new_at.as_micros() + fires * every;
            let last = if fires > 0 { next - every } else { old - every };
            // `now` is any time between the last run and the next scheduled time, or a little
            // later.
            let now = (last.max(before.as_micros()) + early % every).max(0);
            let now = Timestamp::from_micros(now);
            let next_at = Timestamp::from_micros(next);
            let Some(back) = moved_back(&done, span, next_at, now) else {
                // Undoing a move does not change a due job, because the scheduler is about to fire
                // or skip its scheduled time.
                prop_assert!(next_at <= now);
                return Ok(());
            };
            prop_assert!(next_at > now);
            prop_assert_eq!((back.as_micros() - old).rem_euclid(every), 0);
            prop_assert!(back > now);
            prop_assert!(2 * (back.as_micros() - last) >= every);
            prop_assert!(fires > 0 || now >= done.old_at || back == done.old_at);
        }

        #[test]
        fn undo_leaves_a_job_with_another_phase_alone(
            every in 2_i64..1 << 42, off in 1_i64..1 << 42, fires in 0_i64..20,
        ) {
            prop_assume!(off % every != 0);
            let done = Move {
                job: JobNo(1),
                generation: 1,
                old_at: NOON,
                new_at: after(60),
                profile: LoadProfileKey(1),
            };
            let next = after(60).as_micros() + fires * every + off;
            let span = Span::from_micros(every.cast_unsigned());
            prop_assert_eq!(moved_back(&done, span, Timestamp::from_micros(next), NOON), None);
        }
    }
}
