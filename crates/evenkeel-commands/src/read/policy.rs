//! How a job behaves when things do not go as planned.

use evenkeel_core::job::{OnExhausted, OnLostWorker};
use evenkeel_core::limit::{KEY_CHARS_MAX, KEY_LIMIT_MAX};
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::Once;
use evenkeel_core::{Definition, Schedule, Span};

use super::fields::Fields;
use super::limits::{
    COST_MIN, CRASHES_MAX, POOL_CHARS_MAX, SPAN_MAX, SPAN_MIN, TIMEOUT_SECONDS_MAX,
};
use super::retry;
use super::timing::is_turned_off;
use crate::fault::shown;

/// A definition whose policies are those of the document, and all else as by default.
/// Jobs that are said as in the document about deadlines have that one's retries, if they say
/// nothing else.
pub(super) fn read(fields: &mut Fields<'_>, by_deadline: bool) -> Definition {
    let default = Definition::noop(Schedule::Once(Once::NOW));
    let max_expected_duration = fields.span("max_expected_duration", SPAN_MIN..=SPAN_MAX);
    let max_allowed_duration = fields.span("max_allowed_duration", SPAN_MIN..=SPAN_MAX);
    if let (Some(expected), Some(allowed)) = (max_expected_duration, max_allowed_duration)
        && expected > allowed
    {
        let message = format!(
            "{expected} is longer than max_allowed_duration, which is {allowed}: a run that is \
             ended by then is never noted as longer than expected"
        );
        fields.fault("max_expected_duration", message);
    }
    let (concurrency_key, concurrency_limit) = concurrency(fields);
    Definition {
        concurrency_key,
        concurrency_limit,
        retry: retry::read(fields, by_deadline),
        on_failure: retry::on_failure(fields),
        on_exhausted: fields
            .word(
                "on_exhausted",
                &[("continue", OnExhausted::Continue), ("stop", OnExhausted::Stop)],
            )
            .unwrap_or_default(),
        on_lost_worker: fields
            .word("on_lost_worker", &[("retry", OnLostWorker::Retry), ("fail", OnLostWorker::Fail)])
            .unwrap_or_default(),
        max_crashes: fields
            .number("max_crashes", 0..=u64::from(CRASHES_MAX))
            .and_then(|number| u16::try_from(number).ok())
            .unwrap_or(default.max_crashes),
        timeout: fields
            .number("timeout_sec", 1..=TIMEOUT_SECONDS_MAX)
            .map_or(default.timeout, Span::from_secs),
        max_expected_duration,
        max_allowed_duration,
        cost: fields.span("cost", COST_MIN..=SPAN_MAX),
        lane: fields
            .word(
                "lane",
                &[
                    ("critical", Lane::Critical),
                    ("standard", Lane::Standard),
                    ("batch", Lane::Batch),
                ],
            )
            .unwrap_or_default(),
        priority: fields
            .number("priority", 0..=u64::from(Priority::MAX.get()))
            .and_then(|number| Priority::try_from(u8::try_from(number).ok()?).ok())
            .unwrap_or_default(),
        pool: pool(fields).unwrap_or_else(|| default.pool.clone()),
        misfire: fields
            .word(
                "misfire",
                &[
                    ("last", MisfirePolicy::Last),
                    ("skip", MisfirePolicy::Skip),
                    ("all", MisfirePolicy::All),
                ],
            )
            .unwrap_or_default(),
        // Firing is always a little late: with no tolerance at all every time would be missed.
        misfire_after: fields
            .span("misfire_after", SPAN_MIN..=SPAN_MAX)
            .unwrap_or(default.misfire_after),
        overlap: fields
            .word(
                "overlap",
                &[
                    ("skip", OverlapPolicy::Skip),
                    ("queue", OverlapPolicy::Queue),
                    ("allow", OverlapPolicy::Allow),
                    ("replace", OverlapPolicy::Replace),
                ],
            )
            .unwrap_or_default(),
        ..default
    }
}

/// Refuses what would have no effect, unless it is the default, which is shown and sent back.
pub(super) fn check_effects(fields: &mut Fields<'_>, schedule: &Schedule, policies: &Definition) {
    let default = Definition::noop(Schedule::Once(Once::NOW));
    let Definition { misfire, misfire_after, overlap, max_crashes, .. } = policies;
    if schedule.follows_its_end() {
        let never = "has no effect on a periodic job, which misses no time: it starts as soon as it \
                     may";
        if *misfire != default.misfire {
            fields.fault("misfire", format!("{never}. Leave it out, or write last"));
        }
        if *misfire_after != default.misfire_after {
            let usual = default.misfire_after;
            fields.fault("misfire_after", format!("{never}. Leave it out, or write {usual}"));
        }
        if matches!(overlap, OverlapPolicy::Queue | OverlapPolicy::Replace) {
            let message = "has no effect on a periodic job, whose next run always waits for the end of \
                           the one before. Leave it out, or write skip, or allow to let it be \
                           triggered while it runs";
            fields.fault("overlap", message);
        }
    }
    let is_once = matches!(schedule, Schedule::Once(_)) && !is_turned_off(fields);
    if is_once && *misfire == MisfirePolicy::All {
        let message = "all has no effect on a job that runs once, which has one time to miss. Leave it \
                       out, or write last or skip";
        fields.fault("misfire", message);
    }
    if policies.on_lost_worker == OnLostWorker::Fail && *max_crashes != default.max_crashes {
        let usual = default.max_crashes;
        let message = format!(
            "has no effect with \"on_lost_worker\": \"fail\", by which the first lost worker ends the \
             run. Leave it out, or write {usual}"
        );
        fields.fault("max_crashes", message);
    }
}

/// A key, and how many runs with it may go on at once.
fn concurrency(fields: &mut Fields<'_>) -> (Option<String>, Option<u32>) {
    let key = fields.text("concurrency_key").map(str::to_owned);
    let limit = fields
        .number("concurrency_limit", 1..=u64::from(KEY_LIMIT_MAX))
        .and_then(|number| u32::try_from(number).ok());
    let Some(key) = key else {
        if limit.is_some() {
            let message =
                "is a limit of runs with the same key: say which concurrency_key it is of";
            fields.fault("concurrency_limit", message);
        }
        return (None, None);
    };
    let length = key.chars().count();
    if !(1..=KEY_CHARS_MAX).contains(&length) {
        let message = format!("has {length} characters; a key has 1 to {KEY_CHARS_MAX}");
        fields.fault("concurrency_key", message);
        return (None, None);
    }
    (Some(key), Some(limit.unwrap_or(1)))
}

fn pool(fields: &mut Fields<'_>) -> Option<String> {
    let text = fields.text("pool")?;
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if (1..=POOL_CHARS_MAX).contains(&text.len()) && text.chars().all(legal) {
        Some(text.into())
    } else {
        let message = format!(
            "{} is not the name of a pool: 1 to {POOL_CHARS_MAX} letters, digits, dots, dashes and \
             underscores",
            shown(&text.into()),
        );
        fields.fault("pool", message);
        None
    }
}
