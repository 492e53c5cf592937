//! Invariant I10: a tenant cannot read, change or detect any data of another tenant. The tests call
//! every operation of the OpenAPI document, so they also cover new endpoints.

use std::collections::BTreeMap;

use axum::http::Method;
use evenkeel_core::PageId;
use evenkeel_core::page::PageContent;
use evenkeel_store::{Now, PageQuota, Role};
use serde_json::{Value, json};

use crate::world::{World, noop, request, run_ids, token};

struct Operation {
    method: Method,
    path: String,
    itself: Value,
}

impl Operation {
    fn all() -> Vec<Self> {
        let document = serde_json::to_value(evenkeel_api::openapi()).unwrap();
        let mut all = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, itself) in item.as_object().unwrap() {
                let method = method.to_uppercase().parse().unwrap();
                all.push(Self { method, path: path.clone(), itself: itself.clone() });
            }
        }
        assert!(all.len() >= 20, "the walk is not worth its name");
        all
    }

    fn has_id(&self) -> bool {
        self.path.contains('{')
    }

    /// Returns the path of the operation, with `id` in place of its path parameters.
    fn path_of(&self, id: &str) -> String {
        let pieces = self.path.split('/');
        let filled = pieces.map(|piece| if piece.starts_with('{') { id } else { piece });
        filled.collect::<Vec<_>>().join("/")
    }

    /// Returns the names of the query parameters that take an id.
    fn id_parameters(&self) -> Vec<String> {
        let all = self.itself["parameters"].as_array().cloned().unwrap_or_default();
        let names =
            all.iter().filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str());
        names.filter(|name| name.ends_with("_id")).map(String::from).collect()
    }

    /// Returns a request body: the example of the OpenAPI document, or else a minimal job.
    fn body(&self) -> Option<Value> {
        let content =
            self.itself.get("requestBody")?["content"].as_object()?.values().next()?.clone();
        Some(content.get("example").cloned().unwrap_or_else(|| noop(json!({}))))
    }
}

/// Sends requests with the token of one tenant.
struct Tenant<'a> {
    world: &'a World,
    name: &'static str,
}

impl Tenant<'_> {
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (u16, String) {
        let token = token(Role::Admin, self.name);
        let answer = self.world.send(request(method, path, Some(&token), body)).await;
        (answer.status.as_u16(), answer.text)
    }

    /// Returns the responses to all GET operations. An operation with an id in its path is called
    /// for each of `ids`.
    async fn sees(&self, ids: &[String]) -> BTreeMap<String, (u16, String)> {
        let mut seen = BTreeMap::new();
        for operation in Operation::all() {
            // `/metrics` refuses this tenant, and the refusal would appear in the tenant's audit
            // log.
            if operation.method != Method::GET || operation.path == "/metrics" {
                continue;
            }
            let paths = match operation.has_id() {
                false => vec![operation.path.clone()],
                true => ids.iter().map(|id| operation.path_of(id)).collect(),
            };
            for path in paths {
                let answer = self.ask(Method::GET, &path, None).await;
                seen.insert(path, answer);
            }
        }
        seen
    }
}

/// Creates one object of each kind that has an id, in the tenant `main`.
async fn make_one_of_each(world: &World) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let job = world.create(json!({"name": "classified", "interval_minutes": 1})).await;
    let known = world.known(&job).await;
    let key = world.rig.run_successfully(known, 60).await;
    let url = "https://classified.example/";
    let page = PageContent {
        id: PageId::of(known.no, url),
        url: url.into(),
        status: 200,
        content_type: "text/html".into(),
        etag: None,
        last_modified: None,
        content_hash: [7; 32],
        depth: 0,
        title: Some("classified".into()),
        text: "classified words".into(),
        links: Vec::new(),
        metadata: json!({}),
        fields: json!({}),
    };
    let page_id = page.id.to_string();
    let shelf = PageQuota { tenant: world.rig.scope.tenant, job: known.no, bytes_max: 1 << 20 };
    world.rig.store.save_pages(shelf, vec![page], Now::Database).await.unwrap();
    let api_key = Some(json!({"name": "classified", "role": "viewer"}));
    let api_key = world.ask_as(Role::Admin, Method::POST, "/api/v1/api-keys", api_key).await;
    let api_key = text(&api_key.expect(201)["id"]);
    let name = "classified-name".to_owned();
    let value = Some(json!({"value": "classified"}));
    let path = format!("/api/v1/secrets/{name}");
    world.ask_as(Role::Admin, Method::PUT, &path, value).await.expect(201);
    let plan = world.post("/api/v1/scheduler/rebalance/preview", None).await.expect(200);
    let done = world.post("/api/v1/scheduler/rebalance", None).await.expect(200);
    let plans = [text(&plan["plan_id"]), text(&done["rebalance_id"])];
    let runs = [run_ids().run_id(key).to_string(), run_ids().attempt_id(key).to_string()];
    [vec![text(&job["id"]), page_id, api_key, name], plans.to_vec(), runs.to_vec()].concat()
}

