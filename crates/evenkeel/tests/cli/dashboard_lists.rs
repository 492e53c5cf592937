//! The dashboard's lists: dead letters, queue, runs, pauses, bulk commands, targets, audit, keys.

use serde_json::json;

use crate::dashboard::Browser;
use crate::support::{Server, create_from_json, wait_for};

const HOSTILE: &str = "<script>alert(1)</script>";

fn create(server: &Server, name: &str) {
    let create = ["job", "create", "--name", name, "--every", "1h", "--noop"];
    assert_eq!(server.run(&create).code, 0);
}

/// Creates a job whose only run fails for good, and waits for its dead letter.
fn create_dead_letter(server: &Server, user: &Browser<'_>, name: &str) {
    let job = json!({
        "name": name, "schedule_enabled": false, "executor_type": "shell", "max_retries": 0,
        "executor_config": {"argv": ["sh", "-c", format!("echo '{HOSTILE}' >&2; exit 3")]},
        "on_failure": {"action": "dead_letter"},
    });
    assert_eq!(create_from_json(server, &job).code, 0);
    wait_for("the dead letter", || {
        user.get(&format!("/dead-letters?job={name}")).body.contains("1 dead letter<").then_some(())
    });
}

fn as_role<'a>(server: &'a Server, role: &str) -> Browser<'a> {
    let token = server.run(&["token", "create", "--role", role]).out;
    Browser::signed_in(server, token.trim())
}

/// Returns the value of a hidden field of a form.
fn field(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap();
    rest.split_once('"').unwrap().0.to_owned()
}

/// Returns the first address in a page that starts with this text.
fn link(page: &str, start: &str) -> String {
    let (_, rest) = page.split_once(&format!("\"{start}")).unwrap();
    format!("{start}{}", rest.split_once('"').unwrap().0)
}

#[test]
fn lists_without_items_teach_the_next_step() {
    let server = Server::start(&[]);
    let user = Browser::local(&server);
    for (path, content) in [
        ("/dead-letters", "There is no dead letter."),
        ("/queue", "No run waits."),
        ("/runs", "No job has run yet."),
        ("/runs?since=2026-11-18T00:00:00Z", "No run matches."),
        ("/pauses", "No job is paused."),
        ("/pages", "No page is stored."),
        ("/targets", "There is no target."),
        ("/access", "There is no API key."),
    ] {
        let page = user.get(path);
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        assert!(page.body.contains(content), "{path}: {}", page.body);
        assert_eq!(Browser::new(&server).get(path).status, 303, "{path}");
    }
    assert_eq!(user.get("/pages/0006442d-7b2b-8640-8000-000000040000").status, 404);
    assert_eq!(user.get("/runs?since=yesterday").status, 422);
}

#[test]
fn dead_letters_are_redriven_and_deleted_one_by_one() {
    let server = Server::start(&["--enable-shell"]);
    let user = Browser::local(&server);
    create_dead_letter(&server, &user, "broken");
    let page = user.get("/dead-letters").body;
    assert!(page.contains("broken") && !page.contains(HOSTILE), "{page}");
    let token = user.form_token();
    let redrive = link(&page, "/ui/dead-letters/");
    assert_eq!(user.post(&redrive, &[]).status, 403);
    let viewer = as_role(&server, "viewer");
    assert!(!viewer.get("/dead-letters").body.contains("/ui/dead-letters/"));
    assert_eq!(viewer.post(&redrive, &[("token", &viewer.form_token())]).status, 403);
    let done = user.post(&redrive, &[("token", &token)]);
    assert_eq!(done.header("location"), Some("/dead-letters?done=redrive&count=1"));
    let notice = user.get(done.header("location").unwrap()).body;
    assert!(notice.contains("1 dead letter redriven"), "{notice}");
    // A dead letter is redriven only once.
    let again = user.post(&redrive, &[("token", &token)]);
    assert!(again.body.contains("0 dead letters redriven, 1 not"), "{}", again.body);
    let delete = redrive.replace("/redrive", "/delete");
    let deleted = user.post(&delete, &[("token", &token)]);
    assert_eq!(deleted.header("location"), Some("/dead-letters?done=delete&count=1"));
    assert_eq!(user.post("/ui/dead-letters/x/explode", &[("token", &token)]).status, 404);
}

