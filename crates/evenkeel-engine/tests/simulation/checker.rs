//! Judges a life by what the bodies wrote down and what the store holds at its end. It derives the
//! times that had to be by adding intervals, and knows nothing of the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use evenkeel_core::overlap::OverlapPolicy;
use evenkeel_core::attempt::{AttemptStatus, Outcome as Ended};
use evenkeel_core::{AttemptKey, AttemptNo, JobNo, Sequence, Span, Timestamp};
use evenkeel_store::{Attempt, AttemptFilter, AttemptStore, PageRequest, Scope, Store};
use evenkeel_store_testkit::model::ModelStore;

use crate::body::Lived;
use crate::commanded::{Stretch, may_be_cancelled, nothing_starts_while_it_is_stopped, stretches};
use crate::limits::no_limit_is_exceeded;
use crate::lost::{skips_overlap_with_what_they_say, what_may_run_once_never_runs_again};
use crate::order::higher_priorities_start_first;
use crate::policies;
use crate::words::{bodies_are_let_go, runs_until, what_was_said_holds};
use crate::world::{Outcome, Planned, Rhythm, Scenario, Word};

/// All there is to judge by.
pub struct Evidence<'a> {
    pub scenario: &'a Scenario,
    pub model: &'a ModelStore,
    pub scope: Scope,
    pub plan: &'a [Planned],
    pub triggered: &'a [AttemptKey],
    pub words: &'a [Word],
    pub book: &'a [Lived],
    pub until: Timestamp,
    pub faults: u64,
}

impl Evidence<'_> {
    /// Times of a job before that must be over; later ones may be cut off by the end of the life.
    pub fn sure_until(&self, planned: &Planned) -> Timestamp {
        let dark = policies::longest_dark(&planned.definition.blackout_periods);
        let length = planned.definition.executor.config["ms"].as_u64().unwrap_or(0);
        let margin = Span::from_secs(120).saturating_add(Span::from_millis(length));
        self.until.saturating_sub(margin).saturating_sub(dark)
    }
}

/// Tells every promise that was broken.
pub async fn check(evidence: &Evidence<'_>) -> Outcome {
    let runs = all_runs(evidence).await;
    let mut violations = Vec::new();
    triggers_run_and_nothing_is_cancelled(evidence, &runs, &mut violations);
    nothing_starts_while_it_is_stopped(evidence, &runs, &mut violations);
    every_time_is_accounted_for(evidence, &runs, &mut violations);
    no_attempt_starts_twice(evidence, &mut violations);
    what_may_run_once_never_runs_again(evidence, &runs, &mut violations);
    skips_overlap_with_what_they_say(evidence, &runs, &mut violations);
    what_was_said_holds(evidence, &runs, &mut violations);
    bodies_are_let_go(evidence, &mut violations);
    no_job_overlaps_itself(evidence, &mut violations);
    stored_ends_are_the_last_owners(evidence, &runs, &mut violations);
    nothing_starts_early(evidence, &mut violations);
    no_limit_is_exceeded(evidence, &mut violations);
    higher_priorities_start_first(evidence, &mut violations);
    checkpoints_reach_the_next_attempt(evidence, &mut violations);
    policies::check(evidence, &runs, &mut violations);
    nothing_is_left_behind(evidence, &mut violations).await;
    let census = evidence.model.census().await.unwrap();
    let latest = latest_first_attempt(evidence);
    Outcome {
        simulated_hours: evidence.scenario.hours,
        bodies: evidence.book.len() as u64,
        faults: evidence.faults,
        skipped_times: census.skipped_times,
        latest_ms: latest.as_millis(),
        fingerprint: fingerprint(evidence.book),
        violations,
    }
}

/// Does a job wait for a worker alone?
pub fn is_punctual(planned: &Planned) -> bool {
    let definition = &planned.definition;
    definition.overlap == OverlapPolicy::Skip
        && definition.blackout_periods.is_empty()
        // A wake-up of the node that may run it can be lost.
        && definition.dont_run_on_nodes.is_empty()
        && matches!(planned.rhythm, Rhythm::Even { .. })
}

