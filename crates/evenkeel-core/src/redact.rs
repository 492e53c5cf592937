//! Redacts the parts of a job that users with the role viewer may not see.
//!
//! A redacted value is replaced with `{"redacted": true}`, a redacted part of a URL with `***`.
//! Neither `{"redacted": true}` nor `***` can be a real value. When a client sends a redacted job
//! to the server, [`restore`] replaces unchanged redactions with the stored values. [`redacted_in`]
//! finds the redactions that are left.

use serde_json::{Map, Value, json};

use crate::executor::{ConfigField, FieldKind};
use crate::secret;

/// The text that replaces a redacted part of a URL.
pub const MASK: &str = "***";

/// Replaces a whole value.
pub fn marker() -> Value {
    json!({"redacted": true})
}

pub fn is_marker(value: &Value) -> bool {
    matches!(value, Value::Object(fields)
        if fields.len() == 1 && fields.get("redacted") == Some(&Value::Bool(true)))
}

/// Redacts the configuration of an executor according to the declared kind of each field. The value
/// of an undeclared field is redacted completely. References to secrets stay visible.
pub fn config(config: &mut Value, declared: &[ConfigField]) {
    match config {
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(key, value)| field(value, kind_of(key, declared)));
        }
        other => whole(other),
    }
}

fn kind_of(key: &str, declared: &[ConfigField]) -> FieldKind {
    declared.iter().find(|field| field.name == key).map_or(FieldKind::Hidden, |field| field.kind)
}

fn field(value: &mut Value, kind: FieldKind) {
    match (kind, value) {
        (FieldKind::Public, _) => {}
        (FieldKind::Url, Value::String(text)) => *text = url(text),
        (FieldKind::UrlList, Value::Array(urls)) => {
            urls.iter_mut().for_each(|url| field(url, FieldKind::Url));
        }
        (FieldKind::HiddenValues, Value::Object(values)) => values.values_mut().for_each(whole),
        (FieldKind::Arguments, Value::Array(items)) => items.iter_mut().skip(1).for_each(whole),
        // `Hidden` fields, and values that do not have the declared type, are redacted completely.
        (_, value) => whole(value),
    }
}

pub fn payload(payload: &mut Value) {
    whole(payload);
}

/// Redacts the user, password, query values and fragment of a URL. `text` may also be a longer text
/// that begins with a URL. Template placeholders are not redacted.
pub fn url(text: &str) -> String {
    let Some(start) = text.find("://").map(|at| at + 3) else { return text.to_owned() };
    let authority = text[start..].find(['/', '?', '#', '\\']).map_or(text.len(), |at| start + at);
    // A password may contain an unescaped `@`, so the last `@` before the path ends the password.
    let user_end = text[start..authority].rfind('@').map_or(start, |at| start + at);
    let mut shown = text[..start].to_owned();
    if user_end > start {
        shown.push_str(MASK);
    }
    let (rest, fragment) = text[user_end..].split_once('#').unwrap_or((&text[user_end..], ""));
    match rest.split_once('?') {
        Some((path, query)) => {
            let pairs: Vec<String> = query.split('&').map(pair).collect();
            shown.push_str(&format!("{path}?{}", pairs.join("&")));
        }
        None => shown.push_str(rest),
    }
    if !fragment.is_empty() {
        shown.push('#');
        shown.push_str(MASK);
    }
    shown
}

/// Redacts the value of a query parameter. A query parameter without `=` is redacted completely,
/// because it may be a value.
fn pair(text: &str) -> String {
    let is_place = |value: &str| value.starts_with("{{") && value.ends_with("}}");
    match text.split_once('=') {
        Some((_, value)) if value.is_empty() || is_place(value) => text.to_owned(),
        Some((name, _)) => format!("{name}={MASK}"),
        None if text.is_empty() || is_place(text) => text.to_owned(),
        None => MASK.to_owned(),
    }
}

fn whole(value: &mut Value) {
    if !value.is_null() && secret::named(value).is_none() {
        *value = marker();
    }
}

