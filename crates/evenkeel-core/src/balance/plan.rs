//! Which jobs a rebalance moves, and where to.
//!
//! What it makes even are runs, by the sum of the squares of what lies in each slot of the horizon: it
//! is least when all slots hold the same. At first what runs cost counts as much, so that the moves
//! are good for both, then less, and at last not at all. Then, as long as runs stay as even as they
//! are, heavy jobs change places with light ones. Of all the moves found, in about the order of what
//! they gain, a plan has those up to the point from which on the score of runs does not change; it is
//! never lower than without a plan.

mod board;
mod classes;
mod costs;
mod guards;
mod heaps;
mod improve;
mod limits;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
mod times;

use std::collections::{BTreeMap, HashMap};

use self::board::Board;
use self::classes::{Classes, Mover};
use self::guards::reason_to_stay;
use self::limits::change_load;
pub use self::times::moved_back;
use super::load_profile::{LoadProfile, LoadProfileKey};
use super::loads::{Loads, Measure};
use super::moves::Move;
use super::settings::BalanceSettings;
use super::spread::{Granularity, Spread};
use crate::ids::JobNo;
use crate::time::{Span, Timestamp};

/// A job that has a next time, as far as moving it is concerned.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Which.
    pub job: JobNo,
    /// Its own number; see [`JobToPlace::seed`](super::JobToPlace::seed).
    pub seed: u64,
    /// Its generation.
    pub generation: i32,
    /// Its next regular time.
    pub next_at: Timestamp,
    /// The last that was fired or skipped.
    pub last_fired_at: Option<Timestamp>,
    /// When it was placed.
    pub placed_at: Timestamp,
    /// A run of it is not over.
    pub is_live: bool,
    /// Its rhythm, if it is in the plan.
    pub rhythm: Option<LoadProfileKey>,
    /// What each of its runs costs.
    pub cost: Span,
}

/// Why a job stays where it is.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SkipReason {
    /// A run of it is not over.
    JobRunning,
    /// It runs soon.
    ProtectionWindow,
    /// It was placed a short time ago.
    PlacementCooldown,
    /// Its time is not chosen by load.
    NotMovable,
    /// It was changed since the plan was made.
    Changed,
}

impl SkipReason {
    /// The word users see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JobRunning => "job_running",
            Self::ProtectionWindow => "protection_window",
            Self::PlacementCooldown => "placement_cooldown",
            Self::NotMovable => "not_movable",
            Self::Changed => "changed",
        }
    }
}

/// What a rebalance is to reach.
#[derive(Copy, Clone, PartialEq, Debug, Default)]
pub struct Wanted {
    /// With so many moves at most.
    pub max_moves: Option<u64>,
    /// No more than it takes to this score.
    pub target_score: Option<f64>,
}

/// What a rebalance does.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The moves.
    pub moves: Vec<Move>,
    /// The rhythms they lead to, as they are stored.
    pub rhythms: HashMap<LoadProfileKey, String>,
    /// Jobs that stay because they must, by number.
    pub skipped: Vec<(JobNo, SkipReason)>,
    /// How evenly runs are spread without it.
    pub before: Spread,
    /// And with it.
    pub after: Spread,
    /// Load without it.
    pub loads_before: Loads,
    /// And with it.
    pub loads_after: Loads,
}

impl Plan {
    /// How many jobs stay because they must, and why.
    pub fn skipped_by_reason(&self) -> BTreeMap<SkipReason, u64> {
        let mut counts = BTreeMap::new();
        for (_, reason) in &self.skipped {
            *counts.entry(*reason).or_default() += 1;
        }
        counts
    }
}

/// Moves that belong together are next to each other in batches of this many, by number.
const BATCH: usize = 1000;

