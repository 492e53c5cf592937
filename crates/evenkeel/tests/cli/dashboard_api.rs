//! The dashboard's API page, and the time zone of pages.

use crate::dashboard::Browser;
use crate::support::Server;

const CREATE: &str = "%7B%22name%22%3A%22tried%22%2C%22schedule%22%3A%22%40daily%22%2C\
                      %22executor_type%22%3A%22noop%22%7D";

#[test]
fn user_tries_an_operation_of_the_api_with_a_session() {
    let server = Server::start(&[]);
    let user = Browser::local(&server);
    let list = user.get("/docs/api").body;
    assert!(list.contains("/docs/api/try?method=POST&amp;path=%2Fapi%2Fv1%2Fjobs"), "{list}");
    let form = user.get("/docs/api/try?method=POST&path=/api/v1/jobs").body;
    assert!(form.contains("Creates a job.") && form.contains("Idempotency-Key"), "{form}");

    let token = user.form_token();
    let request = [("method", "POST"), ("path", "/api/v1/jobs"), ("body", CREATE)];
    let refused = user.post("/ui/try", &request);
    assert_eq!(refused.status, 403, "{}", refused.body);
    let sent = user.post("/ui/try", &[&request[..], &[("token", &token)]].concat());
    assert!(sent.body.contains("201 Created"), "{}", sent.body);
    assert_eq!(server.json(&["job", "show", "tried"])["name"], "tried");

    let elsewhere = [("method", "GET"), ("path", "/metrics"), ("token", token.as_str())];
    let refused = user.post("/ui/try", &elsewhere);
    assert!(refused.body.contains("is no path of the API"), "{}", refused.body);
}

#[test]
fn documentation_needs_a_session_unless_the_document_is_public() {
    let closed = Server::start(&[]);
    let visitor = Browser::new(&closed);
    let answer = visitor.get("/api/docs");
    assert_eq!((answer.status, answer.header("location")), (303, Some("/docs/api")));
    assert_eq!(visitor.get("/docs/api").status, 303);
    let user = Browser::local(&closed);
    let page = user.get("/docs/api/all").body;
    assert!(page.contains("id=\"create_job\"") && page.contains("id=\"schemas\""), "{page}");

    let open = Server::start(&["--open-openapi"]);
    let shown = Browser::new(&open).get("/api/docs");
    assert_eq!(shown.status, 200);
    assert!(shown.body.contains("id=\"create_job\""), "{}", shown.body);
    let policy = shown.header("content-security-policy").unwrap();
    assert!(policy.contains("style-src 'self'") && !policy.contains("unsafe"), "{policy}");
}

#[test]
fn try_it_has_the_rights_of_the_session() {
    let server = Server::start(&[]);
    let token = server.run(&["token", "create", "--role", "viewer"]).out;
    let viewer = Browser::signed_in(&server, token.trim());
    let token = viewer.form_token();
    let request = [("method", "POST"), ("path", "/api/v1/jobs"), ("body", CREATE)];
    let sent = viewer.post("/ui/try", &[&request[..], &[("token", &token)]].concat());
    assert!(sent.body.contains("403 Forbidden"), "{}", sent.body);
    assert_eq!(server.run(&["job", "show", "tried"]).code, 3);
}

#[test]
fn pages_show_times_in_the_zone_of_the_url_or_of_the_users_choice() {
    let server = Server::start(&[]);
    let mut user = Browser::local(&server);
    assert!(user.get("/nodes").body.contains(" UTC</time>"));
    assert!(user.get("/nodes?tz=Asia/Kolkata").body.contains(" IST</time>"));
    assert!(user.get("/nodes").body.contains(" UTC</time>"));

    let chosen = user.get("/ui/zone?tz=Asia/Kolkata&next=/nodes%3Fa%3D1");
    assert_eq!(chosen.header("location"), Some("/nodes?a=1&tz=Asia%2FKolkata"));
    let zone = chosen.header("set-cookie").unwrap().split(';').next().unwrap();
    user.cookie = format!("{}; {zone}", user.cookie);
    assert!(user.get("/nodes").body.contains(" IST</time>"));
    assert!(user.get("/nodes?tz=UTC").body.contains(" UTC</time>"));
    let unknown = user.get("/ui/zone?tz=Nowhere&next=//evil.example");
    assert_eq!((unknown.header("location"), unknown.header("set-cookie")), (Some("/"), None));
}
