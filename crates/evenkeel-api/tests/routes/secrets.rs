//! Tests of named secrets, and of the redaction of jobs for viewers.

use axum::http::Method;
use evenkeel_store::Role;
use serde_json::{Value, json};

use crate::world::{Answer, World, request, token};

const PATH: &str = "/api/v1/secrets/api-token";

async fn put(world: &World, path: &str, value: &str) -> Answer {
    world.ask_as(Role::Admin, Method::PUT, path, Some(json!({"value": value}))).await
}

#[tokio::test]
async fn secret_is_set_listed_and_deleted_without_being_shown() {
    let world = World::new().await;
    let created = put(&world, PATH, "hunter22").await;
    let view = created.expect(201);
    assert_eq!((&view["name"], &view["version"]), (&json!("api-token"), &json!(1)));
    assert_eq!(view["created_by"], "tester");
    let changed = put(&world, PATH, "hunter23").await;
    assert_eq!(changed.expect(200)["version"], 2);
    let (one, list) = (world.get(PATH).await, world.get("/api/v1/secrets").await);
    assert_eq!(one.expect(200)["version"], 2);
    let page = list.expect(200);
    assert_eq!((&page["total"], &page["secrets"][0]), (&json!(1), &one.json()));
    for answer in [created, changed, one, list] {
        assert!(!answer.text.contains("hunter"), "{}", answer.text);
    }
    let gone = world.ask_as(Role::Admin, Method::DELETE, PATH, None).await;
    assert_eq!(gone.expect(200), json!({"name": "api-token", "deleted": true}));
    world.get(PATH).await.problem(404, "not-found");
    world.ask_as(Role::Admin, Method::DELETE, PATH, None).await.problem(404, "not-found");
}

#[tokio::test]
async fn secrets_are_listed_a_page_at_a_time() {
    let world = World::new().await;
    for name in ["a", "b", "c"] {
        put(&world, &format!("/api/v1/secrets/{name}"), "v").await.expect(201);
    }
    let first = world.get("/api/v1/secrets?limit=2").await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/api/v1/secrets?limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!((&rest["secrets"][0]["name"], &rest["next_cursor"]), (&json!("c"), &Value::Null));
    let bad = world.get("/api/v1/secrets?cursor=x").await;
    bad.problem(422, "invalid-parameter");
}

#[tokio::test]
async fn only_administrators_change_secrets() {
    let world = World::new().await;
    for role in [Role::Viewer, Role::Operator] {
        let body = Some(json!({"value": "v"}));
        world.ask_as(role, Method::PUT, PATH, body).await.problem(403, "forbidden");
        world.ask_as(role, Method::DELETE, PATH, None).await.problem(403, "forbidden");
        let path = "/api/v1/secret-rotations";
        world.ask_as(role, Method::POST, path, None).await.problem(403, "forbidden");
    }
}

#[tokio::test]
async fn invalid_name_or_value_is_refused_without_being_repeated() {
    let world = World::new().await;
    for (path, body, field) in [
        ("/api/v1/secrets/-x", json!({"value": "hunter22"}), "name"),
        (PATH, json!({"value": ""}), "value"),
        (PATH, json!({"value": 7}), "value"),
        (PATH, json!({"value": "hunter22\u{0}"}), "value"),
        (PATH, json!({}), "value"),
        (PATH, json!({"value": "hunter22", "note": "hunter22"}), "note"),
        (PATH, json!("hunter22"), ""),
        (PATH, json!({"value": "x".repeat(65_537)}), "value"),
    ] {
        let answer = world.ask_as(Role::Admin, Method::PUT, path, Some(body)).await;
        assert_eq!(answer.problem(422, "invalid-parameter")["field"], field);
        assert!(!answer.text.contains("hunter22"), "{}", answer.text);
    }
}

#[tokio::test]
async fn audit_log_names_the_secret_but_not_its_value() {
    let world = World::new().await;
    put(&world, PATH, "hunter22").await.expect(201);
    let log = world.ask_as(Role::Admin, Method::GET, "/api/v1/audit", None).await;
    let entry = &log.expect(200)["entries"][0];
    assert_eq!((&entry["action"], &entry["target"]), (&json!("put_secret"), &json!("api-token")));
    assert!(!log.text.contains("hunter22"), "{}", log.text);
}

#[tokio::test]
async fn rotation_covers_all_tenants_only_for_the_default_tenant() {
    let world = World::new().await;
    put(&world, PATH, "v").await.expect(201);
    for tenant in ["main", "default"] {
        let credential = token(Role::Admin, tenant);
        let path = "/api/v1/secret-rotations";
        let answer = world.send(request(Method::POST, path, Some(&credential), None)).await;
        let done = answer.expect(200);
        assert_eq!((&done["rotated"], &done["unreadable"]), (&json!(0), &json!([])));
        assert!(done["key_id"].is_string() && done["next_cursor"].is_null());
    }
}

fn call(config: Value) -> Value {
    json!({"name": "call", "executor_type": "http", "executor_config": config})
}

