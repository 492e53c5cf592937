//! Reads the retry policy of a job, and the action after the last retry has failed.

use std::ops::RangeInclusive;

use evenkeel_core::Span;
use evenkeel_core::on_failure::OnFailure;
use evenkeel_core::retry::{Backoff, Jitter, Preset, RetryPolicy};
use serde_json::Value;

use super::fields::Fields;
use super::job_fields::whole_seconds;
use super::length;
use super::limits::{
    EXPONENTIAL_BACKOFF_SECONDS_MAX, FIXED_BACKOFF_SECONDS_MAX, NOTE_CHARS_MAX, RETRY_STAGES_MAX,
};
use crate::fault::shown;

/// How the delay between retries grows.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Growth {
    Doubling,
    None,
    Stages,
}

impl Growth {
    const fn of(backoff: &Backoff) -> Self {
        match backoff {
            Backoff::Exponential { .. } => Self::Doubling,
            Backoff::Fixed { .. } => Self::None,
            Backoff::Stages { .. } => Self::Stages,
        }
    }
}

/// Retry policies by name; some also have the number of a requirements document as a name.
const PRESETS: [(&str, Preset); 9] = [
    ("standard", Preset::Standard),
    ("interval", Preset::Interval),
    ("queue", Preset::Queue),
    ("deadline", Preset::Deadline),
    ("cron_service", Preset::CronService),
    ("001", Preset::Interval),
    ("002", Preset::Queue),
    ("003", Preset::Deadline),
    ("004", Preset::CronService),
];

/// Reads a named retry policy, and the fields that override parts of it. If `by_deadline` is true
/// and no retry field is given, returns the policy `deadline`.
pub(super) fn read(fields: &mut Fields<'_>, by_deadline: bool) -> RetryPolicy {
    const FIELDS: [&str; 7] = [
        "max_retries", "retry_backoff", "retry_backoff_seconds", "retry_backoff_cap_seconds",
        "retry_stages", "retry_jitter", "retry_jitter_percent",
    ];
    let named = fields.word("retry_policy", &PRESETS);
    // Every retry field is read before the early return, so that all retry fields count as known.
    let given = FIELDS.map(|field| fields.value(field).is_some());
    let base = match named {
        Some(preset) => preset.policy(),
        None if by_deadline && !given.contains(&true) => return RetryPolicy::deadline(),
        None => RetryPolicy::standard(),
    };
    let max_retries = fields
        .whole("max_retries", 0..=u64::from(RetryPolicy::MAX_RETRIES))
        .unwrap_or(base.max_retries);
    let (backoff, is_other) = backoff(fields, &base.backoff);
    // Retry stages that do not come from a named policy have no jitter by default, like the policy
    // `deadline`.
    let by_chance = !(is_other && matches!(backoff, Backoff::Stages { .. }));
    let jitter = jitter(fields, if by_chance { base.jitter } else { Jitter::None });
    RetryPolicy { max_retries, backoff, jitter }
}

/// Reads the backoff of a retry policy. The returned flag is true if the kind of backoff is another
/// than in `base`.
fn backoff(fields: &mut Fields<'_>, base: &Backoff) -> (Backoff, bool) {
    let words =
        [("exponential", Growth::Doubling), ("fixed", Growth::None), ("stages", Growth::Stages)];
    let has_stages = fields.value("retry_stages").is_some();
    let growth = fields.word("retry_backoff", &words).unwrap_or(match base {
        _ if has_stages => Growth::Stages,
        base => Growth::of(base),
    });
    let is_other = growth != Growth::of(base);
    let wait = fields.seconds("retry_backoff_seconds", 0..=FIXED_BACKOFF_SECONDS_MAX);
    let cap = fields.seconds("retry_backoff_cap_seconds", 1..=FIXED_BACKOFF_SECONDS_MAX);
    let stages = stages(fields);
    if cap.is_some() && growth != Growth::Doubling {
        fields.fault(
            "retry_backoff_cap_seconds",
            "is for \"retry_backoff\": \"exponential\" only; leave it out",
        );
    }
    if has_stages && growth != Growth::Stages {
        fields.fault("retry_stages", "is for \"retry_backoff\": \"stages\" only; leave it out");
    }
    let standard = Span::from_secs(60);
    let backoff = match (growth, base) {
        (Growth::Doubling, Backoff::Exponential { base, cap: longest }) => {
            doubling(fields, wait.unwrap_or(*base), cap.unwrap_or(*longest))
        }
        (Growth::Doubling, _) => {
            let longest = Span::from_secs(EXPONENTIAL_BACKOFF_SECONDS_MAX);
            doubling(fields, wait.unwrap_or(standard), cap.unwrap_or(longest))
        }
        (Growth::None, Backoff::Fixed { delay }) => {
            Backoff::Fixed { delay: wait.unwrap_or(*delay) }
        }
        (Growth::None, _) => Backoff::Fixed { delay: wait.unwrap_or(standard) },
        (Growth::Stages, base) => {
            let delays = match (stages, base) {
                (Some(delays), _) => Backoff::Stages { delays },
                (None, Backoff::Stages { .. }) => base.clone(),
                (None, _) => RetryPolicy::deadline().backoff,
            };
            in_stages(fields, delays, wait)
        }
    };
    (backoff, is_other)
}

