//! Named secrets: how jobs refer to secrets, and how secret values are kept out of stored data.
//!
//! A stored job never contains the value of a secret. A job refers to a secret with `{"secret":
//! "name"}` in place of a text, or with `{{secret.name}}` inside a text. The secret value is
//! inserted in memory when an attempt starts, and [`Masks`] removes the value from everything that
//! the attempt reports.

mod masks;
mod places;

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

use crate::TenantNo;

pub use masks::Masks;
pub use places::{
    SecretRef, fill, has_references, misplaced, placeholders, references, url_escaped,
};

pub const NAME_CHARS_MAX: usize = 128;

pub const VALUE_BYTES_MAX: usize = 64 * 1024;

/// True if `text` is a valid name of a secret: letters, digits, `_`, `-` and `.`, starting with a
/// letter or digit.
pub fn is_name(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=NAME_CHARS_MAX).contains(&text.len())
        && text.bytes().all(legal)
        && text.as_bytes()[0].is_ascii_alphanumeric()
}

/// Returns the name in `{"secret": "name"}`.
pub fn named(value: &Value) -> Option<&str> {
    match value {
        Value::Object(fields) if fields.len() == 1 => fields.get("secret")?.as_str(),
        _ => None,
    }
}

pub type SecretValues<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Option<String>>, String>> + Send + 'a>>;

/// Looks up the values of secrets when an attempt starts.
pub trait SecretSource: Send + Sync {
    /// Returns the values of the secrets `names` in the same order, with `None` for a name that the
    /// tenant does not have. The returned error is a sentence without secret values, which is
    /// stored with the attempt.
    fn values<'a>(&'a self, tenant: TenantNo, names: &'a [String]) -> SecretValues<'a>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secret_name_is_short_and_plain() {
        for good in ["a", "API_KEY", "db.password-2", "9lives"] {
            assert!(is_name(good), "{good}");
        }
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        for bad in ["", "-a", ".a", "a b", "a/b", "ä", "a}}", long.as_str()] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn secret_reference_is_an_object_with_one_text() {
        assert_eq!(named(&json!({"secret": "a"})), Some("a"));
        for other in [json!("a"), json!({"secret": 1}), json!({"secret": "a", "b": 1}), json!({})] {
            assert_eq!(named(&other), None, "{other}");
        }
    }
}
