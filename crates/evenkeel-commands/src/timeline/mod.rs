//! Reads the timeline: the past, active and future runs of a period.
//!
//! - `marks` reads runs and jobs, and makes a mark of each run. Every list that it reads has a
//!   bound. If a bound is reached, the period has too many runs for marks.
//! - `past` and `future` make marks of stored runs and of the schedules of jobs.
//! - `density` counts runs per step. The runs of all jobs are counted from the activity and the
//!   forecast of the tenant, the runs of one job from its history and its schedule.

mod density;
mod future;
mod marks;
mod past;

use std::collections::BTreeMap;

use evenkeel_core::attempt::AttemptStatus;
use evenkeel_core::schedule::MovedBy;
use evenkeel_core::timeline::{
    Density, InvalidPeriod, LENGTH_MAX, LaneBy, MARKS_MAX, TimelinePeriod, lanes,
};
use evenkeel_core::{AttemptKey, JobId, Timestamp};
use evenkeel_store::Scope;

use crate::runs::check_job;
use crate::{Balancing, CommandError, Fault, Result, Runs};
use density::TenantDensity;
use marks::FoundMarks;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct TimelineQuery {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub by: LaneBy,
    /// Shows only runs of this job.
    pub job: Option<JobId>,
    /// Maximum number of marks, at most [`MARKS_MAX`].
    pub limit_marks: u32,
}

impl Default for TimelineQuery {
    fn default() -> Self {
        Self { from: None, to: None, by: LaneBy::default(), job: None, limit_marks: MARKS_MAX }
    }
}

/// Whether a mark shows a stored run or an expected run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MarkStatus {
    Run(AttemptStatus),
    Expected,
}

impl MarkStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run(status) => status.as_str(),
            Self::Expected => "expected",
        }
    }
}

/// One run on the timeline.
#[derive(Clone, PartialEq, Debug)]
pub struct Mark {
    pub job: JobId,
    /// `None` if the job has no name or was deleted.
    pub job_name: Option<String>,
    /// `None` if the job was deleted.
    pub pool: Option<String>,
    /// Name of the node that ran or runs the newest attempt.
    pub node: Option<String>,
    pub scheduled_at: Timestamp,
    /// When the run started or is expected to start; `None` if it has not started or never will.
    pub start: Option<Timestamp>,
    /// When the run ended or is expected to end, if known.
    pub end: Option<Timestamp>,
    pub status: MarkStatus,
    /// The stored run.
    pub run: Option<AttemptKey>,
    pub start_is_estimate: bool,
    pub end_is_estimate: bool,
    /// Why the run starts at another time than the schedule names.
    pub moved_by: Option<MovedBy>,
    /// Index of the lane.
    pub lane: usize,
}

