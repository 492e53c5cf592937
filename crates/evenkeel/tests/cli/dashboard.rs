//! The dashboard: sessions, forms and what pages show.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use crate::support::{Server, create_from_json};

const POLICY: &str = "content-security-policy: default-src 'none'; script-src 'self'";

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// A browser that shows one server, with or without a session.
pub(crate) struct Browser<'a> {
    pub(crate) server: &'a Server,
    pub(crate) cookie: String,
}

impl<'a> Browser<'a> {
    pub(crate) fn new(server: &'a Server) -> Self {
        Self { server, cookie: String::new() }
    }

    pub(crate) fn signed_in(server: &'a Server, credential: &str) -> Self {
        let mut browser = Self::new(server);
        let answer = browser.post("/sign-in", &[("credential", credential), ("next", "/jobs")]);
        assert_eq!((answer.status, answer.header("location")), (303, Some("/jobs")));
        let cookie = answer.header("set-cookie").unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
        assert!(!cookie.contains(credential));
        browser.cookie = cookie.split(';').next().unwrap().to_owned();
        browser
    }

    pub(crate) fn local(server: &'a Server) -> Self {
        let path = server.folder.path().join("evenkeel-data/token");
        Self::signed_in(server, std::fs::read_to_string(path).unwrap().trim())
    }

