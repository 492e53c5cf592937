//! `GET /api/v1/timeline`

use std::collections::BTreeSet;

use axum::http::Method;
use evenkeel_core::activity::ActivityCounts;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::{Slot, Timestamp};
use evenkeel_store::{ActivityDelta, Role};
use evenkeel_store_testkit::fixtures::{START, at};
use evenkeel_store_testkit::rig::OVER;
use serde_json::{Value, json};

use crate::world::{World, job_path, request, run_ids, token};

const PATH: &str = "/api/v1/timeline";

async fn get(world: &World, query: &str) -> Value {
    world.get(&format!("{PATH}?{query}")).await.expect(200)
}

/// Returns the timeline of a period, in seconds since the start of the test.
async fn between(world: &World, from: i64, to: i64, more: &str) -> Value {
    get(world, &format!("from={}&to={}{more}", at(from), at(to))).await
}

fn list<'a>(answer: &'a Value, name: &str) -> &'a Vec<Value> {
    answer[name].as_array().unwrap()
}

/// Returns one field of all marks.
fn marks(answer: &Value, field: &str) -> Vec<Value> {
    assert_eq!(answer["shows"], "marks", "{answer}");
    list(answer, "marks").iter().map(|mark| mark[field].clone()).collect()
}

fn times(secs: &[i64]) -> Vec<Value> {
    secs.iter().map(|secs| json!(at(*secs))).collect()
}

/// Creates a job that runs every minute.
async fn minutely(world: &World, name: &str) -> Value {
    let job = json!({"name": name, "interval_minutes": 1, "start_at": at(60)});
    world.create(job).await
}

async fn add_activity(world: &World, time: Timestamp, counts: ActivityCounts) {
    let (tenant, slot) = (world.rig.scope.tenant, Slot::of(time));
    let delta = ActivityDelta { tenant, slot, counts };
    let store = &world.rig.store;
    store.add_run_stats(world.rig.node, vec![], vec![], vec![delta], at(0)).await.unwrap();
}

