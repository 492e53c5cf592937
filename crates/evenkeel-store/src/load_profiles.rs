//! The load of all jobs, read from the store.

use std::collections::BTreeMap;

use evenkeel_core::balance::{Horizon, LoadProfile, LoadProfileKey, Loads};
use evenkeel_core::{Span, TenantNo};

use crate::{BalanceStore, LoadProfileCount, StoreError};

/// LoadProfiles that are read at once.
const PAGE: u32 = 5000;

/// Jobs of one rhythm.
#[derive(Clone, PartialEq, Debug)]
pub struct ProfileLoad {
    /// The name of the rhythm.
    pub key: LoadProfileKey,
    /// When they run.
    pub profile: LoadProfile,
    /// So many.
    pub jobs: u64,
    /// What one run of each costs, together.
    pub cost: Span,
}

/// How many jobs there are of which rhythm, tenant by tenant.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LoadProfiles {
    by_tenant: BTreeMap<TenantNo, Vec<ProfileLoad>>,
    unreadable: u64,
}

impl LoadProfiles {
    /// Those of all tenants, as they are in `store` now.
    pub async fn read<S: BalanceStore + ?Sized>(store: &S) -> Result<Self, StoreError> {
        let mut profiles = Self::default();
        let mut after = None;
        loop {
            let page = store.load_profiles(after, PAGE).await?;
            let is_last = page.len() < PAGE as usize;
            after = page.last().map(|count| (count.tenant, count.key));
            page.into_iter().for_each(|count| profiles.add(count));
            if is_last {
                return Ok(profiles);
            }
        }
    }

    fn add(&mut self, count: LoadProfileCount) {
        let LoadProfileCount { tenant, key, profile, jobs, cost } = count;
        match serde_json::from_str(&profile) {
            Ok(profile) => {
                let counted = ProfileLoad { key, profile, jobs, cost };
                self.by_tenant.entry(tenant).or_default().push(counted);
            }
            // A newer version may know what it is; its jobs run all the same.
            Err(_) => self.unreadable += jobs,
        }
    }

    /// So many jobs have a rhythm that can't be read; they count for nothing.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Everybody who has a job that recurs or waits for its time.
    pub fn tenants(&self) -> impl Iterator<Item = TenantNo> {
        self.by_tenant.keys().copied()
    }

    /// Those of a tenant.
    pub fn of(&self, tenant: TenantNo) -> &[ProfileLoad] {
        self.by_tenant.get(&tenant).map_or(&[], Vec::as_slice)
    }

    /// The load of a tenant.
    pub fn loads_of(&self, tenant: TenantNo, horizon: Horizon) -> Loads {
        loads(self.of(tenant), horizon)
    }

    /// The load of everybody.
    pub fn loads(&self, horizon: Horizon) -> Loads {
        loads(self.by_tenant.values().flatten(), horizon)
    }

    /// How many there are of all tenants.
    pub fn count(&self) -> usize {
        self.by_tenant.values().map(Vec::len).sum()
    }

    /// The only tenant, if there is but one.
    pub fn only_tenant(&self) -> Option<TenantNo> {
        let mut tenants = self.tenants();
        tenants.next().filter(|_| tenants.next().is_none())
    }
}

fn loads<'a>(counted: impl IntoIterator<Item = &'a ProfileLoad>, horizon: Horizon) -> Loads {
    let mut loads = Loads::new(horizon);
    for ProfileLoad { profile, jobs, cost, .. } in counted {
        loads.add(profile, *jobs, *cost);
    }
    loads
}
