//! Servers and executors for the HTTP tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, Uri};
use axum::routing::any;
use evenkeel_core::TenantNo;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{Executor, HttpExecutor, HttpSettings, Invocation};
use evenkeel_outbound::{Outbound, OutboundSettings};
use serde_json::{Value, json};

use crate::support::{invocation, with};

pub fn settings(allow_networks: &[&str]) -> HttpSettings {
    let allow_networks = allow_networks.iter().map(|net| net.parse().unwrap()).collect();
    let settings = OutboundSettings { allow_networks, ..OutboundSettings::default() };
    HttpSettings::new(Outbound::new(settings).unwrap())
}

/// Returns settings that allow calls to this machine.
pub fn local_settings() -> HttpSettings {
    settings(&["127.0.0.0/8", "::1/128"])
}

pub fn executor(allow_networks: &[&str]) -> HttpExecutor {
    HttpExecutor::new(settings(allow_networks))
}

/// Returns an executor that may call this machine.
pub fn local() -> HttpExecutor {
    HttpExecutor::new(local_settings())
}

pub async fn serve(router: Router) -> SocketAddr {
    serve_at("127.0.0.1", router).await
}

pub async fn serve_at(ip: &str, router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind((ip, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

pub async fn counting() -> (SocketAddr, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let count = any(move || async move {
        counter.fetch_add(1, Ordering::SeqCst);
    });
    (serve(Router::new().route("/", count)).await, calls)
}

pub fn call(url: String) -> Invocation {
    invocation("http", json!({"url": url}))
}

pub async fn echo(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> String {
    let headers: serde_json::Map<String, Value> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().into()))
        .collect();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let uri = uri.to_string();
    json!({"method": method.as_str(), "uri": uri, "headers": headers, "body": body}).to_string()
}

/// Returns the request that an echoing server got from this executor.
pub async fn echoed_by(executor: &HttpExecutor, config: Value, payload: Value) -> Value {
    assert_eq!(executor.check(TenantNo(1), &config, &payload), Ok(()));
    let invocation = with(invocation("http", config), |definition| definition.payload = payload);
    let report = executor.run(invocation).await;
    assert_eq!(report.outcome, Outcome::Completed, "{report:?}");
    serde_json::from_str(&report.output.unwrap()).unwrap()
}
