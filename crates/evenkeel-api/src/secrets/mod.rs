//! `/api/v1/secrets…`: named secrets. No response contains the value of a secret.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;
pub(crate) mod rotate;

use evenkeel_core::{Timestamp, secret};
use evenkeel_secrets::SecretError;
use evenkeel_store::SecretInfo;
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::{Problem, ProblemType};

/// A secret without its value, which the API never shows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
pub struct SecretView {
    /// Name by which jobs refer to the secret.
    #[schema(example = "api-token")]
    pub name: String,
    /// Version of the value, counted from 1; each new value increases it.
    #[schema(example = 1)]
    pub version: i32,
    /// Id of the server's key that encrypts the value.
    #[schema(example = "5f0c2a9be1d47380")]
    pub key_id: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Subject that created the secret.
    pub created_by: String,
    /// Time when the present value was set.
    pub updated_at: Timestamp,
    /// Subject that set the present value.
    pub updated_by: String,
}

impl From<SecretInfo> for SecretView {
    fn from(info: SecretInfo) -> Self {
        Self {
            name: info.name,
            version: info.version,
            key_id: info.key_id,
            created_at: info.created_at,
            created_by: info.created_by,
            updated_at: info.updated_at,
            updated_by: info.updated_by,
        }
    }
}

fn missing() -> Problem {
    Problem::new(ProblemType::NotFound, "there is no such secret")
}

fn read_name(name: String) -> Result<String, Problem> {
    if secret::is_name(&name) {
        return Ok(name);
    }
    Err(Problem::parameter(
        "name",
        "is not the name of a secret; give it 1 to 128 letters, digits, dots, dashes and \
         underscores, the first one a letter or digit",
    ))
}

impl From<SecretError> for Problem {
    fn from(error: SecretError) -> Self {
        let detail = error.to_string();
        match error {
            SecretError::NoKey => Self::new(ProblemType::NoSecretKey, detail),
            SecretError::Length(_) => Self::parameter("value", detail),
            SecretError::Store(error) => error.into(),
        }
    }
}
