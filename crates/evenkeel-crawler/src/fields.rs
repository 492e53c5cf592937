//! Named parts of pages that a job asks for.

use scraper::Selector;
use scraper::selector::ToCss;

/// Fields of a job at most.
pub const FIELDS_MAX: usize = 50;
/// Bytes of a value that are kept.
pub(crate) const FIELD_BYTES_MAX: usize = 4 * 1024;
/// Bytes of all fields of a page together; values beyond that are left out.
pub(crate) const FIELDS_BYTES_MAX: usize = 128 * 1024;
/// Values of a field with `all` that are kept.
pub(crate) const FIELD_VALUES_MAX: usize = 100;
/// Characters in a selector at most.
pub(crate) const SELECTOR_CHARS_MAX: usize = 500;

/// A named part of a page: the text of what a selector finds, or an attribute of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) selector: Selector,
    pub(crate) attribute: Option<String>,
    /// All that fit, as a list; else the first.
    pub(crate) all: bool,
}

impl Field {
    /// Makes one. The message says what is wrong with the selector.
    pub(crate) fn new(
        name: &str,
        selector: &str,
        attribute: Option<&str>,
        all: bool,
    ) -> Result<Self, String> {
        if selector.len() > SELECTOR_CHARS_MAX {
            return Err(format!("must have at most {SELECTOR_CHARS_MAX} characters"));
        }
        let selector = Selector::parse(selector).map_err(|_| {
            format!("{selector:?} is not a CSS selector; write it like .price, or a[href]")
        })?;
        // For each element it looks at all that is below: time in proportion to the page's square.
        if selector.to_css_string().contains(":has(") {
            return Err("must not use :has(): it takes too long on large pages".into());
        }
        let attribute = attribute.map(str::to_ascii_lowercase);
        Ok(Self { name: name.to_owned(), selector, attribute, all })
    }
}
