//! Manners: what all crawls of this node together may ask of a host.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::clock::now;
use crate::host_robots::RobotsCache;
use crate::settings::CrawlerSettings;

/// Hosts that are remembered; of more, those that nobody uses are dropped.
const HOSTS_MAX: usize = 10_000;
/// A host that nobody asks anything for this long is forgotten.
const IDLE_MAX: Duration = Duration::from_secs(3600);

/// All hosts that crawls of this node talk to.
#[derive(Debug)]
pub(crate) struct Hosts {
    connections: usize,
    pause: Duration,
    pause_max: Duration,
    table: Mutex<FxHashMap<String, Arc<Host>>>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Host {
    connections: Arc<Semaphore>,
    pace: Mutex<Pace>,
    pub(crate) robots: tokio::sync::Mutex<Option<RobotsCache>>,
    pause: Duration,
    pause_max: Duration,
}

#[derive(Debug)]
struct Pace {
    /// No request before this.
    next_at: Instant,
    used_at: Instant,
    /// Answers in a row that spoke of trouble.
    troubles: u32,
}

/// The right to one request. Held until its answer is read.
#[derive(Debug)]
pub(crate) struct Permit {
    _connection: OwnedSemaphorePermit,
}

impl Hosts {
    pub(crate) fn new(settings: &CrawlerSettings) -> Self {
        Self {
            connections: settings.connections_per_host.max(1),
            pause: settings.trouble_pause,
            pause_max: settings.trouble_pause_max,
            table: Mutex::default(),
        }
    }

    /// The host of this name and port.
    pub(crate) fn get(&self, name: &str) -> Arc<Host> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        if let Some(host) = table.get(name) {
            host.pace().used_at = now;
            return Arc::clone(host);
        }
        if table.len() >= HOSTS_MAX {
            // Whoever holds one goes on with it, so only idle ones can be told to wait anew.
            let is_busy = |host: &Arc<Host>| Arc::strong_count(host) > 1;
            let still = |host: &Arc<Host>, idle: Duration| {
                let pace = host.pace();
                pace.next_at > now || now.duration_since(pace.used_at) < idle
            };
            table.retain(|_, host| is_busy(host) || still(host, IDLE_MAX));
            if table.len() >= HOSTS_MAX {
                table.retain(|_, host| is_busy(host) || still(host, Duration::ZERO));
            }
        }
        let host = Arc::new(Host {
            connections: Arc::new(Semaphore::new(self.connections)),
            pace: Mutex::new(Pace { next_at: now, used_at: now, troubles: 0 }),
            robots: tokio::sync::Mutex::new(None),
            pause: self.pause,
            pause_max: self.pause_max,
        });
        table.insert(name.to_owned(), Arc::clone(&host));
        host
    }
}

impl Host {
    /// Waits for a connection and for its time, with `delay` until the next request of anybody.
    pub(crate) async fn enter(&self, delay: Duration) -> Permit {
        // The semaphore is never closed.
        let connection = loop {
            if let Ok(permit) = Arc::clone(&self.connections).acquire_owned().await {
                break permit;
            }
        };
        loop {
            let wait_until = {
                let (mut pace, now) = (self.pace(), now());
                pace.used_at = now;
                if pace.next_at <= now {
                    pace.next_at = now + delay;
                    break;
                }
                pace.next_at
            };
            // Somebody may have been told to leave the host alone in the meantime: look again.
            tokio::time::sleep_until(wait_until).await;
        }
        Permit { _connection: connection }
    }

    /// It is in trouble: all crawls leave it alone for as long as it says, or else for a while that
    /// doubles five times.
    pub(crate) fn trouble(&self, asked: Option<Duration>) -> Duration {
        let (mut pace, now) = (self.pace(), now());
        let doubled = self.pause.saturating_mul(2_u32.pow(pace.troubles.min(5)));
        let wait = asked.unwrap_or(doubled).min(self.pause_max);
        pace.troubles = pace.troubles.saturating_add(1);
        pace.next_at = pace.next_at.max(now + wait);
        wait
    }

    /// It answers as it should.
    pub(crate) fn well(&self) {
        self.pace().troubles = 0;
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
    async fn requests_to_a_host_are_a_delay_apart() {
        let host = hosts().get("a:80");
        let start = now();
        for turn in 0..4 {
            drop(host.enter(DELAY).await);
            assert_eq!(now() - start, DELAY * turn);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_connections_than_allowed() {
        let host = hosts().get("a:80");
        let one = host.enter(Duration::ZERO).await;
        let _two = host.enter(Duration::ZERO).await;
        let third = tokio::time::timeout(DELAY, host.enter(Duration::ZERO)).await;
        assert!(third.is_err());
        drop(one);
        host.enter(Duration::ZERO).await;
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_slows_everybody_down_even_those_who_wait_already() {
        let host = hosts().get("a:80");
        let start = now();
        drop(host.enter(DELAY).await);
        let waiting = tokio::spawn({
            let host = Arc::clone(&host);
            async move { drop(host.enter(DELAY).await) }
        });
        tokio::task::yield_now().await;
        assert_eq!(host.trouble(Some(Duration::from_secs(30))), Duration::from_secs(30));
        waiting.await.unwrap();
        assert_eq!(now() - start, Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_a_limit_until_it_is_well() {
        let host = hosts().get("a:80");
        let secs = |wait: Duration| wait.as_secs();
        assert_eq!([1, 2, 4].map(|_| secs(host.trouble(None))), [1, 2, 4]);
        host.well();
        assert_eq!(secs(host.trouble(None)), 1);
        for _ in 0..100 {
            host.trouble(None);
        }
        assert_eq!(secs(host.trouble(None)), 32);
        assert_eq!(secs(host.trouble(Some(Duration::MAX))), 300);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_hosts_are_forgotten_when_there_are_many() {
        let hosts = hosts();
        let busy = hosts.get("busy:80");
        for number in 0..HOSTS_MAX {
            hosts.get(&format!("{number}:80"));
        }
        assert!(hosts.table.lock().unwrap().len() <= HOSTS_MAX);
        assert!(Arc::ptr_eq(&busy, &hosts.get("busy:80")));
    }
}
