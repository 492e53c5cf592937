//! Tests several nodes on one database. Each run is executed by one node, and other nodes take over
//! the runs of killed nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::api_client::{operator_header, send};
use crate::database::Database;
use crate::receiver::{ReceivedRequest, Receiver, Reply};
use crate::support::{Server, wait_for};

const NODES: usize = 5;
const RUNS: usize = 100;
/// Workers per node. There are fewer workers than runs, so that no node can run all runs.
const WORKERS: &str = "25";

struct Cluster {
    nodes: Vec<Server>,
    header: String,
}

impl Cluster {
    fn start(database: &Database) -> Self {
        let nodes: Vec<Server> = (1..=NODES)
            .map(|n| {
                let name = format!("node-{n}");
                database.serve(&[
                    "--node-name", &name, "--workers", WORKERS, "--allow-network", "127.0.0.0/8",
                ])
            })
            .collect();
        Self { header: operator_header(&nodes[0], database), nodes }
    }

    fn ask(&self, node: usize, method: &str, path: &str, body: &Value) -> Value {
        send(&self.nodes[node], &self.header, method, path, body)
    }

    fn list(&self, node: usize, what: &str, of: &str) -> Vec<Value> {
        let list = self.ask(node, "GET", &format!("/api/v1/{what}?limit=1000"), &Value::Null);
        list[of].as_array().unwrap().clone()
    }
}

/// Returns the number of different runs that made these HTTP calls.
fn runs_of(calls: &[ReceivedRequest]) -> usize {
    calls.iter().map(|got| got.header("idempotency-key")).collect::<BTreeSet<_>>().len()
}

#[test]
fn cluster_of_five_nodes_finishes_100_runs_after_two_are_killed() {
    let may_end = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&may_end);
    let callee =
        Receiver::start(
            move |_, _| {
                if gate.load(Ordering::SeqCst) { Reply::ok("done") } else { Reply::Never }
            },
        );
    let database = Database::postgres();
    let mut cluster = Cluster::start(&database);
    let jobs: Vec<Value> = (0..RUNS)
        .map(|n| {
            json!({
                "name": format!("call-{n}"), "executor_type": "http", "max_retries": 0,
                "executor_config": {"url": callee.url},
            })
        })
        .collect();
    cluster.ask(0, "POST", "/api/v1/jobs/bulk", &json!({"jobs": jobs}));

    // All runs are active at once, each on one node. The API shows the current execution of each
    // job.
    wait_for("a hundred calls", || (runs_of(&callee.requests()) == RUNS).then_some(()));
    let running = wait_for("a hundred jobs that run", || {
        let jobs = cluster.list(1, "jobs", "jobs");
        jobs.iter().all(|job| job["status"] == "running").then_some(jobs)
    });
    let locks: BTreeSet<&str> =
        running.iter().map(|job| job["lock_token"].as_str().unwrap()).collect();
    assert_eq!(locks.len(), RUNS);
    assert!(running.iter().all(|job| !job["lock_acquired_at"].is_null()));
    let of_node = by_node(&cluster.list(2, "executions", "executions"));
    assert!(of_node.len() >= RUNS / 25, "{of_node:?}");
    assert_eq!(callee.requests().len(), RUNS, "a run was called twice although no node was killed");

    // The test kills two nodes, and from now on the HTTP receiver responds to calls.
    let on_killed: usize = of_node
        .iter()
        .filter(|(node, _)| ["node-4", "node-5"].contains(&node.as_str()))
        .map(|(_, runs)| runs)
        .sum();
    assert!(on_killed > 0, "nothing ran on the nodes to be killed: {of_node:?}");
    may_end.store(true, Ordering::SeqCst);
    for node in [3, 4] {
        cluster.nodes[node].signal(Signal::KILL);
    }
    cluster.nodes.truncate(3);

    let again = wait_for("the runs of the killed nodes", || {
        let calls = callee.requests().len();
        (calls >= RUNS + on_killed).then_some(calls)
    });
    assert_eq!(again, RUNS + on_killed, "more runs were taken over than the killed nodes had");
    assert_eq!(runs_of(&callee.requests()), RUNS, "a run that is taken over keeps its key");
    let cleared = wait_for("the count of stale locks", || {
        let metrics = cluster.ask(0, "GET", "/api/v1/scheduler/metrics", &Value::Null);
        metrics["stale_locks_cleared"].as_u64().filter(|cleared| *cleared > 0)
    });
    assert_eq!(cleared, on_killed as u64);
}

fn by_node(executions: &[Value]) -> BTreeMap<String, usize> {
    let mut of_node = BTreeMap::new();
    for execution in executions {
        let node = execution["node"].as_str().unwrap_or("none").to_owned();
        *of_node.entry(node).or_insert(0) += 1;
    }
    of_node
}
