//! The dashboard's stream of changes, its scripts and the one-time sign-in link.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::dashboard::Browser;
use crate::support::{Server, wait_for};

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
            let (status, stream) = Stream::open(&user, "same-origin");
            assert_eq!(status, 200);
            stream
        })
        .collect();
    // The first message is about changes before the stream was open.
    for viewer in &mut viewers {
        viewer.wait_for("changed");
    }
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
    assert!(page.contains("<span>Pause</span><span> live updates</span>"), "{page}");
}

/// Returns the path of the sign-in link in a text.
fn link_in<'a>(text: &'a str, url: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("{url}/sign-in/once?"))?;
    let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && !"=_-".contains(it))?;
    Some(&rest[..end])
}

#[test]
fn sign_in_link_works_once() {
    let server = Server::start(&["--log", "trace"]);
    let printed = wait_for("the link", || link_in(&server.log(), &server.url()).map(str::to_owned));
    let mut browser = Browser::new(&server);
    let path = format!("/sign-in/once?{printed}");
    assert_eq!(browser.get("/sign-in/once?secret=wrong").status, 410);
    let answer = browser.get(&path);
    assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let again = browser.get(&path);
    assert_eq!((again.status, again.header("set-cookie")), (410, None));
    browser.cookie = cookie;
    assert!(browser.get("/").body.contains("local · admin · default"));
    // The log has the line that offers the link, and no request.
    assert_eq!(server.log().matches(&printed).count(), 1);
}

#[test]
fn open_passes_a_sign_in_link_to_the_browser_in_a_private_file() {
    let folder = tempfile::tempdir().unwrap();
    let (program, opened) = (folder.path().join("xdg-open"), folder.path().join("opened"));
    let script = format!("#!/bin/sh\ncp -p \"$1\" {0}.new && mv {0}.new {0}\n", opened.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let with_program = format!("PATH='{}':\"$PATH\" exec \"$0\" \"$@\"", folder.path().display());
    let server = Server::start_under(&["sh", "-c", &with_program], &["--open"]);
    let page = wait_for("the browser", || std::fs::read_to_string(&opened).ok());
    let link = link_in(&page, &server.url()).unwrap();
    assert_eq!(std::fs::metadata(&opened).unwrap().permissions().mode() & 0o077, 0);
    assert_eq!(Browser::new(&server).get(&format!("/sign-in/once?{link}")).status, 303);
}

#[test]
fn server_runs_without_a_browser_to_open() {
    let server = Server::start_under(&["env", "PATH=/nowhere"], &["--open"]);
    wait_for("the warning", || server.log().contains("browser was not opened").then_some(()));
    assert_eq!(Browser::local(&server).get("/").status, 200);
}
