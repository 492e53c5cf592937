//! Verbs on targets: the things that jobs are about, independent of the jobs.

use std::collections::HashMap;

use evenkeel_core::{JobId, JobNo, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// The fields that users set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TargetFields {
    /// An external id, unique within the tenant.
    pub source_id: Option<String>,
    pub name: Option<String>,
    pub url: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewTarget {
    /// `None` for the next number of the tenant.
    pub number: Option<i64>,
    pub fields: TargetFields,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Unique within its tenant.
    pub number: i64,
    pub fields: TargetFields,
    /// When a run of a job that named the target at that time last succeeded. Deleted jobs count,
    /// too.
    pub last_success_at: Option<Timestamp>,
    /// The number of jobs that name the target.
    pub jobs: u64,
    /// Raised by every change.
    pub generation: i32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CreatedTarget {
    Created(Target),
    /// This target has the number or the source id.
    Exists(Target),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangedTarget {
    Done(Target),
    /// The scope has no such target.
    NotFound,
    /// The generation differs; nothing changed. Holds the target as it is.
    Stale(Target),
    /// The target with this number has the source id.
    SourceTaken(i64),
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DeletedTarget {
    Done {
        /// The number of jobs that named the target and now name none.
        detached: u64,
    },
    /// The scope has no such target.
    NotFound,
    /// This many jobs name the target; nothing changed.
    InUse(u64),
}

/// A target without a recent success.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StaleTarget {
    pub tenant: TenantNo,
    pub number: i64,
    pub last_success_at: Option<Timestamp>,
    /// The job to run for the target: the oldest active job that names it and has an executor.
    pub job: Option<JobId>,
    /// The earliest next time of such a job.
    pub next_at: Option<Timestamp>,
    /// A job that names the target has an active run.
    pub is_live: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaleTargets {
    pub targets: Vec<StaleTarget>,
    /// Where the next scan starts; `None` at the end.
    pub next: Option<(TenantNo, i64)>,
}

/// Returns true if a target has had no success since `before`. A target without any success counts
/// from its creation.
pub fn is_stale(
    last_success_at: Option<Timestamp>,
    created_at: Timestamp,
    before: Timestamp,
) -> bool {
    last_success_at.unwrap_or(created_at) < before
}

verbs! {
    /// Verbs on targets.
    ///
    /// A job names its target by number. The number is not checked: a job may name a target that
    /// does not exist yet or was deleted.
    trait TargetStore {}

    /// Creates a target, unless its number or source id is taken. Without a number it gets the
    /// lowest free number above all numbers that the store assigned before. So numbers that users
    /// choose do not use up the store's.
    write fn create_target(scope: &Scope, target: NewTarget, now: Now) -> CreatedTarget;

    /// Returns the scope's targets with these numbers, in the order of `numbers`. At most
    /// [`COMMANDS_MAX`](crate::COMMANDS_MAX) numbers.
    read fn get_targets(scope: &Scope, numbers: &[i64]) -> Vec<Option<Target>>;

    /// Returns the URLs of the scope's targets with these numbers. Reads nothing else, so the cost
    /// does not grow with the jobs that name them.
    read fn target_urls(scope: &Scope, numbers: &[i64]) -> HashMap<i64, Option<String>>;

    /// Returns the scope's targets by number.
    read fn list_targets(scope: &Scope, page: PageRequest<i64>) -> Page<Target, i64>;

    /// Replaces the fields of a target, if its generation is `if_generation` or that is `None`.
    write fn change_target(
        scope: &Scope,
        number: i64,
        if_generation: Option<i32>,
        fields: TargetFields,
        now: Now,
    ) -> ChangedTarget;

    /// Deletes a target that no job names. With `detach`, jobs that name it name none afterwards
    /// and get a new generation.
    write fn delete_target(scope: &Scope, number: i64, detach: bool) -> DeletedTarget;

    /// Returns the scope's jobs that name the target, by internal number, after `after`.
    read fn jobs_of_target(scope: &Scope, number: i64, after: Option<JobNo>, limit: u32)
        -> Vec<(JobNo, JobId)>;

    /// Reads up to `limit` targets of all tenants, by tenant and number, after `after`, and returns
    /// those that [have had no success](is_stale) since `before`.
    read fn stale_targets(before: Timestamp, after: Option<(TenantNo, i64)>, limit: u32)
        -> StaleTargets;
}
