//! Tests that the cost of a job follows the duration of its runs, and that the stored counts stay
//! correct after many changes.

use evenkeel_core::attempt::Outcome;
use evenkeel_core::balance::ASSUMED_COST;
use evenkeel_core::{AttemptKey, JobNo, Span};
use evenkeel_store::{Action, Finish, FireResult, JobChange, NewJob, Scope, Then};

use crate::Opened;
use crate::balance::{all_placements, assert_counted, batch_of, begin_one, move_to};
use crate::commands::{Commands, resume};
use crate::fixtures::{Begin, at, fire_of, new_job, now, unnamed_job};
use crate::paging::Dice;
use crate::rig::{Held, Known, OVER, Rig};

async fn run_for(rig: &Rig, job: Known, secs: i64, takes: Span) {
    let held = rig.start(job, secs).await;
    let finished_at = held.key.scheduled_at.saturating_add(takes);
    rig.finish(Finish { finished_at, ..rig.success(held) }).await;
}

/// Recounts the cost of all jobs in steps of `limit`, and returns how many jobs changed.
async fn weigh_all(rig: &Rig, limit: u32) -> u32 {
    let (mut after, mut changed): (Option<JobNo>, u32) = (None, 0);
    for _ in 0..1000 {
        let weighed = rig.store.recount_load(after, limit).await.unwrap();
        assert!(weighed.changed <= limit);
        assert!(weighed.next.is_none() || weighed.next > after);
        changed += weighed.changed;
        after = weighed.next;
        if after.is_none() {
            return changed;
        }
    }
    panic!("the loop does not end");
}

async fn cost_of(rig: &Rig, job: Known) -> Span {
    rig.store.placements_of(&rig.scope, &[job.no]).await.unwrap()[0].cost
}

pub async fn a_recount_sets_the_cost_to_the_duration_of_runs(opened: Opened) {
    let rig = Rig::new(opened).await;
    let new = |n| new_job(&format!("{n}")).build();
    let jobs = rig.add_all((0..7).map(new).collect()).await;
    assert_eq!(weigh_all(&rig, 3).await, 0);
    run_for(&rig, jobs[2], 60, Span::from_secs(7)).await;
    run_for(&rig, jobs[6], 60, Span::from_secs(700)).await;
    assert_eq!(cost_of(&rig, jobs[2]).await, ASSUMED_COST);
    assert_counted(&*rig.store, &[rig.scope]).await;
    assert_eq!(weigh_all(&rig, 3).await, 2);
    assert_eq!(cost_of(&rig, jobs[2]).await, Span::from_secs(7));
    assert_eq!(cost_of(&rig, jobs[6]).await, Span::from_secs(700));
    assert_eq!(cost_of(&rig, jobs[0]).await, ASSUMED_COST);
    assert_counted(&*rig.store, &[rig.scope]).await;
    assert_eq!(weigh_all(&rig, 100).await, 0);
}

pub async fn a_small_difference_changes_no_cost(opened: Opened) {
    let rig = Rig::new(opened).await;
    // The stored cost of one minute is kept while it is between 4/5 and 5/4 of the average duration
    // of runs. The tested durations, in microseconds, are these two bounds and the first values
    // beyond the bounds.
    let cases = [
        (48_000_000, false),
        (47_999_999, true),
        (75_000_000, false),
        (75_000_001, true),
        (60_000_000, false),
    ];
    for (micros, changes) in cases {
        let job = rig.add(new_job(&format!("{micros}")).build()).await;
        run_for(&rig, job, 60, Span::from_micros(micros)).await;
        assert_eq!(weigh_all(&rig, 100).await, u32::from(changes), "{micros}");
        let expected = if changes { Span::from_micros(micros) } else { ASSUMED_COST };
        assert_eq!(cost_of(&rig, job).await, expected, "{micros}");
    }
    assert_counted(&*rig.store, &[rig.scope]).await;
}

