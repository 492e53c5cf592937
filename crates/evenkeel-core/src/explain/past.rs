//! Explains what became of a past time of a job: "why did it not run at 9?"

use super::START_DELAY_MAX;
use crate::advance::SkippedTimes;
use crate::attempt::AttemptStatus;
use crate::ids::{AttemptKey, Origin};
use crate::job::Definition;
use crate::named_enum;
use crate::schedule::Schedule;
use crate::status::JobState;
use crate::time::{Span, Timestamp};
use crate::zone::{Local, Zone};

named_enum! {
    /// What became of the requested time. The names are part of the API.
    #[derive(Copy, Clone, PartialEq, Eq, Debug)]
    pub enum Verdict {
        Ran => "ran",
        /// The run started more than 5 seconds after its scheduled time.
        RanLate => "ran_late",
        Running => "running",
        /// The run waits for a worker, for a permit, for its retry or for an earlier run.
        Waiting => "waiting",
        Failed => "failed",
        /// The run or the job was cancelled.
        Cancelled => "cancelled",
        /// A newer scheduled time replaced the run.
        Superseded => "superseded",
        Skipped => "skipped",
        /// The job was paused at that time.
        Paused => "paused",
        NotScheduled => "not_scheduled",
        /// A rebalance moved the job to another start time.
        Moved => "moved",
        NotCreatedYet => "not_created_yet",
        /// The job was edited or resumed later, so its schedule at that time is not known.
        Edited => "edited",
        /// The history of that time is no longer kept.
        Pruned => "pruned",
        InFuture => "in_future",
        /// No stored record explains the time.
        Unknown => "unknown",
    }
}

/// The time that a user asks about. A whole minute stands for all 60 seconds that follow it, and a
/// whole second for all its microseconds, because users rarely know the second of a run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AskedTime {
    pub at: Timestamp,
    /// The first moment after the requested time.
    pub until: Timestamp,
}

impl AskedTime {
    pub fn new(at: Timestamp) -> Self {
        const SECOND: u64 = 1_000_000;
        let micros = at.as_micros().unsigned_abs();
        let unit = [60 * SECOND, SECOND].into_iter().find(|unit| micros.is_multiple_of(*unit));
        Self { at, until: at.saturating_add(Span::from_micros(unit.unwrap_or(1))) }
    }

    /// Returns the last time up to `now` at which local clocks showed `time_of_day`, or the first
    /// moment after a clock change that skipped it.
    pub fn of_day(time_of_day: Span, zone: &Zone, now: Timestamp) -> Self {
        const DAY: i64 = 86_400_000_000;
        let time_of_day = i64::try_from(time_of_day.as_micros()).unwrap_or(0) % DAY;
        let today = zone.offset_period_at(now).local(now).div_euclid(DAY);
        let moments = [today, today - 1].into_iter().flat_map(|day| {
            match zone.resolve(day * DAY + time_of_day) {
                Local::Once(moment) | Local::Never { after: moment } => [moment, moment],
                Local::Twice { first, last } => [last, first],
            }
        });
        let past = moments.clone().find(|moment| *moment <= now);
        Self::new(past.or_else(|| moments.min()).unwrap_or(now))
    }

    pub fn contains(self, time: Timestamp) -> bool {
        (self.at..self.until).contains(&time)
    }
}

/// A stored run, or a record of skipped times.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PastRun {
    pub key: AttemptKey,
    pub status: AttemptStatus,
    /// When the first attempt of the run started.
    pub started_at: Option<Timestamp>,
    pub skipped: Option<SkippedTimes>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum CommandKind {
    Pause,
    Resume,
    Edit,
}

/// A command that changed the job, from the audit log.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PastCommand {
    pub at: Timestamp,
    pub kind: CommandKind,
}

/// A rebalance moved the next scheduled time of the job.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PastMove {
    /// When the job was moved.
    pub at: Timestamp,
    pub from: Timestamp,
    pub to: Timestamp,
}

