//! Random operations on a queue, which can run on any store.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_core::aging::{Aging, Rank};
use evenkeel_core::order::{Lane, Priority};
use evenkeel_core::{AttemptKey, JobNo, Span};
use evenkeel_store::{
    Claim, FireDelayed, JobChange, NewJob, QueuePosition, QueueWait, Start, Trigger, Triggered,
};

use crate::commands::Commands as _;
use crate::fixtures::{at, new_job, now, place_of, queue_entry_with};
use crate::paging::Dice;
use crate::rig::{Held, Known, Rig, claim_of};

const JOBS: u64 = 40;
const POOLS: [&str; 2] = ["a", "b"];

#[derive(Clone, Debug)]
pub struct Step {
    pub secs: i64,
    pub happens: Happens,
}

/// One operation on the queue. Jobs are identified by their index.
#[derive(Clone, Debug)]
pub enum Happens {
    /// Queues a run of the job, unless the job has an active run.
    Enqueue {
        job: usize,
        priority: Option<u8>,
        /// The deadline, in seconds from now.
        within: u64,
    },
    Claim {
        capacity: usize,
        guaranteed: [usize; 3],
        pools: Vec<String>,
    },
    /// Finishes the oldest running attempt; a failed attempt is retried immediately.
    Finish {
        failed: bool,
    },
    /// Requeues the oldest running attempt.
    GiveBack,
    /// Changes the priority of a job.
    Weigh {
        job: usize,
        priority: u8,
    },
    /// Cancels a waiting run of the job.
    Cancel {
        job: usize,
    },
    /// Counts the queued attempts that are ahead of this rank.
    Ask {
        lane: Lane,
        rank: i64,
        limit: u32,
    },
}

/// The result of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// The claimed jobs, each with the priority of its run if it has one.
    Claimed(Vec<(usize, Option<u8>)>),
    Ahead(u32),
    Nothing,
}

/// Returns pseudo-random operations; the last one claims all attempts.
pub fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let mut secs = 100;
    let mut steps: Vec<Step> = (0..count)
        .map(|_| {
            secs += dice.one(&[1, 1, 7, 7, 60, 299, 300, 1_800]);
            Step { secs, happens: any_happening(&mut dice) }
        })
        .collect();
    let pools = POOLS.map(String::from).to_vec();
    let happens = Happens::Claim { capacity: 1_000, guaranteed: [0; 3], pools };
    steps.push(Step { secs: secs + 1, happens });
    steps
}

fn any_happening(dice: &mut Dice) -> Happens {
    let job = dice.throw(JOBS) as usize;
    let priority = dice.throw(101) as u8;
    match dice.throw(16) {
        0..=6 => Happens::Enqueue {
            job,
            priority: dice.maybe(priority),
            within: dice.one(&[60, 600, 600, 90_000]),
        },
        7..=9 => {
            let guaranteed = dice.one(&[[0, 0, 0], [0, 0, 0], [1, 1, 1], [0, 2, 1]]);
            let pools = dice.one(&[&POOLS[..], &POOLS[..], &POOLS[..1], &POOLS[1..]]);
            let pools = pools.iter().map(|pool| (*pool).to_owned()).collect();
            Happens::Claim { capacity: 1 + dice.throw(4) as usize, guaranteed, pools }
        }
        10 | 11 => Happens::Finish { failed: dice.throw(3) == 0 },
        12 => Happens::GiveBack,
        13 => Happens::Weigh { job, priority },
        14 => Happens::Cancel { job },
        _ => Happens::Ask {
            lane: dice.one(&Lane::ALL),
            rank: dice.throw(150) as i64,
            limit: dice.one(&[1, 3, 100]),
        },
    }
}

fn some_jobs() -> Vec<NewJob> {
    let mut dice = Dice::new(11);
    let job = |n: u64| {
        let (lane, pool) = (dice.one(&Lane::ALL), dice.one(&POOLS));
        let priority = dice.one(&[0, 0, 10, 50, 50, 90, 100]);
        new_job(&format!("job {n}")).never().lane(lane).pool(pool).priority(priority).build()
    };
    (0..JOBS).map(job).collect()
}

/// The store on which the random operations run.
pub struct Play {
    rig: Rig,
    jobs: Vec<Known>,
    places: BTreeMap<JobNo, usize>,
    waiting: BTreeMap<usize, AttemptKey>,
    /// Running attempts in the order in which they were claimed.
    running: Vec<(usize, Held, Option<Priority>)>,
}

impl Play {
    pub async fn new(rig: Rig) -> Self {
        let jobs = rig.add_all(some_jobs()).await;
        let places = jobs.iter().enumerate().map(|(place, job)| (job.no, place)).collect();
        Self { rig, jobs, places, waiting: BTreeMap::new(), running: Vec::new() }
    }

