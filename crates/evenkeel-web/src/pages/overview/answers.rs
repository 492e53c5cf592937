//! The five answers at the top of the page.

use evenkeel_core::Timestamp;
use evenkeel_store::Role;
use maud::{Markup, html};
use serde_json::Value;

use super::last_visit::Since;
use super::{Data, unknown};
use crate::backend::{Answer, escape};
use crate::pages::balance::local_hour;
use crate::pages::lists::count;
use crate::pages::{items, job_link};
use crate::session::Session;
use crate::text;

/// Groups of failures since the last visit that are named.
const FAILURES_NAMED: usize = 5;

pub(super) fn working(session: &Session, data: &Data, now: Timestamp) -> Markup {
    let has_scheduler =
        data.metrics.as_ref().map_or(true, |metrics| metrics["last_check_at"].is_string());
    html! {
        article {
            h2 { "Is the scheduler working?" }
            @match &data.ready {
                Err(refused) => p role="alert" { (text::state(&Value::from("ERROR"))) " No. " (refused.detail) },
                Ok(_) if !has_scheduler => p role="alert" { (text::state(&Value::from("ERROR")))
                    " No. No scheduler is running: start a server with the role "
                    code { "scheduler" } "." },
                Ok(ready) => p { "Yes. All checks of this server pass." (store(ready)) },
            }
            (nodes_and_jobs(data, now))
            (last_firing(&data.last_run, now))
            @if data.metrics.as_ref().is_ok_and(|metrics| metrics["jobs"]["total"] == 0) {
                (first_job(session))
            }
        }
    }
}

fn store(ready: &Value) -> Markup {
    let store = items(ready, "checks").iter().find(|check| check["name"] == "store");
    html! { @if let Some(check) = store { " The store " (text::plain(&check["detail"])) "." } }
}

fn nodes_and_jobs(data: &Data, now: Timestamp) -> Markup {
    html! {
        @match (&data.metrics, &data.nodes) {
            (Ok(metrics), Ok(nodes)) => {
                @let live = items(nodes, "nodes").iter().filter(|node| node["state"] == "live").count();
                @let jobs = &metrics["jobs"];
                p { (live) " of " a href="/nodes" { (number(nodes, "total", "node")) }
                    @if live == 1 { " is live. " } @else { " are live. " }
                    "Last heartbeat of a scheduler: " (text::time(&metrics["last_check_at"], now)) "." }
                p { (number(jobs, "total", "job")) ": " (jobs["running"]) " run, " (jobs["pending"]) " wait, "
                    (jobs["paused"]) " are paused." }
            }
            (Err(refused), _) | (_, Err(refused)) => (unknown(refused)),
        }
    }
}

/// Returns a number of an answer with its noun.
fn number(answer: &Value, field: &str, noun: &str) -> String {
    count(answer[field].as_u64().unwrap_or_default(), noun)
}

fn last_firing(last_run: &Answer, now: Timestamp) -> Markup {
    let Ok(answer) = last_run else { return html! {} };
    html! {
        @match items(answer, "runs").first() {
            Some(run) => p { "Last firing: " (job_link(&run["job_id"], &run["job_name"])) " at "
                a href={ "/runs/" (escape(&text::plain(&run["id"]))) } { (text::time(&run["scheduled_at"], now)) }
                "." },
            None => p { "Nothing has fired yet." },
        }
    }
}

fn first_job(session: &Session) -> Markup {
    html! {
        p {
            "There is no job yet. "
            @if session.role >= Role::Operator { a href="/jobs/new" { "Create a job" } ", or run " }
            @else { "Users with the role operator create jobs here, or with " }
            code { "evenkeel job create --name hello --every 5m --noop" } "."
        }
    }
}

/// The next jobs to miss their deadline. Jobs that have missed it are counted.
pub(super) fn breaks_next(at_risk: &Answer, now: Timestamp) -> Markup {
    html! {
        article {
            h2 { "What breaks next?" }
            @match at_risk {
                Err(refused) => (unknown(refused)),
                Ok(answer) => {
                    @let jobs = items(answer, "jobs");
                    @let missed = answer["counts"]["error"].as_u64().unwrap_or_default();
                    @if jobs.is_empty() && missed == 0 { p { "Nothing: no job is at risk of missing its deadline." } }
                    @if jobs.is_empty() && missed > 0 { p { "No other job is at risk of missing its deadline." } }
                    @if !jobs.is_empty() { ol { @for job in jobs { li { (at_risk_job(job, now)) } } } }
                    @if missed > 0 {
                        p { a href="/at-risk?condition=ERROR" { (count(missed, "job")) }
                            @if missed == 1 { " has" } @else { " have" } " already missed the deadline." }
                    }
                    @if !jobs.is_empty() { p { a href="/at-risk" { "All jobs at risk" } } }
                }
            }
        }
    }
}

fn at_risk_job(job: &Value, now: Timestamp) -> Markup {
    html! {
        (job_link(&job["id"], &job["name"])) " " (text::state(&job["condition"]))
        @if job["error_at"].is_string() {
            ", deadline " (text::moment(&job["error_at"])) ": " strong { (text::slack(&job["error_at"], now)) } "."
        } @else { "." }
        @for sentence in ["explanation", "advice"].map(|name| &job[name]) {
            @if let Some(sentence) = sentence.as_str() { " " (sentence) }
        }
    }
}

