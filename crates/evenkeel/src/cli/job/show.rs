//! Jobs for people to see.

use clap::Args;
use evenkeel_core::{Span, Timestamp};
use serde_json::Value;

use super::super::Context;
use super::super::run::{moment, priority};
use super::conditions::tone_of_condition;
use super::filter::FilterArgs;
use super::find;
use crate::Failure;
use crate::client::Client;
use crate::output::{Table, Tone, ago, clean, duration_ms, tone_of};

/// Which jobs.
#[derive(Args, Clone)]
pub(super) struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// By created_at, updated_at, name or next_run_at; with - before it, the largest first
    #[arg(long, value_name = "ORDER", allow_hyphen_values = true)]
    #[arg(value_parser = [
        "created_at", "updated_at", "name", "next_run_at", "-created_at", "-updated_at", "-name",
        "-next_run_at",
    ])]
    sort: Option<String>,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Go on where another list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub(super) async fn list(
    context: &Context,
    client: &Client,
    args: ListArgs,
) -> Result<(), Failure> {
    let limit = args.limit.to_string();
    let filter = args.filter.query();
    let mut query = vec![("limit", limit.as_str())];
    query.extend(args.cursor.as_deref().map(|cursor| ("cursor", cursor)));
    query.extend(args.sort.as_deref().map(|sort| ("sort", sort)));
    query.extend(filter.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let answer = client.get(&["jobs"], &query).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let jobs = answer.list_of("jobs");
    let next = answer.value["next_cursor"].as_str();
    if jobs.is_empty() && next.is_none() && !args.filter.is_open() {
        return context.output.line("No job is like that. All of them: evenkeel job list");
    }
    if jobs.is_empty() && next.is_none() {
        return context.output.line(
            "There are no jobs. Create one: evenkeel job create --name hello --every 10s --noop",
        );
    }
    let headings =
        ["JOB", "STATUS", "CONDITION", "SCHEDULE", "DOES", "NEXT RUN", "LAST RUN", "RUNS"];
    let mut table = Table::new(context.output, &headings);
    for job in jobs {
        table.row(row(job, context.now()));
    }
    let mut text = table.render();
    if let Some(cursor) = next {
        let about = if answer.value["total_is_estimate"] == true { "about " } else { "" };
        let sort = args.sort.map_or_else(String::new, |sort| format!(" --sort {sort}"));
        text.push_str(&format!(
            "\n{} of {about}{}; more with: evenkeel job list{}{sort} --cursor {}",
            jobs.len(),
            answer.value["total"],
            args.filter.flags(),
            clean(cursor)
        ));
    }
    context.output.line(&text)
}

fn row(job: &Value, now: Timestamp) -> [(String, Tone); 8] {
    let text = |field: &str| job[field].as_str().unwrap_or("-").to_owned();
    let when = |field: &str| moment(&job[field]).map_or_else(|| "-".into(), |at| ago(at, now));
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
        (when("next_run_at"), Tone::Plain),
        (when("last_run_at"), Tone::Plain),
        (job["execution_count"].to_string(), Tone::Plain),
    ]
}

/// What a job goes by: its name, which commands understand, or else its id.
pub(in super::super) fn title(job: &Value) -> String {
    let text = |field: &str| job[field].as_str();
    match (text("name"), text("configuration")) {
        (Some(name), Some(configuration)) => format!("{name} ({configuration})"),
        (Some(name), None) => name.into(),
        (None, _) => text("id").unwrap_or("-").into(),
    }
}

/// A schedule in words.
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

pub(super) async fn show(context: &Context, client: &Client, job: &str) -> Result<(), Failure> {
    let answer = find(client, job).await?;
    if context.output.is_json() {
        return context.output.line(&answer.text);
    }
    let judged = client.get(&["jobs", answer.text_of("id"), "condition"], &[]).await?;
    context.output.line(&details(&answer.value, &judged.value["deadline"], context.now()))
}

