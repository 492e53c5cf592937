//! The executor that makes HTTP calls. `docs/executors.md` describes the configuration of HTTP
//! jobs, the request that is sent, and which responses count as a success.

mod attempt_headers;
mod body;
mod call;
mod redirects;
mod response;
mod settings;
mod sign;
mod status;
mod tls;
mod url;

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::executor::{ConfigField, ExecutorDeclaration, FieldKind};
use evenkeel_core::{Definition, TenantNo};
use evenkeel_outbound::Outbound;
use evenkeel_outbound::reqwest::{Response, header::HeaderMap};
use serde_json::Value;

use crate::template::Values;
use crate::{CancelReason, ConfigFault, Executor, Invocation, Report, interrupted};
use call::{Call, Filled};
use redirects::RedirectedCall;
use response::CallResult;
pub use settings::{HttpSettings, Identities, WallClock};
pub use sign::SigningKeys;
use tls::Clients;

/// Makes one HTTP call per attempt.
///
/// - The job's timeout limits the wait for the response head, and then for each further piece of
///   the response body.
/// - A response 202 means that the receiver will report the result later, with the token of the
///   call. After a 202, the job's timeout limits the time between heartbeats of the receiver.
/// - A redirect to another origin drops signature, token, TLS options and most headers of the job.
/// - Calls go to public addresses only, unless the settings allow other addresses. No proxy is
///   used, because a proxy would resolve host names where the address guard cannot check the
///   result.
#[derive(Debug)]
pub struct HttpExecutor {
    settings: HttpSettings,
    clients: Clients,
}

pub static DECLARATION: ExecutorDeclaration = ExecutorDeclaration {
    aliases: &["http_callback"],
    dedup_field: Some("url"),
    ..ExecutorDeclaration::new(
        "http",
        &[
            ConfigField::new("url", FieldKind::Url).with_secrets(),
            ConfigField::public("method"),
            ConfigField::new("headers", FieldKind::HiddenValues).with_secrets(),
            ConfigField::new("body", FieldKind::Hidden).with_secrets(),
            ConfigField::new("body_text", FieldKind::Hidden).with_secrets(),
            ConfigField::public("expected_status"),
            ConfigField::public("give_up_on"),
            ConfigField::public("redirects"),
            ConfigField::public("max_response_bytes"),
            // Viewers may see the TLS options, because the configuration of a job holds no private
            // keys.
            ConfigField::public("tls"),
        ],
    )
};

impl HttpExecutor {
    pub fn new(settings: HttpSettings) -> Self {
        let HttpSettings { outbound, identities, allow_unverified_tls, .. } = &settings;
        let clients = Clients::new(outbound.clone(), identities.clone(), *allow_unverified_tls);
        Self { settings, clients }
    }

    async fn call(&self, invocation: &Invocation) -> CallResult {
        let read = Call::parse(&invocation.definition.executor.config)
            .and_then(|call| call.fill(&Values::of(invocation)).map(|filled| (call, filled)));
        let result = match read {
            Ok((call, filled)) => self.follow_redirects(invocation, &call, filled).await,
            // A retry would have the same invalid configuration, so there is no retry.
            Err(fault) => Err(Report::failed_for_good(fault)),
        };
        result.unwrap_or_else(CallResult::Ended)
    }

    /// Calls the URL, and then each URL to which a response redirects.
    async fn follow_redirects(
        &self,
        invocation: &Invocation,
        call: &Call<'_>,
        filled: Filled,
    ) -> Result<CallResult, Report> {
        let definition = &*invocation.definition;
        let own = match &call.tls {
            Some(choice) => {
                Some(self.clients.of(choice, invocation.tenant).await.map_err(Report::failed)?)
            }
            None => None,
        };
        let mut request = RedirectedCall::new(filled);
        loop {
            let mut headers = attempt_headers::ids(invocation);
            let mut client = &self.clients.shared;
            if request.is_first_origin {
                let body = request.body();
                attempt_headers::credentials(&self.settings, invocation, body, &mut headers);
                client = own.as_ref().unwrap_or(client);
            }
            let response = send(client, &request, headers, definition).await?;
            let status = response.status();
            // A redirect counts as a success if the job expects its status.
            let redirected = call.redirects > 0
                && !call.is_expected(status)
                && request
                    .follow(status, response.headers(), call.redirects)
                    .map_err(Report::failed)?;
            if !redirected {
                let may_end_later =
                    request.is_first_origin && self.settings.attempt_tokens.is_some();
                let now = self.settings.clock.now();
                return Ok(response::judge(call, response, definition, now, may_end_later).await);
            }
        }
    }
}

async fn send(
    client: &Outbound,
    request: &RedirectedCall,
    headers: HeaderMap,
    definition: &Definition,
) -> Result<Response, Report> {
    let sent = client.send(request.request(headers));
    match tokio::time::timeout(definition.timeout.into(), sent).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(Report::failed(match request.after_redirects() {
            Some(hop) => format!("after a redirect to {hop}: {error}"),
            None => error.to_string(),
        })),
        Err(_) => Err(response::no_response(definition)),
    }
}

