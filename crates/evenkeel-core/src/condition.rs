//! Determines whether a job meets its deadlines, which Evenkeel calls the job's promise.

use serde::Serialize;

use crate::history::History;
use crate::job::Definition;
use crate::named_enum;
use crate::schedule::Schedule;
use crate::time::{Span, Timestamp};
use crate::window::{Past, StartWindow};

named_enum! {
    /// How well a job meets its deadlines.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum Level {
        Ok => "OK",
        /// A run failed or is likely to be late, but the deadline has not passed yet.
        Warning => "WARNING",
        /// The deadline has passed without a successful run.
        Error => "ERROR",
    }
}

named_enum! {
    /// Why a job has the level OK, WARNING or ERROR.
    #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reason {
        OnTime => "on_time",
        /// The job has never run, and its first deadline has not passed.
        NeverRan => "never_ran",
        /// The job is paused or cancelled, so it has no deadline.
        Paused => "paused",
        /// The job has no further runs and has missed no deadline.
        Over => "over",
        LastRunFailed => "last_run_failed",
        /// A run is active, but it will probably finish after the deadline.
        LikelyViolatedRunning => "likely_violated_running",
        /// The job is not running, and a run started now would probably finish after the deadline.
        LikelyViolatedWaiting => "likely_violated_waiting",
        /// No run succeeded by the deadline.
        Violated => "violated",
        /// The last run failed, and the job has no further runs.
        GivenUp => "given_up",
        /// No run succeeded by the deadline, only because a blackout prevented the run. A blackout
        /// never moves the deadline.
        HeldByBlackout => "held_by_blackout",
        /// The only run of the job failed more than [`GIVEN_UP_ERROR_FOR`] ago. The failed job no
        /// longer raises an alert.
        FinishedFailed => "finished_failed",
    }
}

/// How long a job that runs only once stays in `ERROR` after its run has failed. An operator has
/// one day to retry, cancel or delete the failed job. If the alert for a failed job never ended, it
/// would hide the next alert.
pub const GIVEN_UP_ERROR_FOR: Span = Span::from_secs(24 * 3600);

impl Reason {
    pub const fn level(self) -> Level {
        match self {
            Self::OnTime | Self::NeverRan | Self::Paused | Self::Over | Self::FinishedFailed => {
                Level::Ok
            }
            Self::LastRunFailed | Self::LikelyViolatedRunning | Self::LikelyViolatedWaiting => {
                Level::Warning
            }
            Self::Violated | Self::GivenUp | Self::HeldByBlackout => Level::Error,
        }
    }
}

/// The inputs of [`condition()`].
#[derive(Copy, Clone, Debug)]
pub struct Facts<'a> {
    pub definition: &'a Definition,
    pub history: &'a History,
    /// Time at which the job was created, last rescheduled or last resumed.
    pub since: Timestamp,
    /// False while the job is paused or cancelled.
    pub active: bool,
    pub next_at: Option<Timestamp>,
    /// The last scheduled time that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    /// True if the job has an active run.
    pub live: bool,
    pub running_since: Option<Timestamp>,
}

/// The condition of a job: its level, the reason, and when the condition changes next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Condition {
    /// The reason also determines the level (OK, WARNING or ERROR).
    pub reason: Reason,
    /// The time by which a run must have succeeded; `None` if the job has no deadline.
    pub deadline: Option<Timestamp>,
    /// The latest time at which a run can start and probably still finish by the deadline; `None`
    /// if the job has no deadline.
    pub should_start_by: Option<Timestamp>,
    /// The earliest and the latest start of the next run; `None` if the job has no next run.
    pub window: Option<StartWindow>,
    /// Time at which the condition changes if no run starts or finishes and no command arrives.
    pub changes_at: Option<Timestamp>,
    /// The end of the blackout, for [`Reason::HeldByBlackout`].
    pub blackout_ends_at: Option<Timestamp>,
}

impl Condition {
    pub const fn level(&self) -> Level {
        self.reason.level()
    }

