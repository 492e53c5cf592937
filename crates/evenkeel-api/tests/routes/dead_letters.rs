//! Dead letters: listing, redriving, deleting.

use axum::http::Method;
use evenkeel_core::attempt::Outcome;
use evenkeel_core::on_failure::{DeathReason, Hook};
use evenkeel_core::{AttemptKey, Span};
use evenkeel_store::{Action, Finish, Results, Role, Then};
use evenkeel_store_testkit::commands::Commands as _;
use evenkeel_store_testkit::fixtures::{at, now};
use serde_json::{Value, json};

use crate::world::{World, run_ids};

const LETTERS: &str = "/api/v1/dead-letters";

async fn job(world: &World, name: &str) -> Value {
    let on_failure = json!({"action": "dead_letter"});
    let more = json!({"name": name, "interval_minutes": 1, "start_at": at(60),
                      "on_failure": on_failure});
    let job = world.create(more).await;
    assert_eq!(job["on_failure"], on_failure);
    job
}

/// Runs the job `secs` seconds after the start of the test; the run fails four seconds later and
/// becomes a dead letter.
async fn dead_run(world: &World, job: &Value, secs: i64) -> AttemptKey {
    let held = world.rig.start(world.known(job).await, secs).await;
    let then = Then::EndRun { stop_job: false, next_at: None };
    let finish = Finish {
        started_at: at(secs),
        finished_at: at(secs).saturating_add(Span::from_secs(4)),
        results: Results { error: Some("no route".into()), ..Results::default() },
        hook: Hook::DeadLetter(DeathReason::RetriesExhausted),
        ..world.rig.end(held, Outcome::Failed, then)
    };
    world.rig.finish(finish).await;
    held.key
}

fn path(key: AttemptKey) -> String {
    format!("{LETTERS}/{}", run_ids().run_id(key))
}

#[tokio::test]
async fn dead_letter_is_shown_with_all_its_fields() {
    let world = World::new().await;
    let job = job(&world, "news").await;
    let key = dead_run(&world, &job, 60).await;
    let id = run_ids().run_id(key).to_string();
    let shown = world.get(&path(key)).await.expect(200);
    assert_eq!(
        shown,
        json!({
            "id": id, "execution_id": id, "job_id": job["id"], "job_name": "news",
            "scheduled_at": at(60), "attempts": 1, "died_at": at(64),
            "reason": "retries_exhausted", "status": "failed", "error_message": "no route",
            "redriven_at": null, "redriven_run_id": null,
        })
    );
    let list = world.get(LETTERS).await.expect(200);
    assert_eq!(
        list,
        json!({
            "dead_letters": [shown], "total": 1, "total_is_estimate": false, "limit": 50,
            "offset": 0, "next_cursor": null,
        })
    );
}

#[tokio::test]
async fn list_continues_while_dead_letters_are_deleted() {
    let world = World::new().await;
    let job = job(&world, "news").await;
    let mut keys = Vec::new();
    for minute in 1..=5 {
        keys.push(dead_run(&world, &job, minute * 60).await);
    }
    let first = world.get(&format!("{LETTERS}?limit=2")).await.expect(200);
    assert_eq!((first["dead_letters"].as_array().unwrap().len(), &first["total"]), (2, &json!(5)));
    world.delete(&path(keys[3])).await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world.get(&format!("{LETTERS}?limit=9&cursor={cursor}")).await.expect(200);
    let ids: Vec<&str> = second["dead_letters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|letter| letter["id"].as_str().unwrap())
        .collect();
    let expected = [keys[2], keys[1], keys[0]].map(|key| run_ids().run_id(key).to_string());
    assert_eq!(ids, expected);
    world.get(&format!("{LETTERS}?cursor=AAAA")).await.problem(422, "invalid-parameter");
    world.get(&format!("{LETTERS}?redriven=maybe")).await.problem(422, "invalid-parameter");
    world.get(&format!("{LETTERS}?state=open")).await.problem(422, "invalid-parameter");
}

#[tokio::test]
async fn dead_letter_is_redriven_once() {
    let world = World::new().await;
    let job = job(&world, "news").await;
    let key = dead_run(&world, &job, 60).await;
    let redrive = format!("{}/redrive", path(key));
    let answer = world.post(&redrive, None).await.expect(202);
    assert_eq!(answer["id"], run_ids().run_id(key).to_string());
    let letter = world.get(&path(key)).await.expect(200);
    assert_eq!(letter["redriven_run_id"], answer["run_id"]);
    assert!(letter["redriven_at"].is_string());
    let path_of_run = format!("/api/v1/executions/{}", answer["run_id"].as_str().unwrap());
    let run = world.get(&path_of_run).await.expect(200);
    assert_eq!((&run["origin"], &run["status"]), (&json!("redrive"), &json!("pending")));
    let refusal = world.post(&redrive, None).await.problem(409, "letter-redriven");
    assert!(refusal["detail"].as_str().unwrap().contains(answer["run_id"].as_str().unwrap()));
    let open = world.get(&format!("{LETTERS}?redriven=false")).await.expect(200);
    assert_eq!(open["total"], 0);
    let taken = world.get(&format!("{LETTERS}?redriven=true")).await.expect(200);
    assert_eq!(taken["dead_letters"], json!([letter]));
}

#[tokio::test]
async fn bulk_redrive_answers_each_letter() {
    let world = World::new().await;
    let (one, other) = (job(&world, "one").await, job(&world, "other").await);
    let keys = [
        dead_run(&world, &one, 60).await,
        dead_run(&world, &other, 60).await,
        dead_run(&world, &one, 120).await,
    ];
    let never = "0006442d-7b2b-8640-8000-000000040000".to_owned();
    let mut ids = keys.map(|key| run_ids().run_id(key).to_string()).to_vec();
    ids.push(never.clone());
    let body = json!({"ids": ids});
    let answer = world.post(&format!("{LETTERS}/redrive"), Some(body.clone())).await.expect(200);
    assert_eq!((&answer["redriven"], &answer["refused"]), (&json!(2), &json!(2)));
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[0]["ok"], true);
    assert!(results[1]["run_id"].is_string());
    assert_eq!(results[2]["error"]["type"], "/problems/job-busy");
    assert_eq!(results[3]["error"]["type"], "/problems/not-found");
    let answer = world.post(&format!("{LETTERS}/delete"), Some(body)).await.expect(200);
    assert_eq!((&answer["deleted"], &answer["refused"]), (&json!(3), &json!(1)));
    assert_eq!(answer["results"][3]["id"], never);
    assert_eq!(world.get(LETTERS).await.expect(200)["total"], 0);
    for body in [json!({}), json!({"ids": "all"}), json!({"ids": ["x"]}), json!([])] {
        let answer = world.post(&format!("{LETTERS}/redrive"), Some(body)).await;
        answer.problem(422, "invalid-parameter");
    }
}

