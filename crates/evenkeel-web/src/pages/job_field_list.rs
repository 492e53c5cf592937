//! The list of fields of the job form.

pub(super) enum Kind {
    Text,
    Number,
    /// Several lines of text.
    Area,
    Choice(&'static [&'static str]),
}

/// A field of the form. Its name is the path of the field in the API, except for the parts of a
/// schedule, whose names in the API differ by the kind of schedule.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

const fn field(name: &'static str, label: &'static str, kind: Kind, help: &'static str) -> Field {
    Field { name, label, kind, help }
}

use Kind::{Area, Choice, Number, Text};

/// Groups of the form: title and fields. Groups after the first three are closed at first.
pub(super) const GROUPS: &[(&str, &[Field])] = &[
    (
        "Job",
        &[
            field("name", "Name", Text, "unique within the tenant"),
            field("description", "Description", Text, ""),
        ],
    ),
    (
        "Schedule",
        &[
            field(
                "schedule.kind",
                "Kind",
                Choice(&["interval", "cron", "periodic", "once"]),
                "periodic: a run succeeds at least once in each period",
            ),
            field(
                "schedule.value",
                "Interval, cron expression, period or time",
                Text,
                "for example 30m, 0 9 * * 1-5, 24h or 2026-12-01T09:00:00Z; once without a time runs now",
            ),
            field(
                "schedule.limit",
                "Deadline, or pause of a periodic job",
                Text,
                "a run must end this long after its time, for example 10m; for periodic jobs the pause after each run",
            ),
            field("timezone", "Time zone", Text, "for example Europe/Berlin; without it UTC"),
            field(
                "dst_gap",
                "If daylight saving skips the time",
                Choice(&["shift", "skip"]),
                "shift: run after the gap",
            ),
            field(
                "dst_overlap",
                "If the time occurs twice",
                Choice(&["first", "last", "both"]),
                "",
            ),
            field(
                "blackout_periods",
                "Blackouts",
                Area,
                "local hours without runs, one period per line: 22:00-06:00",
            ),
        ],
    ),
    (
        "Executor",
        &[
            field(
                "executor_type",
                "Executor",
                Choice(&["noop", "http", "crawl", "shell"]),
                "shell needs a server with --enable-shell",
            ),
            field("executor_config.url", "URL (http, crawl)", Text, ""),
            field("executor_config.method", "Method (http)", Text, "POST by default"),
            field(
                "executor_config.headers",
                "Headers (http)",
                Area,
                "as JSON, for example {\"X-Team\": \"news\"}",
            ),
            field(
                "executor_config.body_text", "Body (http)", Area, "by default the payload as JSON",
            ),
            field(
                "executor_config.scope",
                "Scope (crawl)",
                Choice(&["host", "site", "prefix"]),
                "",
            ),
            field(
                "executor_config.depth", "Depth (crawl)", Number,
                "links from the start, 2 by default",
            ),
            field("executor_config.max_pages", "Pages (crawl)", Number, "at most, 100 by default"),
            field(
                "executor_config.argv",
                "Program (shell)",
                Area,
                "the program and its arguments, one per line",
            ),
            field("executor_config.cwd", "Folder (shell)", Text, "/ by default"),
            field("payload", "Payload", Area, "any JSON that the executor gets"),
        ],
    ),
    (
        "Retries and time limits",
        &[
            field("max_retries", "Retries", Number, "at most, after the first attempt"),
            field(
                "retry_backoff",
                "Delay between retries",
                Choice(&["exponential", "fixed", "stages"]),
                "",
            ),
            field("retry_backoff_seconds", "First delay", Number, "in seconds"),
            field(
                "timeout_sec",
                "Silence",
                Number,
                "seconds without activity until an attempt times out",
            ),
            field(
                "max_allowed_duration",
                "Longest duration",
                Text,
                "a longer run is stopped, for example 1h",
            ),
            field(
                "max_expected_duration",
                "Expected duration",
                Text,
                "a longer run is logged, for example 10m",
            ),
        ],
    ),
    (
        "Queue",
        &[
            field("priority", "Priority", Number, "0 to 100, within the lane"),
            field("lane", "Lane", Choice(&["critical", "standard", "batch"]), ""),
            field("pool", "Pool", Text, "the workers that run the job"),
            field(
                "overlap",
                "If an earlier run is active",
                Choice(&["skip", "queue", "allow", "replace"]),
                "",
            ),
            field("misfire", "Missed runs", Choice(&["last", "skip", "all"]), "which of them run"),
            field("misfire_after", "Missed after", Text, "for example 1m"),
        ],
    ),
];

pub(super) fn fields() -> impl Iterator<Item = &'static Field> {
    GROUPS.iter().flat_map(|(_, fields)| *fields)
}
