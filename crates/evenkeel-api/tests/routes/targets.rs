//! Targets, and jobs that name them.

use axum::http::{Method, header};
use evenkeel_store::Role;
use serde_json::{Value, json};

use crate::world::{Answer, World, request, token};

const TARGETS: &str = "/api/v1/targets";

async fn make(world: &World, document: Value) -> Value {
    world.post(TARGETS, Some(document)).await.expect(201)
}

async fn change(world: &World, number: i64, sent: Value) -> Answer {
    let path = format!("{TARGETS}/{number}");
    world.ask_as(Role::Operator, Method::PATCH, &path, Some(sent)).await
}

async fn job_of(world: &World, more: Value) -> Answer {
    let mut document = json!({"interval_minutes": 60});
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.post("/api/v1/jobs", Some(document)).await
}

async fn job(world: &World, id: &Value) -> Value {
    world.get(&format!("/api/v1/jobs/{}", id.as_str().unwrap())).await.expect(200)
}

#[tokio::test]
async fn a_job_has_a_number_beside_its_id() {
    let world = World::new().await;
    let numbers = [
        world.create(json!({"name": "a"})).await["number"].clone(),
        world.create(json!({"name": "b"})).await["number"].clone(),
    ];
    assert_eq!(numbers, [json!(1), json!(2)]);
    let list = world.get("/api/v1/jobs?sort=created_at").await.expect(200);
    assert_eq!(list["jobs"][1]["number"], 2);
}

#[tokio::test]
async fn a_target_is_made_shown_listed_changed_and_deleted() {
    let world = World::new().await;
    let answer = world
        .post(TARGETS, Some(json!({"name": "A", "url": "https://example.com/a", "source_id": "a"})))
        .await;
    let made = answer.expect(201);
    assert_eq!(answer.header(header::LOCATION), Some("/api/v1/targets/1"));
    assert_eq!(answer.header(header::ETAG), Some("\"g1\""));
    assert_eq!(made["number"], 1);
    assert_eq!((&made["jobs"], &made["last_success_at"]), (&json!(0), &Value::Null));
    assert_eq!(world.get("/api/v1/targets/1").await.expect(200), made);
    make(&world, json!({"number": 9})).await;
    let page = world.get("/api/v1/targets?limit=1").await.expect(200);
    assert_eq!((&page["total"], &page["targets"][0]), (&json!(2), &made));
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/api/v1/targets?cursor={cursor}")).await.expect(200);
    assert_eq!((&rest["targets"][0]["number"], &rest["next_cursor"]), (&json!(9), &Value::Null));
    let changed = change(&world, 1, json!({"name": null, "url": "https://example.com/b"})).await;
    let changed = changed.expect(200);
    assert_eq!((&changed["name"], &changed["source_id"]), (&Value::Null, &json!("a")));
    assert_eq!(
        (&changed["url"], &changed["generation"]),
        (&json!("https://example.com/b"), &json!(2))
    );
    // As it is shown, nothing changes.
    let same =
        world.ask_as(Role::Operator, Method::PUT, "/api/v1/targets/1", Some(changed.clone()));
    assert_eq!(same.await.expect(200), changed);
    let gone = world.delete("/api/v1/targets/1").await.expect(200);
    assert_eq!(gone, json!({"number": 1, "deleted": true, "detached_jobs": 0}));
    world.get("/api/v1/targets/1").await.problem(404, "not-found");
    world.delete("/api/v1/targets/1").await.problem(404, "not-found");
    world.get("/api/v1/targets/one").await.problem(404, "not-found");
}

#[tokio::test]
async fn what_is_wrong_with_a_target_is_said_field_by_field() {
    let world = World::new().await;
    make(&world, json!({"number": 3, "source_id": "a"})).await;
    for (document, field) in [
        (json!({"number": 0}), "number"),
        (json!({"number": "3"}), "number"),
        (json!({"url": "ftp://example.com"}), "url"),
        (json!({"name": " "}), "name"),
        (json!({"nmae": "x"}), "nmae"),
        (json!([]), ""),
    ] {
        let problem = world.post(TARGETS, Some(document)).await.problem(422, "invalid-parameter");
        assert_eq!(problem["errors"][0]["field"], field);
    }
    let taken = world.post(TARGETS, Some(json!({"number": 3}))).await.problem(409, "target-taken");
    assert_eq!(taken["field"], "number");
    let taken = world.post(TARGETS, Some(json!({"source_id": "a"}))).await;
    assert_eq!(taken.problem(409, "target-taken")["field"], "source_id");
    let other = make(&world, json!({})).await["number"].as_i64().unwrap();
    change(&world, other, json!({"source_id": "a"})).await.problem(409, "target-taken");
    change(&world, 77, json!({"name": "x"})).await.problem(404, "not-found");
}

#[tokio::test]
async fn a_change_that_meets_another_is_refused_if_that_was_asked_for() {
    let world = World::new().await;
    make(&world, json!({})).await;
    let token = token(Role::Operator, "main");
    let send = async |tag: &'static str, name: &str| {
        let body = Some(json!({"name": name}));
        let mut request = request(Method::PATCH, "/api/v1/targets/1", Some(&token), body);
        request.headers_mut().insert(header::IF_MATCH, header::HeaderValue::from_static(tag));
        world.send(request).await
    };
    send("\"g1\"", "a").await.expect(200);
    let problem = send("\"g1\"", "b").await.problem(412, "target-changed");
    assert_eq!(problem["generation"], 2);
    assert_eq!(world.get("/api/v1/targets/1").await.expect(200)["name"], "a");
}

