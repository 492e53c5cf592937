//! Finds references to secrets in a job and replaces them with the secret values.

use serde_json::Value;

use super::named;
use crate::executor::{ConfigField, FieldKind};

/// The delimiters of a placeholder inside a text.
const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// A reference to a secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SecretRef {
    /// The path of the field, like `executor_config.headers.Authorization`.
    pub field: String,
    pub name: String,
}

impl SecretRef {
    /// Returns the field of `executor_config` that contains the reference; empty if the reference
    /// is in the payload.
    pub fn config_field(&self) -> &str {
        let path = self.field.strip_prefix("executor_config.").unwrap_or_default();
        path.split(['.', '[']).next().unwrap_or_default()
    }
}

/// True if a job contains any reference to a secret. The search for references to secrets allocates
/// no memory, because every attempt makes the search.
pub fn has_references(config: &Value, payload: &Value) -> bool {
    refers(config, true) || refers(payload, false)
}

fn refers(value: &Value, in_texts: bool) -> bool {
    match value {
        Value::Object(_) if named(value).is_some() => true,
        Value::Object(fields) => fields.values().any(|value| refers(value, in_texts)),
        Value::Array(items) => items.iter().any(|value| refers(value, in_texts)),
        Value::String(text) => in_texts && text.contains(OPEN) && pieces(text).any(is_secret),
        _ => false,
    }
}

/// Returns all references to secrets in a job. In the payload, only whole values can be references
/// to secrets, because texts in the payload are not templates.
pub fn references(config: &Value, payload: &Value) -> Vec<SecretRef> {
    let mut found = Vec::new();
    collect(config, "executor_config", true, &mut found);
    collect(payload, "payload", false, &mut found);
    found
}

fn collect(value: &Value, field: &str, in_texts: bool, found: &mut Vec<SecretRef>) {
    let mut add = |name: &str| found.push(SecretRef { field: field.into(), name: name.into() });
    match value {
        Value::Object(fields) => match named(value) {
            Some(name) => add(name),
            None => {
                for (key, value) in fields {
                    collect(value, &format!("{field}.{key}"), in_texts, found);
                }
            }
        },
        Value::Array(items) => {
            for (n, value) in items.iter().enumerate() {
                collect(value, &format!("{field}[{n}]"), in_texts, found);
            }
        }
        Value::String(text) if in_texts => pieces(text).for_each(|piece| {
            if let Piece::Secret(name) = piece {
                add(name);
            }
        }),
        _ => {}
    }
}

/// Returns the first reference to a secret that is not allowed. Not allowed are references in
/// configuration fields that do not accept secrets, and references in the payload that a template
/// would insert into a program argument.
pub fn misplaced(config: &Value, payload: &Value, declared: &[ConfigField]) -> Option<SecretRef> {
    let wrong = references(config, &Value::Null).into_iter().find(|found| {
        !declared.iter().any(|field| field.takes_secrets && field.name == found.config_field())
    });
    let arguments = || declared.iter().filter(|field| field.kind == FieldKind::Arguments);
    wrong.or_else(|| {
        arguments().find_map(|field| {
            secret_argument(field.name, config.get(field.name)?.as_array()?, payload)
        })
    })
}

fn secret_argument(field: &str, argv: &[Value], payload: &Value) -> Option<SecretRef> {
    let secrets = references(&Value::Null, payload);
    let shows = |path: &str, secret: &SecretRef| {
        let steps: Vec<&str> = path.split('.').collect();
        let own = secret.field.replace('[', ".").replace(']', "");
        own.split('.').zip(&steps).all(|(own, step)| own == *step)
    };
    argv.iter().enumerate().find_map(|(n, arg)| {
        pieces(arg.as_str()?).find_map(|piece| match piece {
            Piece::Other(path) if path.starts_with("payload") => {
                let secret = secrets.iter().find(|secret| shows(path, secret))?;
                let field = format!("executor_config.{field}[{n}]");
                Some(SecretRef { field, name: secret.name.clone() })
            }
            _ => None,
        })
    })
}

