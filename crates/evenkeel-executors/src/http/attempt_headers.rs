//! The headers that Evenkeel adds to each HTTP call.

use evenkeel_outbound::reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::settings::HttpSettings;
use crate::Invocation;

/// Returns the headers that identify the attempt. The ids in these headers are not secret, so a
/// redirect to another origin keeps the headers.
pub(super) fn ids(invocation: &Invocation) -> HeaderMap {
    let (key, id) = (invocation.key, invocation.id);
    let run_id = id.run_id().to_string();
    let mut headers = HeaderMap::with_capacity(16);
    put(&mut headers, "idempotency-key", run_id.clone());
    put(&mut headers, "x-evenkeel-run-id", run_id);
    put(&mut headers, "x-evenkeel-execution-id", id.to_string());
    put(&mut headers, "x-evenkeel-attempt", key.attempt.from_one().to_string());
    put(&mut headers, "x-evenkeel-fence", invocation.fence.0.to_string());
    put(&mut headers, "x-evenkeel-scheduled-at", key.scheduled_at.to_string());
    headers
}

/// Adds the headers that only the receiver named by the job gets: the signature of Standard
/// Webhooks, the checkpoint, and the token for callbacks. The message id of the signature is the
/// run's id, so retries count as the same message.
pub(super) fn credentials(
    settings: &HttpSettings,
    invocation: &Invocation,
    body: &[u8],
    headers: &mut HeaderMap,
) {
    let id = invocation.id;
    let message = id.run_id().to_string();
    if let Some(keys) = &settings.signing {
        let seconds = settings.clock.now().as_micros().div_euclid(1_000_000);
        let signature = keys.sign(invocation.tenant, &message, seconds, body);
        put(headers, "webhook-id", message);
        put(headers, "webhook-timestamp", seconds.to_string());
        put(headers, "webhook-signature", signature);
    }
    if let Some(checkpoint) = invocation.checkpoint.as_deref().and_then(header_json) {
        put(headers, "x-evenkeel-checkpoint", checkpoint);
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

/// Encodes a JSON checkpoint for a header: characters other than printable ASCII become `\uxxxx`,
/// tabs and line breaks become spaces. Returns `None` if the checkpoint is not JSON, or if it is
/// longer than 4 KiB, because not all servers accept longer headers.
fn header_json(checkpoint: &[u8]) -> Option<String> {
    const BYTES_MAX: usize = 4096;
    let text = std::str::from_utf8(checkpoint).ok().filter(|text| text.len() <= BYTES_MAX)?;
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let mut header = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => header.push(c),
            // In JSON, raw tabs and line breaks only separate tokens, because strings escape them.
            '\t' | '\n' | '\r' => header.push(' '),
            _ => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    header.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    Some(header).filter(|header| header.len() <= BYTES_MAX)
}

fn put(headers: &mut HeaderMap, name: &'static str, text: String) {
    // Ids, numbers, times, Base64 and URLs are always legal header values.
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoint_survives_the_encoding_as_a_header() {
        let text = "{\"name\":\"grüße 😀 \u{7f}\",\r\n\t\"n\":[1,null]}";
        let header = header_json(text.as_bytes()).unwrap();
        assert!(header.is_ascii() && HeaderValue::from_str(&header).is_ok(), "{header}");
        let read: serde_json::Value = serde_json::from_str(&header).unwrap();
        assert_eq!(read, serde_json::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(header_json(b"not json"), None);
        assert_eq!(header_json(&[b'1'; 5000]), None);
        // The limit of 4 KiB also applies to the encoded JSON.
        let text = |n: usize| format!("\"{}\"", "ü".repeat(n));
        assert_eq!(header_json(text(682).as_bytes()).unwrap().len(), 4094);
        assert_eq!(header_json(text(683).as_bytes()), None);
    }
}
