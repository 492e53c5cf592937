//! Renders one API operation as HTML: its parameters, request body and responses.

use std::fmt::Write as _;

use serde_json::Value;

use super::page::{escape, text};
use super::schema;

pub(super) struct Operation<'a> {
    document: &'a Value,
    method: String,
    path: &'a str,
    pub(super) tag: &'a str,
    id: &'a str,
    spec: &'a Value,
}

impl<'a> Operation<'a> {
    /// Returns all operations of the OpenAPI document, sorted by path.
    pub(super) fn all(document: &'a Value) -> Vec<Self> {
        let paths = document["paths"].as_object().into_iter().flatten();
        let of_path = |(path, item): (&'a String, &'a Value)| {
            let methods = item.as_object().into_iter().flatten();
            methods.map(move |(method, spec)| Self {
                document,
                method: method.to_uppercase(),
                path,
                tag: text(&spec["tags"][0]),
                id: text(&spec["operationId"]),
                spec,
            })
        };
        paths.flat_map(of_path).collect()
    }

    /// Writes the link to the operation for the table of contents.
    pub(super) fn write_link(&self, page: &mut String) {
        let _ = write!(
            page,
            "<li><a href=\"#{}\"><b class=\"{m}\">{m}</b> {}</a></li>",
            escape(self.id),
            escape(self.path),
            m = self.method,
        );
    }

    pub(super) fn write(&self, page: &mut String) {
        let _ = write!(
            page,
            "<article id=\"{}\"><h3><b class=\"{m}\">{m}</b> <code>{}</code></h3><p>{}</p>",
            escape(self.id),
            escape(self.path),
            escape(text(&self.spec["summary"])),
            m = self.method,
        );
        let more = text(&self.spec["description"]);
        if !more.is_empty() {
            let _ = write!(page, "<p>{}</p>", escape(more));
        }
        if let Some(role) = self.spec["x-required-role"].as_str() {
            let _ = write!(page, "<p>Needs the role <code>{}</code>.</p>", escape(role));
        }
        self.write_parameters(page);
        self.write_body(page);
        self.write_answers(page);
        page.push_str("</article>");
    }

    fn write_parameters(&self, page: &mut String) {
        let Some(parameters) = self.spec["parameters"].as_array().filter(|all| !all.is_empty())
        else {
            return;
        };
        page.push_str("<table><caption>Parameters</caption>");
        for parameter in parameters {
            let required = if parameter["required"] == true { ", required" } else { "" };
            let _ = write!(
                page,
                "<tr><th scope=\"row\"><code>{}</code></th><td>{}{required}</td><td>{}</td>\
                 <td>{}</td></tr>",
                escape(text(&parameter["name"])),
                escape(text(&parameter["in"])),
                schema::kind(&parameter["schema"]),
                escape(text(&parameter["description"])),
            );
        }
        page.push_str("</table>");
    }

    fn write_body(&self, page: &mut String) {
        let contents = self.spec["requestBody"]["content"].as_object().into_iter().flatten();
        for (media_type, content) in contents {
            let _ = write!(
                page,
                "<p>Body: {}, <code>{}</code></p>",
                schema::kind(&content["schema"]),
                escape(media_type),
            );
            let examples = content["examples"].as_object().into_iter().flatten();
            let examples = examples.map(|(name, example)| (name.as_str(), &example["value"]));
            let single = content.get("example").map(|example| ("Example", example));
            for (name, example) in examples.chain(single) {
                self.write_call(page, name, media_type, example);
            }
        }
    }

    /// Writes an example call with curl.
    fn write_call(&self, page: &mut String, name: &str, media_type: &str, example: &Value) {
        let body = match example {
            Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        };
        let _ = write!(
            page,
            "<details><summary>{}</summary><pre>{}</pre></details>",
            escape(name),
            escape(&format!(
                "curl -X {} \"$EVENKEEL_URL{}\" \\\n  -H \"Authorization: Bearer \
                 $EVENKEEL_TOKEN\" \\\n  -H 'Content-Type: {media_type}' \\\n  -d '{body}'",
                self.method, self.path,
            )),
        );
    }

    fn write_answers(&self, page: &mut String) {
        page.push_str("<table><caption>Answers</caption>");
        let answers = self.spec["responses"].as_object().into_iter().flatten();
        for (status, answer) in answers {
            let answer = schema::followed(self.document, answer);
            let contents = answer["content"].as_object().into_iter().flatten();
            let bodies: Vec<String> =
                contents.map(|(_, content)| schema::kind(&content["schema"])).collect();
            let _ = write!(
                page,
                "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td>{}</td></tr>",
                escape(status),
                escape(text(&answer["description"])),
                bodies.join(" or "),
            );
        }
        page.push_str("</table>");
    }
}