    pub(crate) fn host(&self) -> String {
        self.server.url().strip_prefix("http://").unwrap().to_owned()
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut stream = TcpStream::connect(self.host()).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        for (name, value) in headers.iter().chain(&[("cookie", self.cookie.as_str())]) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[("host", &self.host())], "")
    }

    /// Sends a form as a page of this server does.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let form = ("content-type", "application/x-www-form-urlencoded");
        let (host, origin) = (self.host(), self.server.url());
        let headers = [("host", host.as_str()), ("origin", origin.as_str()), form];
        self.send("POST", path, &headers, &body.join("&"))
    }

    /// Returns the token that the forms of this session carry.
    pub(crate) fn form_token(&self) -> String {
        let page = self.get("/").body;
        let (_, rest) = page.split_once("name=\"token\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }
}

#[test]
fn every_page_needs_a_session_and_answers_with_a_strict_policy() {
    let server = Server::start(&[]);
    assert_eq!(
        server.run(&["job", "create", "--name", "hello", "--every", "1h", "--noop"]).code,
        0
    );
    let (visitor, user) = (Browser::new(&server), Browser::local(&server));
    for (path, content) in [
        ("/", "Is the scheduler working?"),
        ("/jobs", "hello"),
        ("/jobs/hello", "Why does it not run now?"),
        ("/at-risk", "No job is at risk."),
        ("/failures", "No recent run failed."),
        ("/balance", "Schedule Distribution"),
        ("/nodes", "Last ping"),
    ] {
        let refused = visitor.get(path);
        assert_eq!(refused.status, 303, "{path}");
        assert!(refused.header("location").unwrap().starts_with("/sign-in?next=%2F"), "{path}");
        let page = user.get(path);
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        assert!(page.body.contains(content), "{path}: {}", page.body);
        assert!(page.head.contains(POLICY), "{path}: {}", page.head);
        assert_eq!(page.header("cache-control"), Some("no-store"));
    }
    assert_eq!(user.get("/jobs/none").status, 404);
    assert_eq!(visitor.get("/sign-in").status, 200);
    let refused = visitor.post("/sign-in", &[("credential", "wrong")]);
    assert_eq!((refused.status, refused.header("set-cookie")), (401, None));
    assert!(refused.body.contains("role=\"alert\""), "{}", refused.body);
}

#[test]
fn job_page_answers_why_the_job_did_not_run_at_a_past_time() {
    let server = Server::start(&[]);
    assert_eq!(
        server.run(&["job", "create", "--name", "hello", "--every", "1h", "--noop"]).code,
        0
    );
    let user = Browser::local(&server);
    let page = user.get("/jobs/hello?at=2001-01-01T09:00:00Z").body;
    let expected = server.json(&["job", "explain", "hello", "--at", "2001-01-01T09:00:00Z"]);
    assert_eq!(expected["past"]["verdict"], "not_created_yet", "{expected}");
    let message = expected["past"]["message"].as_str().unwrap();
    assert!(page.contains(message), "{message}: {page}");
    let refused = user.get("/jobs/hello?at=whenever");
    assert_eq!(refused.status, 200);
    assert!(refused.body.contains("role=\"alert\""), "{}", refused.body);
}

#[test]
fn jobs_are_found_by_a_part_of_their_name() {
    let server = Server::start(&[]);
    for name in ["daily-report", "cleanup"] {
        let create = ["job", "create", "--name", name, "--every", "1h", "--noop"];
        assert_eq!(server.run(&create).code, 0);
    }
    let user = Browser::local(&server);
    let found = crate::support::wait_for("the search index", || {
        let page = user.get("/jobs?q=report").body;
        page.contains("daily-report").then_some(page)
    });
    assert!(!found.contains("cleanup"), "{found}");
    assert!(user.get("/jobs?q=nothing-like-this").body.contains("No job matches."));
}

#[test]
fn api_does_not_accept_the_session_cookie() {
    let server = Server::start(&[]);
    let user = Browser::local(&server);
    for path in ["/api/v1/jobs", "/api/v1/nodes", "/metrics", "/api/openapi.json"] {
        assert_eq!(user.get(path).status, 401, "{path}");
    }
}

#[test]
fn form_is_accepted_only_from_this_server_and_this_session() {
    let server = Server::start(&[]);
    assert_eq!(
        server.run(&["job", "create", "--name", "hello", "--every", "1h", "--noop"]).code,
        0
    );
    let user = Browser::local(&server);
    let token = user.form_token();
    let pause = "/ui/jobs/hello/pause";
    let body = format!("token={token}");
    let host = user.host();
    let form = ("content-type", "application/x-www-form-urlencoded");
    for headers in [
        &[("host", host.as_str()), form][..],
        &[("host", &host), ("origin", "https://evil.example"), form],
        &[("host", &host), ("origin", "null"), form],
    ] {
        assert_eq!(user.send("POST", pause, headers, &body).status, 403, "{headers:?}");
    }
    assert_eq!(user.post(pause, &[("token", "")]).status, 403);
    assert_eq!(user.post(pause, &[("token", &Browser::local(&server).form_token())]).status, 403);
    assert_eq!(server.json(&["job", "show", "hello"])["is_paused"], false);
    let done = user.post(pause, &[("token", &token)]);
    assert_eq!((done.status, done.header("location")), (303, Some("/jobs/hello?done=pause")));
    assert_eq!(server.json(&["job", "show", "hello"])["is_paused"], true);
    assert!(user.get("/jobs/hello?done=pause").body.contains("The job is paused."));
    assert_eq!(user.post("/ui/jobs/hello/erase", &[("token", &token)]).status, 404);
}

#[test]
fn unknown_host_name_is_refused_and_a_listed_one_is_not() {
    let server = Server::start(&["--dashboard-hosts", "jobs.example.com"]);
    let visitor = Browser::new(&server);
    let get = |host: &str| visitor.send("GET", "/sign-in", &[("host", host)], "");
    assert_eq!(get("jobs.example.com").status, 200);
    let refused = get("evil.example:8060");
    assert_eq!(refused.status, 421);
    assert!(refused.body.contains("--dashboard-hosts evil.example"), "{}", refused.body);
}

#[test]
fn hostile_texts_appear_as_text() {
    let hostile = "<script>alert(1)</script>\"'&";
    let server = Server::start(&["--enable-shell"]);
    let job = json!({
        "name": hostile, "description": hostile, "schedule_enabled": false,
        "executor_type": "shell", "metadata": {hostile: hostile}, "max_retries": 0,
        "executor_config": {"argv": ["sh", "-c", format!("echo '<script>alert(1)</script>'; exit 3")]},
    });
    let created = create_from_json(&server, &job).json();
    let id = created["id"].as_str().unwrap();
    let run = server.wait_for_run(id, "failed");
    let user = Browser::local(&server);
    let run_page = format!("/runs/{}", run["id"].as_str().unwrap());
    for path in ["/", "/jobs", &format!("/jobs/{id}"), "/failures", &run_page] {
        let page = user.get(path);
        assert_eq!(page.status, 200, "{path}");
        assert!(!page.body.contains("<script>"), "{path}: {}", page.body);
    }
    assert!(user.get(&run_page).body.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn viewer_sees_pages_without_commands() {
    let server = Server::start(&[]);
    assert_eq!(
        server.run(&["job", "create", "--name", "hello", "--every", "1h", "--noop"]).code,
        0
    );
    let token = server.run(&["token", "create", "--role", "viewer"]).out;
    let viewer = Browser::signed_in(&server, token.trim());
    let page = viewer.get("/jobs/hello").body;
    assert!(page.contains("viewer") && !page.contains("Run now"), "{page}");
    assert!(!viewer.get("/balance").body.contains("Rebalance Schedule"));
    let refused = viewer.post("/ui/jobs/hello/pause", &[("token", &viewer.form_token())]);
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("operator"), "{}", refused.body);
}

#[test]
fn rebalance_shows_its_plan_before_it_is_confirmed() {
    let server = Server::start(&[]);
    assert_eq!(
        server.run(&["job", "create", "--name", "hello", "--every", "6h", "--noop"]).code,
        0
    );
    let user = Browser::local(&server);
    let token = user.form_token();
    let planned = user.post("/ui/rebalance", &[("token", &token)]);
    assert_eq!(planned.status, 303, "{}", planned.body);
    let preview = user.get(planned.header("location").unwrap());
    assert_eq!(preview.status, 200, "{}", preview.body);
    for content in ["Current distribution", "Projected distribution", "Jobs that stay"] {
        assert!(preview.body.contains(content), "{}", preview.body);
    }
    // A job that was just created must not move, so there is nothing to confirm.
    assert!(preview.body.contains("There is nothing to move."), "{}", preview.body);
    let plan = server.json(&["rebalance", "--preview"])["plan_id"].as_str().unwrap().to_owned();
    let done = user.post("/ui/rebalance", &[("token", &token), ("plan", &plan)]);
    assert_eq!(done.status, 303, "{}", done.body);
    let notice = user.get(done.header("location").unwrap()).body;
    assert!(notice.contains("moved 0 of 0 jobs"), "{notice}");
    let unknown = [("token", token.as_str()), ("plan", "01a1edbe-e8af-72e6-81ad-810b7e19e603")];
    assert_eq!(user.post("/ui/rebalance", &unknown).status, 404);
}

#[test]
fn signing_out_ends_the_session_in_the_browser() {
    let server = Server::start(&[]);
    let user = Browser::local(&server);
    let answer = user.post("/ui/sign-out", &[("token", &user.form_token())]);
    assert_eq!((answer.status, answer.header("location")), (303, Some("/sign-in")));
    assert!(answer.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert!(answer.header("clear-site-data").unwrap().contains("storage"));
}
