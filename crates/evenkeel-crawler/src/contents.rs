//! Recognises pages that have the same content.

use evenkeel_core::PageId;
use rustc_hash::FxHashMap;

use crate::normal_url::first_eight;

/// The page contents that a crawl has found, each with the page that represents this content.
///
/// Of several pages with the same content, the crawl keeps the page with the shortest URL; if two
/// URLs are equally short, it keeps the page with the lower id. The choice of the kept page does
/// not depend on the order in which pages are found, so the next crawl keeps the same page.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Contents(pub(crate) FxHashMap<u64, Representative>);

/// The page that is kept of all pages with the same content.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Representative {
    pub(crate) url_len: u16,
    pub(crate) page: PageId,
    /// True if the page was counted as indexed.
    pub(crate) indexed: bool,
}

/// The result of [`Contents::note`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum CopyCheck {
    /// No other page has had this content so far.
    Unique,
    /// Another page represents this content.
    Copy,
    /// The page represents its content from now on, in place of the page in the value.
    Replaces(Representative),
}

impl Contents {
    /// Records that a page has the content with this hash.
    pub(crate) fn note(&mut self, hash: &[u8; 32], page: PageId, url: &str) -> CopyCheck {
        let url_len = u16::try_from(url.len()).unwrap_or(u16::MAX);
        let newcomer = Representative { url_len, page, indexed: false };
        let key = first_eight(hash);
        match self.0.get(&key).copied() {
            Some(representative) if representative.page == page => CopyCheck::Unique,
            Some(representative)
                if (representative.url_len, representative.page) < (url_len, page) =>
            {
                CopyCheck::Copy
            }
            Some(representative) => {
                self.0.insert(key, newcomer);
                CopyCheck::Replaces(representative)
            }
            None => {
                self.0.insert(key, newcomer);
                CopyCheck::Unique
            }
        }
    }

    /// Records that the page which represents this content was counted as indexed.
    pub(crate) fn mark_indexed(&mut self, hash: &[u8; 32], page: PageId) {
        if let Some(representative) = self.0.get_mut(&first_eight(hash)).filter(|h| h.page == page)
        {
            representative.indexed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::JobNo;

    use super::*;

    #[test]
    fn same_page_represents_a_content_in_every_order() {
        let urls = ["http://a/long", "http://a/b", "http://a/c"];
        let id = |url| PageId::of(JobNo(1), url);
        let winner = id(urls[1]).min(id(urls[2]));
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut contents = Contents::default();
            for at in order {
                contents.note(&[7; 32], id(urls[at]), urls[at]);
            }
            assert_eq!(contents.0.values().next().unwrap().page, winner, "{order:?}");
        }
    }

    #[test]
    fn page_is_not_a_copy_of_itself() {
        let mut contents = Contents::default();
        let page = PageId::of(JobNo(1), "http://a/");
        assert_eq!(contents.note(&[7; 32], page, "http://a/"), CopyCheck::Unique);
        assert_eq!(contents.note(&[7; 32], page, "http://a/"), CopyCheck::Unique);
        contents.mark_indexed(&[7; 32], page);
        let shorter = PageId::of(JobNo(1), "http://b");
        let representative = Representative { url_len: 9, page, indexed: true };
        assert_eq!(
            contents.note(&[7; 32], shorter, "http://b"),
            CopyCheck::Replaces(representative)
        );
        assert_eq!(contents.note(&[7; 32], page, "http://a/"), CopyCheck::Copy);
    }
}
