//! The dashboard's stream of changes, its scripts and the one-time sign-in link.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::dashboard::Browser;
use crate::support::Server;

/// An open stream of the dashboard.
struct Stream(BufReader<TcpStream>);

impl Stream {
    /// Opens the stream as a page of this server does. Returns the status and the stream.
    fn open(browser: &Browser<'_>, site: &str) -> (u16, Self) {
        let mut stream = TcpStream::connect(browser.host()).unwrap();
        // The keep-alive message is sent every 10 s, so a longer silence is a fault.
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (host, cookie) = (browser.host(), &browser.cookie);
        write!(
            stream,
            "GET /ui/stream HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\n\
             sec-fetch-site: {site}\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        (line.split(' ').nth(1).unwrap().parse().unwrap(), Self(reader))
    }

    /// Returns the kind of the next message, or `None` at the end of the stream.
    fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(kind) = line.trim().strip_prefix("event: ") {
                return Some(kind.to_owned());
            }
        }
    }

    /// Reads messages until one of this kind.
    fn wait_for(&mut self, kind: &str) {
        while self.next().expect("the stream has ended") != kind {}
    }
}

#[test]
fn stream_tells_every_viewer_of_a_tenant_about_a_change() {
    let server = Server::start(&[]);
    let user = Browser::local(&server);
    // More viewers than the API has event streams per tenant, because all share one of them.
    let mut viewers: Vec<Stream> = (0..70)
        .map(|_| {
            let (status, mut stream) = Stream::open(&user, "same-origin");
            assert_eq!(status, 200);
            stream.wait_for("alive");
            stream
        })
        .collect();
    let (_, metrics) =
        crate::support::request(&server.url(), "GET", "/metrics", &server.header(), "");
    assert!(metrics.contains("\nevenkeel_streams_open 1\n"), "{metrics}");
    let create = ["job", "create", "--name", "hello", "--every", "1h", "--noop"];
    assert_eq!(server.run(&create).code, 0);
    for viewer in &mut viewers {
        viewer.wait_for("changed");
    }
}

#[test]
fn stream_needs_a_session_and_a_page_of_this_server() {
    let server = Server::start(&[]);
    assert_eq!(Stream::open(&Browser::new(&server), "same-origin").0, 303);
    let user = Browser::local(&server);
    for site in ["same-site", "cross-site"] {
        assert_eq!(Stream::open(&user, site).0, 403, "{site}");
    }
}

#[test]
fn stream_ends_when_its_key_is_revoked() {
    let server = Server::start(&[]);
    let key = server.run(&["api-key", "create", "screen", "--role", "viewer"]).out;
    let (first, mut revoked) =
        Stream::open(&Browser::signed_in(&server, key.trim()), "same-origin");
    assert_eq!(first, 200);
    revoked.wait_for("alive");
    assert_eq!(server.run(&["api-key", "revoke", "screen"]).code, 0);
    revoked.wait_for("ended");
    while revoked.next().is_some() {}
}

#[test]
fn pages_load_scripts_of_this_server_only() {
    let server = Server::start(&[]);
    let page = Browser::local(&server).get("/").body;
    for name in ["/assets/app.js", "/assets/keyboard.js"] {
        assert!(page.contains(&format!("<script src=\"{name}\" defer></script>")), "{page}");
        let script = Browser::new(&server).get(name);
        assert_eq!(script.status, 200);
        assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"));
    }
    assert!(page.contains("Pause live updates"), "{page}");
}