#[tokio::test]
async fn past_active_and_expected_runs_are_marks() {
    let world = World::new().await;
    let job = minutely(&world, "a").await;
    let known = world.known(&job).await;
    world.rig.run_successfully(known, 60).await;
    let held = world.rig.start(known, 120).await;
    world.pass(121);
    let answer = between(&world, 0, 200, "").await;
    assert_eq!((&answer["by"], &answer["shows"]), (&json!("job"), &json!("marks")));
    assert_eq!((&answer["from"], &answer["to"]), (&json!(at(0)), &json!(at(200))));
    assert_eq!((&answer["as_of"], &answer["job_id"]), (&json!(at(121)), &Value::Null));
    assert_eq!(answer["lanes"], json!([{"name": "a", "job_id": job["id"], "marks": 3}]));
    assert_eq!((&answer["step_seconds"], &answer["density"]), (&Value::Null, &json!([])));
    assert_eq!(marks(&answer, "status"), ["completed", "running", "expected"]);
    assert_eq!(marks(&answer, "scheduled_at"), times(&[60, 120, 180]));
    assert_eq!(
        list(&answer, "marks")[1],
        json!({
            "lane": 0, "job_id": job["id"], "job_name": "a", "pool": "default", "node": "node-1",
            "scheduled_at": at(120), "start": at(120), "end": at(125), "status": "running",
            "run_id": run_ids().run_id(held.key), "is_estimate": true, "start_is_estimate": false,
            "moved_by": null,
        }),
        "the only run so far took 5 s"
    );
    let expected = &list(&answer, "marks")[2];
    assert_eq!((&expected["start"], &expected["end"]), (&json!(at(180)), &json!(at(185))));
    assert_eq!((&expected["run_id"], &expected["node"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&expected["is_estimate"], &expected["start_is_estimate"]),
        (&json!(true), &json!(false))
    );
}

#[tokio::test]
async fn default_period_is_one_hour_around_now() {
    let world = World::new().await;
    world.pass(3_000);
    let answer = get(&world, "").await;
    assert_eq!((&answer["from"], &answer["to"]), (&json!(at(-600)), &json!(at(6_600))));
    assert_eq!((&answer["marks"], &answer["lanes"]), (&json!([]), &json!([])));
    assert_eq!(answer["runs_not_kept"], 0);
    let from = get(&world, &format!("from={}", at(60))).await;
    assert_eq!(from["to"], json!(at(7_260)));
}

#[tokio::test]
async fn expected_runs_are_the_start_times_that_the_job_shows() {
    let world = World::new().await;
    let berlin = json!({
        "name": "berlin", "schedule": {"kind": "cron", "expression": "30 2 * * *"},
        "timezone": "Europe/Berlin",
    });
    let held = json!({
        "name": "held", "interval_minutes": 20,
        "blackout_periods": [{"start": "17:00", "end": "23:00"}],
    });
    let once = json!({"name": "once", "schedule": {"kind": "once", "at": at(5_000)}});
    let periodic = json!({"name": "periodic", "schedule": {"kind": "periodic", "period": "1h"},
                          "start_at": at(90)});
    let day = 86_400;
    // The clocks change on the 14th day.
    let periods =
        [(0, 7 * day), (10 * day, 14 * day), (3 * day + 7, 4 * day), (4 * 3_600, 7 * 3_600)];
    let mut reasons = BTreeSet::new();
    for (job, is_estimate) in [(berlin, false), (held, false), (once, false), (periodic, true)] {
        let job = world.create(job).await;
        let name = job["name"].as_str().unwrap();
        let next = world.get(&job_path(&job, "/next?count=1000")).await.expect(200);
        let next = list(&next, "times");
        for (from, to) in periods {
            let answer = between(&world, from, to, &format!("&job={name}")).await;
            let within = |time: &&Value| {
                let utc = time["utc"].as_str().unwrap();
                (at(from).to_string().as_str()..at(to).to_string().as_str()).contains(&utc)
            };
            let shown: Vec<_> = next.iter().filter(within).collect();
            let starts: Vec<_> = shown.iter().map(|time| time["utc"].clone()).collect();
            assert_eq!(marks(&answer, "start"), starts, "{name} {from} {to}");
            let moved: Vec<_> = shown.iter().map(|time| time["moved_by"].clone()).collect();
            assert_eq!(marks(&answer, "moved_by"), moved, "{name} {from} {to}");
            reasons.extend(moved.iter().filter_map(Value::as_str).map(str::to_owned));
            let estimates = marks(&answer, "start_is_estimate");
            assert!(estimates.iter().all(|it| *it == is_estimate), "{name}: {answer}");
        }
    }
    assert_eq!(reasons, ["blackout", "daylight_saving"].map(str::to_owned).into());
}

#[tokio::test]
async fn stopped_jobs_have_no_expected_runs() {
    let world = World::new().await;
    for (name, command) in [("paused", "pause"), ("cancelled", "cancel")] {
        let job = minutely(&world, name).await;
        world.post(&job_path(&job, &format!("/{command}")), None).await;
    }
    let limited =
        json!({"name": "limited", "interval_minutes": 1, "start_at": at(60), "max_runs": 2});
    world.create(limited).await;
    let answer = between(&world, 0, 3_600, "").await;
    assert_eq!(marks(&answer, "scheduled_at"), times(&[60, 120]));
    assert_eq!(marks(&answer, "job_name"), ["limited", "limited"]);
}

#[tokio::test]
async fn overdue_run_is_expected_now() {
    let world = World::new().await;
    minutely(&world, "a").await;
    world.pass(150);
    let answer = between(&world, 0, 300, "").await;
    assert_eq!(marks(&answer, "scheduled_at"), times(&[60, 180, 240]));
    assert_eq!(marks(&answer, "start"), times(&[150, 180, 240]));
    assert_eq!(marks(&answer, "start_is_estimate"), [true, false, false]);
    let later = between(&world, 200, 300, "").await;
    assert_eq!(marks(&later, "start"), times(&[240]));
    let past = between(&world, 0, 100, "").await;
    assert_eq!(list(&past, "marks"), &[] as &[Value]);
}

#[tokio::test]
async fn run_that_began_before_the_period_is_shown_while_it_runs() {
    let world = World::new().await;
    let job = minutely(&world, "a").await;
    let held = world.rig.start(world.known(&job).await, 60).await;
    world.pass(3_500);
    for query in ["", "&job=a"] {
        let period = (3_000, 3_400);
        let answer = between(&world, period.0, period.1, query).await;
        assert_eq!(marks(&answer, "start"), times(&[60]));
        assert_eq!(marks(&answer, "status"), ["running"]);
    }
    world.rig.finish(world.rig.end(held, Outcome::Failed, OVER)).await;
    assert_eq!(list(&between(&world, 3_000, 3_400, "").await, "marks"), &[] as &[Value]);
    assert_eq!(marks(&between(&world, 0, 70, "").await, "status"), ["failed"]);
}

#[tokio::test]
async fn lanes_are_jobs_pools_or_nodes() {
    let world = World::new().await;
    for (name, pool) in [("b", "default"), ("a", "chrome")] {
        let job = json!({"name": name, "interval_minutes": 1, "start_at": at(60), "pool": pool});
        let job = world.create(job).await;
        world.rig.run_successfully(world.known(&job).await, 60).await;
    }
    world.create(json!({"interval_minutes": 1, "start_at": at(120)})).await;
    world.pass(70);
    for (by, lanes) in [
        ("job", json!([["a", 2], ["b", 2], [null, 1]])),
        ("pool", json!([["chrome", 2], ["default", 3]])),
        ("node", json!([["node-1", 2], [null, 3]])),
    ] {
        let answer = between(&world, 0, 150, &format!("&by={by}")).await;
        let found: Vec<_> = list(&answer, "lanes")
            .iter()
            .map(|lane| json!([lane["name"], lane["marks"]]))
            .collect();
        assert_eq!(json!(found), lanes);
        for mark in list(&answer, "marks") {
            let lane = &answer["lanes"][mark["lane"].as_u64().unwrap() as usize];
            let field = if by == "job" { &mark["job_name"] } else { &mark[by] };
            assert_eq!(&lane["name"], field, "{mark}");
            assert_eq!(lane["job_id"] == mark["job_id"], by == "job", "{mark}");
        }
    }
}

#[tokio::test]
async fn skipped_times_and_runs_of_deleted_jobs_are_shown() {
    let world = World::new().await;
    let job = minutely(&world, "a").await;
    let held = world.rig.start(world.known(&job).await, 600).await;
    world.rig.finish(world.rig.success(held)).await;
    world.pass(601);
    world.delete(&job_path(&job, "")).await;
    let answer = between(&world, 0, 601, "").await;
    assert_eq!(marks(&answer, "status"), ["skipped", "completed"]);
    assert_eq!(list(&answer, "marks")[0]["start"], Value::Null);
    assert_eq!(marks(&answer, "job_name"), [Value::Null, Value::Null]);
    assert_eq!(marks(&answer, "pool"), [Value::Null, Value::Null]);
    assert_eq!(answer["lanes"], json!([{"name": null, "job_id": job["id"], "marks": 2}]));
}

#[tokio::test]
async fn too_many_runs_are_shown_as_density() {
    let world = World::new().await;
    for name in ["a", "b"] {
        let job = minutely(&world, name).await;
        let known = world.known(&job).await;
        for minute in 1..=10 {
            world.rig.run_successfully(known, 60 * minute).await;
        }
    }
    let mut counts = ActivityCounts { fired: 20, ..ActivityCounts::default() };
    for outcome in [Outcome::Completed, Outcome::Completed, Outcome::TimedOut] {
        counts.add_ended(outcome, evenkeel_core::Span::ZERO);
    }
    add_activity(&world, START, counts).await;
    world.pass(900);
    let answer = between(&world, 60, 2_700, "&limit_marks=30").await;
    assert_eq!((&answer["shows"], &answer["step_seconds"]), (&json!("density"), &json!(900)));
    assert_eq!((list(&answer, "marks").len(), list(&answer, "lanes").len()), (0, 0));
    let outcomes = json!({"completed": 2, "failed": 0, "timed_out": 1, "cancelled": 0});
    assert_eq!(
        answer["density"],
        json!([
            {"start": at(0), "past": outcomes, "expected": null},
            {"start": at(900), "past": null, "expected": 30.0},
            {"start": at(1_800), "past": null, "expected": 30.0},
        ])
    );
    let fewer = between(&world, 60, 900, "&limit_marks=30").await;
    assert_eq!((&fewer["shows"], list(&fewer, "marks").len()), (&json!("marks"), 20));
    let past = between(&world, 0, 900, "&limit_marks=19").await;
    assert_eq!(past["density"], json!([{"start": at(0), "past": outcomes, "expected": null}]));
}

#[tokio::test]
async fn runs_that_the_history_no_longer_has_are_counted() {
    let world = World::new().await;
    let job = minutely(&world, "a").await;
    let known = world.known(&job).await;
    for secs in [60, 120] {
        world.rig.run_successfully(known, secs).await;
    }
    add_activity(&world, START, ActivityCounts { fired: 7, ..ActivityCounts::default() }).await;
    world.pass(900);
    assert_eq!(between(&world, 0, 900, "").await["runs_not_kept"], 5);
    // The period does not contain the whole time slot.
    assert_eq!(between(&world, 1, 900, "").await["runs_not_kept"], 0);
    assert_eq!(between(&world, 0, 900, "&job=a").await["runs_not_kept"], Value::Null);
    let dense = between(&world, 0, 900, "&limit_marks=6").await;
    assert_eq!((&dense["shows"], &dense["runs_not_kept"]), (&json!("density"), &Value::Null));
}

#[tokio::test]
async fn density_of_one_job_comes_from_its_runs_and_its_schedule() {
    let world = World::new().await;
    let job = minutely(&world, "a").await;
    minutely(&world, "other").await;
    let known = world.known(&job).await;
    for secs in [60, 120] {
        world.rig.run_successfully(known, secs).await;
    }
    let held = world.rig.start(known, 180).await;
    world.rig.finish(world.rig.end(held, Outcome::Failed, OVER)).await;
    world.pass(210);
    let answer = between(&world, 0, 7_200, "&job=a&limit_marks=50").await;
    assert_eq!((&answer["shows"], &answer["step_seconds"]), (&json!("density"), &json!(60)));
    assert_eq!(answer["job_id"], job["id"]);
    let steps = list(&answer, "density");
    assert_eq!(steps.len(), 120);
    let past = |nth: usize, field: &str| steps[nth]["past"][field].clone();
    assert_eq!((past(1, "completed"), past(3, "failed")), (json!(1), json!(1)));
    assert_eq!((past(0, "completed"), &steps[4]["past"]), (json!(0), &Value::Null));
    assert_eq!(steps[2]["expected"], Value::Null);
    assert_eq!((&steps[3]["expected"], &steps[4]["expected"]), (&json!(0.0), &json!(1.0)));
    let total: f64 = steps.iter().filter_map(|step| step["expected"].as_f64()).sum();
    assert_eq!(total, 116.0);
}

#[tokio::test]
async fn future_beyond_the_forecast_is_unknown() {
    let world = World::new().await;
    for name in ["a", "b"] {
        minutely(&world, name).await;
    }
    let (from, day) = (6 * 86_400, 86_400);
    let answer = between(&world, from, from + 2 * day, "&limit_marks=1").await;
    assert_eq!(answer["shows"], "density");
    let steps = list(&answer, "density");
    assert_eq!(steps.len(), 192);
    assert_eq!((&steps[95]["expected"], &steps[96]["expected"]), (&json!(30.0), &Value::Null));
}

#[tokio::test]
async fn other_tenants_have_their_own_timeline() {
    let world = World::new().await;
    let job = minutely(&world, "a").await;
    world.rig.run_successfully(world.known(&job).await, 60).await;
    let other = token(Role::Viewer, "other");
    let ask = async |path: &str| world.send(request(Method::GET, path, Some(&other), None)).await;
    let answer = ask(PATH).await.expect(200);
    assert_eq!(answer["marks"], json!([]));
    ask(&format!("{PATH}?job=a")).await.problem(404, "not-found");
    ask(&format!("{PATH}?job={}", job["id"].as_str().unwrap())).await.problem(404, "not-found");
    let dense = ask(&format!("{PATH}?limit_marks=1")).await.expect(200);
    assert_eq!(dense["shows"], "marks");
}

#[tokio::test]
async fn invalid_parameters_are_refused() {
    let world = World::new().await;
    let period = |from: i64, to: i64| format!("from={}&to={}", at(from), at(to));
    let (swapped, empty, long) = (period(9, 1), period(1, 1), period(0, 7 * 86_400 + 1));
    for (query, field, part) in [
        ("from=yesterday", "from", "is not a time"),
        (swapped.as_str(), "to", "is not after from"),
        (empty.as_str(), "to", "choose a later to"),
        (long.as_str(), "to", "choose a period of at most 7 days"),
        ("by=lane", "by", "\"lane\" is not one of job, pool, node"),
        ("limit_marks=0", "limit_marks", "from 1 to 2000"),
        ("limit_marks=2001", "limit_marks", "from 1 to 2000"),
        ("until=1", "until", "the parameters are from, to, by, limit_marks, job"),
    ] {
        let problem = world.get(&format!("{PATH}?{query}")).await.problem(422, "invalid-parameter");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
        let message = problem["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
    world.get(&format!("{PATH}?job=none")).await.problem(404, "not-found");
    get(&world, &period(0, 7 * 86_400)).await;
}
