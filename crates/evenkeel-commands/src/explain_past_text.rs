//! Describes in a sentence what became of a past time of a job.

use evenkeel_core::advance::SkipReason;
use evenkeel_core::explain::Verdict;
use evenkeel_core::{Origin, Timestamp};
use evenkeel_store::Job;

use crate::describe::{moment, span_words};
use crate::{PastAnswer, Run};

/// Maximum number of characters of an error message that the sentence repeats.
const ERROR_SHOWN_CHARS: usize = 200;

/// Describes what became of the requested time of `job`, with times in the time zone of the job.
pub fn past_text(past: &PastAnswer, job: &Job) -> String {
    let text = PastText { past, job };
    match (past.explanation.verdict, &past.run) {
        (Verdict::Skipped, Some(run)) => text.skipped(run),
        (verdict, Some(run)) => text.of_run(verdict, run),
        (Verdict::Paused, None) => text.paused(),
        (Verdict::NotScheduled, None) => text.not_scheduled(),
        (Verdict::Moved, None) => text.moved(),
        (Verdict::Edited, None) => text.edited(),
        (Verdict::Cancelled, None) => {
            format!("It was cancelled{} and does not run again.", text.at_change())
        }
        (Verdict::NotCreatedYet, None) => {
            format!("It did not exist yet: it was created at {}.", text.when(job.created_at))
        }
        (Verdict::Waiting, None) => {
            "That time has come, but its run has not started; explain without a time names the \
             reasons."
                .into()
        }
        (Verdict::Pruned, None) => format!(
            "The history of {} is no longer kept, so it is not known whether it ran.",
            text.when(past.asked.at)
        ),
        (Verdict::InFuture, None) => match past.explanation.next {
            Some(next) => format!(
                "{} has not come yet; the next scheduled time after it is {}.",
                text.when(past.asked.at),
                text.when(next)
            ),
            None => format!("{} has not come yet.", text.when(past.asked.at)),
        },
        (_, None) => format!(
            "No stored record says what became of its scheduled time at {}.",
            text.when(past.asked.at)
        ),
    }
}

struct PastText<'a> {
    past: &'a PastAnswer,
    job: &'a Job,
}

impl PastText<'_> {
    fn when(&self, at: Timestamp) -> String {
        moment(at, &self.job.definition.timezone)
    }

    fn at_change(&self) -> String {
        let changed_at = self.past.explanation.changed_at;
        changed_at.map_or_else(String::new, |at| format!(" at {}", self.when(at)))
    }

    fn by(&self) -> String {
        self.past.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"))
    }

    fn of_run(&self, verdict: Verdict, run: &Run) -> String {
        let due = self.when(run.key.scheduled_at);
        let which = match run.key.sequence.origin() {
            Origin::Schedule => format!("scheduled for {due}"),
            origin => format!("of {due} ({})", origin.as_str()),
        };
        let started = run.started_at().map(|at| self.when(at)).unwrap_or_default();
        match verdict {
            Verdict::Ran => format!("It ran: its run {which} started at {started} and succeeded."),
            Verdict::RanLate => {
                let late = run.lateness().map(span_words).unwrap_or_default();
                format!("It ran late: its run {which} started at {started}, {late} late.")
            }
            Verdict::Running => format!("Its run {which} has been running since {started}."),
            Verdict::Waiting => match run.latest.due {
                Some(due) if run.attempt_count() > 1 => format!(
                    "Its run {which} failed; attempt {} starts at {}.",
                    run.attempt_count(),
                    self.when(due)
                ),
                Some(due) => format!("Its run {which} waits until {}.", self.when(due)),
                None => format!(
                    "Its run {which} waits in the queue; explain without a time names the reasons."
                ),
            },
            Verdict::Failed => self.failed(&which, run),
            Verdict::Superseded => format!("Its run {which} was replaced by a newer run."),
            _ => format!("Its run {which} was cancelled."),
        }
    }

    fn failed(&self, which: &str, run: &Run) -> String {
        let attempts = match run.attempt_count() {
            1 => "1 attempt".to_owned(),
            count => format!("{count} attempts"),
        };
        let error = run.latest.attempt.results.error.as_deref();
        let error = error.and_then(|error| error.lines().next()).filter(|line| !line.is_empty());
        match error {
            Some(error) => {
                let shown: String = error.chars().take(ERROR_SHOWN_CHARS).collect();
                format!("Its run {which} failed after {attempts}: {shown}")
            }
            None => format!("Its run {which} failed after {attempts}."),
        }
    }

    fn skipped(&self, run: &Run) -> String {
        let Some(skipped) = run.latest.attempt.skipped else {
            return "It was skipped.".into();
        };
        let reason = match skipped.reason {
            SkipReason::Misfire => "it was missed, and the misfire policy does not make up for it",
            SkipReason::Overlap => "an earlier run was still active",
            SkipReason::RetryPending => "an earlier run was waiting for its retry",
            SkipReason::Blackout => "it was in a blackout",
            SkipReason::EndNotStored => "the outcome of an earlier run was not stored",
        };
        let later = self.past.explanation.later_run.map_or_else(String::new, |later| {
            format!("; the next run is the run scheduled for {}", self.when(later.scheduled_at))
        });
        format!("It was skipped, because {reason}{later}.")
    }

    fn paused(&self) -> String {
        let resumed = self.past.explanation.resumed_at.map_or_else(
            || ", and is still paused".to_owned(),
            |at| format!(", and resumed at {}", self.when(at)),
        );
        let note = self.past.note.as_ref().map_or_else(String::new, |note| format!(" ({note})"));
        format!("It was paused{}{}{note}{resumed}.", self.by(), self.at_change())
    }

    fn not_scheduled(&self) -> String {
        let asked = self.when(self.past.asked.at);
        let explanation = &self.past.explanation;
        match (explanation.previous, explanation.next) {
            (Some(previous), Some(next)) => format!(
                "{asked} is not one of its scheduled times; those around it are {} and {}.",
                self.when(previous),
                self.when(next)
            ),
            (Some(last), None) => format!(
                "{asked} is not one of its scheduled times; the last one before it is {}.",
                self.when(last)
            ),
            (None, Some(first)) => format!(
                "{asked} is not one of its scheduled times; the first one after it is {}.",
                self.when(first)
            ),
            (None, None) => format!("{asked} is not one of its scheduled times."),
        }
    }

    fn moved(&self) -> String {
        let moved = self.past.explanation.moved;
        let times = moved.map_or_else(String::new, |moved| {
            format!(" from {} to {}", self.when(moved.from), self.when(moved.to))
        });
        format!("A rebalance{} moved it{}{times}.", self.by(), self.at_change())
    }

    fn edited(&self) -> String {
        let what = match self.past.explanation.command {
            Some(_) => "edited",
            None => "rescheduled, moved or resumed",
        };
        format!(
            "It was {what}{}{}, and its schedule before that is not stored.",
            self.by(),
            self.at_change()
        )
    }
}
