//! A client of the HTTP interface.

mod answer;
mod place;
mod tls;

use std::time::Duration;

use reqwest::{Method, Url};
use serde_json::Value;

use crate::failure::chain;
use crate::{Exit, Failure};

pub use answer::Answer;
pub use place::{LocalServer, Place, find, read_local};

/// Talks to one server.
pub struct Client {
    http: reqwest::Client,
    place: Place,
}

impl Client {
    /// A client of the server at `place`.
    pub fn new(place: Place) -> Result<Self, Failure> {
        let is_local = place.url.host_str().is_some_and(is_loopback);
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(&place)?)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(40))
            .user_agent(concat!("evenkeel-cli/", env!("CARGO_PKG_VERSION")));
        if is_local {
            // A proxy cannot reach this machine's own addresses.
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| Failure::because("the HTTP client can't be made", &error))?;
        Ok(Self { http, place })
    }

    /// Asks for something.
    pub async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Answer, Failure> {
        self.send(Method::GET, path, query, None).await
    }

    /// Wants something done.
    pub async fn post(&self, path: &[&str], body: Option<&Value>) -> Result<Answer, Failure> {
        self.send(Method::POST, path, &[], body).await
    }

    /// Wants something gone.
    pub async fn delete(&self, path: &[&str]) -> Result<Answer, Failure> {
        self.send(Method::DELETE, path, &[], None).await
    }

    async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let mut url = self.place.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // Piece by piece, so that nobody's name of a job becomes a path.
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.http.request(method, url);
        if let Some(token) = &self.place.token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request
                .header(reqwest::header::CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let text = response.text().await.map_err(|error| self.unreachable(&error))?;
        Answer::read(status, text, &self.place)
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let url = &self.place.url;
        let why = if error.is_timeout() {
            "it did not answer in time".into()
        } else {
            // Its own message repeats the address.
            std::error::Error::source(error).map_or_else(|| error.to_string(), chain)
        };
        let failure =
            Failure::new(Exit::Unreachable, format!("no server can be reached at {url}: {why}"));
        if self.place.is_local {
            failure.or_else("start it with `evenkeel serve`, or name another with --url")
        } else {
            failure.or_else("check --url or EVENKEEL_URL, and that the server runs")
        }
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// Reads the address of a server.
fn read_url(text: &str) -> Result<Url, Failure> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let good = url.filter(|url| url.has_host() && url.username().is_empty());
    good.ok_or_else(|| {
        Failure::usage(format!("{text:?} is not the address of a server"))
            .or_else("write it like http://127.0.0.1:8060")
    })
}
