//! Shows jobs as tables and lists.

use clap::Args;
use evenkeel_core::{Span, Timestamp};
use serde_json::Value;

use super::conditions::tone_of_condition;
use super::filter::FilterArgs;
use super::find;
use crate::Result;
use crate::cli::Session;
use crate::cli::list::{CursorArgs, next_of};
use crate::cli::run::{moment, priority, when};
use crate::output::{Table, Tone, ago, clean, duration_ms, tone_of};

#[derive(Args, Clone)]
#[command(mut_arg("limit", |limit| limit.help("The largest number of jobs").default_value("50")))]
pub struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Sort by created_at, updated_at, name or next_run_at; a - before the name means descending
    #[arg(long, value_name = "ORDER", allow_hyphen_values = true)]
    #[arg(value_parser = [
        "created_at", "updated_at", "name", "next_run_at", "-created_at", "-updated_at", "-name",
        "-next_run_at",
    ])]
    sort: Option<String>,
    #[command(flatten)]
    page: CursorArgs,
}

pub(super) async fn list(session: &Session, args: ListArgs) -> Result {
    let filter = args.filter.query();
    let mut query = args.page.query();
    query.extend(args.sort.clone().map(|sort| ("sort", sort)));
    query.extend(filter.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let answer = session.client.get_with(&["jobs"], &query).await?;
    let headings =
        ["JOB", "STATUS", "CONDITION", "SCHEDULE", "DOES", "NEXT RUN", "LAST RUN", "RUNS"];
    let rows = answer.list_of("jobs").iter().map(|job| row(job, session.now()));
    let table = Table::of(session.output, headings, rows);
    let nothing = match args.filter.is_empty() {
        true => {
            "There are no jobs. Create one: evenkeel job create --name hello --every 10s --noop"
        }
        false => "No job matches. List all jobs: evenkeel job list",
    };
    let sort = args.sort.map_or_else(String::new, |sort| format!(" --sort {sort}"));
    let command = format!("job list{}{sort}", args.filter.flags());
    let about = if answer.value["total_is_estimate"] == true { "about " } else { "" };
    let total = format!("{about}{}", answer.value["total"]);
    let next = next_of(&answer, table.len(), &total, &command);
    session.page(&answer, table, &next, nothing)
}

fn row(job: &Value, now: Timestamp) -> [(String, Tone); 8] {
    let text = |field: &str| job[field].as_str().unwrap_or("-").to_owned();
    let (status, tone) = match job["consecutive_failures"].as_u64() {
        Some(failures) if failures > 0 => {
            (format!("{} ({failures} failed)", text("status")), Tone::Bad)
        }
        _ => (text("status"), tone_of(&text("status"))),
    };
    [
        (title(job), Tone::Plain),
        (status, tone),
        (text("condition"), tone_of_condition(&text("condition"))),
        (schedule(&job["schedule"]), Tone::Plain),
        (text("executor_type"), Tone::Plain),
        (when(&job["next_run_at"], now, "-"), Tone::Plain),
        (when(&job["last_run_at"], now, "-"), Tone::Plain),
        (job["execution_count"].to_string(), Tone::Plain),
    ]
}

/// Returns the name and the field `configuration` of a job, or the id of a job without a name.
pub(in super::super) fn title(job: &Value) -> String {
    let text = |field: &str| job[field].as_str();
    match (text("name"), text("configuration")) {
        (Some(name), Some(configuration)) => format!("{name} ({configuration})"),
        (Some(name), None) => name.into(),
        (None, _) => text("id").unwrap_or("-").into(),
    }
}

pub(super) fn schedule(schedule: &Value) -> String {
    let text = |field: &str| schedule[field].as_str();
    let or = |field: &str| text(field).unwrap_or("?");
    match (text("kind"), text("anchor"), text("at")) {
        (Some("interval"), Some(anchor), _) => format!("every {} from {anchor}", or("every")),
        (Some("interval"), None, _) => format!("every {}", or("every")),
        (Some("cron"), ..) => format!("cron {}", or("expression")),
        (Some("periodic"), ..) => format!("at most {} stale", or("period")),
        (Some("once"), _, Some(at)) => format!("once at {at}"),
        (Some("once"), ..) => "once".into(),
        _ => schedule.to_string(),
    }
}

pub(super) async fn show(session: &Session, job: &str) -> Result {
    let Session { client, output } = session;
    let answer = find(client, job).await?;
    if output.is_json() {
        return output.line(&answer.text);
    }
    let judged = client.get(&["jobs", answer.text_of("id"), "condition"]).await?;
    output.line(&details(&answer.value, &judged.value["deadline"], session.now()))
}

fn details(job: &Value, deadline: &Value, now: Timestamp) -> String {
    let mut details = Details { job, now, text: String::new() };
    details.identity();
    details.line("deadline", self::deadline(job, deadline, now));
    details.times();
    details.executor_and_history();
    details.policies();
    details.line("created", details.time("created_at"));
    details.text
}

/// Collects the output lines of the command `job show`.
struct Details<'a> {
    job: &'a Value,
    now: Timestamp,
    text: String,
}

