//! Checks that attempts of a lost server stop, and that they start again on another server in time.

use std::time::Duration;

use crate::clock::ns;
use crate::evidence::{Evidence, InjectedFault, Window};
use crate::jobs::{Body, Job, Policy};
use crate::plan::Fault;
use crate::record::{Kind, Record};
use crate::report::{Report, ViolationKind};

/// Maximum time from the loss of a server until other servers start its attempts, with default
/// lease settings, plus one second.
const TAKEOVER_MAX: Duration = Duration::from_secs(16);
/// Maximum time that the program of a shell job runs after its server was killed. The supervisor
/// process of the program notices the end of the server at once and kills the program after a short
/// grace period.
const DEATH_AFTER_KILL: Duration = Duration::from_millis(1500);
/// Maximum time from the last lease renewal of a suspended server until its lease ends. After the
/// lease has ended, other servers may start the attempts of the suspended server.
const DEATH_AFTER_FREEZE: Duration = Duration::from_secs(11);

pub(super) fn check(evidence: &Evidence, report: &mut Report) {
    for (number, fault) in evidence.faults.iter().enumerate() {
        match &fault.victim {
            Some((name, pid)) => {
                survivors(evidence, fault, *pid, report);
                let Some(time) = takeover(evidence, fault, *pid) else { continue };
                report.takeovers.push(time);
                if time > TAKEOVER_MAX && is_alone(&evidence.faults, number) {
                    let seconds = time.as_secs_f64();
                    let detail = format!("attempts of {name} waited for {seconds:.1} s");
                    report.add(ViolationKind::SlowTakeover, detail);
                }
            }
            None => report.recoveries.extend(recovery(evidence, fault)),
        }
    }
    report.takeovers.sort();
    report.recoveries.sort();
}

/// Reports attempts that finished normally although they should have been killed with their server.
fn survivors(evidence: &Evidence, fault: &InjectedFault, pid: u32, report: &mut Report) {
    let grace = match fault.fault {
        Fault::Kill => DEATH_AFTER_KILL,
        Fault::Freeze => DEATH_AFTER_FREEZE,
        Fault::Database => return,
    };
    let from = fault.from.mono_ns + ns(grace);
    // A server that continues after a suspension may start and finish new attempts. Attempts of a
    // killed server must never finish.
    let to = if fault.fault == Fault::Freeze { fault.to.mono_ns } else { u64::MAX };
    let ends = evidence.records.iter().filter(|record| record.kind == Kind::End);
    for end in ends.filter(|end| end.node_pid == pid && (from..to).contains(&end.at.mono_ns)) {
        let after = Duration::from_nanos(end.at.mono_ns - fault.from.mono_ns);
        let detail =
            format!("{} {:?} ended {after:?} after the {}", end.job, end.key(), fault.fault);
        report.add(ViolationKind::OutlivedServer, detail);
    }
}

/// Returns the time from the loss of a server until all jobs that the server ran have started
/// again.
fn takeover(evidence: &Evidence, fault: &InjectedFault, pid: u32) -> Option<Duration> {
    let starts_again = |job: &&Job| job.body != Body::Http && job.policy != Policy::AtMostOnce;
    let jobs = evidence.jobs.iter().filter(starts_again);
    let waits = jobs.filter_map(|job| {
        let mut records: Vec<&Record> =
            evidence.records.iter().filter(|record| record.job == job.name).collect();
        records.sort_by_key(|record| record.at.mono_ns);
        let (before, after): (Vec<&Record>, Vec<&Record>) =
            records.into_iter().partition(|record| record.at.mono_ns < fault.from.mono_ns);
        if !ran_on_the_lost_server(job, &before, pid) {
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

/// True if the last run of the job before the fault was on the lost server. A long job must also
/// have been running when the server was lost, because its next scheduled time may be far away.
fn ran_on_the_lost_server(job: &Job, before: &[&Record], pid: u32) -> bool {
    let last = before.last().filter(|record| record.node_pid == pid);
    last.is_some_and(|record| job.body != Body::Long || record.kind == Kind::Start)
}

/// Returns the time from the restart of the database until the next start of an attempt.
fn recovery(evidence: &Evidence, fault: &InjectedFault) -> Option<Duration> {
    let starts = evidence.records.iter().filter(|record| record.kind == Kind::Start);
    let after = starts.filter_map(|start| start.at.mono_ns.checked_sub(fault.to.mono_ns));
    after.min().map(Duration::from_nanos)
}

/// True if no other fault happened within [`TAKEOVER_MAX`] after the fault with this number began.
fn is_alone(faults: &[InjectedFault], number: usize) -> bool {
    let Some(own) = faults.get(number) else { return false };
    let limit = i64::try_from(TAKEOVER_MAX.as_micros()).unwrap_or(i64::MAX);
    let from_us = own.from.wall_us;
    let needed = Window { from_us, to_us: from_us.saturating_add(limit) };
    let mut others = faults.iter().enumerate().filter(|(other, _)| *other != number);
    !others.any(|(_, fault)| fault.window().overlaps_with(needed))
}