    pub async fn play(&mut self, step: &Step) -> Seen {
        let secs = step.secs;
        match &step.happens {
            Happens::Enqueue { job, priority, within } => {
                let priority = priority.and_then(|number| Priority::try_from(number).ok());
                self.enqueue(*job, priority, *within, secs).await;
            }
            Happens::Claim { capacity, guaranteed, pools } => {
                let pools = pools.clone();
                let node = self.rig.node;
                let claim = Claim { pools, guaranteed: *guaranteed, ..claim_of(node, *capacity) };
                return self.claim(&claim, secs).await;
            }
            Happens::Finish { failed } => self.finish(*failed, secs).await,
            Happens::GiveBack => self.give_back(secs).await,
            Happens::Weigh { job, priority } => self.recount_load(*job, *priority, secs).await,
            Happens::Cancel { job } => {
                if let Some(key) = self.waiting.remove(job) {
                    let cancelled = self.rig.store.cancel_run(&self.rig.scope, key, now(secs));
                    cancelled.await.expect("a run can be cancelled");
                }
            }
            Happens::Ask { lane, rank, limit } => {
                let aging = Aging::default();
                let place = QueuePosition { lane: *lane, rank: Rank(*rank), aging };
                let pools = POOLS.map(String::from);
                let ahead = self.rig.store.count_queued_ahead(&pools, place, *limit, now(secs));
                return Seen::Ahead(ahead.await.expect("attempts ahead can be counted"));
            }
        }
        Seen::Nothing
    }

    async fn enqueue(&mut self, job: usize, priority: Option<Priority>, within: u64, secs: i64) {
        let busy = self.running.iter().any(|(running, ..)| *running == job);
        if busy || self.waiting.contains_key(&job) {
            return;
        }
        let ask = Trigger { n: 0, priority, idle_only: false };
        let id = self.jobs[job].id;
        let asked = self.rig.store.trigger(&self.rig.scope, id, ask, now(secs)).await;
        let Triggered::Accepted(_) = asked.expect("a run can be triggered") else {
            panic!("not accepted")
        };
        self.delayed(within, secs).await;
    }

    async fn delayed(&mut self, within: u64, secs: i64) {
        let delayed = self.rig.delayed(secs).await;
        let fires = delayed.iter().map(|delayed| {
            let should_start_by = delayed.due.saturating_add(Span::from_secs(within));
            let aging = &Aging::default();
            let waited = QueueWait { since: delayed.due, priority: delayed.priority, aging };
            let entry = queue_entry_with(&delayed.job, should_start_by, at(secs), waited);
            let (due, key, tenant) = (delayed.due, delayed.key, delayed.job.tenant);
            FireDelayed { due, key, tenant, start: Start::Queued(entry) }
        });
        let fires = fires.collect();
        self.rig.store.fire_delayed(self.rig.node, fires, now(secs)).await.expect("attempts fire");
        for delayed in delayed {
            self.waiting.insert(self.places[&delayed.key.job_no], delayed.key);
        }
    }

    async fn claim(&mut self, claim: &Claim, secs: i64) -> Seen {
        let claimed =
            self.rig.store.claim(claim, now(secs)).await.expect("attempts can be claimed");
        let mut seen = Vec::new();
        let mut twice = BTreeSet::new();
        for attempt in claimed.attempts {
            assert!(twice.insert(attempt.key), "claimed twice");
            let job = self.places[&attempt.key.job_no];
            assert!(self.waiting.remove(&job).is_some(), "the attempt was not waiting");
            let held = Held { key: attempt.key, fence: attempt.fence };
            self.running.push((job, held, attempt.priority));
            seen.push((job, attempt.priority.map(Priority::get)));
        }
        Seen::Claimed(seen)
    }

    async fn finish(&mut self, failed: bool, secs: i64) {
        if self.running.is_empty() {
            return;
        }
        let (_, held, priority) = self.running.remove(0);
        let mut end = if failed { self.rig.retry(held, at(secs)) } else { self.rig.success(held) };
        end.priority = priority;
        self.rig.finish(end).await;
        self.delayed(60, secs).await;
    }

    async fn give_back(&mut self, secs: i64) {
        if self.running.is_empty() {
            return;
        }
        let (job, held, priority) = self.running.remove(0);
        let mut back = self.rig.requeue_of(held, self.jobs[job], false).await;
        let due = self.rig.due(self.jobs[job]).await;
        let aging = &Aging::default();
        let waited = QueueWait { since: held.key.scheduled_at, priority, aging };
        *place_of(&mut back) = queue_entry_with(&due, at(secs), at(secs), waited);
        assert!(self.rig.requeue(back, secs).await, "it ran");
        self.waiting.insert(job, held.key);
    }

    async fn recount_load(&mut self, job: usize, priority: u8, secs: i64) {
        let mut definition = self.rig.job(self.jobs[job]).await.definition;
        definition.priority = Priority::try_from(priority).expect("a legal priority");
        let change = JobChange { definition: Some(definition), ..JobChange::default() };
        let (scope, id) = (self.rig.scope, self.jobs[job].id);
        self.rig.store.update(&scope, id, change, now(secs)).await.expect("a job can change");
    }
}
