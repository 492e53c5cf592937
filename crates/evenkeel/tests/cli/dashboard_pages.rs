//! Pages of the dashboard: saved views, orders and filters, failures, nodes, logs, typed times.

use evenkeel_private_postgres::{Options, PrivatePostgres};
use serde_json::json;

use crate::dashboard::Browser;
use crate::support::{Server, create_from_json, request, wait_for};

const HOSTILE: &str = "<script>alert(1)</script>";

fn as_role<'a>(server: &'a Server, role: &str) -> Browser<'a> {
    let token = server.run(&["token", "create", "--role", role]).out;
    Browser::signed_in(server, token.trim())
}

fn create_noop(server: &Server, name: &str, team: &str) {
    let job = json!({
        "name": name, "schedule": "1h", "executor_type": "noop", "metadata": {"team": team, "note": "a,b"},
    });
    assert_eq!(create_from_json(server, &job).code, 0);
}

fn create_shell(server: &Server, name: &str, script: &str) {
    let job = json!({
        "name": name, "schedule_enabled": false, "executor_type": "shell", "max_retries": 0,
        "executor_config": {"argv": ["sh", "-c", script]},
    });
    assert_eq!(create_from_json(server, &job).code, 0);
}

#[test]
fn jobs_are_filtered_by_metadata_and_sorted_by_links() {
    let server = Server::start(&[]);
    for (name, team) in [("apple", "red"), ("pear", "blue")] {
        create_noop(&server, name, team);
    }
    let user = Browser::local(&server);
    let red = user.get("/jobs?metadata=team%3Dred,%20note=a,b").body;
    assert!(red.contains("apple</a>") && !red.contains("pear</a>"), "{red}");
    // A filter that can't be read is refused, so that no command takes it for no filter.
    assert_eq!(user.get("/jobs?metadata=red").status, 422);
    let count = user.get("/job-commands?action=pause&metadata=team%3Dred").body;
    assert!(count.contains("Pause 1 job?") && count.contains("team=red"), "{count}");
    let place = |page: &str, name: &str| page.find(&format!("{name}</a>")).unwrap();
    for (sort, direction, is_first) in [("name", "ascending", true), ("-name", "descending", false)]
    {
        let page = user.get(&format!("/jobs?sort={sort}")).body;
        assert!(page.contains(&format!("aria-sort=\"{direction}\"")), "{page}");
        assert_eq!(place(&page, "apple") < place(&page, "pear"), is_first, "{page}");
    }
    let page = user.get("/jobs?sort=name&lane=standard").body;
    assert!(page.contains("/jobs?lane=standard&amp;sort=-name"), "{page}");
    assert!(page.contains("never ran"), "{page}");
    assert_eq!(user.get("/jobs?sort=colour").status, 422);
}

#[test]
fn saved_view_is_kept_by_the_browser_for_its_user() {
    let server = Server::start(&[]);
    create_noop(&server, "apple", "red");
    let user = Browser::local(&server);
    let token = user.form_token();
    assert!(user.get("/jobs?lane=batch").body.contains("Save this view"));
    assert!(!user.get("/jobs").body.contains("Save this view"), "there is nothing to save");
    let name = "%3Cscript%3Ealert(1)%3C/script%3E";
    let view = [("token", token.as_str()), ("view", name), ("lane", "batch"), ("sort", "-name")];
    assert_eq!(user.post("/ui/views/save", &view[1..]).status, 403);
    let saved = user.post("/ui/views/save", &view);
    let target = saved.header("location").unwrap();
    assert_eq!(target, "/jobs?lane=batch&sort=-name&done=save-view", "{}", saved.body);
    let cookie = saved.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let with_view = |user: &Browser<'_>| format!("{}; {cookie}", user.cookie);
    let returned = Browser { server: &server, cookie: with_view(&user) };
    let page = returned.get("/jobs").body;
    assert!(page.contains("href=\"/jobs?lane=batch&amp;sort=-name\""), "{page}");
    assert!(page.contains("Remove &lt;script&gt;") && !page.contains(HOSTILE), "{page}");
    assert!(returned.get(target).body.contains("The view is saved."));
    // Another user of the same browser does not see it.
    let key = server.json(&["api-key", "create", "other", "--role", "viewer"]);
    let other = Browser::signed_in(&server, key["key"].as_str().unwrap());
    let other = Browser { server: &server, cookie: with_view(&other) };
    assert!(!other.get("/jobs").body.contains("Saved views"));
    let removed = returned.post("/ui/views/remove", &[("token", &token), ("name", name)]);
    let cookie = removed.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let without = Browser { server: &server, cookie: format!("{}; {cookie}", user.cookie) };
    assert!(!without.get("/jobs").body.contains("Saved views"));
    let nameless = user.post("/ui/views/save", &[("token", &token), ("view", ""), ("q", "a")]);
    assert_eq!((nameless.status, nameless.header("set-cookie")), (422, None));
}

