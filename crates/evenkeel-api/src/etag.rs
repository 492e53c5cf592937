//! Headers `ETag` and `If-Match`, which carry the version (generation) of a job or a target.

use axum::http::{HeaderMap, HeaderValue, header};

pub(crate) fn etag(generation: i32) -> HeaderValue {
    HeaderValue::try_from(format!("\"g{generation}\""))
        .unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

/// Returns the generations that the header `If-Match` accepts; `None` if it accepts every
/// generation.
pub(crate) fn if_match(headers: &HeaderMap) -> Option<Vec<i32>> {
    let mut generations = None;
    for value in headers.get_all(header::IF_MATCH) {
        let generations: &mut Vec<i32> = generations.get_or_insert_default();
        for tag in value.to_str().unwrap_or_default().split(',').map(|tag| tag.trim()) {
            if tag == "*" {
                return None;
            }
            // An unknown tag matches nothing.
            let number = tag.strip_prefix("\"g").and_then(|tag| tag.strip_suffix('"'));
            generations.extend(number.and_then(|number| number.parse::<i32>().ok()));
        }
    }
    generations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&'static str]) -> Option<Vec<i32>> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_MATCH, HeaderValue::from_static(value));
        }
        if_match(&headers)
    }

    #[test]
    fn if_match_reads_all_tags_of_all_headers() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&["*"]), None);
        assert_eq!(read(&["\"g7\""]), Some(vec![7]));
        assert_eq!(read(&["\"g7\", \"g8\"", "\"g9\""]), Some(vec![7, 8, 9]));
    }

    #[test]
    fn unknown_tags_match_nothing() {
        for text in ["W/\"g7\"", "g7", "\"7\"", "\"g\"", ""] {
            assert_eq!(read(&[text]), Some(vec![]), "{text}");
        }
    }
}
