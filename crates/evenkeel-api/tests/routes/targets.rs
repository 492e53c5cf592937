//! Targets, and jobs that refer to them.

use axum::http::{Method, header};
use evenkeel_store::Role;
use serde_json::{Value, json};

use crate::world::{Answer, World, request, token};

const TARGETS: &str = "/api/v1/targets";

async fn make(world: &World, document: Value) -> Value {
    world.post(TARGETS, Some(document)).await.expect(201)
}

async fn change(world: &World, number: i64, sent: Value) -> Answer {
    let path = format!("{TARGETS}/{number}");
    world.ask_as(Role::Operator, Method::PATCH, &path, Some(sent)).await
}

async fn job_of(world: &World, more: Value) -> Answer {
    let mut document = json!({"interval_minutes": 60});
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.post("/api/v1/jobs", Some(document)).await
}

async fn job(world: &World, id: &Value) -> Value {
    world.get(&format!("/api/v1/jobs/{}", id.as_str().unwrap())).await.expect(200)
}

#[tokio::test]
async fn job_has_a_number_and_an_id() {
    let world = World::new().await;
    let numbers = [
        world.create(json!({"name": "a"})).await["number"].clone(),
        world.create(json!({"name": "b"})).await["number"].clone(),
    ];
    assert_eq!(numbers, [json!(1), json!(2)]);
    let list = world.get("/api/v1/jobs?sort=created_at").await.expect(200);
    assert_eq!(list["jobs"][1]["number"], 2);
}

#[tokio::test]
async fn target_is_created_shown_listed_changed_and_deleted() {
    let world = World::new().await;
    let answer = world
        .post(TARGETS, Some(json!({"name": "A", "url": "https://example.com/a", "source_id": "a"})))
        .await;
    let made = answer.expect(201);
    assert_eq!(answer.header(header::LOCATION), Some("/api/v1/targets/1"));
    assert_eq!(answer.header(header::ETAG), Some("\"g1\""));
    assert_eq!(made["number"], 1);
    assert_eq!((&made["jobs"], &made["last_success_at"]), (&json!(0), &Value::Null));
    assert_eq!(world.get("/api/v1/targets/1").await.expect(200), made);
    make(&world, json!({"number": 9})).await;
    let page = world.get("/api/v1/targets?limit=1").await.expect(200);
    assert_eq!((&page["total"], &page["targets"][0]), (&json!(2), &made));
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = world.get(&format!("/api/v1/targets?cursor={cursor}")).await.expect(200);
    assert_eq!((&rest["targets"][0]["number"], &rest["next_cursor"]), (&json!(9), &Value::Null));
    let changed = change(&world, 1, json!({"name": null, "url": "https://example.com/b"})).await;
    let changed = changed.expect(200);
    assert_eq!((&changed["name"], &changed["source_id"]), (&Value::Null, &json!("a")));
    assert_eq!(
        (&changed["url"], &changed["generation"]),
        (&json!("https://example.com/b"), &json!(2))
    );
    // Sending the target back as shown changes nothing; `PUT` ignores a changed read-only field.
    let mut shown = world.get("/api/v1/targets/1").await.expect(200);
    change(&world, 1, shown.clone()).await.expect(200);
    shown["number"] = json!(5);
    let same = world.ask_as(Role::Operator, Method::PUT, "/api/v1/targets/1", Some(shown));
    assert_eq!(same.await.expect(200), changed);
    for sent in [json!({"number": 5}), json!({"jobs": 3, "name": "x"})] {
        let field = sent.as_object().unwrap().keys().next().unwrap().clone();
        let problem = change(&world, 1, sent).await.problem(422, "invalid-parameter");
        assert_eq!(problem["errors"][0]["field"], field);
    }
    assert_eq!(world.get("/api/v1/targets/5").await.json()["status"], 404);
    let gone = world.delete("/api/v1/targets/1").await.expect(200);
    assert_eq!(gone, json!({"number": 1, "deleted": true, "detached_jobs": 0}));
    world.get("/api/v1/targets/1").await.problem(404, "not-found");
    world.delete("/api/v1/targets/1").await.problem(404, "not-found");
    world.get("/api/v1/targets/one").await.problem(404, "not-found");
}

