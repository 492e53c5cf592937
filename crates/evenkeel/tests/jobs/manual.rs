//! Sends each request of the manual of interval jobs, with a token added, and checks the response.

use serde_json::{Value, json};

use crate::api_client::ApiClient;
use crate::database::Database;
use crate::receiver::{Receiver, Reply};
use crate::stores::on_both_stores;
use crate::support::{request, wait_for};

fn path_of(job: &Value) -> String {
    format!("/api/v1/jobs/{}", job["id"].as_str().unwrap())
}

/// Asserts that all these fields are present and not null.
fn has(value: &Value, fields: &[&str]) {
    for field in fields {
        assert!(!value[field].is_null(), "{field} of {value}");
    }
}

fn interval_job_is_created_paused_resumed_changed_and_cancelled(database: &Database) {
    let api = ApiClient::new(database);
    let job = api.create(&json!({
        "source_id": "news-site",
        "source_name": "example.com",
        "url": "https://example.com",
        "interval_minutes": 30,
        "interval_type": "minutes",
        "schedule_enabled": true,
        "max_retries": 3,
        "retry_backoff_seconds": 60,
        "metadata": {"category": "news", "priority": "high"},
    }));
    assert_eq!(job["status"], "scheduled");
    assert_eq!(job["interval_minutes"], 30);
    assert_eq!(job["metadata"]["category"], "news");
    has(&job, &["id", "next_run_at", "created_at", "updated_at", "source_id", "url"]);
    let path = path_of(&job);

    let paused = api.post(&format!("{path}/pause"));
    assert_eq!(paused["status"], "paused");
    assert_eq!(paused["is_paused"], true);
    has(&paused, &["paused_at"]);
    let refused = api.ask("POST", &format!("{path}/pause"), &Value::Null, 409);
    assert!(refused["detail"].as_str().unwrap().contains("paused"), "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("resume"), "{refused}");

    let resumed = api.post(&format!("{path}/resume"));
    assert_eq!(resumed["status"], "scheduled");
    assert_eq!(resumed["is_paused"], false);
    has(&resumed, &["next_run_at"]);
    assert!(resumed["paused_at"].is_null(), "{resumed}");

    // A change that does not include the schedule keeps the next run time.
    let more = json!({"max_retries": 5, "retry_backoff_seconds": 120});
    let changed = api.ask("PUT", &path, &more, 200);
    assert_eq!(
        (&changed["max_retries"], &changed["retry_backoff_seconds"]),
        (&json!(5), &json!(120))
    );
    assert_eq!(changed["next_run_at"], resumed["next_run_at"]);
    assert_eq!(changed["interval_minutes"], 30);

    let cancelled = api.post(&format!("{path}/cancel"));
    assert_eq!(cancelled["status"], "cancelled");
    has(&cancelled, &["cancelled_at"]);
    let refused = api.ask("POST", &format!("{path}/resume"), &Value::Null, 409);
    assert!(refused["detail"].as_str().unwrap().contains("cancelled"), "{refused}");

    api.ask("DELETE", &path, &Value::Null, 200);
    api.ask("GET", &path, &Value::Null, 404);
}

fn one_time_job_leaves_an_execution_and_statistics(database: &Database) {
    let site = Receiver::start(|_, _| Reply::html("<title>News</title><p>All is well.</p>"));
    let api = ApiClient::new(database);
    let job = api.create(&json!({
        "source_id": "news-site",
        "source_name": "example.com",
        "url": site.url,
        "schedule_enabled": false,
    }));
    let path = path_of(&job);
    let done = api.wait_until(&path, "completed");
    has(&done, &["started_at", "completed_at"]);

    let list = api.get(&format!("{path}/executions?limit=50&offset=0"));
    assert_eq!(
        (&list["limit"], &list["offset"], &list["total"]),
        (&json!(50), &json!(0), &json!(1))
    );
    let [execution] = &list["executions"].as_array().unwrap()[..] else { panic!("{list}") };
    assert_eq!(execution["status"], "completed");
    assert_eq!(
        (&execution["execution_number"], &execution["retry_attempt"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(execution["job_id"], job["id"]);
    has(execution, &["id", "started_at", "completed_at", "duration_ms", "items_crawled"]);

    let one = api.get(&format!("/api/v1/executions/{}", execution["id"].as_str().unwrap()));
    for field in [
        "id", "job_id", "execution_number", "status", "started_at", "completed_at", "duration_ms",
        "items_crawled", "items_indexed", "error_message", "stack_trace", "cpu_time_ms",
        "memory_peak_mb", "retry_attempt", "metadata",
    ] {
        assert!(one.get(field).is_some(), "{field} of {one}");
    }
    assert_eq!(one["status"], "completed");

    let stats = api.get(&format!("{path}/stats"));
    assert_eq!((&stats["total_executions"], &stats["successful_runs"]), (&json!(1), &json!(1)));
    assert_eq!((&stats["failed_runs"], &stats["success_rate"]), (&json!(0), &json!(1.0)));
    has(&stats, &["average_duration_ms", "last_execution_at"]);
    assert!(stats.get("next_scheduled_at").is_some(), "{stats}");
}

fn failed_job_is_retried_by_request(database: &Database) {
    let site = Receiver::start(|_, number| match number {
        0 => Reply::Now(500, "", "broken".into()),
        _ => Reply::ok("mended"),
    });
    let api = ApiClient::new(database);
    let job = api.create(&json!({
        "source_name": "example.com", "max_retries": 0,
        "executor_type": "http", "executor_config": {"url": site.url},
    }));
    let path = path_of(&job);
    let failed = api.wait_until(&path, "failed");
    has(&failed, &["error_message"]);
    let again = api.post(&format!("{path}/retry"));
    assert!(["pending", "running"].contains(&again["status"].as_str().unwrap()), "{again}");
    assert_eq!(again["current_retry_count"], 0);
    let done = api.wait_until(&path, "completed");
    assert!(done["error_message"].is_null(), "{done}");
    assert_eq!(api.get(&format!("{path}/stats"))["success_rate"], 0.5);
    let refused = api.ask("POST", &format!("{path}/retry"), &Value::Null, 409);
    assert!(refused["detail"].as_str().unwrap().contains("did not fail"), "{refused}");
}

fn scheduler_metrics_are_returned(database: &Database) {
    let api = ApiClient::new(database);
    // Without a start time, the server could choose any start time, even now.
    api.create(&json!({"name": "later", "executor_type": "noop", "interval_minutes": 30,
                          "start_at": "2099-01-01T00:00:00Z"}));
    let job = api.create(&json!({"name": "now", "executor_type": "noop"}));
    api.wait_until(&path_of(&job), "completed");
    // Statistics are updated every few seconds.
    let metrics = wait_for("the figures", || {
        let metrics = api.get("/api/v1/scheduler/metrics");
        (metrics["executions"]["total"] == 1).then_some(metrics)
    });
    let jobs = &metrics["jobs"];
    assert_eq!((&jobs["scheduled"], &jobs["completed"]), (&json!(1), &json!(1)));
    assert_eq!(
        (&jobs["running"], &jobs["failed"], &jobs["cancelled"]),
        (&json!(0), &json!(0), &json!(0))
    );
    assert_eq!(metrics["executions"]["success_rate"], 1.0);
    has(&metrics["executions"], &["average_duration_ms"]);
    has(&metrics, &["last_check_at", "last_metrics_update", "stale_locks_cleared"]);
}

fn jobs_of_one_interval_are_spread_over_it(database: &Database) {
    let api = ApiClient::new(database);
    let document = json!({"executor_type": "noop", "interval_minutes": 6,
                          "interval_type": "hours", "cost": "5m"});
    let quarter = |job: &Value| {
        let time = job["next_run_at"].as_str().unwrap();
        let minute: u32 = time[14..16].parse().unwrap();
        format!("{}:{}", &time[..13], minute / 15)
    };
    let mut quarters: Vec<String> = (0..6).map(|_| quarter(&api.create(&document))).collect();
    let together = json!({"jobs": vec![&document; 6]});
    let created = api.ask("POST", "/api/v1/jobs/bulk", &together, 200);
    for result in created["results"].as_array().unwrap() {
        quarters.push(quarter(&api.get(&path_of(result))));
    }
    quarters.sort();
    quarters.dedup();
    assert_eq!(quarters.len(), 12, "each has a quarter of an hour of its own: {quarters:?}");
}

fn requests_without_a_token_are_rejected(database: &Database) {
    let server = database.serve(&[]);
    for (method, path) in [
        ("POST", "/api/v1/jobs"),
        ("GET", "/api/v1/jobs"),
        ("GET", "/api/v1/scheduler/metrics"),
        ("POST", "/api/v1/jobs/0190163d-8694-739b-aea5-966c26f8ad91/pause"),
    ] {
        assert_eq!(request(&server.url(), method, path, "", "{}").0, 401, "{method} {path}");
    }
}

on_both_stores!(
    interval_job_is_created_paused_resumed_changed_and_cancelled,
    one_time_job_leaves_an_execution_and_statistics,
    failed_job_is_retried_by_request,
    scheduler_metrics_are_returned,
    jobs_of_one_interval_are_spread_over_it,
    requests_without_a_token_are_rejected,
);
