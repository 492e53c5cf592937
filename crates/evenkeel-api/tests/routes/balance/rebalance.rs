//! Previews and executes rebalances.

use axum::http::Method;
use evenkeel_store::Role;
use serde_json::{Value, json};

use super::{carry_out, clustered, get, id_of, post, preview, slots, time, times, token};
use crate::world::{World, request};

#[tokio::test]
async fn rebalance_does_exactly_what_the_preview_showed() {
    let world = World::new().await;
    let jobs = clustered(&world, 20).await;
    let before = times(&world, &jobs).await;
    let plan = preview(&world).await;
    assert_eq!((&plan["would_move"], &plan["would_skip"]), (&json!(19), &json!(0)));
    let (current, projected) = (&plan["current_score"], &plan["projected_score"]);
    assert!(current.as_f64() < projected.as_f64(), "{plan}");
    assert_eq!(times(&world, &jobs).await, before, "a preview moves nothing");
    assert_eq!(get(&world, "distribution").await.expect(200)["distribution_score"], *current);

    let done = carry_out(&world, &plan).await.expect(200);
    assert_eq!((&done["state"], &done["moved_total"]), (&json!("done"), &json!(19)));
    assert_eq!(done["new_distribution_score"], *projected);
    assert_eq!(done["rebalance_id"], plan["plan_id"]);
    let after = times(&world, &jobs).await;
    for shown in plan["preview"].as_array().unwrap() {
        let job = shown["job_id"].as_str().unwrap();
        assert_eq!(
            (before[job], after[job]),
            (time(&shown["current_time"]), time(&shown["proposed_time"]))
        );
        assert!(shown["name"].as_str().unwrap().starts_with("job "));
    }
    let moved = done["moved"].as_array().unwrap();
    let shown = plan["preview"].as_array().unwrap();
    for (moved, shown) in moved.iter().zip(shown) {
        assert_eq!(moved["job_id"], shown["job_id"]);
        assert_eq!(
            (&moved["old_time"], &moved["new_time"]),
            (&shown["current_time"], &shown["proposed_time"])
        );
    }
    assert_eq!((moved.len(), slots(&after).len()), (19, 20));
    let shown = get(&world, "distribution").await.expect(200);
    assert_eq!(counts(&shown), counts(&plan["after"]), "hour by hour");
    assert_eq!(shown["distribution_score"], *projected);
    assert!(shown["suggestion"].as_str().unwrap().contains("gain nothing"));
}

fn counts(shown: &Value) -> Vec<&Value> {
    let hours = shown["hourly_distribution"].as_array().unwrap();
    hours.iter().map(|hour| &hour["job_count"]).collect()
}

#[tokio::test]
async fn rebalance_without_a_plan_makes_its_own() {
    let world = World::new().await;
    let jobs = clustered(&world, 12).await;
    let done = post(&world, "rebalance", None).await.expect(200);
    assert_eq!((&done["moved_total"], &done["skipped"]), (&json!(11), &json!([])));
    assert_eq!(done["new_distribution_score"], done["projected_score"]);
    assert_eq!(slots(&times(&world, &jobs).await).len(), 12);
    // Jobs that were moved recently are not moved again.
    let again = post(&world, "rebalance", Some(json!({}))).await.expect(200);
    assert_eq!((&again["moved"], &again["state"]), (&json!([]), &json!("done")));
}

#[tokio::test]
async fn tenant_without_jobs_has_nothing_to_move() {
    let world = World::new().await;
    let plan = preview(&world).await;
    assert_eq!((&plan["would_move"], &plan["current_score"]), (&json!(0), &json!(1.0)));
    let done = carry_out(&world, &plan).await.expect(200);
    assert_eq!((&done["state"], &done["moved"]), (&json!("done"), &json!([])));
    assert_eq!((&done["progress"], &done["undo_until"]), (&json!(1.0), &Value::Null));
}

