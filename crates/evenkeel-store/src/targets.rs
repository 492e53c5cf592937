//! Verbs on targets: what jobs are about, whoever runs them.

use std::collections::HashMap;

use evenkeel_core::{JobId, JobNo, TenantNo, Timestamp};

use crate::verbs::verbs;
use crate::{Now, Page, PageRequest, Scope};

/// What people say of a target.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TargetFields {
    /// What others call it; no two targets of a tenant have the same.
    pub source_id: Option<String>,
    /// For people.
    pub name: Option<String>,
    /// Its address.
    pub url: Option<String>,
}

/// A target that is to be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewTarget {
    /// Its number; the tenant's next one if none is said.
    pub number: Option<i64>,
    /// What is said of it.
    pub fields: TargetFields,
}

/// A target as stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Its number within its tenant.
    pub number: i64,
    /// What is said of it.
    pub fields: TargetFields,
    /// When a job last ended well that named it then; jobs that are gone count as well.
    pub last_success_at: Option<Timestamp>,
    /// So many jobs name it.
    pub jobs: u64,
    /// Raised by every change.
    pub generation: i32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// What became of a new target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CreatedTarget {
    /// It is there now.
    Created(Target),
    /// This one has its number or its source's id.
    Exists(Target),
}

/// What became of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangedTarget {
    /// It is like this now.
    Done(Target),
    /// There is no such target in the scope.
    NotFound,
    /// Its generation was another; nothing was changed. This is what it is like.
    Stale(Target),
    /// The target with this number has the source's id.
    SourceTaken(i64),
}

/// What became of a deletion.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DeletedTarget {
    /// It is gone, and so many jobs name it no more.
    Done {
        /// These were detached.
        detached: u64,
    },
    /// There is no such target in the scope.
    NotFound,
    /// So many jobs name it; nothing was changed.
    InUse(u64),
}

/// A target that has had no success for long.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StaleTarget {
    /// Whose it is.
    pub tenant: TenantNo,
    /// Its number.
    pub number: i64,
    /// Its last success.
    pub last_success_at: Option<Timestamp>,
    /// The oldest active job that names it and has an executor: the one to be run for it.
    pub job: Option<JobId>,
    /// The earliest next time of such a job.
    pub next_at: Option<Timestamp>,
    /// Does something of a job that names it wait or run?
    pub is_live: bool,
}

/// What was found by looking at some targets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaleTargets {
    /// Those without a success.
    pub targets: Vec<StaleTarget>,
    /// Where the next look goes on; `None` when the end was reached.
    pub next: Option<(TenantNo, i64)>,
}

/// Has a target that was made at `created_at` had no success since `before`? One that never had any
/// counts from when it was made.
pub fn is_stale(
    last_success_at: Option<Timestamp>,
    created_at: Timestamp,
    before: Timestamp,
) -> bool {
    last_success_at.unwrap_or(created_at) < before
}

verbs! {
    /// What is done with targets.
    ///
    /// A job names its target by number. That such a target exists is not looked at: who names one that
    /// does not, or that is deleted meanwhile, names nothing until it is made.
    trait TargetStore {}

    /// Makes a target, unless there is one with its number or its source's id. Numbers count from 1
    /// within the tenant; one that nobody chose is the lowest free one above all others that nobody
    /// chose, so that no choice uses the numbers up.
    write fn create_target(scope: &Scope, target: NewTarget, now: Now) -> CreatedTarget;

    /// The scope's targets with these numbers, in the order asked for; at most
    /// [`COMMANDS_MAX`](crate::COMMANDS_MAX) are asked for.
    read fn get_targets(scope: &Scope, numbers: &[i64]) -> Vec<Option<Target>>;

    /// The addresses of those of the scope's targets with these numbers that are there. Looks at
    /// nothing else, so that its cost does not grow with the jobs that name them.
    read fn target_urls(scope: &Scope, numbers: &[i64]) -> HashMap<i64, Option<String>>;

    /// The scope's targets by number.
    read fn list_targets(scope: &Scope, page: PageRequest<i64>) -> Page<Target, i64>;

    /// Says something else of a target, if its generation is the given one or none is given.
    write fn change_target(
        scope: &Scope,
        number: i64,
        if_generation: Option<i32>,
        fields: TargetFields,
        now: Now,
    ) -> ChangedTarget;

    /// Deletes a target that no job names; with `detach`, jobs that name it name none from then on, and
    /// have another generation.
    write fn delete_target(scope: &Scope, number: i64, detach: bool) -> DeletedTarget;

    /// The scope's jobs that name this target, by what the store calls them, after `after`.
    read fn jobs_of_target(scope: &Scope, number: i64, after: Option<JobNo>, limit: u32)
        -> Vec<(JobNo, JobId)>;

    /// Looks at up to `limit` targets of all tenants, by tenant and number, after `after`, for those
    /// that [have had no success](is_stale) since `before`.
    read fn stale_targets(before: Timestamp, after: Option<(TenantNo, i64)>, limit: u32)
        -> StaleTargets;
}