/// Redacts a job in its API representation.
pub fn job(shown: &mut Map<String, Value>, declared: &[ConfigField]) {
    for (key, value) in shown {
        match key.as_str() {
            "executor_config" => config(value, declared),
            "payload" => payload(value),
            "url" | "dedup_key" => field(value, FieldKind::Url),
            _ => {}
        }
    }
}

/// Replaces redactions in `sent`, the job that a client sends, with values from `seen`, the stored
/// job.
pub fn restore(sent: &mut Map<String, Value>, seen: &Map<String, Value>, declared: &[ConfigField]) {
    let mut hidden = seen.clone();
    job(&mut hidden, declared);
    restore_fields(sent, seen, &hidden);
}

fn restore_fields(
    sent: &mut Map<String, Value>,
    seen: &Map<String, Value>,
    hidden: &Map<String, Value>,
) {
    for (key, value) in sent {
        if let (Some(seen), Some(hidden)) = (seen.get(key), hidden.get(key)) {
            restore_value(value, seen, hidden);
        }
    }
}

fn restore_value(sent: &mut Value, seen: &Value, hidden: &Value) {
    if seen == hidden {
        return;
    }
    if sent == hidden {
        sent.clone_from(seen);
        return;
    }
    match (sent, seen, hidden) {
        (Value::Object(sent), Value::Object(seen), Value::Object(hidden)) => {
            restore_fields(sent, seen, hidden);
        }
        (Value::Array(sent), Value::Array(seen), Value::Array(hidden))
            if sent.len() == seen.len() && seen.len() == hidden.len() =>
        {
            for (sent, (seen, hidden)) in sent.iter_mut().zip(seen.iter().zip(hidden)) {
                restore_value(sent, seen, hidden);
            }
        }
        _ => {}
    }
}

/// Returns the first field of a job that contains a redaction.
pub fn redacted_in(document: &Map<String, Value>, declared: &[ConfigField]) -> Option<String> {
    document.iter().find_map(|(key, value)| match key.as_str() {
        "executor_config" => find_in_config(value, declared),
        "payload" => find(value, key),
        "url" | "dedup_key" => find(value, key).or_else(|| is_hidden(value).then(|| key.clone())),
        _ => None,
    })
}

fn find_in_config(config: &Value, declared: &[ConfigField]) -> Option<String> {
    let fields = match config {
        Value::Object(fields) if !is_marker(config) => fields,
        _ => return find(config, "executor_config"),
    };
    fields.iter().find_map(|(key, value)| {
        let field = format!("executor_config.{key}");
        match (kind_of(key, declared), value) {
            (FieldKind::Url, url) if is_hidden(url) => Some(field),
            (FieldKind::UrlList, Value::Array(urls)) => {
                let hidden = urls.iter().position(is_hidden);
                hidden.map(|n| format!("{field}[{n}]")).or_else(|| find(value, &field))
            }
            _ => find(value, &field),
        }
    })
}

/// Returns the path of the first redacted value inside `value`; `field` is the path of `value`
/// itself.
fn find(value: &Value, field: &str) -> Option<String> {
    match value {
        _ if is_marker(value) => Some(field.to_owned()),
        Value::Object(fields) => {
            fields.iter().find_map(|(key, value)| find(value, &format!("{field}.{key}")))
        }
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(n, value)| find(value, &format!("{field}[{n}]")))
        }
        _ => None,
    }
}

/// True if a URL contains `***` in place of the user, a query value or the fragment.
pub fn is_hidden_url(text: &str) -> bool {
    let hides = |mark| text.contains(mark);
    hides("://") && ["://***@", "=***", "?***", "&***", "#***"].into_iter().any(hides)
}

