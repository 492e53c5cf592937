//! Sends the requests in the manual of the crawl queue's admin API, with a token added.

use serde_json::{Value, json};

use crate::api_client::ApiClient;
use crate::database::Database;
use crate::receiver::{Receiver, Reply};
use crate::stores::on_both_stores;
use crate::support::{request, wait_for};

on_both_stores!(
    jobs_are_counted_and_listed_by_status,
    status_of_a_waiting_job_is_set,
    status_of_a_running_job_is_set_and_its_body_is_stopped,
    running_job_is_requeued_and_runs_again,
    failed_job_is_retried,
    priorities_are_set_and_boosted,
    scheduled_jobs_are_created_listed_shown_changed_toggled_and_deleted,
    job_of_a_target_without_url_explains_that_no_executor_applies,
);

const JOBS: &str = "/api/admin/jobs";
const SCHEDULED: &str = "/api/admin/scheduled-jobs";

fn put(api: &ApiClient, path: &str, body: &Value) -> Value {
    api.ask("PUT", path, body, 200)
}

fn post(api: &ApiClient, path: &str, body: &Value) -> Value {
    api.ask("POST", path, body, 200)
}

/// Creates a job that calls `url` when triggered. Returns its number.
fn caller(api: &ApiClient, name: &str, url: &str, more: &Value) -> i64 {
    let mut job = json!({
        "name": name, "cron_expression": "0 0 1 1 *", "executor_type": "http",
        "executor_config": {"url": url}, "max_retries": 0,
    });
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    api.create(&job)["number"].as_i64().unwrap()
}

/// Creates a job in a pool without workers. Returns its number.
fn unserved(api: &ApiClient, name: &str) -> i64 {
    caller(api, name, "http://127.0.0.1:9/", &json!({"pool": "unserved"}))
}

/// Returns the job with this id from the admin API's list of jobs.
fn shown(api: &ApiClient, id: i64) -> Value {
    let list = api.get(JOBS);
    let jobs = list["jobs"].as_array().unwrap();
    jobs.iter().find(|job| job["id"] == id).unwrap().clone()
}

/// Returns the sorted queue positions of the given jobs. Omits jobs that are not queued yet.
fn positions(api: &ApiClient, ids: &[i64]) -> Vec<u64> {
    let position = |id: &i64| {
        let uuid = shown(api, *id)["uuid"].as_str().unwrap().to_owned();
        let explained = api.get(&format!("/api/v1/jobs/{uuid}/explain"));
        let reasons = explained["reasons"].as_array().unwrap();
        reasons.iter().find_map(|reason| reason["ahead"].as_u64())
    };
    let mut positions: Vec<u64> = ids.iter().filter_map(position).collect();
    positions.sort_unstable();
    positions
}

fn wait_until(api: &ApiClient, id: i64, status: &str) -> Value {
    wait_for(&format!("a job that is {status}"), || {
        Some(shown(api, id)).filter(|job| job["status"] == status)
    })
}

fn set(api: &ApiClient, id: i64, status: &str) -> Value {
    put(api, &format!("{JOBS}/{id}/status"), &json!({"status": status}))
}

fn jobs_are_counted_and_listed_by_status(database: &Database) {
    let api = ApiClient::new(database);
    let stats = api.get(&format!("{JOBS}/stats"));
    let none =
        json!({"queued": 0, "running": 0, "failed": 0, "completed": 0, "is_estimate": false});
    assert_eq!(stats, none);
    let ids: Vec<i64> = ["a", "b", "c"].map(|name| unserved(&api, name)).into();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(api.get(&format!("{JOBS}/stats")), none, "scheduled jobs are not queued");
    set(&api, 1, "queued");
    set(&api, 2, "queued");
    set(&api, 2, "success");
    let stats = api.get(&format!("{JOBS}/stats"));
    assert_eq!((&stats["queued"], &stats["completed"]), (&json!(1), &json!(1)));
    let queued = api.get(&format!("{JOBS}?status=queued&limit=100&offset=0"));
    assert_eq!((&queued["total"], &queued["limit"]), (&json!(1), &json!(100)));
    assert_eq!(queued["jobs"][0]["id"], 1);
    for (status, total) in [("crawling", 0), ("success", 1), ("failed", 0)] {
        assert_eq!(api.get(&format!("{JOBS}?status={status}"))["total"], total, "{status}");
    }
    let page = api.get(&format!("{JOBS}?limit=1&offset=1"));
    assert_eq!((&page["jobs"][0]["id"], &page["total"]), (&json!(2), &json!(3)));
    api.ask("GET", &format!("{JOBS}?status=running"), &Value::Null, 422);
}