#[test]
fn matching_dead_letters_are_counted_before_they_are_deleted() {
    let server = Server::start(&["--enable-shell"]);
    let user = Browser::local(&server);
    for name in ["first", "second", "third"] {
        create_dead_letter(&server, &user, name);
    }
    let question = user.get("/dead-letters/confirm?action=delete&job=first").body;
    assert!(question.contains("Delete 1 dead letter?"), "{question}");
    let question = user.get("/dead-letters/confirm?action=delete").body;
    assert!(question.contains("Delete 3 dead letters?"), "{question}");
    let (token, until) = (user.form_token(), field(&question, "until"));
    let viewer = as_role(&server, "viewer");
    let viewer_token = viewer.form_token();
    let fields = [("token", viewer_token.as_str()), ("until", &until)];
    assert_eq!(viewer.post("/ui/dead-letters/delete", &fields).status, 403);
    // Dead letters that came after the count stay.
    let none = user.post("/ui/dead-letters/delete", &[("token", &token), ("until", "0")]);
    assert_eq!(none.header("location"), Some("/dead-letters?done=delete&count=0"));
    let done = user.post("/ui/dead-letters/delete", &[("token", &token), ("until", &until)]);
    assert_eq!(done.header("location"), Some("/dead-letters?done=delete&count=3"));
}

#[test]
fn runs_are_filtered_by_status_job_and_time() {
    let server = Server::start(&["--enable-shell"]);
    let user = Browser::local(&server);
    create_dead_letter(&server, &user, "broken");
    for (query, is_listed) in [
        ("", true),
        ("?status=failed", true),
        ("?status=completed", false),
        ("?job=broken", true),
        ("?since=2001-01-01T00:00:00Z", true),
        ("?until=2001-01-01T09:00:00Z", false),
    ] {
        let page = user.get(&format!("/runs{query}")).body;
        assert_eq!(page.contains("broken</a>"), is_listed, "{query}: {page}");
        assert!(!page.contains(HOSTILE), "{page}");
    }
    assert_eq!(user.get("/runs?job=none").status, 404);
}

#[test]
fn queue_shows_why_a_run_waits() {
    let server = Server::start(&[]);
    let user = Browser::local(&server);
    let job = json!({
        "name": "remote", "schedule_enabled": false, "executor_type": "noop", "pool": "elsewhere",
        "lane": "batch",
    });
    assert_eq!(create_from_json(&server, &job).code, 0);
    let page = wait_for("the waiting run", || {
        let page = user.get("/queue").body;
        page.contains("No live node serves its pool").then_some(page)
    });
    assert!(page.contains("remote") && page.contains("elsewhere"), "{page}");
    assert!(!user.get("/queue?lane=critical").body.contains("remote"));
}

#[test]
fn paused_job_is_listed_with_the_user_and_resumed() {
    let server = Server::start(&[]);
    create(&server, "hello");
    let user = Browser::local(&server);
    let token = user.form_token();
    assert_eq!(user.post("/ui/jobs/hello/pause", &[("token", &token)]).status, 303);
    let page = wait_for("the paused job", || {
        let page = user.get("/pauses").body;
        page.contains("1 paused job<").then_some(page)
    });
    let subject = server.json(&["audit", "--limit", "1"])["entries"][0]["subject"].clone();
    let subject = subject.as_str().unwrap();
    assert!(page.contains("hello") && page.contains(&format!("<td>{subject}</td>")), "{page}");
    let viewer = as_role(&server, "viewer").get("/pauses").body;
    assert!(viewer.contains("hello") && !viewer.contains("Resume"), "{viewer}");
    let resume = link(&page, "/ui/jobs/");
    assert_eq!(user.post(&resume, &[("token", &token)]).status, 303);
    assert_eq!(server.json(&["job", "show", "hello"])["is_paused"], false);
}

#[test]
fn bulk_command_counts_the_jobs_before_it_changes_them() {
    let server = Server::start(&[]);
    for name in ["news-a", "news-b", "other"] {
        create(&server, name);
    }
    let user = Browser::local(&server);
    let page = user.get("/jobs?name_prefix=news-&executor=noop&lane=standard").body;
    assert!(page.contains("2 jobs") && !page.contains("other</a>"), "{page}");
    let question = user.get("/job-commands?action=pause&name_prefix=news-").body;
    assert!(question.contains("Pause 2 jobs?"), "{question}");
    assert_eq!(server.json(&["job", "show", "news-a"])["is_paused"], false);
    let token = user.form_token();
    let fields = [("token", token.as_str()), ("action", "pause"), ("name_prefix", "news-")];
    assert_eq!(user.post("/ui/job-commands", &fields[1..]).status, 403);
    let done = user.post("/ui/job-commands", &fields);
    assert_eq!(done.header("location"), Some("/jobs?done=pause&count=2"), "{}", done.body);
    assert!(user.get("/jobs?done=pause&count=2").body.contains("Pause: 2 jobs."));
    for (name, is_paused) in [("news-a", true), ("news-b", true), ("other", false)] {
        assert_eq!(server.json(&["job", "show", name])["is_paused"], is_paused, "{name}");
    }
    let all = user.get("/job-commands?action=delete").body;
    assert!(all.contains("applies to all jobs"), "{all}");
    assert_eq!(user.get("/job-commands?action=explode").status, 404);
    assert_eq!(user.get("/job-commands?action=set_priority&priority=many").status, 422);
    let viewer = as_role(&server, "viewer");
    assert!(!viewer.get("/jobs").body.contains("Command for all jobs"));
    assert_eq!(viewer.get("/job-commands?action=pause").status, 403);
}

