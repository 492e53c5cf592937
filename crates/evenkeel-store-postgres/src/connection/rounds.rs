//! Splits a batch in which a job occurs several times.

use std::collections::HashMap;

use evenkeel_core::JobNo;

/// Splits a batch into rounds, each a list of positions in the batch. No job occurs twice in a
/// round, and the items of a job keep their order. Each round is sorted by job number, which is the
/// lock order.
///
/// A statement updates a row only once, so a job that occurs twice needs two statements.
pub(crate) fn rounds<T>(batch: &[T], job: impl Fn(&T) -> JobNo) -> Vec<Vec<usize>> {
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let mut seen: HashMap<JobNo, usize> = HashMap::with_capacity(batch.len());
    for (position, item) in batch.iter().enumerate() {
        let round = seen.entry(job(item)).and_modify(|round| *round += 1).or_insert(0);
        if *round == rounds.len() {
            rounds.push(Vec::new());
        }
        rounds[*round].push(position);
    }
    for round in &mut rounds {
        round.sort_unstable_by_key(|position| job(&batch[*position]));
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_in_a_round_once_and_its_items_keep_their_order() {
        let batch = [3, 1, 3, 2, 3, 1].map(JobNo);
        assert_eq!(rounds(&batch, |job| *job), [vec![1, 3, 0], vec![5, 2], vec![4]]);
    }
}
