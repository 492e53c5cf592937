//! One HTTP request of the crawler.

use std::time::Duration;

use evenkeel_core::page::KnownPage;
use evenkeel_outbound::CallError;
use evenkeel_outbound::reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use evenkeel_outbound::reqwest::{Method, Request, Response, Url};

use crate::crawler::Shared;
use crate::extract::{RobotsDirectives, one_line};
use crate::silence::OpenRequest;

#[derive(Clone, Debug)]
pub(crate) struct FetchRequest<'a> {
    pub(crate) url: Url,
    /// The stored version of the page, from which the server decides whether the page has changed.
    pub(crate) known: Option<&'a KnownPage>,
    pub(crate) user_agent: Option<&'a HeaderValue>,
    pub(crate) bytes_max: usize,
    /// Maximum time for the request and the whole response.
    pub(crate) time_max: Duration,
    pub(crate) wanted: Wanted,
}

/// Which content types are read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    /// HTML and plain text.
    Pages,
    /// Anything.
    All,
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The media type of the response in lower case, without parameters.
    pub(crate) content_type: String,
    pub(crate) charset: Option<String>,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    pub(crate) location: Option<String>,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) directives: RobotsDirectives,
    pub(crate) body: Body,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    Whole(Vec<u8>),
    /// The beginning of a response body that is longer than allowed.
    Cut(Vec<u8>),
    Unread,
}

/// Why a request got no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("{0}")]
    Refused(String),
    #[error("not done within {} ms", .0.as_millis())]
    TimedOut(Duration),
    #[error("{0}")]
    Failed(String),
}

/// Sends a request and reads the response. Redirects are returned and not followed.
pub(crate) async fn fetch(shared: &Shared, ask: &FetchRequest<'_>) -> Result<Answer, FetchError> {
    let answer = tokio::time::timeout(ask.time_max, exchange(shared, ask)).await;
    answer.unwrap_or(Err(FetchError::TimedOut(ask.time_max)))
}

async fn exchange(shared: &Shared, ask: &FetchRequest<'_>) -> Result<Answer, FetchError> {
    let open_request = shared.silence.begin_request();
    let mut request = Request::new(Method::GET, ask.url.clone());
    fill_headers(request.headers_mut(), ask);
    let mut response = shared.outbound.send(request).await.map_err(|error| match error {
        CallError::Refused(refused) => FetchError::Refused(refused.to_string()),
        // Other errors may pass. A host name with a private address is treated like an unknown host
        // name, because its address may change.
        error => FetchError::Failed(error.to_string()),
    })?;
    open_request.received();
    let mut answer = read_head(&response, &shared.settings.robots_name);
    let is_page = matches!(
        answer.content_type.as_str(),
        "" | "text/html" | "application/xhtml+xml" | "text/plain"
    );
    if response.status().is_success() && (is_page || ask.wanted == Wanted::All) {
        answer.body = read_body(&mut response, ask, &open_request).await?;
    }
    Ok(answer)
}

fn fill_headers(headers: &mut HeaderMap, ask: &FetchRequest<'_>) {
    let accept = match ask.wanted {
        Wanted::Pages => "text/html,application/xhtml+xml,text/plain;q=0.8,*/*;q=0.1",
        Wanted::All => "*/*",
    };
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    if let Some(agent) = ask.user_agent {
        headers.insert(header::USER_AGENT, agent.clone());
    }
    let Some(known) = ask.known else { return };
    let validators =
        [(header::IF_NONE_MATCH, &known.etag), (header::IF_MODIFIED_SINCE, &known.last_modified)];
    for (name, value) in validators {
        if let Some(value) = value.as_ref().and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(name, value);
        }
    }
}

fn read_head(response: &Response, robots_name: &str) -> Answer {
    let headers = response.headers();
    let text = |name: HeaderName, bytes_max: usize| {
        let value = headers.get(name)?.to_str().ok()?.trim();
        (!value.is_empty() && value.len() <= bytes_max).then(|| value.to_owned())
    };
    let full_type = text(header::CONTENT_TYPE, 500).unwrap_or_default();
    let mut parts = full_type.split(';').map(str::trim);
    let content_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case("charset").then(|| value.trim().to_owned())
    });
    let mut directives = RobotsDirectives::default();
    for value in headers.get_all("x-robots-tag") {
        directives.read_header(value.to_str().unwrap_or_default(), robots_name);
    }
    Answer {
        status: response.status().as_u16(),
        content_type: one_line(&content_type, 100).unwrap_or_default(),
        charset,
        etag: text(header::ETAG, 500),
        last_modified: text(header::LAST_MODIFIED, 100),
        // `Location` headers often contain characters outside ASCII, although the standard forbids
        // such characters.
        location: headers
            .get(header::LOCATION)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
        retry_after: text(header::RETRY_AFTER, 100)
            .and_then(|value| wait(&value, text(header::DATE, 100).as_deref())),
        directives,
        body: Body::Unread,
    }
}

/// Parses `Retry-After`, which holds seconds or a date that is compared with the `Date` header.
fn wait(value: &str, date: Option<&str>) -> Option<Duration> {
    if let Ok(secs) = value.parse() {
        return Some(Duration::from_secs(secs));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let said_at = httpdate::parse_http_date(date?).ok()?;
    until.duration_since(said_at).ok()
}

/// Reads the response body. The size limit applies to decompressed bytes, so that a small
/// compressed response cannot fill the memory.
async fn read_body(
    response: &mut Response,
    ask: &FetchRequest<'_>,
    open_request: &OpenRequest<'_>,
) -> Result<Body, FetchError> {
    let bytes_max = ask.bytes_max;
    let announced = usize::try_from(response.content_length().unwrap_or_default());
    let announced = announced.unwrap_or(usize::MAX);
    // A page above the size limit is useless, so its body is not read.
    if announced > bytes_max && ask.wanted == Wanted::Pages {
        return Ok(Body::Cut(Vec::new()));
    }
    let mut bytes = Vec::with_capacity(announced.min(bytes_max));
    loop {
        let chunk = response.chunk().await;
        open_request.received();
        match chunk {
            Ok(Some(chunk)) if bytes.len() + chunk.len() > bytes_max => {
                bytes.extend_from_slice(&chunk[..bytes_max - bytes.len()]);
                return Ok(Body::Cut(bytes));
            }
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return Ok(Body::Whole(bytes)),
            Err(error) => {
                let error = error.without_url();
                return Err(FetchError::Failed(format!("the answer broke off: {error}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(wait("7", None), Some(Duration::from_secs(7)));
        let (now, then) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT");
        assert_eq!(wait(then, Some(now)), Some(Duration::from_secs(30)));
        assert_eq!(wait(now, Some(then)), None);
        assert_eq!(wait(then, None), None);
        assert_eq!(wait("soon", Some(now)), None);
    }
}
