//! Checks the host and the origin of each request to the dashboard, and sets its
//! Content-Security-Policy.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::Web;
use crate::layout;

/// Lets a page load files only from this server, and forbids browsers to show it inside another page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; font-src 'self'; worker-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// The host names under which browsers may reach the dashboard, besides addresses and `localhost`.
///
/// A page of another site can make its own host name point to this server (DNS rebinding), and could
/// then read the dashboard. Such a page can't make an address or `localhost` point elsewhere.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hosts(pub Vec<String>);

impl Hosts {
    fn allow(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.0.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }
}

/// Refuses requests for unknown hosts, and changes that another site's page sends.
pub(crate) async fn check_request(
    State(web): State<Web>,
    request: Request,
    next: Next,
) -> Response {
    let host = host_of(request.headers(), request.uri());
    let mut response = if !web.hosts.allow(&host) {
        let detail = format!(
            "This server does not know the host name {host:?}. Use its address, or start it with \
             --dashboard-hosts {}.",
            host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name)
        );
        layout::error(StatusCode::MISDIRECTED_REQUEST, "Unknown host name", &detail)
    } else if changes(request.method()) && !is_same_origin(request.headers(), &host) {
        let detail = "The form was sent by a page of another site. Open the dashboard itself and \
                      try again.";
        layout::error(StatusCode::FORBIDDEN, "Sent from another site", detail)
    } else {
        next.run(request).await
    };
    let policy = HeaderValue::from_static(POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response.into_response()
}

fn host_of(headers: &HeaderMap, uri: &Uri) -> String {
    let header = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    header.or_else(|| uri.authority().map(|authority| authority.as_str())).unwrap_or("").to_owned()
}

fn changes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

/// True if the browser says that a page of this host sends the request. All browsers send `Origin`
/// with forms that change something.
fn is_same_origin(headers: &HeaderMap, host: &str) -> bool {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    origin.and_then(|origin| origin.split_once("://")).is_some_and(|(_, from)| from == host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_listed_names_are_allowed() {
        let hosts = Hosts(vec!["jobs.example.com".into()]);
        for host in
            ["127.0.0.1:8060", "[::1]:8060", "localhost", "LOCALHOST:1", "jobs.example.com:443"]
        {
            assert!(hosts.allow(host), "{host}");
        }
        for host in ["", "evil.example", "127.0.0.1.evil.example:8060", "jobs.example.com.evil"] {
            assert!(!hosts.allow(host), "{host}");
        }
    }

    #[test]
    fn only_a_page_of_the_same_host_may_send_a_form() {
        let from = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            is_same_origin(&headers, "127.0.0.1:8060")
        };
        assert!(from("http://127.0.0.1:8060"));
        for origin in ["http://127.0.0.1:9000", "https://evil.example", "null"] {
            assert!(!from(origin), "{origin}");
        }
        assert!(!is_same_origin(&HeaderMap::new(), "127.0.0.1:8060"));
    }
}
