//! The admin API: one test per request.

use axum::http::{Method, header};
use evenkeel_core::attempt::Outcome;
use evenkeel_store::{FinishResult, Role};
use evenkeel_store_testkit::fixtures::{Begin, new_job};
use evenkeel_store_testkit::rig::{Known, OVER};
use serde_json::{Value, json};

use crate::world::{Answer, World, request, token};

const JOBS: &str = "/api/admin/jobs";

async fn set(world: &World, id: i64, status: &str) -> Answer {
    world.put(&format!("{JOBS}/{id}/status"), json!({"status": status})).await
}

/// Creates a job that is due in a minute, and then every minute.
async fn job(world: &World, name: &str) -> (i64, Known) {
    let made = world.create(json!({"name": name, "cron_expression": "* * * * *"})).await;
    (made["number"].as_i64().unwrap(), world.known(&made).await)
}

async fn end(world: &World, known: Known, secs: i64, outcome: Outcome) {
    let held = world.rig.start(known, secs).await;
    let end = world.rig.end(held, outcome, OVER);
    assert_eq!(world.rig.finish(end).await, FinishResult::Done);
}

async fn listed(world: &World, query: &str) -> Vec<i64> {
    let list = world.get(&format!("{JOBS}?{query}")).await.expect(200);
    list["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_i64().unwrap()).collect()
}

async fn stats(world: &World) -> [u64; 4] {
    let stats = world.get(&format!("{JOBS}/stats")).await.expect(200);
    assert_eq!(stats["is_estimate"], false);
    ["queued", "running", "failed", "completed"].map(|name| stats[name].as_u64().unwrap())
}

#[tokio::test]
async fn jobs_are_counted_and_listed_by_the_status_of_their_latest_run() {
    let world = World::new().await;
    let mut known = Vec::new();
    for name in ["idle", "due", "waits", "runs", "good", "bad", "cancelled"] {
        known.push(job(&world, name).await.1);
    }
    assert_eq!(stats(&world).await, [0, 0, 0, 0], "what is only scheduled is nowhere");
    assert_eq!(listed(&world, "status=queued").await, Vec::<i64>::new());
    world.pass(60);
    world.rig.queue(known[2], 60).await;
    world.rig.start(known[3], 60).await;
    end(&world, known[4], 60, Outcome::Completed).await;
    end(&world, known[5], 60, Outcome::TimedOut).await;
    end(&world, known[6], 60, Outcome::Cancelled).await;
    // The first job is deleted, and a new job is created that is not due yet.
    world.delete("/api/admin/scheduled-jobs/1").await.expect(200);
    job(&world, "idle").await;
    assert_eq!(stats(&world).await, [2, 1, 2, 1]);
    assert_eq!(listed(&world, "status=queued&limit=100&offset=0").await, [2, 3]);
    assert_eq!(listed(&world, "status=crawling").await, [4]);
    assert_eq!(listed(&world, "status=success").await, [5]);
    assert_eq!(listed(&world, "status=failed").await, [6, 7]);
    assert_eq!(listed(&world, "").await, [2, 3, 4, 5, 6, 7, 8]);
    let all = world.get(JOBS).await.expect(200);
    assert_eq!((&all["limit"], &all["offset"]), (&json!(100), &json!(0)));
    assert_eq!((&all["total"], &all["total_is_estimate"]), (&json!(7), &json!(false)));
    assert_eq!(all["jobs"][6]["status"], Value::Null);
    let due = &all["jobs"][0];
    assert_eq!((&due["status"], &due["visible_at"]), (&json!("queued"), &json!(at(60))));
    let ended = &all["jobs"][3];
    assert_eq!((&ended["duration_ms"], &ended["last_attempt"]), (&json!(5000), &json!(at(60))));
    assert_eq!(ended["enqueued_by"], "system");
}

fn at(secs: i64) -> String {
    evenkeel_store_testkit::fixtures::at(secs).to_string()
}

#[tokio::test]
async fn admin_list_continues_by_offset_or_cursor() {
    let world = World::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        job(&world, name).await;
    }
    world.pass(61);
    assert_eq!(listed(&world, "status=queued&limit=2&offset=3").await, [4, 5]);
    let first = world.get(&format!("{JOBS}?status=queued&limit=2")).await.expect(200);
    assert_eq!(first["total"], 5);
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(listed(&world, &format!("status=queued&limit=2&cursor={cursor}")).await, [3, 4]);
    for wrong in ["status=running", "limit=0", "limit=1001", "cursor=x", "state=queued"] {
        world.get(&format!("{JOBS}?{wrong}")).await.problem(422, "invalid-parameter");
    }
}

