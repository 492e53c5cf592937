//! Each request of the admin API of a crawl queue, as its manual writes it, with a token added.

use serde_json::{Value, json};

use crate::database::Database;
use crate::document::Typist;
use crate::receiver::{Receiver, Reply};
use crate::stores::on_both_stores;
use crate::support::{request, wait_for};

on_both_stores!(
    jobs_are_counted_and_listed_by_status,
    a_status_is_set_on_what_waits,
    a_status_is_set_on_what_runs_and_its_body_is_let_go,
    what_runs_goes_back_into_the_queue_and_is_run_again,
    what_failed_is_tried_again,
    priorities_are_set_and_boosted,
    scheduled_jobs_are_listed_made_shown_changed_deleted_and_toggled,
    a_job_of_a_target_without_an_address_says_that_nothing_can_run_it,
);

const JOBS: &str = "/api/admin/jobs";
const SCHEDULED: &str = "/api/admin/scheduled-jobs";

fn put(typist: &Typist, path: &str, body: &Value) -> Value {
    typist.ask("PUT", path, body, 200)
}

fn post(typist: &Typist, path: &str, body: &Value) -> Value {
    typist.ask("POST", path, body, 200)
}

/// A job that runs when it is asked to, and calls `url`. Says its number.
fn caller(typist: &Typist, name: &str, url: &str, more: &Value) -> i64 {
    let mut job = json!({
        "name": name, "cron_expression": "0 0 1 1 *", "executor_type": "http",
        "executor_config": {"url": url}, "max_retries": 0,
    });
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    typist.create(&job)["number"].as_i64().unwrap()
}

/// A job whose runs nobody takes.
fn unserved(typist: &Typist, name: &str) -> i64 {
    caller(typist, name, "http://127.0.0.1:9/", &json!({"pool": "nobody"}))
}

/// The job as the list shows it.
fn shown(typist: &Typist, id: i64) -> Value {
    let list = typist.get(JOBS);
    let jobs = list["jobs"].as_array().unwrap();
    jobs.iter().find(|job| job["id"] == id).unwrap().clone()
}

/// How many are before each of these jobs in the queue, in that order; a trigger that nobody has put
/// there yet is not in it.
fn places(typist: &Typist, ids: &[i64]) -> Vec<u64> {
    let place = |id: &i64| {
        let uuid = shown(typist, *id)["uuid"].as_str().unwrap().to_owned();
        let explained = typist.get(&format!("/api/v1/jobs/{uuid}/explain"));
        let reasons = explained["reasons"].as_array().unwrap();
        reasons.iter().find_map(|reason| reason["ahead"].as_u64())
    };
    let mut places: Vec<u64> = ids.iter().filter_map(place).collect();
    places.sort_unstable();
    places
}

fn wait_until(typist: &Typist, id: i64, status: &str) -> Value {
    wait_for(&format!("a job that is {status}"), || {
        Some(shown(typist, id)).filter(|job| job["status"] == status)
    })
}

fn set(typist: &Typist, id: i64, status: &str) -> Value {
    put(typist, &format!("{JOBS}/{id}/status"), &json!({"status": status}))
}

fn jobs_are_counted_and_listed_by_status(database: &Database) {
    let typist = Typist::new(database);
    let stats = typist.get(&format!("{JOBS}/stats"));
    let none =
        json!({"queued": 0, "running": 0, "failed": 0, "completed": 0, "is_estimate": false});
    assert_eq!(stats, none);
    let ids: Vec<i64> = ["a", "b", "c"].map(|name| unserved(&typist, name)).into();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(typist.get(&format!("{JOBS}/stats")), none, "what is for later is not queued");
    set(&typist, 1, "queued");
    set(&typist, 2, "queued");
    set(&typist, 2, "success");
    let stats = typist.get(&format!("{JOBS}/stats"));
    assert_eq!((&stats["queued"], &stats["completed"]), (&json!(1), &json!(1)));
    let queued = typist.get(&format!("{JOBS}?status=queued&limit=100&offset=0"));
    assert_eq!((&queued["total"], &queued["limit"]), (&json!(1), &json!(100)));
    assert_eq!(queued["jobs"][0]["id"], 1);
    for (status, total) in [("crawling", 0), ("success", 1), ("failed", 0)] {
        assert_eq!(typist.get(&format!("{JOBS}?status={status}"))["total"], total, "{status}");
    }
    let page = typist.get(&format!("{JOBS}?limit=1&offset=1"));
    assert_eq!((&page["jobs"][0]["id"], &page["total"]), (&json!(2), &json!(3)));
    typist.ask("GET", &format!("{JOBS}?status=running"), &Value::Null, 422);
}

