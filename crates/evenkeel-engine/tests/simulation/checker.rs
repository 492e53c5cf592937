//! Checks the invariants after a simulation, from the records of executed attempts and the final
//! state of the store. Expected run times are computed by adding intervals, without code of the
//! engine.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use evenkeel_core::attempt::{AttemptStatus, Outcome as Ended};
use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::{AttemptKey, AttemptNo, JobNo, Sequence, Span, Timestamp};
use evenkeel_store::{Attempt, AttemptFilter, AttemptStore, PageRequest, Scope, Store};
use evenkeel_store_testkit::model::ModelStore;

use crate::body::BodyRecord;
use crate::command_checks::{
    TimeSeries, may_have_been_cancelled, stopped_jobs_do_not_start, time_series,
};
use crate::dispatch_order::higher_ranks_start_first;
use crate::limit_checks::limits_are_kept;
use crate::lost_workers::{at_most_once_attempts_run_once, skipped_times_overlapped};
use crate::override_checks::{may_run_until, overridden_bodies_end, overrides_hold};
use crate::policies;
use crate::world::{Outcome, Override, PlannedJob, Scenario, Timing};

/// Everything the checks use.
pub struct Evidence<'a> {
    pub scenario: &'a Scenario,
    pub model: &'a ModelStore,
    pub scope: Scope,
    pub plan: &'a [PlannedJob],
    pub triggered: &'a [AttemptKey],
    pub overrides: &'a [Override],
    pub records: &'a [BodyRecord],
    pub until: Timestamp,
    pub faults: u64,
}

impl Evidence<'_> {
    /// Returns a time such that all runs scheduled before it must have finished when the simulation
    /// ends. The end of the simulation may cut off runs scheduled after this time.
    pub fn checked_until(&self, planned: &PlannedJob) -> Timestamp {
        let blackout = policies::longest_blackout(&planned.definition.blackout_periods);
        let length = planned.definition.executor.config["ms"].as_u64().unwrap_or(0);
        let margin = Span::from_secs(120).saturating_add(Span::from_millis(length));
        self.until.saturating_sub(margin).saturating_sub(blackout)
    }
}

/// Checks all invariants.
pub async fn check(evidence: &Evidence<'_>) -> Outcome {
    let runs = all_runs(evidence).await;
    let mut violations = Vec::new();
    accepted_triggers_run(evidence, &runs, &mut violations);
    stopped_jobs_do_not_start(evidence, &runs, &mut violations);
    every_time_is_run_or_skipped(evidence, &runs, &mut violations);
    no_attempt_starts_twice(evidence, &mut violations);
    at_most_once_attempts_run_once(evidence, &runs, &mut violations);
    skipped_times_overlapped(evidence, &runs, &mut violations);
    overrides_hold(evidence, &runs, &mut violations);
    overridden_bodies_end(evidence, &mut violations);
    jobs_do_not_overlap_themselves(evidence, &mut violations);
    stored_results_come_from_the_last_owner(evidence, &runs, &mut violations);
    no_run_starts_early(evidence, &mut violations);
    limits_are_kept(evidence, &mut violations);
    higher_ranks_start_first(evidence, &mut violations);
    checkpoints_reach_the_next_attempt(evidence, &mut violations);
    policies::check(evidence, &runs, &mut violations);
    no_attempt_is_left_behind(evidence, &mut violations).await;
    let census = evidence.model.census().await.unwrap();
    let latest = latest_first_attempt(evidence);
    Outcome {
        simulated_hours: evidence.scenario.hours,
        bodies: evidence.records.len() as u64,
        faults: evidence.faults,
        skipped_times: census.skipped_times,
        latest_ms: latest.as_millis(),
        fingerprint: fingerprint(evidence.records),
        violations,
    }
}

/// True if runs of the job wait only for a free worker slot.
pub fn is_punctual(planned: &PlannedJob) -> bool {
    let definition = &planned.definition;
    definition.overlap == OverlapPolicy::Skip
        && definition.blackout_periods.is_empty()
        // A job that may run only on some nodes can be late, because the signal to these nodes can
        // be lost.
        && definition.dont_run_on_nodes.is_empty()
        && matches!(planned.timing, Timing::Fixed { .. })
}

/// I5: returns the largest delay of first attempts, for jobs that wait only for a free worker slot.
fn latest_first_attempt(evidence: &Evidence<'_>) -> Span {
    let punctual: BTreeSet<JobNo> =
        evidence.plan.iter().filter(|it| is_punctual(it)).map(|planned| planned.job).collect();
    let first = |body: &&BodyRecord| {
        let regular = AttemptKey::regular(body.key.job_no, body.key.scheduled_at);
        // Attempts that start at the end of the simulation are ignored, because the nodes then
        // drain one after the other.
        let before_the_end = body.began < Duration::from_secs(evidence.scenario.hours * 3600);
        before_the_end && body.key == regular && punctual.contains(&body.key.job_no)
    };
    let late = |body: &BodyRecord| body.began_db.since(body.key.scheduled_at);
    evidence.records.iter().filter(first).map(late).max().unwrap_or(Span::ZERO)
}