/// Returns the configuration and the payload with references to secrets replaced by secret values.
/// A reference to a secret without a value becomes an empty text.
pub fn fill<'v>(
    config: &Value,
    payload: &Value,
    declared: &[ConfigField],
    value_of: &dyn Fn(&str) -> Option<&'v str>,
) -> (Value, Value) {
    let known = |name: &str| value_of(name).unwrap_or_default();
    // Secret values are inserted into texts of the configuration as literals, because these texts
    // are templates and secret values must not be interpreted as templates.
    let literal = |name: &str| {
        let json = Value::from(known(name)).to_string().replace('}', "\\u007d");
        format!("{OPEN}{json}{CLOSE}")
    };
    let in_text = |text: &str| text.contains(OPEN).then(|| replaced(text, &literal));
    let field = |(key, value): (&String, &Value)| {
        let value = if is_url(key, declared) {
            filled_url(value, &known)
        } else {
            put_in(value, &literal, &in_text)
        };
        (key.clone(), value)
    };
    let config = match config {
        Value::Object(fields) => Value::Object(fields.iter().map(field).collect()),
        other => other.clone(),
    };
    // The payload is not a template, so secret values are inserted unchanged.
    (config, put_in(payload, &|name| known(name).to_owned(), &|_| None))
}

/// Like [`fill`], but inserts example values in place of secret values, so that a new job can be
/// validated.
pub fn placeholders(config: &Value, payload: &Value, declared: &[ConfigField]) -> (Value, Value) {
    let mut config = config.clone();
    for (key, value) in config.as_object_mut().into_iter().flatten() {
        if is_url(key, declared) && named(value).is_some() {
            *value = "https://secret.invalid/".into();
        }
    }
    fill(&config, payload, declared, &|_| Some("secret"))
}

fn is_url(key: &str, declared: &[ConfigField]) -> bool {
    declared.iter().any(|field| field.name == key && field.kind == FieldKind::Url)
}

fn filled_url<'v>(value: &Value, known: &dyn Fn(&str) -> &'v str) -> Value {
    match (named(value), value) {
        // Braces in the secret value are escaped, because the URL is later read as a template.
        (Some(name), _) => known(name).replace(OPEN, "%7B%7B").into(),
        (None, Value::String(text)) => replaced(text, &|name| url_escaped(known(name))).into(),
        (None, other) => other.clone(),
    }
}

/// Replaces values that are a reference to a secret with the result of `whole`. Replaces texts with
/// the result of `in_text`, unless the result is `None`.
fn put_in(
    value: &Value,
    whole: &dyn Fn(&str) -> String,
    in_text: &dyn Fn(&str) -> Option<String>,
) -> Value {
    let put = |value| put_in(value, whole, in_text);
    match value {
        Value::Object(fields) => match named(value) {
            Some(name) => whole(name).into(),
            None => fields.iter().map(|(key, value)| (key.clone(), put(value))).collect(),
        },
        Value::Array(items) => items.iter().map(put).collect(),
        Value::String(text) => in_text(text).unwrap_or_else(|| text.clone()).into(),
        other => other.clone(),
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Piece<'t> {
    Text(&'t str),
    /// `{{secret.name}}`.
    Secret(&'t str),
    /// Another placeholder, without its braces.
    Other(&'t str),
}

fn is_secret(piece: Piece<'_>) -> bool {
    matches!(piece, Piece::Secret(_))
}

/// Splits a text into placeholders and ordinary text. An unclosed placeholder counts as ordinary
/// text, which the executor refuses later.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some(inner) = rest.strip_prefix(OPEN)
            && let Some((place, after)) = inner.split_once(CLOSE)
        {
            rest = after;
            let place = place.trim();
            return Some(place.strip_prefix("secret.").map_or(Piece::Other(place), Piece::Secret));
        }
        let open = rest.strip_prefix(OPEN).map_or(0, |_| OPEN.len());
        let end = rest[open..].find(OPEN).map_or(rest.len(), |at| open + at);
        let (part, after) = rest.split_at(end);
        rest = after;
        Some(Piece::Text(part))
    })
}

fn replaced(text: &str, value_of: &dyn Fn(&str) -> String) -> String {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(part) => filled.push_str(part),
            Piece::Secret(name) => filled.push_str(&value_of(name)),
            Piece::Other(place) => filled.extend([OPEN, place, CLOSE]),
        }
    }
    filled
}

