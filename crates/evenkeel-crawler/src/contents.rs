//! Telling copies of a page.

use evenkeel_core::PageId;
use rustc_hash::FxHashMap;

use crate::normal_url::first_eight;

/// The contents that a crawl has found, each with the page that stands for it.
///
/// Of several pages with one content the one with the shortest URL is kept, and of those the one
/// with the smallest id. That does not depend on the order in which they came, so a second crawl
/// decides the same.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Contents(pub(crate) FxHashMap<u64, Holder>);

/// The page that stands for a content.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    pub(crate) url_len: u16,
    pub(crate) page: PageId,
    /// Did it count as indexed?
    pub(crate) indexed: bool,
}

/// What a page with some content is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// The only one so far.
    Only,
    /// A copy of one that is better placed.
    Copy,
    /// Better placed than this one, which is to be forgotten.
    Better(Holder),
}

impl Contents {
    /// Notes that a page has this content.
    pub(crate) fn note(&mut self, hash: &[u8; 32], page: PageId, url: &str) -> Standing {
        let url_len = u16::try_from(url.len()).unwrap_or(u16::MAX);
        let newcomer = Holder { url_len, page, indexed: false };
        let key = first_eight(hash);
        match self.0.get(&key).copied() {
            Some(holder) if holder.page == page => Standing::Only,
            Some(holder) if (holder.url_len, holder.page) < (url_len, page) => Standing::Copy,
            Some(holder) => {
                self.0.insert(key, newcomer);
                Standing::Better(holder)
            }
            None => {
                self.0.insert(key, newcomer);
                Standing::Only
            }
        }
    }

    /// Notes that the page which stands for this content counted as indexed.
    pub(crate) fn mark_indexed(&mut self, hash: &[u8; 32], page: PageId) {
        if let Some(holder) = self.0.get_mut(&first_eight(hash)).filter(|h| h.page == page) {
            holder.indexed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_core::JobNo;

    use super::*;

    #[test]
    fn the_same_page_wins_in_every_order() {
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
    fn a_page_is_no_copy_of_itself() {
        let mut contents = Contents::default();
        let page = PageId::of(JobNo(1), "http://a/");
        assert_eq!(contents.note(&[7; 32], page, "http://a/"), Standing::Only);
        assert_eq!(contents.note(&[7; 32], page, "http://a/"), Standing::Only);
        contents.mark_indexed(&[7; 32], page);
        let shorter = PageId::of(JobNo(1), "http://b");
        let holder = Holder { url_len: 9, page, indexed: true };
        assert_eq!(contents.note(&[7; 32], shorter, "http://b"), Standing::Better(holder));
        assert_eq!(contents.note(&[7; 32], page, "http://a/"), Standing::Copy);
    }
}
