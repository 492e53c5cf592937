use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_crawler::Ending;
use serde_json::json;

use crate::support::{Answer, Rig, Site, links, now, settings};

#[tokio::test]
async fn robots_rules_are_obeyed() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/robots.txt" => Answer::html(
            "user-agent: *\ndisallow: /\n\nuser-agent: evenkeel\ndisallow: /private\n\
             allow: /private/open\n",
        )
        .with("content-type", "text/plain"),
        "/" => links("home", ["/private/a", "/private/open", "/jump", "/b"]),
        "/jump" => Answer::redirect("/private/b"),
        "/sitemap.xml" => Answer::status(404),
        path => links(path, ["/"]),
    })
    .await;
    let rig = Rig::new();
    let ended = rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(rig.archive.paths(), ["/", "/b", "/private/open"]);
    assert_eq!(site.times_asked("/private/a") + site.times_asked("/private/b"), 0);
    assert_eq!(site.times_asked("/robots.txt"), 1);
    assert_eq!(ended.counts.skipped, 2);
    // Pages that robots.txt forbids do not count against `max_pages`.
    assert_eq!(ended.counts.visited, 3);
}

#[tokio::test]
async fn robots_can_be_ignored_where_the_server_allows_it() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/robots.txt" => Answer::html("user-agent: *\ndisallow: /"),
        "/" => links("home", ["/a"]),
        _ => Answer::status(404),
    })
    .await;
    let settings = evenkeel_crawler::CrawlerSettings { may_ignore_robots: true, ..settings() };
    let rig = Rig::with(settings);
    rig.crawl(&site.url("/"), json!({"obey_robots": false})).await;
    assert_eq!(rig.archive.paths(), ["/"]);
    assert_eq!(site.times_asked("/robots.txt"), 0);
}

#[tokio::test]
async fn forbidden_start_fails_for_good() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/robots.txt" => Answer::html("user-agent: *\ndisallow: /"),
        _ => links("home", ["/"]),
    })
    .await;
    let ended = Rig::new().crawl(&site.url("/"), json!({})).await;
    let Ending::Failed { error, hopeless: true } = ended.ending else { panic!("{ended:?}") };
    assert!(error.contains("robots.txt does not allow it"), "{error}");
    assert!(site.asked().is_empty());
}

#[tokio::test]
async fn unavailable_robots_txt_forbids_everything_and_a_missing_one_nothing() {
    for (status, crawled) in [(500, false), (503, false), (404, true), (403, true)] {
        let site = Site::serve(move |asked| match asked.path.as_str() {
            "/robots.txt" => Answer::status(status),
            _ => links("home", ["/"]),
        })
        .await;
        let ended = Rig::new().crawl(&site.url("/"), json!({"sitemaps": false})).await;
        assert_eq!(!site.asked().is_empty(), crawled, "{status}");
        match ended.ending {
            Ending::Completed => assert!(crawled),
            Ending::Failed { error, hopeless } => {
                assert!(!crawled && !hopeless && error.contains(&status.to_string()), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn error_of_robots_txt_is_waited_out_and_costs_no_page() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/robots.txt" if asked.before < 2 => Answer::status(503),
        "/robots.txt" => Answer::html("user-agent: *\ndisallow: /no"),
        "/" => links("home", ["/a", "/no"]),
        "/sitemap.xml" => Answer::status(404),
        path => links(path, ["/"]),
    })
    .await;
    let rig = Rig::new();
    let ended = rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(ended.ending, Ending::Completed);
    assert_eq!(rig.archive.paths(), ["/", "/a"]);
    assert_eq!((ended.counts.failed, ended.counts.requests), (0, 2));
    assert_eq!(site.times_asked("/robots.txt"), 3);
}

#[tokio::test]
async fn pages_of_a_host_without_robots_txt_fail_together() {
    let other = Site::serve(|asked| match asked.path.as_str() {
        "/robots.txt" => Answer::status(503),
        path => links(path, ["/"]),
    })
    .await;
    let elsewhere = other.url("/");
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("home", (0..30).map(|n| format!("/{n}"))),
        "/robots.txt" | "/sitemap.xml" => Answer::status(404),
        path => links(path, ["/"]),
    })
    .await;
    let rig = Rig::new();
    let starts = (0..30).map(|n| format!("{elsewhere}{n}")).collect::<Vec<_>>();
    let ended = rig.crawl(&site.url("/"), json!({"start_urls": starts})).await;
    assert!(other.asked().is_empty());
    assert!(rig.listener.has("given up"));
    // The crawl continues on the host whose robots.txt can be read.
    assert_eq!((ended.counts.crawled, ended.counts.starts_lost), (31, 30));
    assert_eq!(ended.counts.requests, 31);
    let times = other.times_asked("/robots.txt");
    assert!((3..=10).contains(&times), "{times}");
}

