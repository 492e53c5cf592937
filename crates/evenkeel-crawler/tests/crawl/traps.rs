use std::io::Write;
use std::time::Duration;

use evenkeel_crawler::Ending;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{Answer, Rig, Site, links, outbound, settings};

#[tokio::test]
async fn endless_calendar_ends_at_the_limits() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/robots.txt" | "/sitemap.xml" => Answer::status(404),
        "/" => links("home", ["/by-path/1", "/by-query?day=1"]),
        path => {
            let day: u64 = path.rsplit(['/', '=']).next().unwrap().parse().unwrap();
            let (stem, _) = path.split_at(path.len() - day.to_string().len());
            // Each page links to the next day and to a much later day, so the links never end.
            links(path, [format!("{stem}{}", day + 1), format!("{stem}{}", day + 1_000_000)])
        }
    })
    .await;
    let rig = Rig::new();
    let ended = rig.crawl(&site.url("/"), json!({"max_pages": 300, "depth": 100})).await;
    assert_eq!(ended.ending, Ending::Completed);
    assert_eq!(ended.counts.visited, 300);
    assert_eq!(site.asked().len(), 300);
    let rig = Rig::new();
    site.forget_asked();
    let ended = rig.crawl(&site.url("/by-query?day=1"), json!({"depth": 100})).await;
    // The crawl visits the start page and at most 200 URLs that differ only in their query.
    assert!(ended.counts.visited <= 201, "{:?}", ended.counts);
    assert!(rig.listener.has("they look endless"));
}

#[tokio::test]
async fn depth_is_counted_in_links() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("0", ["/1"]),
        "/1" => links("1", ["/1/2", "/"]),
        "/1/2" => links("2", ["/1/2/3"]),
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    rig.crawl(&site.url("/"), json!({"depth": 2})).await;
    assert_eq!(site.asked(), ["/", "/1", "/1/2"]);
    assert_eq!(rig.archive.page("/1/2").depth, 2);
    let rig = Rig::new();
    rig.crawl(&site.url("/"), json!({"depth": 0})).await;
    assert_eq!(rig.archive.paths(), ["/"]);
}

#[tokio::test]
async fn loops_are_crawled_once() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("home", ["/a", "/circle", "/self", "/#top", "/a#x", "/x/"]),
        "/a" => links("a", ["/", "/a", "/b"]),
        "/b" => links("b", ["/a"]),
        "/circle" => Answer::redirect("/circle2"),
        "/circle2" => Answer::redirect("/circle"),
        "/self" => Answer::redirect("/self"),
        path if path.starts_with("/x/") => links(path, ["x/"]),
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    let ended = rig.crawl(&site.url("/"), json!({"connections": 1})).await;
    assert_eq!(ended.ending, Ending::Completed);
    assert_eq!(rig.archive.paths(), ["/", "/a", "/b", "/x/", "/x/x/", "/x/x/x/"]);
    let mut asked = site.asked();
    asked.sort();
    let once = asked.len();
    asked.dedup();
    assert_eq!(asked.len(), once);
}

#[tokio::test]
async fn endless_redirects_end() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("home", (0..500).map(|n| format!("/away/{n}"))),
        path if path.starts_with("/away/") => Answer::redirect("/"),
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    let ended = rig.crawl(&site.url("/"), json!({"max_pages": 10})).await;
    assert_eq!((ended.ending, ended.counts.visited), (Ending::Completed, 1));
    assert_eq!(site.asked().len(), 3 * 10 + 100);
    assert!(rig.listener.has("ended after 130 requests"));
}

#[tokio::test]
async fn one_connection_crawls_breadth_first() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("home", ["/b", "/a"]),
        "/a" => links("a", ["/a1", "/b1"]),
        "/b" => links("b", ["/b1", "/b2"]),
        "/robots.txt" | "/sitemap.xml" => Answer::status(404),
        path => links(path, ["/"]),
    })
    .await;
    Rig::new().crawl(&site.url("/"), json!({"connections": 1})).await;
    assert_eq!(site.asked(), ["/", "/b", "/a", "/b1", "/b2", "/a1"]);
}

