//! Measures how long it takes to compute the next run time of a cron expression, in bad cases and
//! in a random mix. Run it with `cargo run --release -p evenkeel-core --example cron_speed`.
//!
//! The first three columns of the output measure each call once. On a busy machine, the duration of
//! the longest call includes a pause in which another program ran. The first row measures an empty
//! call and shows how long pauses by other programs are. To exclude pauses by other programs, each
//! call is made three times with the same input. The last column shows the input that took
//! longest, measured by the fastest of its three calls.
#![expect(clippy::print_stdout, reason = "it is for reading")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]
#![expect(clippy::expect_used, reason = "its expressions and zones are right")]

use std::hint::black_box;
use std::time::Instant;

use evenkeel_core::schedule::{Cron, Dst, Gap, Overlap};
use evenkeel_core::{Timestamp, Zone};

/// Measured calls per case.
const CALLS: usize = 50_000;
/// Number of random cron expressions, each in a random time zone.
const MIX: usize = 2_000;

const BOTH: Dst = Dst { gap: Gap::Shift, overlap: Overlap::Both };

/// A measured case: its name, cron expression, time zone, and the years of the run times.
type Case = (&'static str, &'static str, &'static str, (i64, i64));

const CASES: [Case; 22] = [
    ("every minute", "* * * * *", "UTC", (2026, 2027)),
    ("every second", "* * * * * *", "America/Toronto", (2026, 2027)),
    ("daily", "0 9 * * *", "UTC", (2026, 2027)),
    ("daily, clocks change", "30 2 * * *", "Europe/Berlin", (2026, 2027)),
    ("working days", "0 9 * * 1-5", "America/Toronto", (2026, 2027)),
    ("29 February", "0 0 29 2 *", "UTC", (1970, 2110)),
    ("29 February, a Sunday", "0 0 29 2 */7", "UTC", (1970, 2110)),
    ("29 February, a Sunday, zone", "0 0 29 2 */7", "Africa/Casablanca", (1970, 2110)),
    ("fifth Monday of February", "0 0 * 2 MON#5", "America/Toronto", (1970, 2110)),
    ("fifth Monday", "0 0 * * MON#5", "Europe/Berlin", (1970, 2110)),
    ("yearly, Casablanca", "0 0 1 1 *", "Africa/Casablanca", (2026, 2087)),
    ("yearly, in the gap", "30 2 29 3 *", "Europe/Berlin", (1970, 2110)),
    ("yearly, in the overlap", "30 2 25 10 *", "Europe/Berlin", (1970, 2110)),
    ("yearly, Lord Howe", "45 1 5 4 *", "Australia/Lord_Howe", (1970, 2110)),
    ("31st, far future", "0 0 31 12 *", "Europe/Berlin", (2090, 2110)),
    ("daily, far future", "30 2 * * *", "America/Toronto", (2090, 2110)),
    ("nothing more to come", "0 0 29 2 */7", "Europe/Berlin", (2089, 2112)),
    (
        "working days near 8 dates",
        "0 0 1W,5W,9W,13W,17W,21W,25W,29W 2 *",
        "Asia/Gaza",
        (1970, 2110),
    ),
    ("last Friday, if odd", "0 0 */2 * FRIL", "Asia/Tehran", (1970, 2110)),
    ("first Sunday, if the 7th", "0 0 */6 2 SUN#1", "Pacific/Apia", (1970, 2110)),
    ("last second of the year", "59 59 23 31 12 *", "Asia/Kathmandu", (1970, 2110)),
    ("1 to 6 minutes past, by list", "1,2,3,4,5,6 0-23 * * *", "Antarctica/Troll", (2000, 2030)),
];

/// Pseudo-random numbers that are the same whenever the program runs.
struct Sequence(u64);

impl Sequence {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }

    fn moment(&mut self, (first, last): (i64, i64)) -> Timestamp {
        let year = 31_556_952_000_000;
        let (from, until) = ((first - 1970) * year, (last - 1970) * year);
        let micros = from + self.below((until - from) as usize) as i64;
        Timestamp::from_micros(micros.min(Timestamp::MAX.as_micros()))
    }

    fn expression(&mut self) -> String {
        let minute = self.pick(&["0", "30", "*/5", "7,22", "*", "13", "0-10", "59", "3/20"]);
        let hour = self.pick(&["2", "*", "*/3", "9-17", "0", "23", "1,2,3", "4", "12"]);
        let date = self.pick(&["*", "*", "*", "1", "L", "15W", "LW", "*/2", "31", "L-2", "29"]);
        let month = self.pick(&["*", "*", "*", "2", "1-6", "*/3", "DEC", "3,10"]);
        let weekday = self.pick(&["*", "*", "1-5", "SUN", "5L", "MON#1", "3#5", "*/2"]);
        format!("{minute} {hour} {date} {month} {weekday}")
    }
}

