//! Queuing what a site's sitemaps name.

use std::collections::VecDeque;

use evenkeel_outbound::reqwest::Url;
use rustc_hash::FxHashSet;

use super::Crawl;
use crate::entry::Entry;
use crate::fetch::{Ask, Body, Wanted, fetch};
use crate::frontier::Offered;
use crate::host_robots::{Asker, robots};
use crate::normal_url::{host_of, resolve};
use crate::sitemap::{self, SITEMAP_BYTES_MAX, SITEMAPS_MAX, Sitemap};

const REDIRECTS_MAX: usize = 5;

impl Crawl {
    /// Reads the sitemaps of the starts' hosts. Their pages count as one link from the start. What
    /// can't be read is left out: a sitemap is an offer, no promise.
    pub(super) async fn read_sitemaps(&mut self) {
        let config = &self.shared.config;
        if config.sitemaps && config.depth > 0 && self.tally.visited < config.pages_max {
            self.queue_sitemaps().await;
        }
        // Only now: if this is dropped before, a later crawl has to read them.
        self.sitemaps_read = true;
        self.is_changed = true;
    }

    async fn queue_sitemaps(&mut self) {
        let mut waiting = self.sitemaps_of_starts().await;
        let mut seen: FxHashSet<Url> = waiting.iter().cloned().collect();
        let mut urls_left = self.shared.config.queue_max();
        let mut files = 0;
        while let Some(place) = waiting.pop_front()
            && files < SITEMAPS_MAX
            && urls_left > 0
        {
            files += 1;
            let Some(sitemap) = self.fetch_sitemap(&place, urls_left).await else { continue };
            let pages = sitemap.pages.iter().filter_map(|page| resolve(&place, page));
            let (mut named, mut queued) = (0, 0);
            for page in pages {
                named += 1;
                if self.shared.config.scope.wants(&page) {
                    let offered = self.frontier.offer(Entry::new(page, 1));
                    queued += usize::from(offered == Offered::Queued);
                    self.tally.traps += u64::from(offered == Offered::Trap);
                }
            }
            urls_left = urls_left.saturating_sub(named);
            for link in &sitemap.sitemaps {
                if let Some(next) = resolve(&place, link)
                    && self.is_ours(&next)
                    && seen.len() < 2 * SITEMAPS_MAX
                    && seen.insert(next.clone())
                {
                    waiting.push_back(next);
                }
            }
            if named + sitemap.sitemaps.len() > 0 {
                self.listener
                    .log(&format!("sitemap {place}: {named} pages, {queued} of them queued"));
            }
        }
    }

    /// Those that robots.txt names, and the usual one.
    async fn sitemaps_of_starts(&self) -> VecDeque<Url> {
        let shared = &self.shared;
        let mut places = VecDeque::new();
        let mut hosts = FxHashSet::default();
        for start in &shared.config.starts {
            if !hosts.insert(host_of(start)) {
                continue;
            }
            let usual = start.join("/sitemap.xml").ok();
            if !shared.config.obey_robots {
                places.extend(usual);
                continue;
            }
            let host = shared.hosts.get(&host_of(start));
            if let Ok(rules) = robots(&host, start, self.asker()).await {
                let named = rules.sitemaps.iter().filter_map(|place| resolve(start, place));
                places.extend(named.filter(|place| self.is_ours(place)));
                places.extend(usual.filter(|place| rules.allows(place)));
            }
        }
        let mut seen = FxHashSet::default();
        places.retain(|place| seen.insert(place.clone()));
        places
    }

    /// Is it on a host of this crawl?
    fn is_ours(&self, place: &Url) -> bool {
        let starts = &self.shared.config.starts;
        self.shared.config.scope.covers(place)
            || starts.iter().any(|start| host_of(start) == host_of(place))
    }

    fn asker(&self) -> Asker<'_> {
        Asker {
            outbound: &self.shared.outbound,
            robots_name: &self.shared.settings.robots_name,
            user_agent: self.shared.config.user_agent.as_ref(),
            delay: self.shared.config.delay,
        }
    }

    async fn fetch_sitemap(&self, place: &Url, urls_max: usize) -> Option<Sitemap> {
        let config = &self.shared.config;
        let mut place = place.clone();
        for _ in 0..=REDIRECTS_MAX {
            let ask = Ask {
                url: place.clone(),
                known: None,
                user_agent: config.user_agent.as_ref(),
                bytes_max: SITEMAP_BYTES_MAX,
                time_max: config.page_timeout,
                wanted: Wanted::All,
            };
            let host = self.shared.hosts.get(&host_of(&place));
            let permit = host.enter(config.delay).await;
            let answer =
                fetch(&self.shared.outbound, &ask, &self.shared.settings.robots_name).await.ok()?;
            drop(permit);
            match answer.status {
                200..300 => {
                    let (Body::Whole(bytes) | Body::Cut(bytes)) = answer.body else { return None };
                    let reading =
                        tokio::task::spawn_blocking(move || sitemap::read(&bytes, urls_max));
                    return reading.await.ok();
                }
                300..400 => {
                    place = resolve(&place, &answer.location?).filter(|to| self.is_ours(to))?;
                }
                429 | 500.. => {
                    host.trouble(answer.retry_after);
                    return None;
                }
                _ => return None,
            }
        }
        None
    }
}
