//! Where load lies, and where it should.
//!
//! Load is counted by [`LoadProfile`]: the times of a job in quarters of an hour or finer. Firing does not
//! change a job's rhythm, so only commands change the counts, and what they take in memory depends
//! on how many rhythms there are, not on how many jobs.

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
pub use plan::{Placement, Plan, SkipReason, Wanted, moved_back, plan};
pub use settings::{BalanceSettings, Policy, SearchWindow};
pub use spread::{Granularity, Spread};
