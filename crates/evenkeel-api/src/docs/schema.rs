//! Renders the schemas of the OpenAPI document and their fields as HTML.

use std::fmt::Write as _;

use serde_json::Value;

use super::page::{escape, text};

const SCHEMAS: &str = "#/components/schemas/";

/// Returns the value that a `$ref` points to, or the value itself if it is not a `$ref`.
pub(super) fn followed<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|to| to.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

pub(super) fn write_all(page: &mut String, document: &Value) {
    page.push_str("<section id=\"schemas\"><h2>schemas</h2>");
    let schemas = document["components"]["schemas"].as_object().into_iter().flatten();
    for (name, schema) in schemas {
        let _ = write!(
            page,
            "<article id=\"schema-{0}\"><h3>{0}</h3><p>{1}</p>",
            escape(name),
            escape(text(&schema["description"])),
        );
        write_fields(page, schema);
        page.push_str("</article>");
    }
    page.push_str("</section>");
}

fn write_fields(page: &mut String, schema: &Value) {
    let Some(fields) = schema["properties"].as_object() else {
        let _ = write!(page, "<p>{}</p>", kind(schema));
        return;
    };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().map(text).collect();
    page.push_str("<table>");
    for (name, field) in fields {
        let mark = if required.contains(&name.as_str()) { "" } else { ", optional" };
        let _ = write!(
            page,
            "<tr><th scope=\"row\"><code>{}</code></th><td>{}{mark}</td><td>{}</td></tr>",
            escape(name),
            kind(field),
            escape(text(&field["description"])),
        );
    }
    page.push_str("</table>");
}

/// Describes the type of a schema, as HTML.
pub(super) fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|to| to.strip_prefix(SCHEMAS)) {
        let name = escape(name);
        return format!("<a href=\"#schema-{name}\">{name}</a>");
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(choices) = schema[several].as_array() {
            let kinds: Vec<String> = choices.iter().map(kind).collect();
            return kinds.join(if several == "allOf" { " and " } else { " or " });
        }
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().map(text).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let mut words = Vec::new();
    for one in types {
        words.push(match one {
            "array" => format!("list of {}", kind(&schema["items"])),
            other => escape(other),
        });
    }
    let mut kind = if words.is_empty() { "any value".to_owned() } else { words.join(" or ") };
    if let Some(format) = schema["format"].as_str() {
        let _ = write!(kind, " ({})", escape(format));
    }
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<String> =
            choices.iter().map(|one| format!("<code>{}</code>", escape(text(one)))).collect();
        let _ = write!(kind, ": {}", choices.join(", "));
    }
    kind
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
            assert_eq!(kind(&schema), words);
        }
    }
}