impl Mark {
    /// The place of the mark on the axis.
    pub fn at(&self) -> Timestamp {
        self.start.unwrap_or(self.scheduled_at)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lane {
    /// Name of the job, pool or node; `None` for jobs without a name, and for runs without a known
    /// pool or node.
    pub name: Option<String>,
    /// The job of the lane, if each job has a lane.
    pub job: Option<JobId>,
    /// Number of marks.
    pub marks: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub enum TimelineContent {
    Marks {
        lanes: Vec<Lane>,
        /// In the order of their places on the axis.
        marks: Vec<Mark>,
        /// Number of runs that were fired in the period but are no longer in the history; `None`
        /// if unknown.
        not_kept: Option<u64>,
    },
    Density(Density),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    pub period: TimelinePeriod,
    pub as_of: Timestamp,
    pub by: LaneBy,
    pub job: Option<JobId>,
    pub content: TimelineContent,
}

/// A valid query, and the time at which it is answered.
#[derive(Copy, Clone, Debug)]
struct Request<'a> {
    scope: &'a Scope,
    period: TimelinePeriod,
    job: Option<JobId>,
    limit: usize,
    now: Timestamp,
}

impl Runs {
    /// Returns the past, active and future runs of a period, as marks if they are few.
    pub async fn timeline(
        &self,
        scope: &Scope,
        balancing: &Balancing,
        query: TimelineQuery,
    ) -> Result<Timeline> {
        let now = self.store.now().await?;
        let TimelineQuery { by, job, limit_marks, .. } = query;
        let period = TimelinePeriod::new(query.from, query.to, now).map_err(refusal)?;
        check_job(&*self.store, scope, job).await?;
        let limit_marks = limit_marks.min(MARKS_MAX);
        let request = Request { scope, period, job, limit: limit_marks as usize, now };
        let content = match job {
            Some(_) => self.of_job(request, by).await?,
            None => self.of_tenant(request, balancing, by).await?,
        };
        Ok(Timeline { period, as_of: now, by, job, content })
    }

    async fn of_tenant(
        &self,
        request: Request<'_>,
        balancing: &Balancing,
        by: LaneBy,
    ) -> Result<TimelineContent> {
        let TenantDensity { density, past_slots, outlook } =
            self.tenant_density(request, balancing).await?;
        if outlook.is_dense(request.limit as u32) {
            return Ok(TimelineContent::Density(density));
        }
        let found = self.marks(request).await?;
        if !found.fits(request.limit) {
            return Ok(TimelineContent::Density(density));
        }
        let is_kept = |mark: &&Mark| density::was_fired_in(mark, past_slots);
        let kept = found.runs.iter().filter(is_kept).count() as u64;
        Ok(found.in_lanes(by, Some(outlook.fired.saturating_sub(kept))))
    }

    async fn of_job(&self, request: Request<'_>, by: LaneBy) -> Result<TimelineContent> {
        let found = self.marks(request).await?;
        if found.fits(request.limit) {
            return Ok(found.in_lanes(by, None));
        }
        Ok(TimelineContent::Density(density::of_job(request, &found)))
    }
}

impl FoundMarks {
    fn in_lanes(self, by: LaneBy, not_kept: Option<u64>) -> TimelineContent {
        // A job that was fired between two reads has its run in both lists.
        let stored: BTreeMap<_, _> =
            self.runs.iter().map(|mark| ((mark.job, mark.scheduled_at), ())).collect();
        let mut marks = self.runs;
        let is_new = |mark: &Mark| !stored.contains_key(&(mark.job, mark.scheduled_at));
        marks.extend(self.expected.into_iter().filter(is_new));
        marks.sort_by(|a, b| (a.at(), &a.job_name, a.job).cmp(&(b.at(), &b.job_name, b.job)));
        let keys: Vec<_> = marks.iter().map(|mark| lane_key(mark, by)).collect();
        let (lanes, of_marks) = lanes(&keys);
        for (mark, lane) in marks.iter_mut().zip(of_marks) {
            mark.lane = lane;
        }
        let lanes = lanes.into_iter().map(|((_, name, job), marks)| Lane { name, job, marks });
        TimelineContent::Marks { lanes: lanes.collect(), marks, not_kept }
    }
}

/// Lanes without a name follow the lanes with a name.
fn lane_key(mark: &Mark, by: LaneBy) -> (bool, Option<String>, Option<JobId>) {
    let (name, job) = match by {
        LaneBy::Job => (&mark.job_name, Some(mark.job)),
        LaneBy::Pool => (&mark.pool, None),
        LaneBy::Node => (&mark.node, None),
    };
    (name.is_none(), name.clone(), job)
}

fn refusal(error: InvalidPeriod) -> CommandError {
    let message = match error {
        InvalidPeriod::Empty { from, to } => {
            format!("{to} is not after from, which is {from}; choose a later to")
        }
        InvalidPeriod::TooLong { from, to } => {
            let days = LENGTH_MAX.as_micros() / 86_400_000_000;
            format!(
                "{to} is more than {days} days after from, which is {from}; choose a period of at \
                 most {days} days"
            )
        }
    };
    CommandError::InvalidParameter(vec![Fault::new("to", message)])
}