#[tokio::test]
async fn rebalance_without_wait_is_accepted_with_its_id() {
    let world = World::new().await;
    clustered(&world, 12).await;
    let started = post(&world, "rebalance", Some(json!({"wait": false}))).await;
    let answer = started.json();
    assert!([200, 202].contains(&started.status.as_u16()), "{answer}");
    let id = id_of(&answer, "rebalance_id");
    let mut seen = answer;
    while seen["state"] == "running" {
        tokio::task::yield_now().await;
        seen = get(&world, &format!("rebalance/{id}")).await.expect(200);
    }
    assert_eq!((&seen["state"], &seen["moved_total"]), (&json!("done"), &json!(11)));
    assert_eq!(seen["progress"], 1.0);
}

#[tokio::test]
async fn moves_and_rebalances_are_paged() {
    let world = World::new().await;
    clustered(&world, 12).await;
    let plan = preview(&world).await;
    let id = id_of(&plan, "plan_id");
    assert_eq!(get(&world, "rebalances").await.expect(200)["total"], 0, "a plan is none yet");
    let planned = get(&world, &format!("rebalance/{id}/moves?limit=4")).await.expect(200);
    assert_eq!((&planned["total"], &planned["moves"][0]["made"]), (&json!(11), &Value::Null));
    carry_out(&world, &plan).await.expect(200);
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&world, &format!("rebalance/{id}/moves?limit=4{cursor}")).await.expect(200);
        seen.extend(page["moves"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen.len(), 11);
    for (seen, shown) in seen.iter().zip(plan["preview"].as_array().unwrap()) {
        assert_eq!((&seen["job_id"], &seen["made"]), (&shown["job_id"], &json!(true)));
    }
    let offset = get(&world, &format!("rebalance/{id}/moves?offset=10")).await.expect(200);
    assert_eq!(offset["moves"], json!([seen[10]]));
    let beyond = get(&world, &format!("rebalance/{id}/moves?offset=1000")).await.expect(200);
    assert_eq!(beyond["moves"], json!([]));

    world.pass(1);
    let second = id_of(&post(&world, "rebalance", None).await.expect(200), "rebalance_id");
    let first = get(&world, "rebalances?limit=1").await.expect(200);
    assert_eq!(
        (&first["rebalances"][0]["rebalance_id"], &first["total"]),
        (&json!(second), &json!(2))
    );
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = get(&world, &format!("rebalances?cursor={cursor}")).await.expect(200);
    assert_eq!(rest["rebalances"][0]["rebalance_id"], json!(id));
    assert_eq!(rest["next_cursor"], Value::Null);
    get(&world, "rebalances?cursor=x").await.problem(422, "invalid-parameter");
}

#[tokio::test]
async fn rebalance_with_a_key_runs_once() {
    let world = World::new().await;
    clustered(&world, 12).await;
    let send = || async {
        let token = token(Role::Operator, "main");
        let mut request =
            request(Method::POST, "/api/v1/scheduler/rebalance", Some(&token), Some(json!({})));
        request.headers_mut().insert("idempotency-key", "one".parse().unwrap());
        world.send(request).await
    };
    let (first, second) = (send().await.expect(200), send().await.expect(200));
    assert_eq!(first, second);
    assert_eq!(get(&world, "rebalances").await.expect(200)["total"], 1);
}

#[tokio::test]
async fn audit_log_shows_the_number_of_moves() {
    let world = World::new().await;
    clustered(&world, 12).await;
    let plan = preview(&world).await;
    carry_out(&world, &plan).await.expect(200);
    let id = id_of(&plan, "plan_id");
    let admin = token(Role::Admin, "main");
    let path = format!("/api/v1/audit?target={id}");
    let log = world.send(request(Method::GET, &path, Some(&admin), None)).await.expect(200);
    let entries: Vec<_> = log["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["action"].as_str().unwrap(), entry["detail"].as_str().unwrap()))
        .collect();
    assert_eq!(
        entries,
        [
            ("rebalance", "moved 11 jobs, 0 stay"),
            ("preview_rebalance", "would move 11 jobs, 0 stay")
        ]
    );
}