impl Details<'_> {
    fn line(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.text.push_str(&format!("{name:<12}{}\n", clean(&value)));
        }
    }

    fn string(&self, field: &str) -> Option<String> {
        self.job[field].as_str().map(String::from)
    }

    fn time(&self, field: &str) -> Option<String> {
        moment(&self.job[field]).map(|at| format!("{at} ({})", ago(at, self.now)))
    }

    /// Returns a job field as JSON, unless the field is null or an empty object.
    fn json(&self, field: &str) -> Option<String> {
        let value = &self.job[field];
        let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        (!is_empty).then(|| value.to_string())
    }

    fn identity(&mut self) {
        let job = self.job;
        self.line("name", self.string("name"));
        self.line("id", self.string("id"));
        self.line("number", Some(job["number"].to_string()));
        self.line("about", self.string("description"));
        self.line("target", job["target"].as_i64().map(|target| target.to_string()));
        self.line("status", self.string("status"));
        let condition = self.string("condition").zip(self.string("condition_reason"));
        let condition = condition.map(|(condition, reason)| format!("{condition} ({reason})"));
        self.line("condition", condition);
    }

    fn times(&mut self) {
        let job = self.job;
        self.line("schedule", Some(schedule(&job["schedule"])));
        self.line("spread", spread(job));
        let tolerance = ["tolerance", "max_duration"].map(|name| job["schedule"][name].as_str());
        let tolerance = tolerance.into_iter().flatten().next();
        self.line("tolerance", tolerance.map(|span| format!("{span} after its time")));
        self.line("zone", self.string("timezone").filter(|zone| zone != "UTC"));
        self.line("starts", self.time("start_at"));
        self.line("ends", self.time("end_at"));
        let at_most = job["max_runs"].as_u64();
        self.line("at most", at_most.map(|max| format!("{max} runs, {} so far", job["run_count"])));
        self.line("blackouts", blackouts(job));
        self.line("prefers", hours(&job["prefer_window"]));
    }

    fn executor_and_history(&mut self) {
        let job = self.job;
        self.line("does", self.string("executor_type"));
        self.line("settings", self.json("executor_config"));
        self.line("payload", self.json("payload"));
        self.line("next run", next_run(job, self.time("next_run_at")));
        self.line("last run", self.time("last_run_at"));
        self.line("last good", self.time("last_good_end_at"));
        self.line("takes", takes(job));
        self.line("cost", self.string("cost").map(|cost| format!("{cost} a run, as stated")));
        self.line("runs", Some(job["execution_count"].to_string()));
        let failures = job["consecutive_failures"].as_u64().filter(|failures| *failures > 0);
        self.line("failures", failures.map(|failures| format!("{failures} in a row")));
        self.line("retries", Some(format!("{}, {}", job["max_retries"], wait(job))));
        self.line("if failed", on_failure(job));
        self.line("note", self.string("pause_note"));
    }

    fn policies(&mut self) {
        let job = self.job;
        self.line("timeout", Some(format!("{}s without a sign of life", job["timeout_sec"])));
        self.line("expected", self.string("max_expected_duration"));
        self.line("limit", self.string("max_allowed_duration"));
        self.line("overlap", self.string("overlap"));
        self.line("misfire", self.string("misfire"));
        let lane = self.string("lane").unwrap_or_default();
        let priority = priority(job).unwrap_or_default();
        self.line("lane", Some(format!("{lane}, priority {priority}")));
        self.line("not on", nodes(&job["dont_run_on_nodes"]));
        self.line("pool", self.string("pool").filter(|pool| pool != "default"));
        let at_once = |key| format!("{} at once with key {key}", job["concurrency_limit"]);
        self.line("limited", self.string("concurrency_key").map(at_once));
        let key = self.string("dedup_key").map(|key| {
            let scope = job["dedup_scope"].as_str().unwrap_or_default();
            match job["dedup_window_seconds"].as_u64() {
                Some(seconds) => format!("{key} (within {})", Span::from_secs(seconds)),
                None => format!("{key} (while {})", scope.replace('_', " ")),
            }
        });
        self.line("unique", key);
    }
}

