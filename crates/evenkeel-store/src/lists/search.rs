//! Searches of jobs by text.

use evenkeel_core::{About, JobText, TenantNo};

use super::index::walk_statement;
use super::{JobSort, ListProbe, SortBy, walk_start};
use crate::{Job, JobChange};

/// Number of jobs that a search finds although they are not in the search index yet.
pub const UNINDEXED_SEARCHED: u32 = 1_000;

/// A search that probably finds more jobs than this in the search index is answered by scanning the
/// list. Reading very many entries of an index takes long, and the scan fills a page soon.
const SEARCHED_MAX: u64 = 100_000;

/// Number of jobs from which the number of matching jobs is estimated.
const SAMPLE: u32 = 200;

/// The descriptive data of a job, which SQL cannot search.
#[derive(Clone, Debug)]
pub struct SearchedJob {
    /// [`About`] as JSON.
    pub about: String,
    pub target_name: Option<String>,
}

impl SearchedJob {
    /// Returns the text of the job. Descriptive data that cannot be parsed have no text.
    pub(super) fn text(&self) -> Option<JobText> {
        let about = serde_json::from_str::<About>(&self.about).ok()?;
        Some(JobText::of(&about, self.target_name.as_deref()))
    }

    /// Returns the grams of the job that the search index holds.
    pub fn grams(&self, tenant: TenantNo) -> Vec<i32> {
        self.text().map_or_else(Vec::new, |text| text.grams(tenant))
    }
}

/// Returns true if the job must be indexed again after the change.
pub fn changes_text(job: &Job, change: &JobChange) -> bool {
    change.about.as_ref().is_some_and(|new| {
        new.target != job.about.target || JobText::of(new, None) != JobText::of(&job.about, None)
    })
}

/// Estimates from the first jobs in order of creation whether more than [`SEARCHED_MAX`] jobs pass
/// the filter.
pub(super) async fn is_common<P: ListProbe>(probe: &P, all: u64) -> Result<bool, P::Error> {
    if all <= SEARCHED_MAX {
        return Ok(false);
    }
    let query = probe.query();
    let sort = JobSort { by: SortBy::Created, ..query.sort };
    let jobs = walk_statement(probe.find_section(), sort, None);
    let sample = probe.rows(&jobs, &walk_start(&query, None, SAMPLE, 0)).await?;
    let passing = sample.iter().filter(|(_, passes)| *passes).count() as u64;
    Ok(passing.saturating_mul(all) / (sample.len() as u64).max(1) > SEARCHED_MAX)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use evenkeel_core::{JobNo, JobSearch, Timestamp};

    use super::*;
    use crate::{
        FindSection, IndexScan, JobFilter, ListIndex, ListPosition, ListQuery, ListValue, SlotPart,
        without_waiting,
    };

    /// A store in which this many of the first 200 jobs match.
    struct Sampled(JobFilter, u32);

    impl ListProbe for Sampled {
        type Error = Infallible;

        fn query(&self) -> ListQuery<'_> {
            let (sort, now) = (JobSort { by: SortBy::Name, descending: true }, Timestamp::MIN);
            ListQuery { tenant: TenantNo(1), filter: &self.0, sort, now }
        }

        fn find_section(&self) -> FindSection {
            |name| if name == "list_jobs_by_created" { "ORDER BY job_no ASC" } else { "" }
        }

        async fn rows(
            &self,
            jobs: &str,
            step: &[(&str, ListValue)],
        ) -> Result<Vec<(ListPosition, bool)>, Infallible> {
            assert_eq!(jobs, "ORDER BY job_no DESC");
            assert!(step.contains(&("limit", ListValue::Int(Some(200)))));
            let row = |no: u32| (JobNo(no.into()), no < self.1);
            let rows = (0..200).map(row);
            Ok(rows.map(|(no, passes)| (ListPosition { at: 0, name: None, no }, passes)).collect())
        }

        async fn total(&self) -> Result<u64, Infallible> {
            unreachable!("the caller knows the total")
        }

        async fn name_of(&self, _: JobNo) -> Result<Option<(String, String)>, Infallible> {
            unreachable!("an estimate reads no names")
        }

        async fn scan(&self, _: ListIndex, _: u32) -> Result<IndexScan, Infallible> {
            unreachable!("an estimate reads no index of the filter")
        }

        async fn next_slot(&self, _: i32) -> Result<Option<i32>, Infallible> {
            unreachable!("an estimate reads no time slots")
        }

        async fn slot_size(&self, _: SlotPart) -> Result<u64, Infallible> {
            unreachable!("an estimate reads no time slots")
        }

        async fn load(&self, _: &[ListPosition]) -> Result<Vec<Job>, Infallible> {
            unreachable!("an estimate loads no jobs")
        }
    }

    #[test]
    fn only_searches_that_match_very_many_jobs_are_common() {
        let search = Some(JobSearch::parse("news").unwrap());
        let filter = JobFilter { search, ..JobFilter::default() };
        for (matching, all, expected) in [
            (200, 100_000, false),
            (200, 100_001, true),
            (20, 1_000_000, false),
            (21, 1_000_000, true),
            (0, u64::MAX, false),
            (1, 100_000_000, true),
        ] {
            let probe = Sampled(filter.clone(), matching);
            let Ok(is_common) = without_waiting(is_common(&probe, all));
            assert_eq!(is_common, expected, "{matching} of 200, {all} jobs");
        }
    }
}