#[tokio::test]
async fn a_target_that_jobs_name_is_deleted_only_by_force() {
    let world = World::new().await;
    make(&world, json!({"url": "https://example.com/"})).await;
    let made = job_of(&world, json!({"target": 1})).await.expect(201);
    let problem = world.delete("/api/v1/targets/1").await.problem(409, "target-in-use");
    assert!(problem["detail"].as_str().unwrap().contains("(1)"), "{problem}");
    let gone = world.delete("/api/v1/targets/1?force=true").await.expect(200);
    assert_eq!(gone["detached_jobs"], 1);
    let left = job(&world, &made["id"]).await;
    assert_eq!((&left["target"], &left["executor_type"]), (&Value::Null, &json!("crawl")));
}

#[tokio::test]
async fn a_job_crawls_the_url_of_its_target_and_follows_it() {
    let world = World::new().await;
    make(&world, json!({"url": "https://example.com/a"})).await;
    let made = job_of(&world, json!({"target": 1})).await.expect(201);
    assert_eq!((&made["target"], &made["executor_type"]), (&json!(1), &json!("crawl")));
    assert_eq!(made["url"], "https://example.com/a");
    assert_eq!(made["executor_config"]["url"], "https://example.com/a");
    let own = json!({"target": 1, "url": "https://example.org/"});
    let own = job_of(&world, own).await.expect(201);
    change(&world, 1, json!({"url": "https://example.com/b"})).await.expect(200);
    let led = job(&world, &made["id"]).await;
    assert_eq!(led["executor_config"]["url"], "https://example.com/b");
    assert_eq!(led["next_run_at"], made["next_run_at"]);
    assert_eq!(job(&world, &own["id"]).await["url"], "https://example.org/");
    assert_eq!(world.get("/api/v1/targets/1").await.expect(200)["jobs"], 2);
}

#[tokio::test]
async fn a_job_whose_target_has_no_url_has_no_executor_until_there_is_one() {
    let world = World::new().await;
    make(&world, json!({"name": "A"})).await;
    let made = job_of(&world, json!({"target": 1})).await.expect(201);
    assert_eq!(made["executor_type"], "none");
    let id = made["id"].as_str().unwrap();
    let why = world.get(&format!("/api/v1/jobs/{id}/explain")).await.expect(200);
    assert_eq!(why["reasons"][0]["code"], "no_executor");
    let path = format!("/api/v1/jobs/{id}");
    let renamed = json!({"name": "board", "executor_type": "none"});
    let renamed = world.ask_as(Role::Operator, Method::PATCH, &path, Some(renamed)).await;
    assert_eq!(renamed.expect(200)["executor_type"], "none");
    change(&world, 1, json!({"url": "https://example.com/a"})).await.expect(200);
    assert_eq!(job(&world, &made["id"]).await["executor_type"], "crawl");
    change(&world, 1, json!({"url": null})).await.expect(200);
    let again = job(&world, &made["id"]).await;
    assert_eq!((&again["executor_type"], &again["url"]), (&json!("none"), &Value::Null));
}

#[tokio::test]
async fn a_job_names_only_what_is_there() {
    let world = World::new().await;
    for target in [json!(5), json!(0), json!("1"), json!(1.5)] {
        let problem = job_of(&world, json!({"target": target})).await.problem(422, "invalid-job");
        assert_eq!(problem["errors"][0]["field"], "target");
    }
    // Without a target there is nothing that could have an address.
    let problem = job_of(&world, json!({"executor_type": "none"})).await;
    assert_eq!(problem.problem(422, "invalid-job")["errors"][0]["field"], "executor_type");
    let made = world.create(json!({"name": "a"})).await;
    let path = format!("/api/v1/jobs/{}", made["id"].as_str().unwrap());
    let patch = |sent| world.ask_as(Role::Operator, Method::PATCH, &path, Some(sent));
    patch(json!({"target": 5})).await.problem(422, "invalid-job");
    make(&world, json!({"number": 5})).await;
    assert_eq!(patch(json!({"target": 5})).await.expect(200)["target"], 5);
    assert_eq!(patch(json!({"target": null})).await.expect(200)["target"], Value::Null);
}

#[tokio::test]
async fn many_jobs_at_once_name_their_targets() {
    let world = World::new().await;
    make(&world, json!({"url": "https://example.com/a"})).await;
    let jobs =
        json!({"jobs": [{"target": 1}, {"target": 2}, {"executor_type": "noop", "target": 1}]});
    let answer = world.post("/api/v1/jobs/bulk", Some(jobs)).await;
    let results = answer.json()["results"].clone();
    let statuses: Vec<&Value> =
        results.as_array().unwrap().iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [&json!(201), &json!(422), &json!(201)], "{results}");
    assert_eq!(world.get("/api/v1/targets/1").await.expect(200)["jobs"], 2);
}
