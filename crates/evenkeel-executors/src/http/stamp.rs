//! What every call carries besides the job's own.

use evenkeel_outbound::reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::settings::HttpSettings;
use crate::Invocation;

/// What the called side can tell a repeated call by. Harmless in the hands of others.
pub(super) fn ids(invocation: &Invocation) -> HeaderMap {
    let key = invocation.key;
    let run_id = key.run_id().to_string();
    let mut headers = HeaderMap::with_capacity(16);
    put(&mut headers, "idempotency-key", run_id.clone());
    put(&mut headers, "x-evenkeel-run-id", run_id);
    put(&mut headers, "x-evenkeel-execution-id", key.execution_id().to_string());
    put(&mut headers, "x-evenkeel-attempt", key.attempt.to_string());
    put(&mut headers, "x-evenkeel-fence", invocation.fence.0.to_string());
    put(&mut headers, "x-evenkeel-scheduled-at", key.scheduled_at.to_string());
    headers
}

/// Proofs and rights, for the job's own receiver alone: the signature of Standard Webhooks, whose
/// id is the same when an attempt is repeated after a crash, and the token to report back with.
pub(super) fn proofs(
    settings: &HttpSettings,
    invocation: &Invocation,
    body: &[u8],
    headers: &mut HeaderMap,
) {
    let id = invocation.key.execution_id().to_string();
    if let Some(keys) = &settings.signing {
        let seconds = settings.clock.now().as_micros().div_euclid(1_000_000);
        let signature = keys.sign(invocation.tenant, &id, seconds, body);
        put(headers, "webhook-id", id.clone());
        put(headers, "webhook-timestamp", seconds.to_string());
        put(headers, "webhook-signature", signature);
    }
    if let Some(tokens) = &settings.attempt_tokens {
        let token = tokens.mint(invocation.key, invocation.fence);
        put(headers, "x-evenkeel-callback-token", token);
        if let Some(public_url) = settings.public_url.get() {
            let base = public_url.trim_end_matches('/');
            put(headers, "x-evenkeel-callback-url", format!("{base}/api/v1/runs/{id}"));
        }
    }
}

fn put(headers: &mut HeaderMap, name: &'static str, text: String) {
    // Ids, numbers, times, Base64 and URLs are always legal in a header.
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(HeaderName::from_static(name), value);
    }
}
