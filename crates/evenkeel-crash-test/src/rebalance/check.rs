//! Checks that the received HTTP calls match the start times to which rebalances moved the jobs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::RebalanceReport;
use crate::record::{Kind, Record};

/// A change of a job's start time by a rebalance, as reported by the API.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ReportedMove {
    pub old_us: i64,
    pub new_us: i64,
}

#[derive(Clone, Debug)]
pub struct MovedJob {
    pub name: String,
    pub every_us: i64,
    /// The next scheduled time of the job when the test began.
    pub first_us: i64,
    pub moves: Vec<ReportedMove>,
}

impl MovedJob {
    /// Returns the expected scheduled times up to `until_us`. Each scheduled time is one interval
    /// after the previous scheduled time, unless a rebalance moved the job.
    pub fn times(&self, until_us: i64) -> BTreeSet<i64> {
        let mut times = BTreeSet::new();
        let mut moves = self.moves.iter().peekable();
        let mut next = self.first_us;
        loop {
            // A move whose old time is after `until_us` is also applied, because its new time may
            // be earlier than `until_us`.
            while let Some(change) = moves.next_if(|change| change.old_us == next) {
                next = change.new_us;
            }
            if next > until_us {
                return times;
            }
            times.insert(next);
            next += self.every_us;
        }
    }
}

/// Compares the HTTP calls with the expected scheduled times. Returns the scheduled times without
/// an HTTP call, which the servers must have recorded as skipped.
pub fn check(
    jobs: &[MovedJob],
    records: &[Record],
    until_us: i64,
    report: &mut RebalanceReport,
) -> BTreeMap<String, BTreeSet<i64>> {
    let mut called: HashMap<&str, Vec<&Record>> = HashMap::new();
    for record in records {
        called.entry(&record.job).or_default().push(record);
    }
    let mut missing = BTreeMap::new();
    for job in jobs {
        let records = called.remove(job.name.as_str()).unwrap_or_default();
        let mut due = job.times(until_us);
        // The first rebalance may move the job to a time before its first known scheduled time.
        let from_us = due.first().copied().unwrap_or(job.first_us).min(job.first_us);
        report.times += due.len() as u64;
        let mut seen = BTreeSet::new();
        for start in records.iter().filter(|record| record.kind == Kind::Start) {
            let time = start.scheduled_us;
            if time < from_us || time > until_us {
                continue;
            }
            if !seen.insert(time) {
                report.faults.push(format!("{} was called twice for {time}", job.name));
            } else if due.remove(&time) {
                report.executed += 1;
            } else {
                let last = job.moves.last();
                let fault = format!(
                    "{} was called for {time}, which is not one of its times; last move {last:?}",
                    job.name
                );
                report.faults.push(fault);
            }
            if start.at.wall_us < time {
                report.faults.push(format!("{} was called before {time}", job.name));
            }
        }
        overlaps(&job.name, &records, report);
        if !due.is_empty() {
            missing.insert(job.name.clone(), due);
        }
    }
    missing
}

/// Checks that HTTP calls of one job do not overlap.
fn overlaps(job: &str, records: &[&Record], report: &mut RebalanceReport) {
    let mut ordered: Vec<&Record> = records.to_vec();
    ordered.sort_by_key(|record| record.at.mono_ns);
    let mut open: Option<&str> = None;
    for record in ordered {
        match record.kind {
            Kind::Start => {
                if let Some(run) = open.filter(|run| *run != record.run) {
                    let message = format!("{job}: {} began while {run} was active", record.run);
                    report.faults.push(message);
                }
                open = Some(&record.run);
            }
            _ if open == Some(&record.run) => open = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Moment;

    fn job(moves: &[(i64, i64)]) -> MovedJob {
        let change = |&(old_us, new_us): &(i64, i64)| ReportedMove { old_us, new_us };
        let moves = moves.iter().map(change).collect();
        MovedJob { name: "job".into(), every_us: 10, first_us: 10, moves }
    }

    fn call(time: i64, kind: Kind, at: u64) -> Record {
        Record {
            kind,
            job: "job".into(),
            run: time.to_string(),
            attempt: 0,
            fence: 1,
            scheduled_us: time,
            node_pid: 0,
            at: Moment { mono_ns: at, wall_us: i64::try_from(at).unwrap() },
        }
    }

    fn calls(times: &[i64]) -> Vec<Record> {
        let both = |time: &i64| {
            let at = time.unsigned_abs();
            [call(*time, Kind::Start, at), call(*time, Kind::End, at + 1)]
        };
        times.iter().flat_map(both).collect()
    }

    fn checked(job: MovedJob, records: &[Record]) -> (RebalanceReport, usize) {
        let mut report = RebalanceReport::default();
        let missing = check(&[job], records, 45, &mut report);
        (report, missing.len())
    }

    #[test]
    fn times_follow_the_moves() {
        assert_eq!(Vec::from_iter(job(&[]).times(45)), [10, 20, 30, 40]);
        // Moved, and moved back.
        let moved = job(&[(20, 23), (33, 30)]);
        assert_eq!(Vec::from_iter(moved.times(45)), [10, 23, 30, 40]);
        let from_beyond = job(&[(50, 44)]);
        assert_eq!(Vec::from_iter(from_beyond.times(45)), [10, 20, 30, 40, 44]);
    }

    #[test]
    fn matching_calls_are_clean() {
        let (report, missing) = checked(job(&[(20, 23)]), &calls(&[10, 23, 33, 43]));
        assert!(report.is_clean() && missing == 0, "{report}");
        assert_eq!(report.executed, 4);
        let (report, missing) = checked(job(&[(10, 7)]), &calls(&[7, 17, 27, 37]));
        assert!(report.is_clean() && missing == 0, "{report}");
        assert_eq!(report.executed, 4);
    }

    #[test]
    fn lost_duplicate_early_and_overlapping_calls_are_detected() {
        let (report, missing) = checked(job(&[]), &calls(&[10, 20, 40]));
        assert!(report.is_clean() && missing == 1, "lost: {report}");
        // The job ran at its old scheduled time although a rebalance had moved it.
        let (report, _) = checked(job(&[(20, 23)]), &calls(&[10, 20, 23, 33, 43]));
        assert_eq!(report.faults.len(), 1, "{report}");
        let (report, _) = checked(job(&[]), &calls(&[10, 20, 20, 30, 40]));
        assert_eq!(report.faults.len(), 1, "{report}");
        let mut early = calls(&[10, 20, 30]);
        early.extend([call(40, Kind::Start, 39), call(40, Kind::End, 41)]);
        assert_eq!(checked(job(&[]), &early).0.faults.len(), 1);
        let mut beside = calls(&[20, 30, 40]);
        beside.extend([call(10, Kind::Start, 10), call(10, Kind::End, 25)]);
        assert_eq!(checked(job(&[]), &beside).0.faults.len(), 1);
    }
}
