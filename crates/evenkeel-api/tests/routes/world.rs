//! A complete server without a socket, for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use evenkeel_api::{
    Access, AppParts, Check, Clock, Readiness, RenderMetrics, SECRET_BYTES_MIN, Settings, Streams,
    TokenRequest, Tokens, Trust, router,
};
use evenkeel_commands::{Balance, Balancing, Callbacks, ExecutorCheck, Feed, Jobs, Pages, Runs};
use evenkeel_core::balance::BalanceSettings;
use evenkeel_core::chance::Chance;
use evenkeel_core::executor::ExecutorCatalog;
use evenkeel_core::history::DEFAULT_ALPHA;
use evenkeel_core::{AttemptTokens, JobId, RunIds, Span, TenantNo, Timestamp};
use evenkeel_secrets::{Keyring, Secrets};
use evenkeel_store::{Role, Store, StoreError};
use evenkeel_store_testkit::Opened;
use evenkeel_store_testkit::fixtures::{START, at};
use evenkeel_store_testkit::model::ModelStore;
use evenkeel_store_testkit::rig::{Known, Rig};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::broken_store::BrokenStore;

/// A random number generator that counts up, so that tests are repeatable.
pub struct Counting(AtomicU64);

impl Counting {
    pub fn new() -> Self {
        Self(AtomicU64::new(1))
    }
}

impl Chance for Counting {
    fn bits(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Accepts the executors `noop` and `crawl`, and `http` with a URL.
struct Executors;

impl ExecutorCheck for Executors {
    fn check(
        &self,
        _tenant: TenantNo,
        kind: &str,
        config: &Value,
        _payload: &Value,
    ) -> Result<(), (String, String)> {
        if kind == "http" && config.get("url").is_none() {
            return Err(("executor_config.url".into(), "is missing".into()));
        }
        if kind == "crawl" && config.get("bogus").is_some() {
            return Err(("executor_config.bogus".into(), "is not known".into()));
        }
        let url = config.get("url").and_then(Value::as_str);
        if kind == "crawl" && url.is_some_and(|url| url.starts_with("https://forbidden.")) {
            return Err(("executor_config.url".into(), "is forbidden".into()));
        }
        Ok(())
    }

    fn kinds(&self) -> Vec<String> {
        vec!["crawl".into(), "http".into(), "noop".into()]
    }

    fn catalog(&self) -> ExecutorCatalog {
        evenkeel_executors::CATALOG
    }
}

/// Readiness that the engine reports.
pub enum Engine {
    Ready,
    Failing,
    Panics,
    Hangs,
}

#[async_trait]
impl Readiness for Engine {
    async fn checks(&self) -> Vec<Check> {
        let ok = match self {
            Self::Ready => true,
            Self::Failing => false,
            Self::Panics => panic!("the probe panics"),
            Self::Hangs => std::future::pending().await,
        };
        vec![Check { name: "engine".into(), ok, detail: "was checked".into() }]
    }
}

pub fn run_ids() -> RunIds {
    RunIds::new(b"key of the tests")
}

pub fn attempt_tokens() -> AttemptTokens {
    AttemptTokens::new(b"of attempts")
}

pub fn tokens() -> Tokens {
    Tokens::new(&[42; SECRET_BYTES_MIN]).unwrap()
}

/// Returns a token for a tenant, issued at the start of the test and valid for an hour.
pub fn token(role: Role, tenant: &str) -> String {
    let request = TokenRequest {
        role,
        tenant: tenant.into(),
        ttl: Span::from_secs(3600),
        now: START,
        subject: "tester".into(),
    };
    tokens().issue(&request, &Counting::new()).unwrap()
}

/// A response that was received completely.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    pub fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Returns the response body; panics if the response has another status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self.json()
    }