fn details(job: &Value, deadline: &Value, now: Timestamp) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("{name:<12}{}\n", clean(&value)));
        }
    };
    let string = |field: &str| job[field].as_str().map(String::from);
    let time = |field: &str| moment(&job[field]).map(|at| format!("{at} ({})", ago(at, now)));
    // An empty object says nothing.
    let object = |field: &str| {
        let value = &job[field];
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        (!empty).then(|| value.to_string())
    };
    line("name", string("name"));
    line("id", string("id"));
    line("number", Some(job["number"].to_string()));
    line("about", string("description"));
    line("target", job["target"].as_i64().map(|target| target.to_string()));
    line("status", string("status"));
    let condition = string("condition").zip(string("condition_reason"));
    line("condition", condition.map(|(condition, reason)| format!("{condition} ({reason})")));
    line("deadline", self::deadline(job, deadline, now));
    line("schedule", Some(schedule(&job["schedule"])));
    line("spread", spread(job));
    let tolerance = ["tolerance", "max_duration"].map(|name| job["schedule"][name].as_str());
    let tolerance = tolerance.into_iter().flatten().next();
    line("tolerance", tolerance.map(|span| format!("{span} after its time")));
    line("zone", string("timezone").filter(|zone| zone != "UTC"));
    line("starts", time("start_at"));
    line("ends", time("end_at"));
    let at_most = job["max_runs"].as_u64();
    line("at most", at_most.map(|max| format!("{max} runs, {} so far", job["run_count"])));
    line("blackouts", blackouts(job));
    line("prefers", hours(&job["prefer_window"]));
    line("does", string("executor_type"));
    line("settings", object("executor_config"));
    line("payload", object("payload"));
    line("next run", next_run(job, time("next_run_at")));
    line("last run", time("last_run_at"));
    line("last good", time("last_good_end_at"));
    line("takes", takes(job));
    line("cost", string("cost").map(|cost| format!("{cost} a run, as stated")));
    line("runs", Some(job["execution_count"].to_string()));
    let failures = job["consecutive_failures"].as_u64().filter(|failures| *failures > 0);
    line("failures", failures.map(|failures| format!("{failures} in a row")));
    line("retries", Some(format!("{}, {}", job["max_retries"], wait(job))));
    line("if failed", on_failure(job));
    line("note", string("pause_note"));
    line("timeout", Some(format!("{}s without a sign of life", job["timeout_sec"])));
    line("expected", string("max_expected_duration"));
    line("limit", string("max_allowed_duration"));
    line("overlap", string("overlap"));
    line("misfire", string("misfire"));
    line(
        "lane",
        Some(format!(
            "{}, priority {}",
            string("lane").unwrap_or_default(),
            priority(job).unwrap_or_default()
        )),
    );
    line("not on", nodes(&job["dont_run_on_nodes"]));
    line("pool", string("pool").filter(|pool| pool != "default"));
    let at_once = |key| format!("{} at once with key {key}", job["concurrency_limit"]);
    line("limited", string("concurrency_key").map(at_once));
    let key = string("dedup_key").map(|key| {
        let scope = job["dedup_scope"].as_str().unwrap_or_default();
        match job["dedup_window_seconds"].as_u64() {
            Some(seconds) => format!("{key} (within {})", Span::from_secs(seconds)),
            None => format!("{key} (while {})", scope.replace('_', " ")),
        }
    });
    line("unique", key);
    line("created", time("created_at"));
    text
}

/// How it keeps out of the way of others, if it does so otherwise than most.
fn spread(job: &Value) -> Option<String> {
    match (job["schedule"]["kind"].as_str()?, job["exact"].as_bool()?) {
        ("cron", false) => Some("over the minute after each time (exact: false)".into()),
        ("interval", true) => Some("starts with its slot and is never moved (exact: true)".into()),
        _ => None,
    }
}

/// While a job runs whose next time follows from its end, the time it has is the latest there is.
fn next_run(job: &Value, time: Option<String>) -> Option<String> {
    let open = job["schedule"]["kind"] == "periodic" && job["status"] == "running";
    time.map(|time| if open { format!("{time}, at the latest") } else { time })
}

/// By when a good run must be over, or one that runs once must have started.
fn deadline(job: &Value, deadline: &Value, now: Timestamp) -> Option<String> {
    let at = moment(deadline)?;
    let must = if job["schedule"]["kind"] == "once" { "must have started" } else { "must be over" };
    Some(format!("{must} by {at} ({})", ago(at, now)))
}

/// How long a good run takes, as was seen and as was said.
fn takes(job: &Value) -> Option<String> {
    let seen = job["average_duration_ms"].as_u64().map(duration_ms);
    match job["average_duration_override"].as_str() {
        None => seen,
        Some(said) => {
            let seen = seen.map_or_else(String::new, |seen| format!("; {seen} was seen"));
            Some(format!("{said}, as the job says{seen}"))
        }
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

/// What is done when a run has failed for good, unless that is nothing.
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
    fn the_next_run_of_what_runs_and_then_pauses_is_told_as_the_latest() {
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
    fn what_decides_when_it_runs_is_shown() {
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
            "takes       5m, as the job says; 1.5s was seen\n",
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
    fn schedules_are_told_in_words() {
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
