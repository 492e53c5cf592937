//! Limits of a rebalance, and jobs that it does not move.

use std::collections::BTreeMap;

use evenkeel_store::Now;
use evenkeel_store_testkit::fixtures::new_job;
use serde_json::{Value, json};

use super::{DAY, HOUR, clustered, post, preview, times};
use crate::world::World;

#[tokio::test]
async fn rebalance_moves_at_most_max_moves() {
    let world = World::new().await;
    clustered(&world, 20).await;
    let few = post(&world, "rebalance/preview", Some(json!({"max_moves": 3}))).await.expect(200);
    assert_eq!(few["would_move"], 3);
    let half = json!({"target_score": 0.5});
    let half = post(&world, "rebalance/preview", Some(half)).await.expect(200);
    let all = preview(&world).await;
    assert!(half["projected_score"].as_f64().unwrap() >= 0.5, "{half}");
    let moves = |plan: &Value| plan["would_move"].as_u64().unwrap();
    assert!(moves(&half) < moves(&all), "{} of {}", moves(&half), moves(&all));
    let done = post(&world, "rebalance", Some(json!({"max_moves": 3}))).await.expect(200);
    assert_eq!((&done["moved_total"], &done["max_moves"]), (&json!(3), &json!(3)));
    assert_eq!(done["new_distribution_score"], few["projected_score"]);
}

#[tokio::test]
async fn reached_target_score_needs_no_move() {
    let world = World::new().await;
    clustered(&world, 20).await;
    let low = Some(json!({"target_score": 0.0}));
    let plan = post(&world, "rebalance/preview", low).await.expect(200);
    assert_eq!(
        (&plan["would_move"], &plan["current_score"]),
        (&json!(0), &plan["projected_score"])
    );
}

#[tokio::test]
async fn only_jobs_matching_the_filter_are_moved() {
    let world = World::new().await;
    let others = clustered(&world, 12).await;
    let news = |n: i64| new_job(&format!("news {n}")).every(DAY).first_at(6 * HOUR + n).build();
    let news = world.rig.add_all((0..6).map(news).collect()).await;
    let before = times(&world, &others).await;
    world.pass(HOUR);
    let filter = json!({"filter": {"name_prefix": "news"}});
    let done = post(&world, "rebalance", Some(filter.clone())).await.expect(200);
    assert_eq!((&done["moved_total"], &done["skipped_total"]), (&json!(6), &json!(0)));
    assert_eq!(done["filter"], filter["filter"]);
    assert_eq!(times(&world, &others).await, before);
    let nobody = json!({"filter": {"name_prefix": "nobody"}});
    let none = post(&world, "rebalance/preview", Some(nobody)).await.expect(200);
    assert_eq!((&none["would_move"], &none["would_skip"]), (&json!(0), &json!(0)));
    assert!(news.len() == 6);
}

#[tokio::test]
async fn skipped_jobs_have_a_reason() {
    let world = World::new().await;
    let jobs = clustered(&world, 6).await;
    // When the rebalance is planned, one job is running, one runs soon, one got its start time just
    // now, and one cannot be moved.
    let running = world.rig.add(new_job("running").every(DAY).first_at(HOUR).build()).await;
    world.rig.start(running, HOUR + 2).await;
    let soon = world.rig.add(new_job("soon").every(DAY).first_at(2 * HOUR + 60).build()).await;
    world.pass(HOUR);
    let fresh = new_job("fresh").every(DAY).first_at(9 * HOUR).build();
    let fresh_id = fresh.id.to_string();
    let (store, scope) = (&world.rig.store, &world.rig.scope);
    store.register(scope, vec![fresh], Now::Database).await.unwrap();
    let once = world.rig.add(new_job("once").once_at(9 * HOUR).build()).await;
    let plan = preview(&world).await;
    let reasons: BTreeMap<&str, &str> = plan["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["job_id"].as_str().unwrap(), one["reason"].as_str().unwrap()))
        .collect();
    let (running, soon) = (running.id.to_string(), soon.id.to_string());
    let once = once.id.to_string();
    assert_eq!(reasons[running.as_str()], "job_running");
    assert_eq!(reasons[soon.as_str()], "protection_window");
    assert_eq!(reasons[fresh_id.as_str()], "placement_cooldown");
    assert_eq!(reasons[once.as_str()], "not_movable");
    assert_eq!(
        plan["skipped_by_reason"],
        json!({"job_running": 1, "protection_window": 1, "placement_cooldown": 1, "not_movable": 1})
    );
    assert_eq!((&plan["would_skip"], jobs.len()), (&json!(4), 6));
    let done = super::carry_out(&world, &plan).await.expect(200);
    assert_eq!(done["skipped"], plan["skipped"]);
    assert_eq!(
        (&done["skipped_total"], &done["skipped_by_reason"]),
        (&json!(4), &plan["skipped_by_reason"])
    );
}

#[tokio::test]
async fn rebalance_moves_no_job_of_another_tenant() {
    let world = World::new().await;
    clustered(&world, 12).await;
    let other = world.rig.tenant("other").await;
    let theirs = |n: i64| new_job(&format!("job {n}")).every(DAY).first_at(6 * HOUR + n).build();
    let mut before = Vec::new();
    for n in 0..4 {
        let known = world.rig.add_for(&other, theirs(n)).await;
        before.push((known, world.rig.store.get(&other, known.id).await.unwrap()));
    }
    let done = post(&world, "rebalance", None).await.expect(200);
    assert_eq!(done["moved_total"], 11);
    for (known, job) in before {
        assert_eq!(world.rig.store.get(&other, known.id).await.unwrap(), job);
    }
}

#[tokio::test]
async fn invalid_rebalance_options_are_named() {
    let world = World::new().await;
    for (body, field) in [
        (json!({"max_moves": -1}), "max_moves"),
        (json!({"target_score": 2}), "target_score"),
        (json!({"filter": {"lane": "fast"}}), "filter.lane"),
        (json!({"plan": "x"}), "plan"),
    ] {
        for path in ["rebalance", "rebalance/preview"] {
            let problem = post(&world, path, Some(body.clone())).await;
            assert_eq!(problem.problem(422, "invalid-parameter")["field"], field, "{path}");
        }
    }
}