#[tokio::test]
async fn invalid_target_is_refused_by_field() {
    let world = World::new().await;
    make(&world, json!({"number": 3, "source_id": "a"})).await;
    for (document, field) in [
        (json!({"number": 0}), "number"),
        (json!({"number": "3"}), "number"),
        (json!({"url": "ftp://example.com"}), "url"),
        (json!({"name": " "}), "name"),
        (json!({"nmae": "x"}), "nmae"),
        (json!([]), ""),
    ] {
        let problem = world.post(TARGETS, Some(document)).await.problem(422, "invalid-parameter");
        assert_eq!(problem["errors"][0]["field"], field);
    }
    let taken = world.post(TARGETS, Some(json!({"number": 3}))).await.problem(409, "target-taken");
    assert_eq!(taken["field"], "number");
    let taken = world.post(TARGETS, Some(json!({"source_id": "a"}))).await;
    assert_eq!(taken.problem(409, "target-taken")["field"], "source_id");
    let other = make(&world, json!({})).await["number"].as_i64().unwrap();
    change(&world, other, json!({"source_id": "a"})).await.problem(409, "target-taken");
    change(&world, 77, json!({"name": "x"})).await.problem(404, "not-found");
}

#[tokio::test]
async fn concurrent_change_is_refused_with_if_match() {
    let world = World::new().await;
    make(&world, json!({})).await;
    let token = token(Role::Operator, "main");
    let send = async |tag: &'static str, name: &str| {
        let body = Some(json!({"name": name}));
        let mut request = request(Method::PATCH, "/api/v1/targets/1", Some(&token), body);
        request.headers_mut().insert(header::IF_MATCH, header::HeaderValue::from_static(tag));
        world.send(request).await
    };
    send("\"g1\"", "a").await.expect(200);
    let problem = send("\"g1\"", "b").await.problem(412, "target-changed");
    assert_eq!(problem["generation"], 2);
    assert_eq!(world.get("/api/v1/targets/1").await.expect(200)["name"], "a");
}

#[tokio::test]
async fn target_with_jobs_is_deleted_only_with_force() {
    let world = World::new().await;
    make(&world, json!({"url": "https://example.com/"})).await;
    let made = job_of(&world, json!({"target": 1})).await.expect(201);
    let problem = world.delete("/api/v1/targets/1").await.problem(409, "target-in-use");
    assert!(problem["detail"].as_str().unwrap().contains("(1)"), "{problem}");
    let gone = world.delete("/api/v1/targets/1?force=true").await.expect(200);
    assert_eq!(gone["detached_jobs"], 1);
    let left = job(&world, &made["id"]).await;
    assert_eq!((&left["target"], &left["executor_type"]), (&Value::Null, &json!("crawl")));
    assert_eq!(left["url"], "https://example.com/");
    assert_eq!(left["generation"], 2);
    // A job with its own executor keeps its URL when it gets another target.
    make(&world, json!({"url": "https://example.com/b"})).await;
    let own = patch(&world, &made["id"], json!({"target": 2})).await.expect(200);
    assert_eq!(own["url"], "https://example.com/");
}

async fn patch(world: &World, id: &Value, sent: Value) -> Answer {
    let path = format!("/api/v1/jobs/{}", id.as_str().unwrap());
    world.ask_as(Role::Operator, Method::PATCH, &path, Some(sent)).await
}

#[tokio::test]
async fn job_that_changes_its_target_follows_the_new_one() {
    let world = World::new().await;
    for url in ["https://example.com/a", "https://example.com/b"] {
        make(&world, json!({"url": url})).await;
    }
    make(&world, json!({"name": "without"})).await;
    let made = job_of(&world, json!({"target": 1})).await.expect(201);
    let id = &made["id"];
    let at_start = |job: &Value| {
        let fields = ["url", "executor_type", "target"].map(|field| job[field].clone());
        (fields, job["executor_config"]["url"].clone())
    };
    let crawls = |target: i64, url: &str| ([json!(url), json!("crawl"), json!(target)], json!(url));
    let moved = patch(&world, id, json!({"target": 2})).await.expect(200);
    assert_eq!(at_start(&moved), crawls(2, "https://example.com/b"));
    // The job no longer crawls the URL of the first target.
    let changed = change(&world, 1, json!({"url": "https://example.com/a2"})).await.expect(200);
    assert_eq!(changed["followed_jobs"], 0);
    let changed = change(&world, 2, json!({"url": "https://example.com/b2"})).await.expect(200);
    assert_eq!((&changed["followed_jobs"], &changed["refused_jobs"]), (&json!(1), &json!(0)));
    assert_eq!(at_start(&job(&world, id).await), crawls(2, "https://example.com/b2"));
    // A request can change the target together with the executor configuration; the job then crawls
    // the new target's URL.
    let sent = json!({"target": 1, "executor_config": {"max_pages": 7}});
    let moved = patch(&world, id, sent).await.expect(200);
    assert_eq!(at_start(&moved), crawls(1, "https://example.com/a2"));
    assert_eq!(moved["executor_config"]["max_pages"], 7);
    let moved = patch(&world, id, json!({"target": 3})).await.expect(200);
    assert_eq!((&moved["executor_type"], &moved["url"]), (&json!("none"), &Value::Null));
    assert_eq!(moved["executor_config"]["max_pages"], 7);
}

