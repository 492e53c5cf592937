//! What happens to the work of a server that is lost.

use std::time::Duration;

use crate::clock::ns;
use crate::evidence::{Evidence, Happened, Window};
use crate::jobs::{Body, Job, Policy};
use crate::plan::Fault;
use crate::record::{Kind, Record};
use crate::report::{Report, Wrong};

/// What the product promises, with the default leases, and a second for the machine.
const TAKEOVER_MAX: Duration = Duration::from_secs(16);
/// A supervisor notices the end of its server at once, and asks the body to end before it kills.
const DEATH_AFTER_KILL: Duration = Duration::from_millis(1500);
/// A frozen server's lease ends at most this long after its last ping: then others may begin.
const DEATH_AFTER_FREEZE: Duration = Duration::from_secs(11);

pub(super) fn judge(evidence: &Evidence, report: &mut Report) {
    for (number, fault) in evidence.faults.iter().enumerate() {
        match &fault.victim {
            Some((name, pid)) => {
                survivors(evidence, fault, *pid, report);
                let Some(time) = takeover(evidence, fault, *pid) else { continue };
                report.takeovers.push(time);
                if time > TAKEOVER_MAX && is_alone(&evidence.faults, number) {
                    let seconds = time.as_secs_f64();
                    let detail = format!("work of {name} waited for {seconds:.1} s");
                    report.wrong(Wrong::SlowTakeover, detail);
                }
            }
            None => report.recoveries.extend(recovery(evidence, fault)),
        }
    }
    report.takeovers.sort();
    report.recoveries.sort();
}

/// Bodies that came to their end although they should have died with their server.
fn survivors(evidence: &Evidence, fault: &Happened, pid: u32, report: &mut Report) {
    let grace = match fault.fault {
        Fault::Kill => DEATH_AFTER_KILL,
        Fault::Freeze => DEATH_AFTER_FREEZE,
        Fault::Database => return,
    };
    let from = fault.from.mono_ns + ns(grace);
    // A thawed server may start new bodies, those of a killed one never end.
    let to = if fault.fault == Fault::Freeze { fault.to.mono_ns } else { u64::MAX };
    let ends = evidence.records.iter().filter(|record| record.kind == Kind::End);
    for end in ends.filter(|end| end.node_pid == pid && (from..to).contains(&end.at.mono_ns)) {
        let after = Duration::from_nanos(end.at.mono_ns - fault.from.mono_ns);
        let detail =
            format!("{} {:?} ended {after:?} after the {}", end.job, end.key(), fault.fault);
        report.wrong(Wrong::Survived, detail);
    }
}

/// From the loss of a server until all jobs that it ran last have started elsewhere.
fn takeover(evidence: &Evidence, fault: &Happened, pid: u32) -> Option<Duration> {
    let starts_again = |job: &&Job| job.body != Body::Http && job.policy != Policy::Once;
    let jobs = evidence.jobs.iter().filter(starts_again);
    let waits = jobs.filter_map(|job| {
        let mut records: Vec<&Record> =
            evidence.records.iter().filter(|record| record.job == job.name).collect();
        records.sort_by_key(|record| record.at.mono_ns);
        let (before, after): (Vec<&Record>, Vec<&Record>) =
            records.into_iter().partition(|record| record.at.mono_ns < fault.from.mono_ns);
        if !was_lost(job, &before, pid) {
            return None;
        }
        let next = after.into_iter().find(|record| {
            let anew = record.node_pid != pid || record.at.mono_ns >= fault.to.mono_ns;
            record.kind == Kind::Start && anew
        })?;
        Some(Duration::from_nanos(next.at.mono_ns - fault.from.mono_ns))
    });
    waits.max()
}

/// Did the lost server have this job? A long one only counts while its body goes on: else its next
/// time may be far away.
fn was_lost(job: &Job, before: &[&Record], pid: u32) -> bool {
    let last = before.last().filter(|record| record.node_pid == pid);
    last.is_some_and(|record| job.body != Body::Long || record.kind == Kind::Start)
}

/// From the return of the database until the next start.
fn recovery(evidence: &Evidence, fault: &Happened) -> Option<Duration> {
    let starts = evidence.records.iter().filter(|record| record.kind == Kind::Start);
    let after = starts.filter_map(|start| start.at.mono_ns.checked_sub(fault.to.mono_ns));
    after.min().map(Duration::from_nanos)
}

/// Was there no other fault while the work was to be taken over?
fn is_alone(faults: &[Happened], number: usize) -> bool {
    let Some(own) = faults.get(number) else { return false };
    let limit = i64::try_from(TAKEOVER_MAX.as_micros()).unwrap_or(i64::MAX);
    let from_us = own.from.wall_us;
    let needed = Window { from_us, to_us: from_us.saturating_add(limit) };
    let mut others = faults.iter().enumerate().filter(|(other, _)| *other != number);
    !others.any(|(_, fault)| fault.window().touches(needed))
}
