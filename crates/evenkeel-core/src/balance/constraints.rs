//! Applies a job's blackouts and preferred hours when its start time is chosen.

use super::loads::Horizon;
use super::place::Candidates;
use crate::blackout::Blackouts;
use crate::job::Definition;
use crate::time::Timestamp;

/// Marks the candidate start times with the fewest future runs in blackouts. Among the marked start
/// times, keeps those with the fewest future runs outside the preferred hours. Returns `None` if
/// the job has neither blackouts nor preferred hours.
pub(super) fn best(
    definition: &Definition,
    candidates: Candidates,
    horizon: Horizon,
) -> Option<Vec<bool>> {
    let zone = &definition.timezone;
    let blackouts = Blackouts::new(&definition.blackout_periods, zone);
    let preferred = Blackouts::new(definition.prefer_window.as_slice(), zone);
    if blackouts.is_empty() && preferred.is_empty() {
        return None;
    }
    let times = Times { candidates, each: (horizon.length() / candidates.every).max(1) };
    let mut wanted = vec![true; candidates.count];
    if !blackouts.is_empty() {
        keep_least(&mut wanted, &times.within(&times.spans_of(blackouts)));
    }
    if !preferred.is_empty() {
        let inside = times.within(&times.spans_of(preferred));
        let outside: Vec<i64> = inside.iter().map(|inside| times.each - inside).collect();
        keep_least(&mut wanted, &outside);
    }
    Some(wanted)
}

/// The future run times of all candidate start times.
struct Times {
    candidates: Candidates,
    /// Number of future run times per candidate start time.
    each: i64,
}

impl Times {
    /// Returns when `periods` (blackouts or preferred hours) begin and end, up to the last run time
    /// of any candidate start time.
    fn spans_of(&self, periods: Blackouts<'_>) -> Vec<(i64, i64)> {
        let last = self.candidates.time(self.candidates.count - 1);
        let until = last + (self.each - 1) * self.candidates.every;
        let mut spans = Vec::new();
        let mut moment = Timestamp::from_micros(self.candidates.first);
        while let Some(start) = periods.next_start(moment).filter(|it| it.as_micros() <= until) {
            moment = periods.next_open(start);
            spans.push((start.as_micros(), moment.as_micros()));
            if moment <= start {
                break;
            }
        }
        spans
    }

    /// Counts for each candidate start time how many of its run times are inside `spans`.
    fn within(&self, spans: &[(i64, i64)]) -> Vec<i64> {
        let mut counts = vec![0; self.candidates.count];
        for nth in 0..self.each {
            let shift = nth * self.candidates.every;
            let first = self.candidates.first + shift;
            let mut at = spans.partition_point(|(_, end)| *end <= first);
            for (candidate, count) in counts.iter_mut().enumerate() {
                let time = self.candidates.time(candidate) + shift;
                while spans.get(at).is_some_and(|(_, end)| *end <= time) {
                    at += 1;
                }
                *count += i64::from(spans.get(at).is_some_and(|(start, _)| *start <= time));
            }
        }
        counts
    }
}

/// Keeps only those wanted candidate start times whose number in `counts` is the lowest.
fn keep_least(wanted: &mut [bool], counts: &[i64]) {
    let each = wanted.iter().zip(counts);
    let least = each.filter(|(wanted, _)| **wanted).map(|(_, count)| *count).min();
    for (wanted, count) in wanted.iter_mut().zip(counts) {
        *wanted &= Some(*count) == least;
    }
}