fn status_of_a_waiting_job_is_set(database: &Database) {
    let api = ApiClient::new(database);
    let ids: Vec<i64> = ["a", "b", "c", "d", "e"].map(|name| unserved(&api, name)).into();
    let bulk = json!({"job_ids": [1, 2, 3, 4, 5], "status": "queued"});
    let answer = put(&api, &format!("{JOBS}/bulk/status"), &bulk);
    assert_eq!((&answer["updated"], &answer["failed"]), (&json!(5), &json!(0)));
    let named: Vec<&Value> =
        answer["results"].as_array().unwrap().iter().map(|result| &result["id"]).collect();
    assert_eq!(named, [1, 2, 3, 4, 5]);
    // The runs stay in the queue, because the pool has no workers.
    wait_for("five queued runs", || (positions(&api, &ids) == [0, 1, 2, 3, 4]).then_some(()));
    assert_eq!(set(&api, 1, "success")["status"], "success");
    assert_eq!(set(&api, 2, "failed")["status"], "failed");
    api.ask("PUT", &format!("{JOBS}/3/status"), &json!({"status": "crawling"}), 409);
    api.ask("PUT", &format!("{JOBS}/2/status"), &json!({"status": "success"}), 409);
    api.ask("PUT", &format!("{JOBS}/3/status"), &json!({"status": "done"}), 422);
    api.ask("PUT", &format!("{JOBS}/77/status"), &json!({"status": "queued"}), 404);
    let uuid = shown(&api, 1)["uuid"].as_str().unwrap().to_owned();
    let runs = api.get(&format!("/api/v1/jobs/{uuid}/executions"));
    assert_eq!(runs["executions"][0]["status"], "completed");
}

fn status_of_a_running_job_is_set_and_its_body_is_stopped(database: &Database) {
    let site = Receiver::start(|_, _| Reply::Never);
    let api = ApiClient::new(database);
    for (count, (name, status)) in [("good", "success"), ("bad", "failed")].into_iter().enumerate()
    {
        let id = caller(&api, name, &site.url, &json!({"max_retries": 5}));
        set(&api, id, "queued");
        wait_for("the call", || (site.requests().len() > count).then_some(()));
        wait_until(&api, id, "crawling");
        assert_eq!(set(&api, id, "crawling")["status"], "crawling");
        let after = set(&api, id, status);
        assert_eq!(after["status"], status);
        wait_for("the end of the call", || (site.disconnected() > count).then_some(()));
        // The worker's own result does not replace the status that the operator has set.
        assert_eq!(shown(&api, id)["status"], status);
    }
    let runs = api.get("/api/v1/executions");
    let ends: Vec<&Value> =
        runs["executions"].as_array().unwrap().iter().map(|run| &run["status"]).collect();
    assert_eq!(ends, ["failed", "completed"]);
}

fn running_job_is_requeued_and_runs_again(database: &Database) {
    let site = Receiver::start(|_, number| match number {
        0 => Reply::Never,
        _ => Reply::ok("done"),
    });
    let api = ApiClient::new(database);
    let id = caller(&api, "slow", &site.url, &json!({}));
    set(&api, id, "queued");
    wait_for("the call", || (!site.requests().is_empty()).then_some(()));
    wait_until(&api, id, "crawling");
    assert_eq!(set(&api, id, "queued")["status"], "queued");
    wait_for("the end of the call", || (site.disconnected() == 1).then_some(()));
    wait_until(&api, id, "success");
    assert_eq!(site.requests().len(), 2);
    let calls = site.requests();
    assert_eq!(calls[0].header("idempotency-key"), calls[1].header("idempotency-key"));
}

fn failed_job_is_retried(database: &Database) {
    let site = Receiver::start(|_, number| match number {
        0..=4 => Reply::Now(500, "", String::new()),
        _ => Reply::Never,
    });
    let api = ApiClient::new(database);
    for name in ["a", "b", "c", "d", "e"] {
        let id = caller(&api, name, &site.url, &json!({}));
        set(&api, id, "queued");
        wait_until(&api, id, "failed");
    }
    let again = post(&api, &format!("{JOBS}/1/retry"), &Value::Null);
    assert_eq!(again["retry_count"], 0);
    assert_ne!(again["status"], "failed");
    api.ask("POST", &format!("{JOBS}/1/retry"), &Value::Null, 409);
    let bulk = json!({"job_ids": [1, 2, 3, 4, 5]});
    let answer = post(&api, &format!("{JOBS}/bulk/retry"), &bulk);
    assert_eq!((&answer["updated"], &answer["failed"]), (&json!(4), &json!(1)));
    assert_eq!(answer["results"][0]["error"]["type"], "/problems/job-state");
    for id in 1..=5 {
        wait_until(&api, id, "crawling");
    }
    assert_eq!(api.get(&format!("{JOBS}/stats"))["running"], 5);
}

