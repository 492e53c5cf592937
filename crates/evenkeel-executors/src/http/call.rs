//! The HTTP call that a job's configuration describes.

use evenkeel_core::executor::{ConfigFault, Fields};
use evenkeel_outbound::reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use evenkeel_outbound::reqwest::{Method, StatusCode, Url};
use serde_json::Value;

use super::DECLARATION;
use super::body::{Body, Content};
use super::status::Statuses;
use super::tls::TlsChoice;
use super::url::UrlTemplate;
use crate::template::{ByteBudget, Escape, Template, Values};

/// An HTTP call with its templates, and the rules that decide whether the response is a success.
#[derive(Debug)]
pub(super) struct Call<'a> {
    url: UrlTemplate,
    method: Method,
    headers: Vec<(HeaderName, Template)>,
    body: Body<'a>,
    expected: Option<Statuses>,
    give_up_on: Option<Statuses>,
    pub(super) redirects: usize,
    pub(super) max_response_bytes: u64,
    /// Set if the job has TLS options that differ from the options of the shared HTTP client.
    pub(super) tls: Option<TlsChoice>,
}

/// An HTTP call with all templates filled in.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) url: Url,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) content: Option<Content>,
}

/// Headers that a job may not set, because Evenkeel sets them or they delimit HTTP messages.
const RESERVED: [&str; 11] = [
    "idempotency-key", "webhook-id", "webhook-timestamp", "webhook-signature", "connection",
    "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
];

/// Maximum number of bytes of all headers of a job; few servers accept more.
const HEADER_BYTES_MAX: usize = 64 * 1024;

const REDIRECTS_MAX: u64 = 10;
const RESPONSE_BYTES_DEFAULT: u64 = 64 * 1024 * 1024;
const RESPONSE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

impl<'a> Call<'a> {
    pub(super) fn parse(config: &'a Value) -> Result<Self, ConfigFault> {
        let fields = Fields::read(config, DECLARATION.fields)?;
        let url = fields.text("url")?.ok_or_else(|| ConfigFault::new("url", "is required"))?;
        let method = parse_method(&fields)?;
        // By default only GET and HEAD follow redirects, because a server may do the work twice if
        // a POST is repeated.
        let usual = if matches!(method, Method::GET | Method::HEAD) { 5 } else { 0 };
        let redirects = fields.number("redirects", 0..=REDIRECTS_MAX)?.unwrap_or(usual);
        let tls = TlsChoice::parse(fields.get("tls"))?;
        if tls.is_some() && !url.get(..8).is_some_and(|s| s.eq_ignore_ascii_case("https://")) {
            return Err(ConfigFault::new("tls", "needs a url that starts with https://"));
        }
        Ok(Self {
            url: UrlTemplate::parse(url).map_err(|message| ConfigFault::new("url", message))?,
            method,
            headers: parse_headers(&fields)?,
            body: Body::parse(&fields)?,
            expected: Statuses::parse(&fields, "expected_status")?,
            give_up_on: Statuses::parse(&fields, "give_up_on")?,
            redirects: usize::try_from(redirects).unwrap_or_default(),
            max_response_bytes: fields
                .number("max_response_bytes", 0..=RESPONSE_BYTES_MAX)?
                .unwrap_or(RESPONSE_BYTES_DEFAULT),
            tls: tls.filter(TlsChoice::matters),
        })
    }

    pub(super) fn check(&self, payload: &Value) -> Result<(), ConfigFault> {
        self.url.check(payload).map_err(|message| ConfigFault::new("url", message))?;
        // The variables of a run always have legal values, so an example run is enough to check the
        // rest of the configuration.
        self.fill(&Values::example(payload)).map(drop)
    }

    /// Fills in all templates. The error names the configuration field that could not be filled in.
    pub(super) fn fill(&self, values: &Values<'_>) -> Result<Filled, ConfigFault> {
        let url = self.url.fill(values).map_err(|message| ConfigFault::new("url", message))?;
        let mut headers = HeaderMap::with_capacity(self.headers.len());
        let mut budget = ByteBudget::new(HEADER_BYTES_MAX);
        for (name, template) in &self.headers {
            let fault = |message| ConfigFault::new(&format!("headers.{name}"), message);
            let text = template.fill_within(values, Escape::None, &mut budget).map_err(fault)?;
            let value = HeaderValue::from_str(&text).map_err(|_| {
                fault("is not a valid header value: it contains a control character, such as a line break".into())
            })?;
            headers.insert(name, value);
        }
        let content = self.body.fill(values)?;
        Ok(Filled { url, method: self.method.clone(), headers, content })
    }

    pub(super) fn is_expected(&self, status: StatusCode) -> bool {
        self.expected.as_ref().map_or(status.is_success(), |good| good.contains(status))
    }

    /// True if `expected_status` lists this status, not only its class such as `2xx`.
    pub(super) fn expects_by_name(&self, status: StatusCode) -> bool {
        self.expected.as_ref().is_some_and(|good| good.names(status))
    }

    /// True if the attempt must not be retried after a response with this status.
    pub(super) fn gives_up_on(&self, status: StatusCode) -> bool {
        status == StatusCode::GONE
            || self.give_up_on.as_ref().is_some_and(|hopeless| hopeless.contains(status))
    }
}

fn parse_method(fields: &Fields<'_>) -> Result<Method, ConfigFault> {
    let Some(text) = fields.text("method")? else { return Ok(Method::POST) };
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let upper = text.to_ascii_uppercase();
    if !known.contains(&upper.as_str()) {
        let message = format!("must be one of {}", known.join(", "));
        return Err(ConfigFault::new("method", message));
    }
    upper.parse().map_err(|_| ConfigFault::new("method", "is not an HTTP method"))
}

fn parse_headers(fields: &Fields<'_>) -> Result<Vec<(HeaderName, Template)>, ConfigFault> {
    let header = |(name, value): (&str, &str)| {
        let fault = |message: &str| ConfigFault::new(&format!("headers.{name}"), message);
        let parsed: HeaderName = name.parse().map_err(|_| fault("is not a header name"))?;
        if RESERVED.contains(&parsed.as_str()) || parsed.as_str().starts_with("x-evenkeel-") {
            return Err(fault("is set by Evenkeel"));
        }
        Ok((parsed, Template::parse(value).map_err(|message| fault(&message))?))
    };
    fields.texts("headers")?.into_iter().map(header).collect()
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
