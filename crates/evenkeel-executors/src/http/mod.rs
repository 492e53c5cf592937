//! The executor that makes HTTP calls.

mod answer;
mod body;
mod call;
mod journey;
mod settings;
mod sign;
mod stamp;
mod status;
mod tls;
mod url;

use std::time::Duration;

use async_trait::async_trait;
use evenkeel_core::chain::Again;
use evenkeel_core::executor::{ConfigField, ExecutorDeclaration, FieldKind};
use evenkeel_core::{Definition, TenantNo};
use evenkeel_outbound::Outbound;
use evenkeel_outbound::reqwest::{Response, header::HeaderMap};
use serde_json::Value;

use crate::template::Values;
use crate::{CancelReason, ConfigFault, Executor, Invocation, Report, interrupted};
use answer::Answered;
use call::{Call, Filled};
use journey::Journey;
pub use settings::{HttpSettings, Identities, WallClock};
pub use sign::SigningKeys;
use tls::Clients;

/// Makes one HTTP call.
///
/// | field | default | |
/// |---|---|---|
/// | `url` | | may hold places like `{{payload.id}}`, but not in its scheme or host |
/// | `method` | `POST` | |
/// | `headers` | none | values may hold places |
/// | `body` | the payload | JSON whose texts may hold places; one that is nothing but `{{payload.x}}` becomes that very value |
/// | `body_text` | | instead: a text with places, sent as it is; an empty one is no body |
/// | `expected_status` | any 2xx | a status, a class like `"2xx"`, or a list |
/// | `give_up_on` | none | the same; after these there is no retry, nor after 410 |
/// | `redirects` | 5 for `GET` and `HEAD`, else 0 | how many are followed, 10 at most |
/// | `max_response_bytes` | 64 MiB | an answer is not read further; its status counts all the same |
/// | `tls.ca_pem` | | certificates to trust besides the machine's |
/// | `tls.min_version` | `"1.2"` | or `"1.3"` |
/// | `tls.identity` | | the name of a client certificate that the server's configuration holds |
/// | `tls.verify` | `true` | `false` only where the server's configuration allows it |
///
/// **Sent along** are `Idempotency-Key` (the run's id, the same for all attempts) and
/// `X-Evenkeel-Run-Id`, `-Execution-Id`, `-Attempt`, `-Fence` and `-Scheduled-At`; with signing
/// keys, `webhook-id` (the run's id, so that a retry counts as the same message), `webhook-timestamp` and `webhook-signature` of Standard
/// Webhooks; with attempt tokens, `X-Evenkeel-Callback-Token` and `-Callback-Url`; and what an earlier
/// attempt's receiver left, as `X-Evenkeel-Checkpoint`, if that is not longer than 4 KiB there.
///
/// **A redirect** to another origin is followed without the job's headers (but `Accept`,
/// `Accept-Language`, `Content-Type` and `User-Agent`), TLS options, signature and token. None is
/// followed from https to http, and none whose status is expected. An answer 301, 302 or 303 turns
/// `POST` into `GET`. The body goes along after 307 and 308, but not with a `GET` or `HEAD` to
/// another origin.
///
/// **202** means that the end comes later: the receiver reports it with the token, and the job's
/// timeout is the longest silence until then. It is an end like any other if `expected_status`
/// names 202 itself, or if no token was sent. The first 1 KiB of such an answer is kept.
///
/// **`Retry-After`** of an answer that is not expected puts the next attempt off.
///
/// The job's timeout is the longest wait for an answer's head, and then for each further piece of
/// it. Only public addresses are called, unless the settings allow more, and no proxy is used: a
/// proxy would look names up where no guard sees it.
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
            // Certificates and names of client certificates; private keys are not in jobs.
            ConfigField::public("tls"),
        ],
    )
};

impl HttpExecutor {
    /// Makes the executor.
    pub fn new(settings: HttpSettings) -> Self {
        let clients = Clients::new(
            settings.outbound.clone(),
            settings.identities.clone(),
            settings.allow_unverified_tls,
        );
        Self { settings, clients }
    }

    async fn call(&self, invocation: &Invocation) -> Answered {
        let definition = &*invocation.definition;
        let values =
            Values { id: invocation.id, fence: invocation.fence, payload: &definition.payload };
        let read = Call::parse(&definition.executor.config)
            .and_then(|call| call.fill(&values).map(|filled| (call, filled)));
        let answered = match read {
            Ok((call, filled)) => self.travel(invocation, &call, filled).await,
            // A call that can't be described can't be described better a minute later.
            Err(fault) => Err(Report { again: Again::Never, ..Report::failed(fault.to_string()) }),
        };
        answered.unwrap_or_else(Answered::Ended)
    }