/// Describes the job's field `exact`, or returns `None` for the default value of the schedule.
fn spread(job: &Value) -> Option<String> {
    match (job["schedule"]["kind"].as_str()?, job["exact"].as_bool()?) {
        ("cron", false) => Some("over the minute after each time (exact: false)".into()),
        ("interval", true) => Some("starts with its slot and is never moved (exact: true)".into()),
        _ => None,
    }
}

/// Formats the next run time. While a periodic job is running, its next run may start earlier than
/// the time shown.
fn next_run(job: &Value, time: Option<String>) -> Option<String> {
    let open = job["schedule"]["kind"] == "periodic" && job["status"] == "running";
    time.map(|time| if open { format!("{time}, at the latest") } else { time })
}

fn deadline(job: &Value, deadline: &Value, now: Timestamp) -> Option<String> {
    let at = moment(deadline)?;
    let must = if job["schedule"]["kind"] == "once" { "must have started" } else { "must be over" };
    Some(format!("{must} by {at} ({})", ago(at, now)))
}

/// Formats the measured average duration of a job, and the duration that the user set in its place.
fn takes(job: &Value) -> Option<String> {
    let measured = job["average_duration_ms"].as_u64().map(duration_ms);
    match (job["average_duration_override"].as_str(), measured) {
        (None, measured) => measured,
        (Some(stated), None) => Some(format!("{stated}, as stated")),
        (Some(stated), Some(measured)) => Some(format!("{stated}, as stated; measured {measured}")),
    }
}

fn blackouts(job: &Value) -> Option<String> {
    let periods = job["blackout_periods"].as_array()?.iter().filter_map(hours);
    let periods: Vec<String> = periods.collect();
    let avoided = if job["avoid_blackout"] == true { "; does not run into them" } else { "" };
    (!periods.is_empty()).then(|| format!("{}{avoided}", periods.join(", ")))
}

fn hours(hours: &Value) -> Option<String> {
    let edge = |name: &str| hours[name].as_str().unwrap_or("?").to_owned();
    hours.is_object().then(|| format!("{}-{}", edge("start"), edge("end")))
}

