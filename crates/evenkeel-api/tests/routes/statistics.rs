//! Filters, sort orders and statistics of jobs and runs.

use axum::http::Method;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::{Span, fingerprint::Fingerprint};
use evenkeel_store::{FailureDelta, Finish, Results, Role, RunStatsDelta, Then};
use evenkeel_store_testkit::fixtures::at;
use serde_json::{Value, json};

use crate::world::{World, request, run_ids, token};

fn names(list: &Value) -> Vec<&str> {
    list["jobs"].as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap()).collect()
}

async fn three_jobs() -> World {
    let world = World::new().await;
    world
        .create(json!({"name": "b", "interval_minutes": 30, "source_id": "s-1", "lane": "batch",
                       "metadata": {"team": "red", "tier": 1}}))
        .await;
    world.pass(1);
    world
        .create(json!({"name": "c", "interval_minutes": 10, "source_id": "s-2",
                       "metadata": {"team": "red", "a b": true}}))
        .await;
    world.pass(1);
    let http = json!({"name": "a", "interval_minutes": 20, "executor_type": "http",
                      "executor_config": {"url": "https://example.com"}});
    world.post("/api/v1/jobs", Some(http)).await.expect(201);
    world
}

#[tokio::test]
async fn jobs_are_found_by_all_filters() {
    let world = three_jobs().await;
    for (query, found) in [
        ("", vec!["b", "c", "a"]),
        ("status=scheduled", vec!["b", "c", "a"]),
        ("status=paused", vec![]),
        ("condition=OK", vec!["b", "c", "a"]),
        ("condition=error", vec![]),
        ("executor=http", vec!["a"]),
        ("lane=batch", vec!["b"]),
        ("source_prefix=s-", vec!["b", "c"]),
        ("metadata.team=red", vec!["b", "c"]),
        ("metadata.team=red&metadata.tier=1", vec!["b"]),
        ("metadata.a%20b=true", vec!["c"]),
        ("metadata.team=blue", vec![]),
        ("tenant=main&lane=standard", vec!["c", "a"]),
        ("sort=name", vec!["a", "b", "c"]),
        ("sort=-created_at", vec!["a", "c", "b"]),
        ("sort=-updated_at&limit=2", vec!["a", "c"]),
        ("sort=name&source_prefix=s-", vec!["b", "c"]),
    ] {
        let list = world.get(&format!("/api/v1/jobs?{query}")).await.expect(200);
        assert_eq!(names(&list), found, "{query}");
    }
}

#[tokio::test]
async fn jobs_are_filtered_and_sorted_by_their_next_run() {
    let world = three_jobs().await;
    let list = world.get("/api/v1/jobs?sort=next_run_at").await.expect(200);
    let times: Vec<&str> = list["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["next_run_at"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted() && times.len() == 3);
    let query = format!("next_run_after={}&next_run_before={}", times[0], times[2]);
    let list = world.get(&format!("/api/v1/jobs?{query}")).await.expect(200);
    assert_eq!((list["jobs"].as_array().unwrap().len(), &list["total"]), (2, &json!(2)));
    let found = list["jobs"].as_array().unwrap().iter().map(|job| job["next_run_at"].as_str());
    let mut found: Vec<_> = found.collect();
    found.sort_unstable();
    assert_eq!(found, [Some(times[0]), Some(times[1])]);
}

#[tokio::test]
async fn sort_order_continues_over_pages() {
    let world = three_jobs().await;
    let first = world.get("/api/v1/jobs?sort=-name&limit=2").await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second =
        world.get(&format!("/api/v1/jobs?sort=-name&limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!((names(&first), names(&second)), (vec!["c", "b"], vec!["a"]));
    assert_eq!(second["next_cursor"], Value::Null);
}

#[tokio::test]
async fn job_shows_its_statistics() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1, "start_at": at(60)})).await;
    let path = format!("/api/v1/jobs/{}/stats", job["id"].as_str().unwrap());
    let stats = world.get(&path).await.expect(200);
    assert_eq!(stats["total_executions"], 0);
    assert_eq!(stats["success_rate"], Value::Null);
    assert_eq!(stats["next_scheduled_at"], job["next_run_at"]);
    world.rig.run_successfully(world.known(&job).await, 60).await;
    let stats = world.get(&path).await.expect(200);
    assert_eq!(
        (&stats["total_executions"], &stats["average_duration_ms"]),
        (&json!(1), &json!(5000))
    );
    assert_eq!(stats["last_execution_at"], json!(at(60)));
    world
        .get("/api/v1/jobs/00000000-0000-7000-8000-000000000000/stats")
        .await
        .problem(404, "not-found");
}

#[tokio::test]
async fn scheduler_metrics_show_all_figures() {
    let world = World::new().await;
    let job = |_: &str| world.create(json!({"interval_minutes": 1}));
    let (running, _scheduled) = (job("running").await, job("scheduled").await);
    world.rig.start(world.known(&running).await, 60).await;
    let sums = RunStatsDelta {
        tenant: world.rig.scope.tenant,
        completed: 24,
        failed: 1,
        timed_out: 0,
        cancelled: 3,
        retries: 2,
        stolen: 5,
        success_duration: Span::from_secs(48),
        running: 1,
    };
    world
        .rig
        .store
        .add_run_stats(world.rig.node, vec![sums], vec![], vec![], at(61))
        .await
        .unwrap();
    let metrics = world.get("/api/v1/scheduler/metrics").await.expect(200);
    assert_eq!(
        metrics,
        json!({
            "jobs": {
                "scheduled": 1, "running": 1, "completed": 0, "failed": 0, "cancelled": 0,
                "pending": 0, "paused": 0, "total": 2, "is_estimate": false,
            },
            "executions": {
                "total": 28, "average_duration_ms": 2000, "success_rate": 0.96, "completed": 24,
                "failed": 1, "timed_out": 0, "cancelled": 3, "retries": 2, "running": 1,
            },
            "last_check_at": at(0), "last_metrics_update": at(61), "stale_locks_cleared": 5,
        })
    );
    let other = request(
        Method::GET,
        "/api/v1/scheduler/metrics",
        Some(&token(Role::Viewer, "other")),
        None,
    );
    let theirs = world.send(other).await.expect(200);
    assert_eq!((&theirs["jobs"]["total"], &theirs["executions"]["total"]), (&json!(0), &json!(0)));
}

