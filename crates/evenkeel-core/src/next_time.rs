//! Which next time a job gets when somebody sets it going again.

use crate::attempt::Outcome;
use crate::job::Definition;
use crate::schedule::Schedule;
use crate::time::{Span, Timestamp};

/// What has become of a job so far.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ScheduleState {
    /// How many of its regular times were fired.
    pub fired: u64,
    /// The last of them that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    /// Chains of attempts that are not over.
    pub live: u32,
    /// How its last attempt ended.
    pub last_outcome: Option<Outcome>,
    /// When somebody last decided when it runs, if that is known.
    pub since: Option<Timestamp>,
}

/// The next regular time of a job that is resumed at `now`: placed afresh, so that what passed
/// while it was paused is not missed. A job that runs once does so if it has not; one whose run the
/// pause has withdrawn has not. `choose` says which time after a moment it is.
pub fn next_after_resume(
    definition: &Definition,
    so_far: ScheduleState,
    now: Timestamp,
    choose: impl FnOnce(Timestamp) -> Option<Timestamp>,
) -> Option<Timestamp> {
    if let Schedule::Once(once) = &definition.schedule {
        // It was given another time since it last ran: a later one, or to run now instead of what
        // it did before.
        let later = once.at.is_some_and(|at| so_far.last_fired_at.is_none_or(|last| last < at));
        let anew =
            so_far.last_fired_at.is_some_and(|last| so_far.since.is_some_and(|it| it > last));
        let is_other = later || (once.at.is_none() && anew);
        let withdrawn = matches!(so_far.last_outcome, None | Some(Outcome::Cancelled));
        let has_run = so_far.fired > 0 && !is_other && !(withdrawn && so_far.live == 0);
        return if has_run { None } else { chosen(so_far, now, choose) };
    }
    begun_anew(definition, so_far, now, choose)
}

/// The next regular time of a job that is tried again at `now` after its failures had stopped it;
/// `choose` says which time after a moment it is.
pub fn next_after_retry(
    definition: &Definition,
    so_far: ScheduleState,
    now: Timestamp,
    choose: impl FnOnce(Timestamp) -> Option<Timestamp>,
) -> Option<Timestamp> {
    if matches!(definition.schedule, Schedule::Once(_)) {
        return None;
    }
    begun_anew(definition, so_far, now, choose)
}

/// The next regular time of a job whose schedule has changed at `now`. A job that runs once does so
/// again: its new time is another one. `choose` says which time after a moment it is.
pub fn next_after_change(
    definition: &Definition,
    so_far: ScheduleState,
    now: Timestamp,
    choose: impl FnOnce(Timestamp) -> Option<Timestamp>,
) -> Option<Timestamp> {
    begun_anew(definition, so_far, now, choose)
}

fn begun_anew(
    definition: &Definition,
    so_far: ScheduleState,
    now: Timestamp,
    choose: impl FnOnce(Timestamp) -> Option<Timestamp>,
) -> Option<Timestamp> {
    if definition.bounds.max_runs.is_some_and(|max| so_far.fired >= max) {
        return None;
    }
    chosen(so_far, now, choose)
}

/// No time is fired twice, not even by a clock that was set back, nor by whoever chooses.
fn chosen(
    so_far: ScheduleState,
    now: Timestamp,
    choose: impl FnOnce(Timestamp) -> Option<Timestamp>,
) -> Option<Timestamp> {
    let tick = Span::from_micros(1);
    let last = so_far.last_fired_at;
    let after = last.map_or(now, |last| now.max(last.saturating_add(tick)));
    choose(after).filter(|time| last.is_none_or(|last| *time > last))
}

#[cfg(test)]
mod tests {
    use super::{Definition, Outcome, Schedule, ScheduleState, Span, Timestamp};
    use crate::job::Bounds;
    use crate::schedule::{Interval, Once};

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

    fn next_after_resume(
        definition: &Definition,
        so_far: ScheduleState,
        now: Timestamp,
    ) -> Option<Timestamp> {
        super::next_after_resume(definition, so_far, now, |after| {
            definition.timetable().first_after(after)
        })
    }