async fn all_runs(evidence: &Evidence<'_>) -> Vec<Attempt> {
    let mut runs = Vec::new();
    let mut page = PageRequest::first(1000);
    loop {
        let found = evidence
            .model
            .list_attempts(&evidence.scope, AttemptFilter::default(), page)
            .await
            .unwrap();
        runs.extend(found.items);
        match found.next {
            Some(next) => page.after = Some(next),
            None => return runs,
        }
    }
}

/// I1: each past scheduled time has one finished run or one skip record. I11: no run has an
/// unexpected scheduled time.
fn every_time_is_run_or_skipped(
    evidence: &Evidence<'_>,
    runs: &[Attempt],
    violations: &mut Vec<String>,
) {
    let mut runs_by_time: BTreeMap<JobNo, BTreeMap<Timestamp, AttemptStatus>> = BTreeMap::new();
    let mut skips: BTreeMap<JobNo, Vec<(Timestamp, Timestamp, u64)>> = BTreeMap::new();
    let mut sorted: Vec<&Attempt> = runs.iter().collect();
    sorted.sort_by_key(|run| run.key);
    for run in sorted {
        if run.key.sequence != Sequence::REGULAR {
            continue;
        }
        if let Some(skip) = run.skipped {
            skips.entry(run.key.job_no).or_default().push((skip.from, skip.to, skip.count));
        } else {
            // Attempts are sorted, so the last attempt of a run determines the status of the run.
            runs_by_time
                .entry(run.key.job_no)
                .or_default()
                .insert(run.key.scheduled_at, run.status);
        }
    }
    for planned in evidence.plan {
        let PlannedJob { job, timing: Timing::Fixed { .. }, .. } = planned else { continue };
        let mut runs_by_time = runs_by_time.remove(job).unwrap_or_default();
        let skips = skips.remove(job).unwrap_or_default();
        let checked_until = evidence.checked_until(planned);
        let runs_max = planned.definition.bounds.max_runs.unwrap_or(u64::MAX);
        let (mut expected_in_skips, mut ran) = (0, 0);
        for TimeSeries { first, every, end } in time_series(planned, evidence.until) {
            let mut time = first;
            while time < end && ran < runs_max {
                ran += u64::from(runs_by_time.contains_key(&time));
                let skipped =
                    skips.iter().filter(|(from, to, _)| (*from..=*to).contains(&time)).count();
                expected_in_skips += skipped as u64;
                match (runs_by_time.remove(&time), skipped) {
                    (Some(AttemptStatus::Pending | AttemptStatus::Running), _)
                        if time < checked_until =>
                    {
                        violations.push(format!("I1: job {job} at {time} never ends"));
                    }
                    (Some(_), 0) | (None, 1) => {}
                    (Some(_), _) => {
                        violations.push(format!("I1: job {job} at {time} is run and skipped"));
                    }
                    (None, 0) if time >= checked_until => {}
                    (None, 0) => violations
                        .push(format!("I1: job {job} at {time} was neither run nor skipped")),
                    (None, _) => {
                        violations.push(format!("I1: job {job} at {time} is skipped twice"));
                    }
                }
                time = time.saturating_add(every);
            }
        }
        for time in runs_by_time.keys() {
            violations
                .push(format!("I11: job {job} has a run at {time}, which is not one of its times"));
        }
        let recorded: u64 = skips.iter().map(|(_, _, count)| count).sum();
        if recorded != expected_in_skips {
            violations.push(format!(
                "I1: job {job} recorded {recorded} skipped times, expected {expected_in_skips}"
            ));
        }
    }
}

/// I8: each accepted trigger leads to a run, and no run is cancelled without a command.
fn accepted_triggers_run(evidence: &Evidence<'_>, runs: &[Attempt], violations: &mut Vec<String>) {
    let of_job = |key: &AttemptKey| evidence.plan.iter().find(|planned| planned.job == key.job_no);
    let stopped = |key: &AttemptKey| {
        of_job(key).is_some_and(|planned| may_have_been_cancelled(planned, key.scheduled_at))
    };
    let mut last: BTreeMap<AttemptKey, &Attempt> = BTreeMap::new();
    for run in runs {
        let newest = last.entry(run.key.first_attempt()).or_insert(run);
        if run.key.attempt > newest.key.attempt {
            *newest = run;
        }
        if run.status == AttemptStatus::Cancelled && !stopped(&run.key) {
            violations.push(format!("I1: {:?} was cancelled without a command", run.key));
        }
    }
    for key in evidence.triggered {
        if of_job(key).is_none_or(|planned| key.scheduled_at >= evidence.checked_until(planned)) {
            continue;
        }
        let ended = last.get(&key.first_attempt()).is_some_and(|run| {
            let ends = [AttemptStatus::Completed, AttemptStatus::Failed, AttemptStatus::Superseded];
            ends.contains(&run.status) || run.status == AttemptStatus::Cancelled && stopped(key)
        });
        if !ended {
            violations.push(format!("I8: the accepted trigger {key:?} never ends"));
        }
    }
}