#[tokio::test]
async fn override_ends_queued_and_running_runs() {
    let world = World::new().await;
    let (runs, known) = job(&world, "runs").await;
    let (waits, queued) = job(&world, "waits").await;
    let (due, _) = job(&world, "due").await;
    world.pass(61);
    let held = world.rig.start(known, 60).await;
    world.rig.queue(queued, 60).await;
    for (id, status) in [(runs, "success"), (waits, "failed"), (due, "failed")] {
        let set_to = set(&world, id, status).await.expect(200);
        assert_eq!((&set_to["status"], &set_to["id"]), (&json!(status), &json!(id)));
        // Setting the same status again changes nothing.
        assert_eq!(set(&world, id, status).await.expect(200)["status"], *status);
    }
    // The worker reports its result after the status of its run was overridden.
    let late = world.rig.end(held, Outcome::Failed, OVER);
    assert_eq!(world.rig.finish(late).await, FinishResult::LeaseLost);
    let messages = world.rig.store.take_messages(world.rig.node, 9).await.unwrap();
    assert_eq!(messages.len(), 1, "the body is stopped");
    // `/api/v1` also shows the overridden status of the runs.
    for (known, status) in [(known, "completed"), (queued, "failed")] {
        let path = format!("/api/v1/jobs/{}/executions", known.id);
        let runs = world.get(&path).await.expect(200);
        assert_eq!(runs["executions"][0]["status"], status);
    }
    assert_eq!(stats(&world).await, [0, 0, 2, 1]);
    assert_eq!(world.rig.census().await.live, 0);
}

#[tokio::test]
async fn outcome_of_an_ended_run_is_not_rewritten() {
    let world = World::new().await;
    let (good, known) = job(&world, "good").await;
    let (new, _) = job(&world, "new").await;
    end(&world, known, 60, Outcome::Completed).await;
    let refusal = set(&world, good, "failed").await.problem(409, "job-state");
    assert!(refusal["detail"].as_str().unwrap().contains("success"));
    for status in ["crawling", "success", "failed"] {
        set(&world, new, status).await.problem(409, "job-state");
    }
    set(&world, good, "crawling").await.problem(409, "job-state");
}

#[tokio::test]
async fn run_of_any_status_can_be_queued() {
    let world = World::new().await;
    let (runs, running) = job(&world, "runs").await;
    let (good, ended) = job(&world, "good").await;
    let (bad, failed) = job(&world, "bad").await;
    let (new, _) = job(&world, "new").await;
    let (cancelled, ended_by_hand) = job(&world, "cancelled").await;
    let held = world.rig.start(running, 60).await;
    end(&world, ended, 60, Outcome::Completed).await;
    end(&world, failed, 60, Outcome::Failed).await;
    end(&world, ended_by_hand, 60, Outcome::Cancelled).await;
    assert_eq!(set(&world, runs, "crawling").await.expect(200)["status"], "crawling");
    for id in [runs, good, bad, new, cancelled] {
        let queued = set(&world, id, "queued").await.expect(200);
        assert_eq!((&queued["status"], &queued["retry_count"]), (&json!("queued"), &json!(0)));
        assert_eq!(set(&world, id, "queued").await.expect(200), queued);
    }
    assert_eq!(stats(&world).await[0], 5);
    let late = world.rig.end(held, Outcome::Completed, OVER);
    assert_eq!(world.rig.finish(late).await, FinishResult::LeaseLost);
    // A worker may claim the run again only after five seconds, so that the running attempt stops
    // first.
    assert_eq!(world.rig.claim(10, 4).await, []);
    let taken = world.rig.claim_one(5).await;
    assert_eq!((taken.key, taken.fence), (held.key, held.fence.next().next()));
}

#[tokio::test]
async fn pending_retry_shows_its_time() {
    let world = World::new().await;
    let (id, known) = job(&world, "bad").await;
    let held = world.rig.start(known, 60).await;
    let retry = world.rig.retry(held, evenkeel_store_testkit::fixtures::at(600));
    world.rig.finish(retry).await;
    world.pass(70);
    let list = world.get(&format!("{JOBS}?status=queued")).await.expect(200);
    let job = &list["jobs"][0];
    assert_eq!((&job["next_retry_at"], &job["visible_at"]), (&json!(at(600)), &json!(at(600))));
    assert_eq!((&job["retry_count"], &job["retries"]), (&json!(1), &json!(1)));
    world.post(&format!("{JOBS}/{id}/retry"), None).await.problem(409, "job-state");
    let failed = set(&world, id, "failed").await.expect(200);
    assert_eq!((&failed["status"], &failed["next_retry_at"]), (&json!("failed"), &Value::Null));
}

