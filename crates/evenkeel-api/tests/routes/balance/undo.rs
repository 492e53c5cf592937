//! Undoing rebalances.

use evenkeel_core::Span;
use evenkeel_store_testkit::fixtures::START;
use serde_json::{Value, json};

use super::{DAY, HOUR, carry_out, clustered, get, id_of, post, preview, times};
use crate::world::World;

#[tokio::test]
async fn undo_restores_the_times_of_every_job() {
    let world = World::new().await;
    let jobs = clustered(&world, 20).await;
    let before = times(&world, &jobs).await;
    let plan = preview(&world).await;
    let done = carry_out(&world, &plan).await.expect(200);
    let id = id_of(&plan, "plan_id");
    assert!(done["undo_until"].as_str().is_some());
    assert_ne!(times(&world, &jobs).await, before);
    let undone = post(&world, &format!("rebalance/{id}/undo"), None).await.expect(200);
    assert_eq!((&undone["undoes"], &undone["moved_total"]), (&json!(id), &json!(19)));
    assert_eq!(undone["new_distribution_score"], plan["current_score"]);
    assert_eq!(undone["projected_score"], plan["current_score"]);
    assert_eq!(times(&world, &jobs).await, before);
    let first = get(&world, &format!("rebalance/{id}")).await.expect(200);
    assert_eq!(
        (&first["undone_by"], &first["undo_until"]),
        (&undone["rebalance_id"], &Value::Null)
    );

    let again = post(&world, &format!("rebalance/{id}/undo"), Some(json!({"wait": true}))).await;
    let problem = again.problem(409, "rebalance-state");
    assert!(problem["detail"].as_str().unwrap().contains("undone already"), "{problem}");
    carry_out(&world, &plan).await.problem(409, "rebalance-state");
}

#[tokio::test]
async fn undo_can_be_undone() {
    let world = World::new().await;
    let jobs = clustered(&world, 12).await;
    let plan = preview(&world).await;
    carry_out(&world, &plan).await.expect(200);
    let moved = times(&world, &jobs).await;
    let id = id_of(&plan, "plan_id");
    let undone = post(&world, &format!("rebalance/{id}/undo"), None).await.expect(200);
    let undo = id_of(&undone, "rebalance_id");
    post(&world, &format!("rebalance/{undo}/undo"), None).await.expect(200);
    assert_eq!(times(&world, &jobs).await, moved);
}

#[tokio::test]
async fn undo_keeps_jobs_changed_since() {
    let world = World::new().await;
    let jobs = clustered(&world, 12).await;
    let plan = preview(&world).await;
    carry_out(&world, &plan).await.expect(200);
    let changed = plan["preview"][0]["job_id"].as_str().unwrap();
    let token = super::token(evenkeel_store::Role::Operator, "main");
    for command in ["pause", "resume"] {
        let path = format!("/api/v1/jobs/{changed}/{command}");
        let request = crate::world::request(axum::http::Method::POST, &path, Some(&token), None);
        world.send(request).await.expect(200);
    }
    let before = times(&world, &jobs).await;
    let id = id_of(&plan, "plan_id");
    let undone = post(&world, &format!("rebalance/{id}/undo"), None).await.expect(200);
    assert_eq!((&undone["moved_total"], &undone["skipped_total"]), (&json!(10), &json!(1)));
    assert_eq!(undone["skipped"], json!([{"job_id": changed, "reason": "changed"}]));
    assert_eq!(times(&world, &jobs).await[changed], before[changed]);
}

#[tokio::test]
async fn undo_returns_jobs_that_ran_to_their_old_rhythm() {
    let world = World::new().await;
    let jobs = clustered(&world, 20).await;
    let before = times(&world, &jobs).await;
    let plan = preview(&world).await;
    carry_out(&world, &plan).await.expect(200);
    let moved = times(&world, &jobs).await;
    // Nine hours later, the jobs whose new start time has passed have run.
    let later = 9 * HOUR;
    let now = START.saturating_add(Span::from_secs(later.unsigned_abs()));
    let mut ran = 0;
    for known in &jobs {
        let next = moved[&known.id.to_string()];
        if next < now {
            let secs = next.since(START).as_micros() / 1_000_000;
            world.rig.run_successfully(*known, i64::try_from(secs).unwrap() + 1).await;
            ran += 1;
        }
    }
    assert!(ran > 3 && ran < 20, "{ran}");
    world.pass(later - HOUR);
    let id = id_of(&plan, "plan_id");
    let undone = post(&world, &format!("rebalance/{id}/undo"), None).await.expect(200);
    assert_eq!(undone["skipped_total"], 0);
    let day = i64::try_from(DAY).unwrap() * 1_000_000;
    for known in &jobs {
        let job = world.rig.job(*known).await;
        let next = job.next_at.unwrap();
        let old = before[&known.id.to_string()];
        assert_eq!((next.as_micros() - old.as_micros()) % day, 0, "on its old rhythm");
        assert!(next > now, "nothing that is over");
        if let Some(fired) = job.last_fired_at {
            let gap = next.since(fired).as_micros() as f64 / day as f64;
            assert!((0.49..=1.51).contains(&gap), "{gap} days between two runs");
        }
    }
}

#[tokio::test]
async fn rebalance_can_be_undone_for_24_hours() {
    let world = World::new().await;
    clustered(&world, 12).await;
    let plan = preview(&world).await;
    carry_out(&world, &plan).await.expect(200);
    let id = id_of(&plan, "plan_id");
    world.pass(24 * HOUR);
    let late = post(&world, &format!("rebalance/{id}/undo"), None).await;
    let problem = late.problem(409, "rebalance-state");
    assert!(problem["detail"].as_str().unwrap().contains("could be undone until"), "{problem}");
}

#[tokio::test]
async fn rebalance_without_moves_cannot_be_undone() {
    let world = World::new().await;
    let plan = preview(&world).await;
    carry_out(&world, &plan).await.expect(200);
    let id = id_of(&plan, "plan_id");
    post(&world, &format!("rebalance/{id}/undo"), None).await.problem(409, "rebalance-state");
    let wrong = Some(json!({"when": "now"}));
    post(&world, &format!("rebalance/{id}/undo"), wrong).await.problem(422, "invalid-parameter");
}