/// I5: of jobs that wait neither for themselves nor for a retry.
fn latest_first_attempt(evidence: &Evidence<'_>) -> Span {
    let punctual: BTreeSet<JobNo> =
        evidence.plan.iter().filter(|it| is_punctual(it)).map(|planned| planned.job).collect();
    let first = |lived: &&Lived| {
        let regular = AttemptKey::regular(lived.key.job_no, lived.key.scheduled_at);
        // At the end the nodes leave one after the other.
        let before_the_end = lived.began < Duration::from_secs(evidence.scenario.hours * 3600);
        before_the_end && lived.key == regular && punctual.contains(&lived.key.job_no)
    };
    let late = |lived: &Lived| lived.began_db.since(lived.key.scheduled_at);
    evidence.book.iter().filter(first).map(late).max().unwrap_or(Span::ZERO)
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

/// I1: one ended chain or one skip record for each time that has passed; I11: and no other times.
fn every_time_is_accounted_for(evidence: &Evidence<'_>, runs: &[Attempt], bad: &mut Vec<String>) {
    let mut chains: BTreeMap<JobNo, BTreeMap<Timestamp, AttemptStatus>> = BTreeMap::new();
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
            // Later attempts come later and tell how the chain stands.
            chains.entry(run.key.job_no).or_default().insert(run.key.scheduled_at, run.status);
        }
    }
    for planned in evidence.plan {
        let Planned { job, rhythm: Rhythm::Even { .. }, .. } = planned else { continue };
        let mut chains = chains.remove(job).unwrap_or_default();
        let skips = skips.remove(job).unwrap_or_default();
        let sure = evidence.sure_until(planned);
        let runs_max = planned.definition.bounds.max_runs.unwrap_or(u64::MAX);
        let (mut expected_in_skips, mut ran) = (0, 0);
        for Stretch { first, every, end } in stretches(planned, evidence.until) {
            let mut time = first;
            while time < end && ran < runs_max {
                ran += u64::from(chains.contains_key(&time));
                let skipped =
                    skips.iter().filter(|(from, to, _)| (*from..=*to).contains(&time)).count();
                expected_in_skips += skipped as u64;
                match (chains.remove(&time), skipped) {
                    (Some(AttemptStatus::Pending | AttemptStatus::Running), _) if time < sure => {
                        bad.push(format!("I1: job {job} at {time} never ends"));
                    }
                    (Some(_), 0) | (None, 1) => {}
                    (Some(_), _) => bad.push(format!("I1: job {job} at {time} is run and skipped")),
                    (None, 0) if time >= sure => {}
                    (None, 0) => bad.push(format!("I1: job {job} at {time} is lost")),
                    (None, _) => bad.push(format!("I1: job {job} at {time} is skipped twice")),
                }
                time = time.saturating_add(every);
            }
        }
        for time in chains.keys() {
            bad.push(format!("I11: job {job} has a run at {time}, which is none of its times"));
        }
        let recorded: u64 = skips.iter().map(|(_, _, count)| count).sum();
        if recorded != expected_in_skips {
            bad.push(format!("I1: job {job} says it skipped {recorded}, not {expected_in_skips}"));
        }
    }
}

/// I8: what was accepted runs; and nothing ends as cancelled that nobody has stopped.
fn triggers_run_and_nothing_is_cancelled(
    evidence: &Evidence<'_>,
    runs: &[Attempt],
    bad: &mut Vec<String>,
) {
    let of_job = |key: &AttemptKey| evidence.plan.iter().find(|planned| planned.job == key.job_no);
    let stopped = |key: &AttemptKey| {
        of_job(key).is_some_and(|planned| may_be_cancelled(planned, key.scheduled_at))
    };
    let mut last: BTreeMap<AttemptKey, &Attempt> = BTreeMap::new();
    for run in runs {
        let newest = last.entry(run.key.first_attempt()).or_insert(run);
        if run.key.attempt > newest.key.attempt {
            *newest = run;
        }
        if run.status == AttemptStatus::Cancelled && !stopped(&run.key) {
            bad.push(format!("I1: {:?} was cancelled by nobody", run.key));
        }
    }
    for key in evidence.triggered {
        if of_job(key).is_none_or(|planned| key.scheduled_at >= evidence.sure_until(planned)) {
            continue;
        }
        let ended = last.get(&key.first_attempt()).is_some_and(|run| {
            let ends = [AttemptStatus::Completed, AttemptStatus::Failed, AttemptStatus::Superseded];
            ends.contains(&run.status) || run.status == AttemptStatus::Cancelled && stopped(key)
        });
        if !ended {
            bad.push(format!("I8: the accepted trigger {key:?} never ends"));
        }
    }
}

/// I2: an attempt's body starts once for each right to run it.
fn no_attempt_starts_twice(evidence: &Evidence<'_>, bad: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for lived in evidence.book {
        if !seen.insert((lived.key, lived.fence)) {
            bad.push(format!("I2: {:?} started twice with fence {}", lived.key, lived.fence));
        }
    }
}