/// The inputs of [`explain_past()`].
#[derive(Copy, Clone, Debug)]
pub struct PastFacts<'a> {
    pub definition: &'a Definition,
    pub state: JobState,
    pub created_at: Timestamp,
    /// When the job was last created, rescheduled, moved or resumed.
    pub since: Timestamp,
    /// When the job was paused or cancelled.
    pub stopped_at: Option<Timestamp>,
    pub next_at: Option<Timestamp>,
    pub last_fired_at: Option<Timestamp>,
    /// The stored runs around the requested time, in any order.
    pub runs: &'a [PastRun],
    /// False if retention may have deleted the run of the requested time.
    pub is_history_kept: bool,
    /// Oldest first.
    pub commands: &'a [PastCommand],
    pub last_move: Option<PastMove>,
}

/// What became of the requested time, and the evidence.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PastExplanation {
    pub verdict: Verdict,
    /// The run or skip record at the requested time.
    pub run: Option<PastRun>,
    /// For skipped times, the first scheduled run after them.
    pub later_run: Option<AttemptKey>,
    /// When the job was paused, cancelled, moved or changed.
    pub changed_at: Option<Timestamp>,
    /// The command of `changed_at`, if the audit log has it.
    pub command: Option<PastCommand>,
    /// When a paused job was resumed.
    pub resumed_at: Option<Timestamp>,
    pub moved: Option<PastMove>,
    /// The last scheduled time before the requested time, if it can be computed.
    pub previous: Option<Timestamp>,
    /// The first scheduled time after the requested time, if it can be computed.
    pub next: Option<Timestamp>,
}

/// Decides what became of the requested time of a job.
pub fn explain_past(facts: &PastFacts<'_>, asked: AskedTime, now: Timestamp) -> PastExplanation {
    let near = facts.near(asked);
    let found = Found { facts, asked, near };
    let mut explanation = found.decide(now);
    let runs = || facts.runs.iter().map(|run| run.key.scheduled_at);
    if facts.definition.schedule.follows_its_end() {
        explanation.previous = runs().filter(|at| *at < asked.at).max();
        explanation.next = runs().filter(|at| *at >= asked.until).chain(facts.next_at).min();
    } else if let Some(near) = near {
        (explanation.previous, explanation.next) = (near.previous, near.next);
    }
    explanation
}

/// The scheduled times around the requested time.
#[derive(Copy, Clone, Debug)]
struct Near {
    previous: Option<Timestamp>,
    /// The first scheduled time within the requested time.
    within: Option<Timestamp>,
    next: Option<Timestamp>,
}

const TICK: Span = Span::from_micros(1);

impl PastFacts<'_> {
    /// Returns the first scheduled time within the requested time, by the present schedule.
    pub fn scheduled_within(&self, asked: AskedTime) -> Option<Timestamp> {
        self.near(asked)?.within
    }

    /// Returns the scheduled times around the requested time by the present schedule. Returns
    /// `None` if the schedule has no fixed times.
    fn near(&self, asked: AskedTime) -> Option<Near> {
        let table = self.definition.timetable();
        let (zone, dst) = (&self.definition.timezone, self.definition.dst);
        let known = self.next_at.or(self.last_fired_at);
        let (start, end) = self.bounds();
        let (before, from) = (asked.at.min(end.saturating_add(TICK)), asked.at.max(start));
        let (previous, first) = match &self.definition.schedule {
            Schedule::Periodic(_) => return None,
            Schedule::Once(once) => {
                let only = once.at.or(known)?;
                (Some(only).filter(|at| *at < before), Some(only).filter(|at| *at >= from))
            }
            Schedule::Cron(by) => {
                let first = by.cron.next_after(from.saturating_sub(TICK), zone, dst);
                (by.cron.last_before(before, zone, dst), first)
            }
            Schedule::Calendar(every) => {
                let last = every.anchor.and_then(|anchor| table.times_before(anchor, before));
                (last.map(|(_, last)| last), table.next_after(from.saturating_sub(TICK)))
            }
            Schedule::Interval(interval) => {
                // The times of an interval job are whole intervals before and after a known time.
                let (every, base) =
                    (interval.every().as_micros().cast_signed(), known?.as_micros());
                let (last, first) = (before.as_micros() - 1, from.as_micros());
                let last = last - (last - base).rem_euclid(every);
                let first = first + (base - first).rem_euclid(every);
                (Some(Timestamp::from_micros(last)), Some(Timestamp::from_micros(first)))
            }
        };
        let within = first.filter(|time| asked.contains(*time));
        let mut next = first;
        while let Some(time) = next.filter(|time| asked.contains(*time)) {
            next = table.next_after(time);
        }
        let is_valid = |time: &Timestamp| (start..=end).contains(time);
        Some(Near {
            previous: previous.filter(is_valid),
            within: within.filter(is_valid),
            next: next.filter(is_valid),
        })
    }

    /// Returns the first and the last time at which the job can have scheduled times, as far as the
    /// present schedule tells.
    fn bounds(&self) -> (Timestamp, Timestamp) {
        let bounds = self.definition.bounds;
        let first = match self.definition.schedule {
            // A resume or a move may have changed the phase of the interval. If the job has not
            // fired since then, its first time is the next one.
            Schedule::Interval(_) if self.last_fired_at.is_none_or(|at| at < self.since) => {
                self.next_at.unwrap_or(self.since)
            }
            Schedule::Interval(_) => self.since,
            _ => self.created_at,
        };
        let start = bounds.start_at.map_or(first, |start| start.max(first));
        let end = bounds.end_at.unwrap_or(Timestamp::MAX);
        // A job that is active and has no next time has fired its last time.
        let is_over = self.state == JobState::Active && self.next_at.is_none();
        let last = self.last_fired_at.filter(|_| is_over);
        (start, last.map_or(end, |last| last.min(end)))
    }
}

