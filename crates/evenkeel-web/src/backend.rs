//! Calls the API in this process, with the credential of a session.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use axum::response::Response;
use evenkeel_api::ClientAddress;
use http_body_util::{BodyExt, Limited};
use serde_json::Value;
use tower::ServiceExt;

/// Longest answer of the API that a page reads. A page asks for at most 100 items.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Who calls the API: the credential of the session, and the address of the browser.
#[derive(Clone)]
pub(crate) struct Credential {
    pub(crate) text: String,
    pub(crate) from: Option<ClientAddress>,
}

/// An answer of the API that is not a success.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    /// What is wrong, and what to do.
    pub(crate) detail: String,
}

impl Refused {
    fn unreadable(detail: impl ToString) -> Self {
        Self { status: StatusCode::BAD_GATEWAY, detail: detail.to_string() }
    }
}

pub(crate) type Answer = Result<Value, Refused>;

#[derive(Clone)]
pub(crate) struct Backend(Router);

impl Backend {
    pub(crate) fn new(api: Router) -> Self {
        Self(api)
    }

    pub(crate) async fn get(&self, credential: &Credential, path: &str) -> Answer {
        self.call(credential, Method::GET, path, None).await
    }

    pub(crate) async fn post(
        &self,
        credential: &Credential,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        self.call(credential, Method::POST, path, body).await
    }

    /// Sends any request, and returns its status and its answer as text.
    pub(crate) async fn try_out(
        &self,
        credential: &Credential,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, String), Refused> {
        let response = self.send(credential, method, path, body).await?;
        let status = response.status();
        let bytes = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let bytes = bytes.map_err(Refused::unreadable)?.to_bytes();
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Opens a stream of server-sent events of the API, and returns its body.
    pub(crate) async fn stream(
        &self,
        credential: &Credential,
        path: &str,
    ) -> Result<Body, Refused> {
        let response = self.send(credential, Method::GET, path, None).await?;
        match response.status() {
            StatusCode::OK => Ok(response.into_body()),
            _ => {
                Err(read(response).await.err().unwrap_or_else(|| Refused::unreadable("no stream")))
            }
        }
    }

    async fn call(
        &self,
        credential: &Credential,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        read(self.send(credential, method, path, body).await?).await
    }

    async fn send(
        &self,
        credential: &Credential,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response, Refused> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::AUTHORIZATION, format!("Bearer {}", credential.text))
            .header(header::ACCEPT, "application/json");
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = request.body(body).map_err(Refused::unreadable)?;
        if let Some(from) = credential.from {
            request.extensions_mut().insert(from);
        }
        // The router answers every request, so its error type has no values.
        match self.0.clone().oneshot(request).await {
            Ok(response) => Ok(response),
            Err(never) => match never {},
        }
    }
}

async fn read(response: Response) -> Answer {
    let status = response.status();
    let bytes = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let bytes = bytes.map_err(Refused::unreadable)?.to_bytes();
    let answer: Value = match bytes.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&bytes).map_err(Refused::unreadable)?,
    };
    if status.is_success() {
        return Ok(answer);
    }
    Err(Refused { status, detail: reason(&answer) })
}

/// Returns why a request was refused: the detail of a problem, or the failed checks of `/readyz`.
fn reason(answer: &Value) -> String {
    if let Some(detail) = answer["detail"].as_str() {
        return detail.to_owned();
    }
    let checks = answer["checks"].as_array().map_or(&[][..], Vec::as_slice);
    let failed = checks.iter().filter(|check| check["ok"] == false);
    let failed = failed.map(|check| {
        let text = |name: &str| check[name].as_str().unwrap_or("?");
        format!("{}: {}", text("name"), text("detail"))
    });
    match failed.collect::<Vec<_>>().join("; ") {
        none if none.is_empty() => "the server gave no reason".to_owned(),
        failed => failed,
    }
}

/// Returns a part of a path or query with all characters escaped that have a meaning there.
pub(crate) fn escape(part: &str) -> String {
    use std::fmt::Write;
    let mut escaped = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_request_names_its_reason() {
        use serde_json::json;
        assert_eq!(reason(&json!({"detail": "no job"})), "no job");
        let checks = json!({"checks": [
            {"name": "store", "ok": false, "detail": "is away"}, {"name": "engine", "ok": true},
        ]});
        assert_eq!(reason(&checks), "store: is away");
        assert_eq!(reason(&Value::Null), "the server gave no reason");
    }

    #[test]
    fn escaped_text_cannot_leave_its_place_in_a_path() {
        assert_eq!(escape("../a b?c&d#é"), "..%2Fa%20b%3Fc%26d%23%C3%A9");
        assert_eq!(escape("news-site_1.2~"), "news-site_1.2~");
    }
}
