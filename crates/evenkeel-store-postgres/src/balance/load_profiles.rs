//! Counts how many jobs of a tenant have each load profile, the set of time slots in which the runs
//! of a job fall.
//!
//! A transaction that changes the next run time or the load profile of jobs adds up the changes of
//! the job counts. The last statement of the transaction writes the changed counts in the order of
//! tenants and keys. So a transaction locks job counts only briefly, and two transactions that
//! change the same counts cannot deadlock.

use std::borrow::Cow;
use std::collections::BTreeMap;

use evenkeel_core::TenantNo;
use evenkeel_core::balance::{Load, LoadProfileKey};
use evenkeel_store::{LoadProfileCount, Scope, StoreError};
use tokio_postgres::Row;

use crate::PostgresStore;
use crate::connection::Connection;
use crate::error::Tried;
use crate::rows::{count, get, span, span_micros};

pub(super) async fn load_profiles(
    store: &PostgresStore,
    after: Option<(TenantNo, LoadProfileKey)>,
    limit: u32,
) -> Result<Vec<LoadProfileCount>, StoreError> {
    let (tenant, key) = after.map_or((i32::MIN, i64::MIN), |(tenant, key)| (tenant.0, key.0));
    store
        .api
        .run((tenant, key, i64::from(limit)), |connection, args| async move {
            let (tenant, key, limit) = &*args;
            let sql = sql!("load_profiles");
            connection.rows(sql, &[tenant, key, limit]).await?.iter().map(read_count).collect()
        })
        .await
}

pub(super) async fn tenant_load_profiles(
    store: &PostgresStore,
    scope: &Scope,
    after: Option<LoadProfileKey>,
    limit: u32,
) -> Result<Vec<LoadProfileCount>, StoreError> {
    let args = (scope.tenant.0, after.map(|key| key.0), i64::from(limit));
    store
        .api
        .run(args, |connection, args| async move {
            let (tenant, after, limit) = &*args;
            let sql = sql!("tenant_load_profiles");
            connection.rows(sql, &[tenant, after, limit]).await?.iter().map(read_count).collect()
        })
        .await
}

fn read_count(row: &Row) -> Tried<LoadProfileCount> {
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
pub(crate) struct Counts<'a> {
    changes: BTreeMap<(i32, i64), Change<'a>>,
}

#[derive(Debug, Default)]
struct Change<'a> {
    /// The text of the load profile, set if a job was added to it.
    profile: Cow<'a, str>,
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
        let change = self.changes.entry((tenant, key)).or_default();
        change.profile = Cow::Borrowed(profile);
        change.jobs += 1;
        change.cost += i128::from(cost);
    }

    /// Stops counting a job of this cost under a load profile.
    pub(crate) fn remove_from(&mut self, tenant: i32, key: i64, cost: i64) {
        let change = self.changes.entry((tenant, key)).or_default();
        change.jobs -= 1;
        change.cost -= i128::from(cost);
    }

    /// Changes the cost of a job that is counted under a load profile.
    pub(crate) fn change_cost(&mut self, tenant: i32, key: i64, more: i64) {
        self.changes.entry((tenant, key)).or_default().cost += i128::from(more);
    }

    /// Writes the changed job counts of load profiles. A transaction must call this function last.
    pub(crate) async fn write(&self, connection: &Connection) -> Tried<()> {
        let changes = || {
            let is_change = |change: &Change<'_>| change.jobs != 0 || change.cost != 0;
            self.changes.iter().filter(move |(_, change)| is_change(change))
        };
        let tenants: Vec<i32> = changes().map(|((tenant, _), _)| *tenant).collect();
        if tenants.is_empty() {
            return Ok(());
        }
        let keys: Vec<i64> = changes().map(|((_, key), _)| *key).collect();
        let profiles: Vec<&str> = changes().map(|(_, change)| &*change.profile).collect();
        let jobs: Vec<i64> = changes().map(|(_, change)| change.jobs).collect();
        let costs: Vec<String> = changes().map(|(_, change)| change.cost.to_string()).collect();
        let sql = sql!("load_profiles_count");
        connection.change(sql, &[&tenants, &keys, &profiles, &jobs, &costs]).await?;
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

impl LoadColumns {
    pub(crate) fn push(&mut self, load: Option<&Load>) {
        self.profile.push(load.map_or(0, |load| load.key.0));
        self.cost_us.push(load.map_or(0, |load| span_micros(load.cost)));
        self.cost_stated.push(load.is_some_and(|load| load.is_stated));
    }
}

impl<'a> FromIterator<Option<&'a Load>> for LoadColumns {
    fn from_iter<I: IntoIterator<Item = Option<&'a Load>>>(loads: I) -> Self {
        let mut columns = Self::default();
        loads.into_iter().for_each(|load| columns.push(load));
        columns
    }
}

/// Stops counting those of `jobs` that have lost their next run time in this transaction. A
/// transaction must call this function last.
pub(crate) async fn count_ended(connection: &Connection, jobs: &[i64]) -> Tried<()> {
    connection.change(sql!("load_profiles_count_ended"), &[&jobs]).await?;
    Ok(())
}