fn priorities_are_set_and_boosted(database: &Database) {
    let api = ApiClient::new(database);
    let id = unserved(&api, "a");
    set(&api, id, "queued");
    let set_to = put(&api, &format!("{JOBS}/{id}/priority"), &json!({"priority": 50}));
    assert_eq!((&set_to["priority"], &set_to["status"]), (&json!(50), &json!("queued")));
    for priority in [70, 90, 100] {
        let raised = post(&api, &format!("{JOBS}/{id}/boost"), &json!({"boost": 20}));
        assert_eq!(raised["priority"], priority);
    }
    let wrong = json!({"priority": 101});
    api.ask("PUT", &format!("{JOBS}/{id}/priority"), &wrong, 422);
}

fn scheduled_jobs_are_created_listed_shown_changed_toggled_and_deleted(database: &Database) {
    let api = ApiClient::new(database);
    assert_eq!(api.get(&format!("{SCHEDULED}?limit=100&offset=0"))["total"], 0);
    let created = api.ask(
        "POST",
        SCHEDULED,
        &json!({
            "name": "daily-askreddit",
            "description": "Daily crawl of AskReddit",
            "subreddit_id": 1,
            "cron_expression": "@daily",
            "enabled": true,
            "priority": 10,
        }),
        201,
    );
    assert_eq!((&created["id"], &created["subreddit_id"]), (&json!(1), &json!(1)));
    assert_eq!(api.get(&format!("{SCHEDULED}/1")), created);
    let changed = put(
        &api,
        &format!("{SCHEDULED}/1"),
        &json!({
            "name": "hourly-worldnews",
            "description": "Hourly crawl of WorldNews",
            "cron_expression": "@hourly",
            "enabled": true,
            "priority": 20,
        }),
    );
    assert_eq!(
        (&changed["name"], &changed["subreddit_id"]),
        (&json!("hourly-worldnews"), &json!(1))
    );
    assert_eq!(
        (&changed["cron_expression"], &changed["priority"]),
        (&json!("@hourly"), &json!(20))
    );
    let off = post(&api, &format!("{SCHEDULED}/1/toggle"), &json!({"enabled": false}));
    assert_eq!((&off["enabled"], &off["next_run_at"]), (&json!(false), &Value::Null));
    let on = post(&api, &format!("{SCHEDULED}/1/toggle"), &json!({"enabled": true}));
    assert!(on["next_run_at"].is_string(), "{on}");
    let list = api.get(&format!("{SCHEDULED}?limit=100&offset=0"));
    assert_eq!((&list["total"], &list["scheduled_jobs"][0]), (&json!(1), &on));
    // The expressions of the manual.
    let expressions = [
        "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly", "@every 1h",
        "@every 30m", "@every 7d",
    ];
    for expression in expressions {
        let job = json!({"name": expression, "subreddit_id": 2, "cron_expression": expression});
        let created = api.ask("POST", SCHEDULED, &job, 201);
        assert_eq!(created["cron_expression"], expression);
        assert!(created["next_run_at"].is_string(), "{created}");
    }
    let deleted = api.ask("DELETE", &format!("{SCHEDULED}/1"), &Value::Null, 200);
    assert_eq!((&deleted["id"], &deleted["deleted"]), (&json!(1), &json!(true)));
    api.ask("GET", &format!("{SCHEDULED}/1"), &Value::Null, 404);
    // Requests without a token are rejected.
    let (status, _) = request(&api.server.url(), "GET", SCHEDULED, "", "");
    assert_eq!(status, 401);
}

fn job_of_a_target_without_url_explains_that_no_executor_applies(database: &Database) {
    let api = ApiClient::new(database);
    let job = json!({"name": "board", "subreddit_id": 7, "cron_expression": "@yearly"});
    let created = api.ask("POST", SCHEDULED, &job, 201);
    let id = created["id"].as_i64().unwrap();
    set(&api, id, "queued");
    wait_until(&api, id, "failed");
    let uuid = created["uuid"].as_str().unwrap();
    let runs = api.get(&format!("/api/v1/jobs/{uuid}/executions"));
    let error = runs["executions"][0]["error_message"].as_str().unwrap();
    assert!(error.starts_with("no_executor"), "{error}");
}
