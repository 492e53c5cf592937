//! Compares the cron implementation with recorded results of the libraries `cronsim` and
//! `croniter`, which `cargo xtask cron-oracle` wrote. The comparison needs neither Python nor a
//! network. `docs/cron-oracle.md` lists the differences between the cron implementations.

use evenkeel_core::Zone;
use evenkeel_core::schedule::{Cron, Dst, Gap, Overlap};

use crate::{at, forwards, read};

const RECORD: &str = include_str!("oracle.txt");

#[derive(Default)]
struct Record {
    /// Number of cron expressions that are tested per clock change; the next clock change uses the
    /// next cron expressions of the list.
    each: usize,
    expressions: Vec<Expression>,
    offsets: Vec<(i64, i64)>,
}

struct Expression {
    text: String,
    cron: Cron,
    /// Seconds before and after a clock change in which run times are compared.
    around: i64,
}

#[derive(Default)]
struct Counts {
    zones: usize,
    changes: usize,
    /// Number of compared cases for each of the two libraries. Cases in which a library is known to
    /// differ are not compared.
    cases: [u64; 2],
    left_out: u64,
    comparisons: u64,
    differences: u64,
    /// Number of recorded clock changes that the bundled time zone data no longer contain.
    other_data: usize,
}

/// A 64-bit FNV-1a hash over lists of run times.
struct Digest(u64);

impl Digest {
    fn add(&mut self, times: &[i64]) {
        for number in [times.len() as i64].iter().chain(times) {
            for byte in number.to_le_bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }
}

impl Expression {
    /// Returns the clock-change policy that each of the two libraries uses.
    fn policies(&self) -> [Dst; 2] {
        let cronsim = if self.text.split(' ').count() == 6 {
            Dst { gap: Gap::Skip, overlap: Overlap::Both }
        } else {
            Dst { gap: Gap::Shift, overlap: Overlap::First }
        };
        [cronsim, Dst { gap: Gap::Shift, overlap: Overlap::Both }]
    }
}

impl Record {
    fn read_head(&mut self, word: &str, rest: &str) {
        let pair = || rest.split_once(' ').unwrap();
        match word {
            "each" => self.each = rest.parse().unwrap(),
            "offsets" => self.offsets.push((pair().0.parse().unwrap(), pair().1.parse().unwrap())),
            "expression" => {
                let (around, text) = pair();
                let (around, cron) = (around.parse().unwrap(), read(text));
                self.expressions.push(Expression { text: text.to_owned(), cron, around });
            }
            _ => panic!("not a line of the record: {word} {rest}"),
        }
    }

    fn check(&self, zone: &Zone, time: i64, parts: &[&str], turn: usize, counts: &mut Counts) {
        let (before, after) = self.offsets[usize::from_str_radix(parts[0], 16).unwrap()];
        let offset_at = |secs| i64::from(zone.offset_period_at(at(secs)).offset);
        counts.changes += 1;
        if (offset_at(time - 1), offset_at(time)) != (before, after) {
            counts.other_data += 1;
            return;
        }
        let agreed: Vec<_> = parts[1].chars().map(|digit| digit.to_digit(10).unwrap()).collect();
        let mut digest = Digest(0xcbf2_9ce4_8422_2325);
        for index in 0..self.each {
            let expression = &self.expressions[(turn * self.each + index) % self.expressions.len()];
            let around = expression.around + (after - before).abs();
            for (oracle, dst) in expression.policies().into_iter().enumerate() {
                if agreed[oracle] >> index & 1 == 0 {
                    counts.left_out += 1;
                    continue;
                }
                let cron = &expression.cron;
                let times = forwards(cron, zone, dst, time - around, time + around);
                counts.cases[oracle] += 1;
                counts.comparisons += times.len() as u64;
                digest.add(&times);
            }
        }
        if format!("{:08x}", digest.0 as u32) != parts[2] {
            counts.differences += 1;
            println!("{zone}: other times than the oracles' around {}", at(time));
        }
    }
}

#[test]
fn every_clock_change_of_every_zone_matches_the_oracles() {
    let mut record = Record::default();
    let mut counts = Counts::default();
    let (mut zone, mut time, mut turn) = (None, 0, 0);
    for line in RECORD.lines().filter(|line| !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap();
        if word == "zone" {
            counts.zones += 1;
            (zone, time) = (Zone::get(rest).ok(), 0);
        } else if let Ok(later) = i64::from_str_radix(word, 16)
            && word != "each"
        {
            time += later;
            let parts: Vec<_> = rest.split(' ').collect();
            match &zone {
                Some(zone) => record.check(zone, time, &parts, turn, &mut counts),
                None => counts.other_data += 1,
            }
            turn += 1;
        } else {
            record.read_head(word, rest);
        }
    }
    let expressions = record.expressions.len();
    let Counts { zones, changes, cases, left_out, comparisons, differences, other_data } = counts;
    println!(
        "cron by the oracles' record: {zones} zones, {changes} transitions, {expressions} \
         expressions, {comparisons} comparisons ({} cases by cronsim, {} by croniter, {left_out} \
         left out), {differences} differences, {other_data} transitions with other data",
        cases[0], cases[1],
    );
    assert_eq!(differences, 0);
    assert!(other_data * 10 < changes, "the record is of other zones: record it again");
}
