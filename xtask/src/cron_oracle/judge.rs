//! Compares Evenkeel's run times with those of two other cron implementations, the oracles.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use evenkeel_core::schedule::{Dst, Gap, Overlap};
use evenkeel_core::{Timestamp, Zone};

use super::explain::Differing;
use super::matrix::{Change, Expression};

/// A test case: one cron expression at one clock change of a time zone.
pub struct Case<'a> {
    pub zone: &'a Zone,
    pub change: Change,
    pub expression: &'a Expression,
}

/// The run times that both oracles return for one case.
pub struct Answer {
    offsets: (i64, i64),
    cronsim: Times,
    croniter: Times,
}

/// Run times in Unix seconds, or the oracle's error.
type Times = Result<Vec<i64>, String>;

impl Answer {
    pub fn read(line: &str) -> Result<Self> {
        let mut parts = line.split('\t');
        let mut next = || parts.next().context("a column is missing");
        let (before, after) = next()?.split_once(' ').context("an offset is missing")?;
        let offsets = (before.parse()?, after.parse()?);
        Ok(Self { offsets, cronsim: read_times(next()?)?, croniter: read_times(next()?)? })
    }
}

fn read_times(text: &str) -> Result<Times> {
    if let Some(reason) = text.strip_prefix('!') {
        return Ok(Err(reason.to_owned()));
    }
    let mut time = 0;
    let mut times = Vec::new();
    for step in text.split_whitespace() {
        time += step.parse::<i64>()?;
        times.push(time);
    }
    Ok(Ok(times))
}

/// The result of a case: for each oracle, the run times on which Evenkeel and the oracle agree, or
/// the reason for the difference.
pub struct Verdict {
    pub cronsim: Result<Vec<i64>, &'static str>,
    pub croniter: Result<Vec<i64>, &'static str>,
}

const UNEXPLAINED: &str = "unexplained";
/// The error types with which the oracles reject an expression.
const UNREADABLE: [&str; 3] = ["CronSimError", "CroniterNotAlphaError", "CroniterBadCronError"];
/// Number of differences printed in full.
const SHOWN: usize = 40;

#[derive(Default)]
pub struct Tally {
    pub transitions: usize,
    cases: u64,
    comparisons: u64,
    agreed: BTreeMap<&'static str, u64>,
    differences: BTreeMap<(&'static str, &'static str), u64>,
    shown: usize,
}

impl Case<'_> {
    fn ours(&self, dst: Dst) -> Vec<i64> {
        let (from, until) = self.expression.range(self.change);
        let until = Timestamp::from_micros(until * 1_000_000);
        let next = |time: Timestamp| {
            self.expression.cron.next_after(time, self.zone, dst).filter(|next| *next < until)
        };
        let first = next(Timestamp::from_micros(from * 1_000_000 - 1));
        let times = std::iter::successors(first, |time| next(*time));
        times.map(|time| time.as_micros() / 1_000_000).collect()
    }
}

/// cronsim's DST policy. For an expression with 6 fields, cronsim compares only local time with the
/// expression, so it skips times in a gap and repeats times in an overlap.
fn cronsim_policy(expression: &Expression) -> Dst {
    if expression.has_seconds() {
        Dst { gap: Gap::Skip, overlap: Overlap::Both }
    } else {
        Dst { gap: Gap::Shift, overlap: Overlap::First }
    }
}

/// croniter's DST policy.
const CRONITER_POLICY: Dst = Dst { gap: Gap::Shift, overlap: Overlap::Both };

impl Tally {
    pub fn judge(&mut self, case: &Case<'_>, answer: &Answer) -> Verdict {
        self.cases += 1;
        let ours = case.ours(cronsim_policy(case.expression));
        let cronsim = self.compare(case, answer, &ours, "cronsim");
        let ours = case.ours(CRONITER_POLICY);
        let croniter = self.compare(case, answer, &ours, "croniter");
        Verdict { cronsim, croniter }
    }