#[tokio::test]
async fn priority_is_set_and_raised_to_at_most_100() {
    let world = World::new().await;
    let (id, known) = job(&world, "a").await;
    let path = |what: &str| format!("{JOBS}/{id}/{what}");
    let set = world.put(&path("priority"), json!({"priority": 50})).await.expect(200);
    assert_eq!((&set["priority"], &set["effective_priority"]), (&json!(50), &json!(50)));
    for (boost, priority) in [(20, 70), (0, 70), (100, 100)] {
        let raised = world.post(&path("boost"), Some(json!({"boost": boost}))).await.expect(200);
        assert_eq!(raised["priority"], priority);
    }
    let by_id = format!("{JOBS}/{}/priority", known.id);
    assert_eq!(world.put(&by_id, json!({"priority": 1})).await.expect(200)["id"], id);
    for wrong in [json!({"priority": 101}), json!({"priority": "9"}), json!({}), json!([])] {
        world.put(&path("priority"), wrong).await.problem(422, "invalid-parameter");
    }
    for wrong in [json!({"boost": -1}), json!({"boost": 101}), json!({"by": 1})] {
        world.post(&path("boost"), Some(wrong)).await.problem(422, "invalid-parameter");
    }
}

#[tokio::test]
async fn waiting_raises_the_effective_priority() {
    let world = World::new().await;
    let (due, waits) = (new_job("due").first_at(-7200), new_job("waits").first_at(-7200));
    world.rig.add(due.priority(5).build()).await;
    let waits = world.rig.add(waits.priority(5).build()).await;
    world.rig.queue(waits, -7140).await;
    let list = world.get(&format!("{JOBS}?status=queued")).await.expect(200);
    for job in list["jobs"].as_array().unwrap() {
        assert_eq!(job["priority"], 5);
        assert!(job["effective_priority"].as_u64().unwrap() > 50, "{job}");
    }
    let lowered = world.put(&format!("{JOBS}/2/priority"), json!({"priority": 0})).await;
    let lowered = lowered.expect(200);
    assert_eq!(lowered["priority"], 0);
    assert!(lowered["effective_priority"].as_u64().unwrap() > 50, "{lowered}");
}

#[tokio::test]
async fn retry_accepts_failed_runs_only() {
    let world = World::new().await;
    let (bad, failed) = job(&world, "bad").await;
    let (good, ended) = job(&world, "good").await;
    end(&world, failed, 60, Outcome::Failed).await;
    end(&world, ended, 60, Outcome::Completed).await;
    let again = world.post(&format!("{JOBS}/{bad}/retry"), None).await.expect(200);
    assert_eq!((&again["status"], &again["retry_count"]), (&json!("queued"), &json!(0)));
    for id in [bad, good] {
        world.post(&format!("{JOBS}/{id}/retry"), None).await.problem(409, "job-state");
    }
    for id in ["99", "0190163d-8694-739b-aea5-966c26f8ad91", "one", "-1"] {
        world.post(&format!("{JOBS}/{id}/retry"), None).await.problem(404, "not-found");
    }
}

#[tokio::test]
async fn bulk_requests_answer_each_job_in_order() {
    let world = World::new().await;
    let mut known = Vec::new();
    for name in ["a", "b", "c"] {
        known.push(job(&world, name).await.1);
    }
    end(&world, known[0], 60, Outcome::Failed).await;
    end(&world, known[1], 60, Outcome::Failed).await;
    let uuid = known[1].id.to_string();
    let bulk = json!({"job_ids": [3, 99, 1, uuid, 1], "status": "queued"});
    let answer = world.put(&format!("{JOBS}/bulk/status"), bulk).await.expect(200);
    assert_eq!((&answer["updated"], &answer["failed"]), (&json!(4), &json!(1)));
    let results = answer["results"].as_array().unwrap();
    let ids: Vec<&Value> = results.iter().map(|result| &result["id"]).collect();
    assert_eq!(ids, [3, 99, 1, 2, 1]);
    assert_eq!(
        results[0],
        json!({"id": 3, "uuid": known[2].id.to_string(), "ok": true,
        "status": "queued"})
    );
    assert_eq!((&results[1]["ok"], &results[1]["error"]["status"]), (&json!(false), &json!(404)));
    for wrong in [json!({"job_ids": [1]}), json!({"job_ids": ["x"], "status": "queued"})] {
        let path = format!("{JOBS}/bulk/status");
        world.put(&path, wrong).await.problem(422, "invalid-parameter");
    }
    let bulk = json!({"job_ids": [1, 2, 3], "status": "failed"});
    let answer = world.put(&format!("{JOBS}/bulk/status"), bulk).await.expect(200);
    assert_eq!(answer["updated"], 3);
    let retry = json!({"job_ids": [1, 2, 2, 7, 3]});
    let answer = world.post(&format!("{JOBS}/bulk/retry"), Some(retry.clone())).await.expect(200);
    assert_eq!((&answer["updated"], &answer["failed"]), (&json!(4), &json!(1)));
    assert_eq!(answer["results"][1]["status"], "queued");
    let answer = world.post(&format!("{JOBS}/bulk/retry"), Some(retry)).await.expect(200);
    assert_eq!((&answer["updated"], &answer["failed"]), (&json!(0), &json!(5)));
    assert_eq!(answer["results"][0]["error"]["type"], "/problems/job-state");
}