fn nodes(names: &Value) -> Option<String> {
    let names: Vec<&str> = names.as_array()?.iter().filter_map(Value::as_str).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn wait(job: &Value) -> String {
    let growth = job["retry_backoff"].as_str().unwrap_or_default();
    let jitter = match (job["retry_jitter"].as_str(), job["retry_jitter_percent"].as_u64()) {
        (Some("additive"), Some(percent)) => format!(", up to {percent} % longer"),
        (Some("symmetric"), Some(percent)) => format!(", {percent} % either way"),
        _ => String::new(),
    };
    let waits = match (job["retry_stages"].as_array(), job["retry_backoff_cap_seconds"].as_u64()) {
        (Some(stages), _) => {
            let stages: Vec<&str> = stages.iter().filter_map(Value::as_str).collect();
            format!("after {}", stages.join(", then "))
        }
        (None, Some(cap)) => {
            format!("{growth} from {}s to {cap}s", job["retry_backoff_seconds"])
        }
        (None, None) => format!("{growth} from {}s", job["retry_backoff_seconds"]),
    };
    format!("{waits}{jitter}")
}

/// Describes what happens when a run fails and has no retry left.
fn on_failure(job: &Value) -> Option<String> {
    let what = &job["on_failure"];
    match what["action"].as_str()? {
        "pause" => {
            let note = what["note"].as_str().map_or_else(String::new, |note| format!(": {note}"));
            Some(format!("paused after {} failed runs in a row{note}", what["after"]))
        }
        "dead_letter" => Some("put on the dead-letter list".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn next_run_of_a_running_periodic_job_is_an_upper_bound() {
        let now = "2026-12-01T09:00:00Z".parse().unwrap();
        let shown = |kind: &str, status: &str| {
            let schedule = json!({"kind": kind, "period": "1d", "every": "1d"});
            let next = "2026-12-02T09:00:00Z";
            let job = json!({"schedule": schedule, "status": status, "next_run_at": next});
            details(&job, &Value::Null, now)
        };
        assert!(shown("periodic", "running").contains("(in 1d), at the latest\n"));
        assert!(!shown("periodic", "scheduled").contains("at the latest"));
        assert!(!shown("interval", "running").contains("at the latest"));
    }

    #[test]
    fn settings_of_times_are_shown() {
        let now = "2026-12-01T09:00:00Z".parse().unwrap();
        let job = json!({
            "schedule": {"kind": "cron", "expression": "0 9 * * *"},
            "exact": false, "avoid_blackout": true,
            "blackout_periods": [{"start": "22:00", "end": "06:00"}],
            "average_duration_override": "5m", "average_duration_ms": 1500,
        });
        let shown = details(&job, &json!("2026-12-02T09:00:00Z"), now);
        for words in [
            "deadline    must be over by 2026-12-02T09:00:00.000000Z (in 1d)\n",
            "spread      over the minute after each time (exact: false)\n",
            "blackouts   22:00-06:00; does not run into them\n",
            "takes       5m, as stated; measured 1.5s\n",
        ] {
            assert!(shown.contains(words), "{shown}");
        }
        let job = json!({
            "schedule": {"kind": "interval", "every": "24h"}, "exact": true, "cost": "10m",
            "prefer_window": {"start": "22:00:00", "end": "06:00:00"},
        });
        let shown = details(&job, &Value::Null, now);
        for words in [
            "spread      starts with its slot and is never moved (exact: true)\n",
            "prefers     22:00:00-06:00:00\n",
            "cost        10m a run, as stated\n",
        ] {
            assert!(shown.contains(words), "{shown}");
        }
        let once =
            details(&json!({"schedule": {"kind": "once"}}), &json!("2026-12-02T09:00:00Z"), now);
        assert!(once.contains("must have started by"), "{once}");
        assert!(!once.contains("spread") && !once.contains("takes"), "{once}");
    }

    #[test]
    fn schedules_are_described() {
        for (value, words) in [
            (json!({"kind": "interval", "every": "30m"}), "every 30m"),
            (json!({"kind": "once"}), "once"),
            (json!({"kind": "cron", "expression": "0 9 * * *"}), "cron 0 9 * * *"),
            (json!({"kind": "periodic", "period": "1d"}), "at most 1d stale"),
            (json!({"kind": "once", "at": "2026-12-01T09:00:00Z"}), "once at 2026-12-01T09:00:00Z"),
        ] {
            assert_eq!(schedule(&value), words);
        }
    }
}
