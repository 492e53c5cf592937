//! Reads a response and decides the outcome of the attempt.

use evenkeel_core::after_attempt::RetryHint;
use evenkeel_core::{Definition, Span, Timestamp};
use evenkeel_outbound::describe;
use evenkeel_outbound::reqwest::header::{HeaderMap, RETRY_AFTER};
use evenkeel_outbound::reqwest::{Response, StatusCode};

use super::call::Call;
use super::settings::timestamp;
use crate::Report;
use crate::tail::Tail;

/// The result of a call.
pub(super) enum CallResult {
    Ended(Report),
    /// The receiver accepted the work and will report the result later. `Accepted` holds at most 1
    /// KiB of the response body.
    Accepted(Option<String>),
}

/// Maximum number of bytes that are kept of a 202 response, because thousands of attempts may wait
/// for the results of their receivers.
const KEPT_BYTES_MAX: usize = 1024;

/// Reads a response and returns the result of the call. `may_end_later` is true if the receiver got
/// a token with which it can report the result later.
pub(super) async fn judge(
    call: &Call<'_>,
    response: Response,
    definition: &Definition,
    now: Timestamp,
    may_end_later: bool,
) -> CallResult {
    let status = response.status();
    let retry_after = retry_after(response.headers(), now);
    let (output, end) = read(response, call.max_response_bytes, definition).await;
    let accepted = status == StatusCode::ACCEPTED && may_end_later;
    if accepted && !call.expects_by_name(status) {
        // The receiver has accepted the work even if the rest of its response is lost, because the
        // status is in the response head.
        return CallResult::Accepted(output.map(shortened));
    }
    let is_expected = call.is_expected(status);
    let retry = match retry_after {
        _ if is_expected => RetryHint::ByPolicy,
        _ if call.gives_up_on(status) => RetryHint::Never,
        Some(wait) => RetryHint::NotBefore(wait),
        None => RetryHint::ByPolicy,
    };
    let report = match end {
        Err(report) => report,
        Ok(()) if is_expected => Report::completed(),
        Ok(()) => Report::failed(format!("the answer was {status}")),
    };
    CallResult::Ended(Report { output, retry, ..report })
}

/// Reads the response body up to `limit` bytes. A body that is read to its end lets the connection
/// be reused. Returns the part that was read, and a report if the connection failed or no byte was
/// received within the timeout.
async fn read(
    mut response: Response,
    limit: u64,
    definition: &Definition,
) -> (Option<String>, Result<(), Report>) {
    let (mut body, mut left) = (Tail::default(), limit);
    let end = loop {
        match tokio::time::timeout(definition.timeout.into(), response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
                body.push(&chunk[..wanted]);
                left -= wanted as u64;
                if wanted < chunk.len() {
                    body.push(format!("\n… not read further than {limit} bytes").as_bytes());
                    break Ok(());
                }
            }
            Ok(Ok(None)) => break Ok(()),
            Ok(Err(error)) => {
                let (status, cause) = (response.status(), describe(&error.without_url()));
                break Err(Report::failed(format!("the answer ({status}) broke off: {cause}")));
            }
            Err(_) => break Err(no_response(definition)),
        }
    };
    (body.into_text(), end)
}

pub(super) fn no_response(definition: &Definition) -> Report {
    Report::timed_out(format!("no answer for {}", definition.timeout))
}

/// Reads `Retry-After`, which is a number of seconds or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Span> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number of seconds that overflows becomes the largest number; the engine limits the
        // delay of a retry.
        return Some(Span::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    httpdate::parse_http_date(text).ok().map(|date| timestamp(date).since(now))
}

fn shortened(mut text: String) -> String {
    if text.len() > KEPT_BYTES_MAX {
        let end = (0..=KEPT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(text: &str) -> Option<Span> {
        let now = "2026-11-15T08:00:00Z".parse().unwrap();
        let headers = [(RETRY_AFTER, text.parse().unwrap())].into_iter().collect();
        retry_after(&headers, now)
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(wait("120"), Some(Span::from_secs(120)));
        assert_eq!(wait(" 0 "), Some(Span::ZERO));
        assert_eq!(wait("99999999999999999999999"), Some(Span::from_secs(u64::MAX)));
        assert_eq!(wait("Sun, 15 Nov 2026 08:01:30 GMT"), Some(Span::from_secs(90)));
        assert_eq!(wait("Sunday, 15-Nov-26 08:00:01 GMT"), Some(Span::from_secs(1)));
        assert_eq!(wait("Sun, 15 Nov 2026 07:00:00 GMT"), Some(Span::ZERO));
        for nonsense in ["", "-5", "1.5", "soon", "2026-11-15T09:00:00Z"] {
            assert_eq!(wait(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn kept_response_is_short() {
        assert_eq!(shortened("ok".into()), "ok");
        let kept = shortened("ü".repeat(KEPT_BYTES_MAX));
        assert_eq!(kept.len(), KEPT_BYTES_MAX + '…'.len_utf8());
        assert!(kept.capacity() < 2 * KEPT_BYTES_MAX);
    }
}