    /// Returns the problem in the response; panics if it has another status or type.
    #[track_caller]
    pub fn problem(&self, status: u16, kind: &str) -> Value {
        let problem = self.expect(status);
        assert_eq!(self.header(header::CONTENT_TYPE), Some("application/problem+json"));
        assert_eq!(problem["type"], format!("/problems/{kind}"), "{problem}");
        assert_eq!(problem["status"], status);
        assert!(!problem["title"].as_str().unwrap().is_empty());
        problem
    }
}

pub struct World {
    pub router: Router,
    /// Test access to the store, with the tenant `main` and a node.
    pub rig: Rig,
    clock: Arc<AtomicI64>,
}

impl World {
    pub async fn new() -> Self {
        Self::with(Engine::Ready, Settings::default()).await
    }

    pub async fn with(engine: Engine, settings: Settings) -> Self {
        Self::build(|store, _, time| server(store, time, engine, settings)).await
    }

    /// Creates a server that trusts the external tokens described by `trust`.
    pub async fn trusting(trust: Trust) -> Self {
        let settings = Settings::default();
        Self::build(|store, _, time| trusting_server(store, time, Engine::Ready, settings, trust))
            .await
    }

    pub async fn with_streams(streams: Streams) -> Self {
        Self::build(|store, _, time| {
            let trust = Trust { local: Some(Arc::new(tokens())), ..Trust::default() };
            let access = Access::new(store.clone(), trust, Arc::new(Counting::new()));
            server_with(store, time, Engine::Ready, Settings::default(), access, streams)
        })
        .await
    }

    /// Creates a server whose store fails if `fault` returns an error for the name of the called
    /// store function. `fault` may also advance the clock, which counts microseconds.
    pub async fn failing(
        fault: impl Fn(&AtomicI64, &str) -> Option<StoreError> + Send + Sync + 'static,
    ) -> Self {
        Self::build(|store, clock, time| {
            let failing = BrokenStore::over(store, move |verb| fault(&clock, verb));
            server(failing, time, Engine::Ready, Settings::default())
        })
        .await
    }

    /// Creates a store with its clock, and a server that uses both. `rig` accesses the store
    /// directly.
    async fn build(router: impl FnOnce(Arc<dyn Store>, Arc<AtomicI64>, Clock) -> Router) -> Self {
        let clock = Arc::new(AtomicI64::new(START.as_micros()));
        let reader = clock.clone();
        let time: Clock = Arc::new(move || Timestamp::from_micros(reader.load(Ordering::Relaxed)));
        let store: Arc<dyn Store> = Arc::new(ModelStore::new(time.clone()));
        let opened = Opened { store: store.clone(), guard: Box::new(()), reopen: None };
        let rig = Rig::new(opened).await;
        Self { router: router(store, clock.clone(), time), rig, clock }
    }

    pub fn pass(&self, secs: i64) {
        self.clock.fetch_add(secs * 1_000_000, Ordering::Relaxed);
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        send(&self.router, request).await
    }

    /// Sends a request with a role of the tenant `main`.
    pub async fn ask_as(
        &self,
        role: Role,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        self.send(request(method, path, Some(&token(role, "main")), body)).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask_as(Role::Viewer, Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Option<Value>) -> Answer {
        self.ask_as(Role::Operator, Method::POST, path, body).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.ask_as(Role::Operator, Method::DELETE, path, None).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.ask_as(Role::Operator, Method::PUT, path, Some(body)).await
    }

    pub async fn patch(&self, job: &Value, sent: Value) -> Answer {
        self.ask_as(Role::Operator, Method::PATCH, &job_path(job, ""), Some(sent)).await
    }

    /// Sends a request with the role `operator` and the header `If-Match`.
    pub async fn ask_if(
        &self,
        method: Method,
        path: &str,
        tags: &str,
        body: Option<Value>,
    ) -> Answer {
        let mut request = request(method, path, Some(&token(Role::Operator, "main")), body);
        request.headers_mut().insert(header::IF_MATCH, tags.parse().unwrap());
        self.send(request).await
    }

    /// Creates a job whose executor does nothing.
    #[track_caller]
    pub fn create(&self, more: Value) -> impl Future<Output = Value> + '_ {
        let document = noop(more);
        async move { self.post("/api/v1/jobs", Some(document)).await.expect(201) }
    }

