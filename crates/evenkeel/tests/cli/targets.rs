//! Tests of targets and of the jobs that crawl them.

use std::io::ErrorKind;
use std::net::TcpListener;

use serde_json::json;

use crate::support::Server;

#[test]
fn target_url_is_not_used_as_the_server_url() {
    let server = Server::start(&[]);
    // If the client sent its request to the target's address, the target would receive the token.
    let site = TcpListener::bind("127.0.0.1:0").unwrap();
    site.set_nonblocking(true).unwrap();
    let url = format!("http://{}/", site.local_addr().unwrap());
    let created = server.json(&["targets", "create", "--name", "site", "--address", &url]);
    assert_eq!((&created["number"], &created["url"]), (&json!(1), &json!(url)));
    let server_url = server.url();
    let other = "https://example.com/other";
    let change = ["targets", "update", "1", "--address", other, "--url", &server_url];
    assert_eq!(server.json(&change)["url"], other);
    server.json(&["targets", "update", "1", "--address", &url]);
    assert_eq!(site.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(server.json(&["targets", "update", "1", "--address", ""])["url"], json!(null));
}

#[test]
fn jobs_follow_their_target_and_are_listed_by_it() {
    let server = Server::start(&[]);
    for path in ["a", "b"] {
        let url = format!("https://example.com/{path}");
        server.json(&["targets", "create", "--address", &url]);
    }
    let later = ["--every", "6h", "--start-at", "+2h"];
    let create = ["job", "create", "--name", "board", "--target", "1"];
    assert_eq!(server.json(&[&create[..], &later].concat())["url"], "https://example.com/a");
    server.json(&[&["job", "create", "--name", "other", "--noop"][..], &later].concat());
    let listed = server.json(&["job", "list", "--target", "1"]);
    assert_eq!((&listed["total"], &listed["jobs"][0]["name"]), (&json!(1), &json!("board")));
    let moved = server.json(&["job", "update", "board", "--target", "2"]);
    assert_eq!(moved["url"], "https://example.com/b");
    let result = server.run(&["targets", "update", "2", "--address", "https://example.com/c"]);
    assert!(result.code == 0 && result.out.contains("1 job follows it"), "{result:?}");
    assert_eq!(server.json(&["job", "show", "board"])["url"], "https://example.com/c");
    assert_eq!(server.json(&["job", "list", "--target", "1"])["total"], 0);
    let counted = server.json(&["job", "pause", "--all", "--target", "2", "--dry-run"]);
    assert_eq!(counted["matched"], 1);
}