fn doubling(fields: &mut Fields<'_>, base: Span, cap: Span) -> Backoff {
    if base > cap {
        let message = format!(
            "{} is more than {}, the longest delay of an exponential backoff; raise \
             retry_backoff_cap_seconds or set \"retry_backoff\": \"fixed\"",
            whole_seconds(base),
            whole_seconds(cap),
        );
        fields.fault("retry_backoff_seconds", message);
    }
    Backoff::Exponential { base, cap }
}

/// Refuses `retry_backoff_seconds` if it differs from the delay of the first retry stage.
fn in_stages(fields: &mut Fields<'_>, backoff: Backoff, wait: Option<Span>) -> Backoff {
    if let (Backoff::Stages { delays }, Some(wait)) = (&backoff, wait)
        && delays.first().is_some_and(|first| whole_seconds(*first) != whole_seconds(wait))
    {
        let all: Vec<String> = delays.iter().map(ToString::to_string).collect();
        let message = format!(
            "contradicts the stages, which wait for {}; leave it out, or change retry_stages",
            all.join(", then ")
        );
        fields.fault("retry_backoff_seconds", message);
    }
    backoff
}

fn stages(fields: &mut Fields<'_>) -> Option<Vec<Span>> {
    const RANGE: RangeInclusive<Span> =
        Span::from_secs(1)..=Span::from_secs(FIXED_BACKOFF_SECONDS_MAX);
    let is_given = fields.value("retry_stages").is_some();
    let items = fields.items("retry_stages", RETRY_STAGES_MAX);
    if is_given && items.is_empty() {
        let message = format!(
            "must be a list of 1 to {RETRY_STAGES_MAX} delays, like [\"5m\", \"1h\", \"4h\"]; the last \
             delay repeats"
        );
        fields.fault("retry_stages", message);
    }
    let mut delays = Vec::with_capacity(items.len());
    for item in items {
        let read = item.as_str().and_then(|text| length::span(text).ok());
        match read.filter(|span| RANGE.contains(span)) {
            Some(span) => delays.push(span),
            None => {
                let (low, high) = RANGE.into_inner();
                let message =
                    format!("{} is not a delay like \"5m\", between {low} and {high}", shown(item));
                fields.fault("retry_stages", message);
            }
        }
    }
    (!delays.is_empty()).then_some(delays)
}

fn jitter(fields: &mut Fields<'_>, base: Jitter) -> Jitter {
    /// Default jitter in percent.
    const PERCENT: u8 = 20;
    let kind = fields.word(
        "retry_jitter",
        &[
            ("none", Jitter::None),
            ("symmetric", Jitter::Symmetric { percent: 0 }),
            ("additive", Jitter::Additive { percent: 0 }),
        ],
    );
    let percent = fields.whole::<u8>("retry_jitter_percent", 0..=100);
    let usual = match base {
        Jitter::None => PERCENT,
        Jitter::Symmetric { percent } | Jitter::Additive { percent } => percent,
    };
    match (kind, kind.unwrap_or(base), percent) {
        (_, _, Some(0)) | (_, Jitter::None, None) => Jitter::None,
        (Some(Jitter::None), _, Some(_)) => {
            let message = "contradicts \"retry_jitter\": \"none\"; leave one of them out";
            fields.fault("retry_jitter_percent", message);
            Jitter::None
        }
        (_, Jitter::Additive { .. }, _) => Jitter::Additive { percent: percent.unwrap_or(usual) },
        (_, Jitter::None | Jitter::Symmetric { .. }, _) => {
            Jitter::Symmetric { percent: percent.unwrap_or(usual) }
        }
    }
}

/// Reads the action to take after a run has failed and is not retried.
pub(super) fn on_failure(fields: &mut Fields<'_>) -> OnFailure {
    #[derive(Copy, Clone, PartialEq)]
    enum Act {
        None,
        Pause,
        DeadLetter,
    }
    let wrong = "is not an object like {\"action\": \"pause\", \"after\": 3}";
    let object = fields.convert("on_failure", wrong, Value::as_object);
    let Some(object) = object else { return OnFailure::None };
    let mut inner = Fields::new(object, "on_failure.", std::mem::take(&mut fields.faults));
    inner.require("action", "write none, pause or dead_letter");
    let words = [("none", Act::None), ("pause", Act::Pause), ("dead_letter", Act::DeadLetter)];
    let action = inner.word("action", &words);
    let after = inner.whole("after", 1..=u64::from(OnFailure::AFTER_MAX));
    let note = inner.text("note").map(str::trim).filter(|note| !note.is_empty());
    if note.is_some_and(|note| note.chars().count() > NOTE_CHARS_MAX) {
        inner.fault("note", format!("is longer than {NOTE_CHARS_MAX} characters"));
    } else if note.is_some_and(|note| note.contains(char::is_control)) {
        inner.fault("note", "holds control characters; remove them");
    }
    for field in ["after", "note"] {
        if action.is_some_and(|action| action != Act::Pause) && inner.value(field).is_some() {
            inner.fault(field, "is for \"action\": \"pause\" only; leave it out");
        }
    }
    fields.faults = inner.finish(|_| None);
    match action {
        None | Some(Act::None) => OnFailure::None,
        Some(Act::DeadLetter) => OnFailure::DeadLetter,
        Some(Act::Pause) => OnFailure::Pause {
            after: after.unwrap_or(OnFailure::AFTER_DEFAULT),
            note: note.map(Into::into),
        },
    }
}
