//! Judges by what people did: I8, an acknowledged command holds, and the times that follow from it.

use std::collections::BTreeMap;

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::{JobNo, Span, Timestamp};
use evenkeel_store::Attempt;

use crate::checker::Evidence;
use crate::world::{Planned, Rhythm, Turn};

/// Times that a job must have: from the first on, this far apart, before the end.
#[derive(Copy, Clone, Debug)]
pub struct Stretch {
    pub first: Timestamp,
    pub every: Span,
    pub end: Timestamp,
}

/// The stretches of a job whose times are even; none if they are not.
pub fn stretches(planned: &Planned, until: Timestamp) -> Vec<Stretch> {
    let Rhythm::Even { first, every } = planned.rhythm else { return Vec::new() };
    let mut all = vec![Stretch { first, every, end: until }];
    for turn in &planned.turns {
        let (next_at, then) = match *turn {
            Turn::Stops { next_at, .. } => (next_at, None),
            Turn::Goes { first, every, .. } => (None, Some((first, every))),
            Turn::Moves { next_at, first, every } => (next_at, Some((first, every))),
        };
        // What was not fired by then never will be.
        if let (Some(last), Some(next_at)) = (all.last_mut(), next_at) {
            last.end = last.end.min(next_at);
        }
        all.extend(then.map(|(first, every)| Stretch { first, every, end: until }));
    }
    all
}

/// From when to when a job was stopped, and whether for good.
fn stops(planned: &Planned) -> Vec<(Timestamp, Option<Timestamp>, bool)> {
    let mut stops: Vec<(Timestamp, Option<Timestamp>, bool)> = Vec::new();
    for turn in &planned.turns {
        match *turn {
            Turn::Stops { at, for_good, .. } => stops.push((at, None, for_good)),
            Turn::Goes { at, .. } => {
                if let Some((_, until, _)) = stops.last_mut() {
                    *until = Some(at);
                }
            }
            Turn::Moves { .. } => {}
        }
    }
    stops
}

/// Was a run for this time stopped by somebody?
pub fn may_be_cancelled(planned: &Planned, scheduled_at: Timestamp) -> bool {
    stops(planned).iter().any(|(at, _, _)| scheduled_at <= *at)
}

/// I8: once a pause or cancel is acknowledged nothing starts, but what is asked for during a pause.
pub fn nothing_starts_while_it_is_stopped(
    evidence: &Evidence<'_>,
    runs: &[Attempt],
    bad: &mut Vec<String>,
) {
    let mut stopped: BTreeMap<JobNo, Vec<(Timestamp, Option<Timestamp>, bool)>> = BTreeMap::new();
    for planned in evidence.plan {
        stopped.insert(planned.job, stops(planned));
    }
    for run in runs.iter().filter(|run| run.status != AttemptStatus::Skipped) {
        let Some(started) = run.started_at else { continue };
        for (from, to, for_good) in stopped.get(&run.key.job_no).into_iter().flatten() {
            let inside = started > *from && to.is_none_or(|to| started < to);
            let asked_for = !for_good && run.key.scheduled_at > *from;
            if inside && !asked_for {
                bad.push(format!("I8: {:?} started at {started}, stopped at {from}", run.key));
            }
        }
    }
}