    /// Calls, and calls again where redirects lead.
    async fn travel(
        &self,
        invocation: &Invocation,
        call: &Call<'_>,
        filled: Filled,
    ) -> Result<Answered, Report> {
        let definition = &*invocation.definition;
        let own = match &call.tls {
            Some(choice) => {
                Some(self.clients.of(choice, invocation.tenant).await.map_err(Report::failed)?)
            }
            None => None,
        };
        let mut journey = Journey::new(filled);
        loop {
            let mut headers = stamp::ids(invocation);
            let mut client = self.clients.shared();
            if journey.at_home() {
                stamp::proofs(&self.settings, invocation, journey.body(), &mut headers);
                client = own.as_ref().unwrap_or(client);
            }
            let response = send(client, &journey, headers, definition).await?;
            let status = response.status();
            // A redirect that the job expects is the answer it wants.
            let redirected = call.redirects > 0
                && !call.is_expected(status)
                && journey
                    .follow(status, response.headers(), call.redirects)
                    .map_err(Report::failed)?;
            if !redirected {
                let may_end_later = journey.at_home() && self.settings.attempt_tokens.is_some();
                let now = self.settings.clock.now();
                return Ok(answer::judge(call, response, definition, now, may_end_later).await);
            }
        }
    }
}

async fn send(
    client: &Outbound,
    journey: &Journey,
    headers: HeaderMap,
    definition: &Definition,
) -> Result<Response, Report> {
    let sent = client.send(journey.request(headers));
    match tokio::time::timeout(definition.timeout.into(), sent).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(Report::failed(match journey.after_redirects() {
            Some(hop) => format!("after a redirect to {hop}: {error}"),
            None => error.to_string(),
        })),
        Err(_) => Err(answer::no_answer(definition)),
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
        let answered = {
            // In a box of its own: what follows a 202 must not hold room for it.
            let mut call = Box::pin(self.call(&invocation));
            tokio::select! {
                answered = &mut call => answered,
                reason = interrupted(&cancel, &mut lease) => match last_answer(reason, call).await {
                    Some(answered) => answered,
                    None => return Report::cancelled(reason),
                },
            }
        };
        // It was sent with the call, and a run may wait for long.
        invocation.checkpoint = None;
        match answered {
            Answered::Ended(report) => report,
            Answered::Accepted(output) => Report { output, ..wait(invocation).await },
        }
    }
}

/// An answer that came while this process was frozen is here, and only has to be read.
const LAST_ANSWER: Duration = Duration::from_millis(250);

/// What the receiver has answered to a call that is interrupted because the lease ran out. The call
/// is given up after that: another node may start it soon.
async fn last_answer(
    reason: CancelReason,
    call: impl Future<Output = Answered>,
) -> Option<Answered> {
    let is_late = reason == CancelReason::LeaseLost;
    let answered = async { tokio::time::timeout(LAST_ANSWER, call).await.ok() };
    if is_late { answered.await } else { None }
}

/// Waits for the end of a run that was accepted. Whoever reports it has it stored and settles the
/// run; any other sign of life starts the silence anew.
async fn wait(mut invocation: Invocation) -> Report {
    let silence = invocation.definition.timeout;
    loop {
        tokio::select! {
            biased;
            reason = interrupted(&invocation.cancel, &mut invocation.lease) => {
                return Report::cancelled(reason);
            }
            () = invocation.wire.heard() => {}
            () = tokio::time::sleep(silence.into()) => {
                return Report::timed_out(format!(
                    "accepted with 202 and not heard of for {silence}; if 202 is this receiver's \
                     last word, list it in expected_status"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_core::lease::Fence;
    use evenkeel_core::schedule::Once;
    use evenkeel_core::{AttemptKey, JobNo, RunIds, Schedule, Span, TenantNo, Timestamp};

    use super::*;
    use crate::{Cancel, Lease, Wire, cancellation};

    fn accepted(cancel: Cancel, wire: Wire) -> Invocation {
        let definition = Definition {
            timeout: Span::from_secs(300),
            ..Definition::noop(Schedule::Once(Once::NOW))
        };
        let key = AttemptKey::regular(JobNo(7), Timestamp::from_micros(1));
        Invocation {
            key,
            id: RunIds::new(b"test").attempt_id(key),
            fence: Fence(5),
            tenant: TenantNo(1),
            started_at: Timestamp::from_micros(1),
            definition: Arc::new(definition),
            checkpoint: None,
            cancel,
            lease: Lease::endless(),
            wire,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_here_when_the_lease_ends_is_read() {
        let call = |answered_after| async move {
            tokio::time::sleep(Duration::from_millis(answered_after)).await;
            Answered::Ended(Report::completed())
        };
        for (reason, answered_after, is_read) in [
            (CancelReason::LeaseLost, 0, true),
            (CancelReason::LeaseLost, 100, true),
            (CancelReason::LeaseLost, 300, false),
            (CancelReason::Requested, 0, false),
            (CancelReason::ShuttingDown, 0, false),
        ] {
            let answered = last_answer(reason, call(answered_after)).await;
            assert_eq!(answered.is_some(), is_read, "{reason:?} {answered_after}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_sign_of_life_starts_the_silence_anew() {
        let wire = Wire::default();
        let (handle, cancel) = cancellation();
        let receiver = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(299)).await;
                wire.sign_of_life();
            }
            tokio::time::sleep(Duration::from_secs(299)).await;
            handle.cancel(CancelReason::Settled);
        };
        let (report, ()) = tokio::join!(wait(accepted(cancel, wire.clone())), receiver);
        assert_eq!(report, Report::cancelled(CancelReason::Settled));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_an_accepted_run() {
        let wire = Wire::default();
        wire.sign_of_life();
        let report = wait(accepted(Cancel::none(), wire)).await;
        assert!(report.error.unwrap().contains("not heard of for 5m; "));
    }
}
