//! Cookies that remember something about a browser. Scripts can't read them.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;

/// Lifetime of a cookie: one year.
const MAX_AGE_SECONDS: u32 = 31_536_000;

/// Returns the value of a cookie of the request.
pub(crate) fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// Makes the browser keep a value, which has only characters that cookies allow.
pub(crate) fn set(response: &mut Response, name: &str, value: &str, is_tls: bool) {
    let secure = if is_tls { "; Secure" } else { "" };
    let cookie = format!(
        "{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={MAX_AGE_SECONDS}{secure}"
    );
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_found_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("ab=1; a=2=3"));
        headers.append(header::COOKIE, HeaderValue::from_static("b=4"));
        let found = ["a", "b", "c"].map(|name| find(&headers, name));
        assert_eq!(found, [Some("2=3"), Some("4"), None]);
    }
}
