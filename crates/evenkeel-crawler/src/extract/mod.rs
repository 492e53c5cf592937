//! What a page says: title, text, links, metadata and the job's fields.
//!
//! HTML is read as a stream of tags and texts. No tree is built that a page could make deep or
//! large at will; only if a job asks for fields, a plain one of bounded depth and size ([`tree`]). Reading
//! has a budget of time, so that no page holds a thread for long.

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

/// A page may take so much of a processor's time to be read; then it is left out.
const READING_MAX: Duration = Duration::from_secs(5);
/// Read at once, between two looks at the clock.
const PIECE_BYTES: usize = 8 * 1024;

/// What was found on a page.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Extract {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
    /// Links that may be followed, absolute and in their normal form, each once.
    pub(crate) links: Vec<String>,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) fields: Map<String, Value>,
    /// The page that this one says it is a copy of.
    pub(crate) canonical: Option<Url>,
    pub(crate) orders: Orders,
}

/// What a page or its server asks of crawlers.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Orders {
    pub(crate) noindex: bool,
    pub(crate) nofollow: bool,
}

impl Orders {
    /// Reads a list of words such as `noindex, nofollow`.
    pub(crate) fn read(&mut self, words: &str) {
        for word in words.split(',').map(|word| word.trim().to_ascii_lowercase()) {
            self.noindex |= matches!(word.as_str(), "noindex" | "none");
            self.nofollow |= matches!(word.as_str(), "nofollow" | "none");
        }
    }

    /// Reads an `X-Robots-Tag`, which may be meant for one crawler alone.
    pub(crate) fn read_header(&mut self, header: &str, name: &str) {
        match header.split_once(':') {
            Some((meant, words)) if meant.trim().eq_ignore_ascii_case(name) => self.read(words),
            Some((meant, _)) if !meant.contains(',') => {}
            _ => self.read(header),
        }
    }
}

/// A page that takes too long to read, or too much memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TooHard;

/// Says when a page has taken too long. It counts the time of this thread alone, so that a busy
/// machine does not make pages harder.
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
    // It starts at zero.
    Duration::try_from(time).unwrap_or_default()
}

/// Reads a page of HTML that was found at `url`.
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
        // It stops after what it takes for scripts; there is nothing to run.
        while !matches!(tokenizer.feed(&queue), html5ever::TokenizerResult::Done) {}
    }
    tokenizer.end();
    let raw = tokenizer.sink.finish();
    let fields = match &raw.tree {
        Some(Ok(tree)) => tree::select(tree, fields, budget)?,
        Some(Err(too_hard)) => return Err(*too_hard),
        None => Map::new(),
    };
    Ok(finish(raw, url, fields))
}

fn finish(raw: Raw, url: &Url, fields: Map<String, Value>) -> Extract {
    let base = raw.base.as_deref().and_then(|base| url.join(base).ok());
    let base = base.as_ref().unwrap_or(url);
    let mut links = Vec::new();
    if !raw.orders.nofollow {
        let mut seen = rustc_hash::FxHashSet::default();
        let absolute = raw.links.iter().filter_map(|link| crate::normal_url::resolve(base, link));
        links = absolute.map(String::from).filter(|link| seen.insert(link.clone())).collect();
    }
    let canonical = raw.canonical.and_then(|link| crate::normal_url::resolve(base, &link));
    let mut metadata = raw.metadata;
    if let Some(canonical) = &canonical {
        metadata.insert("canonical".into(), canonical.as_str().into());
    }
    Extract {
        title: raw.title,
        text: raw.text,
        links,
        metadata,
        fields,
        canonical,
        orders: raw.orders,
    }
}

/// Reads a page of plain text.
pub(crate) fn plain(text: &str) -> Extract {
    let kept: String = text
        .chars()
        .map(|c| if c == '\t' { ' ' } else { c })
        .filter(|c| !c.is_control() || *c == '\n')
        .collect();
    Extract { text: cut(kept.trim(), TEXT_BYTES_MAX).to_owned(), ..Extract::default() }
}

impl Extract {
    /// What counts of the content: title, text and fields. Markup, links and metadata change with
    /// every advertisement and time stamp, and say nothing new. It ends with the way in which the
    /// page was read: a page that was read in another way is another one, even if the server says
    /// that it has not changed.
    pub(crate) fn content_hash(&self, reading: [u8; 4]) -> [u8; 32] {
        let mut hash = Sha256::new();
        let fields = Value::Object(self.fields.clone()).to_string();
        for part in [self.title.as_deref().unwrap_or_default(), &self.text, &fields] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let mut hash: [u8; 32] = hash.finalize().into();
        hash[28..].copy_from_slice(&reading);
        hash
    }
}

#[cfg(test)]
mod tests;
