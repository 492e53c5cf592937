//! The queue of URLs that a crawl has not visited yet.

use std::collections::{BTreeMap, VecDeque};

use evenkeel_outbound::reqwest::Url;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::entry::{Entry, Lookup};
use crate::normal_url::{host_of, key_of};

/// Maximum number of URLs that a crawl remembers as seen; further URLs are ignored.
const SEEN_MAX: usize = 200_000;
/// Maximum number of bytes of all queued URLs.
const QUEUE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum number of hosts that a crawl visits.
const LANES_MAX: usize = 1000;
/// Maximum number of URLs that differ only in their query; more such URLs are likely an endless
/// calendar or session ids.
const QUERIES_PER_PATH_MAX: u16 = 200;
/// Maximum number of times that the same path segment may occur in a URL. A segment that occurs
/// more often likely comes from a relative link that loops.
const SAME_SEGMENT_MAX: usize = 3;

/// The queue of URLs of a crawl, which is visited breadth first. Each host has a separate part of
/// the queue (a lane), so that a slow host does not delay other hosts.
#[derive(Debug, Default)]
pub(crate) struct Frontier {
    lanes: BTreeMap<String, Lane>,
    pub(crate) seen: FxHashSet<u64>,
    queries: FxHashMap<u64, u16>,
    queue_max: usize,
    pub(crate) queued: usize,
    bytes: usize,
    next_no: u64,
    /// Number of URLs that were ignored because the queue or another limit was full.
    pub(crate) left_out: u64,
}

#[derive(Debug, Default)]
struct Lane {
    queue: VecDeque<(u64, Entry)>,
    in_flight: usize,
    /// Number of errors of the host in a row.
    host_errors: u32,
    is_given_up: bool,
}

/// The result of [`Frontier::offer`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Offered {
    Queued,
    Seen,
    /// The URL looks like one of an endless series, such as the pages of a calendar.
    Trap,
    Full,
    /// The crawl no longer visits the host of this URL, because the host had too many errors.
    GivenUp,
}

impl Frontier {
    pub(crate) fn new(queue_max: usize) -> Self {
        Self { queue_max, ..Self::default() }
    }

    /// Returns a queue of URLs that treats the URLs with these hashes as already seen.
    pub(crate) fn with_seen(queue_max: usize, seen: impl IntoIterator<Item = u64>) -> Self {
        Self { seen: seen.into_iter().take(SEEN_MAX).collect(), ..Self::new(queue_max) }
    }

    /// Queues a URL, unless the crawl has seen it before, it looks like one of an endless series,
    /// or a limit is reached.
    pub(crate) fn offer(&mut self, entry: Entry) -> Offered {
        let is_full = self.queued >= self.queue_max || self.bytes >= QUEUE_BYTES_MAX;
        let offered = self.admit(&entry.url, is_full);
        if offered == Offered::Queued {
            self.put_last(entry);
        }
        offered
    }

    /// Decides whether to queue a URL. A URL that will be queued counts as seen from then on.
    fn admit(&mut self, url: &Url, is_full: bool) -> Offered {
        let key = key_of(url.as_str());
        if self.seen.contains(&key) {
            return Offered::Seen;
        }
        if has_loop(url) || !self.has_query_left(url) {
            return Offered::Trap;
        }
        if self.is_given_up(url) {
            return Offered::GivenUp;
        }
        let is_full = is_full
            || self.seen.len() >= SEEN_MAX
            || (self.lanes.len() >= LANES_MAX && !self.lanes.contains_key(&host_of(url)));
        if is_full {
            self.left_out += 1;
            return Offered::Full;
        }
        self.seen.insert(key);
        Offered::Queued
    }

    /// Adds a page at the end of the queue, even if the crawl has seen its URL before.
    pub(crate) fn put_last(&mut self, entry: Entry) {
        let no = self.next_no;
        self.next_no += 1;
        self.lane_for(&entry).queue.push_back((no, entry));
    }

    /// Queues the target of a redirect at the position of the page that redirected, even if the
    /// queue is full.
    pub(crate) fn replace(&mut self, no: u64, entry: Entry) -> Offered {
        let offered = self.admit(&entry.url, false);
        if offered == Offered::Queued {
            self.lane_for(&entry).queue.push_front((no, entry));
        }
        offered
    }

