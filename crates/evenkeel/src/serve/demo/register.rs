//! Registers the sample jobs as of the past, with the balance scores of the hours since then.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_commands::{ExecutorCheck, JobSpec, read_job};
use evenkeel_core::balance::{BalanceSettings, Horizon};
use evenkeel_core::chance::Chance;
use evenkeel_core::{Definition, JobId, JobNo, Schedule, Span, Timestamp};
use evenkeel_engine::score_of;
use evenkeel_store::{LoadProfiles, NewJob, Now, Registered, Scope, Store};
use tokio::task::JoinSet;

use super::sample::{DAY, Sample, Story};
use crate::failure::Because as _;
use crate::{Failure, Result};

/// How far back runs and activity reach: a week of charts, and the day that has begun before it.
pub const PAST: Span = Span::from_secs(8 * DAY);
/// Number of runs that the history of an ordinary job holds.
const RUNS: u64 = 50;
/// Number of runs that the history of a job holds whose runs differ.
const RUNS_OF_NOTABLE_JOB: u64 = 90;
const HOUR: Span = Span::from_secs(3600);

/// A sample job in the store.
pub struct Placed {
    pub no: JobNo,
    pub id: JobId,
    pub name: String,
    pub definition: Definition,
    pub story: Story,
    pub created: Timestamp,
    /// The first run time of the past that counts as activity.
    pub counted_from: Option<Timestamp>,
    /// The first run time whose run is in the history.
    pub stored_from: Option<Timestamp>,
}

pub struct Registrar<'a> {
    pub store: &'a Arc<dyn Store>,
    pub scope: Scope,
    pub executors: &'a dyn ExecutorCheck,
    pub chance: &'a dyn Chance,
    pub balance: BalanceSettings,
    pub now: Timestamp,
}

impl Registrar<'_> {
    /// Registers all jobs, the oldest first. Each of them is registered at the time of its creation
    /// by the clock of the past, so that its placement is as old as the job.
    pub async fn register(&self, samples: Vec<Sample>) -> Result<Vec<Placed>> {
        let mut by_age: BTreeMap<Reverse<Span>, Vec<Sample>> = BTreeMap::new();
        for sample in samples {
            by_age.entry(Reverse(sample.age)).or_default().push(sample);
        }
        let ages: Vec<Span> = by_age.keys().map(|age| age.0).collect();
        let mut placed = Vec::new();
        for ((Reverse(age), samples), nth) in by_age.into_iter().zip(1..) {
            let created = self.now.saturating_sub(age);
            placed.extend(self.register_at(created, samples).await?);
            let until = ages.get(nth).map_or(self.now, |next| self.now.saturating_sub(*next));
            self.save_scores(created, until).await?;
        }
        Ok(placed)
    }

    async fn register_at(&self, created: Timestamp, samples: Vec<Sample>) -> Result<Vec<Placed>> {
        let (mut jobs, mut placed) = (Vec::new(), Vec::new());
        for sample in samples {
            let (job, place) = self.prepare(created, &sample)?;
            jobs.push(job);
            placed.push(place);
        }
        let answers = self.store.register(&self.scope, jobs, Now::At(created)).await;
        let answers = answers.because("the sample jobs can't be created")?;
        for (place, answer) in placed.iter_mut().zip(answers) {
            match answer {
                Registered::Created { no, .. } => place.no = no,
                Registered::NameTaken(other) | Registered::Duplicate(other) => {
                    let name = &place.name;
                    let what =
                        format!("the sample job {name} can't be created: {other} has its name");
                    return Err(Failure::failed(what));
                }
            }
        }
        Ok(placed)
    }

    fn prepare(&self, created: Timestamp, sample: &Sample) -> Result<(NewJob, Placed)> {
        let Sample { document, phase, story, .. } = sample;
        let name = document["name"].as_str().unwrap_or_default().to_owned();
        let read = read_job(document, self.scope.tenant, self.executors);
        let JobSpec { about, definition, exact, .. } = read.map_err(|faults| {
            let fault = faults.first().map(ToString::to_string).unwrap_or_default();
            Failure::failed(format!("the sample job {name} is refused: {fault}"))
        })?;
        let id = JobId::new(created, self.chance.ten_bytes());
        let schedule = definition.schedule.resolved(id, created, exact);
        let definition = Definition { schedule, ..definition };
        let first = |after: Timestamp| phase.first_after(&definition, after.max(created), self.now);
        let counted_from = first(self.now.saturating_sub(PAST));
        let stored_from = first(self.now.saturating_sub(history(sample, &definition)));
        let (no, name) = (JobNo(0), name);
        let job = NewJob { id, about, definition: definition.clone(), next_at: stored_from };
        let story = *story;
        let placed = Placed { no, id, name, definition, story, created, counted_from, stored_from };
        Ok((job, placed))
    }

    /// Stores the balance scores of the hours in which no job was created.
    async fn save_scores(&self, from: Timestamp, until: Timestamp) -> Result {
        let tenant = self.scope.tenant;
        let because = "the sample scores can't be stored";
        let profiles = LoadProfiles::read(&**self.store).await.because(because)?;
        // The store commits scores that arrive together in one transaction.
        let mut saving = JoinSet::new();
        let mut hour = Horizon::new(&BalanceSettings { slot: HOUR, ..self.balance }, from).start;
        while hour.saturating_add(HOUR) <= until {
            hour = hour.saturating_add(HOUR);
            let loads = profiles.loads_of(tenant, Horizon::new(&self.balance, hour));
            let (store, score) = (Arc::clone(self.store), score_of(&loads, hour));
            saving.spawn(async move { store.save_score(tenant, score).await });
        }
        for saved in saving.join_all().await {
            saved.because(because)?;
        }
        Ok(())
    }
}

/// Returns how far back the history of a job reaches.
fn history(sample: &Sample, definition: &Definition) -> Span {
    let Schedule::Interval(interval) = definition.schedule else { return PAST };
    let config = &sample.document["executor_config"];
    let is_notable = config["fail"].is_string() || sample.story != Story::Ordinary;
    let runs = if is_notable { RUNS_OF_NOTABLE_JOB } else { RUNS };
    interval.every().saturating_mul(runs).min(PAST)
}
