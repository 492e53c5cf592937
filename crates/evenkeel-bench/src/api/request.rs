//! Sends requests over keep-alive connections and measures their latency.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use evenkeel_core::Span;
use evenkeel_engine::Clock;
use reqwest::{Client, Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use super::report::Figures;
use crate::report::Quantiles;
use crate::server::{Server, http_client};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The largest page size that the API allows.
const PAGE_MAX: u64 = 1000;
/// Maximum number of cursors that [`Connections::page_past`] returns.
const CURSORS: usize = 50;

pub(super) struct Request {
    method: Method,
    path: String,
    body: Option<(&'static str, String)>,
}

impl Request {
    pub(super) fn get(path: String) -> Self {
        Self { method: Method::GET, path, body: None }
    }

    /// Returns a request that posts a body with this content type.
    pub(super) fn post(path: &str, content_type: &'static str, body: String) -> Self {
        Self { method: Method::POST, path: path.into(), body: Some((content_type, body)) }
    }

    pub(super) fn bulk(lines: String) -> Self {
        Self::post("/api/v1/jobs/bulk", "application/x-ndjson", lines)
    }
}

/// Connections to one server, each with a separate HTTP client.
pub(super) struct Connections {
    clients: Vec<Client>,
    url: Arc<str>,
    token: Arc<str>,
    clock: Arc<dyn Clock>,
}

#[derive(Deserialize)]
struct Line {
    status: u16,
}

impl Connections {
    pub(super) fn open(
        server: &Server,
        count: usize,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let clients = (0..count).map(|_| http_client(REQUEST_TIMEOUT)).collect::<Result<_, _>>()?;
        let (url, token) = (server.url.as_str().into(), server.token.as_str().into());
        Ok(Self { clients, url, token, clock })
    }

    /// Sends requests on all connections for the duration `time`. Returns an error at the first
    /// response without a success status. `cpu` returns the CPU seconds used so far.
    pub(super) async fn send_for(
        &self,
        time: Duration,
        cpu: impl Fn() -> f64,
        make: impl Fn(usize, u64) -> Request + Send + Sync + 'static,
    ) -> anyhow::Result<Figures> {
        let make = Arc::new(make);
        let (began, cpu_before) = (self.clock.monotonic(), cpu());
        let mut tasks = Vec::with_capacity(self.clients.len());
        for (connection, client) in self.clients.iter().cloned().enumerate() {
            let (make, clock) = (Arc::clone(&make), Arc::clone(&self.clock));
            let (url, token) = (Arc::clone(&self.url), Arc::clone(&self.token));
            tasks.push(tokio::spawn(async move {
                let (mut micros, mut operations, mut n) = (Vec::new(), 0, 0);
                // Each connection sends at least one request, even if `time` is zero.
                while n == 0 || clock.monotonic() - began < time {
                    let request = make(connection, n);
                    let sent_at = clock.monotonic();
                    let (status, text) = exchange(&client, &url, &token, request).await?;
                    micros.push(Span::from(clock.monotonic() - sent_at).as_micros());
                    operations += done(status, &text)?;
                    n += 1;
                }
                anyhow::Ok((micros, operations))
            }));
        }
        let (mut micros, mut done) = (Vec::new(), 0);
        for task in tasks {
            let (latencies, operations) = task.await??;
            micros.extend(latencies);
            done += operations;
        }
        let seconds = (self.clock.monotonic() - began).as_secs_f64();
        Ok(Figures {
            requests: micros.len() as u64,
            done,
            per_s: done as f64 / seconds.max(f64::MIN_POSITIVE),
            latency_ms: Quantiles::of_micros(micros).unwrap_or_default(),
            cpu_us: (cpu() - cpu_before) * 1_000_000.0 / done.max(1) as f64,
        })
    }

    async fn send(&self, request: Request) -> anyhow::Result<(StatusCode, String)> {
        let client = self.clients.first().context("no connection is open")?;
        exchange(client, &self.url, &self.token, request).await
    }

    /// Lists jobs page by page until `depth` jobs are listed. Returns the number of listed jobs and
    /// the last [`CURSORS`] cursors.
    pub(super) async fn page_past(&self, depth: u64) -> anyhow::Result<(u64, Vec<String>)> {
        let mut cursors: Vec<String> = Vec::new();
        let mut passed = 0;
        while passed < depth {
            let limit = PAGE_MAX.min(depth - passed);
            let after =
                cursors.last().map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
            let request = Request::get(format!("/api/v1/jobs?limit={limit}{after}"));
            let (status, text) = self.send(request).await?;
            ensure!(status.is_success(), "{status}: {text}");
            let page: Value = serde_json::from_str(&text)?;
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            passed += page["jobs"].as_array().map_or(0, Vec::len) as u64;
            if cursors.len() == CURSORS {
                cursors.remove(0);
            }
            cursors.push(cursor.into());
        }
        Ok((passed, cursors))
    }

    /// True if the server supports bulk creation.
    pub(super) async fn has_bulk(&self, job: &Value) -> anyhow::Result<bool> {
        let (status, _) = self.send(Request::bulk(format!("{job}\n"))).await?;
        Ok(!matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED))
    }
}

async fn exchange(
    client: &Client,
    url: &str,
    token: &str,
    request: Request,
) -> anyhow::Result<(StatusCode, String)> {
    let Request { method, path, body } = request;
    let mut builder = client.request(method, format!("{url}{path}")).bearer_auth(token);
    if let Some((kind, body)) = body {
        builder = builder.header(reqwest::header::CONTENT_TYPE, kind).body(body);
    }
    let response = builder.send().await?;
    let status = response.status();
    Ok((status, response.text().await?))
}

/// Returns the number of operations that a response confirms.
fn done(status: StatusCode, text: &str) -> anyhow::Result<u64> {
    ensure!(status.is_success(), "the server answered {status}: {}", shortened(text));
    // A response of a single line confirms one operation.
    if text.lines().nth(1).is_none() {
        return Ok(1);
    }
    let mut count = 0;
    for line in text.lines() {
        let answer: Line = serde_json::from_str(line)?;
        ensure!(answer.status == 201, "a line of a bulk request failed: {}", shortened(line));
        count += 1;
    }
    Ok(count)
}

fn shortened(text: &str) -> String {
    text.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn done_counts_each_line_of_a_bulk_response() {
        let ok = StatusCode::OK;
        assert_eq!(done(ok, "{\"id\": 1}").unwrap(), 1);
        let lines = "{\"line\": 1, \"status\": 201}\n{\"line\": 2, \"status\": 201}\n";
        assert_eq!(done(ok, lines).unwrap(), 2);
    }

    #[test]
    fn done_fails_on_a_refused_request() {
        assert!(done(StatusCode::SERVICE_UNAVAILABLE, "").is_err());
        let lines = "{\"line\": 1, \"status\": 201}\n{\"line\": 2, \"status\": 409}\n";
        assert!(done(StatusCode::OK, lines).is_err());
    }
}