/// I2: each pair of attempt and fence is executed at most once.
fn no_attempt_starts_twice(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for body in evidence.records {
        if !seen.insert((body.key, body.fence)) {
            violations.push(format!("I2: {:?} started twice with fence {}", body.key, body.fence));
        }
    }
}

/// I3: executions of one job do not overlap, except executions whose outcome was overridden.
fn jobs_do_not_overlap_themselves(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    let mut bodies: BTreeMap<JobNo, Vec<&BodyRecord>> = BTreeMap::new();
    for body in evidence.records {
        bodies.entry(body.key.job_no).or_default().push(body);
    }
    for (job, mut bodies) in bodies {
        bodies.sort_by_key(|body| body.began);
        let mut last: Option<&BodyRecord> = None;
        for body in bodies {
            let until = |one: &BodyRecord| may_run_until(evidence.overrides, one);
            if let Some(last) = last.filter(|last| body.began < until(last)) {
                violations.push(format!("I3: job {job} overlaps itself: {body:?} and {last:?}"));
            }
            last = last.filter(|last| until(last) > until(body)).or(Some(body));
        }
    }
}

/// I4: the stored result of an attempt comes from the execution with the last fence.
fn stored_results_come_from_the_last_owner(
    evidence: &Evidence<'_>,
    runs: &[Attempt],
    violations: &mut Vec<String>,
) {
    let mut ends: BTreeMap<(AttemptKey, u32), Ended> = BTreeMap::new();
    for body in evidence.records {
        if let Some(outcome) = body.outcome {
            ends.insert((body.key, body.fence), outcome);
        }
    }
    for run in runs {
        let reported = ends.get(&(run.key, run.fence.0));
        let stored = match run.status {
            AttemptStatus::Completed => Ended::Completed,
            AttemptStatus::Failed if run.results.error.as_deref() == Some("simulated failure") => {
                Ended::Failed
            }
            _ => continue,
        };
        let by_override = |change: &Override| {
            change.key == run.key && change.end.is_some_and(|(_, fence)| fence == run.fence.0)
        };
        if reported != Some(&stored) && !evidence.overrides.iter().any(by_override) {
            violations.push(format!(
                "I4: {:?} is stored as {stored:?}, its last owner reported {reported:?}",
                run.key
            ));
        }
    }
}

/// Every execution saves a checkpoint when it begins. An attempt receives the checkpoint of an
/// earlier execution of the same attempt. A retry can also receive the checkpoint of the previous
/// attempt.
fn checkpoints_reach_the_next_attempt(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    let had_a_body: BTreeSet<AttemptKey> = evidence.records.iter().map(|body| body.key).collect();
    for body in evidence.records {
        let attempt = body.key.attempt.0;
        // An attempt that a blackout cancelled at its start was never executed, so it saved no
        // checkpoint.
        let before = (0..attempt)
            .rev()
            .map(|earlier| body.key.with_attempt(AttemptNo(earlier)))
            .find(|key| had_a_body.contains(key));
        let right = match body.given {
            None => before.is_none(),
            Some((giver, fence)) if giver.attempt.0 == attempt => {
                giver == body.key && fence < body.fence
            }
            Some((giver, _)) => Some(giver) == before,
        };
        if !right {
            violations.push(format!("{:?} was given the checkpoint of {:?}", body.key, body.given));
        }
    }
}

/// I6: no attempt starts before its scheduled time on the database's clock.
fn no_run_starts_early(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    for body in evidence.records {
        // The database's clock may be set back between the commit of a fire and the start of the
        // attempt.
        let slack = if evidence.scenario.faults.time { Span::from_secs(30) } else { Span::ZERO };
        if body.began_db.saturating_add(slack) < body.key.scheduled_at {
            violations.push(format!("I6: {:?} began at {}", body.key, body.began_db));
        }
    }
}

/// I7: after all faults have ended, no attempt is left without an owner.
async fn no_attempt_is_left_behind(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    let census = evidence.model.census().await.unwrap();
    if census.running > 0 {
        violations.push(format!("I7: {} attempts still run", census.running));
    }
    if census.live != census.ready + census.delayed {
        violations.push(format!(
            "I7: runs are active without an attempt that could continue them: {census:?}"
        ));
    }
}

fn fingerprint(records: &[BodyRecord]) -> u64 {
    #[expect(deprecated, reason = "a hasher with the same result in every process")]
    let mut hasher = std::hash::SipHasher::new();
    for body in records {
        (body.key, body.fence, body.process, body.began, body.ended).hash(&mut hasher);
    }
    hasher.finish()
}
