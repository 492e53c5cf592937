//! Tests of bulk requests that create many jobs.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::http::{Method, Request, header};
use evenkeel_store::{JobFilter, JobSort, PageRequest, Role, StoreError};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::world::{Answer, World, noop, request, token};

const BULK: &str = "/api/v1/jobs/bulk";

async fn count(world: &World) -> u64 {
    let (filter, sort) = (JobFilter::default(), JobSort::default());
    let page = PageRequest::first(1);
    world.rig.store.list_jobs(&world.rig.scope, &filter, sort, page).await.unwrap().total
}

/// Sends a bulk request with one job per line and an optional idempotency key.
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
async fn bulk_answers_each_job() {
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
async fn bulk_of_several_batches_keeps_its_order() {
    let world = World::new().await;
    let jobs: Vec<Value> = (0..6250).map(|n| noop(json!({"name": format!("job {n}")}))).collect();
    let answer = world.post(BULK, Some(json!({"jobs": jobs}))).await.expect(200);
    assert_eq!(answer["created"], 6250);
    let last = answer["results"][6249]["id"].as_str().unwrap();
    assert_eq!(world.get(&format!("/api/v1/jobs/{last}")).await.expect(200)["name"], "job 6249");
    // The request body is larger than other routes accept.
    let long = noop(json!({"payload": "x".repeat(200_000)}));
    let answer = world.post(BULK, Some(json!({"jobs": vec![long; 10]}))).await.expect(200);
    assert_eq!(answer["created"], 10);
}

#[tokio::test]
async fn body_without_a_list_of_jobs_is_refused() {
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
async fn stream_is_answered_line_by_line() {
    let world = World::new().await;
    let long = format!("{{\"payload\": \"{}\"}}", "x".repeat(1024 * 1024));
    let good = noop(json!({"name": "a"})).to_string();
    let body = format!("{good}\n\nnot json\n{long}\n{good}\r\n{}", noop(json!({"name": "b"})));
    let results = results(&lines(&world, body, None).await);
    let answered: Vec<_> = results
        .iter()
        .map(|one| (one["line"].as_u64().unwrap(), one["status"].as_u64().unwrap()))
        .collect();
    assert_eq!(answered, [(1, 201), (3, 400), (4, 413), (5, 409), (6, 201)]);
    assert_eq!(results[3]["error"]["existing_id"], results[0]["id"]);
    assert_eq!(count(&world).await, 2);
    assert_eq!(lines(&world, "", None).await.text, "");
}

#[tokio::test]
async fn repeated_stream_with_a_key_resumes_where_it_stopped() {
    let world = World::new().await;
    let line = |n| format!("{}\n", noop(json!({"source_id": format!("s{n}")})));
    let whole: String = (0..5250).map(line).collect();
    // The connection of the first request breaks within the second batch of 2,500 lines.
    let part: String = (0..3750).map(line).collect();
    let pieces = [Ok(part), Err(std::io::Error::other("gone"))];
    let broken = Body::from_stream(futures::stream::iter(pieces));
    let first = results(&lines(&world, broken, Some("k")).await);
    assert_eq!((first.len(), count(&world).await), (2500, 2500));
    let again = results(&lines(&world, whole.clone(), Some("k")).await);
    assert_eq!((again.len(), count(&world).await), (5250, 5250));
    assert_eq!(again[..2500], first[..]);
    assert_eq!(results(&lines(&world, whole, Some("k")).await), again);
    assert_eq!(count(&world).await, 5250);
    let other = results(&lines(&world, line(7), Some("k")).await);
    assert_eq!(other[0]["status"], 422);
    assert_eq!(other[0]["error"]["type"], "/problems/idempotency-key-reused");
    assert_eq!(count(&world).await, 5250);
}

#[tokio::test(start_paused = true)]
async fn stalled_stream_ends_and_names_the_first_unhandled_line() {
    let world = World::new().await;
    let part: String = (0..2503).map(|_| format!("{}\n", noop(json!({})))).collect();
    let pieces = futures::stream::iter([Ok::<_, std::io::Error>(part)]);
    let silent = Body::from_stream(pieces.chain(futures::stream::pending()));
    let answered = results(&lines(&world, silent, None).await);
    assert_eq!((answered.len(), count(&world).await), (2501, 2500));
    let last = &answered[2500];
    assert_eq!((&last["line"], &last["status"]), (&json!(2501), &json!(408)));
    assert_eq!(last["error"]["type"], "/problems/request-timeout");
}

#[tokio::test]
async fn jobs_created_before_an_outage_within_a_batch_are_reported() {
    // Storing the whole batch fails, so its jobs are created one by one; for the third job, the
    // store is unavailable.
    let asked = AtomicU64::new(0);
    let fault = move |verb: &str| match (verb, asked.load(Ordering::Relaxed)) {
        ("register", nth) => {
            asked.store(nth + 1, Ordering::Relaxed);
            match nth {
                0 => Some(StoreError::Refused("no".into())),
                3 => Some(StoreError::Unavailable("gone".into())),
                _ => None,
            }
        }
        _ => None,
    };
    let world = World::failing(move |_, verb| fault(verb)).await;
    let first = document(&world, 5, "k").await.expect(200);
    let answered = statuses(first["results"].as_array().unwrap());
    assert_eq!((answered, count(&world).await), (vec![201, 201, 503, 503, 503], 2));
    let again = document(&world, 5, "k").await.expect(200);
    assert_eq!((again, count(&world).await), (first, 2), "none is created twice");
}

/// Creates a server whose store fails at the listed calls of `register`, counted from 1.
async fn failing_at(which: &'static [u64], error: fn() -> StoreError) -> World {
    let asked = AtomicU64::new(0);
    let fault = move |verb: &str| {
        let is_hit =
            verb == "register" && which.contains(&(asked.fetch_add(1, Ordering::Relaxed) + 1));
        is_hit.then(error)
    };
    World::failing(move |_, verb| fault(verb)).await
}

/// Sends a JSON document of unnamed jobs with an idempotency key.
async fn document(world: &World, jobs: usize, key: &str) -> Answer {
    let body = json!({"jobs": vec![noop(json!({"schedule": "30m"})); jobs]});
    let mut asked = request(Method::POST, BULK, Some(&token(Role::Operator, "main")), Some(body));
    asked.headers_mut().insert("idempotency-key", key.parse().unwrap());
    world.send(asked).await
}

fn statuses(results: &[Value]) -> Vec<u64> {
    results.iter().map(|one| one["status"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn repeated_document_creates_what_an_outage_left_out() {
    let world = failing_at(&[3], || StoreError::Unavailable("gone".into())).await;
    let first = document(&world, 8750, "k").await.expect(200);
    assert_eq!((&first["created"], &first["refused"]), (&json!(6250), &json!(2500)));
    let answered = first["results"].as_array().unwrap();
    assert_eq!(statuses(answered)[4999..5001], [201, 503]);
    assert_eq!(statuses(answered)[7499..7501], [503, 201]);
    let again = document(&world, 8750, "k").await;
    assert!(again.headers.get("idempotent-replayed").is_none());
    let again = again.expect(200);
    assert_eq!((&again["created"], count(&world).await), (&json!(8750), 8750));
    assert_eq!(again["results"].as_array().unwrap()[..5000], answered[..5000]);
    assert_eq!(again["results"].as_array().unwrap()[7500..], answered[7500..]);
    let kept = document(&world, 8750, "k").await;
    assert!(kept.headers.get("idempotent-replayed").is_some());
    assert_eq!((kept.expect(200), count(&world).await), (again, 8750));
}

#[tokio::test]
async fn document_of_which_nothing_was_created_fails_as_a_whole() {
    let world = failing_at(&[1], || StoreError::Unavailable("gone".into())).await;
    document(&world, 3, "k").await.problem(503, "store-unavailable");
    assert_eq!(document(&world, 3, "k").await.expect(200)["created"], 3);
}

#[tokio::test]
async fn changed_document_needs_another_key() {
    let world = failing_at(&[2], || StoreError::Unavailable("gone".into())).await;
    assert_eq!(document(&world, 3750, "k").await.expect(200)["created"], 2500);
    for _ in 0..2 {
        document(&world, 2250, "k").await.problem(422, "idempotency-key-reused");
    }
    assert_eq!(document(&world, 3750, "k").await.expect(200)["created"], 3750);
    assert_eq!(count(&world).await, 3750);
}

#[tokio::test]
async fn repeated_stream_with_a_failing_line_creates_no_duplicates() {
    // Storing the whole batch fails first, and then storing the second job of the batch fails.
    let world = failing_at(&[1, 3], || StoreError::Refused("no".into())).await;
    let body: String = (0..2502).map(|_| format!("{}\n", noop(json!({})))).collect();
    let first = results(&lines(&world, body.clone(), Some("k")).await);
    assert_eq!((first.len(), count(&world).await), (2502, 2501));
    assert_eq!(statuses(&first)[..3], [201, 500, 201]);
    assert_eq!(results(&lines(&world, body, Some("k")).await), first);
    assert_eq!(count(&world).await, 2501);
}

#[tokio::test]
async fn answers_too_long_to_store_are_reported_line_by_line() {
    let world = World::new().await;
    let mut wrong = noop(json!({}));
    for n in 0..40 {
        wrong[format!("typo_{n}")] = json!(1);
    }
    let wrong: String = (0..2499).map(|_| format!("{wrong}\n")).collect();
    let body = format!("{}\n{wrong}{}\n", noop(json!({})), noop(json!({})));
    let first = lines(&world, body.clone(), Some("k")).await;
    assert!(first.text.len() > 1024 * 1024, "{}", first.text.len());
    let again = results(&lines(&world, body, Some("k")).await);
    assert_eq!(again.len(), 2501);
    for (n, one) in (1..=2500).zip(&again) {
        assert_eq!((&one["line"], &one["status"]), (&json!(n), &json!(409)));
        assert_eq!(one["error"]["type"], "/problems/answer-not-kept");
    }
    assert_eq!(again[2500], results(&first)[2500]);
    assert_eq!(count(&world).await, 2);
}

#[tokio::test]
async fn document_starts_no_batch_when_its_key_is_about_to_expire() {
    let world = World::failing(|clock, verb| {
        if verb == "register" {
            clock.fetch_add(50_000_000, Ordering::Relaxed);
        }
        None
    })
    .await;
    let first = document(&world, 8750, "k").await.expect(200);
    assert_eq!((&first["created"], count(&world).await), (&json!(5000), 5000));
    let late = &first["results"][5000];
    assert_eq!((&late["line"], &late["status"]), (&json!(5001), &json!(503)));
    assert_eq!(late["error"]["type"], "/problems/timeout");
    let again = document(&world, 8750, "k").await.expect(200);
    assert_eq!((&again["created"], count(&world).await), (&json!(8750), 8750));
}

#[tokio::test]
async fn viewers_cannot_create_jobs() {
    let world = World::new().await;
    let body = Some(json!({"jobs": []}));
    let answer = world.ask_as(Role::Viewer, Method::POST, BULK, body).await;
    answer.problem(403, "forbidden");
}

#[tokio::test]
async fn concurrent_bulk_requests_do_not_interfere() {
    let world = World::new().await;
    let create = |n: usize| {
        // Every third job has the name of the job before it, and every fifth job is invalid.
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
