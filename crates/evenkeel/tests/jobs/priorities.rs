//! With too few workers, runs with higher priorities start first, on each store and with any number
//! of schedulers.

use std::collections::BTreeMap;

use evenkeel_core::{Span, Timestamp};
use serde_json::{Value, json};

use crate::api_client::ApiClient;
use crate::database::Database;
use crate::stores::on_both_stores;
use crate::support::wait_for;

const JOBS: usize = 2_000;
const WORKERS: usize = 2;
const PRIORITIES: [u64; 4] = [10, 40, 70, 90];
/// All jobs are created at least this long before they are due, so that the node can load them in
/// time.
const LOADED: Span = Span::from_secs(5);

struct Caller(ApiClient);

impl Caller {
    fn now(&self) -> Timestamp {
        let one = self.0.send("GET", "/api/v1/scheduler/distribution", &Value::Null);
        one["as_of"].as_str().unwrap().parse().unwrap()
    }

    /// Creates jobs that are all due at the same instant. Returns the priority of each job, or
    /// `None` if creating the jobs took too long.
    fn create(&self, lead: Span) -> Option<BTreeMap<String, u64>> {
        let due = self.now().saturating_add(lead);
        let priority = |nth: usize| PRIORITIES[nth * 7 / 3 % PRIORITIES.len()];
        let job = |nth: usize| {
            json!({
                "executor_type": "noop", "priority": priority(nth),
                "schedule": {"kind": "once", "at": due.to_string()},
            })
        };
        let jobs: Vec<Value> = (0..JOBS).map(job).collect();
        let created = self.0.send("POST", "/api/v1/jobs/bulk", &json!({ "jobs": jobs }));
        let ids = created["results"].as_array().unwrap().iter().map(|one| &one["id"]);
        let ids = ids.map(|id| id.as_str().unwrap().to_owned());
        let priorities = ids.enumerate().map(|(nth, id)| (id, priority(nth))).collect();
        (self.now().saturating_add(LOADED) < due).then_some(priorities)
    }

    /// Returns the start time and the job id of each finished run.
    fn starts(&self) -> Vec<(Timestamp, String)> {
        let (mut starts, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/api/v1/executions?status=completed&limit=1000{cursor}");
            let page = self.0.send("GET", &path, &Value::Null);
            for run in page["executions"].as_array().unwrap() {
                let started = run["started_at"].as_str().unwrap().parse().unwrap();
                starts.push((started, run["job_id"].as_str().unwrap().to_owned()));
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return starts,
            }
        }
    }
}

fn runs_start_in_the_order_of_their_priorities(database: &Database) {
    let server = database.serve(&["--workers", &WORKERS.to_string()]);
    let caller = Caller(ApiClient::of(server, database));
    // If creating the jobs takes too long, the test tries again with a later due time.
    let leads = [20, 60, 180].map(Span::from_secs);
    let priorities = leads.into_iter().find_map(|lead| caller.create(lead)).unwrap();
    let (mut ended, mut known) = (Vec::new(), 0);
    while ended.len() < JOBS {
        ended = wait_for("another run to end", || {
            let mut starts = caller.starts();
            starts.retain(|(_, job)| priorities.contains_key(job));
            (starts.len() > known).then_some(starts)
        });
        known = ended.len();
    }
    ended.sort_unstable();
    let mut waiting: BTreeMap<u64, usize> = BTreeMap::new();
    priorities.values().for_each(|priority| *waiting.entry(*priority).or_default() += 1);
    let mut overtaking = 0;
    // Runs with the same start time were claimed in one batch.
    for together in ended.chunk_by(|one, other| one.0 == other.0) {
        for (_, job) in together {
            *waiting.get_mut(&priorities[job]).unwrap() -= 1;
        }
        for (_, job) in together {
            let higher: usize = waiting.range(priorities[job] + 1..).map(|(_, count)| count).sum();
            overtaking += usize::from(higher > WORKERS);
        }
    }
    assert_eq!(overtaking, 0, "of {JOBS} runs");
}

on_both_stores!(runs_start_in_the_order_of_their_priorities);
