use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::support::{Answer, Rig, Site, links};

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
    assert_eq!(rig.keeper.paths(), ["/", "/a?x=1&y=2", "/b"]);
    assert_eq!(rig.keeper.page("/b").depth, 1);
    assert_eq!(site.times_asked("/index.xml"), 1);
    let rig = Rig::new();
    site.forget_asked();
    rig.crawl(&site.url("/"), json!({"sitemaps": false})).await;
    assert_eq!(rig.keeper.paths(), ["/"]);
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
    assert_eq!(rig.keeper.paths(), ["/", "/a"]);
    assert_eq!(site.asked().iter().filter(|path| path.ends_with(".xml")).count(), 49);
}