#[tokio::test]
async fn robots_txt_is_requested_with_the_servers_user_agent() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/robots.txt" => {
            let agent = asked.headers["user-agent"].to_str().unwrap();
            let rule = if agent.starts_with("evenkeel/") { "/no" } else { "/" };
            Answer::html(format!("user-agent: *\ndisallow: {rule}"))
        }
        _ => links("home", ["/no"]),
    })
    .await;
    let rig = Rig::new();
    let config = json!({"sitemaps": false, "user_agent": "mybot/1"});
    let ended = rig.crawl(&site.url("/"), config).await;
    assert_eq!(ended.ending, Ending::Completed);
    assert_eq!(site.asked(), ["/"]);
}

#[tokio::test]
async fn robots_txt_is_found_behind_redirects() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/robots.txt" => Answer::redirect("/r/1"),
        "/r/1" => Answer::redirect("/r/2"),
        "/r/2" => Answer::html("user-agent: *\ndisallow: /no"),
        "/" => links("home", ["/no", "/yes"]),
        "/yes" => links("yes", ["/"]),
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(rig.archive.paths(), ["/", "/yes"]);
}

#[tokio::test]
async fn longer_of_two_delays_is_kept() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/robots.txt" => Answer::html("user-agent: *\ncrawl-delay: 0.2"),
        "/" => links("home", ["/1", "/2", "/3"]),
        path => links(path, ["/"]),
    })
    .await;
    let started = now();
    Rig::new().crawl(&site.url("/"), json!({"sitemaps": false, "delay_ms": 10})).await;
    // Fetching four pages takes at least three delays of 0.2 s.
    assert!(started.elapsed() >= Duration::from_millis(600), "{:?}", started.elapsed());
    assert_eq!(site.asked().len(), 4);
}

#[tokio::test]
async fn retry_after_is_obeyed_and_the_page_is_retried() {
    let site = Site::serve(|asked| match (asked.path.as_str(), asked.before) {
        ("/", _) => links("home", ["/busy", "/never", "/b"]),
        ("/busy", 0) => Answer::status(429).with("retry-after", "1"),
        ("/busy", 1) => Answer::status(503).with("retry-after", "0"),
        ("/busy" | "/b", _) => links("busy", ["/"]).with("x", "y"),
        ("/never", _) => Answer::status(429).with("retry-after", "0"),
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    let started = now();
    let ended = rig.crawl(&site.url("/"), json!({"connections": 1})).await;
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_eq!(site.times_asked("/busy"), 3);
    assert_eq!(site.times_asked("/never"), 3);
    assert_eq!(ended.counts.failed, 1);
    assert!(matches!(&ended.ending, Ending::PartlyFailed(text) if text.contains("/never")));
    // The log shows that the crawl paused requests to the host for the requested time.
    assert!(rig.listener.has("pausing its host for 1 s"));
}

#[tokio::test]
async fn crawl_survives_a_burst_of_errors() {
    let errors = AtomicUsize::new(0);
    let site = Site::serve(move |asked| match asked.path.as_str() {
        "/" => links("home", (0..20).map(|n| format!("/{n}"))),
        "/robots.txt" | "/sitemap.xml" => Answer::status(404),
        _ if errors.fetch_add(1, Ordering::SeqCst) < 8 => Answer::status(500),
        path => links(path, ["/"]),
    })
    .await;
    let rig = Rig::new();
    let ended = rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(ended.ending, Ending::Completed);
    assert_eq!((ended.counts.crawled, ended.counts.failed), (21, 0));
}

#[tokio::test]
async fn host_that_only_fails_is_given_up() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("home", (0..200).map(|n| format!("/{n}"))),
        "/robots.txt" | "/sitemap.xml" => Answer::status(404),
        _ => Answer::status(500),
    })
    .await;
    let settings = evenkeel_crawler::CrawlerSettings {
        error_pause: Duration::from_millis(1),
        error_pause_max: Duration::from_millis(1),
        ..settings()
    };
    let rig = Rig::with(settings);
    let ended = rig.crawl(&site.url("/"), json!({})).await;
    assert!(matches!(ended.ending, Ending::PartlyFailed(_)), "{ended:?}");
    assert!(rig.listener.has("had too many errors: given up"));
    // The crawl gives up the host, so it does not try each page three times.
    assert!(site.asked().len() < 15, "{}", site.asked().len());
    assert_eq!((ended.counts.failed, ended.counts.visited), (200, 201));
}