pub async fn a_stated_cost_stays(opened: Opened) {
    let rig = Rig::new(opened).await;
    let mut by_cost = new_job("cost").build();
    by_cost.definition.cost = Some(Span::from_secs(5000));
    let mut by_average = new_job("average").build();
    by_average.definition.average_override = Some(Span::from_secs(400));
    let mut both = new_job("both").build();
    both.definition.cost = Some(Span::from_secs(3));
    both.definition.average_override = Some(Span::from_secs(400));
    let jobs = rig.add_all(vec![by_cost, by_average, both]).await;
    for job in &jobs {
        run_for(&rig, *job, 60, Span::from_secs(7)).await;
    }
    assert_eq!(weigh_all(&rig, 100).await, 0);
    for (job, secs) in jobs.iter().zip([5000, 400, 3]) {
        assert_eq!(cost_of(&rig, *job).await, Span::from_secs(secs));
    }
    let mut definition = rig.job(jobs[0]).await.definition;
    definition.cost = None;
    let change = JobChange { definition: Some(definition), ..JobChange::default() };
    rig.store.update(&rig.scope, jobs[0].id, change, now(70)).await.unwrap();
    weigh_all(&rig, 100).await;
    assert_eq!(cost_of(&rig, jobs[0]).await, Span::from_secs(7));
    assert_counted(&*rig.store, &[rig.scope]).await;
}

pub async fn jobs_without_a_next_time_have_no_cost(opened: Opened) {
    let rig = Rig::new(opened).await;
    let once = rig.add(new_job("once").once_at(60).build()).await;
    let paused = rig.add(new_job("paused").build()).await;
    for job in [once, paused] {
        run_for(&rig, job, 60, Span::from_secs(700)).await;
    }
    rig.store.act(&rig.scope, paused.id, Action::Pause, now(800)).await.unwrap();
    assert_eq!(weigh_all(&rig, 1).await, 0);
    assert_counted(&*rig.store, &[rig.scope]).await;
    // A resumed job has the average duration of its runs as its cost.
    rig.store.act(&rig.scope, paused.id, resume(Some(at(900))), now(801)).await.unwrap();
    assert_eq!(cost_of(&rig, paused).await, Span::from_secs(700));
}

pub async fn a_move_keeps_the_cost(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").every(3600).build()).await;
    run_for(&rig, job, 60, Span::from_secs(700)).await;
    weigh_all(&rig, 100).await;
    let rebalance = begin_one(&rig, 1, 800).await;
    let batch = batch_of(rebalance, 0, vec![move_to(&rig.job(job).await, at(9000))]);
    rig.store.move_jobs(&rig.scope, batch, now(800)).await.unwrap();
    assert_eq!(cost_of(&rig, job).await, Span::from_secs(700));
    assert_counted(&*rig.store, &[rig.scope]).await;
}

/// A store with two tenants whose jobs the test changes randomly.
struct Play {
    rig: Rig,
    scopes: [Scope; 2],
    dice: Dice,
    jobs: Vec<(Scope, Known)>,
    held: Vec<(Scope, Held)>,
    secs: i64,
}

impl Play {
    fn new_job(&mut self) -> NewJob {
        let first = self.secs + 1 + self.dice.throw(7200) as i64;
        let every = self.dice.one(&[60, 900, 1200, 3600, 86_400]);
        let job = unnamed_job().every(every).first_at(first);
        let mut job = match self.dice.throw(6) {
            0 => job.once_at(first),
            1 => job.periodic(600, 60),
            2 => job.never(),
            _ => job,
        }
        .build();
        job.definition.cost = self.dice.maybe(Span::from_secs(every / 7));
        job.definition.bounds.max_runs = self.dice.maybe(2);
        job.definition.bounds.end_at = self.dice.maybe(at(first + 4000));
        job
    }

    async fn step(&mut self) {
        self.secs += self.dice.throw(300) as i64;
        let what = if self.jobs.len() < 4 { 0 } else { self.dice.throw(14) };
        let place = self.dice.throw(self.jobs.len().max(1) as u64) as usize;
        let (scope, job) = match self.jobs.get(place) {
            Some(known) => *known,
            None => (self.scopes[0], Known { no: JobNo(0), id: crate::fixtures::fresh_id() }),
        };
        let next = at(self.secs + 1 + self.dice.throw(9000) as i64);
        match what {
            0 | 1 => self.register().await,
            2 => self.order(scope, job, Action::Pause).await,
            3 | 4 => self.order(scope, job, resume(Some(next))).await,
            5 => self.order(scope, job, Action::Retry { n: 0, next_at: Some(next) }).await,
            6 => self.change(scope, job).await,
            7 => {
                let end = self.dice.one(&[Action::Cancel, Action::Delete]);
                self.order(scope, job, end).await;
                self.rig.store.purge(&scope, job.id, 1).await.unwrap();
            }
            8..=10 => self.fire(scope, job).await,
            11 | 12 => self.finish().await,
            _ => self.rebalance(scope).await,
        }
        self.rig.store.recount_load(None, 100).await.unwrap();
    }

