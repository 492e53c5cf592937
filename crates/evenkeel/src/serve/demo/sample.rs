//! One sample job: its document, when it was created, and what happened to it.

use evenkeel_core::{Definition, Schedule, Span, Timestamp};
use serde_json::{Value, json};

const HOUR: u64 = 3600;
pub const DAY: u64 = 24 * HOUR;

/// Where the run times of an interval job fall.
#[derive(Copy, Clone, Debug)]
pub enum Phase {
    /// This many seconds after whole intervals since 1970, so `Clock(7200)` is 02:00 UTC for a
    /// daily job.
    Clock(u64),
    /// This many seconds after, or before, the start of the server.
    FromStart(i64),
}

/// What happened to a job until the server starts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Story {
    /// The job ran as its configuration says.
    Ordinary,
    /// The runs of the last hours fail; all earlier runs succeeded.
    BrokenFor(Span),
    /// The runs of the last hours wait, because no worker serves the pool of the job.
    WithoutWorkerFor(Span),
    PausedFor(Span),
}

#[derive(Clone, Debug)]
pub struct Sample {
    /// The job as in `POST /api/v1/jobs`.
    pub document: Value,
    pub phase: Phase,
    /// Time from the creation of the job to the start of the server.
    pub age: Span,
    pub story: Story,
}

impl Sample {
    /// Returns a job that sleeps for a number of milliseconds, plus a random part of the second
    /// number.
    pub fn new(name: String, about: &str, schedule: Value, (sleep, jitter): (u64, u64)) -> Self {
        let document = json!({
            "name": name, "description": about, "schedule": schedule, "executor_type": "noop",
            "executor_config": {"sleep_ms": sleep, "jitter_ms": jitter},
            "metadata": {"demo": true},
        });
        let (phase, story) = (Phase::Clock(0), Story::Ordinary);
        Self { document, phase, age: Span::from_secs(14 * DAY), story }
    }

    /// Sets a field of the job.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.document[field] = value.into();
        self
    }

    /// Sets a field of the job's executor.
    #[must_use]
    pub fn config(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.document["executor_config"][field] = value.into();
        self
    }

    #[must_use]
    pub fn team(mut self, team: &str) -> Self {
        self.document["metadata"]["team"] = team.into();
        self
    }

    #[must_use]
    pub fn at(self, phase: Phase) -> Self {
        Self { phase, ..self }
    }

    #[must_use]
    pub fn aged(self, days: u64) -> Self {
        Self { age: Span::from_secs(days * DAY), ..self }
    }

    #[must_use]
    pub fn story(self, story: Story) -> Self {
        Self { story, ..self }
    }
}

pub fn every(length: &str) -> Value {
    json!({"kind": "interval", "every": length})
}

pub fn cron(expression: &str) -> Value {
    json!({"kind": "cron", "expression": expression})
}

pub fn hours(hours: u64) -> Span {
    Span::from_secs(hours * HOUR)
}

impl Phase {
    /// Returns the first run time after `after`; `now` is the start of the server.
    pub fn first_after(
        self,
        definition: &Definition,
        after: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let Schedule::Interval(interval) = definition.schedule else {
            return definition.timetable().first_after(after);
        };
        let every = interval.every().as_micros().cast_signed();
        let any = match self {
            Self::Clock(secs) => secs.cast_signed() * 1_000_000,
            Self::FromStart(secs) => now.as_micros() + secs * 1_000_000,
        };
        let wait = (any - after.as_micros() - 1).rem_euclid(every) + 1;
        Some(Timestamp::from_micros(after.as_micros() + wait))
    }
}