#[async_trait]
impl Executor for HttpExecutor {
    fn declaration(&self) -> &'static ExecutorDeclaration {
        &DECLARATION
    }

    fn check(&self, tenant: TenantNo, config: &Value, payload: &Value) -> Result<(), ConfigFault> {
        let call = Call::parse(config)?;
        call.check(payload)?;
        call.tls.as_ref().map_or(Ok(()), |choice| self.clients.options(choice, tenant).map(drop))
    }

    async fn run(&self, mut invocation: Invocation) -> Report {
        let cancel = invocation.cancel.clone();
        let mut lease = invocation.lease.clone();
        let result = {
            // The HTTP call is boxed, so that its memory is freed during the wait after a 202.
            let mut call = Box::pin(self.call(&invocation));
            tokio::select! {
                result = &mut call => result,
                reason = interrupted(&cancel, &mut lease) => match last_response(reason, call).await {
                    Some(result) => result,
                    None => return Report::cancelled(reason),
                },
            }
        };
        // The HTTP call has already sent the checkpoint, so the memory of the checkpoint is freed
        // before the long wait for the receiver.
        invocation.checkpoint = None;
        match result {
            CallResult::Ended(report) => report,
            CallResult::Accepted(output) => Report { output, ..wait_for_end(invocation).await },
        }
    }
}

/// Maximum time for which an interrupted HTTP call reads a response that has already arrived.
const LAST_RESPONSE: Duration = Duration::from_millis(250);

/// Reads the response of an HTTP call that was interrupted because the node lost its lease. When a
/// frozen process resumes, its lease is lost, but the response may already have arrived. The
/// function waits no longer than [`LAST_RESPONSE`], because another node may make the call soon.
async fn last_response(
    reason: CancelReason,
    call: impl Future<Output = CallResult>,
) -> Option<CallResult> {
    match reason {
        CancelReason::LeaseLost => tokio::time::timeout(LAST_RESPONSE, call).await.ok(),
        _ => None,
    }
}

/// Waits for the result of an attempt whose HTTP call the receiver has answered with a 202. The API
/// stores the result that the receiver reports, and cancels this wait with
/// [`CancelReason::EndReported`]. Each heartbeat of the receiver restarts the job's timeout.
async fn wait_for_end(mut invocation: Invocation) -> Report {
    let timeout = invocation.definition.timeout;
    loop {
        tokio::select! {
            biased;
            reason = interrupted(&invocation.cancel, &mut invocation.lease) => {
                return Report::cancelled(reason);
            }
            () = invocation.live.next_heartbeat() => {}
            () = tokio::time::sleep(timeout.into()) => {
                return Report::timed_out(format!(
                    "the receiver accepted with 202 and sent no heartbeat for {timeout}; if its 202 means \
                     success, list 202 in expected_status"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::schedule::Once;
    use evenkeel_core::{Schedule, Span};

    use super::*;
    use crate::{Cancel, LiveReport, cancellation};

    fn accepted(cancel: Cancel, live: LiveReport) -> Invocation {
        let definition = Definition {
            timeout: Span::from_secs(300),
            ..Definition::noop(Schedule::Once(Once::NOW))
        };
        Invocation { cancel, live, ..Invocation::example(definition) }
    }

    #[tokio::test(start_paused = true)]
    async fn lost_lease_still_reads_a_response_that_has_arrived() {
        let call = |after_ms| async move {
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            CallResult::Ended(Report::completed())
        };
        for (reason, after_ms, is_read) in [
            (CancelReason::LeaseLost, 0, true),
            (CancelReason::LeaseLost, 100, true),
            (CancelReason::LeaseLost, 300, false),
            (CancelReason::Requested, 0, false),
            (CancelReason::ShuttingDown, 0, false),
        ] {
            let result = last_response(reason, call(after_ms)).await;
            assert_eq!(result.is_some(), is_read, "{reason:?} {after_ms}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_heartbeat_restarts_the_timeout() {
        let live = LiveReport::default();
        let (handle, cancel) = cancellation();
        let receiver = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(299)).await;
                live.heartbeat();
            }
            tokio::time::sleep(Duration::from_secs(299)).await;
            handle.cancel(CancelReason::EndReported);
        };
        let (report, ()) = tokio::join!(wait_for_end(accepted(cancel, live.clone())), receiver);
        assert_eq!(report, Report::cancelled(CancelReason::EndReported));
    }

    #[tokio::test(start_paused = true)]
    async fn accepted_attempt_without_heartbeats_times_out() {
        let live = LiveReport::default();
        live.heartbeat();
        let report = wait_for_end(accepted(Cancel::none(), live)).await;
        assert!(report.error.unwrap().contains("no heartbeat for 5m; "));
    }
}