#[tokio::test]
async fn job_with_its_own_url_or_executor_does_not_follow_its_target() {
    let world = World::new().await;
    let url = "https://example.com/a";
    make(&world, json!({"url": url})).await;
    let owns = [json!({"url": "https://example.org/"}), json!({"executor_type": "noop"})];
    for (others, own) in owns.into_iter().enumerate() {
        let made = job_of(&world, json!({"target": 1})).await.expect(201);
        let id = &made["id"];
        // The job still crawls its target's URL after updates that send this URL or null, or change
        // other fields.
        for same in [json!({"url": url}), json!({"url": null}), json!({"priority": 7})] {
            assert_eq!(patch(&world, id, same).await.expect(200)["url"], url);
        }
        patch(&world, id, own.clone()).await.expect(200);
        let again = json!({"url": "https://example.com/b"});
        assert_eq!(change(&world, 1, again).await.expect(200)["followed_jobs"], others);
        let now = job(&world, id).await;
        for (field, value) in own.as_object().unwrap() {
            assert_eq!(now[field], *value);
        }
        change(&world, 1, json!({"url": url})).await.expect(200);
        // A job whose own URL and executor are removed crawls its target's URL again.
        let back = json!({"url": null, "executor_type": null, "executor_config": null});
        let back = patch(&world, id, back).await.expect(200);
        assert_eq!((&back["url"], &back["executor_type"]), (&json!(url), &json!("crawl")));
    }
    // A URL in the job counts as the job's own URL, even if it equals the target's URL.
    let own = job_of(&world, json!({"target": 1, "url": url})).await.expect(201);
    change(&world, 1, json!({"url": "https://example.com/b"})).await.expect(200);
    assert_eq!(job(&world, &own["id"]).await["url"], url);
}

#[tokio::test]
async fn interrupted_change_can_be_repeated() {
    let world = World::new().await;
    make(&world, json!({"url": "https://example.com/a"})).await;
    let made = job_of(&world, json!({"target": 1})).await.expect(201);
    // The test changes only the target, like a request that fails before it updates the jobs.
    let fields = evenkeel_store::TargetFields {
        url: Some("https://example.com/b".into()),
        ..evenkeel_store::TargetFields::default()
    };
    let (store, scope) = (&world.rig.store, &world.rig.scope);
    store.change_target(scope, 1, None, fields, evenkeel_store::Now::Database).await.unwrap();
    assert_eq!(job(&world, &made["id"]).await["url"], "https://example.com/a");
    let again = change(&world, 1, json!({"url": "https://example.com/b"})).await.expect(200);
    assert_eq!((&again["followed_jobs"], &again["generation"]), (&json!(1), &json!(2)));
    assert_eq!(job(&world, &made["id"]).await["url"], "https://example.com/b");
    let again = change(&world, 1, json!({"url": "https://example.com/b"})).await.expect(200);
    assert_eq!(again["followed_jobs"], 0);
    // A job whose executor refuses the new URL keeps its old URL and counts as refused.
    let refused = change(&world, 1, json!({"url": "https://forbidden.example/"})).await.expect(200);
    assert_eq!((&refused["followed_jobs"], &refused["refused_jobs"]), (&json!(0), &json!(1)));
    assert_eq!(job(&world, &made["id"]).await["url"], "https://example.com/b");
}

