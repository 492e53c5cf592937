//! Runs with their attempts.

use axum::http::Method;
use evenkeel_core::AttemptKey;
use evenkeel_core::attempt::Outcome;
use evenkeel_store::{Finish, RECENT_JOBS_MAX, Results, Role, Then};
use evenkeel_store_testkit::fixtures::{Begin, at};
use evenkeel_store_testkit::rig::{Held, OVER, next_attempt};
use serde_json::{Value, json};

use crate::world::{World, request, run_ids, token};

fn run_id(key: AttemptKey) -> String {
    run_ids().run_id(key).to_string()
}

async fn list(world: &World, query: &str) -> Value {
    world.get(&format!("/api/v1/runs{query}")).await.expect(200)
}

async fn ids(world: &World, query: &str) -> Vec<String> {
    let list = list(world, query).await;
    let runs = list["runs"].as_array().unwrap().iter();
    runs.map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

/// Follows the cursors of a list and returns the ids of all its runs.
async fn all_pages(world: &World, query: &str, limit: u32) -> Vec<String> {
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = list(world, &format!("?limit={limit}{query}{cursor}")).await;
        let runs = page["runs"].as_array().unwrap();
        assert!(runs.len() <= limit as usize);
        seen.extend(runs.iter().map(|run| run["id"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return seen,
        }
    }
}

/// Starts the run of `secs`, whose first attempts fail. The last one succeeds if `succeeds`, or
/// else waits for its retry.
async fn retried(world: &World, job: &Value, secs: i64, failures: i64, succeeds: bool) -> Held {
    let known = world.known(job).await;
    let mut held = world.rig.start(known, secs).await;
    for nth in 1..=failures {
        let due = secs + nth;
        let failed = Finish {
            results: Results { error: Some(format!("error {nth}")), ..Results::default() },
            ..world.rig.retry(held, at(due))
        };
        world.rig.finish(failed).await;
        if nth < failures || succeeds {
            let mut delayed = world.rig.delayed(due).await;
            delayed.retain(|delayed| delayed.job.no == known.no);
            world.rig.fire_delayed(&delayed, Begin::Claimed, due).await;
            held = Held { key: next_attempt(held.key), ..held };
        }
    }
    if succeeds {
        world.rig.finish(world.rig.success(held)).await;
    }
    Held { key: held.key.first_attempt(), ..held }
}

#[tokio::test]
async fn run_shows_its_attempts_and_its_outcome() {
    let world = World::new().await;
    let job = world.create(json!({"name": "a", "interval_minutes": 1, "start_at": at(60)})).await;
    let held = retried(&world, &job, 61, 1, true).await;
    let id = run_id(held.key);
    let second = run_ids().attempt_id(next_attempt(held.key)).to_string();
    let run = world.get(&format!("/api/v1/runs/{id}")).await.expect(200);
    assert_eq!(
        run,
        json!({
            "id": id, "job_id": job["id"], "job_name": "a", "status": "completed",
            "scheduled_at": at(60), "origin": "schedule", "started_at": at(61),
            "finished_at": at(65), "duration_ms": 4000, "lateness_ms": 1000,
            "next_attempt_at": null, "error_message": null, "skipped": null, "attempt_count": 2,
            "attempts": [
                {"id": id, "attempt": 1, "status": "failed", "node": "node-1", "due_at": null,
                 "started_at": at(61), "finished_at": at(65), "duration_ms": 4000, "crashes": 0,
                 "error_message": "error 1"},
                {"id": second, "attempt": 2, "status": "completed", "node": "node-1",
                 "due_at": null, "started_at": at(62), "finished_at": at(65),
                 "duration_ms": 3000, "crashes": 0, "error_message": null},
            ],
        })
    );
    assert_eq!(list(&world, "").await["runs"], json!([run]));
    let same = world.get(&format!("/api/v1/runs/{second}")).await.expect(200);
    assert_eq!(same, run, "the id of an execution stands for its run");
}

#[tokio::test]
async fn run_whose_retry_waits_is_pending() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 60, "start_at": at(3600)})).await;
    let held = retried(&world, &job, 3600, 2, false).await;
    let run = world.get(&format!("/api/v1/runs/{}", run_id(held.key))).await.expect(200);
    assert_eq!((&run["status"], &run["finished_at"]), (&json!("pending"), &Value::Null));
    assert_eq!((&run["attempt_count"], &run["next_attempt_at"]), (&json!(3), &json!(at(3602))));
    let attempts = run["attempts"].as_array().unwrap();
    let statuses: Vec<_> = attempts.iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["failed", "failed", "pending"]);
    assert_eq!((&attempts[2]["due_at"], &attempts[2]["attempt"]), (&json!(at(3602)), &json!(3)));
    assert_eq!(ids(&world, "?status=pending").await, [run_id(held.key)]);
    assert_eq!(ids(&world, "?status=failed").await, [""; 0]);
}

