//! Reads sitemaps and queues the pages that they list.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use evenkeel_outbound::reqwest::Url;
use rustc_hash::FxHashSet;

use super::{Crawl, QUIET_MIN};
use crate::crawler::Shared;
use crate::entry::Entry;
use crate::fetch::{Body, FetchError, FetchRequest, Wanted, fetch};
use crate::frontier::Offered;
use crate::host_robots::{NoRobots, robots};
use crate::normal_url::{host_of, resolve};
use crate::sitemap::{self, SITEMAP_BYTES_MAX, SITEMAPS_MAX};

const REDIRECTS_MAX: usize = 5;
/// Number of pages of a sitemap that are queued before the task yields to other tasks.
const QUEUED_AT_ONCE: usize = 1000;

/// A sitemap to read.
struct Place {
    url: Url,
    /// True if robots.txt names this sitemap and thus allows reading it.
    is_named: bool,
}

/// The name of a host that responded with an error to a request for its sitemap.
struct HostError(String);

/// The URLs in a sitemap.
struct Lists {
    named: usize,
    /// The URLs of pages in the sitemap that are in the scope of the crawl.
    pages: Vec<Url>,
    sitemaps: Vec<Url>,
}

impl Crawl {
    /// Reads the sitemaps of the hosts of all start URLs. Pages in a sitemap count as one link away
    /// from the start URLs. Sitemaps are optional, so a sitemap that cannot be read in time is
    /// skipped.
    pub(super) async fn read_sitemaps(&mut self) {
        let config = &self.shared.config;
        if config.sitemaps && config.depth > 0 && self.counts.visited < config.pages_max {
            let time_max = self.shared.settings.sitemaps_time_max;
            if tokio::time::timeout(time_max, self.queue_sitemaps()).await.is_err() {
                let secs = time_max.as_secs();
                self.log(format!("sitemaps left out: not all were read within {secs} s"));
            }
        }
        // `sitemaps_read` is set last, so that a crawl that is interrupted while it reads sitemaps
        // reads them again when it resumes.
        self.sitemaps_read = true;
        self.is_changed = true;
    }

    async fn queue_sitemaps(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut waiting = self.with_progress(sitemaps_of_starts(&shared)).await;
        let mut seen: FxHashSet<Url> = waiting.iter().map(|place| place.url.clone()).collect();
        let mut urls_left = shared.config.queue_max();
        let mut files = 0;
        let mut failed_hosts = FxHashSet::default();
        while let Some(place) = waiting.pop_front()
            && files < SITEMAPS_MAX
            && urls_left > 0
        {
            if failed_hosts.contains(&host_of(&place.url)) {
                continue;
            }
            files += 1;
            let reading = read(&shared, &place, urls_left);
            let Lists { named, pages, sitemaps } = match self.with_progress(reading).await {
                Ok(Some(lists)) => lists,
                Ok(None) => continue,
                Err(HostError(host)) => {
                    self.log(format!("sitemaps of {host} left out: the host had errors"));
                    failed_hosts.insert(host);
                    continue;
                }
            };
            urls_left = urls_left.saturating_sub(named);
            let further = sitemaps.len();
            let queued = self.queue_named(pages).await;
            for url in sitemaps {
                if seen.len() < 2 * SITEMAPS_MAX && seen.insert(url.clone()) {
                    waiting.push_back(Place { url, is_named: false });
                }
            }
            if named + further > 0 {
                let url = &place.url;
                self.log(format!("sitemap {url}: {named} pages, {queued} of them queued"));
            }
            self.report_progress();
        }
    }

    /// Awaits a future, and repeatedly reports the progress of the crawl in the meantime.
    async fn with_progress<T>(&self, future: impl Future<Output = T>) -> T {
        let quiet = self.shared.settings.checkpoint_every.max(QUIET_MIN);
        let mut future = pin!(future);
        loop {
            match tokio::time::timeout(quiet, future.as_mut()).await {
                Ok(done) => return done,
                Err(_) => self.report_progress(),
            }
        }
    }

    /// Queues the pages of a sitemap. Returns how many pages of the sitemap were queued.
    async fn queue_named(&mut self, pages: Vec<Url>) -> usize {
        let mut queued = 0;
        for (count, page) in pages.into_iter().enumerate() {
            if count % QUEUED_AT_ONCE == QUEUED_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            let offered = self.frontier.offer(Entry::new(page, 1));
            queued += usize::from(offered == Offered::Queued);
            self.counts.traps += u64::from(offered == Offered::Trap);
        }
        queued
    }
}

