//! Load balancing: counts the load of jobs by slot, places new jobs and plans rebalances.
//!
//! Load is counted per [`LoadProfile`]: the slots of 15 minutes (or finer) in which a job's runs
//! fall. Firing does not change a job's profile, so only commands change the counts. The memory
//! depends on the number of profiles, not on the number of jobs.

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
