//! `GET /api/docs`: the OpenAPI document as an HTML page. The documentation page loads no other
//! resources and needs no script, so users can save it and read it offline.

mod operation;
mod page;
mod schema;
mod sign_in;

pub(crate) use sign_in::sign_in;

use std::sync::Arc;

use axum::Extension;
use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::OpenApi;

#[derive(Clone)]
pub(crate) struct DocsPage(Arc<str>);

impl DocsPage {
    pub(crate) fn new(document: &OpenApi) -> Self {
        // Serializing plain maps and strings cannot fail.
        let document = serde_json::to_value(document).unwrap_or_default();
        Self(page::render(&document).into())
    }
}

/// This Content-Security-Policy forbids scripts and external resources, whatever the API
/// descriptions contain.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Returns this API documentation as an HTML page.
///
/// A browser without a token gets a sign-in page, which asks for a token and keeps it in memory
/// only.
#[utoipa::path(
    get, path = "/api/docs", tag = "operations",
    responses((status = 200, description = "An HTML page", body = String, content_type = "text/html")),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_docs(Extension(page): Extension<DocsPage>) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, page.0.to_string())
}