/// Returns ids that belong to no object and have the same format as `ids`.
fn unknown_ids(ids: &[String]) -> Vec<String> {
    let other = |id: &String| {
        let last = if id.ends_with('0') { "1" } else { "0" };
        format!("{}{last}", &id[..id.len() - 1])
    };
    ids.iter().map(other).collect()
}

#[tokio::test]
async fn objects_of_another_tenant_look_like_unknown_ones() {
    let world = World::new().await;
    let (main, other) =
        (Tenant { world: &world, name: "main" }, Tenant { world: &world, name: "other" });
    let ids = make_one_of_each(&world).await;
    let before = main.sees(&ids).await;
    for operation in Operation::all() {
        // Secret names are separate for each tenant, so `PUT` creates a new secret.
        if operation.itself["operationId"] == "put_secret" {
            continue;
        }
        for (id, unknown) in ids.iter().zip(unknown_ids(&ids)) {
            let mut tried = Vec::new();
            if operation.has_id() {
                tried.push((operation.path_of(id), operation.path_of(&unknown)));
            }
            for name in operation.id_parameters() {
                let path = operation.path_of(&unknown);
                tried.push((format!("{path}?{name}={id}"), format!("{path}?{name}={unknown}")));
            }
            for (theirs, nobodys) in tried {
                let ask = |path: String| {
                    let (method, body) = (operation.method.clone(), operation.body());
                    let other = &other;
                    async move { other.ask(method, &path, body).await }
                };
                let (of_theirs, of_unknown) = (ask(theirs.clone()).await, ask(nobodys).await);
                // The response for an id of another tenant equals the response for an id that never
                // existed.
                let same = of_theirs.1.replace(id, "") == of_unknown.1.replace(&unknown, "");
                let method = &operation.method;
                assert!(
                    of_theirs.0 == of_unknown.0 && same,
                    "{method} {theirs}: {of_theirs:?} is not {of_unknown:?}"
                );
                let is_list = operation.method == Method::GET && !operation.has_id();
                assert!(is_list || of_theirs.0 >= 400, "{method} {theirs}: {of_theirs:?}");
                assert!(of_theirs.0 < 500, "{method} {theirs}: {of_theirs:?}");
            }
        }
    }
    // The request applies a command to ids of jobs of another tenant.
    let pause = json!({"action": "pause", "ids": ids});
    other.ask(Method::POST, "/api/v1/jobs/commands", Some(pause)).await;
    assert_eq!(main.sees(&ids).await, before, "another tenant changed something");
}

#[tokio::test]
async fn actions_of_one_tenant_are_invisible_to_another() {
    let world = World::new().await;
    let (main, other) =
        (Tenant { world: &world, name: "main" }, Tenant { world: &world, name: "other" });
    let mine = other.ask(Method::POST, "/api/v1/jobs", Some(noop(json!({"name": "own"})))).await;
    assert_eq!(mine.0, 201);
    let mine: Value = serde_json::from_str(&mine.1).unwrap();
    let own = [mine["id"].as_str().unwrap().to_owned()];
    let before = other.sees(&own).await;
    let ids = make_one_of_each(&world).await;
    for operation in Operation::all() {
        if operation.method == Method::GET {
            continue;
        }
        for id in &ids {
            main.ask(operation.method.clone(), &operation.path_of(id), operation.body()).await;
        }
    }
    let after = other.sees(&own).await;
    for (path, seen) in &before {
        assert_eq!(after[path], *seen, "{path}");
        assert!(!after[path].1.contains("classified"), "{path}: {}", after[path].1);
    }
    // Job names are separate for each tenant.
    let same =
        other.ask(Method::POST, "/api/v1/jobs", Some(noop(json!({"name": "classified"})))).await;
    assert_eq!(same.0, 201, "{}", same.1);
}