#[tokio::test]
async fn follower_that_would_become_a_duplicate_is_counted_as_refused() {
    let world = World::new().await;
    make(&world, json!({"name": "without a url yet"})).await;
    let follower = json!({"target": 1, "unique": true, "interval_minutes": 60});
    let made = job_of(&world, follower).await.expect(201);
    assert_eq!(made["executor_type"], "none");
    // A second job with the executor `crawl` has the deduplication key that the first job would
    // need as a crawl job.
    let url = "https://example.com/own";
    let other = json!({"url": url, "dedup_key": made["dedup_key"], "interval_minutes": 60});
    let other = job_of(&world, other).await.expect(201);
    let again = json!({"url": "https://example.com/"});
    let answered = change(&world, 1, again.clone()).await.expect(200);
    assert_eq!((&answered["followed_jobs"], &answered["refused_jobs"]), (&json!(0), &json!(1)));
    assert_eq!(job(&world, &made["id"]).await["executor_type"], "none");
    let path = format!("/api/v1/jobs/{}", other["id"].as_str().unwrap());
    world.delete(&path).await.expect(200);
    let answered = change(&world, 1, again).await.expect(200);
    assert_eq!((&answered["followed_jobs"], &answered["refused_jobs"]), (&json!(1), &json!(0)));
    assert_eq!(job(&world, &made["id"]).await["executor_type"], "crawl");
}

