//! Where load lies, and where it should.
//!
//! Load is counted by [`LoadProfile`]: the times of a job in quarters of an hour or finer. Firing does not
//! change a job's rhythm, so only commands change the counts, and what they take in memory depends
//! on how many rhythms there are, not on how many jobs.

mod accepted;
mod choose;
mod hits;
mod load;
mod loads;
mod moves;
mod place;
mod plan;
mod rhythm;
mod seconds;
mod settings;
mod spread;
#[cfg(test)]
mod test_loads;
mod wishes;

pub use load::{ASSUMED_COST, COST_MAX, Load};
pub use loads::{Horizon, Loads, Measure};
pub use moves::{Move, MovesError, decode_moves, encode_moves};
pub use place::{ToPlace, Turn, first_time};
pub use plan::{Placement, Plan, SkipReason, Wanted, moved_back, plan};
pub use rhythm::{Beat, Hours, LoadProfile, LoadProfileKey};
pub use settings::{BalanceSettings, Policy, SearchWindow};
pub use spread::{Grain, Spread};
