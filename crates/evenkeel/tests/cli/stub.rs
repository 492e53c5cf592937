//! A stub server that accepts and records jobs.

use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

#[derive(Default)]
pub struct ReceivedRequests {
    /// The JSON documents of the created jobs. The index of a job in this list is its id.
    pub jobs: Vec<Value>,
    /// Number of bulk requests.
    pub requests: usize,
    pub paused: Vec<String>,
    /// The idempotency key of each bulk request.
    pub keys: Vec<String>,
    /// Faults with which the stub answers the next requests, in reverse order.
    faults: Vec<Fault>,
}

/// A temporary failure of the server.
#[derive(Copy, Clone, Debug)]
pub enum Fault {
    /// The store is unavailable, so the response has a result only for the first line.
    StoreUnavailable,
    /// The server reports that the same request is still being processed.
    InProgress,
    Empty,
}

type Shared = Arc<Mutex<ReceivedRequests>>;

/// Answers the requests of an import like the real server.
pub struct Stub {
    pub url: String,
    received: Shared,
    runtime: tokio::runtime::Runtime,
}

impl Stub {
    pub fn start(runs_programs: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let received = Shared::default();
        let router = Router::new()
            .route("/api/v1/jobs/bulk", post(bulk))
            .route("/api/v1/jobs/{id}/pause", post(pause))
            .route("/api/v1/jobs", post(move || async move { refusal(runs_programs) }))
            .with_state(Arc::clone(&received));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, received, runtime }
    }

    /// Makes the next requests fail. Each fault is for one request.
    pub fn fail(&self, faults: &[Fault]) {
        self.received.lock().unwrap().faults = faults.iter().rev().copied().collect();
    }

    /// Stops the stub and returns the received requests.
    pub fn end(self) -> ReceivedRequests {
        self.runtime.shutdown_background();
        std::mem::take(&mut *self.received.lock().unwrap())
    }
}

async fn bulk(State(received): State<Shared>, headers: HeaderMap, body: String) -> String {
    let mut received = received.lock().unwrap();
    received.requests += 1;
    received.keys.push(headers["idempotency-key"].to_str().unwrap().into());
    if let Some(fault) = received.faults.pop() {
        let (status, kind) = match fault {
            Fault::StoreUnavailable => (503, "store-unavailable"),
            Fault::InProgress => (409, "request-under-way"),
            Fault::Empty => return String::new(),
        };
        let error = json!({"type": format!("/problems/{kind}"), "status": status});
        return format!("{}\n", json!({"line": 1, "status": status, "error": error}));
    }
    let mut answer = String::new();
    for (n, line) in (1..).zip(body.lines()) {
        let job: Value = serde_json::from_str(line).unwrap();
        let line = if received.jobs.iter().any(|other| other["name"] == job["name"]) {
            let error = json!({"type": "/problems/name-taken", "title": "taken"});
            json!({"line": n, "status": 409, "id": null, "error": error})
        } else if job["url"] == "https://refused.example/" {
            let errors = json!([{"field": "url", "message": "is not wanted"}]);
            json!({"line": n, "status": 422, "id": null, "error": {"errors": errors}})
        } else {
            received.jobs.push(job);
            json!({"line": n, "status": 201, "id": format!("{}", received.jobs.len() - 1), "error": null})
        };
        answer.push_str(&format!("{line}\n"));
    }
    answer
}

async fn pause(State(received): State<Shared>, Path(id): Path<String>) -> Json<Value> {
    received.lock().unwrap().paused.push(id);
    Json(json!({"status": "paused"}))
}

/// Returns the response to a job with a blank name.
fn refusal(runs_programs: bool) -> (StatusCode, Json<Value>) {
    let mut errors = vec![json!({"field": "name", "message": "is blank"})];
    if !runs_programs {
        errors.push(json!({"field": "executor_type", "message": "shell is off"}));
    }
    let problem = json!({"title": "The document is wrong", "errors": errors});
    (StatusCode::UNPROCESSABLE_ENTITY, Json(problem))
}
