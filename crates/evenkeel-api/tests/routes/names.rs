//! Jobs can be given by name in every path and query that takes a job id.

use axum::http::Method;
use evenkeel_store::Role;
use serde_json::{Value, json};

use crate::spec::operations_of_jobs;
use crate::world::{World, noop, request, token};

async fn named(world: &World, name: &str) -> Value {
    world.create(json!({"name": name, "interval_minutes": 5})).await
}

#[tokio::test]
async fn name_in_a_path_works_like_an_id() {
    let world = World::new().await;
    let job = named(&world, "news/daily ü?").await;
    let path = "/api/v1/jobs/news%2Fdaily%20%C3%BC%3F";
    assert_eq!(world.get(path).await.expect(200)["id"], job["id"]);
    for what in ["next", "condition", "explain", "stats", "executions"] {
        world.get(&format!("{path}/{what}")).await.expect(200);
    }
    let run = world.post(&format!("{path}/trigger"), None).await.expect(202);
    assert_eq!(run["job_id"], job["id"]);
    world.post(&format!("{path}/pause"), None).await.expect(200);
    world.post(&format!("{path}/resume"), None).await.expect(200);
    let change = Some(json!({"priority": 9}));
    let changed = world.ask_as(Role::Operator, Method::PATCH, path, change).await.expect(200);
    assert_eq!((&changed["id"], &changed["priority"]), (&job["id"], &json!(9)));
    world.delete(path).await.expect(200);
    world.get(path).await.problem(404, "not-found");
}

#[tokio::test]
async fn every_operation_on_a_job_finds_it_by_name() {
    let world = World::new().await;
    named(&world, "known").await;
    for (method, path, operation) in operations_of_jobs() {
        let body = operation.get("requestBody").map(|_| noop(json!({"name": "known"})));
        let ask = async |name: &str| {
            let path = path.replace("{id}", name);
            world.ask_as(Role::Admin, method.clone(), &path, body.clone()).await
        };
        let problem = ask("unknown").await.problem(404, "not-found");
        assert_eq!(problem["detail"], "there is no job called \"unknown\"", "{method} {path}");
        if method == Method::DELETE {
            continue;
        }
        assert_ne!(ask("known").await.status.as_u16(), 404, "{method} {path}");
    }
}

#[tokio::test]
async fn name_in_a_query_works_like_an_id() {
    let world = World::new().await;
    named(&world, "news").await;
    for path in ["/api/v1/failures", "/api/v1/dead-letters", "/api/v1/pages"] {
        world.get(&format!("{path}?job_id=news")).await.expect(200);
        world.get(&format!("{path}?job_id=olds")).await.problem(404, "not-found");
    }
    world.get("/api/v1/events?job_id=olds").await.problem(404, "not-found");
    let listening = world.get("/api/v1/events?job_id=news").await;
    assert_eq!(listening.status.as_u16(), 200);
}

#[tokio::test]
async fn uuid_is_always_read_as_an_id() {
    let world = World::new().await;
    let other = named(&world, "other").await;
    let id = other["id"].as_str().unwrap();
    let impostor = named(&world, id).await;
    assert_ne!(impostor["id"], other["id"]);
    let found = world.get(&format!("/api/v1/jobs/{id}")).await.expect(200);
    assert_eq!(found["id"], other["id"]);
}

#[tokio::test]
async fn ambiguous_name_is_refused_with_all_ids() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for configuration in ["eu", "us"] {
        let more = json!({"name": "twin", "configuration": configuration, "interval_minutes": 5});
        ids.push(world.create(more).await["id"].as_str().unwrap().to_owned());
    }
    for path in ["/api/v1/jobs/twin", "/api/v1/failures?job_id=twin"] {
        let problem = world.get(path).await.problem(409, "ambiguous-name");
        let detail = problem["detail"].as_str().unwrap();
        for (id, configuration) in ids.iter().zip(["eu", "us"]) {
            assert!(
                detail.contains(&format!("{id} (configuration {configuration:?})")),
                "{detail}"
            );
        }
    }
    world.delete("/api/v1/jobs/twin").await.problem(409, "ambiguous-name");
}

#[tokio::test]
async fn names_of_another_tenant_are_not_found() {
    let world = World::new().await;
    named(&world, "secret").await;
    let other_tenant = token(Role::Admin, "stranger");
    for path in ["/api/v1/jobs/secret", "/api/v1/failures?job_id=secret"] {
        let answer = world.send(request(Method::GET, path, Some(&other_tenant), None)).await;
        answer.problem(404, "not-found");
    }
}

#[tokio::test]
async fn audit_log_has_the_id_of_a_job_addressed_by_name() {
    let world = World::new().await;
    let job = named(&world, "news").await;
    world.post("/api/v1/jobs/news/pause", None).await.expect(200);
    let admin = token(Role::Admin, "main");
    let list = request(Method::GET, "/api/v1/audit", Some(&admin), None);
    let entry = world.send(list).await.expect(200)["entries"][0].clone();
    assert_eq!((&entry["action"], &entry["target"]), (&json!("pause_job"), &job["id"]));
}