    /// Returns the number and the id of a created job.
    pub async fn known(&self, job: &Value) -> Known {
        let id: JobId = job["id"].as_str().unwrap().parse().unwrap();
        let found = self.rig.store.get(&self.rig.scope, id).await.unwrap().unwrap();
        Known { no: found.no, id }
    }
}

pub fn server(store: Arc<dyn Store>, clock: Clock, engine: Engine, settings: Settings) -> Router {
    let trust = Trust { local: Some(Arc::new(tokens())), ..Trust::default() };
    trusting_server(store, clock, engine, settings, trust)
}

pub fn trusting_server(
    store: Arc<dyn Store>,
    clock: Clock,
    engine: Engine,
    settings: Settings,
    trust: Trust,
) -> Router {
    let access = Access::new(store.clone(), trust, Arc::new(Counting::new()));
    server_with(store, clock, engine, settings, access, Streams::default())
}

/// Returns a secrets service with a fixed encryption key.
pub fn secrets(store: &Arc<dyn Store>) -> Secrets {
    let keys = Keyring::read(&"0a".repeat(32)).unwrap();
    Secrets::new(store.clone(), Some(keys), Arc::new(Counting::new()))
}

pub fn server_with(
    store: Arc<dyn Store>,
    clock: Clock,
    engine: Engine,
    settings: Settings,
    access: Access,
    streams: Streams,
) -> Router {
    let metrics: RenderMetrics = Arc::new(|| "evenkeel_up 1\n".into());
    let balance = Balance::new(store.clone(), BalanceSettings::default());
    let chance = Arc::new(Counting::new());
    router(AppParts {
        jobs: Jobs::new(store.clone(), chance, Arc::new(Executors), balance.clone()),
        balancing: Balancing::new(balance.clone(), Arc::new(Counting::new())),
        balance,
        runs: Runs::new(store.clone(), run_ids()),
        callbacks: Callbacks::new(
            store.clone(),
            Arc::new(Counting::new()),
            attempt_tokens(),
            run_ids(),
            DEFAULT_ALPHA,
        ),
        run_ids: run_ids(),
        pages: Pages::new(store.clone()),
        feed: Feed::new(store.clone()),
        streams,
        access: Arc::new(access),
        secrets: Arc::new(secrets(&store)),
        clock,
        metrics,
        ready: Arc::new(engine),
        settings,
        store,
    })
}

pub async fn send(router: &Router, request: Request<Body>) -> Answer {
    let response = router.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let is_stream = parts
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    // A stream has no end, so its body is not collected.
    let bytes = if is_stream { Bytes::new() } else { body.collect().await.unwrap().to_bytes() };
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Answer { status: parts.status, headers: parts.headers, text }
}

pub fn request(
    method: Method,
    path: &str,
    token: Option<&str>,
    body: Option<Value>,
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    match body {
        Some(body) => {
            let request = request.header(header::CONTENT_TYPE, "application/json");
            request.body(Body::from(body.to_string())).unwrap()
        }
        None => request.body(Body::empty()).unwrap(),
    }
}

/// True if the next run time of a job is after `after` and at most `secs` seconds later. Times are
/// in seconds since the start of the test.
pub fn runs_within(job: &Value, after: i64, secs: i64) -> bool {
    let next: Timestamp = job["next_run_at"].as_str().unwrap().parse().unwrap();
    at(after) < next && next <= at(after + secs)
}

/// Returns the path of a job, followed by `below`.
pub fn job_path(job: &Value, below: &str) -> String {
    format!("/api/v1/jobs/{}{below}", job["id"].as_str().unwrap())
}

/// Returns a job document with the executor `noop` and additional fields.
pub fn noop(more: Value) -> Value {
    let mut document = json!({"executor_type": "noop"});
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    document
}