#[tokio::test]
async fn triggered_and_queued_runs_are_shown_while_they_wait() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1, "start_at": at(60)})).await;
    let known = world.known(&job).await;
    let queued = world.rig.queue(known, 60).await;
    let other = world.create(json!({"interval_minutes": 60})).await;
    let triggered = world.rig.trigger(world.known(&other).await, 0, 70).await;
    assert_eq!(ids(&world, "").await, [run_id(queued)]);
    let run = world.get(&format!("/api/v1/runs/{}", run_id(triggered))).await.expect(200);
    assert_eq!((&run["status"], &run["origin"]), (&json!("pending"), &json!("trigger")));
    assert_eq!(run["next_attempt_at"], json!(at(70)));
    world.rig.fire_delayed(&world.rig.delayed(70).await, Begin::Queued, 70).await;
    assert_eq!(ids(&world, "").await, [run_id(triggered), run_id(queued)]);
}

#[tokio::test]
async fn pages_list_every_run_once() {
    let world = World::new().await;
    let a = world.create(json!({"name": "a", "interval_minutes": 1, "start_at": at(60)})).await;
    let b = world.create(json!({"name": "b", "interval_minutes": 1, "start_at": at(60)})).await;
    let mut of_a = Vec::new();
    for (secs, failures) in [(60, 0), (120, 3), (180, 1), (240, 2)] {
        of_a.insert(0, run_id(retried(&world, &a, secs, failures, true).await.key));
        retried(&world, &b, secs, 1, true).await;
    }
    let whole = ids(&world, "?limit=1000").await;
    assert_eq!(whole.len(), 8);
    for limit in 1..=9 {
        assert_eq!(all_pages(&world, "", limit).await, whole, "pages of {limit}");
        assert_eq!(all_pages(&world, "&job=a", limit).await, of_a, "pages of {limit}");
    }
    let first = list(&world, "?limit=3").await;
    assert_eq!((&first["total_is_estimate"], &first["limit"]), (&json!(true), &json!(3)));
    let only = list(&world, "?job=a").await;
    assert_eq!((&only["total"], &only["total_is_estimate"]), (&json!(4), &json!(false)));
    assert_eq!(ids(&world, "?offset=6").await, whole[6..]);
}

#[tokio::test]
async fn filters_select_runs_by_time_and_outcome() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1, "start_at": at(60)})).await;
    let known = world.known(&job).await;
    let one = world.rig.run_successfully(known, 60).await;
    let held = world.rig.start(known, 120).await;
    world.rig.finish(world.rig.end(held, Outcome::Failed, OVER)).await;
    let three = world.rig.run_successfully(known, 180).await;
    let (one, two, three) = (run_id(one), run_id(held.key), run_id(three));
    let job = job["id"].as_str().unwrap();
    for of_job in [String::new(), format!("job={job}&")] {
        let found = async |query: String| ids(&world, &format!("?{of_job}{query}")).await;
        assert_eq!(found("status=failed".into()).await, [two.as_str()]);
        assert_eq!(found(format!("since={}", at(120))).await, [three.as_str(), two.as_str()]);
        assert_eq!(found(format!("until={}", at(120))).await, [one.as_str()]);
        let within = format!("since={}&until={}", at(61), at(180));
        assert_eq!(found(within).await, [two.as_str()]);
        assert_eq!(found(format!("since={}", at(181))).await, [""; 0]);
    }
}

#[tokio::test]
async fn skipped_times_are_one_entry() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1, "start_at": at(60)})).await;
    world.rig.start(world.known(&job).await, 600).await;
    let skipped = list(&world, "?status=skipped").await["runs"][0].clone();
    assert_eq!(
        skipped["skipped"],
        json!({"from": at(60), "to": at(540), "count": 9, "reason": "misfire"})
    );
    assert_eq!((&skipped["started_at"], &skipped["finished_at"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn list_shows_the_first_and_the_newest_attempts_of_a_long_run() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 60, "start_at": at(3600)})).await;
    let held = retried(&world, &job, 3600, 14, true).await;
    let run = list(&world, "").await["runs"][0].clone();
    let numbers = |run: &Value| -> Vec<u64> {
        let attempts = run["attempts"].as_array().unwrap().iter();
        attempts.map(|one| one["attempt"].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers(&run), [vec![1], (6..=15).collect()].concat());
    assert_eq!((&run["attempt_count"], &run["lateness_ms"]), (&json!(15), &json!(0)));
    let whole = world.get(&format!("/api/v1/runs/{}", run_id(held.key))).await.expect(200);
    assert_eq!(numbers(&whole), (1..=15).collect::<Vec<u64>>());
}

