//! The schemas of the OpenAPI document.

use maud::{Markup, html};
use serde_json::Value;

use crate::text;

const SCHEMAS: &str = "#/components/schemas/";

/// Returns the value that a `$ref` points to, or the value itself if it is not a `$ref`.
pub(super) fn followed<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

pub(super) fn all(document: &Value) -> Markup {
    let schemas = document["components"]["schemas"].as_object();
    html! {
        section id="schemas" {
            h2 { "Schemas" }
            @for (name, schema) in schemas.into_iter().flatten() {
                article id={ "schema-" (name) } {
                    h3 { (name) }
                    @if let Some(about) = schema["description"].as_str() { p { (about) } }
                    (fields(schema))
                }
            }
        }
    }
}

fn fields(schema: &Value) -> Markup {
    let Some(fields) = schema["properties"].as_object() else {
        return html! { p { (kind(schema, "#")) } };
    };
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    html! {
        table {
            tbody {
                @for (name, field) in fields {
                    tr {
                        th scope="row" { code { (name) } }
                        td { (kind(field, "#"))
                            @if !required.iter().any(|it| it == name.as_str()) { ", optional" } }
                        td { (field["description"].as_str().unwrap_or_default()) }
                    }
                }
            }
        }
    }
}

/// Describes the type of a schema. `page` is the address of the page that describes all schemas, with
/// the sign `#`.
pub(super) fn kind(schema: &Value, page: &str) -> Markup {
    if let Some(name) = schema["$ref"].as_str().and_then(|to| to.strip_prefix(SCHEMAS)) {
        return html! { a href={ (page) "schema-" (name) } { (name) } };
    }
    for (several, word) in [("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")] {
        if let Some(choices) = schema[several].as_array() {
            return joined(choices, word, |choice| kind(choice, page));
        }
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.clone(),
        Value::Null => Vec::new(),
        one => vec![one.clone()],
    };
    html! {
        @if types.is_empty() { "any value" }
        (joined(&types, " or ", |one| match one.as_str() {
            Some("array") => html! { "list of " (kind(&schema["items"], page)) },
            _ => html! { (text::plain(one)) },
        }))
        @if let Some(format) = schema["format"].as_str() { " (" (format) ")" }
        @if let Some(choices) = schema["enum"].as_array() {
            ": " (joined(choices, ", ", |choice| html! { code { (text::plain(choice)) } }))
        }
    }
}

fn joined(values: &[Value], word: &str, show: impl Fn(&Value) -> Markup) -> Markup {
    html! {
        @for (nth, value) in values.iter().enumerate() {
            @if nth > 0 { (word) }
            (show(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kind_describes_the_type_of_a_schema() {
        for (schema, words) in [
            (json!({"type": ["string", "null"], "format": "uuid"}), "string or null (uuid)"),
            (json!({"type": "array", "items": {"type": "integer"}}), "list of integer"),
            (json!({"type": "string", "enum": ["a"]}), "string: <code>a</code>"),
            (json!({}), "any value"),
            (
                json!({"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Job"}]}),
                "null or <a href=\"#schema-Job\">Job</a>",
            ),
        ] {
            assert_eq!(kind(&schema, "#").into_string(), words);
        }
    }
}
