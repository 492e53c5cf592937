//! `GET /api/docs`: the OpenAPI document as a page for people. It loads nothing from elsewhere and
//! needs no script, so it can be saved and read offline.

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

/// The page, as it is sent.
#[derive(Clone)]
pub(crate) struct DocsPage(Arc<str>);

impl DocsPage {
    /// The page of a document.
    pub(crate) fn new(document: &OpenApi) -> Self {
        // A document is made of plain maps and texts, which can always be written.
        let document = serde_json::to_value(document).unwrap_or_default();
        Self(page::render(&document).into())
    }
}

/// What is in the page runs nothing and asks for nothing, whatever a description says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// This document as a page for people.
///
/// Without a token a browser gets a page that asks for one, and keeps it in memory only.
#[utoipa::path(
    get,
    path = "/api/docs",
    operation_id = "get_docs",
    tag = "operations",
    responses((status = 200, description = "A page", body = String, content_type = "text/html")),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn docs(Extension(page): Extension<DocsPage>) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, page.0.to_string())
}
