//! The executor that makes one HTTP call.

mod call;

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::{Definition, RunKey, lease::Fence};
use evenkeel_outbound::Outbound;
use evenkeel_outbound::reqwest;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Request, Response};
use serde_json::Value;

use crate::tail::Tail;
use crate::{ConfigFault, Executor, Invocation, Report, interrupted};
use call::Call;

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
    outbound: Outbound,
}

/// No answer is read further than this: its status is known, and its end could be far.
const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;

impl HttpExecutor {
    /// Makes the executor.
    pub const fn new(outbound: Outbound) -> Self {
        Self { outbound }
    }

    async fn call(&self, key: RunKey, fence: Fence, definition: &Definition) -> Report {
        let call = match Call::parse(&definition.executor.config) {
            Ok(call) => call,
            Err(fault) => return Report::failed(fault.to_string()),
        };
        let silence = Duration::from(definition.timeout);
        let mut request = Request::new(call.method.clone(), call.url.clone());
        *request.headers_mut() = headers(key, fence);
        if !definition.payload.is_null() {
            request
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(definition.payload.to_string().into());
        }
        // After the content type, which a job may know better.
        request.headers_mut().extend(call.headers.clone());
        let response = match tokio::time::timeout(silence, self.outbound.send(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Report::failed(error.to_string()),
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

    fn check(&self, config: &Value, _payload: &Value) -> Result<(), ConfigFault> {
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
                let error = format!("the answer ({status}) broke off: {}", error.without_url());
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