#[test]
fn later_page_of_a_list_leads_back_to_the_first() {
    let server = Server::start(&[]);
    let job =
        |n: u32| json!({"name": format!("job-{n}"), "schedule": "1h", "executor_type": "noop"});
    let jobs = json!({"jobs": (0..51).map(job).collect::<Vec<_>>()}).to_string();
    let header = format!("{}\r\ncontent-type: application/json", server.header());
    assert_eq!(request(&server.url(), "POST", "/api/v1/jobs/bulk", &header, &jobs).0, 200);
    let user = Browser::local(&server);
    let first = user.get("/jobs?lane=standard").body;
    assert!(!first.contains("First page"), "{first}");
    let (_, next) = first.split_once("href=\"/jobs?lane=standard&amp;cursor=").unwrap();
    let next =
        user.get(&format!("/jobs?lane=standard&cursor={}", next.split_once('"').unwrap().0)).body;
    assert!(next.contains("job-50</a>") && !next.contains("Next page"), "{next}");
    assert!(next.contains("href=\"/jobs?lane=standard\" rel=\"first\""), "{next}");
}

#[test]
fn failures_of_a_period_are_listed_and_retried_together() {
    let server = Server::start(&["--enable-shell"]);
    for name in ["first", "second"] {
        create_shell(&server, name, &format!("echo cannot open {name} >&2; exit 3"));
    }
    create_noop(&server, "good", "red");
    let user = Browser::local(&server);
    let page = wait_for("both failures", || {
        let page = user.get("/failures").body;
        (page.contains("open first") && page.contains("open second")).then_some(page)
    });
    for path in ["/failures?job=first", "/failures?since=2001-01-01T00%3A00%3A00Z&job=first"] {
        let first = user.get(path).body;
        assert!(first.contains("open first") && !first.contains("open second"), "{path}: {first}");
    }
    let none = user.get("/failures?since=2099-01-01T00%3A00%3A00Z").body;
    assert!(none.contains("No failure matches.") && !none.contains("open first"), "{none}");
    assert!(page.contains("/runs?status=failed&amp;job="), "{page}");
    let (_, target) = page.split_once("/job-commands?action=retry&amp;ids=").unwrap();
    let ids = target.split_once('"').unwrap().0.to_owned();
    let question = user.get(&format!("/job-commands?action=retry&ids={ids}")).body;
    assert!(question.contains("Retry 2 jobs?"), "{question}");
    let good = server.json(&["job", "show", "good"])["id"].as_str().unwrap().to_owned();
    let question = user.get(&format!("/job-commands?action=retry&ids={ids},{good}")).body;
    assert!(
        question.contains("Retry 2 jobs?") && question.contains("does not apply to"),
        "{question}"
    );
    let token = user.form_token();
    let fields = [("token", token.as_str()), ("action", "retry"), ("ids", &ids)];
    let done = user.post("/ui/job-commands", &fields);
    assert_eq!(done.header("location"), Some("/jobs?done=retry&count=2"), "{}", done.body);
    let runs =
        || server.json(&["run", "list", "--job", "first"])["executions"].as_array().unwrap().len();
    wait_for("the second run", || (runs() == 2).then_some(()));
    let viewer = as_role(&server, "viewer").get("/failures").body;
    assert!(viewer.contains("open first") && !viewer.contains("/job-commands"), "{viewer}");
}

#[test]
fn nodes_show_shards_runs_and_pools_without_workers() {
    let server = Server::start(&["--enable-shell"]);
    let user = Browser::local(&server);
    assert!(user.get("/nodes").body.contains("no run of yours"));
    create_shell(&server, "slow", "sleep 60");
    let remote = json!({
        "name": "remote", "schedule_enabled": false, "executor_type": "noop", "pool": "elsewhere",
    });
    assert_eq!(create_from_json(&server, &remote).code, 0);
    let page = wait_for("the run and the pool", || {
        let page = user.get("/nodes").body;
        (page.contains("slow</a>") && page.contains("live nodes: elsewhere")).then_some(page)
    });
    assert!(page.contains("<td>256</td>") && page.contains("--pools"), "{page}");
    assert!(!page.contains("silent"), "{page}");
}

