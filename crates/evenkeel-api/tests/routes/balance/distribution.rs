//! `GET /api/v1/scheduler/distribution` and its history.

use evenkeel_core::Span;
use evenkeel_store::SavedScore;
use evenkeel_store_testkit::fixtures::{START, new_job};
use serde_json::{Value, json};

use super::{DAY, HOUR, clustered, get, slots, times};
use crate::world::World;

#[tokio::test]
async fn ten_jobs_of_one_interval_land_in_different_slots() {
    let world = World::new().await;
    let mut jobs = Vec::new();
    for n in 0..10 {
        let job = world.create(json!({"name": format!("job {n}"), "schedule": "6h"})).await;
        jobs.push(world.known(&job).await);
    }
    let times = times(&world, &jobs).await;
    assert_eq!(slots(&times).len(), 10, "{times:?}");
    assert!(times.values().all(|time| time.since(START) <= Span::from_secs(6 * 3600)));
    let shown = get(&world, "distribution").await.expect(200);
    assert_eq!((&shown["total_jobs"], &shown["distribution_score"]), (&json!(10), &json!(1.0)));
    let runs: u64 = sum(&shown["hourly_distribution"]);
    assert_eq!(runs, 40, "each runs four times a day");
}

fn sum(list: &Value) -> u64 {
    list.as_array().unwrap().iter().map(|item| item["job_count"].as_u64().unwrap()).sum()
}

#[tokio::test]
async fn clustered_jobs_show_in_every_figure() {
    let world = World::new().await;
    clustered(&world, 48).await;
    let shown = get(&world, "distribution").await.expect(200);
    assert_eq!((&shown["window_hours"], &shown["slot_minutes"]), (&json!(24), &json!(15)));
    assert_eq!(shown["slots"].as_array().unwrap().len(), 96);
    assert_eq!(shown["hourly_distribution"].as_array().unwrap().len(), 24);
    assert_eq!((&shown["peak_count"], &shown["least_peak"]), (&json!(48), &json!(1.0)));
    assert_eq!((&shown["peak_slot_count"], &shown["listed_minutes"]), (&json!(48.0), &json!(15)));
    assert_eq!(shown["seconds"], Value::Null, "no job runs every few minutes");
    let peak = START.saturating_add(Span::from_secs(6 * 3600));
    assert_eq!(shown["peak_hour"], peak.as_micros() / 3_600_000_000 % 24);
    assert_eq!(shown["projected"]["peak_slot"], peak.to_string());
    let score = shown["distribution_score"].as_f64().unwrap();
    assert!(score < 0.05, "{score}");
    let words = shown["suggestion"].as_str().unwrap();
    for part in ["by moving 47 jobs", "15-minute slot from 48 runs to 1 run", "to 1 "] {
        assert!(words.contains(part), "{part}: {words}");
    }
}

#[tokio::test]
async fn spread_within_slots_and_both_peaks_are_shown() {
    let world = World::new().await;
    for _ in 0..3 {
        world.create(json!({"schedule": "1m"})).await;
    }
    let shown = get(&world, "distribution").await.expect(200);
    // Three runs per minute are 180 in an hour, and 45 in each time slot of 15 minutes.
    let peaks = (&shown["peak_count"], &shown["peak_slot_count"], &shown["seconds"]["peak"]);
    assert_eq!(peaks, (&json!(180), &json!(45.0), &json!(1.0)));
    assert_eq!(shown["seconds"]["distribution_score"], 1.0);
}

#[tokio::test]
async fn hourly_job_counts_in_each_hour_except_by_next_run() {
    let world = World::new().await;
    world.create(json!({"schedule": "1h", "cost": "90s"})).await;
    let runs = get(&world, "distribution").await.expect(200);
    assert_eq!((sum(&runs["hourly_distribution"]), sum(&runs["slots"])), (24, 24));
    let next = get(&world, "distribution?by=next").await.expect(200);
    assert_eq!((sum(&next["hourly_distribution"]), sum(&next["slots"])), (1, 1));
    let cost = get(&world, "distribution?by=cost").await.expect(200);
    assert_eq!(cost["hourly_distribution"][5]["cost_seconds"], 90.0);
    assert_eq!(cost["projected"]["busy_workers_at_peak"], 0.1);
    assert_eq!(
        (&runs["by"], &next["by"], &cost["by"]),
        (&json!("runs"), &json!("next"), &json!("cost"))
    );
    get(&world, "distribution?by=luck").await.problem(422, "invalid-parameter");
}

#[tokio::test]
async fn empty_schedule_has_score_1() {
    let world = World::new().await;
    let shown = get(&world, "distribution").await.expect(200);
    assert_eq!((&shown["total_jobs"], &shown["distribution_score"]), (&json!(0), &json!(1.0)));
    assert_eq!((&shown["peak_to_mean"], &shown["peak_count"]), (&Value::Null, &json!(0)));
    assert_eq!(shown["suggestion"], "There are no scheduled jobs.");
}

#[tokio::test]
async fn suggestion_explains_why_a_rebalance_gains_nothing() {
    let world = World::new().await;
    // All jobs are due in the same quarter hour, and their start times were chosen just now.
    let job = |n: i64| new_job(&format!("job {n}")).every(DAY).first_at(6 * HOUR + n).build();
    world.rig.add_all((0..8).map(job).collect()).await;
    let shown = get(&world, "distribution").await.expect(200);
    let words = shown["suggestion"].as_str().unwrap();
    assert!(words.contains("would gain nothing now"), "{words}");
    assert!(words.contains("8 jobs stay (8 placement_cooldown)"), "{words}");
}

#[tokio::test]
async fn score_history_is_paged() {
    let world = World::new().await;
    let (store, scope) = (&world.rig.store, &world.rig.scope);
    for n in 1..=5_u64 {
        let hour = START.saturating_sub(Span::from_secs(3600 * n));
        let score = SavedScore {
            hour,
            score: 1.0 - n as f64 / 10.0,
            next_score: 0.9,
            cost_score: 0.8,
            peak: 3.0,
            mean: 2.0,
            jobs: 7,
        };
        assert!(store.save_score(scope.tenant, score).await.unwrap());
    }
    let all = get(&world, "distribution/history").await.expect(200);
    let scores = all["scores"].as_array().unwrap();
    assert_eq!((scores.len(), &all["next_from"]), (5, &Value::Null));
    assert_eq!(
        (&scores[0]["distribution_score"], &scores[4]["distribution_score"]),
        (&json!(0.5), &json!(0.9))
    );
    let first = get(&world, "distribution/history?limit=2").await.expect(200);
    assert_eq!(first["scores"], json!(scores[..2]));
    let next = first["next_from"].as_str().unwrap();
    let rest = get(&world, &format!("distribution/history?from={next}")).await.expect(200);
    assert_eq!(rest["scores"], json!(scores[2..]));
    let until = get(&world, &format!("distribution/history?until={next}")).await.expect(200);
    assert_eq!(until["scores"], json!(scores[..2]));
    for wrong in [
        "limit=0",
        "limit=2161",
        "from=yesterday",
        "from=2030-02-01T00:00:00Z&until=2030-01-01T00:00:00Z",
        "since=1",
    ] {
        get(&world, &format!("distribution/history?{wrong}"))
            .await
            .problem(422, "invalid-parameter");
    }
}
