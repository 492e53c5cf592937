//! Many jobs at once.

use axum::body::Body;
use axum::http::{Method, Request, header};
use evenkeel_store::{JobFilter, JobSort, PageRequest, Role};
use serde_json::{Value, json};

use super::world::{Answer, World, noop, token};

const BULK: &str = "/api/v1/jobs/bulk";

async fn count(world: &World) -> u64 {
    let (filter, sort) = (JobFilter::default(), JobSort::default());
    let page = PageRequest::first(1);
    world.rig.store.list_jobs(&world.rig.scope, &filter, sort, page).await.unwrap().total
}

/// Sends lines, with a key if there is one.
async fn lines(world: &World, body: impl Into<Body>, key: Option<&str>) -> Answer {
    let token = token(Role::Operator, "main");
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(BULK)
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/x-ndjson");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    world.send(request.body(body.into()).unwrap()).await
}

fn results(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.header(header::CONTENT_TYPE), Some("application/x-ndjson"));
    answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn each_of_many_has_its_answer() {
    let world = World::new().await;
    let taken = world.create(json!({"name": "taken"})).await;
    let jobs = json!({"jobs": [
        noop(json!({"name": "a", "schedule": "30m"})),
        noop(json!({"name": "taken"})),
        noop(json!({"priority": 500, "typo": 1})),
        "no job",
        noop(json!({"name": "a"})),
        noop(json!({"schedule": "30m", "end_at": "2001-01-01T00:00:00Z"})),
        noop(json!({})),
    ]});
    let answer = world.post(BULK, Some(jobs)).await.expect(200);
    assert_eq!((answer["created"].clone(), answer["refused"].clone()), (json!(2), json!(5)));
    let results = answer["results"].as_array().unwrap();
    let statuses: Vec<_> = results.iter().map(|one| one["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [201, 409, 422, 422, 409, 422, 201]);
    let numbers: Vec<_> = results.iter().map(|one| one["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(results[1]["error"]["existing_id"], taken["id"]);
    assert_eq!(results[2]["error"]["errors"].as_array().unwrap().len(), 2);
    assert_eq!(results[4]["error"]["existing_id"], results[0]["id"]);
    let path = format!("/api/v1/jobs/{}", results[0]["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.expect(200)["name"], "a");
    assert_eq!(count(&world).await, 3);
}

#[tokio::test]
async fn more_than_a_batch_keeps_its_order() {
    let world = World::new().await;
    let jobs: Vec<Value> = (0..2500).map(|n| noop(json!({"name": format!("job {n}")}))).collect();
    let answer = world.post(BULK, Some(json!({"jobs": jobs}))).await.expect(200);
    assert_eq!(answer["created"], 2500);
    let last = answer["results"][2499]["id"].as_str().unwrap();
    assert_eq!(world.get(&format!("/api/v1/jobs/{last}")).await.expect(200)["name"], "job 2499");
    // Larger than what other routes take.
    let long = noop(json!({"payload": "x".repeat(200_000)}));
    let answer = world.post(BULK, Some(json!({"jobs": vec![long; 10]}))).await.expect(200);
    assert_eq!(answer["created"], 10);
}

#[tokio::test]
async fn what_is_no_list_of_jobs_is_refused() {
    let world = World::new().await;
    for body in [json!({}), json!([]), json!({"jobs": 7}), json!({"jobs": [], "job": 1})] {
        let problem = world.post(BULK, Some(body)).await.problem(422, "invalid-parameter");
        assert_eq!(problem["field"], "jobs");
    }
    let many = json!({"jobs": vec![json!({}); 10_001]});
    let problem = world.post(BULK, Some(many)).await.problem(422, "invalid-parameter");
    assert!(problem["detail"].as_str().unwrap().contains("x-ndjson"));
    assert_eq!(world.post(BULK, Some(json!({"jobs": []}))).await.expect(200)["created"], 0);
}

#[tokio::test]
async fn a_stream_is_answered_line_by_line() {
    let world = World::new().await;
    let long = format!("{{\"payload\": \"{}\"}}", "x".repeat(1024 * 1024));
    let good = noop(json!({"name": "a"})).to_string();
    let body = format!("{good}\n\nnot json\n{long}\n{good}\r\n{}", noop(json!({"name": "b"})));
    let results = results(&lines(&world, body, None).await);
    let told: Vec<_> = results
        .iter()
        .map(|one| (one["line"].as_u64().unwrap(), one["status"].as_u64().unwrap()))
        .collect();
    assert_eq!(told, [(1, 201), (3, 400), (4, 413), (5, 409), (6, 201)]);
    assert_eq!(results[3]["error"]["existing_id"], results[0]["id"]);
    assert_eq!(count(&world).await, 2);
    assert_eq!(lines(&world, "", None).await.text, "");
}

#[tokio::test]
async fn a_stream_with_a_key_is_done_once_and_goes_on_where_it_broke_off() {
    let world = World::new().await;
    let line = |n| format!("{}\n", noop(json!({"source_id": format!("s{n}")})));
    let whole: String = (0..2100).map(line).collect();
    // The first sender gets no further than the second thousand.
    let part: String = (0..1500).map(line).collect();
    let pieces = [Ok(part), Err(std::io::Error::other("gone"))];
    let broken = Body::from_stream(futures::stream::iter(pieces));
    let first = results(&lines(&world, broken, Some("k")).await);
    assert_eq!((first.len(), count(&world).await), (1000, 1000));
    let again = results(&lines(&world, whole.clone(), Some("k")).await);
    assert_eq!((again.len(), count(&world).await), (2100, 2100));
    assert_eq!(again[..1000], first[..]);
    assert_eq!(results(&lines(&world, whole, Some("k")).await), again);
    assert_eq!(count(&world).await, 2100);
    let other = results(&lines(&world, line(7), Some("k")).await);
    assert_eq!(other[0]["status"], 422);
    assert_eq!(other[0]["error"]["type"], "/problems/idempotency-key-reused");
    assert_eq!(count(&world).await, 2100);
}

#[tokio::test]
async fn viewers_create_nothing() {
    let world = World::new().await;
    let body = Some(json!({"jobs": []}));
    let answer = world.ask_as(Role::Viewer, Method::POST, BULK, body).await;
    answer.problem(403, "forbidden");
}

#[tokio::test]
async fn jobs_that_come_at_once_do_not_spoil_each_other() {
    let world = World::new().await;
    let create = |n: usize| {
        // Every third has the name of the one before, every fifth could never run.
        let name = if n % 3 == 2 { n - 1 } else { n };
        let mut job = noop(json!({"name": format!("job {name}"), "schedule": "30m"}));
        if n % 5 == 4 {
            job["end_at"] = json!("2001-01-01T00:00:00Z");
        }
        let world = &world;
        async move { world.post("/api/v1/jobs", Some(job)).await }
    };
    let answers = futures::future::join_all((0..60).map(create)).await;
    let mut created = 0;
    for answer in &answers {
        match answer.status.as_u16() {
            201 => {
                created += 1;
                let job = answer.json();
                let path = format!("/api/v1/jobs/{}", job["id"].as_str().unwrap());
                let shown = world.get(&path).await;
                assert_eq!(shown.expect(200), job);
                assert_eq!(shown.header(header::ETAG), answer.header(header::ETAG));
            }
            409 => drop(answer.problem(409, "name-taken")),
            _ => assert_eq!(answer.problem(422, "invalid-job")["field"], "end_at"),
        }
    }
    assert_eq!(count(&world).await, created);
    assert!(answers.iter().any(|answer| answer.status == 409));
    assert!(answers.iter().any(|answer| answer.status == 422));
}
