//! The event stream.

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request};
use evenkeel_api::{STREAMS_MAX_PER_TENANT, Streams};
use evenkeel_store::Role;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::streams::Stream;
use crate::world::{World, request, send, token};

/// Creates a server with a client that listens to events.
async fn world() -> World {
    let world = World::new().await;
    world.rig.store.events().set_has_listeners(true);
    relay(&world).await;
    world
}

/// Publishes the pending events of the store, as the engine does.
async fn relay(world: &World) {
    let (events, dropped) = world.rig.store.events().take(1000);
    world.rig.store.publish(events, dropped).await.unwrap();
}

fn asked(query: &str, last: Option<&str>) -> Request<Body> {
    asked_by("main", query, last)
}

fn asked_by(tenant: &str, query: &str, last: Option<&str>) -> Request<Body> {
    let path = format!("/api/v1/events{query}");
    let mut request = request(Method::GET, &path, Some(&token(Role::Viewer, tenant)), None);
    if let Some(last) = last {
        request.headers_mut().insert("last-event-id", HeaderValue::from_str(last).unwrap());
    }
    request
}

fn id_of(job: &Value) -> &str {
    job["id"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn events_of_a_job_arrive_in_order() {
    let world = world().await;
    let mut stream = Stream::open(&world.router, asked("", None)).await;
    let greeting = stream.next().await.unwrap();
    assert_eq!(greeting.comment, "listening");
    let job = world.create(json!({"name": "observed", "interval_minutes": 1})).await;
    let path = format!("/api/v1/jobs/{}", id_of(&job));
    let run = world.post(&format!("{path}/trigger"), None).await.expect(202);
    world.delete(&path).await.expect(200);
    relay(&world).await;
    let created = stream.event().await;
    assert_eq!(
        (created.event.as_str(), &created.data["kind"]),
        ("job.created", &json!("job.created"))
    );
    assert_eq!(created.data["job_id"], job["id"]);
    assert_eq!((&created.data["run_id"], &created.data["data"]), (&Value::Null, &json!({})));
    let requested = stream.event().await;
    assert_eq!(
        (requested.event.as_str(), &requested.data["run_id"]),
        ("run.requested", &run["run_id"])
    );
    let deleted = stream.event().await;
    for event in [&created, &requested, &deleted] {
        assert_eq!(event.data["job_name"], "observed", "{}", event.event);
    }
    assert_eq!((deleted.event.as_str(), &deleted.data["job_id"]), ("job.deleted", &job["id"]));
    let number = |id: Option<String>| id.unwrap().parse::<i64>().unwrap();
    assert!(number(greeting.id) < number(created.id) && number(requested.id) < number(deleted.id));
}

#[tokio::test(start_paused = true)]
async fn runs_withdrawn_by_a_command_end_with_an_event() {
    let world = world().await;
    let mut stream = Stream::open(&world.router, asked("?kinds=run.ended", None)).await;
    assert_eq!(stream.next().await.unwrap().comment, "listening");
    for verb in ["pause", "cancel", "delete"] {
        let job = world.create(json!({"interval_minutes": 1})).await;
        let path = format!("/api/v1/jobs/{}", id_of(&job));
        let run = world.post(&format!("{path}/trigger"), None).await.expect(202);
        match verb {
            "delete" => world.delete(&path).await.expect(200),
            verb => world.post(&format!("{path}/{verb}"), None).await.expect(200),
        };
        relay(&world).await;
        let ended = stream.event().await;
        assert_eq!((&ended.data["run_id"], &ended.data["job_id"]), (&run["run_id"], &job["id"]));
        assert_eq!(ended.data["data"], json!({"status": "cancelled"}), "{verb}");
    }
}

#[tokio::test(start_paused = true)]
async fn filters_select_events() {
    let world = world().await;
    let other = world.create(json!({"interval_minutes": 1})).await;
    let wanted = world.create(json!({"interval_minutes": 1})).await;
    relay(&world).await;
    let query = format!("?kinds=run.requested,job.*&job_id={}", id_of(&wanted));
    let mut stream = Stream::open(&world.router, asked(&query, None)).await;
    let mut deletions = Stream::open(&world.router, asked("?kinds=job.deleted", None)).await;
    for job in [&other, &wanted] {
        world.post(&format!("/api/v1/jobs/{}/trigger", id_of(job)), None).await.expect(202);
        world.delete(&format!("/api/v1/jobs/{}", id_of(job))).await.expect(200);
    }
    relay(&world).await;
    for kind in ["run.requested", "job.deleted"] {
        let event = stream.event().await;
        assert_eq!((event.event.as_str(), &event.data["job_id"]), (kind, &wanted["id"]));
    }
    for job in [&other, &wanted] {
        assert_eq!(deletions.event().await.data["job_id"], job["id"]);
    }
}

#[tokio::test(start_paused = true)]
async fn reconnecting_client_misses_nothing() {
    let world = world().await;
    let mut stream = Stream::open(&world.router, asked("", None)).await;
    let (one, two) = (world.create(json!({})).await, world.create(json!({})).await);
    relay(&world).await;
    let first = stream.event().await;
    assert_eq!(first.data["job_id"], one["id"]);
    drop(stream);
    let last = first.id.unwrap();
    for request in [
        asked("", Some(&last)),
        asked(&format!("?after={last}"), None),
        // A browser that reconnects sends its original URL and `Last-Event-ID`.
        asked("?after=1", Some(&last)),
    ] {
        let mut again = Stream::open(&world.router, request).await;
        let event = again.event().await;
        assert_eq!((event.event.as_str(), &event.data["job_id"]), ("job.created", &two["id"]));
    }
}

#[tokio::test(start_paused = true)]
async fn possibly_missing_events_are_reported_as_a_gap() {
    let world = world().await;
    world.create(json!({})).await;
    relay(&world).await;
    // These event ids are from before a restart or from another database.
    for after in ["0", "9000000000000000000"] {
        let mut stream = Stream::open(&world.router, asked("", Some(after))).await;
        assert_eq!(stream.event().await.event, "gap", "{after}");
    }
    let mut stream = Stream::open(&world.router, asked("", Some("0"))).await;
    assert_eq!(stream.event().await.event, "gap");
    assert_eq!(stream.event().await.event, "job.created");
    world.rig.store.events().mark_gap();
    relay(&world).await;
    assert_eq!(stream.event().await.event, "gap");
}

#[tokio::test(start_paused = true)]
async fn events_of_other_tenants_are_not_sent() {
    let world = world().await;
    let mut others = Stream::open(&world.router, asked_by("other", "", None)).await;
    let mine = world.create(json!({})).await;
    let theirs = {
        let token = token(Role::Operator, "other");
        let document = Some(json!({"executor_type": "noop"}));
        let create = request(Method::POST, "/api/v1/jobs", Some(&token), document);
        world.send(create).await.expect(201)
    };
    relay(&world).await;
    assert_eq!(others.event().await.data["job_id"], theirs["id"]);
    let query = format!("?job_id={}", id_of(&mine));
    world.send(asked_by("other", &query, None)).await.problem(404, "not-found");
}

#[tokio::test]
async fn invalid_event_parameters_are_named() {
    let world = world().await;
    for (query, field) in [
        ("?kinds=job.exploded", "kinds"),
        ("?kinds=j*", "kinds"),
        ("?after=x", "after"),
        ("?after=-1", "after"),
        ("?before=1", "before"),
    ] {
        let problem = world.send(asked(query, None)).await.problem(422, "invalid-parameter");
        assert_eq!(problem["field"], field, "{query}");
    }
    let problem = world.send(asked("", Some("x"))).await.problem(422, "invalid-parameter");
    assert_eq!(problem["field"], "Last-Event-ID");
}

#[tokio::test(start_paused = true)]
async fn silent_stream_sends_heartbeats_with_its_position() {
    let world = world().await;
    let mut stream = Stream::open(&world.router, asked("?kinds=job.deleted", None)).await;
    let greeting = stream.next().await.unwrap();
    world.create(json!({})).await;
    relay(&world).await;
    let newest = world.rig.store.newest_event().await.unwrap().0.to_string();
    let beat = stream.next().await.unwrap();
    assert_eq!((beat.comment.as_str(), beat.id), ("alive", Some(newest.clone())));
    assert_ne!(greeting.id, Some(newest), "events removed by the filter advance the position");
}

#[tokio::test(start_paused = true)]
async fn stream_ends_when_its_token_expires() {
    let world = world().await;
    world.pass(3600 - 40);
    let mut stream = Stream::open(&world.router, asked("", None)).await;
    let mut beats = 0;
    while stream.next().await.is_some() {
        beats += 1;
    }
    assert_eq!(beats, 3, "a greeting, and two beats in 40 s");
}

#[tokio::test(start_paused = true)]
async fn stream_ends_soon_after_its_key_is_revoked() {
    let world = world().await;
    let keys = "/api/v1/api-keys";
    let new = json!({"name": "ci", "role": "viewer"});
    let made = world.ask_as(Role::Admin, Method::POST, keys, Some(new)).await.expect(201);
    let with_key = request(Method::GET, "/api/v1/events", made["key"].as_str(), None);
    let mut stream = Stream::open(&world.router, with_key).await;
    for _ in 0..10 {
        assert!(stream.next().await.is_some(), "a good key lets it go on");
    }
    let place = format!("{keys}/{}", made["id"].as_str().unwrap());
    world.ask_as(Role::Admin, Method::DELETE, &place, None).await.expect(200);
    let mut beats = 0;
    while stream.next().await.is_some() {
        beats += 1;
    }
    assert!(beats <= 2, "{beats} beats, 15 s each");
}

#[tokio::test(start_paused = true)]
async fn streams_end_when_the_node_stops() {
    let (stop, stopping) = watch::channel(false);
    let world = World::with_streams(Streams::new(stopping)).await;
    world.rig.store.events().set_has_listeners(true);
    let mut stream = Stream::open(&world.router, asked("", None)).await;
    assert!(stream.next().await.is_some());
    stop.send_replace(true);
    assert_eq!(stream.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn open_streams_are_limited_per_tenant() {
    let world = world().await;
    let mut open = Vec::new();
    for _ in 0..STREAMS_MAX_PER_TENANT {
        open.push(Stream::open(&world.router, asked("", None)).await);
    }
    let answer = send(&world.router, asked("", None)).await;
    answer.problem(503, "too-many-streams");
    assert!(answer.headers.contains_key("retry-after"));
    Stream::open(&world.router, asked_by("other", "", None)).await;
    open.pop();
    Stream::open(&world.router, asked("", None)).await;
}

#[tokio::test(start_paused = true)]
async fn nodes_know_that_a_client_listens() {
    let world = world().await;
    assert_eq!(world.rig.store.listened_until().await.unwrap(), None);
    let stream = Stream::open(&world.router, asked("", None)).await;
    let until = world.rig.store.listened_until().await.unwrap().unwrap();
    assert!(until > world.rig.store.now().await.unwrap());
    drop(stream);
}
