//! `GET /api/openapi.json`, made from the handlers.

use std::sync::Arc;

use axum::Extension;
use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Ref, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, RefOr, Required, Response, ResponseBuilder};
use utoipa::{Modify, OpenApi as _, ToSchema as _};

use crate::problem::{FieldError, Problem, ProblemType};

/// The document, as it is sent.
#[derive(Clone)]
pub(crate) struct Document(pub(crate) Arc<str>);

/// This document.
#[utoipa::path(
    get,
    path = "/api/openapi.json",
    operation_id = "get_openapi",
    tag = "operations",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)),
    security(("bearer" = [])),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn document(Extension(document): Extension<Document>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document.0.to_string())
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Evenkeel",
        description = "A self-balancing, deadline-aware job scheduler. Times are RFC 3339 in UTC \
            with microseconds. Refusals are RFC 9457 problem details.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "jobs", description = "What is to run, and when"),
        (name = "schedules", description = "What a schedule would do"),
        (name = "conditions", description = "Which jobs keep their promises"),
        (name = "balance", description = "How load is spread over the day, and moving it"),
        (name = "targets", description = "What jobs are about"),
        (name = "executions", description = "What ran, and how it went"),
        (name = "events", description = "What happens, as it happens"),
        (name = "pages", description = "What crawls have kept"),
        (name = "callbacks", description = "For those who were called and answered 202"),
        (name = "admin", description = "The admin API of a crawl queue, on the same jobs"),
        (name = "access", description = "API keys, secrets, and who did what"),
        (name = "operations", description = "For those who run the server"),
    ),
    components(schemas(Problem, FieldError, ProblemType, crate::events::EventView)),
    modifiers(&Bearer),
)]
struct Frame;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut OpenApi) {
        let mut scheme = Http::new(HttpAuthScheme::Bearer);
        scheme.description = Some(
            "A token made by `evenkeel token create` or by your identity provider, or an API key \
             (`ek_…`). `x-required-role` of each operation says which role it needs; a higher one \
             will do."
                .into(),
        );
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("bearer", SecurityScheme::Http(scheme));
        let mut attempt = Http::new(HttpAuthScheme::Bearer);
        attempt.description =
            Some("The token that came with the call, in X-Evenkeel-Callback-Token".into());
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("attempt", SecurityScheme::Http(attempt));
    }
}

/// The document before the handlers are in it.
pub(crate) fn frame() -> OpenApi {
    Frame::openapi()
}

/// Adds to every operation what the layers around the handlers can answer.
pub(crate) fn complete(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let all = [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
        for operation in all.into_iter().flatten() {
            if path.starts_with("/api/v1/jobs/{id}") || takes_job(operation) {
                add_ambiguity(operation);
            }
        }
        for operation in item.get.iter_mut() {
            add_refusals(operation, false);
        }
        for operation in item.post.iter_mut().filter(|operation| takes_token(operation)) {
            add_key(operation);
        }
        let changes = [&mut item.post, &mut item.put, &mut item.patch, &mut item.delete];
        for operation in changes.into_iter().flatten() {
            add_refusals(operation, true);
        }
    }
}

/// Is it behind the guard, for those with a token of their own?
fn takes_token(operation: &Operation) -> bool {
    let bearer = SecurityRequirement::new("bearer", Vec::<String>::new());
    operation.security.iter().flatten().any(|needed| *needed == bearer)
}

/// Does its query name a job?
fn takes_job(operation: &Operation) -> bool {
    let mut parameters = operation.parameters.iter().flatten();
    parameters.any(|one| matches!(one, RefOr::T(parameter) if parameter.name == "job_id"))
}

/// A name may belong to several jobs, which differ in their configuration.
fn add_ambiguity(operation: &mut Operation) {
    let description = "Several jobs have this name; the detail lists their ids";
    let responses = &mut operation.responses.responses;
    match responses.get_mut("409") {
        Some(RefOr::T(response)) => {
            response.description =
                format!("{}, or several jobs have this name", response.description);
        }
        _ => _ = responses.insert("409".to_owned(), RefOr::T(problem(description))),
    }
}

/// What `keyed` takes and answers.
fn add_key(operation: &mut Operation) {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(255))
        .pattern(Some("^[!-~]+$"));
    let key = ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("Names this request for 24 hours: sent again, it is not done again"))
        .schema(Some(schema))
        .build();
    operation.parameters.get_or_insert_default().push(RefOr::T(key));
    for (status, description) in [
        ("409", "A request with the same Idempotency-Key is under way"),
        ("422", "Another request had the same Idempotency-Key, or it is none"),
    ] {
        let responses = &mut operation.responses.responses;
        responses.entry(status.to_owned()).or_insert_with(|| RefOr::T(problem(description)));
    }
}

fn add_refusals(operation: &mut Operation, has_body: bool) {
    let is_public = operation.security.iter().flatten().all(|needed| *needed == Default::default());
    let mut refusals = vec![("500", "Something went wrong in the server")];
    if !is_public {
        refusals.push(("401", "There is no valid token"));
        refusals.push(("403", "The token does not allow this"));
    }
    if !is_public {
        refusals
            .push(("429", "Too many credentials from this address were refused; see Retry-After"));
    }
    if has_body {
        refusals.push(("408", "The body did not come in time; nothing was done"));
        refusals.push(("413", "The body is too large"));
    }
    if operation.request_body.is_some() {
        refusals.push(("400", "The body is not JSON"));
        refusals.push(("415", "The body is not said to be JSON"));
    }
    refusals.push((
        "503",
        "The database does not answer, the request took too long, or too much is in flight",
    ));
    for (status, description) in refusals {
        operation
            .responses
            .responses
            .entry(status.to_owned())
            .or_insert_with(|| RefOr::T(problem(description)));
    }
}

fn problem(description: &str) -> Response {
    let schema = Ref::from_schema_name(Problem::name());
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", ContentBuilder::new().schema(Some(schema)).build())
        .build()
}