    async fn register(&mut self) {
        let scope = self.dice.one(&self.scopes);
        for _ in 0..1 + self.dice.throw(3) {
            let job = self.new_job();
            let known = self.rig.add_for(&scope, job).await;
            self.jobs.push((scope, known));
        }
    }

    async fn order(&self, scope: Scope, job: Known, action: Action) {
        self.rig.store.act(&scope, job.id, action, now(self.secs)).await.unwrap();
    }

    async fn change(&mut self, scope: Scope, job: Known) {
        let other = self.new_job();
        let change = JobChange {
            about: None,
            definition: (self.dice.throw(2) == 0).then_some(other.definition),
            next_at: (self.dice.throw(2) == 0).then_some(other.next_at),
        };
        self.rig.store.update(&scope, job.id, change, now(self.secs)).await.unwrap();
    }

    async fn fire(&mut self, scope: Scope, job: Known) {
        let due = self.rig.store.load_jobs(&[job.no]).await.unwrap();
        let Some(due) = due.first() else { return };
        let Some(next_at) = due.next_at else { return };
        self.secs = self.secs.max((next_at.as_micros() - at(0).as_micros()) / 1_000_000 + 1);
        let fire = fire_of(due, at(self.secs), Begin::Claimed);
        let time = fire.start.as_ref().map(|(time, _)| *time);
        if let ([FireResult::Fired(fence)], Some(time)) =
            (&self.rig.fire(vec![fire], self.secs).await[..], time)
        {
            let key = AttemptKey::regular(job.no, time);
            self.held.push((scope, Held { key, fence: *fence }));
        }
    }

    async fn finish(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let place = self.dice.throw(self.held.len() as u64) as usize;
        let (scope, held) = self.held.swap_remove(place);
        let next_at = Some(at(self.secs + 60));
        let (outcome, then) = match self.dice.throw(5) {
            0 => (Outcome::Failed, Then::EndRun { stop_job: true, next_at: None }),
            1 => (Outcome::Failed, Then::Retry { due: at(self.secs + 30) }),
            2 => (Outcome::Failed, OVER),
            _ => (Outcome::Completed, Then::EndRun { stop_job: false, next_at }),
        };
        let started_at = at(self.secs);
        let finished_at = at(self.secs + self.dice.throw(400) as i64);
        let end = self.rig.end(held, outcome, then);
        let end = Finish { tenant: scope.tenant, started_at, finished_at, ..end };
        self.rig.finish(end).await;
    }

    async fn rebalance(&mut self, scope: Scope) {
        if scope != self.rig.scope {
            return;
        }
        let mut moves = Vec::new();
        for (owner, job) in &self.jobs {
            let found = self.rig.store.get(owner, job.id).await.unwrap();
            let Some(found) = found.filter(|job| job.next_at.is_some()) else { continue };
            if self.dice.throw(2) == 0 {
                let new_at = at(self.secs + self.dice.throw(9000) as i64);
                moves.push(move_to(&found, new_at));
            }
        }
        let rebalance = begin_one(&self.rig, 1, self.secs).await;
        let mut batch = batch_of(rebalance, 0, moves);
        batch.even_live = self.dice.throw(2) == 0;
        self.rig.store.move_jobs(&scope, batch, now(self.secs)).await.unwrap();
        let done = evenkeel_store::RebalanceState::Done;
        self.rig.store.end_rebalance(&scope, rebalance, done, now(self.secs)).await.unwrap();
    }
}

pub async fn counts_are_right_after_random_changes(opened: Opened) {
    let rig = Rig::new(opened).await;
    let scopes = [rig.scope, rig.tenant("other").await];
    let (jobs, held) = (Vec::new(), Vec::new());
    let mut play = Play { rig, scopes, dice: Dice::new(6), jobs, held, secs: 0 };
    for _ in 0..400 {
        play.step().await;
        assert_counted(&*play.rig.store, &play.scopes).await;
    }
    let mut left = 0;
    for scope in &play.scopes {
        left += all_placements(&*play.rig.store, scope).await.len();
    }
    assert!(left > 5, "{left} jobs are left");
}
