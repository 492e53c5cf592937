//! A client of the HTTP API.

mod answer;
mod endpoint;
mod sse;
mod tls;

use std::ops::ControlFlow;
use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Method, RequestBuilder, Url};
use serde_json::Value;

use crate::failure::{Because as _, chain};
use crate::output::clean;
use crate::{Exit, Failure, Result};

pub use answer::Answer;
pub use endpoint::{Endpoint, LocalServer, find, read_local};
pub use sse::Message;
use sse::Stream;

/// The parameters of a request.
pub type Query<'a> = Vec<(&'a str, String)>;
type Parameters<'a> = [(&'a str, String)];

const EVENTS: &str = "text/event-stream";
/// Delay before the client reconnects to an event stream.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);
/// Time limit for reading one event stream. The server itself closes each stream after one hour.
const STREAM_TIMEOUT: Duration = Duration::from_secs(2 * 3600);

pub struct Client {
    http: reqwest::Client,
    endpoint: Endpoint,
}

impl Client {
    pub fn new(endpoint: Endpoint) -> Result<Self> {
        let is_local = endpoint.url.host_str().is_some_and(is_loopback);
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(&endpoint)?)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(40))
            .user_agent(concat!("evenkeel-cli/", env!("CARGO_PKG_VERSION")));
        if is_local {
            // A proxy can't reach the loopback addresses of this machine.
            builder = builder.no_proxy();
        }
        Ok(Self { http: builder.build().because("can't create the HTTP client")?, endpoint })
    }

    pub async fn get(&self, path: &[&str]) -> Result<Answer> {
        self.get_with(path, &[]).await
    }

    pub async fn get_with(&self, path: &[&str], query: &Parameters<'_>) -> Result<Answer> {
        self.send(self.request(Method::GET, path, query)).await
    }

    pub async fn post(&self, path: &[&str], body: Option<&Value>) -> Result<Answer> {
        let request = self.request(Method::POST, path, &[]);
        self.send(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    pub async fn post_with(&self, path: &[&str], query: &Parameters<'_>) -> Result<Answer> {
        self.send(self.request(Method::POST, path, query)).await
    }

    pub async fn put(&self, path: &[&str], body: &Value) -> Result<Answer> {
        self.send(self.request(Method::PUT, path, &[]).json(body)).await
    }

    /// Sends a `PATCH` request, with the header `If-Match` if an ETag is given.
    pub async fn patch(
        &self,
        path: &[&str],
        body: &Value,
        if_match: Option<&str>,
    ) -> Result<Answer> {
        let mut request = self.request(Method::PATCH, path, &[]).json(body);
        if let Some(tag) = if_match {
            request = request.header(reqwest::header::IF_MATCH, tag);
        }
        self.send(request).await
    }

    /// Sends JSON documents, one per line, with an idempotency key. Returns one result per line.
    pub async fn post_lines(&self, path: &[&str], lines: Vec<u8>, key: &str) -> Result<String> {
        let request = self
            .request(Method::POST, path, &[])
            .header(reqwest::header::CONTENT_TYPE, "application/x-ndjson")
            .header("Idempotency-Key", key)
            .body(lines);
        let (status, text) = self.fetch(request).await?;
        if status == 200 {
            Ok(text)
        } else {
            Answer::read(status, text, &self.endpoint).map(|it| it.text)
        }
    }

    pub async fn delete(&self, path: &[&str], query: &Parameters<'_>) -> Result<Answer> {
        self.send(self.request(Method::DELETE, path, query)).await
    }

    /// Reads an event stream after the event `last` until `handle` returns `Break`. If the
    /// connection is lost, reconnects and continues.
    pub async fn follow(
        &self,
        path: &[&str],
        query: &Parameters<'_>,
        mut last: Option<String>,
        mut handle: impl FnMut(&Message) -> Result<ControlFlow<()>>,
    ) -> Result {
        let mut was_connected = false;
        loop {
            match self.listen(path, query, last.as_deref()).await {
                Ok(mut stream) => {
                    was_connected = true;
                    while let Some(message) = stream.next().await {
                        last = message.id.clone().or(last);
                        if handle(&message)?.is_break() {
                            return Ok(());
                        }
                    }
                }
                // The server was reachable before, so the client reconnects after the failure.
                Err(failure) if was_connected && may_be_temporary(&failure) => {}
                Err(failure) => return Err(failure),
            }
            tokio::time::sleep(RECONNECT_DELAY).await;
        }
    }

    /// Opens an event stream that continues after the event `last`.
    async fn listen(
        &self,
        path: &[&str],
        query: &Parameters<'_>,
        last: Option<&str>,
    ) -> Result<Stream> {
        let mut request =
            self.request(Method::GET, path, query).timeout(STREAM_TIMEOUT).header(ACCEPT, EVENTS);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let kind = response.headers().get(reqwest::header::CONTENT_TYPE);
        if status == 200 && kind.is_some_and(|kind| kind.as_bytes().starts_with(EVENTS.as_bytes()))
        {
            return Ok(Stream::new(response));
        }
        let text = response.text().await.map_err(|error| self.unreachable(&error))?;
        let answer = Answer::read(status, text, &self.endpoint)?;
        Err(Failure::failed(format!("the server sent no stream: {}", clean(&answer.text))))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Answer> {
        let (status, text) = self.fetch(request).await?;
        Answer::read(status, text, &self.endpoint)
    }

    async fn fetch(&self, request: RequestBuilder) -> Result<(u16, String)> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let text = response.text().await.map_err(|error| self.unreachable(&error))?;
        Ok((status, text))
    }

    fn request(&self, method: Method, path: &[&str], query: &Parameters<'_>) -> RequestBuilder {
        let mut url = self.endpoint.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // Each path segment is escaped separately, so that a job name cannot change the path.
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        match &self.endpoint.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let url = &self.endpoint.url;
        let why = if error.is_timeout() {
            "it did not answer in time".into()
        } else {
            // The message of a `reqwest::Error` repeats the address, so only its causes are shown.
            std::error::Error::source(error).map_or_else(|| error.to_string(), chain)
        };
        let failure =
            Failure::new(Exit::Unreachable, format!("no server can be reached at {url}: {why}"));
        if self.endpoint.is_local {
            failure.or_else("start it with `evenkeel serve`, or name another with --url")
        } else {
            failure.or_else("check --url or EVENKEEL_URL, and that the server runs")
        }
    }
}

/// Returns true if a request that failed with `failure` may succeed later.
fn may_be_temporary(failure: &Failure) -> bool {
    let status = failure.problem.as_ref().and_then(|problem| problem["status"].as_u64());
    failure.exit == Exit::Unreachable || status.is_some_and(|status| status >= 500)
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn read_url(text: &str) -> Result<Url> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let valid = url.filter(|url| url.has_host() && url.username().is_empty());
    valid.ok_or_else(|| {
        Failure::usage(format!("{text:?} is not the address of a server"))
            .or_else("write it like http://127.0.0.1:8060")
    })
}
