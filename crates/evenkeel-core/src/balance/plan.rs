//! Plans a rebalance: decides which jobs are moved to which other start times.
//!
//! The plan makes the number of runs per time slot as equal as possible. To do so, the planner
//! lowers the sum of the squared numbers of runs per time slot. In the first rounds of planning,
//! the cost of runs counts as much as the number of runs. In later rounds of planning, the cost of
//! runs counts less, and in the last round not at all. Finally, expensive jobs swap start times
//! with cheap jobs, as long as the number of runs per time slot stays as even as before. Moves are
//! listed roughly in the order of their benefit, and the plan ends where further moves no longer
//! improve the evenness score. The evenness score after a rebalance is never lower than before the
//! rebalance.

mod classes;
mod costs;
mod guards;
mod heaps;
mod improve;
mod limits;
#[cfg(test)]
mod samples;
mod state;
#[cfg(test)]
mod tests;
mod times;

use std::collections::{BTreeMap, HashMap};

use self::classes::{Classes, Mover};
use self::guards::reason_to_stay;
use self::limits::change_load;
use self::state::PlanState;
pub use self::times::moved_back;
use super::load_profile::{LoadProfile, LoadProfileKey};
use super::loads::{Loads, Measure};
use super::moves::Move;
use super::settings::BalanceSettings;
use super::spread::{Granularity, Spread};
use crate::ids::JobNo;
use crate::named_enum;
use crate::time::{Span, Timestamp};

/// The data about a job from which a rebalance is planned.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    pub job: JobNo,
    /// See [`JobToPlace::seed`](super::JobToPlace::seed).
    pub seed: u64,
    pub generation: i32,
    pub next_at: Timestamp,
    /// The last scheduled time that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    pub placed_at: Timestamp,
    /// True if the job has an active run.
    pub is_live: bool,
    /// `None` if the job causes no foreseeable load.
    pub profile: Option<LoadProfileKey>,
    /// The cost of a run.
    pub cost: Span,
}

named_enum! {
    /// Why a rebalance does not move a job.
    #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum SkipReason {
        /// The job has an active run.
        JobRunning => "job_running",
        /// The next run starts too soon (within the protection window).
        ProtectionWindow => "protection_window",
        /// The job's start time was chosen or changed recently.
        PlacementCooldown => "placement_cooldown",
        /// The user or the schedule fixes the job's start times, so the balancer may not change
        /// them.
        NotMovable => "not_movable",
        /// The job was changed after the rebalance was planned.
        Changed => "changed",
    }
}

/// The bounds of a rebalance.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct PlanBounds {
    pub max_moves: Option<u64>,
    /// The rebalance stops once the evenness score reaches this value.
    pub target_score: Option<f64>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    pub moves: Vec<Move>,
    /// The load profiles that jobs have after their moves, as JSON.
    pub profiles: HashMap<LoadProfileKey, String>,
    /// Jobs that cannot be moved, ordered by job number.
    pub skipped: Vec<(JobNo, SkipReason)>,
    /// How evenly runs are spread over time before the rebalance.
    pub before: Spread,
    /// How evenly runs are spread over time after the rebalance.
    pub after: Spread,
    pub loads_before: Loads,
    pub loads_after: Loads,
}

impl Plan {
    pub fn skipped_by_reason(&self) -> BTreeMap<SkipReason, u64> {
        let mut counts = BTreeMap::new();
        for (_, reason) in &self.skipped {
            *counts.entry(*reason).or_default() += 1;
        }
        counts
    }
}

/// Number of moves per batch. The moves in each batch of a plan are sorted by job number.
const BATCH: usize = 1000;

/// Plans a rebalance of `jobs`, which must be ordered by job number. `own` is the load of the jobs'
/// tenant, and `all` is the load of all tenants. Both loads include `jobs` at their current times.
///
/// The most beneficial moves come first, so that a rebalance that is stopped early has done the
/// most important part.
pub fn plan(
    settings: &BalanceSettings,
    jobs: &[Placement],
    profiles: &HashMap<LoadProfileKey, LoadProfile>,
    own: &Loads,
    all: &Loads,
    bounds: PlanBounds,
    now: Timestamp,
) -> Plan {
    let horizon = own.horizon();
    let movable = profiles.iter().filter(|(_, profile)| horizon.is_movable(profile));
    let quiet_until = now.saturating_add(settings.protection);
    let classes = Classes::new(movable.map(|(key, it)| (*key, it)), horizon.grid(), quiet_until);
    let mut skipped = Vec::new();
    let mut movers = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        // A job is not moved if it has no run within the balancing horizon, or if its class of
        // similar jobs is beyond `CELLS_MAX`.
        let class = job.profile.and_then(|key| classes.cells.get(&key));
        let place = class.and_then(|(class, home)| Some((*class, (*home)?)));
        if let Some(reason) = reason_to_stay(job, place.is_some(), settings, now) {
            skipped.push((job.job, reason));
        } else if let Some((class, home)) = place {
            let (job, cost) = (number as u32, job.cost.as_micros());
            movers.push(Mover { job, class, home, at: home, cost });
        }
    }
    let mut state = PlanState::new(classes, movers, jobs, quiet_until, own, all);
    if bounds == PlanBounds::default() {
        state.even_out_all();
    } else {
        state.even_out_runs();
    }
    state.even_out_costs();
    let mut heaviest: HashMap<LoadProfileKey, u64> = HashMap::new();
    for job in jobs {
        if let Some(key) = job.profile {
            let heavy = heaviest.entry(key).or_default();
            *heavy = (*heavy).max(job.cost.as_micros());
        }
    }
    let mut known = own.clone();
    for (key, cost) in heaviest {
        if let Some(profile) = profiles.get(&key) {
            note_heaviest(&mut known, profile, cost);
        }
    }
    let steps = state.steps_worth(&known, bounds);
    state.steps.truncate(steps);
    let (moves, texts, loads_after) = state.moves(own, profiles);
    Plan {
        moves,
        profiles: texts,
        skipped,
        before: own.spread(Measure::Runs, Granularity::Slot),
        after: loads_after.spread(Measure::Runs, Granularity::Slot),
        loads_before: own.clone(),
        loads_after,
    }
}

