//! Checks that each attempt starts once, that attempts of a job do not overlap, and that no attempt
//! starts late or early (I2, I3, I5, I6).

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::excused_windows;
use crate::evidence::{Evidence, Window};
use crate::jobs::{Job, Policy};
use crate::record::{Kind, Record};
use crate::report::{Report, ViolationKind};

/// Maximum lateness of a start while the machine has capacity (I5).
const LATE_US: i64 = 1_000_000;
/// Early starts below this tolerance are not reported, because the server and the probe read the
/// clock separately.
const EARLY_US: i64 = 1_000;

pub(super) fn check(evidence: &Evidence, checked: Window, report: &mut Report) {
    let excused_windows = excused_windows(evidence);
    for job in &evidence.jobs {
        let own = evidence.records.iter().filter(|record| record.job == job.name);
        let mut records: Vec<&Record> = own.collect();
        records.sort_by_key(|record| record.at.mono_ns);
        started_once(job, &records, &excused_windows, report);
        one_at_a_time(job, &records, report);
        in_time(job, &records, checked, &excused_windows, report);
    }
}

fn starts<'a>(records: &[&'a Record]) -> impl Iterator<Item = &'a Record> {
    records.iter().copied().filter(|record| record.kind == Kind::Start)
}

fn started_once(job: &Job, records: &[&Record], excused_windows: &[Window], report: &mut Report) {
    let mut seen = HashSet::new();
    let mut begun: HashMap<(i64, u32), i64> = HashMap::new();
    for start in starts(records) {
        let (name, key) = (&job.name, start.key());
        if !seen.insert(key) {
            report.add(ViolationKind::Duplicate, format!("{name} started {key:?} twice"));
        }
        // A second start of an attempt is allowed only if a fault happened between both starts of
        // the attempt.
        let attempt = (start.scheduled_us, start.attempt);
        if let Some(from_us) = begun.insert(attempt, start.at.wall_us) {
            report.repeats += 1;
            let between = Window { from_us, to_us: start.at.wall_us };
            if job.policy == Policy::AtMostOnce {
                let detail = format!("{name} started {key:?} again, which may start once");
                report.add(ViolationKind::Duplicate, detail);
            } else if !excused_windows.iter().any(|excuse| excuse.overlaps_with(between)) {
                let detail = format!("{name} started {key:?} again without a fault");
                report.add(ViolationKind::Duplicate, detail);
            }
        }
    }
}

/// Checks that attempts of one job do not overlap. A running probe holds a file lock, which detects
/// overlaps even with probes that were killed. No attempt may start between the recorded start and
/// end of another attempt of the same job.
fn one_at_a_time(job: &Job, records: &[&Record], report: &mut Report) {
    for record in records.iter().filter(|record| record.kind == Kind::Overlap) {
        let detail = format!("{} found the lock taken at {:?}", job.name, record.key());
        report.add(ViolationKind::Overlapping, detail);
    }
    let ends = records.iter().filter(|record| record.kind == Kind::End);
    let ends: HashMap<_, u64> = ends.map(|end| (end.key(), end.at.mono_ns)).collect();
    let mut last: Option<(&Record, u64)> = None;
    for start in starts(records) {
        if let Some((other, until_ns)) = last
            && start.at.mono_ns < until_ns
        {
            let (one, two) = (other.key(), start.key());
            let detail = format!("{} started {two:?} within {one:?}", job.name);
            report.add(ViolationKind::Overlapping, detail);
        }
        let end = ends.get(&start.key()).copied().unwrap_or(start.at.mono_ns);
        if last.is_none_or(|(_, until_ns)| until_ns < end) {
            last = Some((start, end));
        }
    }
}

fn in_time(
    job: &Job,
    records: &[&Record],
    checked: Window,
    excused_windows: &[Window],
    report: &mut Report,
) {
    let mut seen = HashSet::new();
    for start in starts(records) {
        let (name, key) = (&job.name, start.key());
        let lateness_us = start.at.wall_us - start.scheduled_us;
        if lateness_us < -EARLY_US {
            let detail = format!("{name} started {key:?} {} us early", -lateness_us);
            report.add(ViolationKind::Early, detail);
        }
        let waited = Window { from_us: start.scheduled_us, to_us: start.at.wall_us };
        // The check for lateness ignores all starts of a run except the first, because later starts
        // are repetitions.
        let counts = seen.insert(start.scheduled_us) && start.scheduled_us <= checked.to_us;
        if !counts || excused_windows.iter().any(|excuse| excuse.overlaps_with(waited)) {
            continue;
        }
        report.checked_for_lateness += 1;
        let lateness = Duration::from_micros(u64::try_from(lateness_us).unwrap_or(0));
        report.latest = report.latest.max(lateness);
        if lateness_us > LATE_US {
            report.add(ViolationKind::Late, format!("{name} started {key:?} {lateness:?} late"));
        }
    }
}
