//! The format of the checkpoints of crawls.
//!
//! A checkpoint begins with a magic number that includes the version. The rest of a checkpoint is
//! compressed: a header in JSON, the queue of URLs as lines of text, and the hashes of seen URLs,
//! page contents and canonical links as binary numbers.

use std::io::{Read, Write};

use evenkeel_core::PageId;
use evenkeel_outbound::reqwest::Url;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use uuid::Uuid;

use crate::contents::{Contents, Representative};
use crate::counts::CrawlCounts;
use crate::entry::Entry;
use crate::normal_url::key_of;

/// Identifies the version of the checkpoint format; change this number with the format.
const MAGIC: &[u8; 8] = b"ekcrawl2";
/// Maximum number of bytes of a checkpoint after decompression.
const UNPACKED_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// The state of a crawl at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Checkpoint {
    pub(crate) head: Head,
    pub(crate) queue: Vec<Entry>,
    pub(crate) seen: Vec<u64>,
    pub(crate) contents: Contents,
    /// URL hashes of pages that named another page as their canonical page.
    pub(crate) pointers: Vec<u64>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The hash of the crawl configuration.
    pub(crate) fingerprint: u64,
    pub(crate) counts: CrawlCounts,
    pub(crate) sitemaps_read: bool,
    /// Why the first of the unreadable start URLs could not be read.
    pub(crate) first_loss: Option<String>,
    /// Number of queued URLs that did not fit into the checkpoint.
    pub(crate) cut: u64,
}

/// Why a checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it is of another version")]
    Version,
    #[error("the configuration has changed since")]
    OtherConfig,
    #[error("it can't be read: {0}")]
    Broken(String),
}

impl Checkpoint {
    /// Encodes the checkpoint in at most `bytes_max` bytes. If the checkpoint is too large, the
    /// function drops the least important data: first content hashes, then the end of the queue,
    /// and last the seen URLs. Without the dropped data, a resumed crawl may save pages with the
    /// same content twice, or read some pages again.
    pub(crate) fn encode(mut self, bytes_max: usize) -> Vec<u8> {
        loop {
            let data = self.pack();
            if data.len() <= bytes_max {
                return data;
            }
            if !self.contents.0.is_empty() || !self.pointers.is_empty() {
                self.cut_contents(data.len() - bytes_max);
            } else if !self.queue.is_empty() {
                self.cut_queue();
            } else if !self.seen.is_empty() {
                self.seen.truncate(self.seen.len() / 2);
            } else {
                return data;
            }
        }
    }

    /// Drops content hashes. Hashes cannot be compressed, so the number of bytes above the size
    /// limit determines how many hashes to drop.
    fn cut_contents(&mut self, excess: usize) {
        self.pointers.clear();
        let contents = &mut self.contents.0;
        let kept = contents.len().saturating_sub(excess / (REPRESENTATIVE_BYTES - 4) + 100);
        *contents = contents.drain().take(kept).collect();
    }

    /// Drops the second half of the queue of URLs. The dropped URLs no longer count as seen. The
    /// resumed crawl reads the sitemaps again, because they may list dropped URLs.
    fn cut_queue(&mut self) {
        let cut = self.queue.split_off(self.queue.len() / 2);
        self.head.cut += cut.len() as u64;
        self.head.sitemaps_read = false;
        let keys: FxHashSet<u64> = cut.iter().map(|entry| key_of(entry.url.as_str())).collect();
        self.seen.retain(|key| !keys.contains(key));
    }