    /// Returns when the condition must be computed again, because a condition may change without an
    /// event. Returns `None` if the job is `OK` and the scheduler will notice the next change.
    ///
    /// The condition of a job that waits for its scheduled time need not be computed again, because
    /// the scheduler notices when its run is late. The condition of a due or running job must be
    /// computed again, because nothing else would notice that the condition changes.
    pub fn next_check_at(&self, facts: &Facts<'_>, now: Timestamp) -> Option<Timestamp> {
        let unnoticed = |change: &Timestamp| {
            let can_start = self.window.map(|window| window.can_start_by);
            facts.running_since.is_some()
                || facts.next_at.is_some_and(|next| next <= now)
                || can_start.is_none_or(|can_start| *change <= can_start)
        };
        match self.level() {
            // The job has no deadline, but a run is active. The job stays on the list of at-risk
            // jobs, so that Evenkeel notices when the run finishes.
            Level::Ok if facts.live && self.changes_at.is_none() => Some(Timestamp::MAX),
            Level::Ok => self.changes_at.filter(unnoticed),
            Level::Warning | Level::Error => Some(self.changes_at.unwrap_or(Timestamp::MAX)),
        }
    }

    const fn lasting(reason: Reason) -> Self {
        Self {
            reason,
            deadline: None,
            should_start_by: None,
            window: None,
            changes_at: None,
            blackout_ends_at: None,
        }
    }
}

pub fn condition(facts: &Facts<'_>, now: Timestamp) -> Condition {
    let failed = facts.history.consecutive_failures > 0;
    let idle = !facts.live && facts.running_since.is_none();
    if !facts.active {
        return Condition::lasting(Reason::Paused);
    }
    let past = facts.definition.past(facts.history, facts.since);
    if facts.next_at.is_none() && idle {
        let started = facts.history.last_start_at;
        let missed = |fired: &Timestamp| *fired > past.reference && started < Some(*fired);
        if failed {
            return given_up(facts, now);
        }
        return Condition::lasting(match facts.last_fired_at.filter(missed) {
            // The last scheduled time was skipped, and the job has no other scheduled time.
            Some(_) => Reason::Violated,
            None => Reason::Over,
        });
    }
    let window = facts.next_at.map(|next| facts.definition.window(next, &past));
    let Some((time, deadline)) = promise(facts, past.reference) else {
        let reason = if failed { Reason::LastRunFailed } else { Reason::OnTime };
        return Condition { window, ..Condition::lasting(reason) };
    };
    let likely_over = facts.running_since.map(|since| since.saturating_add(past.average));
    let should_start_by = facts.definition.should_start_by(time, deadline, past.average);
    let promised = (time, deadline);
    let held = (now > deadline && !failed)
        .then(|| held_by_blackout(facts, &past, promised, should_start_by))
        .flatten()
        .filter(|held| now <= held.excused_until);
    let reason = if held.is_some() {
        Reason::HeldByBlackout
    } else if now > deadline {
        Reason::Violated
    } else if likely_over.is_some_and(|over| over > deadline) {
        Reason::LikelyViolatedRunning
    } else if likely_over.is_none() && now > should_start_by {
        Reason::LikelyViolatedWaiting
    } else if failed {
        Reason::LastRunFailed
    } else if facts.history.last_start_at.is_none() && likely_over.is_none() {
        Reason::NeverRan
    } else {
        Reason::OnTime
    };
    let holds_until = if now > deadline {
        held.map(|held| held.excused_until)
    } else if likely_over.is_none() && now <= should_start_by {
        Some(should_start_by)
    } else {
        Some(deadline)
    };
    let changes_at = holds_until.map(|last| last.saturating_add(Span::from_micros(1)));
    let (deadline, should_start_by) = (Some(deadline), Some(should_start_by));
    let blackout_ends_at = held.map(|held| held.ends_at);
    Condition { reason, deadline, should_start_by, window, changes_at, blackout_ends_at }
}

/// A blackout that is the only reason why a job missed its deadline.
#[derive(Copy, Clone)]
struct Held {
    ends_at: Timestamp,
    /// Time until which the blackout counts as the reason for the missed deadline. After the
    /// blackout, a run has as much time to succeed as it normally has after its scheduled time.
    excused_until: Timestamp,
}

