//! Calls the API in this process, with the credential of a session.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use evenkeel_api::ClientAddress;
use http_body_util::{BodyExt, Limited};
use serde_json::Value;
use tower::ServiceExt;

use crate::shared_answers::{Audience, SharedAnswers};

/// Longest answer of the API that a page reads. A page asks for at most 100 items.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Who calls the API: the credential of the session, and the address of the browser.
#[derive(Clone)]
pub(crate) struct Credential {
    pub(crate) text: String,
    pub(crate) from: Option<ClientAddress>,
    /// The users with whom answers are shared; `None` before the credential is checked.
    pub(crate) audience: Option<Audience>,
}

impl Credential {
    /// A caller without a credential.
    pub(crate) fn none() -> Self {
        Self { text: String::new(), from: None, audience: None }
    }
}

/// An answer of the API that is not a success.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    /// What is wrong, and what to do.
    pub(crate) detail: String,
    /// The invalid fields of the request, if the API names them.
    pub(crate) fields: Vec<FieldError>,
}

/// What is wrong with one field of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FieldError {
    /// Name of the field, such as `schedule.every` or `blackout_periods[0]`.
    pub(crate) field: String,
    pub(crate) message: String,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), fields: Vec::new() }
    }

    fn unreadable(detail: impl ToString) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, detail.to_string())
    }
}

pub(crate) type Answer = Result<Arc<Value>, Refused>;

#[derive(Clone)]
pub(crate) struct Backend {
    api: Router,
    shared: Arc<SharedAnswers>,
}

impl Backend {
    pub(crate) fn new(api: Router) -> Self {
        Self { api, shared: Arc::default() }
    }

    pub(crate) async fn get(&self, credential: &Credential, path: &str) -> Answer {
        let ask = self.call(credential, Method::GET, path, None);
        match &credential.audience {
            Some(audience) => self.shared.get(audience, path, ask).await,
            None => ask.await,
        }
    }

    /// Reads an answer that is not JSON, as a text.
    pub(crate) async fn get_text(&self, credential: &Credential, path: &str) -> Answer {
        let ask = async {
            match self.try_out(credential, Method::GET, path, None).await? {
                (status, text) if status.is_success() => Ok(Arc::new(Value::String(text))),
                (status, text) => Err(Refused::new(status, text)),
            }
        };
        match &credential.audience {
            Some(audience) => self.shared.get(audience, path, ask).await,
            None => ask.await,
        }
    }

    pub(crate) async fn post(
        &self,
        credential: &Credential,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        self.call(credential, Method::POST, path, body).await
    }

    /// Changes an object, only if it still has this generation.
    pub(crate) async fn put(
        &self,
        credential: &Credential,
        path: &str,
        body: &Value,
        generation: u64,
    ) -> Answer {
        let mut request = request(credential, Method::PUT, path, Some(body))?;
        let tag = HeaderValue::try_from(format!("\"g{generation}\""));
        request.headers_mut().insert(header::IF_MATCH, tag.map_err(Refused::unreadable)?);
        let response = self.answer(request).await;
        self.forget(credential);
        read(response).await
    }

    pub(crate) async fn delete(&self, credential: &Credential, path: &str) -> Answer {
        self.call(credential, Method::DELETE, path, None).await
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
        let is_change = method != Method::GET;
        let response = self.answer(request(credential, method, path, body)?).await;
        if is_change {
            self.forget(credential);
        }
        Ok(response)
    }

    /// Forgets shared answers from before a change.
    fn forget(&self, credential: &Credential) {
        if let Some(audience) = &credential.audience {
            self.shared.forget(&audience.tenant);
        }
    }

    async fn answer(&self, request: Request<Body>) -> Response {
        // The router answers every request, so its error type has no values.
        match self.api.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

fn request(
    credential: &Credential,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Request<Body>, Refused> {
    let mut request =
        Request::builder().method(method).uri(path).header(header::ACCEPT, "application/json");
    if !credential.text.is_empty() {
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", credential.text));
    }
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let mut request = request.body(body).map_err(Refused::unreadable)?;
    if let Some(from) = credential.from {
        request.extensions_mut().insert(from);
    }
    Ok(request)
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
        return Ok(Arc::new(answer));
    }
    Err(Refused { status, detail: reason(&answer), fields: field_errors(&answer) })
}

fn field_errors(answer: &Value) -> Vec<FieldError> {
    let errors = answer["errors"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |error: &Value, name: &str| error[name].as_str().map(str::to_owned);
    let errors = errors.iter().filter_map(|error| {
        Some(FieldError { field: text(error, "field")?, message: text(error, "message")? })
    });
    errors.collect()
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
