//! Jobs that crawl.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::database::Database;
use crate::on_both_stores;
use crate::receiver::{Receiver, Reply};
use crate::support::{Server, create_from_json, wait_for};

on_both_stores!(
    job_with_only_a_url_crawls_it_and_its_pages_are_found,
    unreachable_site_fails_the_crawl,
    hanging_site_times_out,
    running_crawl_is_cancelled,
    crawl_resumes_from_the_checkpoint_of_a_killed_worker,
);

const LOCAL: [&str; 2] = ["--allow-network", "127.0.0.0/8"];

/// Starts a website of `count` pages, each with links to three pages. The function `content`
/// returns the text of a page by its number.
fn site(count: usize, content: impl Fn(usize) -> String + Send + Sync + 'static) -> Receiver {
    Receiver::start(move |got, _| {
        let number = match got.path.as_str() {
            "/" => 0,
            path => match path.strip_prefix("/p/").and_then(|n| n.parse().ok()) {
                Some(number) if number < count => number,
                _ => return Reply::Now(404, "", String::new()),
            },
        };
        let links: String = (1..=3)
            .map(|step| (number * 3 + step) % count)
            .map(|to| format!("<a href=\"/p/{to}\">{to}</a>"))
            .collect();
        Reply::html(format!(
            "<html><head><title>Page {number}</title></head><body><p>{}</p>{links}</body></html>",
            content(number)
        ))
    })
}

fn create(server: &Server, site: &Receiver, config: &Value) {
    let mut job = json!({"name": "crawl", "url": format!("{}/", site.url), "max_retries": 0});
    if !config.is_null() {
        job["executor_type"] = "crawl".into();
        job["executor_config"] = config.clone();
    }
    let result = create_from_json(server, &job);
    assert_eq!(result.code, 0, "{result:?}");
}

fn trigger(server: &Server) -> Value {
    let run = server.json(&["job", "trigger", "crawl"]);
    let id = run["run_id"].as_str().unwrap().to_owned();
    wait_for("the end of the triggered crawl", || {
        let result = server.run(&["run", "show", &id, "--json"]);
        (result.code == 0).then(|| result.json()).filter(|run| run["status"] == "completed")
    })
}

fn job_with_only_a_url_crawls_it_and_its_pages_are_found(database: &Database) {
    let version = Arc::new(AtomicUsize::new(1));
    let now = Arc::clone(&version);
    let site = site(12, move |number| match number {
        5 => format!("edition {} of <b>quokka</b> news & more", now.load(Ordering::SeqCst)),
        _ => format!("plain text of number {number}"),
    });
    let server = database.serve(&LOCAL);
    create(&server, &site, &Value::Null);
    let run = server.wait_for_run("crawl", "completed");
    let (crawled, indexed) = (run["items_crawled"].as_i64(), run["items_indexed"].as_i64());
    assert_eq!((crawled, indexed), (Some(13), Some(12)), "{run}");

    let found = server.json(&["page", "list", "--job", "crawl", "QUOKKA"]);
    assert_eq!(found["total"], 1, "{found}");
    let page = &found["pages"][0];
    assert_eq!(page["title"], "Page 5");
    let snippet = page["snippet"].as_str().unwrap();
    assert!(snippet.contains("<mark>quokka</mark> news &amp; more"), "{snippet}");
    let shown = server.json(&["page", "show", page["id"].as_str().unwrap()]);
    assert!(shown["text"].as_str().unwrap().contains("edition 1 of quokka news & more"));

    let second = trigger(&server);
    assert_eq!((&second["items_crawled"], &second["items_indexed"]), (&json!(13), &json!(0)));
    version.store(2, Ordering::SeqCst);
    let third = trigger(&server);
    assert_eq!(third["items_indexed"], 1, "{third}");
    assert_eq!(server.json(&["page", "list", "\"edition 2\""])["total"], 1);

    assert_eq!(server.run(&["job", "delete", "crawl"]).code, 0);
    assert_eq!(server.json(&["page", "list", "quokka"])["total"], 0);
}

fn unreachable_site_fails_the_crawl(database: &Database) {
    let site = Receiver::start(|_, _| Reply::Now(500, "", "broken".into()));
    let server = database.serve(&LOCAL);
    create(&server, &site, &json!({"delay_ms": 0}));
    let run = server.wait_for_run("crawl", "failed");
    assert!(run["error_message"].as_str().unwrap().contains("robots"), "{run}");
}

fn hanging_site_times_out(database: &Database) {
    let site = Receiver::start(|got, _| match got.path.as_str() {
        "/robots.txt" => Reply::Now(404, "", String::new()),
        _ => Reply::Never,
    });
    let server = database.serve(&LOCAL);
    let job = json!({"name": "crawl", "url": site.url, "max_retries": 0, "timeout_sec": 1});
    let result = create_from_json(&server, &job);
    assert_eq!(result.code, 0, "{result:?}");
    let run = server.wait_for_run("crawl", "timed_out");
    assert_eq!(run["error_message"], "no site answered for 1s (timeout_sec)", "{run}");
}

fn running_crawl_is_cancelled(database: &Database) {
    let site = site(500, |number| format!("text {number}"));
    let server = database.serve(&LOCAL);
    create(&server, &site, &json!({"delay_ms": 100, "depth": 20, "max_pages": 500}));
    let run = server.wait_for_run("crawl", "running");
    let id = run["id"].as_str().unwrap();
    wait_for("some progress", || {
        let shown = server.json(&["run", "show", id]);
        (shown["progress"]["done"].as_u64() > Some(2)).then_some(())
    });
    assert_eq!(server.json(&["run", "cancel", id])["running"], true);
    server.wait_for_run("crawl", "cancelled");
    let so_far = site.requests().len();
    assert!(so_far < 400, "it was not in the middle: {so_far}");
}

fn crawl_resumes_from_the_checkpoint_of_a_killed_worker(database: &Database) {
    let site = site(60, |number| format!("text {number}"));
    let mut server = database.serve(&LOCAL);
    create(&server, &site, &json!({"delay_ms": 60, "depth": 60, "max_pages": 100}));
    let run = server.wait_for_run("crawl", "running");
    let id = run["id"].as_str().unwrap();
    // When an attempt reports progress, its checkpoint is stored too.
    wait_for("a third of it", || {
        let shown = server.json(&["run", "show", id]);
        (shown["progress"]["done"].as_u64() > Some(25)).then_some(())
    });
    let before = site.requests().len();
    server.signal(Signal::KILL);
    server.wait_for_exit();
    server.restart();
    let run = server.wait_for_run("crawl", "completed");
    assert_eq!(run["crashes"], 1);
    let mut fetched: BTreeMap<String, usize> = BTreeMap::new();
    for got in site.requests().iter().filter(|got| got.path.starts_with("/p/")) {
        *fetched.entry(got.path.clone()).or_default() += 1;
    }
    assert_eq!(fetched.len(), 60, "every page was fetched");
    assert!(fetched.values().all(|times| *times <= 2), "{fetched:?}");
    let twice = fetched.values().filter(|times| **times == 2).count();
    // The second attempt continues from the checkpoint, so it fetches only a few pages again.
    assert!(twice < before / 2, "{twice} pages of {before} were fetched again");
    assert_eq!(server.json(&["page", "list", "--job", "crawl"])["total"], 60);
}