#[test]
fn audit_and_keys_are_for_administrators() {
    let server = Server::start(&[]);
    create(&server, "hello");
    let (user, operator) = (Browser::local(&server), as_role(&server, "operator"));
    for path in ["/audit", "/access"] {
        assert_eq!(operator.get(path).status, 403, "{path}");
    }
    let navigation = operator.get("/jobs").body;
    assert!(navigation.contains("/dead-letters") && !navigation.contains("/audit"), "{navigation}");
    let audit = user.get("/audit").body;
    assert!(audit.contains("create_job"), "{audit}");
    assert!(user.get("/audit?subject=nobody").body.contains("No entry matches."));
}

#[test]
fn new_key_is_shown_once_and_can_be_revoked() {
    let server = Server::start(&[]);
    let user = Browser::local(&server);
    let token = user.form_token();
    let fields = [("token", token.as_str()), ("name", "ci"), ("role", "viewer")];
    let made = user.post("/ui/api-keys", &fields).body;
    let (_, key) = made.split_once("<pre>").unwrap();
    let key = key.split_once("</pre>").unwrap().0;
    assert!(key.starts_with("ek_"), "{made}");
    let holder = Browser::signed_in(&server, key);
    assert_eq!(holder.get("/runs").status, 200);
    let list = user.get("/access").body;
    assert!(list.contains("ci") && !list.contains(key), "{list}");
    let question = link(&list, "/access/revoke/");
    let page = user.get(&question).body;
    assert!(page.contains("Revoke the key ci?"), "{page}");
    let revoke = link(&page, "/ui/api-keys/");
    assert_eq!(user.post(&revoke, &[]).status, 403);
    let done = user.post(&revoke, &[("token", &token), ("name", "ci")]);
    assert_eq!(done.header("location"), Some("/access?revoked=ci"), "{}", done.body);
    assert_eq!(holder.get("/runs").status, 303);
}

/// Triggers a job and waits until the run has ended. Returns the id of the run.
fn run_once(server: &Server, name: &str) -> String {
    let id = server.json(&["job", "trigger", name])["run_id"].as_str().unwrap().to_owned();
    wait_for("the end of the run", || {
        server.json(&["run", "show", &id])["completed_at"].is_string().then_some(())
    });
    id
}

#[test]
fn list_of_jobs_shows_the_last_ten_runs_of_each_job() {
    let server = Server::start(&["--enable-shell"]);
    let user = Browser::local(&server);
    for name in ["busy", "idle"] {
        create(&server, name);
    }
    let broken = json!({
        "name": "broken", "interval_minutes": 60, "executor_type": "shell", "max_retries": 0,
        "executor_config": {"argv": ["false"]},
    });
    assert_eq!(create_from_json(&server, &broken).code, 0);
    let ids: Vec<String> = (0..11).map(|_| run_once(&server, "busy")).collect();
    run_once(&server, "broken");
    let page = user.get("/jobs?sort=name").body;
    let rows: Vec<&str> = page.split("<tr>").skip(2).collect();
    assert_eq!(rows.len(), 3, "{page}");
    let [broken, busy, idle] = [rows[0], rows[1], rows[2]];
    assert!(busy.contains("aria-label=\"last 10 runs: 10 completed\""), "{busy}");
    let links: Vec<&str> =
        busy.split("href=\"/runs/").skip(1).map(|rest| rest.split_once('"').unwrap().0).collect();
    assert_eq!(links, ids[1..], "the newest run is the last, and the oldest run is left out");
    assert!(busy.contains("title=\"completed "), "{busy}");
    assert!(broken.contains("aria-label=\"last 1 run: 1 failed\""), "{broken}");
    assert!(broken.contains("class=\"bad\"") && broken.contains('✕'), "{broken}");
    assert!(!idle.contains("class=\"strip\"") && idle.contains("never ran"), "{idle}");
    let run = user.get(&format!("/runs/{}", links[9]));
    assert_eq!(run.status, 200, "{}", run.body);
}