#[tokio::test]
async fn job_may_refer_to_secrets_of_its_tenant_only() {
    let world = World::new().await;
    let config = json!({"url": "https://e.com/", "headers": {"A": {"secret": "api-token"}}});
    let refused = world.post("/api/v1/jobs", Some(call(config.clone()))).await;
    let problem = refused.problem(422, "invalid-job");
    assert_eq!(problem["field"], "executor_config.headers.A");
    assert!(problem["detail"].as_str().unwrap().contains("evenkeel secret set api-token"));
    let other = token(Role::Admin, "other");
    let body = Some(json!({"value": "v"}));
    world.send(request(Method::PUT, PATH, Some(&other), body)).await.expect(201);
    world.post("/api/v1/jobs", Some(call(config.clone()))).await.problem(422, "invalid-job");
    put(&world, PATH, "v").await.expect(201);
    let made = world.post("/api/v1/jobs", Some(call(config.clone()))).await.expect(201);
    assert_eq!(made["executor_config"], config);
    // An update of a job is refused only if a field that it changes refers to a missing secret.
    let path = format!("/api/v1/jobs/{}", made["id"].as_str().unwrap());
    let patch = json!({"payload": {"k": {"secret": "gone"}}});
    let refused = world.ask_as(Role::Operator, Method::PATCH, &path, Some(patch)).await;
    assert_eq!(refused.problem(422, "invalid-job")["field"], "payload.k");
    world.ask_as(Role::Admin, Method::DELETE, PATH, None).await.expect(200);
    let patch = Some(json!({"priority": 7}));
    world.ask_as(Role::Operator, Method::PATCH, &path, patch).await.expect(200);
    let bulk = json!({"jobs": [call(config), {"executor_type": "noop"}]});
    let answer = world.post("/api/v1/jobs/bulk", Some(bulk)).await;
    assert!(answer.text.contains("evenkeel secret set api-token"), "{}", answer.text);
}

/// Returns a job with a credential in every field that can hold one.
fn job_with_credentials() -> Value {
    let url = "https://ann:hunter22@example.com/p?key=hunter22";
    json!({
        "name": "call", "executor_type": "http", "unique": true,
        "executor_config": {
            "url": url, "headers": {"Authorization": "hunter22"}, "body": {"k": "hunter22"},
            "body_text": "hunter22", "token": "hunter22", "not_declared": {"k": ["hunter22"]},
        },
        "payload": {"k": "hunter22"},
    })
}

#[tokio::test]
async fn viewers_see_no_credential_of_a_job_anywhere() {
    let world = World::new().await;
    let made = world.post("/api/v1/jobs", Some(job_with_credentials())).await.expect(201);
    assert!(made["dedup_key"].as_str().unwrap().contains("hunter22"), "operators see it all");
    let id = made["id"].as_str().unwrap();
    for path in [
        "/api/v1/jobs".to_owned(),
        format!("/api/v1/jobs/{id}"),
        format!("/api/v1/jobs/{id}/explain"),
        format!("/api/v1/jobs/{id}/condition"),
        format!("/api/v1/jobs/{id}/next"),
        "/api/v1/conditions".into(),
        "/api/admin/jobs".into(),
    ] {
        let answer = world.get(&path).await;
        answer.expect(200);
        assert!(!answer.text.contains("hunter22"), "{path}: {}", answer.text);
    }
    let seen = world.get(&format!("/api/v1/jobs/{id}")).await.expect(200);
    let redacted = json!({"redacted": true});
    assert_eq!(seen["dedup_key"], "https://***@example.com/p?key=***");
    assert_eq!(seen["executor_config"]["token"], redacted);
    assert_eq!(seen["executor_config"]["headers"], json!({"Authorization": redacted}));
    assert_eq!(seen["payload"], redacted);
}

#[tokio::test]
async fn redacted_job_can_be_sent_back_and_keeps_its_credentials() {
    let world = World::new().await;
    let made = world.post("/api/v1/jobs", Some(job_with_credentials())).await.expect(201);
    let path = format!("/api/v1/jobs/{}", made["id"].as_str().unwrap());
    let mut seen = world.get(&path).await.expect(200);
    seen["description"] = "changed".into();
    let put = world.ask_as(Role::Operator, Method::PUT, &path, Some(seen)).await.expect(200);
    assert_eq!(put["description"], "changed");
    for field in ["executor_config", "payload", "dedup_key"] {
        assert_eq!(put[field], made[field], "{field}");
    }
    let patch = json!({"executor_config": {"headers": {
        "Authorization": {"redacted": true}, "X-New": "1",
    }}});
    let patched = world.ask_as(Role::Operator, Method::PATCH, &path, Some(patch)).await;
    let headers = json!({"Authorization": "hunter22", "X-New": "1"});
    assert_eq!(patched.expect(200)["executor_config"]["headers"], headers);
    let patch = json!({"executor_config": {"headers": {"Other": {"redacted": true}}}});
    let refused = world.ask_as(Role::Operator, Method::PATCH, &path, Some(patch)).await;
    assert_eq!(refused.problem(422, "invalid-job")["field"], "executor_config.headers.Other");
}

#[tokio::test]
async fn redacted_value_creates_no_job_and_no_target() {
    let world = World::new().await;
    for (document, field) in [
        (call(json!({"url": "https://***@e.com/"})), "executor_config.url"),
        (
            call(json!({"url": "https://e.com/", "body": {"redacted": true}})),
            "executor_config.body",
        ),
        (json!({"executor_type": "noop", "payload": {"redacted": true}}), "payload"),
    ] {
        let refused = world.post("/api/v1/jobs", Some(document)).await;
        assert_eq!(refused.problem(422, "invalid-job")["field"], field);
    }
    let target = json!({"url": "https://e.com/?k=hunter22"});
    let made = world.post("/api/v1/targets", Some(target)).await.expect(201);
    let path = format!("/api/v1/targets/{}", made["number"]);
    let seen = world.get(&path).await.expect(200);
    assert_eq!(seen["url"], "https://e.com/?k=***");
    assert_eq!(world.get("/api/v1/targets").await.expect(200)["targets"][0]["url"], seen["url"]);
    let put = world.ask_as(Role::Operator, Method::PUT, &path, Some(seen)).await.expect(200);
    assert_eq!(put["url"], "https://e.com/?k=hunter22");
    let copy = json!({"url": "https://e.com/?k=***"});
    world.post("/api/v1/targets", Some(copy)).await.expect(422);
}
