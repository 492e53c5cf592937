//! `PUT /api/v1/secrets/{name}`

use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{SecretView, read_name};
use crate::body::JsonBody;
use crate::call::Call;
use crate::params::PathId;
use crate::problem::Problem;

/// The value of a secret.
#[derive(Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(example = json!({"value": "s3cr3t"}))]
pub struct SecretDocument {
    /// Value of the secret, 1 to 65,536 bytes in UTF-8. The value is stored encrypted and never
    /// shown again.
    #[schema(min_length = 1, max_length = 65536)]
    pub value: String,
}

/// Creates a secret, or sets a new value of an existing secret.
///
/// Attempts that start after this request get the new value.
#[utoipa::path(
    put, path = "/api/v1/secrets/{name}", tag = "access",
    params(("name" = String, Path,
            description = "1 to 128 letters, digits, dots, dashes and underscores, the first one a \
                letter or digit")),
    request_body(content = SecretDocument, example = json!({"value": "s3cr3t"})),
    responses(
        (status = 201, description = "The secret was created", body = SecretView),
        (status = 200, description = "The secret has a new value", body = SecretView),
        (status = 409, description = "The server has no key to encrypt secrets with"),
    ),
    extensions(("x-required-role" = json!("admin"))),
)]
pub(crate) async fn put_secret(
    call: Call,
    PathId(name): PathId,
    JsonBody(document): JsonBody,
) -> Result<(StatusCode, Json<SecretView>), Problem> {
    let name = read_name(name)?;
    let value = read(document)?;
    let info = call.secrets.put(call.scope(), &name, &value, &call.caller.subject).await?;
    let status = if info.version == 1 { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(SecretView::new(info))))
}

/// Reads the value of a secret from a request body. Error messages never contain the value of the
/// secret.
fn read(document: Value) -> Result<String, Problem> {
    let Value::Object(mut fields) = document else {
        return Err(Problem::parameter("", "the body must be an object like {\"value\": \"…\"}"));
    };
    let value = fields.remove("value");
    if let Some(other) = fields.keys().next() {
        return Err(Problem::parameter(other, "is not known here; the only field is value"));
    }
    match value {
        Some(Value::String(value)) if value.contains('\0') => {
            Err(Problem::parameter("value", "holds a NUL character, which no receiver can get"))
        }
        Some(Value::String(value)) => Ok(value),
        Some(_) => Err(Problem::parameter("value", "must be a string")),
        None => Err(Problem::parameter("value", "is missing; send the value of the secret")),
    }
}
