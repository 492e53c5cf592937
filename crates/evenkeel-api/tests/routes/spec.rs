//! Tests of the OpenAPI document, and of every operation in it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use axum::http::Method;
use evenkeel_store::Role;
use serde_json::{Map, Value, json};

use crate::world::{World, noop, request, run_ids, token};

fn document() -> Value {
    serde_json::to_value(evenkeel_api::openapi()).unwrap()
}

/// Returns every operation: its method, its path with filled-in parameters, and its specification.
pub fn operations() -> Vec<(Method, String, Value)> {
    let document = document();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let id = if path.contains("executions/{id}") {
                "0190163d-8694-839b-aea5-966c02f8ad91"
            } else {
                "0190163d-8694-739b-aea5-966c26f8ad91"
            };
            operations.push((method, path.replace("{id}", id), operation.clone()));
        }
    }
    assert!(operations.len() >= 12, "too few operations");
    operations
}

/// Returns every operation on one job of `/api/v1`: its method, its path with `{id}`, and its
/// specification.
pub fn operations_of_jobs() -> Vec<(Method, String, Value)> {
    let document = document();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if path.starts_with("/api/v1/jobs/{id}") {
                let method: Method = method.to_uppercase().parse().unwrap();
                found.push((method, path.clone(), operation.clone()));
            }
        }
    }
    assert!(found.len() >= 14, "too few operations: {}", found.len());
    found
}

fn is_public(path: &str) -> bool {
    ["/healthz", "/readyz"].contains(&path)
}

/// To refresh the stored document, run `UPDATE=1 cargo nextest run -p evenkeel-api snapshot`.
#[test]
fn stored_document_is_the_snapshot_of_the_handlers() {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let fresh = evenkeel_api::openapi().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(&place, &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(kept == fresh, "docs/openapi.json differs from the handlers: refresh it with UPDATE=1");
}

#[test]
fn bulk_creation_documents_how_the_whole_request_can_fail() {
    let bulk = &document()["paths"]["/api/v1/jobs/bulk"]["post"]["responses"];
    for (status, words) in [("409", "not kept"), ("503", "None is known to be created")] {
        let described = bulk[status]["description"].as_str().unwrap();
        assert!(described.contains(words), "{status}: {described}");
        assert!(bulk[status]["content"]["application/problem+json"].is_object());
    }
}

#[test]
fn json_bodies_have_an_example() {
    for (method, path, operation) in operations() {
        let contents = operation["requestBody"]["content"].as_object().into_iter().flatten();
        for (kind, content) in contents.filter(|(kind, _)| *kind == "application/json") {
            let shown = content.get("example").or(content.get("examples"));
            assert!(shown.is_some(), "{method} {path} {kind}");
        }
    }
}

#[tokio::test]
async fn served_document_is_the_stored_one() {
    let world = World::new().await;
    let served = world.get("/api/openapi.json").await.expect(200);
    assert_eq!(served, document());
    assert!(served["openapi"].as_str().unwrap().starts_with("3.1"));
}

#[test]
fn references_of_the_document_resolve() {
    let document = document();
    let mut references = BTreeSet::new();
    collect(&document, &mut references);
    assert!(references.len() > 5);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} does not resolve");
    }
}

fn collect(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            if let Some(reference) = object.get("$ref") {
                references.insert(reference.as_str().unwrap().into());
            }
            object.values().for_each(|value| collect(value, references));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, references)),
        _ => {}
    }
}

#[tokio::test]
async fn only_health_is_public() {
    let world = World::new().await;
    for (method, path, operation) in operations() {
        let body = operation.get("requestBody").map(|_| noop(json!({})));
        let answer = world.send(request(method.clone(), &path, None, body)).await;
        if is_public(&path) {
            assert_eq!(answer.status.as_u16(), 200, "{method} {path}");
        } else {
            answer.problem(401, "unauthorized");
        }
        let scheme = if is_callback(&path) { "attempt" } else { "bearer" };
        let is_closed = operation["security"] == json!([{scheme: []}]);
        assert_eq!(is_closed, !is_public(&path), "{method} {path}");
    }
    assert_eq!(world.rig.census().await.jobs, 0);
}

/// The server requires exactly the roles that the OpenAPI document states.
#[tokio::test]
async fn each_role_may_do_what_the_document_says() {
    let world = World::new().await;
    for (method, path, operation) in operations() {
        let needed = required_role(&operation);
        for role in Role::ALL {
            let body = operation.get("requestBody").map(|_| noop(json!({})));
            // Metrics require a token of the tenant `default`.
            let token = token(role, if path == "/metrics" { "default" } else { "main" });
            let answer = world.send(request(method.clone(), &path, Some(&token), body)).await;
            let status = answer.status.as_u16();
            if is_callback(&path) {
                // Callbacks require the token of an attempt instead of a role.
                assert!([401, 404].contains(&status), "{role:?} {method} {path}: {status}");
                continue;
            }
            let may = needed.is_none_or(|needed| role >= needed);
            assert_eq!(status == 403, !may, "{role:?} {method} {path}: {status}");
            assert!(![401, 405, 500].contains(&status), "{role:?} {method} {path}: {status}");
            let documented = operation["responses"].as_object().unwrap();
            assert!(documented.contains_key(&status.to_string()), "{method} {path}: {status}");
        }
    }
}

