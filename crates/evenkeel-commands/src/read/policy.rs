//! Reads the policies of a job: durations, lanes, pools, missed runs, overlaps, lost workers and
//! retries.

use evenkeel_core::job::OnLostWorker;
use evenkeel_core::limit::{KEY_CHARS_MAX, KEY_LIMIT_MAX};
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::Once;
use evenkeel_core::{Definition, Schedule};

use super::fields::Fields;
use super::timing::is_turned_off;
use super::{job_fields, retry};

/// Reads the policies of a job into `job`. If `by_deadline` is true, the retry policy defaults to
/// `deadline`.
pub(super) fn read(fields: &mut Fields<'_>, by_deadline: bool, job: &mut Definition) {
    job_fields::read(job_fields::POLICIES, fields, job);
    if let (Some(expected), Some(allowed)) = (job.max_expected_duration, job.max_allowed_duration)
        && expected > allowed
    {
        let message = format!(
            "{expected} is longer than max_allowed_duration, which is {allowed}: a run that is \
             ended by then is never logged as longer than expected"
        );
        fields.fault("max_expected_duration", message);
    }
    (job.concurrency_key, job.concurrency_limit) = concurrency(fields);
    job.retry = retry::read(fields, by_deadline);
    job.on_failure = retry::on_failure(fields);
}

/// Refuses policy fields whose values have no effect. Default values are accepted, because clients
/// send back whole jobs.
pub(super) fn check_effects(fields: &mut Fields<'_>, job: &Definition) {
    let default = Definition::noop(Schedule::Once(Once::NOW));
    if job.schedule.follows_its_end() {
        let never = "has no effect on a periodic job, which misses no time: it starts as soon as it \
                     may";
        if job.misfire != default.misfire {
            fields.fault("misfire", format!("{never}. Leave it out, or write last"));
        }
        if job.misfire_after != default.misfire_after {
            let usual = default.misfire_after;
            fields.fault("misfire_after", format!("{never}. Leave it out, or write {usual}"));
        }
        if matches!(job.overlap, OverlapPolicy::Queue | OverlapPolicy::Replace) {
            let message = "has no effect on a periodic job, whose next run always waits for the end of \
                           the previous run. Leave it out, or write skip, or write allow so that the \
                           job can be triggered while it runs";
            fields.fault("overlap", message);
        }
    }
    let is_once = matches!(job.schedule, Schedule::Once(_)) && !is_turned_off(fields);
    if is_once && job.misfire == MisfirePolicy::All {
        let message = "all has no effect on a job that runs once, which has one time to miss. Leave it \
                       out, or write last or skip";
        fields.fault("misfire", message);
    }
    if job.on_lost_worker == OnLostWorker::Fail && job.max_crashes != default.max_crashes {
        let usual = default.max_crashes;
        let message = format!(
            "has no effect with \"on_lost_worker\": \"fail\", by which the first lost worker ends the \
             run. Leave it out, or write {usual}"
        );
        fields.fault("max_crashes", message);
    }
}

/// Reads a concurrency key, and the maximum number of active runs with that key.
fn concurrency(fields: &mut Fields<'_>) -> (Option<String>, Option<u32>) {
    let key = fields.text("concurrency_key").map(str::to_owned);
    let limit = fields.whole::<u32>("concurrency_limit", 1..=u64::from(KEY_LIMIT_MAX));
    let Some(key) = key else {
        if limit.is_some() {
            let message = "limits the runs with the same concurrency_key; give that key, too";
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