/// Records the cost of one run of the most expensive job with this load profile, in microseconds.
/// `loads` has only the total cost of all jobs with a load profile, but the evenness score needs
/// the cost of the most expensive run.
fn note_heaviest(loads: &mut Loads, profile: &LoadProfile, cost: u64) {
    let (grid, day) = (loads.horizon().grid(), loads.horizon().day());
    grid.visit(profile, |hit| {
        if hit.slot < day {
            loads.heaviest[hit.slot] = loads.heaviest[hit.slot].max(cost.cast_signed());
        }
    });
}

/// How much a rebalance changes the number and cost of the jobs with one load profile.
#[derive(Copy, Clone, Default)]
struct Flow {
    jobs: i64,
    cost: i64,
    /// The highest cost among the jobs that are moved to this load profile.
    heaviest: u64,
}

impl PlanState<'_> {
    /// Returns the moves that result from all planning steps, the new load profiles, and the load
    /// after the moves.
    fn moves(
        &self,
        own: &Loads,
        profiles: &HashMap<LoadProfileKey, LoadProfile>,
    ) -> (Vec<Move>, HashMap<LoadProfileKey, String>, Loads) {
        let mut at: Vec<u32> = self.movers.iter().map(|mover| mover.home).collect();
        self.steps.iter().for_each(|step| at[step.mover as usize] = step.to);
        let mut moves = Vec::new();
        let mut reached: HashMap<(u32, u32), (LoadProfileKey, LoadProfile)> = HashMap::new();
        let mut flows: HashMap<LoadProfileKey, Flow> = HashMap::new();
        let mut texts = HashMap::new();
        for step in &self.steps {
            let mover = &self.movers[step.mover as usize];
            let home = &mut at[step.mover as usize];
            // Each moved job is listed once, however often the planner moved it. A job that is back
            // at its original start time is not listed.
            let to = std::mem::replace(home, mover.home);
            if to == mover.home {
                continue;
            }
            let Some(new_at) = self.time_in(mover, to) else { continue };
            let (job, class) =
                (&self.jobs[mover.job as usize], &self.classes.classes[mover.class as usize]);
            let (profile, _) =
                reached.entry((mover.class, class.phase_at(new_at))).or_insert_with(|| {
                    let profile = class.profile.moved_to(new_at);
                    let text = profile.text();
                    let key = LoadProfileKey::of(&text);
                    texts.insert(key, text);
                    (key, profile)
                });
            if let Some(left) = job.profile {
                let flow = flows.entry(left).or_default();
                flow.jobs -= 1;
                flow.cost = flow.cost.saturating_sub_unsigned(mover.cost);
            }
            let flow = flows.entry(*profile).or_default();
            flow.jobs += 1;
            flow.cost = flow.cost.saturating_add_unsigned(mover.cost);
            flow.heaviest = flow.heaviest.max(mover.cost);
            moves.push(Move {
                job: job.job,
                generation: job.generation,
                old_at: job.next_at,
                new_at,
                profile: *profile,
            });
        }
        moves.chunks_mut(BATCH).for_each(|batch| batch.sort_by_key(|it| it.job));
        let reached: HashMap<_, _> = reached.into_values().collect();
        let mut loads = own.clone();
        let mut flows: Vec<(LoadProfileKey, Flow)> = flows.into_iter().collect();
        flows.sort_unstable_by_key(|(key, _)| *key);
        for (key, flow) in flows {
            if let Some(profile) = profiles.get(&key).or_else(|| reached.get(&key)) {
                change_load(&mut loads, profile, flow.jobs, flow.cost);
                note_heaviest(&mut loads, profile, flow.heaviest);
            }
        }
        (moves, texts, loads)
    }
}