#[tokio::test]
async fn unreachable_start_fails_with_its_cause() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let ended = Rig::new().crawl(&format!("http://{address}/"), json!({})).await;
    let Ending::Failed { error, hopeless: false } = ended.ending else { panic!("{ended:?}") };
    assert!(error.contains("refused"), "{error}");
}

#[tokio::test]
async fn nofollow_and_noindex_are_obeyed() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => Answer::html(
            "home <a href=/noindex>1</a><a href=/nofollow>2</a><a href=/header>3</a>\
             <a rel=nofollow href=/hidden1>4</a>",
        ),
        "/noindex" => Answer::html("<meta name=robots content=noindex>a <a href=/found>x</a>"),
        "/nofollow" => Answer::html("<meta name=robots content=nofollow>b <a href=/hidden2>x</a>"),
        "/header" => {
            Answer::html("c <a href=/hidden3>x</a>").with("x-robots-tag", "noindex, nofollow")
        }
        "/robots.txt" | "/sitemap.xml" => Answer::status(404),
        path => links(path, ["/"]),
    })
    .await;
    let rig = Rig::new();
    rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(rig.archive.paths(), ["/", "/found", "/nofollow"]);
    assert!(site.asked().iter().all(|path| !path.starts_with("/hidden")));
}

#[tokio::test]
async fn crawls_of_one_host_share_its_connection_limit() {
    let site = Site::serve(|asked| Answer {
        hold: Duration::from_millis(5),
        ..match asked.path.as_str() {
            "/robots.txt" | "/sitemap.xml" => Answer::status(404),
            "/" => links("home", (0..20).map(|n| format!("/{n}"))),
            path => links(path, ["/"]),
        }
    })
    .await;
    let rig = Arc::new(Rig::new());
    let mut crawls = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (rig, url) = (Arc::clone(&rig), site.url("/"));
        crawls.spawn(async move { rig.crawl(&url, json!({})).await });
    }
    while let Some(ended) = crawls.join_next().await {
        assert_eq!(ended.unwrap().counts.crawled, 21);
    }
    assert_eq!(site.most_at_once(), 2);
    assert_eq!(site.times_asked("/robots.txt"), 1);
}

#[tokio::test]
async fn crawl_sends_its_user_agent() {
    let site = Site::serve(|asked| {
        let agent = asked.headers["user-agent"].to_str().unwrap();
        links(agent, ["/"])
    })
    .await;
    let rig = Rig::new();
    rig.crawl(&site.url("/"), json!({"sitemaps": false})).await;
    assert!(rig.archive.page("/").text.starts_with("evenkeel/"));
    rig.crawl(&site.url("/"), json!({"sitemaps": false, "user_agent": "mybot/1 (+x)"})).await;
    assert_eq!(rig.archive.page("/").text, "mybot/1 (+x)");
}
