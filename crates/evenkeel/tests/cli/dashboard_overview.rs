//! The dashboard's overview: its five answers, the last visit, and its charts.

use serde_json::json;

use crate::dashboard::Browser;
use crate::support::{Server, create_from_json, wait_for};

/// Creates a job whose run fails, and waits until the failure is listed.
fn create_failing(server: &Server, user: &Browser<'_>) {
    let job = json!({
        "name": "broken", "schedule": "6h", "executor_type": "shell", "max_retries": 2,
        "executor_config": {"argv": ["sh", "-c", "echo no paper >&2; exit 3"]},
    });
    assert_eq!(create_from_json(server, &job).code, 0);
    assert_eq!(server.run(&["job", "trigger", "broken"]).code, 0);
    server.wait_for_run("broken", "failed");
    // Nodes report their failures every few seconds.
    wait_for("the failure", || user.get("/failures").body.contains("no paper").then_some(()));
}

/// Returns the browser with a second cookie.
fn seen<'a>(user: &Browser<'a>, visits: &str) -> Browser<'a> {
    Browser { server: user.server, cookie: format!("{}; evenkeel_seen={visits}", user.cookie) }
}

#[test]
fn overview_lists_failures_since_the_last_visit_of_the_browser() {
    let server = Server::start(&["--enable-shell"]);
    let user = Browser::local(&server);
    let first = user.get("/");
    assert!(first.body.contains("Nothing failed in the last 24 hours."), "{}", first.body);
    let cookie = first.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    let (visits, _) = cookie.strip_prefix("evenkeel_seen=").unwrap().split_once(';').unwrap();
    let now: i64 = visits.strip_prefix("0.").unwrap().parse().unwrap();
    create_failing(&server, &user);
    // The page loads itself again, which is no new visit.
    let same = seen(&user, visits).get("/").body;
    assert!(same.contains("1 kind of failure in the last 24 hours"), "{same}");
    let later = seen(&user, &format!("0.{}", now - 3600)).get("/");
    assert!(later.body.contains("1 kind of failure since your last visit on"), "{}", later.body);
    let cookie = later.header("set-cookie").unwrap();
    assert!(cookie.starts_with(&format!("evenkeel_seen={}.", now - 3600)), "{cookie}");
    // A shared address shows the same period to everyone, and is no visit.
    let shared = user.get("/?since=2099-01-01T00:00:00Z");
    assert!(shared.body.contains("Nothing failed since"), "{}", shared.body);
    assert_eq!(shared.header("set-cookie"), None);
    let wrong = user.get("/?since=yesterday").body;
    assert!(wrong.contains("The time in the address can't be read."), "{wrong}");
}

#[test]
fn overview_says_what_breaks_next_and_what_would_fix_it() {
    let server = Server::start(&["--enable-shell"]);
    let user = Browser::local(&server);
    let empty = user.get("/").body;
    for text in
        ["There is no job yet.", "href=\"/jobs/new\"", "Nothing has fired yet.", "No run waits"]
    {
        assert!(empty.contains(text), "{text}: {empty}");
    }
    create_failing(&server, &user);
    let page = wait_for("the condition", || {
        let page = user.get("/").body;
        page.contains("Fix the cause of its last failure. A retry is planned").then_some(page)
    });
    for text in [" left</strong>", "Its last run failed", "Last firing: ", "The store answers."] {
        assert!(page.contains(text), "{text}: {page}");
    }
    // The five answers come in text, before any chart.
    let (_, mut rest) = page.split_once("<main").unwrap();
    for heading in [
        "Is the scheduler working?",
        "What breaks next?",
        "What failed since your last visit?",
        "How full is it, now and at the next peak?",
        "Is the load even?",
        "Firing rate, last 24 hours",
        "Lateness, last 24 hours",
        "Failures by message",
        "Schedule Distribution",
    ] {
        let (before, after) =
            rest.split_once(heading).unwrap_or_else(|| panic!("{heading}: {page}"));
        let is_answer = heading.ends_with('?');
        assert!(!is_answer || !before.contains("<svg"), "{heading}: {page}");
        rest = after;
    }
    let listed = user.get("/at-risk").body;
    for text in ["broken", " left</strong>", "last_run_failed", "A retry is planned", "no paper"] {
        assert!(listed.contains(text), "{text}: {listed}");
    }
    assert!(user.get("/at-risk?condition=ERROR").body.contains("No job is in ERROR."));
    assert!(user.get("/at-risk?condition=WARNING").body.contains("broken</a>"));
    let waiting = user.get("/").body;
    assert!(
        waiting.contains("<dt><a href=\"/queue?lane=standard\">"),
        "the retry waits: {waiting}"
    );
}

#[test]
fn overview_shows_hours_in_the_zone_of_the_page() {
    let server = Server::start(&[]);
    let create = ["job", "create", "--name", "hello", "--every", "1h", "--noop"];
    assert_eq!(server.run(&create).code, 0);
    let user = Browser::local(&server);
    for path in ["/", "/balance"] {
        let page = user.get(&format!("{path}?tz=Asia/Kolkata")).body;
        assert!(page.contains("▲ Peak: 1 runs in the hour from "), "{page}");
        assert!(page.contains(":30 IST") && !page.contains(" UTC, with"), "{page}");
    }
    let local = user.get("/?tz=Asia/Kolkata").body;
    let (_, hour) = local.split_once("The busiest hour of the next day begins at ").unwrap();
    assert!(hour[2..].starts_with(":30 IST, with "), "{hour}");
}

#[test]
fn users_of_other_tenants_see_no_queue_of_all_tenants_and_leave_no_refusals() {
    let server = Server::start(&[]);
    let token = server.run(&["token", "create", "--role", "admin", "--tenant", "other"]).out;
    let other = Browser::signed_in(&server, token.trim());
    for path in ["/", "/queue"] {
        let page = other.get(path);
        assert_eq!(page.status, 200);
        assert!(!page.body.contains("all tenants"), "{}", page.body);
    }
    let refusals = other.get("/audit?denied=true").body;
    assert!(refusals.contains("No entry matches."), "{refusals}");
}