/// Plans a rebalance of `jobs` (in the order of their numbers) among the load of `own`, their
/// tenant's, and of `all`, both of which hold the jobs where they are.
///
/// What gains most comes first, so that a rebalance which is stopped has done what mattered most.
pub fn plan(
    settings: &BalanceSettings,
    jobs: &[Placement],
    rhythms: &HashMap<LoadProfileKey, LoadProfile>,
    own: &Loads,
    all: &Loads,
    wanted: Wanted,
    now: Timestamp,
) -> Plan {
    let horizon = own.horizon();
    let movable = rhythms.iter().filter(|(_, rhythm)| horizon.is_movable(rhythm));
    let quiet_until = now.saturating_add(settings.protection);
    let classes = Classes::new(movable.map(|(key, it)| (*key, it)), horizon.grid(), quiet_until);
    let mut skipped = Vec::new();
    let mut movers = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        // What is in no cell runs later than plans look ahead, or there is no room for its class.
        let class = job.rhythm.and_then(|key| classes.class_of(key));
        let place = class.and_then(|(class, home)| Some((class, home?)));
        if let Some(reason) = reason_to_stay(job, place.is_some(), settings, now) {
            skipped.push((job.job, reason));
        } else if let Some((class, home)) = place {
            let (job, cost) = (number as u32, job.cost.as_micros());
            movers.push(Mover { job, class, home, at: home, cost });
        }
    }
    let mut board = Board::new(classes, movers, jobs, quiet_until, own, all);
    if wanted == Wanted::default() {
        board.even_out_all();
    } else {
        board.even_out_runs();
    }
    board.even_out_costs();
    let mut heaviest: HashMap<LoadProfileKey, u64> = HashMap::new();
    for job in jobs {
        if let Some(key) = job.rhythm {
            let heavy = heaviest.entry(key).or_default();
            *heavy = (*heavy).max(job.cost.as_micros());
        }
    }
    let mut known = own.clone();
    for (key, cost) in heaviest {
        if let Some(rhythm) = rhythms.get(&key) {
            note_heaviest(&mut known, rhythm, cost);
        }
    }
    let steps = board.steps_worth(&known, wanted);
    board.steps.truncate(steps);
    let (moves, texts, loads_after) = board.moves(own, rhythms);
    Plan {
        moves,
        rhythms: texts,
        skipped,
        before: own.spread(Measure::Runs, Granularity::Slot),
        after: loads_after.spread(Measure::Runs, Granularity::Slot),
        loads_before: own.clone(),
        loads_after,
    }
}

/// Takes note of a job that costs so many microseconds: counts only say what all of a rhythm cost
/// together, and the heaviest has to be somewhere.
fn note_heaviest(loads: &mut Loads, rhythm: &LoadProfile, cost: u64) {
    let (grid, day) = (loads.horizon().grid(), loads.horizon().day());
    grid.visit(rhythm, |hit| {
        if hit.slot < day {
            loads.heaviest[hit.slot] = loads.heaviest[hit.slot].max(cost.cast_signed());
        }
    });
}

/// How many jobs have come to a rhythm or left it, and what they cost.
#[derive(Copy, Clone, Default)]
struct Flow {
    jobs: i64,
    cost: i64,
    /// The heaviest that came.
    heaviest: u64,
}

impl Board<'_> {
    /// The moves that the steps come to, the rhythms they lead to, and the load they leave.
    fn moves(
        &self,
        own: &Loads,
        rhythms: &HashMap<LoadProfileKey, LoadProfile>,
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
            // Each job once, however often it was moved, and not if it has come back.
            let to = std::mem::replace(home, mover.home);
            if to == mover.home {
                continue;
            }
            let Some(new_at) = self.time_in(mover, to) else { continue };
            let (job, class) =
                (&self.jobs[mover.job as usize], &self.classes.classes[mover.class as usize]);
            let (rhythm, _) =
                reached.entry((mover.class, class.phase_at(new_at))).or_insert_with(|| {
                    let rhythm = class.rhythm_at(new_at);
                    let text = rhythm.text();
                    let key = LoadProfileKey::of(&text);
                    texts.insert(key, text);
                    (key, rhythm)
                });
            if let Some(left) = job.rhythm {
                let flow = flows.entry(left).or_default();
                flow.jobs -= 1;
                flow.cost = flow.cost.saturating_sub_unsigned(mover.cost);
            }
            let flow = flows.entry(*rhythm).or_default();
            flow.jobs += 1;
            flow.cost = flow.cost.saturating_add_unsigned(mover.cost);
            flow.heaviest = flow.heaviest.max(mover.cost);
            moves.push(Move {
                job: job.job,
                generation: job.generation,
                old_at: job.next_at,
                new_at,
                rhythm: *rhythm,
            });
        }
        moves.chunks_mut(BATCH).for_each(|batch| batch.sort_by_key(|it| it.job));
        let reached: HashMap<_, _> = reached.into_values().collect();
        let mut loads = own.clone();
        let mut flows: Vec<(LoadProfileKey, Flow)> = flows.into_iter().collect();
        flows.sort_unstable_by_key(|(key, _)| *key);
        for (key, flow) in flows {
            if let Some(rhythm) = rhythms.get(&key).or_else(|| reached.get(&key)) {
                change_load(&mut loads, rhythm, flow.jobs, flow.cost);
                note_heaviest(&mut loads, rhythm, flow.heaviest);
            }
        }
        (moves, texts, loads)
    }
}
