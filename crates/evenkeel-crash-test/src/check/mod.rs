//! The judge. It decides from evidence alone, by rules of its own.

mod bodies;
mod loss;
mod slots;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::evidence::{Evidence, Window};
use crate::plan::RECOVERY;
use crate::record::Kind;
use crate::report::{Report, Violation, Wrong};

/// Judges everything.
pub fn judge(evidence: &Evidence, title: &str, seed: u64) -> Report {
    let mut report = Report { title: title.to_owned(), seed, ..Report::default() };
    if let Some(judged) = evidence.judged {
        report.judged = length(judged);
        slots::judge(evidence, judged, &mut report);
        bodies::judge(evidence, judged, &mut report);
    } else {
        report.wrong(Wrong::Incident, "there is nothing to judge".to_owned());
    }
    loss::judge(evidence, &mut report);
    for fault in &evidence.faults {
        *report.faults.entry(fault.fault).or_default() += 1;
    }
    let count = |kind| evidence.records.iter().filter(|record| record.kind == kind).count() as u64;
    report.starts = count(Kind::Start);
    report.refused = count(Kind::Refused);
    report.busy = evidence.busy.iter().map(|window| length(*window)).sum();
    for incident in &evidence.incidents {
        report.wrong(Wrong::Incident, incident.clone());
    }
    report
}

impl Report {
    fn wrong(&mut self, wrong: Wrong, detail: String) {
        self.violations.push(Violation { wrong, detail });
    }
}

/// When nobody can be blamed for being late: faults with their aftermath, and a busy machine.
fn excuses(evidence: &Evidence) -> Vec<Window> {
    let aftermath = i64::try_from(RECOVERY.as_micros()).unwrap_or(i64::MAX);
    let faults = evidence.faults.iter().map(|fault| {
        let window = fault.window();
        Window { to_us: window.to_us + aftermath, ..window }
    });
    faults.chain(evidence.busy.iter().copied()).collect()
}

fn length(window: Window) -> Duration {
    Duration::from_micros(u64::try_from(window.to_us - window.from_us).unwrap_or(0))
}
