//! Slows down those who try many credentials.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use evenkeel_core::{Span, Timestamp};

/// Failed tries in a minute, from one address, that are only refused.
pub const FAILURES_MAX: u32 = 10;

const WINDOW: Span = Span::from_secs(60);
/// The first time to wait; each following one is twice as long.
const FIRST_WAIT: Span = Span::from_secs(60);
const LONGEST_WAIT: Span = Span::from_secs(3600);
/// An address that fails no more for so long is as good as new.
const FORGIVEN_AFTER: Span = Span::from_secs(2 * 3600);
/// Addresses that are remembered. Whoever has more of them gets that many more tries.
const ADDRESSES_MAX: usize = 10_000;

/// What becomes of a failed try.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is refused, and counted.
    Counted,
    /// It was one too many: from now on, for so long, others are not even told why.
    ShutNow(Span),
    /// It came while that goes on, for so long still.
    Shut(Span),
}

#[derive(Copy, Clone)]
struct Record {
    since: Timestamp,
    failures: u32,
    last: Timestamp,
    shut_until: Timestamp,
    times_shut: u32,
}

/// Counts failed tries by address. Good ones are not its business: an address may be that of many,
/// and the mistakes of one must not keep out the others.
#[derive(Default)]
pub struct Limiter(Mutex<HashMap<IpAddr, Record>>);

impl Limiter {
    /// A try from this address has failed.
    pub fn failed(&self, from: IpAddr, now: Timestamp) -> Verdict {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = normal(from);
        if !table.contains_key(&address) && table.len() >= ADDRESSES_MAX {
            make_room(&mut table, now);
        }
        let fresh = Record {
            since: now,
            failures: 0,
            last: now,
            shut_until: Timestamp::MIN,
            times_shut: 0,
        };
        let record = table.entry(address).or_insert(fresh);
        if now.since(record.last) > FORGIVEN_AFTER {
            *record = fresh;
        }
        if now < record.shut_until {
            return Verdict::Shut(record.shut_until.since(now));
        }
        record.last = now;
        if now.since(record.since) > WINDOW {
            (record.since, record.failures) = (now, 0);
        }
        record.failures += 1;
        if record.failures <= FAILURES_MAX {
            return Verdict::Counted;
        }
        let wait = FIRST_WAIT.saturating_mul(1 << record.times_shut.min(6)).min(LONGEST_WAIT);
        record.times_shut += 1;
        record.shut_until = now.saturating_add(wait);
        (record.since, record.failures) = (record.shut_until, 0);
        Verdict::ShutNow(wait)
    }
}

/// Whoever has one address of a /64 has all of them.
fn normal(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

/// Forgets those that are as good as new, or else the one that failed the longest time ago.
fn make_room(table: &mut HashMap<IpAddr, Record>, now: Timestamp) {
    table.retain(|_, record| now < record.shut_until || now.since(record.last) <= WINDOW);
    if table.len() >= ADDRESSES_MAX {
        let oldest = table.iter().min_by_key(|(_, record)| record.last).map(|(who, _)| *who);
        oldest.map(|who| table.remove(&who));
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

    /// Fails once more than is allowed.
    fn provoke(limiter: &Limiter, from: IpAddr, now: Timestamp) -> Verdict {
        for _ in 0..FAILURES_MAX {
            assert_eq!(limiter.failed(from, now), Verdict::Counted);
        }
        limiter.failed(from, now)
    }

    #[test]
    fn after_ten_failures_in_a_minute_it_is_shut_and_each_time_for_longer() {
        let limiter = Limiter::default();
        let from = address("192.0.2.1");
        let mut now = 0;
        for wait in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            let wait = Span::from_secs(wait);
            assert_eq!(provoke(&limiter, from, at(now)), Verdict::ShutNow(wait));
            let left = Span::from_micros(wait.as_micros() - 1_000_000);
            assert_eq!(limiter.failed(from, at(now + 1)), Verdict::Shut(left));
            now += i64::try_from(wait.as_micros() / 1_000_000).unwrap();
        }
    }

    #[test]
    fn slow_failures_and_those_of_others_are_only_counted() {
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
    fn who_was_quiet_for_long_starts_anew() {
        let limiter = Limiter::default();
        let from = address("192.0.2.1");
        provoke(&limiter, from, at(0));
        provoke(&limiter, from, at(60));
        let minute = Span::from_secs(60);
        assert_eq!(provoke(&limiter, from, at(180 + 7200)), Verdict::ShutNow(minute));
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let limiter = Limiter::default();
        for n in 0..FAILURES_MAX {
            limiter.failed(address(&format!("2001:db8::{n}")), at(0));
        }
        assert!(matches!(limiter.failed(address("2001:db8::ff"), at(0)), Verdict::ShutNow(_)));
        assert_eq!(limiter.failed(address("2001:db8:0:1::1"), at(0)), Verdict::Counted);
        for _ in 0..FAILURES_MAX {
            limiter.failed(address("::ffff:192.0.2.1"), at(0));
        }
        assert!(matches!(limiter.failed(address("192.0.2.1"), at(0)), Verdict::ShutNow(_)));
    }

    #[test]
    fn the_table_does_not_grow_with_the_number_of_addresses() {
        let limiter = Limiter::default();
        let shut = address("192.0.2.1");
        provoke(&limiter, shut, at(0));
        for n in 0..u32::try_from(ADDRESSES_MAX).unwrap() + 100 {
            limiter.failed(IpAddr::V4((0x0a00_0000 + n).into()), at(1));
        }
        assert!(limiter.0.lock().unwrap().len() <= ADDRESSES_MAX);
    }
}
