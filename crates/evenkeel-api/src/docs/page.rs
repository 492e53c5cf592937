//! Renders the documentation page: its head, table of contents and sections.

use std::fmt::Write as _;

use serde_json::Value;

use super::operation::Operation;
use super::schema;

const STYLE: &str = include_str!("style.css");

pub(super) fn render(document: &Value) -> String {
    let info = &document["info"];
    let operations = Operation::all(document);
    let mut page = String::new();
    let title = escape(text(&info["title"]));
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} API</title><style>{STYLE}</style></head><body>\
         <a class=\"skip\" href=\"#main\">Skip to the operations</a>\
         <header><h1>{title} <small>API {}</small></h1><p>{}</p>\
         <p>Every request except health checks needs <code>Authorization: Bearer TOKEN</code>; \
         <code>evenkeel token create</code> makes a token. This document as JSON: \
         <code>/api/openapi.json</code>.</p></header>",
        escape(text(&info["version"])),
        escape(text(&info["description"])),
    );
    let tags = document["tags"].as_array().cloned().unwrap_or_default();
    page.push_str("<nav aria-label=\"Operations\">");
    for tag in &tags {
        let name = text(&tag["name"]);
        let _ = write!(page, "<h2>{}</h2><ul>", escape(name));
        for operation in operations.iter().filter(|one| one.tag == name) {
            operation.write_link(&mut page);
        }
        page.push_str("</ul>");
    }
    page.push_str("<h2><a href=\"#schemas\">schemas</a></h2></nav><main id=\"main\">");
    for tag in &tags {
        let name = text(&tag["name"]);
        let about = escape(text(&tag["description"]));
        let _ = write!(page, "<section><h2>{}</h2><p>{about}</p>", escape(name));
        for operation in operations.iter().filter(|one| one.tag == name) {
            operation.write(&mut page);
        }
        page.push_str("</section>");
    }
    schema::write_all(&mut page, document);
    page.push_str("</main></body></html>\n");
    page
}

/// Returns a string value of the document, or an empty string for any other value.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Escapes text for HTML.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        serde_json::to_value(crate::openapi()).unwrap()
    }

    #[test]
    fn page_shows_every_operation_and_schema_once() {
        let (document, page) = (document(), render(&document()));
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let id = text(&operation["operationId"]);
                assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{method} {path}");
            }
        }
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            assert_eq!(page.matches(&format!("id=\"schema-{name}\"")).count(), 1, "{name}");
        }
    }

    #[test]
    fn page_links_lead_into_the_page_itself() {
        let page = render(&document());
        let links: Vec<&str> =
            page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(links.len() > 40);
        for link in links {
            let id =
                link.strip_prefix('#').unwrap_or_else(|| panic!("{link} leads out of the page"));
            assert!(page.contains(&format!("id=\"{id}\"")), "{link} has no target");
        }
    }

    #[test]
    fn descriptions_are_escaped() {
        let document = json!({
            "info": {"title": "<b>", "version": "1", "description": "a & \"b\""}, "tags": [],
        });
        let page = render(&document);
        assert!(page.contains("&lt;b&gt;") && page.contains("a &amp; &quot;b&quot;"), "{page}");
        assert!(!page.contains("<b>"));
    }
}
