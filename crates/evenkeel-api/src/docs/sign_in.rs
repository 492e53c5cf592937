//! The page that `/api/docs` shows to a browser without a token. A browser cannot send a token
//! without a script, so the sign-in page asks the user for a token.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("style.css");
/// The sign-in script fetches the documentation with the token and shows it in place of the form.
/// The token is kept in memory only, so it is lost when the page is closed.
const SCRIPT: &str = include_str!("sign_in.js");

/// Answers with the sign-in page if a browser requests the documentation without a token. The
/// sign-in page contains no data of the server. Requests that do not get the sign-in page are
/// passed on to their handlers.
pub(crate) async fn sign_in(request: Request, next: Next) -> Response {
    let wants_docs = request.method() == Method::GET && request.uri().path() == "/api/docs";
    let headers = request.headers();
    if !wants_docs || headers.contains_key(header::AUTHORIZATION) || !is_browser(headers) {
        return next.run(request).await;
    }
    let mut response = Html(page()).into_response();
    if let Ok(policy) = HeaderValue::try_from(policy()) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Browsers list `text/html` in the header `Accept`; other clients do not.
fn is_browser(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html"))
}

fn page() -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Evenkeel API</title><style>{STYLE}</style></head><body>\
         <header><h1>Evenkeel <small>API</small></h1></header><main id=\"main\">\
         <p>The documentation of this server needs a token. \
         <code>evenkeel token create --role viewer</code> prints one; the token of a local server is \
         in the file <code>token</code> of its data directory. It is kept until you close or reload \
         this page, and nowhere else.</p>\
         <form id=\"sign-in\"><label>Token <input id=\"token\" type=\"password\" required \
         autocomplete=\"off\" spellcheck=\"false\"></label> <button>Show the documentation</button>\
         <p id=\"refused\" role=\"alert\"></p></form>\
         <noscript><p>This form needs JavaScript. Without it: <code>curl -H \"Authorization: Bearer \
         TOKEN\" …/api/docs &gt; docs.html</code>, or <code>evenkeel serve --open-openapi</code>.</p>\
         </noscript></main><script>{SCRIPT}</script></body></html>\n"
    )
}

/// Returns a Content-Security-Policy that allows only the sign-in script, which may connect to this
/// server only.
fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}