#[tokio::test]
async fn run_of_a_deleted_job_keeps_its_history_without_a_name() {
    let world = World::new().await;
    let job = world.create(json!({"name": "a", "interval_minutes": 1, "start_at": at(60)})).await;
    let key = world.rig.run_successfully(world.known(&job).await, 60).await;
    world.delete(&format!("/api/v1/jobs/{}", job["id"].as_str().unwrap())).await;
    let run = world.get(&format!("/api/v1/runs/{}", run_id(key))).await.expect(200);
    assert_eq!((&run["status"], &run["job_name"]), (&json!("completed"), &Value::Null));
    assert_eq!(list(&world, "").await["runs"], json!([run]));
}

#[tokio::test]
async fn other_tenants_and_wrong_parameters_find_no_runs() {
    let world = World::new().await;
    let job = world.create(json!({"name": "a", "interval_minutes": 1, "start_at": at(60)})).await;
    let held = world.rig.start(world.known(&job).await, 60).await;
    world.rig.finish(world.rig.end(held, Outcome::Failed, Then::Retry { due: at(99) })).await;
    let path = format!("/api/v1/runs/{}", run_id(held.key));
    world.get(&path).await.expect(200);
    let other = token(Role::Admin, "other");
    let ask = async |path: &str| world.send(request(Method::GET, path, Some(&other), None)).await;
    ask(&path).await.problem(404, "not-found");
    assert_eq!(ask("/api/v1/runs").await.expect(200)["runs"], json!([]));
    ask("/api/v1/runs?job=a").await.problem(404, "not-found");
    world.get("/api/v1/runs/nonsense").await.problem(404, "not-found");
    let unknown = run_id(AttemptKey { scheduled_at: at(61), ..held.key });
    world.get(&format!("/api/v1/runs/{unknown}")).await.problem(404, "not-found");
    for (query, field) in [
        ("status=fine", "status"),
        ("since=tomorrow", "since"),
        ("until=1", "until"),
        ("limit=0", "limit"),
        ("cursor=x", "cursor"),
        ("from=2026-12-01T00:00:00Z", "from"),
    ] {
        let problem = world.get(&format!("/api/v1/runs?{query}")).await;
        assert_eq!(problem.problem(422, "invalid-parameter")["field"], field, "{query}");
    }
}

#[tokio::test]
async fn list_of_jobs_shows_the_recent_runs_of_each_job() {
    let world = World::new().await;
    let a = world.create(json!({"name": "a", "interval_minutes": 1, "start_at": at(60)})).await;
    world.create(json!({"name": "idle", "interval_minutes": 1, "start_at": at(60)})).await;
    let first = world.rig.run_successfully(world.known(&a).await, 60).await;
    let second = retried(&world, &a, 121, 1, true).await.key;
    let third = retried(&world, &a, 180, 2, false).await.key;
    let recent = async |query: &str| -> Value {
        let list = world.get(&format!("/api/v1/jobs?sort=name{query}")).await.expect(200);
        let jobs = list["jobs"].as_array().unwrap().iter();
        jobs.map(|job| job.get("recent_runs").cloned().unwrap_or(json!("absent"))).collect()
    };
    let run = |key, status: &str, secs, duration| {
        json!({"id": run_id(key), "status": status, "scheduled_at": at(secs),
               "duration_ms": duration, "origin": "schedule"})
    };
    let newest = [
        run(third, "pending", 180, Value::Null),
        run(second, "completed", 120, json!(4000)),
        run(first, "completed", 60, json!(5000)),
    ];
    assert_eq!(recent("&recent_runs=20").await, json!([newest, []]));
    assert_eq!(recent("&recent_runs=2").await, json!([newest[..2], []]));
    for query in ["", "&recent_runs=0"] {
        assert_eq!(recent(query).await, json!(["absent", "absent"]), "{query}");
    }
    let other = token(Role::Viewer, "other");
    let path = "/api/v1/jobs?recent_runs=5";
    let list = world.send(request(Method::GET, path, Some(&other), None)).await.expect(200);
    assert_eq!(list["jobs"], json!([]));
    let shown = world.get(&format!("/api/v1/jobs/{}", a["id"].as_str().unwrap())).await;
    assert_eq!(shown.expect(200).get("recent_runs"), None);
}

#[tokio::test]
async fn recent_runs_of_a_long_list_of_jobs_are_complete() {
    let world = World::new().await;
    // More jobs than the store reads at once.
    let mut last = Value::Null;
    for nth in 0..=RECENT_JOBS_MAX {
        last = world.create(json!({"name": format!("{nth:03}"), "interval_minutes": 1})).await;
    }
    let key = world.rig.run_successfully(world.known(&last).await, 60).await;
    let list = world.get("/api/v1/jobs?limit=1000&sort=name&recent_runs=1").await.expect(200);
    let jobs = list["jobs"].as_array().unwrap();
    assert_eq!(jobs[0]["recent_runs"], json!([]));
    assert_eq!(jobs[RECENT_JOBS_MAX]["recent_runs"][0]["id"], run_id(key));
}
