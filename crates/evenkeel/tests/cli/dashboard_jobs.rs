//! The dashboard's forms for jobs, and the pages of jobs and runs.

use serde_json::{Value, json};

use crate::dashboard::{Answer, Browser};
use crate::support::{Server, create_from_json};

const HOSTILE: &str = "<script>alert(1)</script>\"'&";

/// Returns a text as it appears in the body of a form.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Sends a form with its token.
fn send(user: &Browser<'_>, path: &str, fields: &[(&str, &str)]) -> Answer {
    let token = user.form_token();
    let encoded: Vec<(&str, String)> =
        fields.iter().map(|(name, value)| (*name, encoded(value))).collect();
    let mut fields: Vec<(&str, &str)> =
        encoded.iter().map(|(name, value)| (*name, value.as_str())).collect();
    fields.push(("token", &token));
    user.post(path, &fields)
}

fn create(server: &Server, name: &str) -> Value {
    create_from_json(
        server,
        &json!({"name": name, "schedule": {"kind": "interval", "every": "6h"},
                "executor_type": "noop", "metadata": {"owner": "ann"}}),
    )
    .json()
}

#[test]
fn job_form_creates_a_job() {
    let server = Server::start(&[]);
    let user = Browser::local(&server);
    assert!(user.get("/jobs/new").body.contains("formaction=\"/ui/jobs/preview\""));
    let fields = [
        ("name", "report"),
        ("schedule.kind", "cron"),
        ("schedule.value", "0 9 * * 1-5"),
        ("schedule.limit", "2h"),
        ("timezone", "Europe/Berlin"),
        ("executor_type", "http"),
        ("executor_config.url", "https://example.com/report"),
        ("executor_config.headers", r#"{"X-Team": "news"}"#),
        // A field of another executor is ignored.
        ("executor_config.depth", "4"),
        ("payload", r#"{"day": [1, 2]}"#),
        ("blackout_periods", "22:00-06:00\r\n12:00-13:00"),
        ("priority", "7"),
        ("lane", "batch"),
        ("overlap", ""),
    ];
    let preview = send(&user, "/ui/jobs/preview", &fields);
    assert_eq!(preview.status, 200, "{}", preview.body);
    assert!(preview.body.contains("The next 10 times in Europe/Berlin"), "{}", preview.body);
    assert!(preview.body.contains("value=\"0 9 * * 1-5\""), "{}", preview.body);
    assert_eq!(server.json(&["job", "list"])["total"], 0);
    let saved = send(&user, "/ui/jobs/save", &fields);
    assert_eq!(saved.status, 303, "{}", saved.body);
    let page = user.get(saved.header("location").unwrap()).body;
    assert!(page.contains("The job is created."), "{page}");
    let job = server.json(&["job", "show", "report"]);
    let schedule = json!({"kind": "cron", "expression": "0 9 * * 1-5", "max_duration": "2h"});
    assert_eq!(job["schedule"], schedule);
    let config = json!({"url": "https://example.com/report", "headers": {"X-Team": "news"}});
    assert_eq!(job["executor_config"], config);
    assert_eq!(job["payload"], json!({"day": [1, 2]}));
    assert_eq!((&job["priority"], &job["lane"]), (&json!(7), &json!("batch")));
    assert_eq!(job["blackout_periods"].as_array().unwrap().len(), 2);
}

#[test]
fn job_form_shows_each_problem_at_its_field() {
    let server = Server::start(&[]);
    let user = Browser::local(&server);
    let fields = [
        ("name", HOSTILE),
        ("schedule.kind", "interval"),
        ("schedule.value", "6"),
        ("executor_type", "http"),
        ("executor_config.url", "ftp://example.com"),
        ("blackout_periods", "25:00-06:00"),
    ];
    let refused = send(&user, "/ui/jobs/save", &fields);
    assert_eq!(refused.status, 422, "{}", refused.body);
    for (field, message) in [
        ("schedule.value", "the number needs a unit"),
        ("executor_config.url", "must start with http:// or https://"),
        ("blackout_periods", "is not a time of day"),
    ] {
        let (_, rest) = refused.body.split_once(&format!("id=\"{field}-help\"")).unwrap();
        let (help, _) = rest.split_once("</small>").unwrap();
        assert!(help.contains(message), "{field}: {help}");
    }
    assert!(!refused.body.contains("<script>"), "{}", refused.body);
    for (field, value) in [("payload", "{"), ("priority", "high"), ("blackout_periods", "noon")] {
        let refused = send(&user, "/ui/jobs/preview", &[("name", "a"), (field, value)]);
        assert_eq!(refused.status, 422, "{field}");
        assert!(refused.body.contains("field-error"), "{field}: {}", refused.body);
    }
    assert_eq!(server.json(&["job", "list"])["total"], 0);
}

#[test]
fn job_preview_marks_daylight_saving_and_tells_the_placement() {
    let server = Server::start(&[]);
    let user = Browser::local(&server);
    // At least one of ten monthly times follows a change of the clocks.
    let document = json!({"schedule": "30 2 1 * *", "timezone": "Europe/Berlin"}).to_string();
    let preview = send(&user, "/ui/jobs/preview", &[("as", "json"), ("json", &document)]);
    assert_eq!(preview.status, 200, "{}", preview.body);
    assert!(preview.body.contains("the clocks change before this time"), "{}", preview.body);
    let interval = [("schedule.kind", "interval"), ("schedule.value", "6h")];
    let preview = send(&user, "/ui/jobs/preview", &interval).body;
    assert!(preview.contains("Time slots with the fewest runs until then"), "{preview}");
}

#[test]
fn job_edit_lists_what_changes_and_keeps_the_rest() {
    let server = Server::start(&[]);
    let job = create(&server, "report");
    let (id, user) = (job["id"].as_str().unwrap(), Browser::local(&server));
    let form = user.get("/jobs/report/edit").body;
    assert!(form.contains("name=\"schedule.value\" value=\"6h\""), "{form}");
    let generation = job["generation"].to_string();
    let fields = [("id", id), ("generation", &generation), ("priority", "9")];
    let preview = send(&user, "/ui/jobs/preview", &fields).body;
    let change = "<code>priority</code></th><td><code>0</code></td><td><code>9</code></td>";
    assert!(preview.contains(change), "{preview}");
    let saved = send(&user, "/ui/jobs/save", &fields);
    assert_eq!(saved.status, 303, "{}", saved.body);
    let edited = server.json(&["job", "show", id]);
    assert_eq!(edited["priority"], 9);
    for field in ["name", "schedule", "next_run_at", "metadata", "executor_config"] {
        assert_eq!(edited[field], job[field], "{field}");
    }
    // The job has changed since the form was shown.
    let refused = send(&user, "/ui/jobs/save", &[fields[0], fields[1], ("priority", "3")]);
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(refused.body.contains("role=\"alert\""), "{}", refused.body);
    assert_eq!(server.json(&["job", "show", id])["priority"], 9);
}

#[test]
fn job_is_edited_as_json() {
    let server = Server::start(&[]);
    let job = create(&server, "report");
    let (id, user) = (job["id"].as_str().unwrap(), Browser::local(&server));
    let page = user.get("/jobs/report/edit?as=json").body;
    assert!(page.contains("&quot;every&quot;: &quot;6h&quot;"), "{page}");
    let generation = job["generation"].to_string();
    let json = json!({"name": "report", "description": HOSTILE, "metadata": {}}).to_string();
    let fields = [("as", "json"), ("id", id), ("generation", generation.as_str()), ("json", &json)];
    let preview = send(&user, "/ui/jobs/preview", &fields).body;
    assert!(preview.contains("<code>metadata</code>"), "{preview}");
    assert!(!preview.contains("<code>name</code>"), "{preview}");
    assert!(!preview.contains("<script>"), "{preview}");
    let saved = send(&user, "/ui/jobs/save", &fields);
    assert_eq!(saved.status, 303, "{}", saved.body);
    let edited = server.json(&["job", "show", id]);
    assert_eq!((&edited["description"], &edited["metadata"]), (&json!(HOSTILE), &json!({})));
    let refused = send(&user, "/ui/jobs/save", &[fields[0], fields[1], ("json", "{")]);
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("The text is not JSON"), "{}", refused.body);
}

#[test]
fn job_page_shows_runs_and_asks_before_it_deletes() {
    let server = Server::start(&["--enable-shell"]);
    let script = format!("echo '{}'; exit 3", "<script>alert(1)</script>");
    let job = create_from_json(
        &server,
        &json!({"name": HOSTILE, "schedule_enabled": false, "executor_type": "shell",
                "max_retries": 0, "payload": {"text": HOSTILE},
                "executor_config": {"argv": ["sh", "-c", script]}}),
    )
    .json();
    let id = job["id"].as_str().unwrap();
    let execution = server.wait_for_run(id, "failed");
    let user = Browser::local(&server);
    let page = user.get(&format!("/jobs/{id}")).body;
    for content in [
        "Why did it not run at", "class=\"strip\"", "Durations of the last 1 ended run",
        "Deadline promise", "Cadence",
    ] {
        assert!(page.contains(content), "{content}: {page}");
    }
    let run_page = user.get(&format!("/runs/{}", execution["id"].as_str().unwrap())).body;
    for content in ["Attempts", "Output", "Log", "Payload", ">Retry<", "&lt;script&gt;alert(1)"] {
        assert!(run_page.contains(content), "{content}: {run_page}");
    }
    for page in [&page, &run_page] {
        assert!(!page.contains("<script>"), "{page}");
    }
    let confirm = user.get(&format!("/jobs/{id}/confirm/delete"));
    assert!(
        confirm.body.contains("This can&apos;t be undone")
            || confirm.body.contains("This can't be undone")
    );
    assert!(!confirm.body.contains("<script>"), "{}", confirm.body);
    assert_eq!(send(&user, &format!("/ui/jobs/{id}/delete"), &[]).status, 303);
    assert_eq!(user.get(&format!("/jobs/{id}")).status, 404);
}

#[test]
fn waiting_run_is_cancelled_from_its_page() {
    let server = Server::start(&[]);
    let job = json!({"name": "slow", "schedule_enabled": false, "executor_type": "noop",
                     "executor_config": {"sleep_ms": 600_000}});
    assert_eq!(create_from_json(&server, &job).code, 0);
    let run = server.wait_for_run("slow", "running");
    let (user, id) = (Browser::local(&server), run["id"].as_str().unwrap());
    assert!(user.get(&format!("/runs/{id}")).body.contains(">Cancel<"));
    assert_eq!(send(&user, &format!("/ui/runs/{id}/cancel"), &[]).status, 303);
    server.wait_for_run("slow", "cancelled");
}

#[test]
fn viewer_can_not_open_the_job_form() {
    let server = Server::start(&[]);
    create(&server, "report");
    let token = server.run(&["token", "create", "--role", "viewer"]).out;
    let viewer = Browser::signed_in(&server, token.trim());
    for path in ["/jobs/new", "/jobs/report/edit"] {
        assert_eq!(viewer.get(path).status, 403, "{path}");
    }
    assert!(!viewer.get("/jobs/report").body.contains("Delete job"));
    let fields = [("name", "a"), ("schedule.value", "1h"), ("executor_type", "noop")];
    assert_eq!(send(&viewer, "/ui/jobs/save", &fields).status, 403);
}
