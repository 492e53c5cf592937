//! Fields: named values that a job extracts from pages.

use scraper::Selector;
use scraper::selector::ToCss;

pub const FIELDS_MAX: usize = 50;
/// Maximum number of bytes of a field value; longer values are cut.
pub(crate) const FIELD_BYTES_MAX: usize = 4 * 1024;
/// Maximum number of bytes of all field values of a page; further values are ignored.
pub(crate) const FIELDS_BYTES_MAX: usize = 128 * 1024;
/// Maximum number of values of a field that collects all matching elements.
pub(crate) const FIELD_VALUES_MAX: usize = 100;
pub(crate) const SELECTOR_CHARS_MAX: usize = 500;

/// A named value of a page: the text, or an attribute, of the elements that a CSS selector matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) selector: Selector,
    pub(crate) attribute: Option<String>,
    /// True if the field lists all matching elements, false if it holds only the first one.
    pub(crate) all: bool,
}

impl Field {
    /// Returns an error message if the CSS selector is invalid or too expensive.
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
        // `:has()` searches all descendants of each element, which takes quadratic time.
        if selector.to_css_string().contains(":has(") {
            return Err("must not use :has(): it takes too long on large pages".into());
        }
        let attribute = attribute.map(str::to_ascii_lowercase);
        Ok(Self { name: name.to_owned(), selector, attribute, all })
    }
}