/// Escapes a value for use inside a URL: all characters except letters, digits, `-`, `_`, `.` and
/// `~` become `%xx`.
pub fn url_escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DECLARED: [ConfigField; 4] = [
        ConfigField::new("url", FieldKind::Url).with_secrets(),
        ConfigField::new("headers", FieldKind::HiddenValues),
        ConfigField::new("env", FieldKind::HiddenValues).with_secrets(),
        ConfigField::new("argv", FieldKind::Arguments),
    ];

    fn value_of(name: &str) -> Option<&'static str> {
        match name {
            "pw" => Some("p@ss/{{x}}\""),
            "url" => Some("https://e.com/{{"),
            _ => None,
        }
    }

    #[test]
    fn references_are_found_with_their_fields() {
        let config = json!({
            "url": "https://u:{{secret.pw}}@e.com/{{payload.x}}",
            "headers": {"A": {"secret": "a"}, "B": "Bearer {{ secret.b }}", "C": "{{secret.d"},
            "body": {"x": [1, {"secret": "c"}]},
        });
        let payload = json!({"t": {"secret": "p"}, "text": "{{secret.no}}"});
        let found: Vec<String> = references(&config, &payload)
            .into_iter()
            .map(|found| format!("{}={}", found.field, found.name))
            .collect();
        assert_eq!(
            found,
            [
                "executor_config.body.x[1]=c", "executor_config.headers.A=a",
                "executor_config.headers.B=b", "executor_config.url=pw", "payload.t=p",
            ]
        );
        assert!(has_references(&config, &Value::Null) && has_references(&Value::Null, &payload));
        let plain = json!({"url": "https://e.com/{{payload.secret.x}}", "n": 1, "secret": "x"});
        assert!(!has_references(&plain, &json!({"text": "{{secret.no}}"})));
    }

    #[test]
    fn each_reference_gets_the_value_in_its_own_form() {
        let config = json!({
            "url": "https://u:{{secret.pw}}@e.com/?{{payload.x}}",
            "headers": {"A": {"secret": "pw"}, "B": "x {{secret.pw}} {{attempt}}"},
        });
        let (config, payload) =
            fill(&config, &json!([{"secret": "pw"}, "{{secret.pw}}"]), &DECLARED, &value_of);
        assert_eq!(config["url"], "https://u:p%40ss%2F%7B%7Bx%7D%7D%22@e.com/?{{payload.x}}");
        let literal = r#"{{"p@ss/{{x\u007d\u007d\""}}"#;
        assert_eq!(config["headers"]["A"], literal);
        assert_eq!(config["headers"]["B"], format!("x {literal} {{{{attempt}}}}"));
        assert_eq!(payload, json!(["p@ss/{{x}}\"", "{{secret.pw}}"]));
        let config = json!({"url": {"secret": "url"}});
        let (config, _) = fill(&config, &Value::Null, &DECLARED, &value_of);
        assert_eq!(config["url"], "https://e.com/%7B%7B");
    }

    #[test]
    fn reference_in_a_field_without_secrets_is_named() {
        let field = |config: Value, payload: Value| {
            misplaced(&config, &payload, &DECLARED).map(|found| found.field)
        };
        assert_eq!(field(json!({"env": {"A": {"secret": "a"}}}), Value::Null), None);
        let in_argv = json!({"argv": ["x", "{{secret.a}}"]});
        assert_eq!(field(in_argv, Value::Null).as_deref(), Some("executor_config.argv[1]"));
        let by_payload = json!({"argv": ["x", "{{payload.a}}", "{{payload.b.0}}"]});
        assert_eq!(field(by_payload.clone(), json!({"a": 1, "b": [2]})), None);
        let secret = json!({"a": 1, "b": [{"secret": "s"}]});
        assert_eq!(field(by_payload, secret.clone()).as_deref(), Some("executor_config.argv[2]"));
        let whole = json!({"argv": ["x", "{{payload}}"]});
        assert_eq!(field(whole, secret).as_deref(), Some("executor_config.argv[1]"));
    }

    #[test]
    fn placeholders_leave_no_reference() {
        let config = json!({"url": {"secret": "u"}, "headers": {"A": "{{secret.a}}"}});
        let (config, payload) = placeholders(&config, &json!({"secret": "p"}), &DECLARED);
        assert!(!has_references(&config, &payload));
        assert_eq!(config["url"], "https://secret.invalid/");
    }
}
