//! Requests over keep-alive connections.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use evenkeel_core::Span;
use evenkeel_engine::Clock;
use reqwest::{Client, Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use crate::server::Server;

/// An answer that has not come by then never will.
const PATIENCE: Duration = Duration::from_secs(60);
const BULK: &str = "/api/v1/jobs/bulk";

/// A request.
pub(super) struct Ask {
    method: Method,
    path: String,
    body: Option<(&'static str, String)>,
}

impl Ask {
    pub(super) fn get(path: String) -> Self {
        Self { method: Method::GET, path, body: None }
    }

    pub(super) fn create(path: &str, document: String) -> Self {
        let body = Some(("application/json", document));
        Self { method: Method::POST, path: path.into(), body }
    }

    pub(super) fn bulk(lines: String) -> Self {
        let body = Some(("application/x-ndjson", lines));
        Self { method: Method::POST, path: BULK.into(), body }
    }
}

/// What came of many requests.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// How long each took.
    pub micros: Vec<u64>,
    /// How many things were done by them: one each, or a line each.
    pub done: u64,
    /// From the first question to the last answer.
    pub seconds: f64,
    /// CPU time meanwhile.
    pub cpu_s: f64,
}

/// Several connections to one server, each with a client of its own.
pub(super) struct Connections {
    clients: Vec<Client>,
    url: Arc<str>,
    token: Arc<str>,
    clock: Arc<dyn Clock>,
}

/// The answer to a line of a bulk request.
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
        // The client insists on one, even for plain HTTP.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client =
            || Client::builder().no_proxy().pool_max_idle_per_host(1).timeout(PATIENCE).build();
        let clients = (0..count).map(|_| client()).collect::<Result<_, _>>()?;
        let (url, token) = (server.url.as_str().into(), server.token.as_str().into());
        Ok(Self { clients, url, token, clock })
    }

    /// Asks on all connections, again and again for this long. Every answer must be a good one.
    /// `cpu` says how many CPU seconds were used so far.
    pub(super) async fn ask(
        &self,
        time: Duration,
        cpu: impl Fn() -> f64,
        what: impl Fn(usize, u64) -> Ask + Send + Sync + 'static,
    ) -> anyhow::Result<Answers> {
        let what = Arc::new(what);
        let (began, cpu_before) = (self.clock.monotonic(), cpu());
        let mut tasks = Vec::with_capacity(self.clients.len());
        for (connection, client) in self.clients.iter().cloned().enumerate() {
            let (what, clock) = (Arc::clone(&what), Arc::clone(&self.clock));
            let (url, token) = (Arc::clone(&self.url), Arc::clone(&self.token));
            tasks.push(tokio::spawn(async move {
                let mut answers = Answers::default();
                let mut n = 0;
                // At least one, however short the time.
                while n == 0 || clock.monotonic() - began < time {
                    let ask = what(connection, n);
                    let asked = clock.monotonic();
                    let (status, text) = exchange(&client, &url, &token, ask).await?;
                    answers.micros.push(Span::from(clock.monotonic() - asked).as_micros());
                    answers.done += done(status, &text)?;
                    n += 1;
                }
                anyhow::Ok(answers)
            }));
        }
        let mut all = Answers::default();
        for task in tasks {
            let answers = task.await??;
            all.micros.extend(answers.micros);
            all.done += answers.done;
        }
        all.seconds = (self.clock.monotonic() - began).as_secs_f64();
        all.cpu_s = cpu() - cpu_before;
        Ok(all)
    }

    /// Asks once.
    pub(super) async fn once(&self, ask: Ask) -> anyhow::Result<Value> {
        let client = self.clients.first().context("there is a connection")?;
        let (status, text) = exchange(client, &self.url, &self.token, ask).await?;
        ensure!(status.is_success(), "{status}: {text}");
        Ok(serde_json::from_str(&text)?)
    }

    /// Can this server make jobs in bulk?
    pub(super) async fn has_bulk(&self, job: &Value) -> anyhow::Result<bool> {
        let client = self.clients.first().context("there is a connection")?;
        let ask = Ask::bulk(format!("{job}\n"));
        let (status, _) = exchange(client, &self.url, &self.token, ask).await?;
        Ok(!matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED))
    }
}

async fn exchange(
    client: &Client,
    url: &str,
    token: &str,
    ask: Ask,
) -> anyhow::Result<(StatusCode, String)> {
    let mut request = client.request(ask.method, format!("{url}{}", ask.path)).bearer_auth(token);
    if let Some((kind, body)) = ask.body {
        request = request.header(reqwest::header::CONTENT_TYPE, kind).body(body);
    }
    let response = request.send().await?;
    let status = response.status();
    Ok((status, response.text().await?))
}

/// How many things an answer says were done.
fn done(status: StatusCode, text: &str) -> anyhow::Result<u64> {
    ensure!(status.is_success(), "the server answered {status}: {}", shortened(text));
    // One object on one line is one thing, whatever it is.
    if text.lines().nth(1).is_none() {
        return Ok(1);
    }
    let mut count = 0;
    for line in text.lines() {
        let answer: Line = serde_json::from_str(line)?;
        ensure!(answer.status == 201, "a line was answered with {}", shortened(line));
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
    fn every_line_that_was_done_counts() {
        let ok = StatusCode::OK;
        assert_eq!(done(ok, "{\"id\": 1}").unwrap(), 1);
        let lines = "{\"line\": 1, \"status\": 201}\n{\"line\": 2, \"status\": 201}\n";
        assert_eq!(done(ok, lines).unwrap(), 2);
    }

    #[test]
    fn what_was_refused_ends_the_measurement() {
        assert!(done(StatusCode::SERVICE_UNAVAILABLE, "").is_err());
        let lines = "{\"line\": 1, \"status\": 201}\n{\"line\": 2, \"status\": 409}\n";
        assert!(done(StatusCode::OK, lines).is_err());
    }
}