    /// Takes the first page in the queue whose host has a free connection.
    pub(crate) fn pick(&mut self, connections: usize) -> Option<(u64, Entry)> {
        let free = self.lanes.values_mut().filter(|lane| lane.in_flight < connections);
        let first = free.filter(|lane| !lane.queue.is_empty());
        let lane = first.min_by_key(|lane| lane.queue.front().map(|(no, _)| *no))?;
        let (no, entry) = lane.queue.pop_front()?;
        lane.in_flight += 1;
        self.queued -= 1;
        self.bytes -= entry.url.as_str().len();
        Some((no, entry))
    }

    /// Records that a request to the host of this URL has ended.
    pub(crate) fn release(&mut self, url: &Url) {
        if let Some(lane) = self.lanes.get_mut(&host_of(url)) {
            lane.in_flight = lane.in_flight.saturating_sub(1);
        }
    }

    /// Records whether a request to the host failed. Returns how many errors in a row the host had.
    pub(crate) fn note(&mut self, url: &Url, is_host_error: bool) -> u32 {
        let Some(lane) = self.lanes.get_mut(&host_of(url)) else { return 0 };
        lane.host_errors = if is_host_error { lane.host_errors + 1 } else { 0 };
        lane.host_errors
    }

    pub(crate) fn is_given_up(&self, url: &Url) -> bool {
        self.lanes.get(&host_of(url)).is_some_and(|lane| lane.is_given_up)
    }

    /// Stops visiting the host of this URL, and returns the queued pages of the host.
    pub(crate) fn give_up(&mut self, url: &Url) -> Vec<Entry> {
        let Some(lane) = self.lanes.get_mut(&host_of(url)) else { return Vec::new() };
        lane.is_given_up = true;
        let entries: Vec<Entry> = lane.queue.drain(..).map(|(_, entry)| entry).collect();
        self.queued -= entries.len();
        self.bytes -= entries.iter().map(|entry| entry.url.as_str().len()).sum::<usize>();
        entries
    }

    /// Returns the next queue entries that were not looked up in the archive yet, in no particular
    /// order.
    pub(crate) fn not_looked_up(&mut self, count_max: usize) -> Vec<&mut Entry> {
        let mut upcoming: Vec<&mut Entry> = Vec::with_capacity(count_max);
        for lane in self.lanes.values_mut() {
            // Only the first queue entries of each host are returned; others are looked up later.
            let next = lane.queue.iter_mut().take(2 * count_max).map(|(_, entry)| entry);
            let missing = count_max - upcoming.len();
            upcoming.extend(next.filter(|entry| entry.known == Lookup::NotYet).take(missing));
            if upcoming.len() >= count_max {
                break;
            }
        }
        upcoming
    }

    /// Returns all queued pages in the order of the queue.
    pub(crate) fn entries(&self) -> Vec<(u64, &Entry)> {
        let all = self.lanes.values().flat_map(|lane| &lane.queue);
        let mut entries: Vec<_> = all.map(|(no, entry)| (*no, entry)).collect();
        entries.sort_by_key(|(no, _)| *no);
        entries
    }

    /// Counts a page that will be queued, and returns the lane of its host.
    fn lane_for(&mut self, entry: &Entry) -> &mut Lane {
        self.queued += 1;
        self.bytes += entry.url.as_str().len();
        self.lanes.entry(host_of(&entry.url)).or_default()
    }

    fn has_query_left(&mut self, url: &Url) -> bool {
        if url.query().is_none() || self.queries.len() >= SEEN_MAX {
            return true;
        }
        let bare = url.as_str().split('?').next().unwrap_or_default();
        let count = self.queries.entry(key_of(bare)).or_default();
        *count = count.saturating_add(1);
        *count <= QUERIES_PER_PATH_MAX
    }
}

