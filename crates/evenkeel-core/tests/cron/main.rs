//! Compares the cron implementation with a simple second implementation and with other libraries.
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail like tests")]
#![expect(clippy::print_stdout, reason = "its counts are for reading")]

mod brute;
mod oracle;
mod plain;
mod random;

use evenkeel_core::schedule::{Cron, Dst, Gap, Overlap};
use evenkeel_core::{Timestamp, Zone};

const POLICIES: [Dst; 6] = [
    Dst { gap: Gap::Shift, overlap: Overlap::First },
    Dst { gap: Gap::Shift, overlap: Overlap::Last },
    Dst { gap: Gap::Shift, overlap: Overlap::Both },
    Dst { gap: Gap::Skip, overlap: Overlap::First },
    Dst { gap: Gap::Skip, overlap: Overlap::Last },
    Dst { gap: Gap::Skip, overlap: Overlap::Both },
];

fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros(secs * 1_000_000)
}

fn secs(time: Timestamp) -> i64 {
    time.as_micros() / 1_000_000
}

fn read(expression: &str) -> Cron {
    Cron::parse(expression).unwrap_or_else(|fault| panic!("{expression}: {fault:?}"))
}

/// Returns the run times in `from..until`, searched forwards.
fn forwards(cron: &Cron, zone: &Zone, dst: Dst, from: i64, until: i64) -> Vec<i64> {
    let next = |time: Timestamp| cron.next_after(time, zone, dst).filter(|t| *t < at(until));
    let first = next(Timestamp::from_micros(from * 1_000_000 - 1));
    std::iter::successors(first, |time| next(*time)).map(secs).collect()
}

/// Returns the run times in `from..until`, searched backwards.
fn backwards(cron: &Cron, zone: &Zone, dst: Dst, from: i64, until: i64) -> Vec<i64> {
    let last = |time: Timestamp| cron.last_before(time, zone, dst).filter(|t| *t >= at(from));
    let mut times: Vec<_> =
        std::iter::successors(last(at(until)), |time| last(*time)).map(secs).collect();
    times.reverse();
    times
}
