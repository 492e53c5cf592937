//! Counts jobs per load profile, the set of time slots in which the runs of a job fall.
//!
//! Every change of a job's next run time updates the counts of load profiles in the same
//! transaction. The changes that a batch of jobs makes are added up first, so that each load
//! profile is written once.

use std::collections::BTreeMap;

use evenkeel_core::balance::{COST_MAX, Load, LoadProfileKey};
use evenkeel_core::{JobNo, Span, TenantNo};
use evenkeel_store::LoadProfileCount;
use rusqlite::{Connection, Row};

use crate::connection::{Params, RunSql};
use crate::error::Answer;
use crate::rows::count;

/// The columns of a job's row that decide under which load profile it is counted.
#[derive(Copy, Clone, Default)]
pub(crate) struct Counted {
    /// The key of the load profile, or 0 if the job is not counted.
    pub(crate) key: i64,
    pub(crate) cost: i64,
    pub(crate) is_stated: bool,
}

/// Changes in the number of jobs per load profile.
#[derive(Default)]
pub(crate) struct Counts {
    by: BTreeMap<(i32, i64), Change>,
}

#[derive(Default)]
struct Change {
    jobs: i64,
    cost: i64,
    /// The text of the load profile, set if a job was added to it.
    profile: Option<String>,
}

impl Counts {
    /// Counts a new job under its load profile, and returns the values to store in the job's row.
    pub(crate) fn add(&mut self, tenant: TenantNo, load: Option<&Load>) -> Counted {
        let Some(Load { key, cost, is_stated, profile, .. }) = load else {
            return Counted::default();
        };
        let cost = (*cost).min(COST_MAX).as_micros().cast_signed();
        self.add_job(tenant.0, key.0, cost, profile);
        Counted { key: key.0, cost, is_stated: *is_stated }
    }

    pub(super) fn add_job(&mut self, tenant: i32, key: i64, cost: i64, profile: &str) {
        let change = self.by.entry((tenant, key)).or_default();
        change.jobs += 1;
        change.cost += cost;
        change.profile.get_or_insert_with(|| profile.to_owned());
    }

    pub(super) fn remove_job(&mut self, tenant: i32, key: i64, cost: i64) {
        let change = self.by.entry((tenant, key)).or_default();
        change.jobs -= 1;
        change.cost -= cost;
    }

    pub(super) fn change_cost(&mut self, tenant: i32, key: i64, more: i64) {
        self.by.entry((tenant, key)).or_default().cost += more;
    }

    /// Counts an existing job under its new load profile instead of the old one.
    pub(crate) fn recount(
        &mut self,
        connection: &Connection,
        job: JobNo,
        load: Option<&Load>,
    ) -> Answer<()> {
        let found: Option<(i32, i64, i64)> =
            connection.maybe_row(sql!("load_profiles_of"), &[&job], |row| {
                Ok((row.get("tenant_no")?, row.get("load_profile")?, row.get("cost_us")?))
            })?;
        let Some((tenant, key, cost)) = found else { return Ok(()) };
        if key != 0 {
            self.remove_job(tenant, key, cost);
        }
        let Counted { key, cost, is_stated } = self.add(TenantNo(tenant), load);
        connection.run(sql!("load_profiles_set"), &[&job, &key, &cost, &is_stated])
    }

    pub(crate) fn write(self, connection: &Connection) -> Answer<()> {
        for ((tenant, key), change) in self.by {
            let Change { jobs, cost, profile } = change;
            if jobs > 0 {
                let profile = profile.unwrap_or_default();
                let added: Params<'_> = &[&tenant, &key, &jobs, &cost, &profile];
                connection.run(sql!("load_profiles_add"), added)?;
            } else if (jobs, cost) != (0, 0) {
                connection.run(sql!("load_profiles_change"), &[&tenant, &key, &jobs, &cost])?;
            }
            if jobs < 0 {
                connection.run(sql!("load_profiles_delete"), &[&tenant, &key])?;
            }
        }
        Ok(())
    }
}

pub(super) fn load_profiles(
    db: &Connection,
    after: Option<(TenantNo, LoadProfileKey)>,
    limit: u32,
) -> Answer<Vec<LoadProfileCount>> {
    let (tenant, key) = after.unwrap_or((TenantNo(i32::MIN), LoadProfileKey(i64::MIN)));
    db.rows(sql!("load_profiles"), &[&tenant, &key, &limit], count_from)
}

pub(super) fn tenant_load_profiles(
    db: &Connection,
    tenant: TenantNo,
    after: Option<LoadProfileKey>,
    limit: u32,
) -> Answer<Vec<LoadProfileCount>> {
    // Keys of load profiles may be negative, so the list starts at the lowest integer.
    let after = after.unwrap_or(LoadProfileKey(i64::MIN));
    db.rows(sql!("tenant_load_profiles"), &[&tenant, &after, &limit], count_from)
}

fn count_from(row: &Row<'_>) -> Answer<LoadProfileCount> {
    Ok(LoadProfileCount {
        tenant: TenantNo(row.get("tenant_no")?),
        key: LoadProfileKey(row.get("key")?),
        profile: row.get("profile")?,
        jobs: count(row, "jobs")?,
        cost: Span::from_micros(count(row, "cost_us")?),
    })
}