pub(super) fn failed(failures: &Answer, since: Since, now: Timestamp) -> Markup {
    let from = Value::from(since.at().to_string());
    let period = html! {
        @match since {
            Since::FirstVisit(_) => "in the last 24 hours",
            Since::LastVisit(_) => { "since your last visit on " (text::time(&from, now)) }
            Since::Chosen(_) => { "since " (text::time(&from, now)) }
        }
    };
    let from = escape(from.as_str().unwrap_or_default());
    html! {
        article {
            h2 { "What failed since your last visit?" }
            @match failures {
                Err(refused) => (unknown(refused)),
                Ok(answer) => {
                    @let (new, is_all) = newer(answer, since.at());
                    @if new.is_empty() { p { "Nothing failed " (period) "." } }
                    @else {
                        p { @if !is_all { "At least " } (count(new.len() as u64, "kind")) " of failure "
                            (period) @if new.len() > FAILURES_NAMED { ", the newest first:" } @else { ":" } }
                        ul { @for failure in new.iter().take(FAILURES_NAMED) { li { (one_failure(failure, now)) } } }
                    }
                    p { a href={ "/failures?since=" (from) } { "Failures in this period" } " · "
                        a href={ "/runs?status=failed&since=" (from) } { "Failed runs in this period" } " · "
                        a href={ "/?since=" (from) } { "Link to this page with this period" } }
                }
            }
        }
    }
}

/// Returns the groups of failures since a time, and whether these are all of them.
fn newer(answer: &Value, since: Timestamp) -> (Vec<&Value>, bool) {
    let groups = items(answer, "failures");
    let is_new = |group: &&Value| text::micros(&group["last_at"]) >= Some(since.as_micros());
    let new: Vec<&Value> = groups.iter().filter(is_new).collect();
    let is_all = new.len() < groups.len() || answer["next_cursor"].is_null();
    (new, is_all)
}

fn one_failure(failure: &Value, now: Timestamp) -> Markup {
    html! {
        code { (text::shortened(&text::plain(&failure["error_message"]))) } ", last in "
        (job_link(&failure["job_id"], &failure["job_name"])) " "
        a href={ "/runs/" (escape(&text::plain(&failure["execution_id"]))) } { (text::time(&failure["last_at"], now)) }
        ", " (number(failure, "count", "time")) " in all"
    }
}

pub(super) fn fullness(data: &Data, now: Timestamp) -> Markup {
    let checks = data.ready.as_ref().map_or(&[][..], |ready| items(ready, "checks"));
    let engine = checks.iter().find(|check| check["name"] == "engine");
    html! {
        article {
            h2 { "How full is it, now and at the next peak?" }
            p {
                @if let Some(engine) = engine { "Now: this node " (text::plain(&engine["detail"])) ". " }
                @if let Ok(metrics) = &data.metrics {
                    "All nodes together run " (number(&metrics["executions"], "running", "attempt")) " of yours; "
                    (number(&metrics["jobs"], "pending", "job")) " of yours wait."
                }
            }
            @match &data.distribution {
                Err(refused) => (unknown(refused)),
                Ok(answer) if answer["peak_count"] == 0 => p { "No run is expected in the next 24 hours." },
                Ok(answer) => (peak(answer, now)),
            }
        }
    }
}

fn peak(distribution: &Value, now: Timestamp) -> Markup {
    let projected = &distribution["projected"];
    let busy = projected["busy_workers_at_peak"].as_f64().unwrap_or_default();
    html! {
        p {
            @if let Some(hour) = local_hour(&distribution["peak_hour"], now) {
                "The busiest hour of the next day begins at " (hour.strftime("%H:%M %Z").to_string())
                ", with " (number(distribution, "peak_count", "run")) ". "
            }
            @if busy > 0.0 {
                "By their average duration, the runs keep about " (format!("{busy:.1}"))
                " workers busy at the peak, from " (text::time(&projected["peak_slot"], now)) " on."
            }
        }
    }
}

pub(super) fn evenness(distribution: &Answer) -> Markup {
    html! {
        article {
            h2 { "Is the load even?" }
            @match distribution {
                Err(refused) => (unknown(refused)),
                Ok(answer) => {
                    p { "Score " strong { (text::score(&answer["distribution_score"])) } " of 1. "
                        (text::plain(&answer["suggestion"])) }
                    p { a href="/balance" { "See the balance" } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_failures_since_the_last_visit_are_new() {
        let group = |minute: u32| json!({"last_at": format!("2026-11-18T09:{minute:02}:00Z")});
        let since: Timestamp = "2026-11-18T09:20:00Z".parse().unwrap();
        let answer = json!({"failures": [group(30), group(20), group(10)], "next_cursor": "x"});
        let (new, is_all) = newer(&answer, since);
        assert_eq!((new.len(), is_all), (2, true));
        let answer = json!({"failures": [group(30), group(20)], "next_cursor": "x"});
        assert!(!newer(&answer, since).1, "older pages can have new groups");
        let answer = json!({"failures": [group(30)], "next_cursor": null});
        assert!(newer(&answer, since).1);
    }
}