fn has_loop(url: &Url) -> bool {
    let mut segments: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    segments.sort_unstable();
    segments.chunk_by(|a, b| a == b).any(|same| same.len() > SAME_SEGMENT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(url: &str) -> Entry {
        Entry::new(Url::parse(url).unwrap(), 1)
    }

    #[test]
    fn pages_are_crawled_once_in_the_order_of_discovery() {
        let mut frontier = Frontier::new(10);
        for url in ["http://a/1", "http://b/1", "http://a/2", "http://a/3"] {
            assert_eq!(frontier.offer(entry(url)), Offered::Queued);
        }
        assert_eq!(frontier.offer(entry("http://a/1")), Offered::Seen);
        let mut next = || frontier.pick(1).map(|(_, entry)| String::from(entry.url));
        assert_eq!(next().as_deref(), Some("http://a/1"));
        assert_eq!(next().as_deref(), Some("http://b/1"));
        assert_eq!(next(), None);
        frontier.release(&Url::parse("http://a/").unwrap());
        assert_eq!(frontier.pick(1).unwrap().1.url.as_str(), "http://a/2");
        assert_eq!(frontier.queued, 1);
    }

    #[test]
    fn redirect_takes_the_place_of_its_page() {
        let mut frontier = Frontier::new(10);
        frontier.offer(entry("http://a/1"));
        frontier.offer(entry("http://a/2"));
        let (no, _) = frontier.pick(2).unwrap();
        assert_eq!(frontier.replace(no, entry("http://a/2")), Offered::Seen);
        assert_eq!(frontier.replace(no, entry("http://a/new")), Offered::Queued);
        assert_eq!(frontier.pick(2).unwrap().1.url.as_str(), "http://a/new");
    }

    #[test]
    fn full_queue_counts_what_it_leaves_out() {
        let mut frontier = Frontier::new(2);
        for number in 0..5 {
            frontier.offer(entry(&format!("http://a/{number}")));
        }
        assert_eq!((frontier.queued, frontier.left_out), (2, 3));
        frontier.pick(1);
        // A URL that did not fit into the queue was not marked as seen, so it can be offered again.
        assert_eq!(frontier.offer(entry("http://a/4")), Offered::Queued);
    }

    #[test]
    fn endless_queries_and_looping_paths_are_traps() {
        let mut frontier = Frontier::new(1000);
        let queued = (0..1000)
            .filter(|n| frontier.offer(entry(&format!("http://a/c?d={n}"))) == Offered::Queued);
        assert_eq!(queued.count(), usize::from(QUERIES_PER_PATH_MAX));
        assert_eq!(frontier.offer(entry("http://a/other?d=1")), Offered::Queued);
        assert_eq!(frontier.offer(entry("http://a/x/x/x/y")), Offered::Queued);
        assert_eq!(frontier.offer(entry("http://a/x/y/x/y/x/y/x/y")), Offered::Trap);
    }

    #[test]
    fn giving_up_a_host_keeps_the_others() {
        let mut frontier = Frontier::new(10);
        for url in ["http://a/1", "http://b/1", "http://a/2"] {
            frontier.offer(entry(url));
        }
        let given_up = frontier.give_up(&Url::parse("http://a/x").unwrap());
        assert_eq!((given_up.len(), frontier.queued), (2, 1));
        assert_eq!(frontier.offer(entry("http://a/3")), Offered::GivenUp);
        assert_eq!(frontier.offer(entry("http://b/3")), Offered::Queued);
    }

    #[test]
    fn redirect_is_checked_like_a_link() {
        let mut frontier = Frontier::new(1);
        frontier.offer(entry("http://a/1"));
        let (no, _) = frontier.pick(1).unwrap();
        assert_eq!(frontier.replace(no, entry("http://a/x/x/x/x")), Offered::Trap);
        for number in 0..QUERIES_PER_PATH_MAX {
            frontier.offer(entry(&format!("http://a/c?d={number}")));
        }
        assert_eq!(frontier.replace(no, entry("http://a/c?d=x")), Offered::Trap);
        frontier.give_up(&Url::parse("http://a/").unwrap());
        assert_eq!(frontier.replace(no, entry("http://a/2")), Offered::GivenUp);
        for number in 1..LANES_MAX {
            assert_eq!(
                frontier.replace(no, entry(&format!("http://{number}.a/"))),
                Offered::Queued
            );
        }
        assert_eq!(frontier.replace(no, entry("http://b/")), Offered::Full);
    }
}