    fn compare(
        &mut self,
        case: &Case<'_>,
        answer: &Answer,
        ours: &[i64],
        oracle: &'static str,
    ) -> Result<Vec<i64>, &'static str> {
        let is_cronsim = oracle == "cronsim";
        let theirs = if is_cronsim { &answer.cronsim } else { &answer.croniter };
        let explained = match theirs {
            _ if answer.offsets != (case.change.before, case.change.after) => {
                Some("other data of the zone")
            }
            Err(reason) if reason.starts_with("DoesNotEnd") => {
                Some("has no answer after 3 s of computing")
            }
            Err(reason) if UNREADABLE.iter().any(|error| reason.starts_with(error)) => {
                Some("does not know what is in the expression")
            }
            Err(reason) => {
                println!("{oracle}: {} in {}: {reason}", case.expression.text, case.zone);
                None
            }
            Ok(theirs) => {
                self.comparisons += theirs.len().max(ours.len()) as u64;
                if theirs == ours {
                    *self.agreed.entry(oracle).or_default() += 1;
                    return Ok(theirs.clone());
                }
                let differing = Differing::new(case, ours, theirs);
                let name = if is_cronsim { differing.cronsim() } else { differing.croniter() };
                if name.is_none() {
                    self.show(oracle, &differing);
                }
                name
            }
        };
        let name = explained.unwrap_or(UNEXPLAINED);
        *self.differences.entry((oracle, name)).or_default() += 1;
        Err(name)
    }

    fn show(&mut self, oracle: &str, differing: &Differing<'_>) {
        self.shown += 1;
        if self.shown > SHOWN {
            return;
        }
        let Case { zone, change, expression, .. } = differing.case;
        let local = |secs: i64| zone.local_text(Timestamp::from_micros(secs * 1_000_000));
        println!("{oracle}: {} in {zone}, clocks changed to {}", expression.text, local(change.at));
        for time in &differing.only_theirs {
            println!("  only theirs: {}", local(*time));
        }
        for time in &differing.only_ours {
            println!("  only ours: {}", local(*time));
        }
    }

    pub fn unexplained(&self) -> u64 {
        let unexplained = self.differences.iter().filter(|((_, name), _)| *name == UNEXPLAINED);
        unexplained.map(|(_, count)| count).sum()
    }

    /// The summary, line by line.
    pub fn lines(&self, zones: usize, expressions: usize) -> Vec<String> {
        let (transitions, cases, comparisons) = (self.transitions, self.cases, self.comparisons);
        let unexplained = self.unexplained();
        let mut lines = vec![format!(
            "{zones} zones, {transitions} transitions, {expressions} expressions, {cases} cases, \
             {comparisons} comparisons, {unexplained} differences that nothing explains"
        )];
        for (oracle, agreed) in &self.agreed {
            lines.push(format!("{oracle} agrees in {agreed} cases"));
            let others = self.differences.iter().filter(|((name, _), _)| name == oracle);
            lines.extend(others.map(|((_, name), count)| format!("  {count}: {name}")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cron_oracle::matrix::expressions;

    /// Judges `expression` at Berlin's clock change of 29 March 2026. `times` is the result of both
    /// oracles.
    fn judged(expression: &str, offsets: &str, times: &str) -> Tally {
        let change = Change { at: 1_774_746_000, before: 3600, after: 7200 };
        let all = expressions().unwrap();
        let expression = all.iter().find(|one| one.text == expression).unwrap();
        let zone = Zone::get("Europe/Berlin").unwrap();
        let answer = Answer::read(&format!("{offsets}\t{times}\t{times}")).unwrap();
        let mut tally = Tally::default();
        tally.judge(&Case { zone: &zone, change, expression }, &answer);
        tally
    }

    #[test]
    fn equal_times_agree() {
        let tally = judged("30 2 * * *", "3600 7200", "1774661400 84600 84600");
        assert_eq!((tally.unexplained(), tally.agreed.len()), (0, 2));
    }

    #[test]
    fn unexplained_differences_are_counted() {
        for wrong in ["", "1774661400 84600", "1774661400 84660 84540", "!ZeroDivisionError"] {
            assert_eq!(judged("30 2 * * *", "3600 7200", wrong).unexplained(), 2, "{wrong}");
        }
    }

    #[test]
    fn other_zone_data_and_unsupported_expressions_are_explained() {
        assert_eq!(judged("30 2 * * *", "3600 3600", "7").unexplained(), 0);
        assert_eq!(judged("30 2 * * *", "3600 7200", "!CronSimError Bad day").unexplained(), 0);
    }
}