fn is_hidden(value: &Value) -> bool {
    value.as_str().is_some_and(is_hidden_url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_shown_without_possible_secrets() {
        for (text, shown) in [
            ("https://ann:pw@example.com/a@b", "https://***@example.com/a@b"),
            ("https://ann:p@w@example.com", "https://***@example.com"),
            ("https://example.com/?x=a@b&y=&z", "https://example.com/?x=***&y=&***"),
            (
                "https://e.com/p?id={{payload.id}}&t=1#frag",
                "https://e.com/p?id={{payload.id}}&t=***#***",
            ),
            ("https://example.com", "https://example.com"),
            ("target:5", "target:5"),
            ("ann@example.com", "ann@example.com"),
        ] {
            assert_eq!(url(text), shown);
            assert_eq!(url(shown), shown, "hiding twice changes nothing");
        }
    }

    const DECLARED: [ConfigField; 6] = [
        ConfigField::new("url", FieldKind::Url),
        ConfigField::new("start_urls", FieldKind::UrlList),
        ConfigField::new("body", FieldKind::Hidden),
        ConfigField::new("headers", FieldKind::HiddenValues),
        ConfigField::new("argv", FieldKind::Arguments),
        ConfigField::public("method"),
    ];

    fn shown() -> Map<String, Value> {
        let job = json!({
            "name": "a", "dedup_key": "https://u:p@e.com/", "url": null, "payload": {"k": "v"},
            "executor_config": {
                "url": "https://u:p@e.com/?q=1", "method": "GET", "body": {"a": 1},
                "headers": {"A": "x", "B": {"secret": "s"}}, "argv": ["sh", "-c", "x"],
                "start_urls": ["https://u@e.com/", 7], "token": "t",
            },
        });
        job.as_object().unwrap().clone()
    }

    #[test]
    fn viewers_see_names_and_references_but_no_values() {
        let mut hidden = shown();
        job(&mut hidden, &DECLARED);
        let redacted = json!({"redacted": true});
        let expected = json!({
            "name": "a", "dedup_key": "https://***@e.com/", "url": null, "payload": redacted,
            "executor_config": {
                "url": "https://***@e.com/?q=***", "method": "GET", "body": redacted,
                "headers": {"A": redacted, "B": {"secret": "s"}},
                "argv": ["sh", redacted, redacted],
                "start_urls": ["https://***@e.com/", redacted], "token": redacted,
            },
        });
        assert_eq!(Value::Object(hidden), expected);
    }

    #[test]
    fn fields_that_no_executor_declares_are_redacted() {
        let mut settings = json!({"token": "t", "url": "https://e.com/", "ref": {"secret": "s"}});
        config(&mut settings, &[]);
        let redacted = marker();
        let expected = json!({"token": redacted, "url": redacted, "ref": {"secret": "s"}});
        assert_eq!(settings, expected);
    }

    #[test]
    fn redaction_that_comes_back_is_restored() {
        let mut sent = shown();
        job(&mut sent, &DECLARED);
        sent["name"] = "b".into();
        sent["executor_config"]["headers"]["C"] = "new".into();
        sent["executor_config"]["argv"][2] = "y".into();
        restore(&mut sent, &shown(), &DECLARED);
        let mut expected = shown();
        expected["name"] = "b".into();
        expected["executor_config"]["headers"]["C"] = "new".into();
        expected["executor_config"]["argv"][2] = "y".into();
        assert_eq!(sent, expected);
        assert_eq!(redacted_in(&sent, &DECLARED), None);
    }

    #[test]
    fn redaction_without_a_stored_value_is_found() {
        for (document, field) in [
            (json!({"payload": {"a": [{"redacted": true}]}}), "payload.a[0]"),
            (
                json!({"executor_config": {"headers": {"A": {"redacted": true}}}}),
                "executor_config.headers.A",
            ),
            (json!({"executor_config": {"url": "https://***@e.com/"}}), "executor_config.url"),
            (
                json!({"executor_config": {"start_urls": ["https://e.com/?a=***"]}}),
                "executor_config.start_urls[0]",
            ),
            (json!({"dedup_key": "https://***@e.com/"}), "dedup_key"),
        ] {
            let found = redacted_in(document.as_object().unwrap(), &DECLARED);
            assert_eq!(found.as_deref(), Some(field));
        }
        let good = json!({"payload": "***", "dedup_key": "a***", "metadata": {"redacted": true}});
        assert_eq!(redacted_in(good.as_object().unwrap(), &DECLARED), None);
    }
}
