//! Extracts title, text, links, metadata and the job's fields from a page.
//!
//! HTML is read as a stream of tags and texts, without a tree, because a page could make a tree
//! arbitrarily deep or large. Only a job with fields needs a tree of elements, which is bounded in
//! depth and size ([`tree`]). Parsing has a time limit, so that no page blocks a thread for long.

mod page;
mod text;
mod tree;

use std::time::Duration;

use evenkeel_outbound::reqwest::Url;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tokenizer, TokenizerOpts};
use rustix::time::ClockId;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::fields::Field;
use page::{PageSink, Raw};
use text::cut;
pub(crate) use text::{TEXT_BYTES_MAX, one_line};

/// Maximum CPU time for parsing a page; a page that takes longer is skipped.
const READING_MAX: Duration = Duration::from_secs(5);
/// Number of bytes that are parsed between two checks of the time limit.
const PIECE_BYTES: usize = 8 * 1024;

#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Extract {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
    /// The links of the page that may be followed, as absolute, normalised and unique URLs.
    pub(crate) links: Vec<String>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) fields: Map<String, Value>,
    /// The URL that the page names as its canonical page.
    pub(crate) canonical: Option<Url>,
    pub(crate) directives: RobotsDirectives,
}

/// Directives to crawlers, from a page or from its server.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct RobotsDirectives {
    pub(crate) noindex: bool,
    pub(crate) nofollow: bool,
}

impl RobotsDirectives {
    /// Adds the directives in a list such as `noindex, nofollow`.
    pub(crate) fn read(&mut self, words: &str) {
        for word in words.split(',').map(|word| word.trim().to_ascii_lowercase()) {
            self.noindex |= matches!(word.as_str(), "noindex" | "none");
            self.nofollow |= matches!(word.as_str(), "nofollow" | "none");
        }
    }

    /// Adds the directives in an `X-Robots-Tag` header, unless it applies only to another crawler.
    pub(crate) fn read_header(&mut self, header: &str, name: &str) {
        match header.split_once(':') {
            Some((meant, words)) if meant.trim().eq_ignore_ascii_case(name) => self.read(words),
            Some((meant, _)) if !meant.contains(',') => {}
            _ => self.read(header),
        }
    }
}

/// The error for a page that takes too much time or memory to parse.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TooHard;

/// The time limit for parsing a page. The limit applies to the CPU time of the parsing thread, so a
/// busy machine makes no difference.
#[derive(Copy, Clone)]
pub(crate) struct Budget(Duration);

impl Budget {
    fn new() -> Self {
        Self(thread_time() + READING_MAX)
    }

    fn check(self) -> Result<(), TooHard> {
        if thread_time() < self.0 { Ok(()) } else { Err(TooHard) }
    }
}

fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    // The CPU clock of the thread is never negative, so the conversion cannot fail.
    Duration::try_from(time).unwrap_or_default()
}

pub(crate) fn html(
    text: &str,
    url: &Url,
    name: &str,
    fields: &[Field],
) -> Result<Extract, TooHard> {
    let budget = Budget::new();
    let sink = PageSink::new(name, !fields.is_empty());
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let queue = BufferQueue::default();
    let mut rest = text;
    while !rest.is_empty() {
        budget.check()?;
        let (piece, after) = rest.split_at(cut(rest, PIECE_BYTES).len());
        rest = after;
        queue.push_back(StrTendril::from(piece));
        // The tokenizer stops after each script so that the script can run. Scripts are not run, so
        // the loop continues.
        while !matches!(tokenizer.feed(&queue), html5ever::TokenizerResult::Done) {}
    }
    tokenizer.end();
    let Raw { mut extract, base, canonical, tree } = tokenizer.sink.finish();
    if let Some(tree) = tree {
        extract.fields = tree::select(&tree?, fields, budget)?;
    }
    let base = base.as_deref().and_then(|base| url.join(base).ok());
    let base = base.as_ref().unwrap_or(url);
    let links = std::mem::take(&mut extract.links);
    if !extract.directives.nofollow {
        let mut seen = rustc_hash::FxHashSet::default();
        let absolute = links.iter().filter_map(|link| crate::normal_url::resolve(base, link));
        let unique = absolute.map(String::from).filter(|link| seen.insert(link.clone()));
        extract.links = unique.collect();
    }
    extract.canonical = canonical.and_then(|link| crate::normal_url::resolve(base, &link));
    if let Some(canonical) = &extract.canonical {
        extract.metadata.insert("canonical".into(), canonical.as_str().into());
    }
    Ok(extract)
}

pub(crate) fn plain(text: &str) -> Extract {
    let kept: String = text
        .chars()
        .map(|c| if c == '\t' { ' ' } else { c })
        .filter(|c| !c.is_control() || *c == '\n')
        .collect();
    Extract { text: cut(kept.trim(), TEXT_BYTES_MAX).to_owned(), ..Extract::default() }
}

impl Extract {
    /// Returns the hash of the page's title, text and fields. Markup, links and metadata are not
    /// part of the hash, because they change with advertisements and time stamps. The hash ends
    /// with `parse_version`, so a page that was parsed by another version of the parser or for
    /// other fields counts as changed.
    pub(crate) fn content_hash(&self, parse_version: [u8; 4]) -> [u8; 32] {
        let mut hash = Sha256::new();
        let fields = Value::Object(self.fields.clone()).to_string();
        for part in [self.title.as_deref().unwrap_or_default(), &self.text, &fields] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let mut hash: [u8; 32] = hash.finalize().into();
        hash[28..].copy_from_slice(&parse_version);
        hash
    }
}

#[cfg(test)]
mod tests;
