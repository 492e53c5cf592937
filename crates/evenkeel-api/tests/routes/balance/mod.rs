//! Tests of the distribution of runs over time, and of rebalances.

mod conflicts;
mod distribution;
mod limits;
mod rebalance;
mod stopped;
mod undo;

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use evenkeel_api::TokenRequest;
use evenkeel_core::{Span, Timestamp};
use evenkeel_store::Role;
use evenkeel_store_testkit::fixtures::{START, new_job};
use evenkeel_store_testkit::rig::Known;
use serde_json::{Value, json};

use crate::world::{Answer, Counting, World, request, tokens};

const HOUR: i64 = 3600;
const DAY: u64 = 86_400;

/// Returns a token that is valid for longer than a rebalance can be undone.
fn token(role: Role, tenant: &str) -> String {
    let request = TokenRequest {
        role,
        tenant: tenant.into(),
        ttl: Span::from_secs(30 * DAY),
        now: START,
        subject: "tester".into(),
    };
    tokens().issue(&request, &Counting::new()).unwrap()
}

async fn get(world: &World, path: &str) -> Answer {
    let path = format!("/api/v1/scheduler/{path}");
    world.send(request(Method::GET, &path, Some(&token(Role::Viewer, "main")), None)).await
}

async fn post(world: &World, path: &str, body: Option<Value>) -> Answer {
    let path = format!("/api/v1/scheduler/{path}");
    world.send(request(Method::POST, &path, Some(&token(Role::Operator, "main")), body)).await
}

/// Creates `count` daily jobs that start in the same quarter hour, six hours after the start of the
/// test. The start times were chosen long enough ago for a rebalance to move the jobs.
async fn clustered(world: &World, count: usize) -> Vec<Known> {
    let job =
        |n: usize| new_job(&format!("job {n}")).every(DAY).first_at(6 * HOUR + n as i64 % 900);
    let jobs = world.rig.add_all((0..count).map(|n| job(n).build()).collect()).await;
    world.pass(HOUR + 1);
    jobs
}

async fn times(world: &World, jobs: &[Known]) -> BTreeMap<String, Timestamp> {
    let mut times = BTreeMap::new();
    for known in jobs {
        let job = world.rig.job(*known).await;
        times.insert(known.id.to_string(), job.next_at.unwrap());
    }
    times
}

/// Returns the numbers of the time slots into which the run times fall.
fn slots(times: &BTreeMap<String, Timestamp>) -> BTreeSet<i64> {
    times.values().map(|time| time.as_micros() / 900_000_000).collect()
}

fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

fn id_of(answer: &Value, field: &str) -> String {
    answer[field].as_str().unwrap().to_owned()
}

async fn preview(world: &World) -> Value {
    post(world, "rebalance/preview", None).await.expect(200)
}

async fn carry_out(world: &World, plan: &Value) -> Answer {
    post(world, "rebalance", Some(json!({"plan_id": plan["plan_id"]}))).await
}