#[tokio::test]
async fn dead_letter_of_an_ended_job_is_not_redriven() {
    let world = World::new().await;
    let (cancelled, deleted) = (job(&world, "one").await, job(&world, "other").await);
    let keys = [dead_run(&world, &cancelled, 60).await, dead_run(&world, &deleted, 60).await];
    let (store, scope) = (&world.rig.store, &world.rig.scope);
    let id = world.known(&cancelled).await.id;
    store.act(scope, id, Action::Cancel, now(70)).await.unwrap();
    let id = world.known(&deleted).await.id;
    store.act(scope, id, Action::Delete, now(70)).await.unwrap();
    let refusal = world.post(&format!("{}/redrive", path(keys[0])), None).await;
    assert_eq!(refusal.problem(409, "job-state")["job_status"], "cancelled");
    let refusal = world.post(&format!("{}/redrive", path(keys[1])), None).await;
    assert!(refusal.problem(409, "job-state")["detail"].as_str().unwrap().contains("deleted"));
}

#[tokio::test]
async fn viewers_read_and_operators_redrive() {
    let world = World::new().await;
    let job = job(&world, "news").await;
    let key = dead_run(&world, &job, 60).await;
    let redrive = format!("{}/redrive", path(key));
    let ids = json!({"ids": [run_ids().run_id(key)]});
    for (method, path, body, status) in [
        (Method::GET, LETTERS.to_owned(), None, 200),
        (Method::GET, path(key), None, 200),
        (Method::POST, redrive, None, 403),
        (Method::POST, format!("{LETTERS}/redrive"), Some(ids.clone()), 403),
        (Method::POST, format!("{LETTERS}/delete"), Some(ids), 403),
        (Method::DELETE, path(key), None, 403),
    ] {
        let answer = world.ask_as(Role::Viewer, method, &path, body).await;
        assert_eq!(answer.status.as_u16(), status, "{path}");
    }
}

#[tokio::test]
async fn unknown_dead_letter_is_not_found() {
    let world = World::new().await;
    let id = "0006442d-7b2b-8640-8000-000000040000";
    for path in [format!("{LETTERS}/{id}"), format!("{LETTERS}/7")] {
        world.get(&path).await.problem(404, "not-found");
        world.delete(&path).await.problem(404, "not-found");
        world.post(&format!("{path}/redrive"), None).await.problem(404, "not-found");
    }
}

#[tokio::test]
async fn pause_after_failures_shows_in_the_job_and_in_explain() {
    let world = World::new().await;
    let on_failure = json!({"action": "pause", "after": 2, "note": "ask Ann"});
    let job = world.create(json!({"interval_minutes": 1, "on_failure": on_failure})).await;
    assert_eq!((&job["on_failure"], &job["pause_note"]), (&on_failure, &Value::Null));
    let note = "paused because 2 runs in a row failed: ask Ann";
    let action = Action::Suspend { note: note.into() };
    let id = world.known(&job).await.id;
    world.rig.store.act(&world.rig.scope, id, action, now(70)).await.unwrap();
    let path = format!("/api/v1/jobs/{id}");
    let shown = world.get(&path).await.expect(200);
    assert_eq!((&shown["status"], &shown["pause_note"]), (&json!("paused"), &json!(note)));
    let explained = world.get(&format!("{path}/explain")).await.expect(200);
    assert_eq!(explained["reasons"][0]["note"], note);
    assert!(explained["summary"].as_str().unwrap().contains("It is paused because 2 runs"));
    let resumed = world.post(&format!("{path}/resume"), None).await.expect(200);
    assert_eq!(resumed["pause_note"], Value::Null);
}