    fn pack(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        piece(&mut plain, &serde_json::to_vec(&self.head).unwrap_or_default());
        let mut lines = String::new();
        for entry in &self.queue {
            let Entry { url, depth, tries, hops, is_start, .. } = entry;
            let start = u8::from(*is_start);
            lines.push_str(&format!("{depth} {tries} {hops} {start} {url}\n"));
        }
        piece(&mut plain, lines.as_bytes());
        let seen: Vec<u8> = self.seen.iter().flat_map(|key| key.to_le_bytes()).collect();
        piece(&mut plain, &seen);
        let pointers: Vec<u8> = self.pointers.iter().flat_map(|key| key.to_le_bytes()).collect();
        piece(&mut plain, &pointers);
        let mut contents = Vec::with_capacity(self.contents.0.len() * REPRESENTATIVE_BYTES);
        for (hash, representative) in &self.contents.0 {
            contents.extend(hash.to_le_bytes());
            contents.extend(representative.url_len.to_le_bytes());
            contents.extend(representative.page.0.as_bytes());
            contents.push(representative.indexed.into());
        }
        piece(&mut plain, &contents);
        let mut packer = DeflateEncoder::new(MAGIC.to_vec(), Compression::fast());
        // Writing to memory cannot fail.
        let packed = packer.write_all(&plain).and_then(|()| packer.finish());
        packed.unwrap_or_default()
    }

    /// Decodes a checkpoint, and refuses one that was saved with another crawl configuration.
    pub(crate) fn decode(data: &[u8], fingerprint: u64) -> Result<Self, Unusable> {
        let broken = |what: &str| Unusable::Broken(what.into());
        let packed = data.strip_prefix(MAGIC).ok_or(Unusable::Version)?;
        let mut plain = Vec::new();
        let mut unpacker = DeflateDecoder::new(packed).take(UNPACKED_BYTES_MAX);
        unpacker.read_to_end(&mut plain).map_err(|error| Unusable::Broken(error.to_string()))?;
        let mut rest = plain.as_slice();
        let mut next = || take_piece(&mut rest).ok_or_else(|| broken("it ends too soon"));
        let head: Head =
            serde_json::from_slice(next()?).map_err(|error| Unusable::Broken(error.to_string()))?;
        if head.fingerprint != fingerprint {
            return Err(Unusable::OtherConfig);
        }
        let lines = std::str::from_utf8(next()?).map_err(|_| broken("its queue is not text"))?;
        let queue: Option<Vec<Entry>> = lines.lines().map(read_entry).collect();
        let seen = next()?.chunks_exact(8).filter_map(read_u64).collect();
        let pointers = next()?.chunks_exact(8).filter_map(read_u64).collect();
        let contents =
            next()?.chunks_exact(REPRESENTATIVE_BYTES).filter_map(read_representative).collect();
        let queue = queue.ok_or_else(|| broken("its queue makes no sense"))?;
        Ok(Self { head, queue, seen, contents: Contents(contents), pointers })
    }
}

const REPRESENTATIVE_BYTES: usize = 8 + 2 + 16 + 1;

fn piece(plain: &mut Vec<u8>, bytes: &[u8]) {
    plain.extend((bytes.len() as u64).to_le_bytes());
    plain.extend(bytes);
}

fn take_piece<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_at_checked(8)?;
    let (bytes, after) = after.split_at_checked(usize::try_from(read_u64(length)?).ok()?)?;
    *rest = after;
    Some(bytes)
}

fn read_u64(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_le_bytes)
}

fn read_representative(bytes: &[u8]) -> Option<(u64, Representative)> {
    let (hash, rest) = bytes.split_at_checked(8)?;
    let (url_len, rest) = rest.split_at_checked(2)?;
    let (page, indexed) = rest.split_at_checked(16)?;
    let page: [u8; 16] = page.try_into().ok()?;
    let representative = Representative {
        url_len: u16::from_le_bytes(url_len.try_into().ok()?),
        page: PageId(Uuid::from_bytes(page)),
        indexed: indexed == [1],
    };
    Some((read_u64(hash)?, representative))
}

fn read_entry(line: &str) -> Option<Entry> {
    let mut parts = line.splitn(5, ' ');
    let mut number = || parts.next()?.parse::<u16>().ok();
    let (depth, tries, hops, start) = (number()?, number()?, number()?, number()?);
    let url = Url::parse(parts.next()?).ok()?;
    let mut entry = Entry::new(url, depth);
    entry.tries = u8::try_from(tries).ok()?;
    entry.hops = u8::try_from(hops).ok()?;
    entry.is_start = start == 1;
    Some(entry)
}

