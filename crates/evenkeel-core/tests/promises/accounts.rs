//! Checks that after any downtime, each scheduled time is fired or skipped exactly once, and that
//! the misfire policy limits how many scheduled times are fired.

use evenkeel_core::Definition;
use evenkeel_core::advance::{DueTime, advance};
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::{Span, Timestamp};
use proptest::prelude::*;

use crate::strategies::{definition, minutes, moment};

const TICK: Span = Span::from_micros(1);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn each_time_is_fired_or_skipped_once_and_few_are_fired(
        job in definition(), from in moment(), down in minutes(0..43_200),
        average in minutes(0..100), waited in any::<bool>(),
        misfire in prop::sample::select(vec![
            MisfirePolicy::Last, MisfirePolicy::Skip, MisfirePolicy::All,
        ]),
    ) {
        let job = Definition { misfire, ..job };
        if job.schedule.follows_its_end() || !job.schedule.recurs() {
            return Ok(());
        }
        let timetable = job.timetable();
        let Some(first) = timetable.first_after(from) else { return Ok(()) };
        // The engine calls `advance` only when the job may start, never before the scheduled time.
        let now = job.may_start_from(first.saturating_add(down), average);
        let (mut due, mut accounted, mut fired) = (first, 0_u64, 0_u64);
        while due <= now {
            let step = advance(&job, DueTime { due, now, waited, average, fired });
            let mut newest = due;
            if let Some(skip) = step.skip {
                prop_assert_eq!(skip.from, due);
                let counted = timetable.times_before(skip.from, skip.to.saturating_add(TICK));
                prop_assert_eq!(counted, Some((skip.count, skip.to)));
                (accounted, newest) = (accounted + skip.count, skip.to);
            }
            if let Some(time) = step.fire {
                prop_assert!(time <= now);
                let follows = if step.skip.is_some() { timetable.next_after(newest) } else { Some(due) };
                prop_assert_eq!(follows, Some(time));
                (accounted, fired, newest) = (accounted + 1, fired + 1, time);
            }
            prop_assert_eq!(step.next, timetable.next_after(newest));
            due = step.next.unwrap_or(Timestamp::MAX);
        }
        let all = timetable.times_before(first, now.saturating_add(TICK)).map_or(0, |it| it.0);
        prop_assert_eq!(accounted, all);
        // Scheduled times within the last `misfire_after` do not count as missed. The misfire
        // policy decides for how many missed scheduled times the job runs.
        let in_time = timetable.times_before(first, now.saturating_sub(job.misfire_after));
        let on_time = all - in_time.map_or(0, |(missed, _)| missed);
        let most = match misfire {
            MisfirePolicy::Last | MisfirePolicy::Skip => on_time + 1,
            MisfirePolicy::All => on_time + MisfirePolicy::ALL_MAX + 1,
        };
        prop_assert!(fired <= most, "{} fired, {} at most", fired, most);
    }
}
