//! The executor that makes one HTTP call.

mod call;
mod guard;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{Definition, RunKey, lease::Fence};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, redirect};
use rustls::RootCertStore;
use rustls_platform_verifier::BuilderVerifierExt;
use serde_json::Value;

use crate::tail::Tail;
use crate::{ConfigFault, Executor, Invocation, Report, interrupted};
use call::Call;
use guard::Guard;

/// How HTTP calls are made.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Networks that are not public and may be called all the same.
    pub allow_networks: Vec<ipnet::IpNet>,
    /// How long a connection may take to be made; the job's own timeout may be shorter.
    pub connect_timeout: Duration,
    /// What calls name themselves.
    pub user_agent: String,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            allow_networks: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            user_agent: concat!("evenkeel/", env!("CARGO_PKG_VERSION")).into(),
        }
    }
}

/// An HTTP client that can't be made.
#[derive(Debug, thiserror::Error)]
pub enum HttpSetupError {
    /// Its TLS side.
    #[error("the TLS client can't be made")]
    Tls(#[from] rustls::Error),
    /// Any other side of it.
    #[error("the HTTP client can't be made")]
    Client(#[from] reqwest::Error),
}

/// Makes one HTTP call.
///
/// Its configuration is `{"url", "method": "POST", "headers": {}, "expected_status": 200}`; the last
/// may be a list and is any 2xx by default. A payload that is not null is sent as JSON. Every call
/// carries `Idempotency-Key` (the run's id, the same for all attempts) and `X-Evenkeel-Run-Id`,
/// `-Execution-Id`, `-Attempt`, `-Fence` and `-Scheduled-At`.
///
/// The job's timeout is the longest wait for the answer's head, and then for each further piece of
/// it. Redirects are answers, not followed. Only public addresses are called, unless the settings
/// allow more, and no proxy is used: a proxy would look names up where no guard sees it.
#[derive(Debug)]
pub struct HttpExecutor {
    client: Client,
    guard: Guard,
    /// Why no https call can work, if so. Plain calls do, so it is no reason not to start.
    tls_fault: Option<rustls::Error>,
}

/// No answer is read further than this: its status is known, and its end could be far.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

impl HttpExecutor {
    /// Makes the executor with one client, whose connections all calls share.
    pub fn new(settings: HttpSettings) -> Result<Self, HttpSetupError> {
        let guard = Guard::new(settings.allow_networks);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?;
        let (tls, tls_fault) = match tls.clone().with_platform_verifier() {
            Ok(tls) => (tls, None),
            // A small container often comes without any certificates.
            Err(fault) => (tls.with_root_certificates(RootCertStore::empty()), Some(fault)),
        };
        let client = Client::builder()
            .tls_backend_preconfigured(tls.with_no_client_auth())
            .dns_resolver(guard.clone())
            .redirect(redirect::Policy::none())
            .no_proxy()
            .retry(reqwest::retry::never())
            .connect_timeout(settings.connect_timeout)
            // Shorter than what servers usually keep: a connection closed under a call fails it.
            .pool_idle_timeout(Duration::from_secs(30))
            .user_agent(settings.user_agent)
            .build()?;
        Ok(Self { client, guard, tls_fault })
    }

    async fn call(&self, key: RunKey, fence: Fence, definition: &Definition) -> Report {
        let call = match Call::parse(&definition.executor.config) {
            Ok(call) => call,
            Err(fault) => return Report::failed(fault.to_string()),
        };
        if let Err(refused) = self.guard.judge_literal(&call.url) {
            return Report::failed(refused.to_string());
        }
        if let (Some(fault), "https") = (&self.tls_fault, call.url.scheme()) {
            return Report::failed(format!("https can't be used on this node: {fault}"));
        }
        let silence = Duration::from(definition.timeout);
        let mut request =
            self.client.request(call.method.clone(), call.url.clone()).headers(headers(key, fence));
        if !definition.payload.is_null() {
            request = request
                .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
                .body(definition.payload.to_string());
        }
        // After the content type, which a job may know better.
        request = request.headers(call.headers.clone());
        let response = match tokio::time::timeout(silence, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Report::failed(describe(error)),
            Err(_) => return no_answer(definition),
        };
        judge(&call, response, definition).await
    }
}

#[async_trait]
impl Executor for HttpExecutor {
    fn kind(&self) -> &'static str {
        "http"
    }

    fn check(&self, config: &Value) -> Result<(), ConfigFault> {
        Call::parse(config).map(drop)
    }

    async fn run(&self, invocation: Invocation) -> Report {
        let Invocation { key, fence, definition, cancel, mut lease, .. } = invocation;
        tokio::select! {
            report = self.call(key, fence, &definition) => report,
            reason = interrupted(&cancel, &mut lease) => Report::cancelled(reason),
        }
    }
}

/// Reads the answer to its end and says what it means.
async fn judge(call: &Call, mut response: Response, definition: &Definition) -> Report {
    let status = response.status();
    let (mut body, mut read) = (Tail::default(), 0);
    while read < ANSWER_BYTES_MAX {
        match tokio::time::timeout(definition.timeout.into(), response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                read += chunk.len() as u64;
                body.push(&chunk);
            }
            Ok(Ok(None)) => break,
            Ok(Err(error)) => {
                let error = format!("the answer ({status}) broke off: {}", describe(error));
                return Report { output: body.into_text(), ..Report::failed(error) };
            }
            Err(_) => return Report { output: body.into_text(), ..no_answer(definition) },
        }
    }
    let report = if call.is_expected(status) {
        Report::completed()
    } else {
        Report::failed(format!("the answer was {status}"))
    };
    Report { output: body.into_text(), ..report }
}

fn no_answer(definition: &Definition) -> Report {
    Report::timed_out(format!("no answer for {}", definition.timeout))
}

/// What the called side can tell a repeated call by.
fn headers(key: RunKey, fence: Fence) -> HeaderMap {
    let run_id = key.run_id().to_string();
    let texts = [
        ("idempotency-key", run_id.clone()),
        ("x-evenkeel-run-id", run_id),
        ("x-evenkeel-execution-id", key.execution_id().to_string()),
        ("x-evenkeel-attempt", key.attempt.to_string()),
        ("x-evenkeel-fence", fence.0.to_string()),
        ("x-evenkeel-scheduled-at", key.scheduled_at.to_string()),
    ];
    let mut headers = HeaderMap::with_capacity(texts.len());
    for (name, text) in texts {
        // Ids, numbers and times are always legal in a header.
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers
}

/// An error with all its causes. Without the URL, which may hold a secret.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let message = source.to_string();
        // Some layers repeat what they wrap.
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = source.source();
    }
    text
}
