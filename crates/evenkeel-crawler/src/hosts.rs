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
/// A host that nobody asks anything for this long is forgotten: its rules are stale by then.
const IDLE_MAX: Duration = Duration::from_secs(3600);
/// Idle hosts are looked for this often.
const SWEEP_EVERY: Duration = Duration::from_secs(600);

/// All hosts that crawls of this node talk to.
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

/// One of them.
#[derive(Debug)]
pub(crate) struct Host {
    connections: Arc<Semaphore>,
    pace: Mutex<Pace>,
    pub(crate) robots: tokio::sync::Mutex<RobotsCache>,
    pause: Duration,
    pause_max: Duration,
}

#[derive(Debug)]
struct Pace {
    /// The last request, and how long whoever made it waits between two.
    last: Option<(Instant, Duration)>,
    /// No request before this.
    trouble_until: Instant,
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
            table: Mutex::new(Table { hosts: FxHashMap::default(), sweep_at: now() + SWEEP_EVERY }),
        }
    }

    /// The host of this name and port.
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
            connections: Arc::new(Semaphore::new(self.connections)),
            pace: Mutex::new(Pace { last: None, trouble_until: now, used_at: now, troubles: 0 }),
            robots: tokio::sync::Mutex::default(),
            pause: self.pause,
            pause_max: self.pause_max,
        });
        table.hosts.insert(name.to_owned(), Arc::clone(&host));
        host
    }
}

impl Table {
    /// Forgets hosts that were idle for so long. Whoever holds one goes on with it, so only those
    /// that nobody holds can be told to wait anew.
    fn sweep(&mut self, now: Instant, idle: Duration) {
        self.sweep_at = now + SWEEP_EVERY;
        self.hosts.retain(|_, host| {
            let pace = host.pace();
            Arc::strong_count(host) > 1
                || pace.trouble_until > now
                || now.duration_since(pace.used_at) < idle
        });
    }
}

impl Host {
    /// Waits for a connection, and for its time: `delay` after the last request that anybody had
    /// made until now. Requests of those who wait less in general may come in between, or they
    /// would never let the others through.
    pub(crate) async fn enter(&self, delay: Duration) -> Permit {
        // The semaphore is never closed.
        let connection = loop {
            if let Ok(permit) = Arc::clone(&self.connections).acquire_owned().await {
                break permit;
            }
        };
        let own_turn = self.pace().last.map(|(at, _)| at + delay);
        loop {
            let wait_until = {
                let (mut pace, now) = (self.pace(), now());
                pace.used_at = now;
                let after_last = pace.last.map(|(at, its_delay)| at + delay.min(its_delay));
                let turn = pace.trouble_until.max(own_turn.max(after_last).unwrap_or(now));
                if turn <= now {
                    pace.last = Some((now, delay));
                    break;
                }
                turn
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
        pace.trouble_until = pace.trouble_until.max(now + wait);
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
        assert!(hosts.table.lock().unwrap().hosts.len() <= HOSTS_MAX);
        assert!(Arc::ptr_eq(&busy, &hosts.get("busy:80")));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_hosts_are_forgotten_with_their_rules_after_a_while() {
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
    async fn a_delay_is_ones_own_and_keeps_nobody_out_for_good() {
        let host = hosts().get("a:80");
        let start = now();
        let slow = Duration::from_secs(5);
        drop(host.enter(slow).await);
        // Who waits less is not held up by who waits longer.
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
