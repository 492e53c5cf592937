//! Fields that are known somewhere, and why they are not taken here.

/// What the server says about a job, and a job can't say about itself.
const SET_BY_THE_SERVER: [&str; 22] = [
    "average_duration_ms",
    "completed_at",
    "consecutive_failures",
    "created_at",
    "created_by",
    "current_retry_count",
    "error_message",
    "execution_count",
    "generation",
    "id",
    "is_paused",
    "last_end_at",
    "last_good_end_at",
    "last_good_start_at",
    "last_run_at",
    "last_scheduled_at",
    "last_start_at",
    "next_run_at",
    "paused_at",
    "started_at",
    "status",
    "updated_at",
];

/// What a job will be able to say one day. A version that took it and did nothing about it would
/// break a promise without a word.
const NOT_YET: [(&str, &str); 18] = [
    ("blackout_periods", "leave it out"),
    ("concurrency_key", "leave it out"),
    ("concurrency_limit", "leave it out"),
    ("cooldown_duration", "give an interval as schedule"),
    ("cron_expression", "give an interval as schedule"),
    ("cron_max_schedule_duration", "give an interval as schedule"),
    ("cron_schedule", "give an interval as schedule"),
    ("dedup_key", "leave it out"),
    ("dont_run_on_nodes", "leave it out"),
    ("enabled", "leave it out"),
    ("end_at", "leave it out"),
    ("exact", "leave it out; every interval is exact"),
    ("max_expected_duration", "use max_allowed_duration, which ends what takes longer"),
    ("max_runs", "leave it out"),
    ("schedule_time", "give an interval as schedule"),
    ("scheduling_period", "give an interval as schedule"),
    ("start_at", "give an interval with an anchor as schedule"),
    ("target", "use source_id, source_name and url"),
];

/// Why a field is not taken, if it is one of these.
pub(super) fn reason(field: &str) -> Option<String> {
    if SET_BY_THE_SERVER.contains(&field) {
        return Some("is set by the server; leave it out".into());
    }
    let (_, instead) = NOT_YET.iter().find(|(name, _)| *name == field)?;
    Some(format!("is not supported yet; {instead}"))
}
