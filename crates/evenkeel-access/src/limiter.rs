//! Blocks IP addresses that send many invalid credentials.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use evenkeel_core::{Span, Timestamp};

/// Maximum number of failed authentications per minute; the next failure blocks the IP address.
pub const FAILURES_MAX: u32 = 10;

const WINDOW: Span = Span::from_secs(60);
/// Duration of an IP address's first block; each following block is twice as long, up to 1 h.
const FIRST_WAIT: Span = Span::from_secs(60);
const LONGEST_WAIT: Span = Span::from_secs(3600);
/// After this time without a failure, the failures and blocks of an IP address are forgotten.
const FORGIVEN_AFTER: Span = Span::from_secs(2 * 3600);
/// Maximum number of IP addresses whose failures are counted. An attacker with more IP addresses
/// than this can try more credentials.
const ADDRESSES_MAX: usize = 10_000;

/// The consequence of a request with an invalid credential.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The failure is counted.
    Counted,
    /// The failed authentication blocks the IP address for the given duration.
    BlockedNow(Span),
    /// The IP address is already blocked, and the block lasts for the given duration from now.
    Blocked(Span),
}

#[derive(Copy, Clone)]
struct Record {
    since: Timestamp,
    failures: u32,
    last: Timestamp,
    blocked_until: Timestamp,
    times_blocked: u32,
}

/// Counts authentication failures by IP address. Requests with valid credentials are never blocked,
/// because clients that share an IP address must not lock out each other.
#[derive(Default)]
pub struct Limiter(Mutex<HashMap<IpAddr, Record>>);

impl Limiter {
    pub fn failed(&self, from: IpAddr, now: Timestamp) -> Verdict {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = normalized(from);
        if !table.contains_key(&address) && table.len() >= ADDRESSES_MAX {
            evict(&mut table, now);
        }
        let fresh = Record {
            since: now,
            failures: 0,
            last: now,
            blocked_until: Timestamp::MIN,
            times_blocked: 0,
        };
        let record = table.entry(address).or_insert(fresh);
        if now.since(record.last) > FORGIVEN_AFTER {
            *record = fresh;
        }
        if now < record.blocked_until {
            return Verdict::Blocked(record.blocked_until.since(now));
        }
        record.last = now;
        if now.since(record.since) > WINDOW {
            (record.since, record.failures) = (now, 0);
        }
        record.failures += 1;
        if record.failures <= FAILURES_MAX {
            return Verdict::Counted;
        }
        let wait = FIRST_WAIT.saturating_mul(1 << record.times_blocked.min(6)).min(LONGEST_WAIT);
        record.times_blocked += 1;
        record.blocked_until = now.saturating_add(wait);
        (record.since, record.failures) = (record.blocked_until, 0);
        Verdict::BlockedNow(wait)
    }
}

/// Returns an IPv4 address itself, and the /64 network of an IPv6 address, because one host can use
/// all addresses of a /64 network.
fn normalized(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

/// Removes the IP addresses without a recent authentication failure. If the table is still full,
/// removes the IP address whose last failure is the oldest.
fn evict(table: &mut HashMap<IpAddr, Record>, now: Timestamp) {
    table.retain(|_, record| now < record.blocked_until || now.since(record.last) <= WINDOW);
    if table.len() >= ADDRESSES_MAX {
        let oldest =
            table.iter().min_by_key(|(_, record)| record.last).map(|(address, _)| *address);
        oldest.map(|address| table.remove(&address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(1_800_000_000_000_000 + secs * 1_000_000)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Reports more authentication failures than allowed, so that the IP address is blocked.
    fn provoke(limiter: &Limiter, from: IpAddr, now: Timestamp) -> Verdict {
        for _ in 0..FAILURES_MAX {
            assert_eq!(limiter.failed(from, now), Verdict::Counted);
        }
        limiter.failed(from, now)
    }

    #[test]
    fn ten_failures_in_a_minute_block_the_address_longer_each_time() {
        let limiter = Limiter::default();
        let from = address("192.0.2.1");
        let mut now = 0;
        for wait in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            let wait = Span::from_secs(wait);
            assert_eq!(provoke(&limiter, from, at(now)), Verdict::BlockedNow(wait));
            let left = Span::from_micros(wait.as_micros() - 1_000_000);
            assert_eq!(limiter.failed(from, at(now + 1)), Verdict::Blocked(left));
            now += i64::try_from(wait.as_micros() / 1_000_000).unwrap();
        }
    }

    #[test]
    fn slow_failures_and_other_addresses_are_only_counted() {
        let limiter = Limiter::default();
        for n in 0..100 {
            assert_eq!(limiter.failed(address("192.0.2.1"), at(n * 7)), Verdict::Counted);
        }
        for n in 0..100 {
            let other = address(&format!("192.0.2.{}", n + 2));
            assert_eq!(limiter.failed(other, at(700)), Verdict::Counted);
        }
    }

    #[test]
    fn address_without_failures_for_two_hours_starts_afresh() {
        let limiter = Limiter::default();
        let from = address("192.0.2.1");
        provoke(&limiter, from, at(0));
        provoke(&limiter, from, at(60));
        let minute = Span::from_secs(60);
        assert_eq!(provoke(&limiter, from, at(180 + 7200)), Verdict::BlockedNow(minute));
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_together() {
        let limiter = Limiter::default();
        for n in 0..FAILURES_MAX {
            limiter.failed(address(&format!("2001:db8::{n}")), at(0));
        }
        assert!(matches!(limiter.failed(address("2001:db8::ff"), at(0)), Verdict::BlockedNow(_)));
        assert_eq!(limiter.failed(address("2001:db8:0:1::1"), at(0)), Verdict::Counted);
        for _ in 0..FAILURES_MAX {
            limiter.failed(address("::ffff:192.0.2.1"), at(0));
        }
        assert!(matches!(limiter.failed(address("192.0.2.1"), at(0)), Verdict::BlockedNow(_)));
    }

    #[test]
    fn table_of_addresses_is_bounded() {
        let limiter = Limiter::default();
        let blocked = address("192.0.2.1");
        provoke(&limiter, blocked, at(0));
        for n in 0..u32::try_from(ADDRESSES_MAX).unwrap() + 100 {
            limiter.failed(IpAddr::V4((0x0a00_0000 + n).into()), at(1));
        }
        assert!(limiter.0.lock().unwrap().len() <= ADDRESSES_MAX);
    }
}
