//! Replaces characters in a web page that the stores cannot keep.

use evenkeel_core::page::PageContent;
use serde_json::{Map, Value};

use crate::{MARK_END, MARK_START};

/// Characters that are replaced with spaces. PostgreSQL cannot store NUL, and the two marks enclose
/// matches in search results.
const UNWANTED: [char; 3] = ['\0', MARK_START, MARK_END];

/// Replaces each NUL, [`MARK_START`] and [`MARK_END`] with a space.
pub fn clean(page: &mut PageContent) {
    let PageContent {
        id: _,
        url,
        status: _,
        content_type,
        etag,
        last_modified,
        content_hash: _,
        depth: _,
        title,
        text,
        links,
        metadata,
        fields,
    } = page;
    [url, content_type, text].into_iter().for_each(clean_text);
    [etag, last_modified, title].into_iter().flatten().for_each(clean_text);
    links.iter_mut().for_each(clean_text);
    [metadata, fields].into_iter().for_each(clean_value);
}

fn clean_text(text: &mut String) {
    if text.contains(UNWANTED) {
        *text = text.replace(UNWANTED, " ");
    }
}

fn clean_value(value: &mut Value) {
    match value {
        Value::String(text) => clean_text(text),
        Value::Array(values) => values.iter_mut().for_each(clean_value),
        Value::Object(fields) => {
            if fields.keys().any(|name| name.contains(UNWANTED)) {
                let cleaned = std::mem::take(fields).into_iter().map(|(mut name, value)| {
                    clean_text(&mut name);
                    (name, value)
                });
                *fields = cleaned.collect::<Map<_, _>>();
            }
            fields.values_mut().for_each(clean_value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::{JobNo, PageId};
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_cleaned_at_any_depth() {
        let dirty = "a\0b\u{2}c\u{3}d";
        let mut page = PageContent {
            id: PageId::of(JobNo(1), dirty),
            url: dirty.into(),
            status: 200,
            content_type: dirty.into(),
            etag: Some(dirty.into()),
            last_modified: Some(dirty.into()),
            content_hash: [0; 32],
            depth: 0,
            title: Some(dirty.into()),
            text: dirty.into(),
            links: vec![dirty.into()],
            metadata: json!({ dirty: dirty, "n": 1 }),
            fields: json!([{ "list": [dirty, null] }]),
        };
        clean(&mut page);
        let all = format!("{page:?}");
        assert_eq!(all.matches("a b c d").count(), 10, "{all}");
    }
}
