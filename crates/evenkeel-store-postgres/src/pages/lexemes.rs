//! The words of a page as PostgreSQL keeps them.

use std::fmt::Write;

use evenkeel_core::page::PageContent;
use evenkeel_core::{JobNo, TenantNo};
use evenkeel_store::PageQuota;
use evenkeel_store::text::{TEXT_INDEXED_MAX, TITLE_INDEXED_MAX, indexed};

/// PostgreSQL knows no later place in a text.
const PLACE_MAX: usize = 16_383;

/// Whose pages are searched.
#[derive(Copy, Clone, Debug)]
pub(super) enum Home {
    Tenant(TenantNo),
    Job(JobNo),
}

impl Home {
    /// What the words of every page there have among them; no word of a text starts like this.
    pub(super) fn lexeme(self) -> String {
        match self {
            Self::Tenant(tenant) => format!("_t{}", tenant.0),
            Self::Job(job) => format!("_j{}", job.0),
        }
    }
}

/// A page's words with their places, as the text of a `tsvector`.
pub(super) fn lexemes(page: &PageContent, shelf: PageQuota) -> String {
    let title = indexed(page.title.as_deref().unwrap_or_default(), TITLE_INDEXED_MAX);
    let text = indexed(&page.text, TEXT_INDEXED_MAX);
    let mut written = String::with_capacity(32 + (title.len() + text.len()) * 2);
    written.push_str(&Home::Tenant(shelf.tenant).lexeme());
    written.push(' ');
    written.push_str(&Home::Job(shelf.job).lexeme());
    let mut place = 0;
    for (words, weight) in [(title, "A"), (text, "")] {
        for word in words.split_ascii_whitespace() {
            place += 1;
            // Letters and digits need no quotes. Writing to a string does not fail.
            let _ = write!(written, " {word}:{}{weight}", place.min(PLACE_MAX));
        }
        // A gap, so that no phrase goes from the title into the text.
        place += 1;
    }
    written
}

#[cfg(test)]
mod tests {
    use evenkeel_core::PageId;
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_title_has_weight_and_a_gap_after_it() {
        let page = PageContent {
            id: PageId::of(JobNo(7), "u"),
            url: "u".into(),
            status: 200,
            content_type: "text/html".into(),
            etag: None,
            last_modified: None,
            content_hash: [0; 32],
            depth: 0,
            title: Some("It's a Title".into()),
            text: "a text".into(),
            links: Vec::new(),
            metadata: Value::Null,
            fields: Value::Null,
        };
        let shelf = PageQuota { tenant: TenantNo(3), job: JobNo(7), bytes_max: 0 };
        assert_eq!(lexemes(&page, shelf), "_t3 _j7 it:1A s:2A a:3A title:4A a:6 text:7");
    }
}
