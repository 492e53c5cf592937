//! A page in the queue of a crawl.

use std::sync::Arc;

use evenkeel_core::page::KnownPage;
use evenkeel_outbound::reqwest::Url;

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    pub(crate) url: Url,
    /// The number of links from a start URL to this page.
    pub(crate) depth: u16,
    /// Failed attempts so far.
    pub(crate) tries: u8,
    /// Redirects so far.
    pub(crate) hops: u8,
    /// True for a start URL, and for the target of a redirect from a start URL.
    pub(crate) is_start: bool,
    pub(crate) known: Lookup,
}

/// The version of a page that an earlier crawl stored, if it was already looked up in the archive.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) enum Lookup {
    #[default]
    NotYet,
    Done(Option<Arc<KnownPage>>),
}

impl Lookup {
    pub(crate) fn page(&self) -> Option<&Arc<KnownPage>> {
        match self {
            Self::Done(Some(page)) => Some(page),
            _ => None,
        }
    }
}

impl Entry {
    pub(crate) fn new(url: Url, depth: u16) -> Self {
        Self { url, depth, tries: 0, hops: 0, is_start: false, known: Lookup::NotYet }
    }
}
