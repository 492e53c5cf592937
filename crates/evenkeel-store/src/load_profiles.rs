//! Load profiles of all jobs, read from a store: in which time slots the jobs run.

use std::collections::BTreeMap;

use evenkeel_core::balance::{Horizon, LoadProfile, LoadProfileKey, Loads};
use evenkeel_core::{Span, TenantNo};

use crate::{BalanceStore, LoadProfileCount, StoreError};

/// Number of load profiles that are read at once.
const PAGE: u32 = 5000;

/// The jobs of a tenant with the same load profile, which run in the same time slots.
#[derive(Clone, PartialEq, Debug)]
pub struct ProfileLoad {
    pub key: LoadProfileKey,
    pub profile: LoadProfile,
    pub jobs: u64,
    /// Sum of the cost of one run of each job.
    pub cost: Span,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct LoadProfiles {
    by_tenant: BTreeMap<TenantNo, Vec<ProfileLoad>>,
    unreadable: u64,
}

impl LoadProfiles {
    /// Reads the load profiles of all tenants.
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
            // A newer version of Evenkeel may have written this load profile. Jobs with an unknown
            // load profile still run.
            Err(_) => self.unreadable += jobs,
        }
    }

    /// Returns the number of jobs that are ignored because their load profile cannot be parsed.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Returns the tenants that have a job with a next scheduled time.
    pub fn tenants(&self) -> impl Iterator<Item = TenantNo> {
        self.by_tenant.keys().copied()
    }

    pub fn of(&self, tenant: TenantNo) -> &[ProfileLoad] {
        self.by_tenant.get(&tenant).map_or(&[], Vec::as_slice)
    }

    pub fn loads_of(&self, tenant: TenantNo, horizon: Horizon) -> Loads {
        loads(self.of(tenant), horizon)
    }

    /// Returns the expected runs of all tenants per time slot.
    pub fn loads(&self, horizon: Horizon) -> Loads {
        loads(self.by_tenant.values().flatten(), horizon)
    }

    pub fn count(&self) -> usize {
        self.by_tenant.values().map(Vec::len).sum()
    }

    /// Returns the tenant if only one tenant has jobs.
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
