//! Records the results of the other cron implementations (oracles) in a file of the source tree.
//! For each clock change, the file has one digest of all run times on which Evenkeel and the
//! oracles agree. `crates/evenkeel-core/tests/cron/oracle.rs` reads the file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use anyhow::Result;

use super::judge::{Case, Verdict};
use super::matrix::{Change, EACH, Expression};
use crate::workspace;

const FILE: &str = "crates/evenkeel-core/tests/cron/oracle.txt";

/// Collects the results of all cases for the file, in the order in which the cases are judged.
#[derive(Default)]
pub struct Recorder {
    /// Index of each pair of UTC offsets in the file: the offset before and the offset after a
    /// clock change.
    offsets: BTreeMap<(i64, i64), usize>,
    zones: String,
    zone: String,
    last: i64,
    /// Number of cases of the current clock change that were added so far.
    cases: usize,
    agreed: [u32; 2],
    digest: Digest,
}

/// 64-bit FNV-1a.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, times: &[i64]) {
        // The digest includes the length of each list of times, so that two lists differ from one
        // list with the same times.
        for number in [times.len() as i64].iter().chain(times) {
            for byte in number.to_le_bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }
}

impl Recorder {
    pub fn add(&mut self, case: &Case<'_>, verdict: &Verdict) {
        for (oracle, agreed) in [&verdict.cronsim, &verdict.croniter].into_iter().enumerate() {
            if let Ok(times) = agreed {
                self.agreed[oracle] |= 1 << self.cases;
                self.digest.add(times);
            }
        }
        self.cases += 1;
        if self.cases == EACH {
            self.end_change(case);
        }
    }

    fn end_change(&mut self, case: &Case<'_>) {
        let Change { at, before, after } = case.change;
        if self.zone != case.zone.name() {
            self.zone = case.zone.name().to_owned();
            self.last = 0;
            self.zones += &format!("zone {}\n", self.zone);
        }
        let new = self.offsets.len();
        let offsets = self.offsets.entry((before, after)).or_insert(new);
        let [cronsim, croniter] = self.agreed;
        let (later, digest) = (at - self.last, self.digest.0 as u32);
        self.zones += &format!("{later:x} {offsets:x} {cronsim}{croniter} {digest:08x}\n");
        (self.last, self.cases, self.agreed, self.digest) = (at, 0, [0; 2], Digest::default());
    }

    pub fn write(&self, expressions: &[Expression], summary: &[String]) -> Result<()> {
        let mut text = String::from(
            "# What cronsim and croniter say: see docs/cron-oracle.md.\n\
             # Written by cargo xtask cron-oracle --record.\n",
        );
        for line in summary {
            writeln!(text, "# {line}")?;
        }
        writeln!(text, "each {EACH}")?;
        for Expression { text: expression, around, .. } in expressions {
            writeln!(text, "expression {around} {expression}")?;
        }
        let mut offsets: Vec<_> = self.offsets.iter().collect();
        offsets.sort_by_key(|(_, number)| **number);
        for ((before, after), _) in offsets {
            writeln!(text, "offsets {before} {after}")?;
        }
        text += &self.zones;
        fs::write(workspace::root().join(FILE), text)?;
        println!("written: {FILE}");
        Ok(())
    }
}