struct Found<'a> {
    facts: &'a PastFacts<'a>,
    asked: AskedTime,
    near: Option<Near>,
}

impl Found<'_> {
    fn decide(&self, now: Timestamp) -> PastExplanation {
        let (facts, asked) = (self.facts, self.asked);
        if let Some(run) = self.run_at() {
            return self.of_run(run);
        }
        let time = self.near.and_then(|near| near.within).unwrap_or(asked.at);
        if time > now {
            return of(Verdict::InFuture);
        }
        if let Some(record) = self.skip_record() {
            return self.of_run(record);
        }
        if time < facts.created_at {
            return of(Verdict::NotCreatedYet);
        }
        if self.is_schedule_known() && self.near.is_some_and(|near| near.within.is_none()) {
            return self.moved(true).unwrap_or(of(Verdict::NotScheduled));
        }
        if let Some(stopped) = self.stopped() {
            return stopped;
        }
        if let Some(moved) = self.moved(false) {
            return moved;
        }
        // The scheduler has not fired the time yet, or an earlier time waits.
        if facts.state == JobState::Active && facts.next_at.is_some_and(|next| next < asked.until) {
            return of(Verdict::Waiting);
        }
        if !facts.is_history_kept {
            return of(Verdict::Pruned);
        }
        if facts.since > asked.at {
            let edit = |command: &&PastCommand| {
                command.kind == CommandKind::Edit && command.at >= asked.at
            };
            let command = facts.commands.iter().find(edit).copied();
            let changed_at = Some(command.map_or(facts.since, |command| command.at));
            return PastExplanation { command, changed_at, ..of(Verdict::Edited) };
        }
        if self.near.is_none() {
            return of(Verdict::NotScheduled);
        }
        of(Verdict::Unknown)
    }

    /// Returns the run at the requested time: the run of a scheduled time, or else another run.
    fn run_at(&self) -> Option<PastRun> {
        let runs = self.facts.runs.iter().filter(|run| self.asked.contains(run.key.scheduled_at));
        let is_other = |run: &&PastRun| run.key.sequence.origin() != Origin::Schedule;
        runs.min_by_key(|run| (is_other(run), run.key)).copied()
    }

    /// Returns the record of skipped times that includes the requested time.
    fn skip_record(&self) -> Option<PastRun> {
        let asked = self.asked;
        let is_no_time =
            self.is_schedule_known() && self.near.is_some_and(|near| near.within.is_none());
        let covers = |run: &&PastRun| {
            run.skipped.is_some_and(|skipped| {
                let is_within = skipped.from < asked.until && skipped.to >= asked.at;
                is_within && (asked.contains(skipped.to) || !is_no_time)
            })
        };
        self.facts.runs.iter().find(covers).copied()
    }

    fn of_run(&self, run: PastRun) -> PastExplanation {
        let lateness = run.started_at.map(|start| start.since(run.key.scheduled_at));
        let verdict = match run.status {
            AttemptStatus::Completed | AttemptStatus::PartlyFailed
                if lateness.is_some_and(|lateness| lateness > START_DELAY_MAX) =>
            {
                Verdict::RanLate
            }
            AttemptStatus::Completed | AttemptStatus::PartlyFailed => Verdict::Ran,
            AttemptStatus::Failed | AttemptStatus::TimedOut => Verdict::Failed,
            AttemptStatus::Running => Verdict::Running,
            AttemptStatus::Pending => Verdict::Waiting,
            AttemptStatus::Cancelled => Verdict::Cancelled,
            AttemptStatus::Superseded => Verdict::Superseded,
            AttemptStatus::Skipped => Verdict::Skipped,
        };
        let later_run = run.skipped.and_then(|skipped| {
            let scheduled = self.facts.runs.iter().map(|run| run.key);
            let is_later = |key: &AttemptKey| {
                key.scheduled_at > skipped.to && key.sequence.origin() == Origin::Schedule
            };
            scheduled.filter(is_later).min()
        });
        PastExplanation { run: Some(run), later_run, ..of(verdict) }
    }

    /// True if the present schedule also applied at the requested time.
    fn is_schedule_known(&self) -> bool {
        let facts = self.facts;
        // A resume sets new times of interval jobs only.
        let is_fixed =
            !matches!(facts.definition.schedule, Schedule::Interval(_) | Schedule::Periodic(_));
        let is_edit = |command: &PastCommand| {
            command.kind == CommandKind::Edit && command.at >= self.asked.at
        };
        facts.since <= self.asked.at || (is_fixed && !facts.commands.iter().any(is_edit))
    }

    /// Returns the pause or cancellation that was in effect at the requested time.
    fn stopped(&self) -> Option<PastExplanation> {
        let (facts, asked) = (self.facts, self.asked);
        let commands = facts.commands.iter();
        let is_pause =
            |command: &&PastCommand| command.kind == CommandKind::Pause && command.at < asked.until;
        let pause = commands.clone().rfind(is_pause).copied();
        let resumed = |after: Timestamp| {
            let is_resume =
                |command: &&PastCommand| command.kind == CommandKind::Resume && command.at >= after;
            commands.clone().find(is_resume).map(|command| command.at)
        };
        if let Some(pause) = pause {
            let resumed_at = resumed(pause.at);
            if resumed_at.is_none_or(|at| at > asked.at) {
                let (changed_at, command) = (Some(pause.at), Some(pause));
                return Some(PastExplanation {
                    changed_at,
                    command,
                    resumed_at,
                    ..of(Verdict::Paused)
                });
            }
        }
        let verdict = match facts.state {
            JobState::Active => return None,
            JobState::Paused => Verdict::Paused,
            JobState::Cancelled | JobState::Deleted => Verdict::Cancelled,
        };
        let stopped_at = facts.stopped_at.filter(|stop| *stop < asked.until)?;
        Some(PastExplanation { changed_at: Some(stopped_at), ..of(verdict) })
    }

    /// Returns the move that took away the requested time. `with_phase` also finds times that are
    /// whole intervals after the former time of an interval job.
    fn moved(&self, with_phase: bool) -> Option<PastExplanation> {
        let moved = self.facts.last_move.filter(|moved| moved.at < self.asked.until)?;
        let former = match &self.facts.definition.schedule {
            Schedule::Interval(interval) if with_phase && moved.from < self.asked.at => {
                let past = self.asked.at.since(moved.from).as_micros();
                let times = past.div_ceil(interval.every().as_micros());
                moved.from.saturating_add(interval.every().saturating_mul(times))
            }
            _ => moved.from,
        };
        let explanation = PastExplanation {
            moved: Some(moved),
            changed_at: Some(moved.at),
            ..of(Verdict::Moved)
        };
        self.asked.contains(former).then_some(explanation)
    }
}

fn of(verdict: Verdict) -> PastExplanation {
    PastExplanation {
        verdict,
        run: None,
        later_run: None,
        changed_at: None,
        command: None,
        resumed_at: None,
        moved: None,
        previous: None,
        next: None,
    }
}

#[cfg(test)]
mod tests;
