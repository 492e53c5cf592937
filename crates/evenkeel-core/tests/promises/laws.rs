//! Properties that hold for every start window and every condition.

use evenkeel_core::condition::{Condition, Facts, Reason, condition};
use evenkeel_core::{Definition, Past, Span, Timestamp};
use proptest::prelude::*;

use crate::strategies::{at, definition, history, minutes, moment};

const TICK: Span = Span::from_micros(1);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn window_opens_outside_blackouts_and_never_before_its_time(
        job in definition(), time in moment(), average in minutes(0..700), ago in minutes(1..9000),
    ) {
        let past = Past { reference: time.saturating_sub(ago), average };
        let window = job.window(time, &past);
        prop_assert!(window.can_start_by >= time);
        prop_assert!(!job.blackouts().is_in_blackout(window.can_start_by));
        // Without `avoid_blackout`, the job may start at the first moment outside blackouts.
        if !job.avoid_blackout {
            let before = window.can_start_by.saturating_sub(TICK);
            prop_assert!(window.can_start_by == time || job.blackouts().is_in_blackout(before));
        }
        let closes = job.may_start_until(window.can_start_by, average);
        prop_assert!(closes.is_none_or(|closes| closes >= window.can_start_by));
    }

    #[test]
    fn next_start_is_due_only_outside_blackouts(
        job in definition(), time in moment(), now in moment(), average in minutes(0..700),
    ) {
        let start = job.next_start(time, average, now);
        prop_assert!(start >= time);
        prop_assert!(!job.blackouts().is_in_blackout(start));
        if start > now {
            prop_assert_eq!(start, job.may_start_from(time.max(now), average));
        } else {
            prop_assert_eq!(job.may_start_from(now, average), now);
            prop_assert_eq!(start, job.may_start_from(time, average));
        }
    }

    #[test]
    fn job_that_avoids_blackouts_meets_none_if_possible(
        job in definition(), time in moment(), average in minutes(0..1500),
    ) {
        let Some(_) = job.blackouts().next_start(time) else { return Ok(()) };
        let job = Definition { avoid_blackout: true, ..job };
        let start = job.may_start_from(time, average);
        let longest = job.blackouts().longest_open().as_micros();
        let fits = average.as_micros() + 60_000_000 <= longest;
        // One second after a blackout, the next possible start is at most two days and two hours
        // away.
        let opening = job.blackouts().next_open(time).saturating_add(Span::from_secs(1));
        let soon = job.may_start_from(opening, average).since(opening);
        prop_assert!(soon <= Span::from_secs(2 * 86_400 + 7200));
        if longest > 60_000_000 {
            let tight = Span::from_micros(longest - 60_000_000);
            // A run that is one minute shorter than the longest gap between blackouts can also
            // start one second late, in at least one of four tries.
            let in_time = (0..4).scan(time, |from, _| {
                let late = job.may_start_from(*from, tight).saturating_add(Span::from_secs(1));
                *from = late;
                Some(job.may_start_from(late, tight) == late)
            });
            prop_assert!(in_time.into_iter().any(|in_time| in_time));
        }
        let over = start.saturating_add(average);
        let closing = job.blackouts().next_start(start).unwrap();
        prop_assert!(!fits || over <= closing);
        if !fits {
            prop_assert_eq!(start, job.blackouts().next_open(time));
        }
    }

    #[test]
    fn windows_move_forward_with_time_and_with_successful_runs(
        job in definition(), times in (moment(), moment()), references in (moment(), moment()),
        average in minutes(0..700),
    ) {
        let (early, late) = (times.0.min(times.1), times.0.max(times.1));
        prop_assert!(job.may_start_from(early, average) <= job.may_start_from(late, average));
        let (older, newer) = (references.0.min(references.1), references.0.max(references.1));
        let Some(time) = job.timetable().next_after(newer) else { return Ok(()) };
        prop_assert!(job.must_be_over_by(time, older) <= job.must_be_over_by(time, newer));
        prop_assert!(job.must_be_over_by(time, newer) > newer);
    }

    #[test]
    fn blackout_moves_the_earliest_start_and_never_the_latest(
        job in definition(), time in moment(), ago in minutes(1..9000), average in minutes(0..100),
    ) {
        let past = Past { reference: time.saturating_sub(ago), average };
        let mut open = job.clone();
        open.blackout_periods.clear();
        let (dark, open) = (job.window(time, &past), open.window(time, &past));
        prop_assert_eq!(dark.should_start_by, open.should_start_by);
        prop_assert_eq!(open.can_start_by, time);
    }

    #[test]
    fn times_are_in_order_and_counted_correctly(
        job in definition(), from in moment(), n in 1_usize..60,
    ) {
        let timetable = job.timetable();
        let Some(first) = timetable.first_after(from) else { return Ok(()) };
        prop_assert!(first >= from);
        let times: Vec<Timestamp> =
            std::iter::successors(Some(first), |time| timetable.next_after(*time)).take(n).collect();
        prop_assert!(times.is_sorted_by(|one, other| one < other));
        if times.len() < n || job.schedule.follows_its_end() {
            return Ok(());
        }
        for (index, time) in times.iter().enumerate() {
            prop_assert_eq!(timetable.nth_after(first, index as u64, Timestamp::MAX), *time);
            let counted = timetable.times_before(first, time.saturating_add(TICK));
            prop_assert_eq!(counted, Some((index as u64 + 1, *time)));
        }
    }

    #[test]
    fn condition_without_events_only_gets_worse_at_the_announced_time(
        job in definition(), now in moment(), created in minutes(1..9000),
        later in minutes(1..9000), running in prop::option::of(minutes(0..300)),
        history in moment().prop_flat_map(history),
    ) {
        let since = at(crate::strategies::START).saturating_sub(created);
        let next_at = job.timetable().next_after(now);
        let running_since = running.map(|ago| now.saturating_sub(ago));
        let facts = Facts {
            definition: &job, history: &history, since, active: true, next_at,
            last_fired_at: None, live: running.is_some(), running_since,
        };
        let judged = |moment: Timestamp| condition(&facts, moment);
        let first: Condition = judged(now);
        let last = judged(now.saturating_add(later));
        // Without an event, only the condition of a job whose only run failed improves.
        let is_known = (first.reason, last.reason) == (Reason::GivenUp, Reason::FinishedFailed);
        prop_assert!(first.level() <= last.level() || is_known);
        match first.changes_at {
            None => prop_assert_eq!(first.reason, last.reason),
            Some(change) => {
                prop_assert!(change > now);
                prop_assert_eq!(first.reason, judged(change.saturating_sub(TICK)).reason);
                prop_assert_ne!(first, judged(change));
            }
        }
    }
}
