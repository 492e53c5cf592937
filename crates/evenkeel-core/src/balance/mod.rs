//! Load balancing: counts load per time slot, chooses the start times of new jobs, and plans which
//! jobs a rebalance moves to other start times.
//!
//! Jobs whose runs fall into the same time slots (of 15 minutes or less) share a [`LoadProfile`],
//! and load is counted per profile. Firing a job does not change its load profile, so only commands
//! such as create, pause and delete change the counted load. Memory use depends on the number of
//! load profiles, not on the number of jobs.

mod accepted;
mod choose;
mod constraints;
mod hits;
mod load;
mod load_profile;
mod loads;
mod moves;
mod place;
mod plan;
mod seconds;
mod settings;
mod spread;
#[cfg(test)]
mod test_loads;

pub use load::{ASSUMED_COST, COST_MAX, Load};
pub use load_profile::{Hours, LoadProfile, LoadProfileKey, Recurrence};
pub use loads::{Horizon, Loads, Measure};
pub use moves::{Move, MovesError, decode_moves, encode_moves};
pub use place::{JobToPlace, NodeTurn, first_time};
pub use plan::{Placement, Plan, PlanBounds, SkipReason, moved_back, plan};
pub use settings::{BalanceSettings, Policy, SearchWindow};
pub use spread::{Granularity, Spread};
