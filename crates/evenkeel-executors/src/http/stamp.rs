//! What every call carries besides the job's own.

use evenkeel_outbound::reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::settings::HttpSettings;
use crate::Invocation;

/// What the called side can tell a repeated call by. Harmless in the hands of others.
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

/// Proofs and rights, for the job's own receiver alone: the signature of Standard Webhooks, whose
/// id is the same for all attempts of a run, and the token to report back with.
pub(super) fn proofs(
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

/// JSON as a header can hold it: what is not printable ASCII is written as `\uxxxx`, line breaks
/// between its parts as blanks. `None` if it is no JSON, or too long for what servers take as a
/// header.
fn header_json(checkpoint: &[u8]) -> Option<String> {
    const BYTES_MAX: usize = 4096;
    let text = std::str::from_utf8(checkpoint).ok().filter(|text| text.len() <= BYTES_MAX)?;
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let mut header = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => header.push(c),
            // JSON has none inside its texts.
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
    // Ids, numbers, times, Base64 and URLs are always legal in a header.
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_fits_into_a_header_and_reads_back() {
        let text = "{\"name\":\"grüße 😀 \u{7f}\",\r\n\t\"n\":[1,null]}";
        let header = header_json(text.as_bytes()).unwrap();
        assert!(header.is_ascii() && HeaderValue::from_str(&header).is_ok(), "{header}");
        let read: serde_json::Value = serde_json::from_str(&header).unwrap();
        assert_eq!(read, serde_json::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(header_json(b"not json"), None);
        assert_eq!(header_json(&[b'1'; 5000]), None);
        // What counts is its length in the header.
        let text = |n: usize| format!("\"{}\"", "ü".repeat(n));
        assert_eq!(header_json(text(682).as_bytes()).unwrap().len(), 4094);
        assert_eq!(header_json(text(683).as_bytes()), None);
    }
}
