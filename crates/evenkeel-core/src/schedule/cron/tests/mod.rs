mod clocks;
mod even;
mod reading;
mod resolving;

use crate::schedule::{Cron, Dst, Gap, Overlap};
use crate::time::Timestamp;
use crate::zone::Zone;

const POLICIES: [Dst; 6] = [
    Dst { gap: Gap::Shift, overlap: Overlap::First },
    Dst { gap: Gap::Shift, overlap: Overlap::Last },
    Dst { gap: Gap::Shift, overlap: Overlap::Both },
    Dst { gap: Gap::Skip, overlap: Overlap::First },
    Dst { gap: Gap::Skip, overlap: Overlap::Last },
    Dst { gap: Gap::Skip, overlap: Overlap::Both },
];

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cron(expression: &str) -> Cron {
    Cron::parse(expression).unwrap_or_else(|fault| panic!("{expression}: {fault:?}"))
}

/// Returns up to `count` run times after `after`, as local times of `zone`.
fn times(expression: &str, zone: &str, dst: Dst, after: &str, count: usize) -> Vec<String> {
    let (cron, zone) = (cron(expression), Zone::get(zone).unwrap());
    let next = |time: &Timestamp| cron.next_after(*time, &zone, dst);
    let local = |time: Timestamp| zone.local_text(time).replace(".000000", "");
    std::iter::successors(next(&at(after)), next).take(count).map(local).collect()
}