/// Returns the blackout that prevented every start from the scheduled time to the latest start that
/// would have met the deadline.
fn held_by_blackout(
    facts: &Facts<'_>,
    past: &Past,
    (time, deadline): (Timestamp, Timestamp),
    should_start_by: Timestamp,
) -> Option<Held> {
    let definition = facts.definition;
    if definition.blackout_periods.is_empty() {
        return None;
    }
    let could_start = match &definition.schedule {
        // The next scheduled time of a periodic job is unknown while a run is active, so the end of
        // the job's last cooldown is used.
        Schedule::Periodic(periodic) => {
            let rested = |end: Timestamp| end.saturating_add(periodic.cooldown());
            facts.history.last_end_at.map_or(facts.since, rested).max(facts.since)
        }
        _ => definition.unmet(time, past.reference),
    };
    let ends_at = definition.may_start_from(could_start, past.average);
    let excused_until = ends_at.saturating_add(deadline.since(could_start));
    (could_start <= should_start_by && should_start_by < ends_at)
        .then_some(Held { ends_at, excused_until })
}

/// Returns the condition of a job whose last run failed and that has no further runs. A recurring
/// job that has stopped stays in `ERROR`. A job that runs once leaves `ERROR` after
/// [`GIVEN_UP_ERROR_FOR`].
fn given_up(facts: &Facts<'_>, now: Timestamp) -> Condition {
    let given_up = Condition::lasting(Reason::GivenUp);
    let Some(ended) = facts.history.last_end_at else { return given_up };
    if facts.definition.schedule.recurs() {
        return given_up;
    }
    let until = ended.saturating_add(GIVEN_UP_ERROR_FOR);
    if now > until {
        return Condition::lasting(Reason::FinishedFailed);
    }
    let changes_at = Some(until.saturating_add(Span::from_micros(1)));
    Condition { changes_at, ..given_up }
}

