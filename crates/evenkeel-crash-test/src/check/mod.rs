//! Checks the invariants. The checks use only the collected evidence, and share no code with the
//! server.

mod bodies;
mod loss;
mod slots;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::evidence::{Evidence, Window};
use crate::plan::RECOVERY;
use crate::record::Kind;
use crate::report::{Report, Violation, ViolationKind};

pub fn check_all(evidence: &Evidence, title: &str, seed: u64) -> Report {
    let mut report = Report { title: title.to_owned(), seed, ..Report::default() };
    if let Some(checked) = evidence.checked {
        report.checked = length(checked);
        slots::check(evidence, checked, &mut report);
        bodies::check(evidence, checked, &mut report);
    } else {
        report.add(ViolationKind::Incident, "there is no evidence to check".to_owned());
    }
    loss::check(evidence, &mut report);
    for fault in &evidence.faults {
        *report.faults.entry(fault.fault).or_default() += 1;
    }
    let count = |kind| evidence.records.iter().filter(|record| record.kind == kind).count() as u64;
    report.starts = count(Kind::Start);
    report.refused = count(Kind::Refused);
    report.busy = evidence.busy.iter().map(|window| length(*window)).sum();
    for incident in &evidence.incidents {
        report.add(ViolationKind::Incident, incident.clone());
    }
    report
}

impl Report {
    fn add(&mut self, kind: ViolationKind, detail: String) {
        self.violations.push(Violation { kind, detail });
    }
}

/// Returns the periods in which late starts and repeated attempts are allowed. Late starts are
/// allowed during a fault, during the recovery after a fault, and while the machine is overloaded.
fn excused_windows(evidence: &Evidence) -> Vec<Window> {
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