#[cfg(test)]
mod tests {
    use evenkeel_core::JobNo;
    use sha2::Digest;

    use super::*;

    fn checkpoint(entries: usize) -> Checkpoint {
        let mut checkpoint = Checkpoint::default();
        checkpoint.head.fingerprint = 7;
        checkpoint.head.counts.visited = 3;
        for number in 0..entries {
            let url = Url::parse(&format!("http://a/{number}?x={}", number * number)).unwrap();
            let mut entry = Entry::new(url, 2);
            entry.tries = 1;
            entry.is_start = number == 0;
            checkpoint.queue.push(entry);
        }
        checkpoint.seen = (0..100).map(|n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        checkpoint.contents.note(&[9; 32], PageId::of(JobNo(1), "http://a/"), "http://a/");
        checkpoint.contents.mark_indexed(&[9; 32], PageId::of(JobNo(1), "http://a/"));
        checkpoint.pointers = vec![u64::MAX, 5];
        checkpoint
    }

    #[test]
    fn checkpoint_is_decoded_unchanged() {
        let saved = checkpoint(50);
        let data = saved.clone().encode(1 << 20);
        assert_eq!(Checkpoint::decode(&data, 7).unwrap(), saved);
    }

    #[test]
    fn large_checkpoint_drops_the_end_of_its_queue() {
        let mut saved = checkpoint(10_000);
        let visited = saved.seen.len();
        saved.seen.extend(saved.queue.iter().map(|entry| key_of(entry.url.as_str())));
        saved.head.sitemaps_read = true;
        let data = saved.clone().encode(20_000);
        assert!(data.len() <= 20_000, "{}", data.len());
        let read = Checkpoint::decode(&data, 7).unwrap();
        assert!(!read.queue.is_empty() && saved.queue.starts_with(&read.queue));
        assert_eq!(read.head.cut as usize + read.queue.len(), 10_000);
        // Dropped URLs do not count as seen, but queued and visited URLs do.
        assert_eq!(read.seen, saved.seen[..visited + read.queue.len()]);
        assert!(!read.head.sitemaps_read);
    }

    #[test]
    fn huge_crawl_fits_into_half_a_mebibyte() {
        let mut saved = checkpoint(20_000);
        saved.head.counts.visited = 40_000;
        saved.seen.extend(saved.queue.iter().map(|entry| key_of(entry.url.as_str())));
        for number in 0..40_000_u32 {
            let url = format!("http://a/visited/{number}");
            saved.seen.push(key_of(&url));
            let hash: [u8; 32] = sha2::Sha256::digest(url.as_bytes()).into();
            saved.contents.note(&hash, PageId::of(JobNo(1), &url), &url);
        }
        let data = saved.clone().encode(512 * 1024);
        assert!(data.len() <= 512 * 1024, "{}", data.len());
        let read = Checkpoint::decode(&data, 7).unwrap();
        assert!(read.queue.len() >= 1000 && saved.queue.starts_with(&read.queue));
        let seen: FxHashSet<u64> = read.seen.iter().copied().collect();
        for number in 0..40_000_u32 {
            assert!(seen.contains(&key_of(&format!("http://a/visited/{number}"))), "{number}");
        }
        // Encoding ends even if no data fits.
        assert!(saved.encode(1000).len() <= 1000);
    }

    #[test]
    fn unusable_checkpoints_are_refused_with_the_reason() {
        let data = checkpoint(5).encode(1 << 20);
        assert!(matches!(Checkpoint::decode(&data, 8), Err(Unusable::OtherConfig)));
        assert!(matches!(Checkpoint::decode(b"something", 7), Err(Unusable::Version)));
        assert!(matches!(Checkpoint::decode(b"", 7), Err(Unusable::Version)));
        for end in MAGIC.len()..data.len() {
            assert!(Checkpoint::decode(&data[..end], 7).is_err(), "{end}");
        }
    }
}
