//! `GET /api/v1/scheduler/activity`

use axum::http::Method;
use evenkeel_core::activity::ActivityCounts;
use evenkeel_core::advance::SkipReason;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::{Slot, Span, Timestamp};
use evenkeel_store::{ActivityDelta, Role, Scope};
use evenkeel_store_testkit::fixtures::{START, at};
use serde_json::{Value, json};

use crate::world::{World, request, token};

const PATH: &str = "/api/v1/scheduler/activity";

/// Returns a time before the present time of the test.
fn ago(minutes: u64) -> Timestamp {
    START.saturating_sub(Span::from_secs(60 * minutes))
}

/// Returns one fired run that ended, a failed attempt, and two skipped times.
fn counts() -> ActivityCounts {
    let mut counts = ActivityCounts { fired: 1, ..ActivityCounts::default() };
    counts.add_ended(Outcome::Completed, Span::from_millis(1_500));
    counts.add_ended(Outcome::Failed, Span::from_millis(500));
    counts.skipped.add(SkipReason::Overlap, 2);
    counts.lateness.record(Span::from_millis(20));
    counts
}

async fn add(world: &World, scope: &Scope, times: &[Timestamp]) {
    let delta = |time: &Timestamp| ActivityDelta {
        tenant: scope.tenant,
        slot: Slot::of(*time),
        counts: counts(),
    };
    let activity = times.iter().map(delta).collect();
    let node = world.rig.node;
    world.rig.store.add_run_stats(node, vec![], vec![], activity, at(0)).await.unwrap();
}

async fn get(world: &World, query: &str) -> Value {
    world.get(&format!("{PATH}?{query}")).await.expect(200)
}

fn slots(answer: &Value) -> &Vec<Value> {
    answer["slots"].as_array().unwrap()
}

#[tokio::test]
async fn last_24_hours_are_shown_with_all_counts() {
    let world = World::new().await;
    add(&world, &world.rig.scope, &[ago(15), ago(16), ago(24 * 60), ago(24 * 60 + 1)]).await;
    let answer = get(&world, "").await;
    assert_eq!((&answer["from"], &answer["until"]), (&json!(ago(24 * 60)), &json!(START)));
    assert_eq!((&answer["step"], slots(&answer).len()), (&json!("15m"), 96));
    assert_eq!(
        answer["lateness_bounds_ms"],
        json!([10.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 5_000.0, 30_000.0, 300_000.0])
    );
    assert_eq!(
        slots(&answer)[95],
        json!({
            "start": ago(15), "fired": 1, "completed": 1, "failed": 1, "timed_out": 0,
            "cancelled": 0, "busy_seconds": 2.0,
            "skipped": {"misfire": 0, "overlap": 2, "retry_pending": 0, "blackout": 0,
                        "end_not_stored": 0},
            "lateness": {"count": 1, "p50_ms": 20.0, "p99_ms": 20.0, "max_ms": 20.0,
                         "buckets": [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]},
        })
    );
    let empty = &slots(&answer)[50];
    assert_eq!((&empty["fired"], &empty["lateness"]["p99_ms"]), (&json!(0), &Value::Null));
    let totals = &answer["totals"];
    assert_eq!((&totals["fired"], &totals["busy_seconds"]), (&json!(3), &json!(6.0)));
    assert_eq!((&totals["skipped"]["overlap"], &totals["start"]), (&json!(6), &Value::Null));
}

#[tokio::test]
async fn slots_are_merged_into_hours_and_days() {
    let world = World::new().await;
    let times: Vec<Timestamp> = (0..3_000).map(|n| ago(15 + 15 * n)).collect();
    add(&world, &world.rig.scope, &times).await;
    for (step, per_step, seconds) in [("1h", 4, 3_600), ("1d", 96, 86_400)] {
        let (from, until) = (ago(30 * 24 * 60), ago(24 * 60));
        let answer = get(&world, &format!("from={from}&until={until}&step={step}")).await;
        let starts: Vec<Timestamp> = slots(&answer)
            .iter()
            .map(|slot| slot["start"].as_str().unwrap().parse().unwrap())
            .collect();
        let length = Span::from_secs(seconds);
        assert!(starts[0] <= from && starts[0].saturating_add(length) > from, "{step}");
        assert!(starts.windows(2).all(|pair| pair[1].since(pair[0]) == length), "{step}");
        assert!(starts.iter().all(|start| start.as_micros() % (seconds as i64 * 1_000_000) == 0));
        assert!(slots(&answer).iter().all(|slot| slot["fired"] == per_step), "{step}");
        assert_eq!(answer["totals"]["fired"], per_step * slots(&answer).len());
    }
}

#[tokio::test]
async fn activity_of_other_tenants_is_not_shown() {
    let world = World::new().await;
    let other = world.rig.tenant("other").await;
    add(&world, &other, &[ago(15)]).await;
    assert_eq!(get(&world, "").await["totals"]["fired"], 0);
    let viewer = token(Role::Viewer, "other");
    let answer = world.send(request(Method::GET, PATH, Some(&viewer), None)).await;
    assert_eq!(answer.expect(200)["totals"]["fired"], 1);
    world.send(request(Method::GET, PATH, None, None)).await.problem(401, "unauthorized");
}

#[tokio::test]
async fn long_periods_are_refused_with_the_step_to_use() {
    let world = World::new().await;
    for (days, step, field, advice) in [
        (21, "15m", "step", "use step=1h or a shorter period"),
        (84, "1h", "step", "use step=1d or a shorter period"),
        (84, "15m", "step", "use step=1d or a shorter period"),
        (2_001, "1d", "from", "choose a later from"),
    ] {
        let query = format!("?from={}&step={step}", ago(days * 24 * 60));
        let problem = world.get(&format!("{PATH}{query}")).await.problem(422, "invalid-parameter");
        assert_eq!(problem["field"], field, "{problem}");
        let detail = problem["errors"][0]["message"].as_str().unwrap();
        assert!(detail.contains(advice) && detail.contains("2000"), "{detail}");
    }
    get(&world, &format!("from={}&step=1h", ago(83 * 24 * 60))).await;
}

#[tokio::test]
async fn invalid_parameters_are_refused() {
    let world = World::new().await;
    let swapped = format!("from={}&until={}", ago(10), ago(20));
    for (query, field, part) in [
        ("step=5m", "step", "\"5m\" is not one of 15m, 1h, 1d"),
        ("from=yesterday", "from", "is not a time"),
        (swapped.as_str(), "from", "is not before until"),
        ("page=2", "page", "the parameters are from, until, step"),
    ] {
        let problem = world.get(&format!("{PATH}?{query}")).await.problem(422, "invalid-parameter");
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
        let message = problem["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
}
