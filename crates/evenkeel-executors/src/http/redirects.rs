//! Follows the redirects of an HTTP call.

use evenkeel_outbound::reqwest::header::{
    ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, USER_AGENT,
};
use evenkeel_outbound::reqwest::{Method, Request, StatusCode, Url};

use super::call::Filled;

/// An HTTP call that follows redirects: the next request, and the origins of the earlier requests.
pub(super) struct RedirectedCall {
    next: Filled,
    /// True if all requests so far, and the next request, go to the origin that the job names.
    pub(super) is_first_origin: bool,
    /// The origins of all earlier requests and of the next request, for error messages.
    hops: Vec<String>,
}

/// Headers of the job that a redirect to another origin keeps. Other headers may hold a secret.
const FOR_OTHER_ORIGINS: [HeaderName; 4] = [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, USER_AGENT];

impl RedirectedCall {
    pub(super) fn new(call: Filled) -> Self {
        let hops = vec![shown(&call.url)];
        Self { next: call, is_first_origin: true, hops }
    }

    pub(super) fn body(&self) -> &[u8] {
        self.next.content.as_ref().map_or(&[], |content| &content.bytes)
    }

    /// Returns the next request, with `headers` in addition to the headers of the job.
    pub(super) fn request(&self, mut headers: HeaderMap) -> Request {
        let Filled { url, method, headers: own, content } = &self.next;
        let mut request = Request::new(method.clone(), url.clone());
        if let Some(content) = content {
            // A `Content-Type` header of the job replaces this default header below.
            headers.insert(CONTENT_TYPE, content.kind.clone());
            *request.body_mut() = Some(content.bytes.clone().into());
        }
        headers.extend(own.clone());
        *request.headers_mut() = headers;
        request
    }

    /// Returns the current origin if at least one redirect was followed.
    pub(super) fn after_redirects(&self) -> Option<&str> {
        self.hops[1..].last().map(String::as_str)
    }

    /// Prepares the request that a redirect requires, and returns true. Returns false if the
    /// response is not a redirect, and an error if the redirect must not be followed.
    pub(super) fn follow(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
        limit: usize,
    ) -> Result<bool, String> {
        let Some(location) = headers.get(LOCATION).filter(|_| is_redirect(status)) else {
            return Ok(false);
        };
        let here = shown(&self.next.url);
        let unreadable = || format!("{here} redirects to an invalid URL");
        // Some servers send a `Location` header in UTF-8 without escaping.
        let location = std::str::from_utf8(location.as_bytes()).map_err(|_| unreadable())?;
        let mut url = self.next.url.join(location).map_err(|_| unreadable())?;
        match (self.next.url.scheme(), url.scheme()) {
            (_, "https") | ("http", "http") => {}
            ("https", "http") => {
                return Err(format!("{here} redirects from https to {}", shown(&url)));
            }
            (_, other) => return Err(format!("{here} redirects to a {other}: URL")),
        }
        self.hops.push(shown(&url));
        if self.hops.len() > limit + 1 {
            let hops = self.hops.join(" -> ");
            return Err(format!("more than {limit} redirects: {hops}"));
        }
        self.change_method(status);
        if url.origin() == self.next.url.origin() {
            give_credentials(&mut url, self.next.url.username(), self.next.url.password());
        } else {
            give_credentials(&mut url, "", None);
            self.is_first_origin = false;
            // A GET needs no request body, and the job's body is not meant for another origin.
            if matches!(self.next.method, Method::GET | Method::HEAD) {
                self.drop_content();
            }
            let mut own = std::mem::take(&mut self.next.headers);
            let kept = |name: HeaderName| own.remove(&name).map(|value| (name, value));
            self.next.headers = FOR_OTHER_ORIGINS.into_iter().filter_map(kept).collect();
        }
        self.next.url = url;
        Ok(true)
    }

    /// Changes the method as browsers do: after 303 every method but HEAD becomes GET, after 301
    /// and 302 POST becomes GET.
    fn change_method(&mut self, status: StatusCode) {
        let fetch = match status {
            StatusCode::SEE_OTHER => self.next.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.next.method == Method::POST,
            _ => false,
        };
        if fetch {
            self.next.method = Method::GET;
            self.drop_content();
        }
    }

    fn drop_content(&mut self) {
        self.next.content = None;
        self.next.headers.remove(CONTENT_TYPE);
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Sets the credentials of a URL. Credentials in the URL of a redirect are never used.
fn give_credentials(url: &mut Url, username: &str, password: Option<&str>) {
    // Setting credentials fails only for a URL without a host, and HTTP URLs have a host.
    let _ = url.set_username(username);
    let _ = url.set_password(password);
}

/// Returns only the origin of a URL, because credentials, path and query may be secret.
fn shown(url: &Url) -> String {
    url.origin().ascii_serialization()
}