/// Returns the sitemaps that the robots.txt files of the start URLs name, and the default
/// `/sitemap.xml` of each host.
async fn sitemaps_of_starts(shared: &Shared) -> VecDeque<Place> {
    let mut places = VecDeque::new();
    let mut hosts = FxHashSet::default();
    for start in &shared.config.starts {
        if !hosts.insert(host_of(start)) {
            continue;
        }
        if shared.config.obey_robots {
            let host = shared.hosts.get(&host_of(start));
            let Ok(rules) = robots(&host, start, shared).await else { continue };
            let named = rules.sitemaps.iter().filter_map(|place| resolve(start, place));
            let named = named.filter(|url| is_ours(shared, url));
            places.extend(named.map(|url| Place { url, is_named: true }));
        }
        let usual = start.join("/sitemap.xml").ok();
        places.extend(usual.map(|url| Place { url, is_named: false }));
    }
    let mut seen = FxHashSet::default();
    places.retain(|place| seen.insert(place.url.clone()));
    places
}

/// True if the URL is on one of the hosts of this crawl.
fn is_ours(shared: &Shared, place: &Url) -> bool {
    let starts = &shared.config.starts;
    shared.config.scope.covers(place) || starts.iter().any(|start| host_of(start) == host_of(place))
}

/// Reads a sitemap and follows its redirects. Each request for a sitemap respects the limits of its
/// host. Returns `None` if the sitemap does not exist or may not be read.
async fn read(
    shared: &Arc<Shared>,
    place: &Place,
    urls_max: usize,
) -> Result<Option<Lists>, HostError> {
    let config = &shared.config;
    let Place { mut url, mut is_named } = Place { url: place.url.clone(), ..*place };
    for _ in 0..=REDIRECTS_MAX {
        let host = shared.hosts.get(&host_of(&url));
        let mut delay = config.delay;
        if config.obey_robots {
            match robots(&host, &url, shared).await {
                Ok(rules) if is_named || rules.allows(&url) => {
                    delay = delay.max(rules.delay.unwrap_or_default());
                }
                Ok(_) | Err(NoRobots { refused: true, .. }) => return Ok(None),
                Err(_) => return Err(HostError(host_of(&url))),
            }
        }
        let ask = FetchRequest {
            url: url.clone(),
            known: None,
            user_agent: config.user_agent.as_ref(),
            bytes_max: SITEMAP_BYTES_MAX,
            time_max: config.page_timeout,
            wanted: Wanted::All,
        };
        let permit = host.enter(delay).await;
        let fetched = fetch(shared, &ask).await;
        drop(permit);
        let answer = match fetched {
            Ok(answer) => answer,
            Err(FetchError::Refused(_)) => return Ok(None),
            Err(error) => {
                if matches!(error, FetchError::Failed(_)) {
                    host.record_error(None);
                }
                return Err(HostError(host_of(&url)));
            }
        };
        match answer.status {
            200..300 => {
                let (Body::Whole(bytes) | Body::Cut(bytes)) = answer.body else {
                    return Ok(None);
                };
                let shared = Arc::clone(shared);
                let reading =
                    tokio::task::spawn_blocking(move || lists(&shared, &url, &bytes, urls_max));
                return Ok(reading.await.ok());
            }
            300..400 => {
                let to = answer.location.and_then(|to| resolve(&url, &to));
                let Some(to) = to.filter(|to| is_ours(shared, to)) else { return Ok(None) };
                (url, is_named) = (to, false);
            }
            429 | 500.. => {
                host.record_error(answer.retry_after);
                return Err(HostError(host_of(&url)));
            }
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Parses a sitemap. Parsing runs on a blocking thread, because a sitemap may list a hundred
/// thousand pages.
fn lists(shared: &Shared, url: &Url, bytes: &[u8], urls_max: usize) -> Lists {
    let sitemap = sitemap::read(bytes, urls_max);
    let pages = sitemap.pages.iter().filter_map(|page| resolve(url, page));
    let sitemaps = sitemap.sitemaps.iter().filter_map(|place| resolve(url, place));
    Lists {
        named: sitemap.pages.len(),
        pages: pages.filter(|page| shared.config.scope.wants(page)).collect(),
        sitemaps: sitemaps.filter(|url| is_ours(shared, url)).take(2 * SITEMAPS_MAX).collect(),
    }
}
