//! A call and where redirects lead it.

use evenkeel_outbound::reqwest::header::{
    ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, USER_AGENT,
};
use evenkeel_outbound::reqwest::{Method, Request, StatusCode, Url};

use super::call::Filled;

/// A call on its way: the next request to make.
pub(super) struct Journey {
    next: Filled,
    /// The origins so far are all the one that the job names. Once left, for good.
    at_home: bool,
    /// Where it has been, fit to be shown.
    hops: Vec<String>,
}

/// What of the job's own headers others may see too; any other may hold a secret.
const FOR_OTHERS: [HeaderName; 4] = [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, USER_AGENT];

impl Journey {
    pub(super) fn new(call: Filled) -> Self {
        let hops = vec![shown(&call.url)];
        Self { next: call, at_home: true, hops }
    }

    /// Is the next request for the origin that the job names, and only that one was called so far?
    pub(super) const fn at_home(&self) -> bool {
        self.at_home
    }

    /// The body of the next request.
    pub(super) fn body(&self) -> &[u8] {
        self.next.content.as_ref().map_or(&[], |content| &content.bytes)
    }

    /// The next request, with `headers` besides the job's own.
    pub(super) fn request(&self, mut headers: HeaderMap) -> Request {
        let Filled { url, method, headers: own, content } = &self.next;
        let mut request = Request::new(method.clone(), url.clone());
        if let Some(content) = content {
            // Before the job's own, which may know better.
            headers.insert(CONTENT_TYPE, content.kind.clone());
            *request.body_mut() = Some(content.bytes.clone().into());
        }
        headers.extend(own.clone());
        *request.headers_mut() = headers;
        request
    }

    /// Where it got to, if that is not where it started.
    pub(super) fn after_redirects(&self) -> Option<&str> {
        (self.hops.len() > 1).then(|| self.hops.last().map(String::as_str)).flatten()
    }

    /// Goes where an answer says, if it is a redirect, and says whether it was one. The message
    /// says why it may not be followed.
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
        let unreadable = || format!("{here} redirects to what is not a URL");
        // Some servers send UTF-8 as it is.
        let location = std::str::from_utf8(location.as_bytes()).map_err(|_| unreadable())?;
        let mut url = self.next.url.join(location).map_err(|_| unreadable())?;
        match (self.next.url.scheme(), url.scheme()) {
            (_, "https") | ("http", "http") => {}
            ("https", "http") => {
                return Err(format!("{here} redirects to {}, out of https", shown(&url)));
            }
            (_, other) => return Err(format!("{here} redirects to a {other}: URL")),
        }
        self.hops.push(shown(&url));
        if self.hops.len() > limit + 1 {
            let hops = self.hops.join(" -> ");
            return Err(format!("it was redirected more often than {limit} times: {hops}"));
        }
        self.change_method(status);
        if url.origin() == self.next.url.origin() {
            give_credentials(&mut url, self.next.url.username(), self.next.url.password());
        } else {
            give_credentials(&mut url, "", None);
            self.at_home = false;
            // Nobody expects one with a fetch, and the job did not mean it for a stranger.
            if matches!(self.next.method, Method::GET | Method::HEAD) {
                self.drop_content();
            }
            let mut kept = HeaderMap::new();
            for name in FOR_OTHERS {
                if let Some(value) = self.next.headers.remove(&name) {
                    kept.insert(name, value);
                }
            }
            self.next.headers = kept;
        }
        self.next.url = url;
        Ok(true)
    }

    /// As browsers do: what was posted is fetched, after 303 whatever was done.
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

/// The job's credentials stay; those that a redirect brings along are not used.
fn give_credentials(url: &mut Url, username: &str, password: Option<&str>) {
    // Fails only for URLs without a host, which have none.
    let _ = url.set_username(username);
    let _ = url.set_password(password);
}

/// A URL without what may be secret: credentials, query, and also the path, as that of a web hook.
fn shown(url: &Url) -> String {
    url.origin().ascii_serialization()
}