/// Returns the required role of an operation; `None` if no role is required.
fn required_role(operation: &Value) -> Option<Role> {
    let name = operation["x-required-role"].as_str();
    let known = |name| Role::ALL.into_iter().find(|role| role.as_str() == name);
    match name {
        Some("none") => None,
        Some(name) => Some(known(name).unwrap_or_else(|| panic!("{name} is not a role"))),
        None => panic!(
            "add extensions((\"x-required-role\" = json!(\"viewer|operator|admin|none\"))) to {}",
            operation["operationId"]
        ),
    }
}

#[test]
fn operations_declare_their_role() {
    for (method, path, operation) in operations() {
        let needed = required_role(&operation);
        assert_eq!(needed.is_none(), is_public(&path) || is_callback(&path), "{method} {path}");
        let changes = method != Method::GET && path != "/api/v1/schedules/preview";
        assert!(!changes || needed != Some(Role::Viewer), "{method} {path} changes something");
    }
}

/// True for callbacks, which use the token of an attempt.
fn is_callback(path: &str) -> bool {
    path.strip_prefix("/api/v1/runs/").is_some_and(|rest| rest.contains('/'))
}

fn properties(schema: &str) -> Map<String, Value> {
    let document = document();
    document["components"]["schemas"][schema]["properties"].as_object().unwrap().clone()
}

#[tokio::test]
async fn job_fields_are_the_documented_ones() {
    let world = World::new().await;
    let documented: BTreeSet<String> =
        properties("JobDocument").into_iter().map(|it| it.0).collect();
    // The error message about an unknown field lists the known fields.
    let unknown = noop(json!({"completely_different": 1}));
    let problem = world.post("/api/v1/jobs", Some(unknown)).await.problem(422, "invalid-job");
    let message = problem["errors"][0]["message"].as_str().unwrap().to_owned();
    let (_, fields) = message.split_once("the fields are ").unwrap();
    let taken: BTreeSet<String> = fields.split(", ").map(String::from).collect();
    assert_eq!(taken, documented);
}

#[tokio::test]
async fn preview_fields_are_the_documented_ones() {
    let world = World::new().await;
    let documented: BTreeSet<String> =
        properties("PreviewDocument").into_iter().map(|it| it.0).collect();
    let unknown = Some(json!({"completely_different": 1}));
    let answer = world.post("/api/v1/schedules/preview", unknown).await;
    let message = answer.problem(422, "invalid-schedule")["errors"][0]["message"].clone();
    let (_, fields) = message.as_str().unwrap().split_once("the fields are ").unwrap();
    let taken: BTreeSet<String> = fields.split(", ").map(String::from).collect();
    assert_eq!(taken, documented);
}

#[tokio::test]
async fn answers_have_the_documented_fields() {
    let world = World::new().await;
    let job = world.create(json!({"interval_minutes": 1, "dedup_key": "one"})).await;
    let key = world.rig.run_successfully(world.known(&job).await, 60).await;
    let execution =
        world.get(&format!("/api/v1/executions/{}", run_ids().run_id(key))).await.expect(200);
    let of_job = |what: &str| format!("/api/v1/jobs/{}/{what}", job["id"].as_str().unwrap());
    let preview = world.post("/api/v1/schedules/preview", Some(json!({"schedule": "1h"}))).await;
    // The job cannot keep its deadline promise, so the response contains warnings.
    let always = json!([{"start": "00:00", "end": "23:00"}]);
    let held = json!({"interval_minutes": 1, "dedup_key": "two", "blackout_periods": always});
    let mut held = world.create(held).await;
    let listed = world.get("/api/v1/jobs?recent_runs=1").await.expect(200);
    let recent = listed["jobs"][0]["recent_runs"].clone();
    // Only lists show recent runs of a job.
    held["recent_runs"] = recent.clone();
    let target = world.post("/api/v1/targets", Some(json!({"name": "site"}))).await.expect(201);
    for (schema, shown) in [
        ("TargetView", target),
        ("TargetList", world.get("/api/v1/targets").await.expect(200)),
        ("JobView", held),
        ("RecentRunView", recent[0].clone()),
        ("NextTimesView", world.get(&of_job("next")).await.expect(200)),
        ("ConditionView", world.get(&of_job("condition")).await.expect(200)),
        ("ExplainView", world.get(&of_job("explain")).await.expect(200)),
        ("NodeList", world.get("/api/v1/nodes").await.expect(200)),
        ("ConditionList", world.get("/api/v1/conditions").await.expect(200)),
        ("PreviewView", preview.expect(200)),
        ("ExecutionView", execution),
        (
            "LogView",
            world
                .get(&format!("/api/v1/executions/{}/logs", run_ids().run_id(key)))
                .await
                .expect(200),
        ),
        ("JobList", world.get("/api/v1/jobs").await.expect(200)),
        ("ExecutionList", world.get("/api/v1/executions").await.expect(200)),
    ] {
        let documented: BTreeSet<String> = properties(schema).into_iter().map(|it| it.0).collect();
        let shown: BTreeSet<String> = shown.as_object().unwrap().keys().cloned().collect();
        assert_eq!(shown, documented, "{schema}");
    }
}