#[test]
fn run_page_shows_more_lines_of_a_long_log_on_request() {
    let server = Server::start(&["--enable-shell"]);
    create_shell(
        &server,
        "talker",
        "i=0; while [ $i -lt 700 ]; do i=$((i+1)); echo line-$i-; done",
    );
    let run = server.wait_for_run("talker", "completed");
    let run = format!("/runs/{}", run["id"].as_str().unwrap());
    let user = Browser::local(&server);
    let page = user.get(&run).body;
    assert!(page.contains("The last 500 lines") && !page.contains(" line-200-"), "{page}");
    let more = format!("{run}?lines=5000");
    assert!(page.contains(&format!("href=\"{more}#log\"")), "{page}");
    let all = user.get(&more).body;
    assert!(all.contains("All 700 lines") && all.contains(" line-1-\n"), "{all}");
    assert!(page.contains("<title>Run of talker at "), "{page}");
    assert!(page.contains("edit the payload of the job</a>"), "{page}");
    assert!(!as_role(&server, "viewer").get(&run).body.contains("edit the payload"));
    let clock = user.get(&format!("{run}?tz=Asia/Kolkata")).body;
    assert!(clock.contains("IST</time>"), "{clock}");
}

#[test]
fn job_page_leads_administrators_to_the_audit_log() {
    let server = Server::start(&[]);
    create_noop(&server, "apple", "red");
    let id = server.json(&["job", "show", "apple"])["id"].as_str().unwrap().to_owned();
    let audit = format!("/audit?target={id}");
    let admin = Browser::local(&server);
    assert!(admin.get("/jobs/apple").body.contains(&audit));
    assert!(admin.get(&audit).body.contains("create_job"), "{}", admin.get(&audit).body);
    let operator = as_role(&server, "operator");
    assert!(!operator.get("/jobs/apple").body.contains("/audit"));
    let refused = operator.get(&audit);
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("You are signed in with the role"), "{}", refused.body);
}

#[test]
fn typed_time_is_in_the_zone_of_the_page_and_the_address_gets_it_in_full() {
    let server = Server::start(&[]);
    let mut user = Browser::local(&server);
    user.cookie.push_str("; evenkeel_zone=Europe/Berlin");
    for path in ["/runs?since=", "/failures?since=", "/audit?from="] {
        let answer = user.get(&format!("{path}2026-07-01%2009:00"));
        let target = format!("{path}2026-07-01T07%3A00%3A00Z");
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, Some(target.as_str())),
            "{path}"
        );
        let page = user.get(&target).body;
        assert!(page.contains("value=\"2026-07-01 09:00:00\""), "{path}: {page}");
        assert!(page.contains("Times without a zone are in Europe/Berlin."), "{path}: {page}");
    }
}

#[test]
fn pages_say_so_while_the_store_is_away() {
    let mut database = PrivatePostgres::start(Options::unit_test()).unwrap();
    let server = Server::start(&["--store", database.url()]);
    create_noop(&server, "apple", "red");
    let key = server.json(&["api-key", "create", "reader", "--role", "viewer"]);
    let admin = Browser::local(&server);
    let reader = Browser::signed_in(&server, key["key"].as_str().unwrap());
    database.stop_immediately().unwrap();
    // The server knows the key for some seconds; then it can't check the session itself.
    for (user, reason) in [(&admin, "Reload the page"), (&reader, "can't check your session")] {
        wait_for(reason, || {
            let page = user.get("/jobs");
            // A redirect to the sign-in page would take the content of open pages away.
            assert!([200, 503].contains(&page.status), "{} {}", page.head, page.body);
            assert_eq!(page.status == 503, page.body.contains("The server can't answer now"));
            (page.status == 503 && page.body.contains(reason)).then_some(())
        });
    }
    let overview = admin.get("/");
    assert_eq!(overview.status, 200, "{}", overview.body);
    assert!(overview.body.contains("No. store: does not answer"), "{}", overview.body);
}
