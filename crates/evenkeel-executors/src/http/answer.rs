//! What an answer means.

use evenkeel_core::chain::Again;
use evenkeel_core::{Definition, Span, Timestamp};
use evenkeel_outbound::describe;
use evenkeel_outbound::reqwest::header::{HeaderMap, RETRY_AFTER};
use evenkeel_outbound::reqwest::{Response, StatusCode};

use super::call::Call;
use super::settings::timestamp;
use crate::Report;
use crate::tail::Tail;

/// What has come of a call.
pub(super) enum Answered {
    /// All there is to it.
    Ended(Report),
    /// It was accepted, and its end is reported later. With the beginning of what was said.
    Accepted(Option<String>),
}

/// So much of an answer is kept while a run waits for its end; there may be thousands.
const KEPT_BYTES_MAX: usize = 1024;

/// Reads an answer and says what it means. With `may_end_later`, the receiver was given the means
/// to report the end of the run.
pub(super) async fn judge(
    call: &Call<'_>,
    response: Response,
    definition: &Definition,
    now: Timestamp,
    may_end_later: bool,
) -> Answered {
    let status = response.status();
    let retry_after = retry_after(response.headers(), now);
    let read = read(response, call.max_response_bytes, definition).await;
    let accepted = status == StatusCode::ACCEPTED && may_end_later;
    if accepted && !call.expects_by_name(status) {
        // The head is the word that counts: the work is under way, however the rest got lost.
        return Answered::Accepted(read.output.map(shortened));
    }
    let is_expected = call.is_expected(status);
    let again = match retry_after {
        _ if is_expected => Again::AsUsual,
        _ if call.gives_up_on(status) => Again::Never,
        Some(wait) => Again::NotBefore(wait),
        None => Again::AsUsual,
    };
    let report = match read.end {
        End::Cut(cause) => Report::failed(format!("the answer ({status}) broke off: {cause}")),
        End::Silent => no_answer(definition),
        End::Good if is_expected => Report::completed(),
        End::Good => Report::failed(format!("the answer was {status}")),
    };
    Answered::Ended(Report { output: read.output, again, ..report })
}

/// What came of an answer besides its head.
struct Read {
    output: Option<String>,
    end: End,
}

enum End {
    Good,
    /// The connection failed, and why.
    Cut(String),
    /// Nothing more came in time.
    Silent,
}

/// Reads an answer to its end, so that its connection can be used again, or to the limit.
async fn read(mut response: Response, limit: u64, definition: &Definition) -> Read {
    let (mut body, mut left) = (Tail::default(), limit);
    let end = loop {
        match tokio::time::timeout(definition.timeout.into(), response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
                body.push(&chunk[..wanted]);
                left -= wanted as u64;
                if wanted < chunk.len() {
                    body.push(format!("\n… not read further than {limit} bytes").as_bytes());
                    break End::Good;
                }
            }
            Ok(Ok(None)) => break End::Good,
            Ok(Err(error)) => break End::Cut(describe(&error.without_url())),
            Err(_) => break End::Silent,
        }
    };
    Read { output: body.into_text(), end }
}

/// Nobody answered in time.
pub(super) fn no_answer(definition: &Definition) -> Report {
    Report::timed_out(format!("no answer for {}", definition.timeout))
}

/// How long the called side wants to be left alone: seconds, or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Span> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than a number holds mean for ever; the engine has a limit of its own.
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
    fn a_wait_is_given_in_seconds_or_as_a_date() {
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
    fn what_is_kept_while_waiting_is_short() {
        assert_eq!(shortened("ok".into()), "ok");
        let kept = shortened("ü".repeat(KEPT_BYTES_MAX));
        assert_eq!(kept.len(), KEPT_BYTES_MAX + '…'.len_utf8());
        assert!(kept.capacity() < 2 * KEPT_BYTES_MAX);
    }
}