#[tokio::test]
async fn each_redirect_is_checked() {
    let inner = Site::serve(|_| links("secret", ["/"])).await;
    let elsewhere = inner.url("/secret");
    let site = Site::serve(move |asked| match asked.path.as_str() {
        "/" => links("home", ["/old", "/out", "/inside", "/long/0", "/odd", "/nowhere"]),
        "/old" => Answer::status(301).with("location", "new?x#y"),
        "/new?x" => links("new", ["/"]),
        "/out" => Answer::redirect(elsewhere.as_str()),
        "/inside" => Answer::redirect("http://169.254.169.254/latest/meta-data/"),
        "/odd" => Answer::redirect("javascript:alert(1)"),
        "/nowhere" => Answer::status(302),
        path if path.starts_with("/long/") => {
            Answer::redirect(format!("/long/{}", path[6..].parse::<u32>().unwrap() + 1))
        }
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    let ended = rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(ended.ending, Ending::Completed);
    assert_eq!(rig.archive.paths(), ["/", "/new?x"]);
    assert!(inner.asked().is_empty());
    assert!(rig.listener.has("169.254.169.254/latest/meta-data/, out of scope"));
    assert!(rig.listener.has("it redirects too often"));
    assert_eq!(site.asked().iter().filter(|path| path.starts_with("/long/")).count(), 11);
}

#[tokio::test]
async fn forbidden_addresses_are_not_called() {
    let site = Site::serve(|_| links("home", ["/"])).await;
    let mut rig = Rig::new();
    rig.crawler = evenkeel_crawler::Crawler::new(outbound(&[]), settings());
    let by_name = format!("http://localhost:{}/", site.address.port());
    // A host name with a private address may get a public address later, so a retry may succeed.
    for (url, expected) in [(site.url("/"), true), (by_name, false)] {
        let ended = rig.crawl(&url, json!({})).await;
        let Ending::Failed { error, hopeless } = ended.ending else { panic!("{ended:?}") };
        assert_eq!(hopeless, expected, "{error}");
        assert!(error.contains("not public"), "{error}");
        assert!(site.asked().is_empty() && site.times_asked("/robots.txt") == 0);
    }
}

#[tokio::test]
async fn start_that_redirects_out_of_scope_fails_with_the_target() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => Answer::redirect("http://example.org/"),
        _ => Answer::status(404),
    })
    .await;
    let ended = Rig::new().crawl(&site.url("/"), json!({})).await;
    let Ending::Failed { error, hopeless: true } = ended.ending else { panic!("{ended:?}") };
    assert!(error.contains("redirects to http://example.org/, out of scope"), "{error}");
}

#[tokio::test]
async fn huge_pages_and_decompression_bombs_are_left_out() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("home", ["/huge", "/bomb", "/image", "/xml", "/text", "/last"]),
        "/huge" => Answer::html(vec![b'x'; 100_000]),
        "/bomb" => {
            let mut packer = GzEncoder::new(Vec::new(), Compression::best());
            packer.write_all(&vec![b'x'; 50 * 1024 * 1024]).unwrap();
            Answer::html(packer.finish().unwrap()).with("content-encoding", "gzip")
        }
        "/image" => Answer::html("x").with("content-type", "image/png"),
        "/xml" => Answer::html("<x/>").with("content-type", "application/xml"),
        "/text" => Answer::html("a <b> c").with("content-type", "text/plain"),
        "/last" => links("last", ["/"]),
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    let ended = rig.crawl(&site.url("/"), json!({"max_page_bytes": 90_000})).await;
    assert_eq!(ended.ending, Ending::Completed);
    assert_eq!(rig.archive.paths(), ["/", "/last", "/text"]);
    assert_eq!(rig.archive.page("/text").text, "a <b> c");
    assert_eq!((ended.counts.visited, ended.counts.skipped), (7, 4));
    assert!(
        rig.listener.has("larger than 90000 bytes") && rig.listener.has("image/png is not read")
    );
}

/// Starts a server with one page that arrives byte by byte and never ends.
async fn drip() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 1024];
                let read = stream.read(&mut head).await.unwrap();
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                if !head.starts_with("GET /slow") {
                    let body = "<p>fast <a href=/slow>x</a>";
                    let length = body.len();
                    let answer = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\
                         content-length: {length}\r\n\r\n{body}"
                    );
                    return stream.write_all(answer.as_bytes()).await.unwrap();
                }
                let start = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n";
                let _ = stream.write_all(start).await;
                while stream.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
    });
    address
}

