//! The table of simple job fields. Each row has the name of a job field, its place in the stored
//! job, and the function that reads it, with bounds.
//!
//! The parser and the writer of job documents and the list of known fields use this table, so a new
//! simple job field needs only one line here. Job fields with more complex rules (schedules,
//! executors, retries, deduplication, concurrency) are read in separate modules. A test of the
//! command line checks that the OpenAPI schemas, the flags and the documentation contain all known
//! fields.

use evenkeel_core::job::{DEFAULT_POOL, OnExhausted, OnLostWorker};
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::order::Lane;
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::schedule::{Gap, Overlap};
use evenkeel_core::{About, Definition, Schedule, Span};
use serde_json::{Value, json};

use super::fields::Fields;
use super::limits::{
    COST_MIN, CRASHES_MAX, DESCRIPTION_CHARS_MAX, METADATA_BYTES_MAX, NODES_MAX, NUMBER_MAX,
    RUNS_MAX, SPAN_MAX, SPAN_MIN, TIMEOUT_SECONDS_MAX,
};

use crate::Object;

/// One simple field of a job. `T` is the part of the job that contains the field.
pub(crate) struct JobField<T> {
    name: &'static str,
    /// Reads the field from a JSON document into the job. If the field is absent, the job keeps its
    /// default value.
    read: fn(&mut Fields<'_>, &mut T),
    /// Returns the value of the field for the JSON document of a stored job; null means that the
    /// document does not contain the field.
    write: fn(&T) -> Value,
    /// Returns a valid value of the field, for tests.
    #[cfg(test)]
    sample: fn() -> Value,
}

pub(super) fn read<T>(table: &[JobField<T>], fields: &mut Fields<'_>, part: &mut T) {
    for field in table {
        (field.read)(fields, part);
    }
}

/// Returns all simple job fields, each with a valid value.
#[cfg(test)]
pub(super) fn samples() -> Vec<(&'static str, Value)> {
    let about = ABOUT.iter().map(|field| (field.name, (field.sample)()));
    let rest = TIMES.iter().chain(POLICIES).map(|field| (field.name, (field.sample)()));
    about.chain(rest).collect()
}

/// Adds the fields of a table to the JSON document of a stored job.
pub(crate) fn write<T>(table: &[JobField<T>], part: &T, document: &mut Object) {
    for field in table {
        let value = (field.write)(part);
        if !value.is_null() {
            document.insert(field.name.into(), value);
        }
    }
}

/// Builds a table of job fields. Each line has the form `"name" => place: reader(bounds)`, where
/// the reader is a method of [`Fields`]. `as function` converts the stored value to JSON. `unless
/// function` leaves the field out of the job's JSON document if the function returns true.
macro_rules! job_fields {
    ($($name:literal => $($place:ident).+: $reader:ident $(::<$kind:ty>)? ($($bound:expr),*)
       $(as $writer:path)? $(, unless $is_left_out:path)?;)+) => {
        &[$(JobField {
            name: $name,
            read: |fields, job| {
                if let Some(value) = fields.$reader$(::<$kind>)?($name $(, $bound)*) {
                    job.$($place).+ = value.into();
                }
            },
            write: |job| {
                $(if $is_left_out(job) {
                    return Value::Null;
                })?
                job_fields!(@write job.$($place).+ $(, $writer)?)
            },
            #[cfg(test)]
            sample: || super::tests::samples::$reader$(::<$kind>)?($($bound),*),
        }),+]
    };
    (@write $value:expr) => { json!($value) };
    (@write $value:expr, $writer:path) => { json!($writer($value)) };
}

/// Job fields that describe a job, such as its name, and do not affect the start times of runs.
pub(crate) const ABOUT: &[JobField<About>] = job_fields! {
    "name" => name: label();
    "configuration" => configuration: label();
    "description" => description: multiline(DESCRIPTION_CHARS_MAX);
    "source_id" => source_id: label();
    "source_name" => source_name: label();
    "url" => url: url(), unless About::is_follower;
    "target" => target: whole::<i64>(1..=NUMBER_MAX);
    "metadata" => metadata: object(METADATA_BYTES_MAX);
};

/// Fields, besides the schedule, that affect when a job runs. Schedule previews also read them.
pub(crate) const TIMES: &[JobField<Definition>] = job_fields! {
    "dst_gap" => dst.gap: word(&[("shift", Gap::Shift), ("skip", Gap::Skip)]),
        unless ignores_clock_changes;
    "dst_overlap" => dst.overlap: word(&[
        ("first", Overlap::First), ("last", Overlap::Last), ("both", Overlap::Both),
    ]), unless ignores_clock_changes;
    "start_at" => bounds.start_at: moment();
    "end_at" => bounds.end_at: moment();
    "max_runs" => bounds.max_runs: number(1..=RUNS_MAX);
    "avoid_blackout" => avoid_blackout: flag(), unless has_no_blackouts;
    "average_duration_override" => average_override: span(Span::ZERO..=SPAN_MAX);
};

/// Fields that define how a job runs, and what happens when a run is late, overlaps or loses its
/// worker.
pub(crate) const POLICIES: &[JobField<Definition>] = job_fields! {
    "timeout_sec" => timeout: seconds(1..=TIMEOUT_SECONDS_MAX) as whole_seconds;
    "max_expected_duration" => max_expected_duration: span(SPAN_MIN..=SPAN_MAX);
    "max_allowed_duration" => max_allowed_duration: span(SPAN_MIN..=SPAN_MAX);
    "cost" => cost: span(COST_MIN..=SPAN_MAX);
    "lane" => lane: word(&LANES);
    "priority" => priority: priority();
    "pool" => pool: pool(), unless is_in_default_pool;
    "dont_run_on_nodes" => dont_run_on_nodes: names(NODES_MAX);
    "misfire" => misfire: word(&[
        ("last", MisfirePolicy::Last), ("skip", MisfirePolicy::Skip), ("all", MisfirePolicy::All),
    ]), unless misfire_has_no_effect;
    // `misfire_after` must not be zero, because every run starts a little late and would then count
    // as missed.
    "misfire_after" => misfire_after: span(SPAN_MIN..=SPAN_MAX), unless is_periodic;
    "overlap" => overlap: word(&[
        ("skip", OverlapPolicy::Skip), ("queue", OverlapPolicy::Queue),
        ("allow", OverlapPolicy::Allow), ("replace", OverlapPolicy::Replace),
    ]), unless overlap_has_no_effect;
    "on_lost_worker" => on_lost_worker: word(&[
        ("retry", OnLostWorker::Retry), ("fail", OnLostWorker::Fail),
    ]);
    "max_crashes" => max_crashes: whole::<u16>(0..=u64::from(CRASHES_MAX)),
        unless fails_with_the_first_lost_worker;
    "on_exhausted" => on_exhausted: word(&[
        ("continue", OnExhausted::Continue), ("stop", OnExhausted::Stop),
    ]);
};

/// All lanes by name.
pub(crate) const LANES: [(&str, Lane); 3] =
    [("critical", Lane::Critical), ("standard", Lane::Standard), ("batch", Lane::Batch)];

pub(crate) fn whole_seconds(span: Span) -> u64 {
    span.as_micros() / 1_000_000
}

fn ignores_clock_changes(job: &Definition) -> bool {
    !matches!(job.schedule, Schedule::Cron(_) | Schedule::Calendar(_))
}

fn has_no_blackouts(job: &Definition) -> bool {
    job.blackout_periods.is_empty()
}

fn is_in_default_pool(job: &Definition) -> bool {
    job.pool == DEFAULT_POOL
}

fn is_periodic(job: &Definition) -> bool {
    job.schedule.follows_its_end()
}

fn misfire_has_no_effect(job: &Definition) -> bool {
    let is_once = matches!(job.schedule, Schedule::Once(_));
    is_periodic(job) || is_once && job.misfire == MisfirePolicy::All
}

fn overlap_has_no_effect(job: &Definition) -> bool {
    is_periodic(job) && job.overlap != OverlapPolicy::Allow
}

fn fails_with_the_first_lost_worker(job: &Definition) -> bool {
    job.on_lost_worker == OnLostWorker::Fail
}
