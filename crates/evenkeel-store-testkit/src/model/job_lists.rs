//! Computes lists and counts of jobs by reading all jobs.

use evenkeel_core::Timestamp;
use evenkeel_core::condition::Level;
use evenkeel_store::{
    Job, JobCounts, JobCursor, JobFilter, JobSort, ListPosition, ListedJob, Page, PageRequest,
    Scope, SortBy,
};

use super::data::{Data, count};
use super::targets::TargetRow;

impl Data {
    pub fn list_jobs(
        &self,
        scope: &Scope,
        (filter, now): (&JobFilter, Timestamp),
        sort: JobSort,
        page: PageRequest<JobCursor>,
    ) -> Page<Job, JobCursor> {
        let passing: Vec<ListPosition> = self
            .jobs_of(scope)
            .filter(|job| self.passes(job, filter, now))
            .filter_map(|job| place_of(&job, sort.by))
            .collect();
        let total = count(passing.len());
        let after = match page.after {
            None => None,
            Some(after) => {
                let Some(place) = self.place_after(scope, sort, after) else {
                    return Page { items: Vec::new(), total, total_is_estimate: false, next: None };
                };
                Some(place)
            }
        };
        let (places, next) = sort.cut(passing, after.as_ref(), page);
        let items = places.iter().filter_map(|place| self.find(place.no)).map(|job| self.view(job));
        Page { items: items.collect(), total, total_is_estimate: false, next }
    }

    fn jobs_of(&self, scope: &Scope) -> impl Iterator<Item = Job> {
        let is_seen = |job: &&super::data::JobRow| job.tenant == scope.tenant && !job.is_deleted();
        self.jobs.iter().filter(is_seen).map(|job| self.view(job))
    }

    fn place_after(&self, scope: &Scope, sort: JobSort, after: JobCursor) -> Option<ListPosition> {
        let mut place = ListPosition { at: after.at, name: None, no: after.no };
        if sort.by == SortBy::Name {
            let job = self.find(after.no).filter(|job| job.tenant == scope.tenant)?;
            place.name = place_of(&self.view(job), sort.by)?.name;
        }
        Some(place)
    }

    fn passes(&self, job: &Job, filter: &JobFilter, now: Timestamp) -> bool {
        let condition = self.at_risk.level(job.no).unwrap_or(Level::Ok);
        let target = job.about.target.and_then(|number| self.targets.get(&(job.tenant, number)));
        let target_name = target.and_then(TargetRow::name);
        filter.passes(&ListedJob { job, target_name, condition, now })
    }

    pub fn job_counts(&self, scope: &Scope, now: Timestamp) -> JobCounts {
        let mut counts = JobCounts::default();
        for job in self.jobs_of(scope) {
            counts.total += 1;
            *counts.of_mut(job.status(now)) += 1;
        }
        counts
    }

    pub fn all_job_counts(&self, now: Timestamp) -> JobCounts {
        let mut counts = JobCounts::default();
        for job in self.jobs.iter().filter(|job| !job.is_deleted()) {
            counts.total += 1;
            *counts.of_mut(self.view(job).status(now)) += 1;
        }
        counts
    }
}

/// Returns the position of a job in a list sorted by `by`; `None` if it is not listed.
fn place_of(job: &Job, by: SortBy) -> Option<ListPosition> {
    let mut place = ListPosition { at: 0, name: None, no: job.no };
    match by {
        SortBy::Created => {}
        SortBy::Updated => place.at = job.updated_at.as_micros(),
        SortBy::NextRun => place.at = job.next_at?.as_micros(),
        SortBy::Name => {
            let configuration = job.about.configuration.clone().unwrap_or_default();
            place.name = Some((job.about.name.clone()?, configuration));
        }
    }
    Some(place)
}
