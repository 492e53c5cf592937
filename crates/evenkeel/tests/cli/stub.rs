//! A server that takes jobs and remembers them, and does nothing else.

use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

/// What was asked of it.
#[derive(Default)]
pub struct Asked {
    /// The documents of jobs, in order; the place of one is its id.
    pub jobs: Vec<Value>,
    /// How many requests they came in.
    pub requests: usize,
    /// The ids of those that were paused.
    pub paused: Vec<String>,
    /// The keys they came under, each as often as it came.
    pub keys: Vec<String>,
    /// What becomes of the next requests, the last one first, before all goes well.
    troubles: Vec<Trouble>,
}

/// Why a server does not do what it is asked for just now.
#[derive(Copy, Clone, Debug)]
pub enum Trouble {
    /// Its database is gone: it says so for the first line, and nothing of the others.
    Out,
    /// It works on the same request.
    UnderWay,
    /// It says nothing.
    Silent,
}

type Shared = Arc<Mutex<Asked>>;

/// A server with the same answers as the real one to what an import asks.
pub struct Stub {
    pub url: String,
    asked: Shared,
    runtime: tokio::runtime::Runtime,
}

impl Stub {
    /// Starts one, which runs programs or does not.
    pub fn start(runs_programs: bool) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let asked = Shared::default();
        let router = Router::new()
            .route("/api/v1/jobs/bulk", post(bulk))
            .route("/api/v1/jobs/{id}/pause", post(pause))
            .route("/api/v1/jobs", post(move || async move { refusal(runs_programs) }))
            .with_state(Arc::clone(&asked));
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { url, asked, runtime }
    }

    /// Has it fail the next requests in these ways.
    pub fn fail(&self, troubles: &[Trouble]) {
        self.asked.lock().unwrap().troubles = troubles.iter().rev().copied().collect();
    }

    /// Ends it, and says what was asked of it.
    pub fn end(self) -> Asked {
        self.runtime.shutdown_background();
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

async fn bulk(State(asked): State<Shared>, headers: HeaderMap, body: String) -> String {
    let mut asked = asked.lock().unwrap();
    asked.requests += 1;
    asked.keys.push(headers["idempotency-key"].to_str().unwrap().into());
    if let Some(trouble) = asked.troubles.pop() {
        let (status, kind) = match trouble {
            Trouble::Out => (503, "store-unavailable"),
            Trouble::UnderWay => (409, "request-under-way"),
            Trouble::Silent => return String::new(),
        };
        let error = json!({"type": format!("/problems/{kind}"), "status": status});
        return format!("{}\n", json!({"line": 1, "status": status, "error": error}));
    }
    let mut answer = String::new();
    for (n, line) in (1..).zip(body.lines()) {
        let job: Value = serde_json::from_str(line).unwrap();
        let line = if asked.jobs.iter().any(|other| other["name"] == job["name"]) {
            let error = json!({"type": "/problems/name-taken", "title": "taken"});
            json!({"line": n, "status": 409, "id": null, "error": error})
        } else if job["url"] == "https://refused.example/" {
            let errors = json!([{"field": "url", "message": "is not wanted"}]);
            json!({"line": n, "status": 422, "id": null, "error": {"errors": errors}})
        } else {
            asked.jobs.push(job);
            json!({"line": n, "status": 201, "id": format!("{}", asked.jobs.len() - 1), "error": null})
        };
        answer.push_str(&format!("{line}\n"));
    }
    answer
}

async fn pause(State(asked): State<Shared>, Path(id): Path<String>) -> Json<Value> {
    asked.lock().unwrap().paused.push(id);
    Json(json!({"status": "paused"}))
}

/// What a job with a blank name is told.
fn refusal(runs_programs: bool) -> (StatusCode, Json<Value>) {
    let mut errors = vec![json!({"field": "name", "message": "is blank"})];
    if !runs_programs {
        errors.push(json!({"field": "executor_type", "message": "shell is off"}));
    }
    let problem = json!({"title": "The document is wrong", "errors": errors});
    (StatusCode::UNPROCESSABLE_ENTITY, Json(problem))
}
