//! Limits per host, which apply to all crawls of the node together: connections, delays, and pauses
//! after errors.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::clock::now;
use crate::host_robots::RobotsCache;
use crate::settings::CrawlerSettings;

/// If this many hosts are remembered, all unused hosts are dropped.
const HOSTS_MAX: usize = 10_000;
/// A host is dropped after this time without requests; its cached robots.txt is outdated by then.
const IDLE_MAX: Duration = Duration::from_secs(3600);
/// The interval between two searches for remembered hosts without recent requests.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(crate) struct Hosts {
    connections: usize,
    pause: Duration,
    pause_max: Duration,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    hosts: FxHashMap<String, Arc<Host>>,
    sweep_at: Instant,
}

#[derive(Debug)]
pub(crate) struct Host {
    connections: Semaphore,
    pace: Mutex<Pace>,
    pub(crate) robots: tokio::sync::Mutex<RobotsCache>,
    pause: Duration,
    pause_max: Duration,
}

#[derive(Debug)]
struct Pace {
    /// The time of the last request to the host, and the delay of the crawl that made this request.
    last: Option<(Instant, Duration)>,
    /// No request to the host is made before this time, because of earlier errors of the host.
    paused_until: Instant,
    used_at: Instant,
    /// Number of errors of the host in a row.
    host_errors: u32,
}

impl Hosts {
    pub(crate) fn new(settings: &CrawlerSettings) -> Self {
        Self {
            connections: settings.connections_per_host.max(1),
            pause: settings.error_pause,
            pause_max: settings.error_pause_max,
            table: Mutex::new(Table { hosts: FxHashMap::default(), sweep_at: now() + SWEEP_EVERY }),
        }
    }

    /// Returns the shared state of the host with this name and port.
    pub(crate) fn get(&self, name: &str) -> Arc<Host> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        if now >= table.sweep_at {
            table.sweep(now, IDLE_MAX);
        }
        if let Some(host) = table.hosts.get(name) {
            host.pace().used_at = now;
            return Arc::clone(host);
        }
        if table.hosts.len() >= HOSTS_MAX {
            table.sweep(now, IDLE_MAX);
        }
        if table.hosts.len() >= HOSTS_MAX {
            table.sweep(now, Duration::ZERO);
        }
        let host = Arc::new(Host {
            connections: Semaphore::new(self.connections),
            pace: Mutex::new(Pace { last: None, paused_until: now, used_at: now, host_errors: 0 }),
            robots: tokio::sync::Mutex::default(),
            pause: self.pause,
            pause_max: self.pause_max,
        });
        table.hosts.insert(name.to_owned(), Arc::clone(&host));
        host
    }
}

impl Table {
    /// Drops remembered hosts that had no request for the time `idle`. Hosts in use or in a pause
    /// after errors are kept, so that their limits stay in force.
    fn sweep(&mut self, now: Instant, idle: Duration) {
        self.sweep_at = now + SWEEP_EVERY;
        self.hosts.retain(|_, host| {
            let pace = host.pace();
            Arc::strong_count(host) > 1
                || pace.paused_until > now
                || now.duration_since(pace.used_at) < idle
        });
    }
}

