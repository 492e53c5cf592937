//! `GET /api/openapi.json`: the OpenAPI document, generated from the declarations of the handlers.

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

/// The OpenAPI document as JSON text.
#[derive(Clone)]
pub(crate) struct Document(pub(crate) Arc<str>);

/// Returns this document
#[utoipa::path(
    get, path = "/api/openapi.json", tag = "operations",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)),
    extensions(("x-required-role" = json!("viewer"))),
)]
pub(crate) async fn get_openapi(Extension(document): Extension<Document>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document.0.to_string())
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Evenkeel",
        description = "A self-balancing, deadline-aware job scheduler. Times are RFC 3339 in UTC \
            with microseconds. Errors are RFC 9457 problem details.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    tags(
        (name = "jobs", description = "Create, change and control jobs"),
        (name = "schedules", description = "Preview a schedule without creating a job"),
        (name = "conditions", description = "Jobs that missed their deadline promise or are likely to miss it"),
        (name = "balance", description = "How runs are spread over the day, and rebalances that spread them evenly"),
        (name = "targets", description = "Sites or systems that jobs work on, with shared settings"),
        (name = "executions", description = "Attempts of runs, their logs, and dead letters"),
        (name = "events", description = "A live stream of events"),
        (name = "pages", description = "Pages stored by crawl jobs"),
        (name = "callbacks", description = "For HTTP receivers that answered 202: report progress \
            and the outcome of an attempt"),
        (name = "admin", description = "The same jobs, through an API compatible with a crawl queue"),
        (name = "access", description = "API keys, secrets and the audit log"),
        (name = "operations", description = "Health, metrics and nodes, for server operators"),
    ),
    components(schemas(Problem, FieldError, ProblemType, crate::events::view::EventView)),
    modifiers(&Bearer),
)]
struct Frame;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_default();
        for (name, description) in [
            (
                "bearer",
                "A token made by `evenkeel token create` or by your identity provider, or an API key \
                 (`ek_…`). `x-required-role` of each operation is the lowest role that may call it.",
            ),
            ("attempt", "The token sent with the call, in the header X-Evenkeel-Callback-Token"),
        ] {
            let mut scheme = Http::new(HttpAuthScheme::Bearer);
            scheme.description = Some(description.into());
            components.add_security_scheme(name, SecurityScheme::Http(scheme));
        }
    }
}

/// Returns the OpenAPI document without operations: general information, tags and security schemes.
pub(crate) fn frame() -> OpenApi {
    Frame::openapi()
}

/// Adds what the declarations of the operations leave out: the required token, and the error
/// responses that follow from the path, the parameters and the layers around the handlers.
///
/// The declaration of an operation therefore lists only success responses and conflicts of its own.
/// An error response is declared by status and description only, because its body is always a
/// [`Problem`].
pub(crate) fn complete(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        for (has_body, operation) in [
            (false, &mut item.get),
            (true, &mut item.post),
            (true, &mut item.put),
            (true, &mut item.patch),
            (true, &mut item.delete),
        ] {
            let Some(operation) = operation else { continue };
            if operation.security.is_none() {
                let bearer = SecurityRequirement::new("bearer", Vec::<String>::new());
                operation.security = Some(vec![bearer]);
            }
            add_lookups(path, operation);
            if path.starts_with("/api/v1/jobs/{id}") || has_parameter(operation, "job_id") {
                add_ambiguity(operation);
            }
            if shows_invalid_parameters(operation) {
                add(
                    operation,
                    "422",
                    "A parameter or field is invalid; `errors` lists all of them",
                );
            }
            add_refusals(operation, has_body);
            fill_problems(operation);
        }
        if let Some(operation) = item.post.as_mut().filter(|operation| takes_bearer(operation)) {
            add_idempotency_key(operation);
        }
    }
}

