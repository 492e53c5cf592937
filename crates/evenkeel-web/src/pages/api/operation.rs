//! One operation of the API: its parameters, its body with examples, and its answers.

use maud::{Markup, html};
use serde_json::Value;

use super::{PATH, schema};
use crate::backend::escape;
use crate::text;

pub(super) struct Operation<'a> {
    pub(super) method: String,
    pub(super) path: &'a str,
    /// The description of the operation in the OpenAPI document.
    pub(super) spec: &'a Value,
}

impl<'a> Operation<'a> {
    /// Returns all operations of the OpenAPI document, sorted by path.
    pub(super) fn all(document: &'a Value) -> impl Iterator<Item = Self> {
        let paths = document["paths"].as_object().into_iter().flatten();
        paths.flat_map(|(path, methods)| {
            methods.as_object().into_iter().flatten().map(move |(method, spec)| Self {
                method: method.to_uppercase(),
                path,
                spec,
            })
        })
    }

    pub(super) fn id(&self) -> &'a str {
        self.spec["operationId"].as_str().unwrap_or_default()
    }

    pub(super) fn name(&self) -> Markup {
        html! { code { (self.method) " " (self.path) } }
    }

    /// The address of the form that tries the operation.
    pub(super) fn address(&self) -> String {
        format!("{PATH}/try?method={}&path={}", self.method, escape(self.path))
    }

    pub(super) fn article(&self, document: &Value) -> Markup {
        html! {
            article id=(self.id()) {
                h3 { (self.name()) }
                (self.about(document, "#"))
                p { a href=(self.address()) { "Try it" } }
            }
        }
    }

    /// Describes the operation. Links to schemas begin with `schemas`.
    pub(super) fn about(&self, document: &Value, schemas: &str) -> Markup {
        html! {
            p { (text::plain(&self.spec["summary"])) }
            @if let Some(more) = self.spec["description"].as_str() { p { (more) } }
            @if let Some(role) = self.spec["x-required-role"].as_str() {
                p { "Needs the role " code { (role) } "." }
            }
            (self.parameters(schemas))
            @for (media_type, content) in self.bodies() {
                p { "Body: " (schema::kind(&content["schema"], schemas)) ", " code { (media_type) } }
                @for (name, example) in examples(content) {
                    details { summary { (name) } pre { (self.call(media_type, example)) } }
                }
            }
            (self.answers(document, schemas))
        }
    }

    fn parameters(&self, schemas: &str) -> Markup {
        let parameters = self.spec["parameters"].as_array().map_or(&[][..], Vec::as_slice);
        html! {
            @if !parameters.is_empty() {
                table {
                    caption { "Parameters" }
                    tbody {
                        @for parameter in parameters {
                            tr {
                                th scope="row" { code { (text::plain(&parameter["name"])) } }
                                td { (text::plain(&parameter["in"]))
                                    @if parameter["required"] == true { ", required" } }
                                td { (schema::kind(&parameter["schema"], schemas)) }
                                td { (parameter["description"].as_str().unwrap_or_default()) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn bodies(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.spec["requestBody"]["content"].as_object().into_iter().flatten()
    }

    /// The first example of a body, which the form suggests.
    pub(super) fn example(&self) -> Option<String> {
        let (_, content) = self.bodies().next()?;
        examples(content).next().map(|(_, example)| pretty(example))
    }

    /// An example call with curl.
    fn call(&self, media_type: &str, example: &Value) -> String {
        let body = pretty(example).replace('\'', "'\\''");
        format!(
            "curl -X {} \"$EVENKEEL_URL{}\" \\\n  -H \"Authorization: Bearer $EVENKEEL_TOKEN\" \\\n  \
             -H 'Content-Type: {media_type}' \\\n  -d '{body}'",
            self.method, self.path
        )
    }

    fn answers(&self, document: &Value, schemas: &str) -> Markup {
        html! {
            table {
                caption { "Answers" }
                tbody {
                    @for (status, answer) in self.spec["responses"].as_object().into_iter().flatten() {
                        @let answer = schema::followed(document, answer);
                        tr {
                            th scope="row" { code { (status) } }
                            td { (text::plain(&answer["description"])) }
                            td {
                                @let contents = answer["content"].as_object().into_iter().flatten();
                                @for (nth, (_, content)) in contents.enumerate() {
                                    @if nth > 0 { " or " }
                                    (schema::kind(&content["schema"], schemas))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The examples of a body, with their names.
fn examples(content: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let named = content["examples"].as_object().into_iter().flatten();
    let named = named.map(|(name, example)| (name.as_str(), &example["value"]));
    named.chain(content.get("example").map(|example| ("Example", example)))
}

/// Text, such as lines of JSON, is shown as it is.
fn pretty(example: &Value) -> String {
    match example {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn example_is_a_command_that_a_shell_reads_as_it_is() {
        let spec = json!({"requestBody": {"content": {"application/json": {"example": "it's"}}}});
        let operation = Operation { method: "POST".into(), path: "/api/v1/jobs", spec: &spec };
        assert_eq!(operation.example().as_deref(), Some("it's"));
        let shown = operation.about(&Value::Null, "#").into_string();
        assert!(shown.contains("-d 'it'\\''s'"), "{shown}");
    }

    #[test]
    fn descriptions_are_escaped() {
        let spec = json!({"summary": "<b>", "parameters": [{"name": "<i>", "in": "query"}]});
        let operation = Operation { method: "GET".into(), path: "/<p>", spec: &spec };
        let shown = operation.article(&Value::Null).into_string();
        for markup in ["<b>", "<i>", "/<p>"] {
            assert!(!shown.contains(markup), "{shown}");
        }
    }
}
