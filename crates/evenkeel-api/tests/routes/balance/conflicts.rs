//! Rebalance plans that cannot be executed.

use evenkeel_store_testkit::fixtures::START;
use evenkeel_store_testkit::rig::Known;
use serde_json::json;

use super::{carry_out, clustered, get, id_of, post, preview, times};
use crate::world::World;

async fn command(world: &World, job: Known, command: &str) {
    let token = super::token(evenkeel_store::Role::Operator, "main");
    let path = format!("/api/v1/jobs/{}/{command}", job.id);
    let request = crate::world::request(axum::http::Method::POST, &path, Some(&token), None);
    let answer = world.send(request).await;
    assert!(answer.status.is_success(), "{}", answer.text);
}

#[tokio::test]
async fn plan_with_changed_jobs_moves_nothing_and_names_them() {
    let world = World::new().await;
    let jobs = clustered(&world, 20).await;
    let plan = preview(&world).await;
    let moved = |n: usize| {
        let id = plan["preview"][n]["job_id"].as_str().unwrap();
        *jobs.iter().find(|known| known.id.to_string() == id).unwrap()
    };
    let (paused, resumed, triggered) = (moved(0), moved(1), moved(2));
    command(&world, paused, "pause").await;
    command(&world, resumed, "pause").await;
    command(&world, resumed, "resume").await;
    command(&world, triggered, "trigger").await;
    let left: Vec<Known> = jobs.iter().copied().filter(|known| *known != paused).collect();
    let before = times(&world, &left).await;
    let problem = carry_out(&world, &plan).await.problem(409, "plan-changed");
    let changed = &problem["rebalance"];
    assert_eq!(changed["changed_total"], 3);
    for (known, reason) in
        [(paused, "not_active"), (resumed, "changed"), (triggered, "job_running")]
    {
        let entry = json!({"job_id": known.id.to_string(), "reason": reason});
        assert!(changed["changed"].as_array().unwrap().contains(&entry), "{entry}: {problem}");
    }
    assert_eq!(times(&world, &left).await, before);
    let id = id_of(&plan, "plan_id");
    assert_eq!(get(&world, &format!("rebalance/{id}")).await.expect(200)["state"], "planned");
}

#[tokio::test]
async fn job_that_ran_since_the_plan_counts_as_changed() {
    let world = World::new().await;
    let jobs = clustered(&world, 20).await;
    let plan = preview(&world).await;
    let id = plan["preview"][0]["job_id"].as_str().unwrap();
    let known = *jobs.iter().find(|known| known.id.to_string() == id).unwrap();
    // The test starts the run before its scheduled time, which the store allows.
    let next = world.rig.job(known).await.next_at.unwrap();
    let secs = next.since(START).as_micros() / 1_000_000;
    world.rig.run_successfully(known, i64::try_from(secs).unwrap() + 1).await;
    let problem = carry_out(&world, &plan).await.problem(409, "plan-changed");
    assert_eq!(problem["rebalance"]["changed"], json!([{"job_id": id, "reason": "ran"}]));
}

#[tokio::test]
async fn plan_expires_after_15_minutes() {
    let world = World::new().await;
    clustered(&world, 12).await;
    let plan = preview(&world).await;
    world.pass(15 * 60 - 1);
    let other = preview(&world).await;
    world.pass(1);
    carry_out(&world, &plan).await.problem(409, "plan-expired");
    carry_out(&world, &other).await.expect(200);
}

#[tokio::test]
async fn plan_is_carried_out_once() {
    let world = World::new().await;
    clustered(&world, 12).await;
    let plan = preview(&world).await;
    carry_out(&world, &plan).await.expect(200);
    let problem = carry_out(&world, &plan).await.problem(409, "rebalance-state");
    assert_eq!(problem["rebalance"]["state"], "done");
    let id = id_of(&plan, "plan_id");
    let problem = post(&world, &format!("rebalance/{id}/stop"), None).await;
    problem.problem(409, "rebalance-state");
}

#[tokio::test]
async fn unknown_plan_is_not_found() {
    let world = World::new().await;
    clustered(&world, 2).await;
    let unknown = "0190163d-8694-739b-aea5-966c26f8ad91";
    let body = Some(json!({"plan_id": unknown}));
    post(&world, "rebalance", body).await.problem(404, "not-found");
    for id in [unknown, "nonsense"] {
        get(&world, &format!("rebalance/{id}")).await.problem(404, "not-found");
        get(&world, &format!("rebalance/{id}/moves")).await.problem(404, "not-found");
        post(&world, &format!("rebalance/{id}/stop"), None).await.problem(404, "not-found");
        post(&world, &format!("rebalance/{id}/undo"), None).await.problem(404, "not-found");
    }
    let plan = preview(&world).await;
    let id = id_of(&plan, "plan_id");
    for what in ["stop", "undo"] {
        let problem = post(&world, &format!("rebalance/{id}/{what}"), None).await;
        assert_eq!(problem.problem(409, "rebalance-state")["rebalance"]["state"], "planned");
    }
}
