//! What bodies did: once each, one at a time, in time, not too early. (I2, I3, I5, I6)

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::excuses;
use crate::evidence::{Evidence, Window};
use crate::jobs::{Job, Policy};
use crate::record::{Kind, Record};
use crate::report::{Report, Wrong};

/// What the product promises while there is capacity.
const LATE_US: i64 = 1_000_000;
/// Two readings of one clock, in two processes, can't be told apart any finer.
const EARLY_US: i64 = 1_000;

pub(super) fn judge(evidence: &Evidence, judged: Window, report: &mut Report) {
    let excuses = excuses(evidence);
    for job in &evidence.jobs {
        let own = evidence.records.iter().filter(|record| record.job == job.name);
        let mut records: Vec<&Record> = own.collect();
        records.sort_by_key(|record| record.at.mono_ns);
        once(job, &records, &excuses, report);
        one_at_a_time(job, &records, report);
        in_time(job, &records, judged, &excuses, report);
    }
}

fn starts<'a>(records: &[&'a Record]) -> impl Iterator<Item = &'a Record> {
    records.iter().copied().filter(|record| record.kind == Kind::Start)
}

fn once(job: &Job, records: &[&Record], excuses: &[Window], report: &mut Report) {
    let mut seen = HashSet::new();
    let mut begun: HashMap<(i64, u32), i64> = HashMap::new();
    for start in starts(records) {
        if !seen.insert(start.key()) {
            let detail = format!("{} started {:?} twice", job.name, start.key());
            report.wrong(Wrong::Doubled, detail);
        }
        // Its body was begun already: that is only right if its server was lost in between.
        let attempt = (start.scheduled_us, start.attempt);
        if let Some(from_us) = begun.insert(attempt, start.at.wall_us) {
            report.repeats += 1;
            if job.policy == Policy::Once {
                let detail = format!("{} repeated {:?}, which runs once", job.name, start.key());
                report.wrong(Wrong::Doubled, detail);
                continue;
            }
            let between = Window { from_us, to_us: start.at.wall_us };
            if !excuses.iter().any(|excuse| excuse.touches(between)) {
                let detail = format!("{} repeated {:?} for no reason", job.name, start.key());
                report.wrong(Wrong::Doubled, detail);
            }
        }
    }
}

/// The lock that a shell body holds for its life tells overlaps exactly, also of bodies that were
/// killed and never wrote an end. Besides, no known stretch may hold the start of another body; one
/// without an end is known for the moment of its start only.
fn one_at_a_time(job: &Job, records: &[&Record], report: &mut Report) {
    for record in records.iter().filter(|record| record.kind == Kind::Overlap) {
        let detail = format!("{} met a living body at {:?}", job.name, record.key());
        report.wrong(Wrong::Overlapping, detail);
    }
    let ends: HashMap<(&str, u32, u32), u64> = records
        .iter()
        .filter(|record| record.kind == Kind::End)
        .map(|record| (record.key(), record.at.mono_ns))
        .collect();
    let mut last: Option<(&Record, u64)> = None;
    for start in starts(records) {
        if let Some((other, until_ns)) = last
            && start.at.mono_ns < until_ns
        {
            let (one, two) = (other.key(), start.key());
            let detail = format!("{} started {two:?} within {one:?}", job.name);
            report.wrong(Wrong::Overlapping, detail);
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
    judged: Window,
    excuses: &[Window],
    report: &mut Report,
) {
    let mut seen = HashSet::new();
    for start in starts(records) {
        let lateness_us = start.at.wall_us - start.scheduled_us;
        if lateness_us < -EARLY_US {
            let detail =
                format!("{} started {:?} {} us early", job.name, start.key(), -lateness_us);
            report.wrong(Wrong::Early, detail);
        }
        let waited = Window { from_us: start.scheduled_us, to_us: start.at.wall_us };
        // Only the first start for a time is due at that time; what comes again is made up for.
        let counts = seen.insert(start.scheduled_us) && start.scheduled_us <= judged.to_us;
        if !counts || excuses.iter().any(|excuse| excuse.touches(waited)) {
            continue;
        }
        report.judged_for_lateness += 1;
        let lateness = Duration::from_micros(u64::try_from(lateness_us).unwrap_or(0));
        report.latest = report.latest.max(lateness);
        if lateness_us > LATE_US {
            let detail = format!("{} started {:?} {lateness:?} late", job.name, start.key());
            report.wrong(Wrong::Late, detail);
        }
    }
}