/// In nanoseconds per call.
#[derive(Default)]
struct Measured {
    first: Vec<u64>,
    quickest: Vec<u64>,
}

impl Measured {
    fn time<T>(&mut self, call: impl Fn() -> T) {
        let nanos = [(); 3].map(|()| {
            let start = Instant::now();
            black_box(call());
            start.elapsed().as_nanos() as u64
        });
        self.first.push(nanos[0]);
        self.quickest.extend(nanos.iter().min());
    }

    fn line(mut self, name: &str) {
        self.first.sort_unstable();
        let calls = self.first.len().max(1);
        let average = self.first.iter().sum::<u64>() / calls as u64;
        let p99 = self.first.get(calls * 99 / 100).copied().unwrap_or(0);
        let max = self.first.last().copied().unwrap_or(0);
        let quickest = self.quickest.iter().max().copied().unwrap_or(0);
        println!("{name:<34} {average:>8} {p99:>8} {max:>9} {quickest:>9}");
    }
}

fn read(expression: &str, zone: &str) -> (Cron, Zone) {
    (Cron::parse(expression).expect(expression), Zone::get(zone).expect(zone))
}

fn main() {
    let mut sequence = Sequence(2026);
    println!(
        "{:<34} {:>8} {:>8} {:>9} {:>9}",
        "nanoseconds per call", "average", "p99", "max", "of three"
    );
    let mut nothing = Measured::default();
    (0..CALLS).for_each(|_| nothing.time(|| ()));
    nothing.line("(asking the clock)");
    for (name, expression, zone, years) in CASES {
        let (cron, zone) = read(expression, zone);
        let mut measured = Measured::default();
        for _ in 0..CALLS {
            let after = sequence.moment(years);
            measured.time(|| cron.next_after(black_box(after), &zone, BOTH));
        }
        measured.line(name);
    }
    mix(&mut sequence);
    years();
}

/// Measures random cron expressions in random time zones at random times.
fn mix(sequence: &mut Sequence) {
    let zones: Vec<_> =
        jiff::tz::db().available().filter_map(|name| Zone::get(name.as_str()).ok()).collect();
    let crons: Vec<_> = std::iter::repeat_with(|| Cron::parse(&sequence.expression()).ok())
        .flatten()
        .take(MIX)
        .collect();
    let mut sequence = Sequence(7);
    let (mut next, mut last, mut count) =
        (Measured::default(), Measured::default(), Measured::default());
    for _ in 0..20 * CALLS {
        let cron = &crons[sequence.below(crons.len())];
        let zone = &zones[sequence.below(zones.len())];
        let time = sequence.moment((1970, 2110));
        next.time(|| cron.next_after(black_box(time), zone, Dst::default()));
        last.time(|| cron.last_before(black_box(time), zone, Dst::default()));
    }
    for _ in 0..CALLS {
        let cron = &crons[sequence.below(crons.len())];
        let zone = &zones[sequence.below(zones.len())];
        let from = sequence.moment((1970, 2100));
        let until = Timestamp::from_micros(from.as_micros() + 31_536_000_000_000);
        count.time(|| cron.count(black_box(from), until, zone, Dst::default()));
    }
    next.line("random mix: next");
    last.line("random mix: last");
    count.line("random mix: count over a year");
}

fn years() {
    let (cron, zone) = read("30 2 * * *", "America/Toronto");
    let from = Timestamp::from_micros(1_700_000_000_000_000);
    for (name, days) in [("a day", 1), ("30 days", 30), ("10 years", 3653), ("80 years", 29_220)] {
        let until = Timestamp::from_micros(from.as_micros() + days * 86_400_000_000);
        let mut measured = Measured::default();
        (0..CALLS / 10).for_each(|_| {
            measured.time(|| cron.count(black_box(from), until, &zone, Dst::default()));
        });
        measured.line(&format!("count over {name}"));
    }
    let mut measured = Measured::default();
    (0..CALLS).for_each(|_| measured.time(|| Cron::parse(black_box("0 0 1,15 JUN-AUG MON#2"))));
    measured.line("reading an expression");
}
