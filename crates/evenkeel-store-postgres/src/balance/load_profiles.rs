//! Counts how many jobs of a tenant have each load profile, the set of time slots in which the runs
//! of a job fall.
//!
//! A transaction that changes the next run time or the load profile of jobs first adds up the
//! changes in the number of jobs per load profile. The last statement of the transaction writes the
//! changed job counts in the order of tenants and keys. So a transaction locks job counts only
//! briefly, and two transactions that change the same job counts cannot deadlock.

use std::collections::BTreeMap;

use evenkeel_core::TenantNo;
use evenkeel_core::balance::{Load, LoadProfileKey};
use evenkeel_store::LoadProfileCount;
use tokio_postgres::Row;

use crate::connection::{Connection, Params};
use crate::error::Tried;
use crate::rows::{column, count, get, span, span_micros};

pub(super) fn read_count(row: &Row) -> Tried<LoadProfileCount> {
    Ok(LoadProfileCount {
        tenant: TenantNo(get(row, "tenant_no")?),
        key: LoadProfileKey(get(row, "key")?),
        profile: get(row, "profile")?,
        jobs: count(row, "jobs")?,
        cost: span(get(row, "cost_us")?),
    })
}

/// The sum of all changes to the job counts of each load profile.
#[derive(Debug, Default)]
pub(crate) struct Counts<'a>(BTreeMap<(i32, i64), Change<'a>>);

#[derive(Debug, Default)]
struct Change<'a> {
    /// The text of the load profile, set if a job was added to it.
    profile: &'a str,
    jobs: i64,
    cost: i128,
}

impl<'a> Counts<'a> {
    /// Counts a job with this load under its load profile.
    pub(crate) fn add(&mut self, tenant: i32, load: &'a Load) {
        self.add_to(tenant, load.key.0, &load.profile, span_micros(load.cost));
    }

    /// Counts a job of this cost under a load profile.
    pub(crate) fn add_to(&mut self, tenant: i32, key: i64, profile: &'a str, cost: i64) {
        let change = self.0.entry((tenant, key)).or_default();
        change.profile = profile;
        change.jobs += 1;
        change.cost += i128::from(cost);
    }

    /// Stops counting a job of this cost under a load profile.
    pub(crate) fn remove_from(&mut self, tenant: i32, key: i64, cost: i64) {
        let change = self.0.entry((tenant, key)).or_default();
        change.jobs -= 1;
        change.cost -= i128::from(cost);
    }

    /// Changes the cost of a job that is counted under a load profile.
    pub(crate) fn change_cost(&mut self, tenant: i32, key: i64, more: i64) {
        self.0.entry((tenant, key)).or_default().cost += i128::from(more);
    }

    /// Writes the changed job counts of load profiles. A transaction must call this function last.
    pub(crate) async fn write(&self, connection: &Connection) -> Tried<()> {
        let changes = || {
            let is_change = |change: &Change<'_>| change.jobs != 0 || change.cost != 0;
            self.0.iter().filter(move |(_, change)| is_change(change))
        };
        let tenants = column(changes(), |((tenant, _), _)| *tenant);
        if tenants.is_empty() {
            return Ok(());
        }
        let params: Params<'_> = &[
            &tenants,
            &column(changes(), |((_, key), _)| *key),
            &column(changes(), |(_, change)| change.profile),
            &column(changes(), |(_, change)| change.jobs),
            &column(changes(), |(_, change)| change.cost.to_string()),
        ];
        connection.change(sql!("load_profiles_count"), params).await?;
        Ok(())
    }
}

/// Load profile and cost of each job, as arrays. A job without a load profile has 0 in both arrays.
#[derive(Debug, Default)]
pub(crate) struct LoadColumns {
    pub(crate) profile: Vec<i64>,
    pub(crate) cost_us: Vec<i64>,
    pub(crate) cost_stated: Vec<bool>,
}

impl<'a> FromIterator<Option<&'a Load>> for LoadColumns {
    fn from_iter<I: IntoIterator<Item = Option<&'a Load>>>(loads: I) -> Self {
        let mut columns = Self::default();
        for load in loads {
            columns.profile.push(load.map_or(0, |load| load.key.0));
            columns.cost_us.push(load.map_or(0, |load| span_micros(load.cost)));
            columns.cost_stated.push(load.is_some_and(|load| load.is_stated));
        }
        columns
    }
}

/// Removes those of `jobs` from the load profile counts that have lost their next run time in this
/// transaction. A transaction must call this function last.
pub(crate) async fn count_ended(connection: &Connection, jobs: &[i64]) -> Tried<()> {
    connection.change(sql!("load_profiles_count_ended"), &[&jobs]).await?;
    Ok(())
}