#[tokio::test]
async fn slow_page_ends_at_its_timeout() {
    let address = drip().await;
    let rig = Rig::new();
    let config = json!({"page_timeout_ms": 300, "sitemaps": false});
    let ended = rig.crawl(&format!("http://{address}/"), config).await;
    assert!(matches!(&ended.ending, Ending::PartlyFailed(text) if text.contains("300 ms")));
    assert_eq!((ended.counts.crawled, ended.counts.failed), (1, 1));
}

#[tokio::test]
async fn bad_pages_are_read_as_far_as_possible() {
    let deep = format!("{}deep", "<div>".repeat(100_000));
    let site = Site::serve(move |asked| match asked.path.as_str() {
        "/" => links("home", ["/broken", "/deep", "/latin", "/wrong", "/koi8", "/nul", "/empty"]),
        "/broken" => Answer::html("<html><p>one<table><a href='/found'>two</p></b><td>three<"),
        "/deep" => Answer::html(deep.clone()),
        "/latin" => Answer::html(b"gr\xfcn".to_vec()).with("content-type", "text/html"),
        "/wrong" => Answer::html("grün!").with("content-type", "text/html; charset=iso-8859-1"),
        "/koi8" => Answer::html(b"\xf0\xd2\xc9\xd7\xc5\xd4".to_vec())
            .with("content-type", "text/html; charset=koi8-r"),
        "/nul" => Answer::html(b"a\0b\x02c\xff".to_vec()),
        "/found" => links("found", ["/"]),
        "/empty" => Answer::html(""),
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    let fields = json!({"fields": {"inner": "div div div"}});
    let ended = rig.crawl(&site.url("/"), fields).await;
    assert_eq!(ended.ending, Ending::Completed);
    assert_eq!(ended.counts.crawled, 9);
    assert_eq!(rig.archive.page("/broken").text, "one\ntwo\nthree<");
    assert_eq!(rig.archive.page("/deep").text, "deep");
    assert_eq!(rig.archive.page("/deep").fields["inner"], "deep");
    assert_eq!(rig.archive.page("/latin").text, "grün");
    assert_eq!(rig.archive.page("/wrong").text, "grün!");
    assert_eq!(rig.archive.page("/koi8").text, "Привет");
    assert_eq!(rig.archive.page("/nul").text, "abc\u{fffd}");
    assert_eq!(rig.archive.page("/found").title.as_deref(), Some("found"));
}

#[tokio::test]
async fn compressed_pages_are_decompressed() {
    let site = Site::serve(|asked| {
        if asked.path != "/" {
            return Answer::status(404);
        }
        let accepted = asked.headers["accept-encoding"].to_str().unwrap();
        assert!(accepted.contains("gzip") && accepted.contains("br"), "{accepted}");
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(b"<p>unpacked").unwrap();
        Answer::html(packer.finish().unwrap()).with("content-encoding", "gzip")
    })
    .await;
    let rig = Rig::new();
    rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(rig.archive.page("/").text, "unpacked");
}

#[tokio::test]
async fn only_pages_in_scope_are_crawled() {
    let other = Site::serve(|_| links("other", ["/"])).await;
    let (outside, port) = (other.url("/"), other.address.port());
    let site = Site::serve(move |asked| match asked.path.as_str() {
        "/docs/" => links(
            "docs",
            [
                outside.as_str(),
                &format!("//127.0.0.1:{port}/x"),
                "mailto:a@b",
                "/blog/1",
                "/docs/a",
                "/docs/b.pdf",
                "/docs/private/c",
            ],
        ),
        "/robots.txt" | "/sitemap.xml" => Answer::status(404),
        path => links(path, ["/docs/"]),
    })
    .await;
    let rig = Rig::new();
    let config = json!({"scope": "prefix", "exclude": ["*.pdf", "/docs/private/*"]});
    rig.crawl(&site.url("/docs/"), config).await;
    assert_eq!(rig.archive.paths(), ["/docs/", "/docs/a"]);
    assert!(other.asked().is_empty());
    let rig = Rig::new();
    rig.crawl(&site.url("/docs/"), json!({"include": ["/blog/*"]})).await;
    assert_eq!(rig.archive.paths(), ["/blog/1", "/docs/"]);
}