async fn fail(world: &World, job: &Value, secs: i64, error: &str) {
    let held = world.rig.start(world.known(job).await, secs).await;
    let then = Then::EndRun { stop_job: false, next_at: None };
    let results = Results { error: Some(error.into()), ..Results::default() };
    world.rig.finish(Finish { results, ..world.rig.end(held, Outcome::Failed, then) }).await;
}

#[tokio::test]
async fn failures_of_a_job_are_grouped() {
    let world = World::new().await;
    let job = world.create(json!({"name": "reports", "interval_minutes": 1})).await;
    let id = job["id"].as_str().unwrap();
    fail(&world, &job, 60, "no route to 10.0.0.1").await;
    fail(&world, &job, 120, "out of memory").await;
    fail(&world, &job, 180, "no route to 10.0.0.2").await;
    world.rig.run_successfully(world.known(&job).await, 240).await;
    let list = world.get(&format!("/api/v1/failures?job_id={id}")).await.expect(200);
    let groups: Vec<_> = list["failures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (group["count"].as_u64().unwrap(), group["error_message"].as_str().unwrap()))
        .collect();
    assert_eq!(groups, [(2, "no route to 10.0.0.2"), (1, "out of memory")]);
    assert_eq!((&list["total"], &list["failures"][0]["job_id"]), (&json!(2), &job["id"]));
    assert_eq!(list["failures"][0]["job_name"], "reports");
    let first = world.get(&format!("/api/v1/failures?job_id={id}&limit=1")).await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let path = format!("/api/v1/failures?job_id={id}&limit=1&cursor={cursor}");
    let second = world.get(&path).await.expect(200);
    assert_eq!(second["failures"][0]["error_message"], "out of memory");
    let path = "/api/v1/failures?job_id=00000000-0000-7000-8000-000000000000";
    world.get(path).await.problem(404, "not-found");
    world.get("/api/v1/failures?job_id=x").await.problem(404, "not-found");
}

#[tokio::test]
async fn failures_of_all_jobs_are_listed_newest_first() {
    let world = World::new().await;
    let job = world.create(json!({"name": "reports", "interval_minutes": 1})).await;
    let held = world.rig.start(world.known(&job).await, 60).await;
    let failed = FailureDelta {
        tenant: world.rig.scope.tenant,
        fingerprint: Fingerprint::of("oh"),
        count: 3,
        newest: held.key,
        at: at(65),
        error: "oh".into(),
    };
    world
        .rig
        .store
        .add_run_stats(world.rig.node, vec![], vec![failed], vec![], at(70))
        .await
        .unwrap();
    let list = world.get("/api/v1/failures").await.expect(200);
    assert_eq!(
        list["failures"],
        json!([{
            "fingerprint": Fingerprint::of("oh").to_string(), "count": 3, "error_message": "oh",
            "first_at": at(70), "last_at": at(65), "execution_id": run_ids().attempt_id(held.key),
            "job_id": job["id"], "job_name": "reports",
        }])
    );
}

#[tokio::test]
async fn executions_are_found_by_state_and_time() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1, "start_at": at(60)})).await;
    fail(&world, &job, 60, "oh").await;
    world.rig.run_successfully(world.known(&job).await, 120).await;
    fail(&world, &job, 180, "oh").await;
    let of_job = format!("/api/v1/jobs/{}/executions", job["id"].as_str().unwrap());
    for path in ["/api/v1/executions", &of_job] {
        for (query, found) in [
            ("status=failed".to_owned(), vec![180, 60]),
            ("status=completed".into(), vec![120]),
            ("status=running".into(), vec![]),
            (format!("from={}", at(120)), vec![180, 120]),
            (format!("before={}", at(120)), vec![60]),
            (format!("status=failed&from={}&before={}", at(60), at(180)), vec![60]),
            ("status=failed&offset=1".into(), vec![60]),
        ] {
            let list = world.get(&format!("{path}?{query}")).await.expect(200);
            let times: Vec<Value> = list["executions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|run| run["scheduled_at"].clone())
                .collect();
            let expected: Vec<Value> = found.into_iter().map(|secs| json!(at(secs))).collect();
            assert_eq!(times, expected, "{path}?{query}");
            assert_eq!(list["next_cursor"], Value::Null, "{path}?{query}");
        }
        let first = world.get(&format!("{path}?status=failed&limit=1")).await.expect(200);
        let cursor = first["next_cursor"].as_str().unwrap();
        let rest =
            world.get(&format!("{path}?status=failed&limit=1&cursor={cursor}")).await.expect(200);
        assert_eq!(rest["executions"][0]["scheduled_at"], json!(at(60)));
        let wrong = world.get(&format!("{path}?status=dead")).await;
        assert_eq!(wrong.problem(422, "invalid-parameter")["field"], "status");
    }
}