impl Host {
    /// Waits for a free connection to the host, and until `delay` has passed since the last request
    /// to the host before this call. A request of a crawl with a shorter delay postpones a waiting
    /// crawl only by that shorter delay, because fast crawls could otherwise block a slow crawl
    /// forever. Returns a permit, which the caller holds until the response is read.
    pub(crate) async fn enter(&self, delay: Duration) -> SemaphorePermit<'_> {
        // The semaphore is never closed, so the loop ends once a permit is free.
        let permit = loop {
            if let Ok(permit) = self.connections.acquire().await {
                break permit;
            }
        };
        let own_turn = self.pace().last.map(|(at, _)| at + delay);
        loop {
            let wait_until = {
                let (mut pace, now) = (self.pace(), now());
                pace.used_at = now;
                let after_last = pace.last.map(|(at, its_delay)| at + delay.min(its_delay));
                let turn = pace.paused_until.max(own_turn.max(after_last).unwrap_or(now));
                if turn <= now {
                    pace.last = Some((now, delay));
                    break;
                }
                turn
            };
            // An error of the host may have extended its pause meanwhile, so the loop checks again.
            tokio::time::sleep_until(wait_until).await;
        }
        permit
    }

    /// Records an error of the host. All crawls then pause requests to the host for the time
    /// `asked` that the host requested. If the host requested no pause, the length of the pause
    /// doubles with each error in a row, up to five times.
    pub(crate) fn record_error(&self, asked: Option<Duration>) -> Duration {
        let (mut pace, now) = (self.pace(), now());
        let doubled = self.pause.saturating_mul(2_u32.pow(pace.host_errors.min(5)));
        let wait = asked.unwrap_or(doubled).min(self.pause_max);
        pace.host_errors = pace.host_errors.saturating_add(1);
        pace.paused_until = pace.paused_until.max(now + wait);
        wait
    }

    /// Records a successful response, after which the next error causes a short pause again.
    pub(crate) fn recovered(&self) {
        self.pace().host_errors = 0;
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Hosts {
        Hosts::new(&CrawlerSettings::default())
    }

    const DELAY: Duration = Duration::from_millis(250);

    #[tokio::test(start_paused = true)]
    async fn requests_to_a_host_keep_their_delay() {
        let host = hosts().get("a:80");
        let start = now();
        for turn in 0..4 {
            drop(host.enter(DELAY).await);
            assert_eq!(now() - start, DELAY * turn);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn connections_to_a_host_are_limited() {
        let host = hosts().get("a:80");
        let one = host.enter(Duration::ZERO).await;
        let _two = host.enter(Duration::ZERO).await;
        let third = tokio::time::timeout(DELAY, host.enter(Duration::ZERO)).await;
        assert!(third.is_err());
        drop(one);
        drop(host.enter(Duration::ZERO).await);
    }

    #[tokio::test(start_paused = true)]
    async fn error_of_a_host_delays_all_crawls_even_waiting_ones() {
        let host = hosts().get("a:80");
        let start = now();
        drop(host.enter(DELAY).await);
        let waiting = tokio::spawn({
            let host = Arc::clone(&host);
            async move { drop(host.enter(DELAY).await) }
        });
        tokio::task::yield_now().await;
        assert_eq!(host.record_error(Some(Duration::from_secs(30))), Duration::from_secs(30));
        waiting.await.unwrap();
        assert_eq!(now() - start, Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_a_limit_until_the_host_recovers() {
        let host = hosts().get("a:80");
        let secs = |wait: Duration| wait.as_secs();
        assert_eq!([1, 2, 4].map(|_| secs(host.record_error(None))), [1, 2, 4]);
        host.recovered();
        assert_eq!(secs(host.record_error(None)), 1);
        for _ in 0..100 {
            host.record_error(None);
        }
        assert_eq!(secs(host.record_error(None)), 32);
        assert_eq!(secs(host.record_error(Some(Duration::MAX))), 300);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_hosts_are_dropped_when_there_are_many() {
        let hosts = hosts();
        let busy = hosts.get("busy:80");
        for number in 0..HOSTS_MAX {
            hosts.get(&format!("{number}:80"));
        }
        assert!(hosts.table.lock().unwrap().hosts.len() <= HOSTS_MAX);
        assert!(Arc::ptr_eq(&busy, &hosts.get("busy:80")));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_hosts_are_dropped_with_their_rules_after_an_hour() {
        let hosts = hosts();
        hosts.get("idle:80");
        let busy = hosts.get("busy:80");
        tokio::time::advance(IDLE_MAX + SWEEP_EVERY).await;
        hosts.get("other:80");
        let table = hosts.table.lock().unwrap();
        assert!(!table.hosts.contains_key("idle:80"));
        assert!(Arc::ptr_eq(&busy, &table.hosts["busy:80"]));
    }

    #[tokio::test(start_paused = true)]
    async fn different_delays_do_not_block_each_other() {
        let host = hosts().get("a:80");
        let start = now();
        let slow = Duration::from_secs(5);
        drop(host.enter(slow).await);
        // A crawl with a short delay does not wait for a crawl with a long delay.
        drop(host.enter(DELAY).await);
        assert_eq!(now() - start, DELAY);
        let waiting = tokio::spawn({
            let host = Arc::clone(&host);
            async move {
                drop(host.enter(slow).await);
                now()
            }
        });
        let quick = tokio::spawn(async move {
            for _ in 0..100 {
                drop(host.enter(DELAY).await);
            }
        });
        quick.await.unwrap();
        let gap = waiting.await.unwrap() - start - DELAY;
        assert!(gap >= slow && gap <= slow + 2 * DELAY, "{gap:?}");
    }
}