/// Returns the scheduled time for which a run must succeed, and the deadline of this run.
fn promise(facts: &Facts<'_>, reference: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let time = match (&facts.definition.schedule, facts.next_at) {
        (Schedule::Once(_), next) => {
            let time = next.or(facts.last_fired_at)?;
            // A job that runs once has only a deadline for its start, which no longer matters when
            // the job has started.
            let last_start = facts.running_since.max(facts.history.last_start_at);
            last_start.is_none_or(|start| start < time).then_some(time)?
        }
        (_, Some(next)) => next,
        // The deadline of the job's last scheduled time counts until a run has succeeded.
        (_, None) => facts.last_fired_at.filter(|fired| *fired > reference)?,
    };
    Some((time, facts.definition.must_be_over_by(time, reference)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blackout::Blackout;
    use crate::schedule::{Interval, Once, Periodic};

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000)
    }

    fn hourly() -> Definition {
        let every = Interval::new(Span::from_secs(3600), None).unwrap();
        Definition::noop(Schedule::Interval(every))
    }

    fn facts<'a>(definition: &'a Definition, history: &'a History) -> Facts<'a> {
        Facts {
            definition,
            history,
            since: at(0),
            active: true,
            next_at: Some(at(3600)),
            last_fired_at: None,
            live: false,
            running_since: None,
        }
    }

    #[test]
    fn due_job_is_judged_again_and_waiting_job_is_not() {
        let (job, history) = (hourly(), History::default());
        let facts = facts(&job, &history);
        let again = |now| condition(&facts, now).next_check_at(&facts, now);
        assert_eq!(again(at(10)), None);
        let turns_bad = at(7200).saturating_add(Span::from_micros(1));
        assert_eq!(again(at(3600)), Some(turns_bad));
        assert_eq!(again(at(7201)), Some(Timestamp::MAX));
    }

    fn in_blackout() -> Definition {
        let time = |hour, minute| jiff::civil::time(hour, minute, 0, 0);
        let period = Blackout { start: time(0, 30), end: time(5, 0) };
        Definition { blackout_periods: vec![period], ..hourly() }
    }

    fn hour(hours: i64) -> Timestamp {
        at(hours * 3600)
    }

    fn tick_after(moment: Timestamp) -> Timestamp {
        moment.saturating_add(Span::from_micros(1))
    }

    #[test]
    fn blackout_excuses_a_late_run_until_it_had_time_after_the_blackout() {
        let (job, history) = (in_blackout(), History::default());
        let idle = facts(&job, &history);
        assert_eq!(condition(&idle, hour(2)).reason, Reason::NeverRan);
        let held = condition(&idle, tick_after(hour(2)));
        assert_eq!((held.reason, held.level()), (Reason::HeldByBlackout, Level::Error));
        assert_eq!(held.blackout_ends_at, Some(hour(5)));
        // The blackout does not move the deadline. The blackout counts as the reason for the missed
        // deadline until one hour after its end.
        assert_eq!((held.deadline, held.changes_at), (Some(hour(2)), Some(tick_after(hour(6)))));
        let running =
            Facts { next_at: Some(hour(6)), live: true, running_since: Some(hour(5)), ..idle };
        assert_eq!(condition(&running, at(5 * 3600 + 60)).reason, Reason::HeldByBlackout);
        let late = condition(&idle, tick_after(hour(6)));
        assert_eq!((late.reason, late.blackout_ends_at), (Reason::Violated, None));
    }

    #[test]
    fn blackout_excuses_no_failure_and_no_run_that_could_start_before_it() {
        let (job, history) = (in_blackout(), History::default());
        let failed = History { consecutive_failures: 1, ..history };
        let reason = |facts: &Facts<'_>| condition(facts, hour(3)).reason;
        assert_eq!(reason(&facts(&job, &failed)), Reason::Violated);
        let early = Facts { next_at: Some(at(1200)), ..facts(&job, &history) };
        assert_eq!(reason(&early), Reason::Violated);
        let open = hourly();
        assert_eq!(reason(&facts(&open, &history)), Reason::Violated);
    }

    #[test]
    fn blackout_excuses_a_late_periodic_job() {
        let periodic = Periodic::new(Span::from_secs(3600), Some(Span::from_secs(60))).unwrap();
        let job = Definition { schedule: Schedule::Periodic(periodic), ..in_blackout() };
        let history = History {
            last_start_at: Some(at(1700)),
            last_end_at: Some(at(1780)),
            last_good_start_at: Some(at(1700)),
            last_good_end_at: Some(at(1780)),
            ..History::default()
        };
        let idle = Facts { next_at: Some(at(1840)), ..facts(&job, &history) };
        assert_eq!(condition(&idle, at(5400)).reason, Reason::HeldByBlackout);
        let running =
            Facts { next_at: Some(hour(6)), live: true, running_since: Some(hour(5)), ..idle };
        assert_eq!(condition(&running, hour(5)).reason, Reason::HeldByBlackout);
    }

    #[test]
    fn active_run_without_a_promise_is_judged_until_its_end() {
        let (job, history) = (hourly(), History::default());
        let started = History { last_good_start_at: Some(at(3600)), ..history };
        let facts = Facts {
            next_at: None,
            last_fired_at: Some(at(3600)),
            live: true,
            ..facts(&job, &started)
        };
        let found = condition(&facts, at(9000));
        assert_eq!((found.reason, found.deadline), (Reason::OnTime, None));
        assert_eq!(found.next_check_at(&facts, at(9000)), Some(Timestamp::MAX));
    }

    #[test]
    fn failed_one_time_job_is_in_error_for_a_day() {
        let once = Definition::noop(Schedule::Once(Once::NOW));
        let (recurs, ended) = (hourly(), at(100));
        let history = History {
            last_start_at: Some(at(90)),
            last_end_at: Some(ended),
            consecutive_failures: 1,
            ..History::default()
        };
        let over =
            |job| Facts { next_at: None, last_fired_at: Some(at(90)), ..facts(job, &history) };
        let day_later = ended.saturating_add(GIVEN_UP_ERROR_FOR);
        let just_after = day_later.saturating_add(Span::from_micros(1));
        let failed = over(&once);
        for (now, reason) in [
            (ended, Reason::GivenUp),
            (day_later, Reason::GivenUp),
            (just_after, Reason::FinishedFailed),
        ] {
            assert_eq!(condition(&failed, now).reason, reason);
        }
        // When the job leaves `ERROR`, its condition is computed again, and the job leaves the list
        // of at-risk jobs.
        let again = |now| condition(&failed, now).next_check_at(&failed, now);
        assert_eq!((again(ended), again(just_after)), (Some(just_after), None));
        assert_eq!(condition(&over(&recurs), Timestamp::MAX).reason, Reason::GivenUp);
    }

    #[test]
    fn skipped_last_time_breaks_the_promise() {
        let job = Definition::noop(Schedule::Once(Once::NOW));
        let never = History::default();
        let ran = History {
            last_start_at: Some(at(60)),
            last_good_start_at: Some(at(60)),
            ..History::default()
        };
        let reason = |history| {
            let over = Facts { next_at: None, last_fired_at: Some(at(60)), ..facts(&job, history) };
            condition(&over, at(9000)).reason
        };
        assert_eq!(reason(&never), Reason::Violated);
        assert_eq!(reason(&ran), Reason::Over);
    }
}
