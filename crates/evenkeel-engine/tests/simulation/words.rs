//! Judges by what people said about runs: it holds, and bodies whose runs it took away are let go.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_core::AttemptKey;
use evenkeel_store::Attempt;

use crate::body::Lived;
use crate::checker::Evidence;
use crate::world::Word;

/// Without faults, a letter and the end of a body take no longer.
const LETTER: Duration = Duration::from_secs(1);
/// If letters get lost, whoever compares finds it out; or the lease ends before.
const COMPARED: Duration = Duration::from_secs(15);

/// What was said is what is stored, and nothing of a run that was said to be over starts again.
pub fn what_was_said_holds(evidence: &Evidence<'_>, runs: &[Attempt], bad: &mut Vec<String>) {
    let stored: BTreeMap<AttemptKey, &Attempt> = runs.iter().map(|run| (run.key, run)).collect();
    let said = evidence.words.iter().filter_map(|word| Some((word, word.end?)));
    for (word, (status, fence)) in said {
        let is = stored.get(&word.key).map(|run| (run.status, run.fence.0));
        if is != Some((status, fence)) {
            bad.push(format!("I8: it was said {word:?}, and {is:?} is stored"));
        }
        let of_run = |lived: &&Lived| lived.key.first_attempt() == word.key.first_attempt();
        let later = |lived: &&Lived| {
            lived.key.attempt > word.key.attempt
                || lived.key.attempt == word.key.attempt && lived.fence >= fence
        };
        for lived in evidence.book.iter().filter(of_run).filter(later) {
            bad.push(format!("I8: {lived:?} began, and it was said {word:?}"));
        }
    }
}

/// Bodies end soon after somebody said how their run goes on.
pub fn bodies_are_let_go(evidence: &Evidence<'_>, bad: &mut Vec<String>) {
    let faults = evidence.scenario.faults;
    let calm = !faults.delay_changes() && !faults.time;
    let soon = if calm { LETTER } else { COMPARED };
    for lived in evidence.book {
        let late = rights_lost(evidence.words, lived).is_some_and(|at| lived.ended > at + soon);
        if late {
            bad.push(format!("{lived:?} goes on though its run was taken away"));
        }
    }
}

/// When a body lost its right by somebody's word.
pub fn rights_lost(words: &[Word], lived: &Lived) -> Option<Duration> {
    let about = |word: &&Word| word.key == lived.key && word.lost == Some(lived.fence);
    words.iter().find(about).map(|word| word.at)
}

/// Until when a body has the right to run: to its end, or until somebody's word.
pub fn runs_until(words: &[Word], lived: &Lived) -> Duration {
    rights_lost(words, lived).map_or(lived.ended, |at| lived.ended.min(at))
}