fn a_status_is_set_on_what_waits(database: &Database) {
    let typist = Typist::new(database);
    let ids: Vec<i64> = ["a", "b", "c", "d", "e"].map(|name| unserved(&typist, name)).into();
    let bulk = json!({"job_ids": [1, 2, 3, 4, 5], "status": "queued"});
    let answer = put(&typist, &format!("{JOBS}/bulk/status"), &bulk);
    assert_eq!((&answer["updated"], &answer["failed"]), (&json!(5), &json!(0)));
    let named: Vec<&Value> =
        answer["results"].as_array().unwrap().iter().map(|result| &result["id"]).collect();
    assert_eq!(named, [1, 2, 3, 4, 5]);
    // In the queue, where nobody comes for it.
    wait_for("a depth of five", || (places(&typist, &ids) == [0, 1, 2, 3, 4]).then_some(()));
    assert_eq!(set(&typist, 1, "success")["status"], "success");
    assert_eq!(set(&typist, 2, "failed")["status"], "failed");
    typist.ask("PUT", &format!("{JOBS}/3/status"), &json!({"status": "crawling"}), 409);
    typist.ask("PUT", &format!("{JOBS}/2/status"), &json!({"status": "success"}), 409);
    typist.ask("PUT", &format!("{JOBS}/3/status"), &json!({"status": "done"}), 422);
    typist.ask("PUT", &format!("{JOBS}/77/status"), &json!({"status": "queued"}), 404);
    let uuid = shown(&typist, 1)["uuid"].as_str().unwrap().to_owned();
    let runs = typist.get(&format!("/api/v1/jobs/{uuid}/executions"));
    assert_eq!(runs["executions"][0]["status"], "completed");
}

fn a_status_is_set_on_what_runs_and_its_body_is_let_go(database: &Database) {
    let site = Receiver::start(|_, _| Reply::Never);
    let typist = Typist::new(database);
    for (count, (name, status)) in [("good", "success"), ("bad", "failed")].into_iter().enumerate()
    {
        let id = caller(&typist, name, &site.url, &json!({"max_retries": 5}));
        set(&typist, id, "queued");
        wait_for("the call", || (site.got().len() > count).then_some(()));
        wait_until(&typist, id, "crawling");
        assert_eq!(set(&typist, id, "crawling")["status"], "crawling");
        let after = set(&typist, id, status);
        assert_eq!(after["status"], status);
        wait_for("the end of the call", || (site.gone() > count).then_some(()));
        // What its worker might have said changes nothing.
        assert_eq!(shown(&typist, id)["status"], status);
    }
    let runs = typist.get("/api/v1/executions");
    let ends: Vec<&Value> =
        runs["executions"].as_array().unwrap().iter().map(|run| &run["status"]).collect();
    assert_eq!(ends, ["failed", "completed"]);
}

fn what_runs_goes_back_into_the_queue_and_is_run_again(database: &Database) {
    let site = Receiver::start(|_, number| match number {
        0 => Reply::Never,
        _ => Reply::ok("done"),
    });
    let typist = Typist::new(database);
    let id = caller(&typist, "slow", &site.url, &json!({}));
    set(&typist, id, "queued");
    wait_for("the call", || (!site.got().is_empty()).then_some(()));
    wait_until(&typist, id, "crawling");
    assert_eq!(set(&typist, id, "queued")["status"], "queued");
    wait_for("the end of the call", || (site.gone() == 1).then_some(()));
    wait_until(&typist, id, "success");
    assert_eq!(site.got().len(), 2);
    let calls = site.got();
    assert_eq!(calls[0].header("idempotency-key"), calls[1].header("idempotency-key"));
}