    fn next_after_retry(
        definition: &Definition,
        so_far: ScheduleState,
        now: Timestamp,
    ) -> Option<Timestamp> {
        super::next_after_retry(definition, so_far, now, |after| {
            definition.timetable().first_after(after)
        })
    }

    fn hourly() -> Definition {
        let every = Interval::new(Span::from_secs(3600), None).unwrap();
        Definition::noop(Schedule::Interval(every))
    }

    #[test]
    fn a_recurring_job_goes_on_after_now_and_after_what_it_has_fired() {
        let hour = Span::from_secs(3600);
        assert_eq!(
            next_after_resume(&hourly(), ScheduleState::default(), NOW),
            Some(NOW.saturating_add(hour))
        );
        let ahead = NOW.saturating_add(Span::from_secs(10));
        let fired =
            ScheduleState { fired: 1, last_fired_at: Some(ahead), ..ScheduleState::default() };
        assert!(next_after_resume(&hourly(), fired, NOW).unwrap() > ahead.saturating_add(hour));
    }

    #[test]
    fn a_time_that_was_fired_is_not_chosen_whoever_chooses() {
        let fired =
            ScheduleState { fired: 1, last_fired_at: Some(NOW), ..ScheduleState::default() };
        for choice in [NOW, NOW.saturating_sub(Span::from_secs(1))] {
            for chosen in [
                super::next_after_resume(&hourly(), fired, NOW, |_| Some(choice)),
                super::next_after_retry(&hourly(), fired, NOW, |_| Some(choice)),
                super::next_after_change(&hourly(), fired, NOW, |_| Some(choice)),
            ] {
                assert_eq!(chosen, None);
            }
        }
    }

    #[test]
    fn a_job_that_has_had_all_its_runs_gets_no_more() {
        let bounds = Bounds { max_runs: Some(3), ..Bounds::default() };
        let limited = Definition { bounds, ..hourly() };
        let so_far = ScheduleState { fired: 3, ..ScheduleState::default() };
        assert_eq!(next_after_resume(&limited, so_far, NOW), None);
        assert_eq!(next_after_retry(&limited, so_far, NOW), None);
        assert!(next_after_resume(&limited, ScheduleState { fired: 2, ..so_far }, NOW).is_some());
    }

    #[test]
    fn a_job_that_runs_once_does_so_once() {
        let once = Definition::noop(Schedule::Once(Once::NOW));
        let fired = ScheduleState { fired: 1, ..ScheduleState::default() };
        let after = |outcome| ScheduleState { last_outcome: Some(outcome), ..fired };
        assert_eq!(next_after_resume(&once, ScheduleState::default(), NOW), Some(NOW));
        assert_eq!(next_after_resume(&once, after(Outcome::Cancelled), NOW), Some(NOW));
        let at_once = ScheduleState { last_fired_at: Some(NOW), ..after(Outcome::Cancelled) };
        assert!(next_after_resume(&once, at_once, NOW) > Some(NOW), "no time fires twice");
        assert_eq!(next_after_resume(&once, after(Outcome::Failed), NOW), None);
        assert_eq!(next_after_resume(&once, ScheduleState { live: 1, ..fired }, NOW), None);
        assert_eq!(next_after_retry(&once, after(Outcome::Failed), NOW), None);
        // To run once, now, instead of what it did before, is another run, too.
        let ran = ScheduleState { last_fired_at: Some(NOW), ..after(Outcome::Completed) };
        let later = NOW.saturating_add(Span::from_secs(9));
        assert_eq!(
            next_after_resume(&once, ScheduleState { since: Some(NOW), ..ran }, later),
            None
        );
        let changed =
            ScheduleState { since: Some(NOW.saturating_add(Span::from_micros(1))), ..ran };
        assert_eq!(next_after_resume(&once, changed, later), Some(later));
        // Another time is another run.
        let later = NOW.saturating_add(Span::from_secs(60));
        let moved = Definition::noop(Schedule::Once(Once { at: Some(later), tolerance: None }));
        let done = ScheduleState { last_fired_at: Some(NOW), ..after(Outcome::Completed) };
        assert_eq!(next_after_resume(&moved, done, NOW), Some(later));
        assert_eq!(
            next_after_resume(&moved, ScheduleState { last_fired_at: Some(later), ..done }, NOW),
            None
        );
    }
}
