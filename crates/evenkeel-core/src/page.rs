//! Crawled pages.

use serde_json::Value;
use uuid::Uuid;

use crate::ids::{JobNo, newtype};

newtype! {
    /// The id of a crawled page. The page id depends only on the job and the URL, so a page keeps
    /// its id in later crawls.
    PageId(Uuid)
}

/// The UUID namespace of page ids, which are version 5 UUIDs.
const NAMESPACE: Uuid = Uuid::from_u128(0x6e1f_3c52_88a4_4b0e_9d27_5a64_1c0b_7e93);

impl PageId {
    /// Returns the page id for this job and `url`, which must be normalized.
    pub fn of(job: JobNo, url: &str) -> Self {
        Self(Uuid::new_v5(&NAMESPACE, format!("{job} {url}").as_bytes()))
    }
}

/// The content of a page as it was downloaded by a crawl.
#[derive(Clone, PartialEq, Debug)]
pub struct PageContent {
    pub id: PageId,
    /// In normal form.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// The media type, without parameters.
    pub content_type: String,
    /// For conditional requests.
    pub etag: Option<String>,
    /// For conditional requests.
    pub last_modified: Option<String>,
    /// The SHA-256 hash of the significant content. If the content hash of a page differs from the
    /// stored hash, the page has changed.
    pub content_hash: [u8; 32],
    /// Number of links between the start page and this page.
    pub depth: u16,
    pub title: Option<String>,
    /// Without markup.
    pub text: String,
    pub links: Vec<String>,
    /// Metadata from the HTML head, such as description and author.
    pub metadata: Value,
    /// The values that the job's selectors extracted from the page.
    pub fields: Value,
}

impl PageContent {
    /// Returns the approximate storage size of the page in bytes.
    pub fn size(&self) -> u64 {
        let texts = [&self.url, &self.text, &self.content_type].map(|text| text.len());
        let title = self.title.as_ref().map_or(0, String::len);
        let links: usize = self.links.iter().map(String::len).sum();
        let values = self.metadata.to_string().len() + self.fields.to_string().len();
        (texts.iter().sum::<usize>() + title + links + values) as u64
    }
}

/// The stored data about a page from earlier crawls of the same job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownPage {
    pub id: PageId,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub content_hash: [u8; 32],
    /// The links of the page. A crawl follows these links if the page is unchanged and not
    /// downloaded again.
    pub links: Vec<String>,
}

/// The result of saving a page.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kept {
    New,
    Changed,
    /// The page is unchanged, so only the time of the visit is stored.
    Unchanged,
    /// The page was not stored, because the job has reached its storage limit or is deleted.
    NoRoom,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_two_jobs_or_urls_differ_and_one_page_stays() {
        let page = PageId::of(JobNo(1), "https://example.com/");
        assert_eq!(page, PageId::of(JobNo(1), "https://example.com/"));
        assert_ne!(page, PageId::of(JobNo(2), "https://example.com/"));
        assert_ne!(page, PageId::of(JobNo(1), "https://example.com/a"));
        assert_eq!(page.to_string().parse(), Ok(page));
    }
}
