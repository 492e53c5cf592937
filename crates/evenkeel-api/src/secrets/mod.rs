//! `/api/v1/secrets…`: named secrets. No response contains the value of a secret.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;
pub(crate) mod rotate;

use evenkeel_core::{Timestamp, secret};
use evenkeel_secrets::SecretError;
use evenkeel_store::SecretInfo;

use crate::problem::{Problem, ProblemType};
use crate::view::view;

view! {
    /// A secret without its value, which the API never shows.
    SecretView::new(info: SecretInfo) {}

    /// Name by which jobs refer to the secret.
    #[schema(example = "api-token")]
    name: String = info.name,
    /// Version of the value, counted from 1; each new value increases it.
    #[schema(example = 1)]
    version: i32 = info.version,
    /// Id of the server's key that encrypts the value.
    #[schema(example = "5f0c2a9be1d47380")]
    key_id: String = info.key_id,
    /// Creation time.
    created_at: Timestamp = info.created_at,
    /// Subject that created the secret.
    created_by: String = info.created_by,
    /// Time when the present value was set.
    updated_at: Timestamp = info.updated_at,
    /// Subject that set the present value.
    updated_by: String = info.updated_by,
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
