//! Renders an excerpt of a crawled page as HTML.

use evenkeel_store::{MARK_END, MARK_START};

/// Escapes an excerpt for HTML and puts search matches between `<mark>` and `</mark>`.
pub(super) fn to_html(snippet: &str) -> String {
    let mut html = String::with_capacity(snippet.len() + 32);
    let mut open = false;
    for c in snippet.chars() {
        match c {
            MARK_START if !open => {
                html.push_str("<mark>");
                open = true;
            }
            MARK_END if open => {
                html.push_str("</mark>");
                open = false;
            }
            MARK_START | MARK_END => {}
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    if open {
        html.push_str("</mark>");
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippet_has_no_markup_but_marks() {
        let snippet = "<b>a</b> \u{2}x&y\u{3} <mark>";
        assert_eq!(to_html(snippet), "&lt;b&gt;a&lt;/b&gt; <mark>x&amp;y</mark> &lt;mark&gt;");
        assert_eq!(to_html("\u{3}a\u{2}\u{2}b"), "a<mark>b</mark>");
    }
}
