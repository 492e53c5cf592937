//! Store operations on targets, which are the websites or other things that jobs work on.

use std::collections::HashMap;

use evenkeel_core::{JobId, JobNo, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// The fields of a target that users set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TargetFields {
    /// An external id, unique within the tenant.
    pub source_id: Option<String>,
    pub name: Option<String>,
    pub url: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewTarget {
    /// Number of the target; `None` lets the store assign the next number of the tenant.
    pub number: Option<i64>,
    pub fields: TargetFields,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Unique within the tenant.
    pub number: i64,
    pub fields: TargetFields,
    /// When a run last succeeded for a job that referred to this target at that time. Runs of jobs
    /// that were deleted later count as well.
    pub last_success_at: Option<Timestamp>,
    /// Number of jobs that refer to the target.
    pub jobs: u64,
    /// A number that every change of the target increments.
    pub generation: i32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CreatedTarget {
    Created(Target),
    /// Contains the existing target that already has the requested number or source id.
    Exists(Target),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangedTarget {
    Done(Target),
    NotFound,
    /// The generation of the target is not the expected one. Nothing changed; contains the stored
    /// target.
    Stale(Target),
    /// Contains the number of the target that already has the source id.
    SourceTaken(i64),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DeletedTarget {
    Done {
        /// Number of jobs that referred to the target and now refer to no target.
        detached: u64,
    },
    NotFound,
    /// Nothing changed, because jobs still refer to the target; contains the number of these jobs.
    InUse(u64),
}

/// A target for which no run has succeeded recently.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StaleTarget {
    pub tenant: TenantNo,
    pub number: i64,
    pub last_success_at: Option<Timestamp>,
    /// The job to run for the target: the oldest active job that refers to it and has an executor.
    pub job: Option<JobId>,
    /// Earliest next scheduled time of the active jobs that refer to the target and have an
    /// executor.
    pub next_at: Option<Timestamp>,
    /// True if a job that refers to the target has an active run.
    pub is_live: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaleTargets {
    pub targets: Vec<StaleTarget>,
    /// The next call continues after this target; `None` if all targets were read.
    pub next: Option<(TenantNo, i64)>,
}

/// Returns true if no run for the target has succeeded since `before`. A target that never had a
/// successful run is stale if it was created before `before`.
pub fn is_stale(
    last_success_at: Option<Timestamp>,
    created_at: Timestamp,
    before: Timestamp,
) -> bool {
    last_success_at.unwrap_or(created_at) < before
}

verbs! {
    /// Store operations on targets.
    ///
    /// A job refers to its target by number. The target number of a job is not checked, so a job
    /// may refer to a target that does not exist yet or was deleted.
    trait TargetStore {}

    /// Creates a target, unless another target has its number or source id. A target without a
    /// given number gets the lowest unused number above all numbers that the store has assigned.
    /// Numbers chosen by users do not influence which numbers the store assigns, except that used
    /// numbers are skipped.
    write fn create_target(scope: &Scope, target: NewTarget, now: Now) -> CreatedTarget;

    /// Returns the tenant's targets with these numbers, in the order of `numbers`. Takes at most
    /// [`COMMANDS_MAX`](crate::COMMANDS_MAX) numbers.
    read fn get_targets(scope: &Scope, numbers: &[i64]) -> Vec<Option<Target>>;

    /// Returns the URLs of the tenant's targets with these numbers. Reads only the targets, so the
    /// cost does not grow with the number of jobs that refer to them.
    read fn target_urls(scope: &Scope, numbers: &[i64]) -> HashMap<i64, Option<String>>;

    /// Returns the tenant's targets ordered by number.
    read fn list_targets(scope: &Scope, page: PageRequest<i64>) -> Page<Target, i64>;

    /// Replaces the fields of a target if its generation is `if_generation`, or in any case if
    /// `if_generation` is `None`.
    write fn change_target(
        scope: &Scope,
        number: i64,
        if_generation: Option<i32>,
        fields: TargetFields,
        now: Now,
    ) -> ChangedTarget;

    /// Deletes a target to which no job refers. With `detach`, jobs that refer to the target no
    /// longer have a target and get a new generation.
    write fn delete_target(scope: &Scope, number: i64, detach: bool) -> DeletedTarget;

    /// Returns the tenant's jobs that refer to the target, ordered by internal number, starting
    /// after the job `after`.
    read fn jobs_of_target(scope: &Scope, number: i64, after: Option<JobNo>, limit: u32)
        -> Vec<(JobNo, JobId)>;

    /// Reads up to `limit` targets of all tenants, ordered by tenant and number, starting after
    /// `after`. Returns the targets for which [no run has succeeded](is_stale) since `before`.
    read fn stale_targets(before: Timestamp, after: Option<(TenantNo, i64)>, limit: u32)
        -> StaleTargets;
}