fn what_failed_is_tried_again(database: &Database) {
    let site = Receiver::start(|_, number| match number {
        0..=4 => Reply::Now(500, "", String::new()),
        _ => Reply::Never,
    });
    let typist = Typist::new(database);
    for name in ["a", "b", "c", "d", "e"] {
        let id = caller(&typist, name, &site.url, &json!({}));
        set(&typist, id, "queued");
        wait_until(&typist, id, "failed");
    }
    let again = post(&typist, &format!("{JOBS}/1/retry"), &Value::Null);
    assert_eq!(again["retry_count"], 0);
    assert_ne!(again["status"], "failed");
    typist.ask("POST", &format!("{JOBS}/1/retry"), &Value::Null, 409);
    let bulk = json!({"job_ids": [1, 2, 3, 4, 5]});
    let answer = post(&typist, &format!("{JOBS}/bulk/retry"), &bulk);
    assert_eq!((&answer["updated"], &answer["failed"]), (&json!(4), &json!(1)));
    assert_eq!(answer["results"][0]["error"]["type"], "/problems/job-state");
    for id in 1..=5 {
        wait_until(&typist, id, "crawling");
    }
    assert_eq!(typist.get(&format!("{JOBS}/stats"))["running"], 5);
}

fn priorities_are_set_and_boosted(database: &Database) {
    let typist = Typist::new(database);
    let id = unserved(&typist, "a");
    set(&typist, id, "queued");
    let set_to = put(&typist, &format!("{JOBS}/{id}/priority"), &json!({"priority": 50}));
    assert_eq!((&set_to["priority"], &set_to["status"]), (&json!(50), &json!("queued")));
    for priority in [70, 90, 100] {
        let raised = post(&typist, &format!("{JOBS}/{id}/boost"), &json!({"boost": 20}));
        assert_eq!(raised["priority"], priority);
    }
    let wrong = json!({"priority": 101});
    typist.ask("PUT", &format!("{JOBS}/{id}/priority"), &wrong, 422);
}

fn scheduled_jobs_are_listed_made_shown_changed_deleted_and_toggled(database: &Database) {
    let typist = Typist::new(database);
    assert_eq!(typist.get(&format!("{SCHEDULED}?limit=100&offset=0"))["total"], 0);
    let made = typist.ask(
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
    assert_eq!((&made["id"], &made["subreddit_id"]), (&json!(1), &json!(1)));
    assert_eq!(typist.get(&format!("{SCHEDULED}/1")), made);
    let changed = put(
        &typist,
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
    let off = post(&typist, &format!("{SCHEDULED}/1/toggle"), &json!({"enabled": false}));
    assert_eq!((&off["enabled"], &off["next_run_at"]), (&json!(false), &Value::Null));
    let on = post(&typist, &format!("{SCHEDULED}/1/toggle"), &json!({"enabled": true}));
    assert!(on["next_run_at"].is_string(), "{on}");
    let list = typist.get(&format!("{SCHEDULED}?limit=100&offset=0"));
    assert_eq!((&list["total"], &list["scheduled_jobs"][0]), (&json!(1), &on));
    // Each expression of the manual.
    let expressions = [
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@hourly",
        "@every 1h",
        "@every 30m",
        "@every 7d",
    ];
    for expression in expressions {
        let job = json!({"name": expression, "subreddit_id": 2, "cron_expression": expression});
        let made = typist.ask("POST", SCHEDULED, &job, 201);
        assert_eq!(made["cron_expression"], expression);
        assert!(made["next_run_at"].is_string(), "{made}");
    }
    let gone = typist.ask("DELETE", &format!("{SCHEDULED}/1"), &Value::Null, 200);
    assert_eq!((&gone["id"], &gone["deleted"]), (&json!(1), &json!(true)));
    typist.ask("GET", &format!("{SCHEDULED}/1"), &Value::Null, 404);
    // Nobody comes in without a token.
    let (status, _) = request(&typist.server.url(), "GET", SCHEDULED, "", "");
    assert_eq!(status, 401);
}

fn a_job_of_a_target_without_an_address_says_that_nothing_can_run_it(database: &Database) {
    let typist = Typist::new(database);
    let job = json!({"name": "board", "subreddit_id": 7, "cron_expression": "@yearly"});
    let made = typist.ask("POST", SCHEDULED, &job, 201);
    let id = made["id"].as_i64().unwrap();
    set(&typist, id, "queued");
    wait_until(&typist, id, "failed");
    let uuid = made["uuid"].as_str().unwrap();
    let runs = typist.get(&format!("/api/v1/jobs/{uuid}/executions"));
    let error = runs["executions"][0]["error_message"].as_str().unwrap();
    assert!(error.starts_with("no_executor"), "{error}");
}
