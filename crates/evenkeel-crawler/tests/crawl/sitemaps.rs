use std::io::Write;
use std::time::Duration;

use evenkeel_crawler::{CrawlerSettings, Ending};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::support::{Answer, Rig, Site, links, now, settings};

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

#[tokio::test]
async fn pages_of_sitemaps_are_crawled() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/robots.txt" => Answer::html("user-agent: *\ndisallow: /no\nsitemap: /index.xml"),
        "/index.xml" => Answer::html(
            "<sitemapindex><sitemap><loc>/one.xml.gz</loc></sitemap>\
             <sitemap><loc>http://169.254.169.254/x.xml</loc></sitemap>\
             <sitemap><loc>/index.xml</loc></sitemap><sitemap><loc>/bomb.xml.gz</loc></sitemap>\
             <sitemap><loc>/broken.xml</loc></sitemap></sitemapindex>",
        ),
        "/one.xml.gz" => Answer::html(pack(
            b"<urlset><url><loc>/a?x=1&amp;y=2</loc></url><url><loc>/no</loc></url>\
              <url><loc>http://example.org/</loc></url></urlset>",
        ))
        .with("content-type", "application/gzip"),
        "/bomb.xml.gz" => Answer::html(pack(&vec![b' '; 100 * 1024 * 1024])),
        "/broken.xml" => Answer::status(500),
        "/sitemap.xml" => Answer::html("<urlset><url><loc>/b</loc></url></urlset>"),
        path => links(path, ["/"]),
    })
    .await;
    let rig = Rig::new();
    rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(rig.archive.paths(), ["/", "/a?x=1&y=2", "/b"]);
    assert_eq!(rig.archive.page("/b").depth, 1);
    assert_eq!(site.times_asked("/index.xml"), 1);
    let rig = Rig::new();
    site.forget_asked();
    rig.crawl(&site.url("/"), json!({"sitemaps": false})).await;
    assert_eq!(rig.archive.paths(), ["/"]);
    assert_eq!(site.times_asked("/sitemap.xml"), 0);
}

#[tokio::test]
async fn endless_sitemaps_end() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("home", ["/a"]),
        "/a" => links("a", ["/"]),
        "/robots.txt" => Answer::status(404),
        path => {
            let number: usize =
                path.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
            Answer::html(format!(
                "<sitemapindex><sitemap><loc>/s{}.xml</loc></sitemap></sitemapindex>",
                number + 1
            ))
        }
    })
    .await;
    let rig = Rig::new();
    rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(rig.archive.paths(), ["/", "/a"]);
    assert_eq!(site.asked().iter().filter(|path| path.ends_with(".xml")).count(), 49);
}

fn index(files: &[&str]) -> Answer {
    let files: String =
        files.iter().map(|file| format!("<sitemap><loc>{file}</loc></sitemap>")).collect();
    Answer::html(format!("<sitemapindex>{files}</sitemapindex>"))
}

fn pages(pages: &[&str]) -> Answer {
    let pages: String = pages.iter().map(|page| format!("<url><loc>{page}</loc></url>")).collect();
    Answer::html(format!("<urlset>{pages}</urlset>"))
}

#[tokio::test]
async fn sitemap_requests_obey_the_limits_of_pages() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/robots.txt" => Answer::html(
            "user-agent: *\ncrawl-delay: 0.2\ndisallow: /hidden\nsitemap: /hidden/named.xml",
        ),
        // A sitemap that robots.txt names may be read, but robots.txt may forbid the sitemaps that
        // a sitemap lists.
        "/hidden/named.xml" => index(&["/hidden/other.xml", "/open.xml"]),
        "/open.xml" => pages(&["/a"]),
        "/sitemap.xml" => Answer::redirect("/hidden/moved.xml"),
        path => links(path, ["/"]),
    })
    .await;
    let rig = Rig::new();
    let started = now();
    rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(site.asked(), ["/", "/hidden/named.xml", "/open.xml", "/a"]);
    // Five requests, including one for the default sitemap, take at least four delays of 0.2 s.
    assert!(started.elapsed() >= Duration::from_millis(800), "{:?}", started.elapsed());
}

#[tokio::test]
async fn errors_of_a_host_skip_its_other_sitemaps() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("home", ["/a"]),
        "/a" => links("a", ["/"]),
        "/sitemap.xml" => index(&["/1.xml", "/2.xml", "/3.xml"]),
        path if path.ends_with(".xml") => Answer::status(503),
        _ => Answer::status(404),
    })
    .await;
    let rig = Rig::new();
    rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(site.asked(), ["/", "/1.xml", "/a"]);
    assert!(rig.listener.has("left out: the host had errors"));
}

#[tokio::test]
async fn slow_sitemaps_are_left_out() {
    let site = Site::serve(|asked| match asked.path.as_str() {
        "/" => links("home", ["/a"]),
        "/a" => links("a", ["/"]),
        "/sitemap.xml" => Answer { hold: Duration::from_secs(600), ..Answer::status(200) },
        _ => Answer::status(404),
    })
    .await;
    let time_max = Duration::from_millis(300);
    let rig = Rig::with(CrawlerSettings { sitemaps_time_max: time_max, ..settings() });
    let ended = rig.crawl(&site.url("/"), json!({})).await;
    assert_eq!(ended.ending, Ending::Completed);
    assert_eq!(rig.archive.paths(), ["/", "/a"]);
    assert!(rig.listener.has("sitemaps left out: not all were read"));
}