#[tokio::test]
async fn job_numbers_of_another_tenant_are_not_found() {
    let world = World::new().await;
    let (id, known) = job(&world, "a").await;
    end(&world, known, 60, Outcome::Failed).await;
    let other = token(Role::Admin, "other");
    let ask = |method: Method, path: String, body: Option<Value>| {
        world.send(request(method, &path, Some(&other), body))
    };
    for name in [id.to_string(), known.id.to_string()] {
        let (put, post) = (Method::PUT, Method::POST);
        let status = Some(json!({"status": "queued"}));
        ask(put, format!("{JOBS}/{name}/status"), status).await.problem(404, "not-found");
        ask(post, format!("{JOBS}/{name}/retry"), None).await.problem(404, "not-found");
        let path = format!("/api/admin/scheduled-jobs/{name}");
        ask(Method::GET, path.clone(), None).await.problem(404, "not-found");
        ask(Method::DELETE, path, None).await.problem(404, "not-found");
    }
    let body = Some(json!({"job_ids": [id, known.id.to_string()], "status": "queued"}));
    let answer = ask(Method::PUT, format!("{JOBS}/bulk/status"), body).await.expect(200);
    assert_eq!((&answer["updated"], &answer["failed"]), (&json!(0), &json!(2)));
    assert_eq!(ask(Method::GET, JOBS.into(), None).await.expect(200)["total"], 0);
    assert_eq!(stats(&world).await, [0, 0, 1, 0]);
}

#[tokio::test]
async fn admin_changes_are_in_the_audit_log() {
    let world = World::new().await;
    let (id, known) = job(&world, "a").await;
    world.rig.queue(known, 60).await;
    set(&world, id, "success").await.expect(200);
    let bulk = json!({"job_ids": [id], "status": "queued"});
    world.put(&format!("{JOBS}/bulk/status"), bulk).await.expect(200);
    world.put(&format!("{JOBS}/{id}/priority"), json!({"priority": 30})).await.expect(200);
    world.post(&format!("{JOBS}/{id}/boost"), Some(json!({"boost": 80}))).await.expect(200);
    let log = world.ask_as(Role::Admin, Method::GET, "/api/v1/audit", None).await.expect(200);
    let entries = log["entries"].as_array().unwrap();
    let find = |operation: &str| {
        entries.iter().find(|entry| entry["action"] == operation).unwrap_or_else(|| panic!("{log}"))
    };
    let one = find("admin_set_job_status");
    assert_eq!((&one["subject"], &one["target"]), (&json!("tester"), &json!(id.to_string())));
    assert_eq!(one["detail"], "set to success");
    assert_eq!(find("admin_set_job_priority")["detail"], "priority set to 30");
    assert_eq!(find("admin_boost_job")["detail"], "priority raised by 80 to 100");
    let many = find("admin_set_status_of_jobs");
    assert_eq!(many["detail"], "set to queued: 1 of 1");
}

#[tokio::test]
async fn override_ends_a_triggered_run() {
    let world = World::new().await;
    let (id, known) = job(&world, "a").await;
    world.rig.trigger(known, 1, 10).await;
    world.pass(20);
    assert_eq!(listed(&world, "status=queued").await, [id]);
    assert_eq!(set(&world, id, "success").await.expect(200)["status"], "success");
    world.rig.trigger(known, 2, 30).await;
    let wakes = world.rig.delayed(30).await;
    world.rig.fire_delayed(&wakes, Begin::Claimed, 30).await;
    assert_eq!(set(&world, id, "failed").await.expect(200)["status"], "failed");
    let path = format!("{JOBS}/{id}/retry");
    let again = world.post(&path, None).await;
    assert_eq!(again.expect(200)["status"], "queued");
    assert_eq!(again.header(header::LOCATION), None);
}
