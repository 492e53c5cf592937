//! Pages stored by crawls.

use evenkeel_core::PageId;
use evenkeel_core::page::{Kept, PageContent};
use evenkeel_store::{Now, PageQuota};
use evenkeel_store_testkit::rig::Known;
use serde_json::{Value, json};

use crate::world::{World, request, token};

fn content(job: Known, n: usize, text: &str) -> PageContent {
    let url = format!("https://example.com/{n}");
    PageContent {
        id: PageId::of(job.no, &url),
        url,
        status: 200,
        content_type: "text/html".into(),
        etag: Some("\"e\"".into()),
        last_modified: None,
        content_hash: [n as u8; 32],
        depth: 1,
        title: Some(format!("Page {n}")),
        text: text.into(),
        links: vec!["https://example.com/".into()],
        metadata: json!({"lang": "en"}),
        fields: json!({"price": "5"}),
    }
}

/// Creates a server with a job that has stored one page for each of these texts.
async fn with_pages(texts: &[&str]) -> (World, Value, Known) {
    let world = World::new().await;
    let created = world.create(json!({"name": "crawl", "schedule": "@every 60s"})).await;
    let job = world.known(&created).await;
    let shelf = PageQuota { tenant: world.rig.scope.tenant, job: job.no, bytes_max: 1 << 20 };
    let pages: Vec<_> = texts.iter().enumerate().map(|(n, text)| content(job, n, text)).collect();
    let kept = world.rig.store.save_pages(shelf, pages, Now::Database).await.unwrap();
    assert_eq!(kept, vec![Kept::New; texts.len()]);
    (world, created, job)
}

#[tokio::test]
async fn search_marks_matches_and_escapes_html() {
    let (world, job, _) = with_pages(&["about <b>keels</b> & ships", "nothing of the kind"]).await;
    let found = world.get("/api/v1/pages?q=KEELS%20-kind").await.expect(200);
    assert_eq!((&found["total"], &found["next_cursor"]), (&json!(1), &Value::Null));
    let page = &found["pages"][0];
    assert_eq!((&page["title"], &page["job_id"]), (&json!("Page 0"), &job["id"]));
    let snippet = page["snippet"].as_str().unwrap();
    assert_eq!(snippet, "about &lt;b&gt;<mark>keels</mark>&lt;/b&gt; &amp; ships");

    let path = format!("/api/v1/pages/{}", page["id"].as_str().unwrap());
    let shown = world.get(&path).await.expect(200);
    assert_eq!(shown["text"], "about <b>keels</b> & ships");
    assert_eq!(
        (&shown["fields"], &shown["metadata"]),
        (&json!({"price": "5"}), &json!({"lang": "en"}))
    );
    assert_eq!(shown["content_hash"], "00".repeat(32));
}

#[tokio::test]
async fn pages_are_listed_completely_without_duplicates() {
    let texts: Vec<String> = (0..7).map(|n| format!("text {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (world, job, _) = with_pages(&texts).await;
    let id = job["id"].as_str().unwrap();
    let (mut urls, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/pages?job_id={id}&limit=3{cursor}");
        let list = world.get(&path).await.expect(200);
        assert_eq!(list["total"], 7);
        let pages = list["pages"].as_array().unwrap();
        urls.extend(pages.iter().map(|page| page["url"].as_str().unwrap().to_owned()));
        match list["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let expected: Vec<String> = (0..7).map(|n| format!("https://example.com/{n}")).collect();
    assert_eq!(urls, expected);
    let one = world.get("/api/v1/pages?url_prefix=https://example.com/3").await.expect(200);
    assert_eq!(one["total"], 1);
    let part = world.get("/api/v1/pages?q=text&limit=2&offset=6").await.expect(200);
    assert_eq!((part["pages"].as_array().unwrap().len(), &part["total"]), (1, &json!(7)));
}

#[tokio::test]
async fn pages_of_other_tenants_and_deleted_jobs_are_not_found() {
    let (world, job, known) = with_pages(&["secret"]).await;
    let page = content(known, 0, "").id;
    let ask = |path: String| {
        let token = token(evenkeel_store::Role::Admin, "stranger");
        let request = request(axum::http::Method::GET, &path, Some(&token), None);
        world.send(request)
    };
    assert_eq!(ask("/api/v1/pages?q=secret".into()).await.expect(200)["total"], 0);
    ask(format!("/api/v1/pages/{page}")).await.problem(404, "not-found");
    let id = job["id"].as_str().unwrap();
    ask(format!("/api/v1/pages?job_id={id}")).await.problem(404, "not-found");
    world.delete(&format!("/api/v1/jobs/{id}")).await.expect(200);
    assert_eq!(world.get("/api/v1/pages?q=secret").await.expect(200)["total"], 0);
    world.get(&format!("/api/v1/pages/{page}")).await.problem(404, "not-found");
}

#[tokio::test]
async fn invalid_page_parameters_are_named() {
    let (world, ..) = with_pages(&[]).await;
    for (query, field) in [
        ("q=", "q"),
        ("q=-only", "q"),
        ("q=a&offset=20000", "offset"),
        ("q=a&limit=101", "limit"),
        ("words=a", "words"),
    ] {
        let problem = world.get(&format!("/api/v1/pages?{query}")).await;
        let problem = problem.problem(422, "invalid-parameter");
        assert_eq!(problem["field"], field, "{query}");
    }
    world.get("/api/v1/pages/7").await.problem(404, "not-found");
    assert_eq!(world.get("/api/v1/pages").await.expect(200)["pages"], json!([]));
}