#[tokio::test]
async fn very_many_followers_are_updated_after_the_answer() {
    let world = World::new().await;
    make(&world, json!({"url": "https://example.com/a"})).await;
    let jobs: Vec<Value> = (0..650).map(|_| json!({"target": 1})).collect();
    world.post("/api/v1/jobs/bulk", Some(json!({"jobs": jobs}))).await.expect(200);
    let changed = change(&world, 1, json!({"url": "https://example.com/b"})).await.expect(200);
    assert_eq!((&changed["followed_jobs"], &changed["goes_on"]), (&json!(500), &json!(true)));
    let left = async || {
        let page = world.get("/api/v1/jobs?target=1&limit=1000").await.expect(200);
        assert_eq!(page["total"], 650);
        let jobs = page["jobs"].as_array().unwrap();
        jobs.iter().filter(|job| job["url"] != "https://example.com/b").count()
    };
    while left().await > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn invalid_crawl_is_refused_before_the_target_has_a_url() {
    let world = World::new().await;
    make(&world, json!({})).await;
    let bogus = json!({"target": 1, "executor_config": {"bogus": 1}});
    let problem = job_of(&world, bogus.clone()).await.problem(422, "invalid-job");
    assert_eq!(problem["errors"][0]["field"], "executor_config.bogus");
    let made = job_of(&world, json!({"target": 1})).await.expect(201);
    let sent = json!({"executor_config": {"bogus": 1}});
    patch(&world, &made["id"], sent).await.problem(422, "invalid-job");
    let bulk = world.post("/api/v1/jobs/bulk", Some(json!({"jobs": [bogus]}))).await;
    assert_eq!(bulk.json()["results"][0]["status"], 422);
}

#[tokio::test]
async fn job_that_leaves_its_target_keeps_its_url() {
    let world = World::new().await;
    make(&world, json!({"url": "https://example.com/a"})).await;
    make(&world, json!({})).await;
    let made = job_of(&world, json!({"target": 1})).await.expect(201);
    let left = patch(&world, &made["id"], json!({"target": null})).await.expect(200);
    assert_eq!((&left["target"], &left["url"]), (&Value::Null, &json!("https://example.com/a")));
    assert_eq!(left["executor_type"], "crawl");
    let none = job_of(&world, json!({"target": 2})).await.expect(201);
    for sent in [json!({"target": null}), json!({"target": null, "executor_type": "none"})] {
        let problem = patch(&world, &none["id"], sent).await.problem(422, "invalid-job");
        assert_eq!(problem["errors"][0]["field"], "executor_type");
    }
    let given = json!({"target": null, "executor_type": "noop"});
    assert_eq!(patch(&world, &none["id"], given).await.expect(200)["executor_type"], "noop");
    // A job whose target was deleted has the reason `no_executor`, and can still be changed.
    let none = job_of(&world, json!({"target": 2})).await.expect(201);
    world.delete("/api/v1/targets/2?force=true").await.expect(200);
    let renamed = patch(&world, &none["id"], json!({"name": "board"})).await.expect(200);
    assert_eq!((&renamed["target"], &renamed["executor_type"]), (&Value::Null, &json!("none")));
    let path = format!("/api/v1/jobs/{}/explain", none["id"].as_str().unwrap());
    let why = world.get(&path).await.expect(200);
    assert_eq!(why["reasons"][0]["code"], "no_executor");
    let given = patch(&world, &none["id"], json!({"target": 1})).await.expect(200);
    assert_eq!(given["url"], "https://example.com/a");
}

#[tokio::test]
async fn jobs_of_a_target_are_listed() {
    let world = World::new().await;
    make(&world, json!({"url": "https://example.com/a"})).await;
    let made = job_of(&world, json!({"target": 1})).await.expect(201);
    world.create(json!({"name": "other"})).await;
    let list = world.get("/api/v1/jobs?target=1").await.expect(200);
    assert_eq!((&list["total"], &list["jobs"][0]["id"]), (&json!(1), &made["id"]));
    let problem = world.get("/api/v1/jobs?target=site").await.problem(422, "invalid-parameter");
    assert_eq!(problem["errors"][0]["field"], "target");
}

#[tokio::test]
async fn job_crawls_the_url_of_its_target_and_follows_it() {
    let world = World::new().await;
    make(&world, json!({"url": "https://example.com/a"})).await;
    let made = job_of(&world, json!({"target": 1})).await.expect(201);
    assert_eq!((&made["target"], &made["executor_type"]), (&json!(1), &json!("crawl")));
    assert_eq!(made["url"], "https://example.com/a");
    assert_eq!(made["executor_config"]["url"], "https://example.com/a");
    let own = json!({"target": 1, "url": "https://example.org/"});
    let own = job_of(&world, own).await.expect(201);
    change(&world, 1, json!({"url": "https://example.com/b"})).await.expect(200);
    let led = job(&world, &made["id"]).await;
    assert_eq!(led["executor_config"]["url"], "https://example.com/b");
    assert_eq!(led["next_run_at"], made["next_run_at"]);
    assert_eq!(job(&world, &own["id"]).await["url"], "https://example.org/");
    assert_eq!(world.get("/api/v1/targets/1").await.expect(200)["jobs"], 2);
}

#[tokio::test]
async fn job_has_no_executor_until_its_target_has_a_url() {
    let world = World::new().await;
    make(&world, json!({"name": "A"})).await;
    let made = job_of(&world, json!({"target": 1})).await.expect(201);
    assert_eq!(made["executor_type"], "none");
    let id = made["id"].as_str().unwrap();
    let why = world.get(&format!("/api/v1/jobs/{id}/explain")).await.expect(200);
    assert_eq!(why["reasons"][0]["code"], "no_executor");
    let path = format!("/api/v1/jobs/{id}");
    let renamed = json!({"name": "board", "executor_type": "none"});
    let renamed = world.ask_as(Role::Operator, Method::PATCH, &path, Some(renamed)).await;
    assert_eq!(renamed.expect(200)["executor_type"], "none");
    change(&world, 1, json!({"url": "https://example.com/a"})).await.expect(200);
    assert_eq!(job(&world, &made["id"]).await["executor_type"], "crawl");
    change(&world, 1, json!({"url": null})).await.expect(200);
    let again = job(&world, &made["id"]).await;
    assert_eq!((&again["executor_type"], &again["url"]), (&json!("none"), &Value::Null));
}

#[tokio::test]
async fn job_refers_to_existing_targets_only() {
    let world = World::new().await;
    for target in [json!(5), json!(0), json!("1"), json!(1.5)] {
        let problem = job_of(&world, json!({"target": target})).await.problem(422, "invalid-job");
        assert_eq!(problem["errors"][0]["field"], "target");
    }
    // A job without a target cannot have the executor `none`.
    let problem = job_of(&world, json!({"executor_type": "none"})).await;
    assert_eq!(problem.problem(422, "invalid-job")["errors"][0]["field"], "executor_type");
    let made = world.create(json!({"name": "a"})).await;
    let path = format!("/api/v1/jobs/{}", made["id"].as_str().unwrap());
    let patch = |sent| world.ask_as(Role::Operator, Method::PATCH, &path, Some(sent));
    patch(json!({"target": 5})).await.problem(422, "invalid-job");
    make(&world, json!({"number": 5})).await;
    assert_eq!(patch(json!({"target": 5})).await.expect(200)["target"], 5);
    assert_eq!(patch(json!({"target": null})).await.expect(200)["target"], Value::Null);
}

#[tokio::test]
async fn bulk_jobs_refer_to_their_targets() {
    let world = World::new().await;
    make(&world, json!({"url": "https://example.com/a"})).await;
    let jobs =
        json!({"jobs": [{"target": 1}, {"target": 2}, {"executor_type": "noop", "target": 1}]});
    let answer = world.post("/api/v1/jobs/bulk", Some(jobs)).await;
    let results = answer.json()["results"].clone();
    let statuses: Vec<&Value> =
        results.as_array().unwrap().iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [&json!(201), &json!(422), &json!(201)], "{results}");
    assert_eq!(world.get("/api/v1/targets/1").await.expect(200)["jobs"], 2);
}
