//! Computes the next scheduled time of a job that is resumed, retried or rescheduled.

use crate::attempt::Outcome;
use crate::job::Definition;
use crate::schedule::Schedule;
use crate::time::{Span, Timestamp};

/// The firing history of a job.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ScheduleState {
    /// Number of scheduled times that have been fired.
    pub fired: u64,
    /// The last scheduled time that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    /// Active runs.
    pub live: u32,
    pub last_outcome: Option<Outcome>,
    /// Time at which the schedule was last changed, if known.
    pub since: Option<Timestamp>,
}

/// Returns the next scheduled time of a job that is resumed at `now`. The start time is chosen
/// anew, so scheduled times that passed during the pause do not count as missed. A job that runs
/// once gets a scheduled time only if it has not run yet. A run that the pause cancelled does not
/// count as a run. `choose(moment)` returns a start time after `moment`.
pub fn next_after_resume(
    definition: &Definition,
    state: ScheduleState,
    now: Timestamp,
    choose: impl FnOnce(Timestamp) -> Option<Timestamp>,
) -> Option<Timestamp> {
    if let Schedule::Once(once) = &definition.schedule {
        // `is_other` is true if the scheduled time was changed since the last run.
        let later = once.at.is_some_and(|at| state.last_fired_at.is_none_or(|last| last < at));
        let anew = state.last_fired_at.is_some_and(|last| state.since.is_some_and(|it| it > last));
        let is_other = later || (once.at.is_none() && anew);
        let withdrawn = matches!(state.last_outcome, None | Some(Outcome::Cancelled));
        let has_run = state.fired > 0 && !is_other && !(withdrawn && state.live == 0);
        return if has_run { None } else { chosen(state, now, choose) };
    }
    next_after_change(definition, state, now, choose)
}

/// Returns the next scheduled time of a job that had stopped after failures and is retried at
/// `now`. `choose(moment)` returns a start time after `moment`.
pub fn next_after_retry(
    definition: &Definition,
    state: ScheduleState,
    now: Timestamp,
    choose: impl FnOnce(Timestamp) -> Option<Timestamp>,
) -> Option<Timestamp> {
    if matches!(definition.schedule, Schedule::Once(_)) {
        return None;
    }
    next_after_change(definition, state, now, choose)
}

/// Returns the next scheduled time of a job whose schedule has changed at `now`. A job that runs
/// once runs again if its scheduled time is changed. `choose(moment)` returns a start time after
/// `moment`.
pub fn next_after_change(
    definition: &Definition,
    state: ScheduleState,
    now: Timestamp,
    choose: impl FnOnce(Timestamp) -> Option<Timestamp>,
) -> Option<Timestamp> {
    if definition.bounds.max_runs.is_some_and(|max| state.fired >= max) {
        return None;
    }
    chosen(state, now, choose)
}

/// Calls `choose`, but never returns a scheduled time that was already fired, even if the clock was
/// set back.
fn chosen(
    state: ScheduleState,
    now: Timestamp,
    choose: impl FnOnce(Timestamp) -> Option<Timestamp>,
) -> Option<Timestamp> {
    let tick = Span::from_micros(1);
    let last = state.last_fired_at;
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
        state: ScheduleState,
        now: Timestamp,
    ) -> Option<Timestamp> {
        super::next_after_resume(definition, state, now, |after| {
            definition.timetable().first_after(after)
        })
    }

    fn next_after_retry(
        definition: &Definition,
        state: ScheduleState,
        now: Timestamp,
    ) -> Option<Timestamp> {
        super::next_after_retry(definition, state, now, |after| {
            definition.timetable().first_after(after)
        })
    }

    fn hourly() -> Definition {
        let every = Interval::new(Span::from_secs(3600), None).unwrap();
        Definition::noop(Schedule::Interval(every))
    }

    #[test]
    fn resumed_job_continues_after_now_and_after_its_last_fired_time() {
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
    fn fired_time_is_never_chosen_again() {
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
    fn job_with_all_its_runs_gets_no_next_time() {
        let bounds = Bounds { max_runs: Some(3), ..Bounds::default() };
        let limited = Definition { bounds, ..hourly() };
        let state = ScheduleState { fired: 3, ..ScheduleState::default() };
        assert_eq!(next_after_resume(&limited, state, NOW), None);
        assert_eq!(next_after_retry(&limited, state, NOW), None);
        assert!(next_after_resume(&limited, ScheduleState { fired: 2, ..state }, NOW).is_some());
    }

    #[test]
    fn one_time_job_runs_once() {
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
        // Changing a schedule to "run once, now" causes another run.
        let ran = ScheduleState { last_fired_at: Some(NOW), ..after(Outcome::Completed) };
        let later = NOW.saturating_add(Span::from_secs(9));
        assert_eq!(
            next_after_resume(&once, ScheduleState { since: Some(NOW), ..ran }, later),
            None
        );
        let changed =
            ScheduleState { since: Some(NOW.saturating_add(Span::from_micros(1))), ..ran };
        assert_eq!(next_after_resume(&once, changed, later), Some(later));
        // Changing the scheduled time causes another run.
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
