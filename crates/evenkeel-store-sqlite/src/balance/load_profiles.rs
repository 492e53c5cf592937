//! How many jobs have which rhythm.
//!
//! Whatever gives or takes a job its next time keeps the counts in the same transaction. Changes of
//! a batch are added up first: however many jobs it has, each rhythm is written once.

use std::collections::BTreeMap;

use evenkeel_core::balance::{COST_MAX, Load, LoadProfileKey};
use evenkeel_core::{JobNo, Span, TenantNo};
use evenkeel_store::LoadProfileCount;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Answer;

/// What a job's row says of its count.
#[derive(Copy, Clone, Default)]
pub(crate) struct Counted {
    /// 0 if it counts for nothing.
    pub(crate) key: i64,
    pub(crate) cost: i64,
    pub(crate) is_stated: bool,
}

impl Counted {
    pub(crate) fn as_load(load: Option<&Load>) -> Self {
        load.map_or_else(Self::default, |load| Self {
            key: load.key.0,
            cost: stored_cost(load.cost),
            is_stated: load.is_stated,
        })
    }
}

/// A cost as it is stored.
fn stored_cost(cost: Span) -> i64 {
    cost.min(COST_MAX).as_micros().cast_signed()
}

/// By how much counts change.
#[derive(Default)]
pub(crate) struct Counts {
    by: BTreeMap<(i32, i64), Change>,
}

#[derive(Default)]
struct Change {
    jobs: i64,
    cost: i64,
    /// There if some job came.
    profile: Option<String>,
}

impl Counts {
    /// A job that was not there counts like this; gives what its row is to say.
    pub(crate) fn add(&mut self, tenant: TenantNo, load: Option<&Load>) -> Counted {
        let counted = Counted::as_load(load);
        if let Some(load) = load {
            self.come(tenant.0, counted.key, counted.cost, &load.profile);
        }
        counted
    }

    /// A job has this rhythm from here on.
    pub(super) fn come(&mut self, tenant: i32, key: i64, cost: i64, profile: &str) {
        let change = self.by.entry((tenant, key)).or_default();
        change.jobs += 1;
        change.cost += cost;
        change.profile.get_or_insert_with(|| profile.to_owned());
    }

    /// A job had this rhythm until here.
    pub(super) fn go(&mut self, tenant: i32, key: i64, cost: i64) {
        let change = self.by.entry((tenant, key)).or_default();
        change.jobs -= 1;
        change.cost -= cost;
    }

    /// A job counts for more or less.
    pub(super) fn recount_load(&mut self, tenant: i32, key: i64, more: i64) {
        self.by.entry((tenant, key)).or_default().cost += more;
    }

    /// Counts a job that is there like this, whatever it counted for before.
    pub(crate) fn recount(
        &mut self,
        connection: &Connection,
        job: JobNo,
        load: Option<&Load>,
    ) -> Answer<()> {
        let found: Option<(i32, Option<i64>, i64)> = connection
            .prepare_cached(sql!("load_profiles_of"))?
            .query_row([job.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((tenant, key, cost)) = found else { return Ok(()) };
        if let Some(key) = key.filter(|key| *key != 0) {
            self.go(tenant, key, cost);
        }
        let counted = self.add(TenantNo(tenant), load);
        connection.prepare_cached(sql!("load_profiles_set"))?.execute(params![
            job.0,
            counted.key,
            counted.cost,
            counted.is_stated
        ])?;
        Ok(())
    }

    /// Writes all changes down.
    pub(crate) fn write(self, connection: &Connection) -> Answer<()> {
        for ((tenant, key), change) in self.by {
            let Change { jobs, cost, profile } = change;
            if jobs > 0 {
                connection.prepare_cached(sql!("load_profiles_add"))?.execute(params![
                    tenant,
                    key,
                    jobs,
                    cost,
                    profile.unwrap_or_default()
                ])?;
            } else if (jobs, cost) != (0, 0) {
                connection
                    .prepare_cached(sql!("load_profiles_change"))?
                    .execute(params![tenant, key, jobs, cost])?;
            }
            if jobs < 0 {
                connection
                    .prepare_cached(sql!("load_profiles_delete"))?
                    .execute(params![tenant, key])?;
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
    let (tenant, key) =
        after.map_or((i64::MIN, i64::MIN), |(tenant, key)| (i64::from(tenant.0), key.0));
    let mut statement = db.prepare_cached(sql!("load_profiles"))?;
    let found = statement.query_map(params![tenant, key, limit], count_from)?;
    Ok(found.collect::<Result<_, _>>()?)
}

pub(super) fn tenant_load_profiles(
    db: &Connection,
    tenant: TenantNo,
    after: Option<LoadProfileKey>,
    limit: u32,
) -> Answer<Vec<LoadProfileCount>> {
    // No key is 0, but some are below: without a place the list begins before all of them.
    let after = after.map_or(i64::MIN, |key| key.0);
    let mut statement = db.prepare_cached(sql!("tenant_load_profiles"))?;
    let found = statement.query_map(params![tenant.0, after, limit], count_from)?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn count_from(row: &Row<'_>) -> rusqlite::Result<LoadProfileCount> {
    Ok(LoadProfileCount {
        tenant: TenantNo(row.get(0)?),
        key: LoadProfileKey(row.get(1)?),
        profile: row.get(2)?,
        jobs: row.get::<_, i64>(3)?.unsigned_abs(),
        cost: Span::from_micros(row.get::<_, i64>(4)?.unsigned_abs()),
    })
}
