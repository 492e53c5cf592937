//! How a crawl ended.

use crate::tally::Tally;

/// A crawl in which more than this part of the pages failed has partly failed.
const FAILED_PERCENT_MAX: u64 = 10;

/// How a crawl ended, and what it did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// How.
    pub ending: Ending,
    /// What it did.
    pub tally: Tally,
}

/// How a crawl ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Well: at least one start was read, at most one page in ten could not be got, and all that
    /// was read found room.
    Completed,
    /// A start was read, but more than one page in ten could not be got, or some could not be kept
    /// because the job's room is full. Says which.
    PartlyFailed(String),
    /// No start could be read, or pages could not be kept.
    Failed {
        /// Why.
        error: String,
        /// Would another try fare no better? So if robots.txt forbids it, if an address may not be
        /// called, if a start leads out of scope.
        hopeless: bool,
    },
}

/// Why starts could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Losses {
    pub(crate) first: Option<String>,
    /// Could one of them go better another time?
    pub(crate) hopeful: bool,
}

impl Losses {
    pub(crate) fn add(&mut self, why: String, hopeless: bool) {
        self.first.get_or_insert(why);
        self.hopeful |= !hopeless;
    }
}

pub(crate) fn judge(tally: &Tally, losses: &Losses, first_failure: Option<&str>) -> Ending {
    if tally.starts_read == 0 {
        let error = losses.first.clone().unwrap_or_else(|| "no start was reached".into());
        return Ending::Failed { error, hopeless: losses.first.is_some() && !losses.hopeful };
    }
    if tally.failed * 100 > tally.visited * FAILED_PERCENT_MAX {
        let first = first_failure.unwrap_or("see the log");
        let Tally { failed, visited, .. } = tally;
        let text = format!("{failed} of {visited} pages could not be got; the first: {first}");
        return Ending::PartlyFailed(text);
    }
    if tally.no_room > 0 {
        let count = tally.no_room;
        let text = format!(
            "{count} pages were read but not kept: the job's room is full; raise max_store_mb"
        );
        return Ending::PartlyFailed(text);
    }
    Ending::Completed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_in_ten_is_forgiven() {
        let judged = |failed| {
            let tally = Tally { visited: 100, starts_read: 1, failed, ..Tally::default() };
            judge(&tally, &Losses::default(), Some("x"))
        };
        assert_eq!(judged(10), Ending::Completed);
        assert!(matches!(judged(11), Ending::PartlyFailed(text) if text.contains("11 of 100")));
    }

    #[test]
    fn without_a_start_it_failed_and_only_hopeless_losses_make_it_hopeless() {
        let mut losses = Losses::default();
        losses.add("forbidden".into(), true);
        let failed = |hopeless| Ending::Failed { error: "forbidden".into(), hopeless };
        assert_eq!(judge(&Tally::default(), &losses, None), failed(true));
        losses.add("timed out".into(), false);
        assert_eq!(judge(&Tally::default(), &losses, None), failed(false));
    }
}
