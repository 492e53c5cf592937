//! A crawled page and its name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::ids::JobNo;

/// A page's id: made from its job and its URL, so that a page keeps it from crawl to crawl.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PageId(pub Uuid);

/// The namespace of our version 5 UUIDs.
const NAMESPACE: Uuid = Uuid::from_u128(0x6e1f_3c52_88a4_4b0e_9d27_5a64_1c0b_7e93);

impl PageId {
    /// The id of the page that a job found at `url`, which is in its normal form.
    pub fn of(job: JobNo, url: &str) -> Self {
        Self(Uuid::new_v5(&NAMESPACE, format!("{job} {url}").as_bytes()))
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for PageId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

/// A page as a crawl found it.
#[derive(Clone, PartialEq, Debug)]
pub struct PageContent {
    /// Its id, made from the job and the URL.
    pub id: PageId,
    /// Where it was found, in its normal form.
    pub url: String,
    /// What the server said.
    pub status: u16,
    /// Its media type, without parameters.
    pub content_type: String,
    /// For asking whether it has changed.
    pub etag: Option<String>,
    /// For asking whether it has changed.
    pub last_modified: Option<String>,
    /// SHA-256 of what counts of its content: another hash is another content.
    pub content_hash: [u8; 32],
    /// How many links from the start.
    pub depth: u16,
    /// Its title.
    pub title: Option<String>,
    /// Its text, without markup.
    pub text: String,
    /// Where it links to.
    pub links: Vec<String>,
    /// What its head says of it: description, author…
    pub metadata: Value,
    /// What the job's selectors found.
    pub fields: Value,
}

impl PageContent {
    /// How much of a job's room it takes, roughly.
    pub fn size(&self) -> u64 {
        let texts = [&self.url, &self.text, &self.content_type].map(|text| text.len());
        let title = self.title.as_ref().map_or(0, String::len);
        let links: usize = self.links.iter().map(String::len).sum();
        let values = self.metadata.to_string().len() + self.fields.to_string().len();
        (texts.iter().sum::<usize>() + title + links + values) as u64
    }
}

/// What a job's last crawls know of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownPage {
    /// Which one.
    pub id: PageId,
    /// For asking whether it has changed.
    pub etag: Option<String>,
    /// For asking whether it has changed.
    pub last_modified: Option<String>,
    /// What its content was.
    pub content_hash: [u8; 32],
    /// Where it linked to, so that a page that has not changed can be followed.
    pub links: Vec<String>,
}

/// What became of a page.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kept {
    /// It was not known.
    New,
    /// It was known with another content.
    Changed,
    /// It was known as it is; only that it was seen is noted.
    Unchanged,
    /// The job has no room left, or is deleted; nothing was changed.
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