/// I3: bodies of one job do not overlap, but for those that are being let go.
fn no_job_overlaps_itself(evidence: &Evidence<'_>, bad: &mut Vec<String>) {
    let mut lives: BTreeMap<JobNo, Vec<&Lived>> = BTreeMap::new();
    for lived in evidence.book {
        lives.entry(lived.key.job_no).or_default().push(lived);
    }
    for (job, mut lives) in lives {
        lives.sort_by_key(|lived| lived.began);
        let mut last: Option<&Lived> = None;
        for lived in lives {
            let until = |one: &Lived| runs_until(evidence.words, one);
            if let Some(last) = last.filter(|last| lived.began < until(last)) {
                bad.push(format!("I3: job {job} overlaps itself: {lived:?} and {last:?}"));
            }
            last = last.filter(|last| until(last) > until(lived)).or(Some(lived));
        }
    }
}

/// I4: what the store says of an attempt's end is what the body with its last fence said.
fn stored_ends_are_the_last_owners(
    evidence: &Evidence<'_>,
    runs: &[Attempt],
    bad: &mut Vec<String>,
) {
    let mut ends: BTreeMap<(AttemptKey, u32), Ended> = BTreeMap::new();
    for lived in evidence.book {
        if let Some(outcome) = lived.outcome {
            ends.insert((lived.key, lived.fence), outcome);
        }
    }
    for run in runs {
        let said = ends.get(&(run.key, run.fence.0));
        let stored = match run.status {
            AttemptStatus::Completed => Ended::Completed,
            AttemptStatus::Failed if run.results.error.as_deref() == Some("as it was told to") => {
                Ended::Failed
            }
            _ => continue,
        };
        let by_word = |word: &Word| {
            word.key == run.key && word.end.is_some_and(|(_, fence)| fence == run.fence.0)
        };
        if said != Some(&stored) && !evidence.words.iter().any(by_word) {
            bad.push(format!("I4: {:?} is stored as {stored:?}, its owner said {said:?}", run.key));
        }
    }
}

/// Every body saves a checkpoint when it begins. A retry gets that of the attempt before it, or of
/// an earlier life of itself; a first attempt at most the latter.
fn checkpoints_reach_the_next_attempt(evidence: &Evidence<'_>, bad: &mut Vec<String>) {
    let had_a_body: BTreeSet<AttemptKey> = evidence.book.iter().map(|lived| lived.key).collect();
    for lived in evidence.book {
        let attempt = lived.key.attempt.0;
        // An attempt that met a blackout at its start had no body that could have saved one.
        let before = (0..attempt)
            .rev()
            .map(|earlier| lived.key.with_attempt(AttemptNo(earlier)))
            .find(|key| had_a_body.contains(key));
        let right = match lived.given {
            None => before.is_none(),
            Some((giver, fence)) if giver.attempt.0 == attempt => {
                giver == lived.key && fence < lived.fence
            }
            Some((giver, _)) => Some(giver) == before,
        };
        if !right {
            bad.push(format!("{:?} was given the checkpoint of {:?}", lived.key, lived.given));
        }
    }
}

/// I6: by the database's clock.
fn nothing_starts_early(evidence: &Evidence<'_>, bad: &mut Vec<String>) {
    for lived in evidence.book {
        // The clock may be set back between the commit and the body.
        let slack = if evidence.scenario.faults.time { Span::from_secs(30) } else { Span::ZERO };
        if lived.began_db.saturating_add(slack) < lived.key.scheduled_at {
            bad.push(format!("I6: {:?} began at {}", lived.key, lived.began_db));
        }
    }
}

/// I7: after healing nothing is left that nobody will touch.
async fn nothing_is_left_behind(evidence: &Evidence<'_>, bad: &mut Vec<String>) {
    let census = evidence.model.census().await.unwrap();
    if census.running > 0 {
        bad.push(format!("I7: {} attempts still run", census.running));
    }
    if census.live != census.ready + census.delayed {
        bad.push(format!("I7: chains are live that nothing waits for: {census:?}"));
    }
}

fn fingerprint(book: &[Lived]) -> u64 {
    #[expect(deprecated, reason = "a hasher that is the same in every process")]
    let mut hasher = std::hash::SipHasher::new();
    for lived in book {
        (lived.key, lived.fence, lived.process, lived.began, lived.ended).hash(&mut hasher);
    }
    hasher.finish()
}