/// Documents an error response, unless the operation already declares one with this status.
fn add(operation: &mut Operation, status: &str, description: &str) {
    let responses = &mut operation.responses.responses;
    responses.entry(status.to_owned()).or_insert_with(|| RefOr::T(problem(description)));
}

/// True if the operation needs the token of a user; false if it needs no token or the token of an
/// attempt.
fn takes_bearer(operation: &Operation) -> bool {
    let bearer = SecurityRequirement::new("bearer", Vec::<String>::new());
    operation.security.iter().flatten().any(|needed| *needed == bearer)
}

fn has_parameter(operation: &Operation, name: &str) -> bool {
    let mut parameters = operation.parameters.iter().flatten();
    parameters.any(|one| matches!(one, RefOr::T(parameter) if parameter.name == name))
}

/// True if the OpenAPI document shows a 422 response for unknown parameters. Operations for server
/// operators do not show the 422 response, except lists. `get_job_stats` does not show the 422
/// response either, although it refuses unknown parameters.
fn shows_invalid_parameters(operation: &Operation) -> bool {
    let is_for_operators = operation.tags.iter().flatten().any(|tag| tag == "operations");
    let is_exception = operation.operation_id.as_deref() == Some("get_job_stats");
    !is_exception && (!is_for_operators || has_parameter(operation, "limit"))
}

/// An operation on a resource answers 404 if the resource does not exist, unless the operation
/// creates it.
fn add_lookups(path: &str, operation: &mut Operation) {
    let creates = operation.responses.responses.contains_key("201");
    if (path.contains('{') && !creates) || has_parameter(operation, "job_id") {
        add(operation, "404", "Not found, or it belongs to another tenant");
    }
}

/// Documents the conflict response for a name that several jobs share; jobs with different
/// configurations may have the same name.
fn add_ambiguity(operation: &mut Operation) {
    match operation.responses.responses.get_mut("409") {
        Some(RefOr::T(response)) => response.description += ", or several jobs have this name",
        _ => add(operation, "409", "Several jobs have this name; the detail lists their ids"),
    }
}

/// Documents the header `Idempotency-Key` and the error responses of the module `idempotency`.
fn add_idempotency_key(operation: &mut Operation) {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(255))
        .pattern(Some("^[!-~]+$"));
    let key = ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "Identifies this request for 24 hours: a repeated request with the same key is not \
             carried out again and gets the first answer",
        ))
        .schema(Some(schema))
        .build();
    operation.parameters.get_or_insert_default().push(RefOr::T(key));
    add(operation, "409", "A request with the same Idempotency-Key is in progress");
    add(operation, "422", "The Idempotency-Key is invalid or was used for another request");
}

/// Documents the error responses of the layers around every handler.
fn add_refusals(operation: &mut Operation, has_body: bool) {
    let is_public = operation.security.iter().flatten().all(|needed| *needed == Default::default());
    add(operation, "500", "Internal error; the server's log has the cause");
    add(operation, "503", "The database is unavailable, or the server is overloaded or too slow");
    if !is_public {
        add(operation, "401", "The token is missing or invalid");
        add(operation, "403", "The token's role or tenant does not allow this");
        add(
            operation,
            "429",
            "Too many invalid credentials from this address; wait as Retry-After says",
        );
    }
    if has_body {
        add(operation, "408", "The body did not arrive in time; nothing was changed");
        add(operation, "413", "The body is too large");
    }
    if operation.request_body.is_some() {
        add(operation, "400", "The body is not valid JSON");
        add(operation, "415", "The Content-Type is not application/json");
    }
}

/// Sets the schema of [`Problem`] for each error response that is declared without a body.
fn fill_problems(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && status.as_str() >= "400"
            && response.content.is_empty()
        {
            response.content = problem("").content;
        }
    }
}

fn problem(description: &str) -> Response {
    let schema = Ref::from_schema_name(Problem::name());
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", ContentBuilder::new().schema(Some(schema)).build())
        .build()
}
