//! `POST /api/v1/api-keys`

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use evenkeel_commands::Fault;
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::body::JsonBody;
use crate::call::Call;
use crate::idempotency::ShownOnce;
use crate::oversight::Target;
use crate::problem::{Problem, ProblemType};

const FIELDS: [&str; 4] = ["name", "role", "expires_at", "expires_in"];

/// A new API key.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[schema(example = json!({"name": "ci", "role": "operator", "expires_in": "90d"}))]
pub struct ApiKeyDocument {
    /// Name of the key: 1 to 255 characters, unique within the tenant.
    pub name: String,
    /// Role of the key: `viewer`, `operator` or `admin`.
    pub role: String,
    /// Expiry time. If neither `expires_at` nor `expires_in` is given, the key is valid until it is
    /// revoked.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Lifetime of the key as a duration, such as `90d`. Cannot be combined with `expires_at`.
    pub expires_in: Option<String>,
}

/// A new API key, including the secret.
#[derive(Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct MadeApiKeyView {
    /// Id of the key.
    pub id: Uuid,
    /// Name of the key.
    pub name: String,
    /// Role of the key.
    #[schema(value_type = String, example = "operator")]
    pub role: Role,
    /// Expiry time of the key; null if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// The secret key, which clients send as `Authorization: Bearer ek_…`. The server stores only a
    /// hash, so the key cannot be retrieved later.
    #[schema(example = "ek_0f3c…")]
    pub key: String,
}

/// Creates an API key in the caller's tenant.
///
/// Only a hash of the key is stored, so this response is the only place that shows the key.
#[utoipa::path(
    post, path = "/api/v1/api-keys", tag = "access",
    request_body(content = ApiKeyDocument, example = json!({"name": "ci", "role": "operator"})),
    responses(
        (status = 201, description = "The new API key", body = MadeApiKeyView),
        (status = 409, description = "Another API key already has this name"),
    ),
    extensions(("x-required-role" = json!("admin"))),
)]
pub(crate) async fn create_api_key(
    call: Call,
    JsonBody(document): JsonBody,
) -> Result<impl IntoResponse, Problem> {
    let (name, role, expires_at) = read(document, (call.clock)())?;
    let created = call
        .access
        .create_key(call.scope(), name.clone(), role, expires_at, &call.caller.subject)
        .await?;
    let Some((id, secret)) = created else {
        let detail =
            format!("another API key has the name {name:?}; revoke it, or choose another name");
        let taken = Problem::new(ProblemType::KeyNameTaken, detail);
        return Err(Problem { field: Some("name".into()), ..taken });
    };
    let key = secret.reveal().to_owned();
    let mut answer =
        (StatusCode::CREATED, Json(MadeApiKeyView { id, name, role, expires_at, key }))
            .into_response();
    answer.extensions_mut().insert(Target(id.to_string()));
    answer.extensions_mut().insert(ShownOnce);
    Ok(answer)
}

/// Reads the name, role and expiry of a new API key; the error lists all invalid fields.
fn read(document: Value, now: Timestamp) -> Result<(String, Role, Option<Timestamp>), Problem> {
    let Value::Object(mut fields) = document else {
        return Err(Problem::parameter("", "the body must be an object"));
    };
    let mut faults = Vec::new();
    let name = text(&mut fields, "name", &mut faults);
    let is_name = |name: &String| {
        (1..=255).contains(&name.chars().count()) && !name.contains(char::is_control)
    };
    if name.as_ref().is_none_or(|name| !is_name(name)) {
        faults.push(Fault::new("name", "give it 1 to 255 characters on one line"));
    }
    let role_name = text(&mut fields, "role", &mut faults);
    let role = Role::ALL.into_iter().find(|role| Some(role.as_str()) == role_name.as_deref());
    if role.is_none() {
        faults.push(Fault::new("role", "give it viewer, operator or admin"));
    }
    let at = text(&mut fields, "expires_at", &mut faults);
    let after = text(&mut fields, "expires_in", &mut faults);
    let expires_at = match (&at, &after) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            Err(("expires_in", "cannot be combined with expires_at; remove one of them"))
        }
        (Some(at), None) => at.parse().map(Some).map_err(|_| ("expires_at", "is not a time")),
        (None, Some(after)) => {
            let end = after.parse().map(|span: Span| Some(now.saturating_add(span)));
            end.map_err(|_| ("expires_in", "is not a duration like 90d"))
        }
    };
    let expires_at: Option<Timestamp> = expires_at.unwrap_or_else(|(field, message)| {
        faults.push(Fault::new(field, message));
        None
    });
    if expires_at.is_some_and(|end| end <= now) {
        let field = if at.is_some() { "expires_at" } else { "expires_in" };
        faults.push(Fault::new(field, "must be in the future"));
    }
    for unknown in fields.keys() {
        let message = format!("is not known here; the fields are {}", FIELDS.join(", "));
        faults.push(Fault::new(unknown.as_str(), message));
    }
    match (name, role) {
        (Some(name), Some(role)) if faults.is_empty() => Ok((name, role, expires_at)),
        _ => Err(Problem::of_fields(ProblemType::InvalidParameter, faults)),
    }
}

fn text(
    fields: &mut Map<String, Value>,
    name: &'static str,
    faults: &mut Vec<Fault>,
) -> Option<String> {
    match fields.remove(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(_) => {
            faults.push(Fault::new(name, "must be a string"));
            None
        }
    }
}
