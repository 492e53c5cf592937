//! The result of a crawl.

use crate::counts::CrawlCounts;

/// Maximum percentage of failed pages; a crawl with more failed pages has partly failed.
const FAILED_PERCENT_MAX: u64 = 10;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    pub ending: Ending,
    pub counts: CrawlCounts,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// A start page was read, at most one page in ten failed, and pages fitted into `max_store_mb`.
    Completed,
    /// At least one start page was read, but more than one page in ten failed, or pages did not fit
    /// into `max_store_mb`.
    PartlyFailed(String),
    /// No start page could be read, or pages could not be saved or exported.
    Failed {
        error: String,
        /// True if a retry would fail as well, for example because robots.txt forbids the start
        /// URLs or their addresses may not be called.
        hopeless: bool,
    },
}

/// Why start URLs could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Losses {
    pub(crate) first: Option<String>,
    /// True if a retry may succeed for at least one of the start URLs.
    pub(crate) hopeful: bool,
}

impl Losses {
    pub(crate) fn add(&mut self, why: String, hopeless: bool) {
        self.first.get_or_insert(why);
        self.hopeful |= !hopeless;
    }
}

pub(crate) fn judge(counts: &CrawlCounts, losses: &Losses, first_failure: Option<&str>) -> Ending {
    if counts.starts_read == 0 {
        let error = losses.first.clone().unwrap_or_else(|| "no start URL was reached".into());
        return Ending::Failed { error, hopeless: losses.first.is_some() && !losses.hopeful };
    }
    if counts.failed * 100 > counts.visited * FAILED_PERCENT_MAX {
        let first = first_failure.unwrap_or("see the log");
        let CrawlCounts { failed, visited, .. } = counts;
        let text = format!("{failed} of {visited} pages could not be fetched; the first: {first}");
        return Ending::PartlyFailed(text);
    }
    if counts.no_room > 0 {
        let count = counts.no_room;
        let text = format!(
            "{count} pages were read but not saved, because the job's limit is reached; raise \
             max_store_mb"
        );
        return Ending::PartlyFailed(text);
    }
    Ending::Completed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_page_in_ten_is_tolerated() {
        let judged = |failed| {
            let counts =
                CrawlCounts { visited: 100, starts_read: 1, failed, ..CrawlCounts::default() };
            judge(&counts, &Losses::default(), Some("x"))
        };
        assert_eq!(judged(10), Ending::Completed);
        assert!(matches!(judged(11), Ending::PartlyFailed(text) if text.contains("11 of 100")));
    }

    #[test]
    fn crawl_without_a_start_fails_for_good_only_if_all_losses_are_final() {
        let mut losses = Losses::default();
        losses.add("forbidden".into(), true);
        let failed = |hopeless| Ending::Failed { error: "forbidden".into(), hopeless };
        assert_eq!(judge(&CrawlCounts::default(), &losses, None), failed(true));
        losses.add("timed out".into(), false);
        assert_eq!(judge(&CrawlCounts::default(), &losses, None), failed(false));
    }
}
