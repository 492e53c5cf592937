//! The dashboard's timeline: past and expected runs on one axis.

use evenkeel_core::{Span, Timestamp};
use serde_json::{Value, json};

use crate::dashboard::Browser;
use crate::support::{Server, create_from_json, request, wait_for};

const HOSTILE: &str = "<script>alert(1)</script>";

fn create(server: &Server, name: &str, every: &str) {
    let create = ["job", "create", "--name", name, "--every", every, "--noop"];
    assert_eq!(server.run(&create).code, 0);
}

fn timeline(server: &Server, query: &str) -> Value {
    let path = format!("/api/v1/timeline?{query}");
    let (status, body) = request(&server.url(), "GET", &path, &server.header(), "");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Returns the addresses in a page that start with this text.
fn links(page: &str, start: &str) -> Vec<String> {
    let addresses = page.split("href=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    let addresses = addresses.map(|(address, _)| address.replace("&amp;", "&"));
    addresses.filter(|address| address.starts_with(start)).collect()
}

/// Returns the labels of the axis.
fn ticks(page: &str) -> Vec<String> {
    let labels = page.split("<text class=\"time\"").skip(1);
    let labels = labels.map(|rest| rest.split_once('>').unwrap().1.split_once('<').unwrap().0);
    labels.map(str::to_owned).collect()
}

#[test]
fn timeline_links_past_runs_and_the_jobs_of_expected_runs() {
    let server = Server::start(&["--enable-shell"]);
    let soon: Timestamp = timeline(&server, "")["as_of"].as_str().unwrap().parse().unwrap();
    let soon = soon.saturating_add(Span::from_secs(600));
    let hello =
        json!({"name": "hello", "executor_type": "noop", "schedule": "20m", "start_at": soon});
    assert_eq!(create_from_json(&server, &hello).code, 0);
    let job = json!({
        "name": HOSTILE, "schedule_enabled": false, "executor_type": "shell", "max_retries": 0,
        "executor_config": {"argv": ["sh", "-c", "exit 3"]},
    });
    assert_eq!(create_from_json(&server, &job).code, 0);
    let failed = server.wait_for_run(HOSTILE, "failed");
    let user = Browser::local(&server);
    let page = user.get("/timeline").body;
    let run = format!("/runs/{}", failed["id"].as_str().unwrap());
    assert!(links(&page, "/runs/").contains(&run), "{page}");
    let hello = server.json(&["job", "show", "hello"])["id"].as_str().unwrap().to_owned();
    assert!(links(&page, "/jobs/").contains(&format!("/jobs/{hello}")), "{page}");
    for text in [
        "1 past run, of which <strong>1 failed</strong>; 0 active runs; 3 expected runs",
        "hello: expected, ",
        ": failed, ",
        "href=\"#mark-failed\"",
        "href=\"#mark-expected\"",
        "expected, the start is an estimate",
        "The same runs as a table",
        ">now</text>",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains(HOSTILE), "{page}");
    let of_job = user.get(&format!("/timeline?job={hello}")).body;
    assert!(of_job.contains("Runs of the job") && !of_job.contains(&run), "{of_job}");
    assert!(user.get("/timeline?by=pool").body.contains("<li>default</li>"));
    assert!(user.get("/timeline?by=node").body.contains("no node yet"));
    assert_eq!(Browser::new(&server).get("/timeline").status, 303);
    assert!(user.get("/jobs/hello").body.contains(&format!("/timeline?job={hello}")));
    assert!(user.get("/nodes").body.contains("/timeline?by=node"));
}

#[test]
fn links_lead_to_other_periods_with_absolute_times() {
    let server = Server::start(&[]);
    let user = Browser::local(&server);
    let period = |from: &str, to: &str| {
        let time = |time: &str| format!("2026-11-18T{}Z", time.replace(':', "%3A"));
        format!("/timeline?from={}&to={}", time(from), time(to))
    };
    let page = user.get(&period("09:00:00", "11:00:00")).body;
    let found = links(&page, "/timeline?from=");
    for (from, to) in [
        ("07:00:00", "09:00:00"),
        ("11:00:00", "13:00:00"),
        ("09:30:00", "10:30:00"),
        ("08:00:00", "12:00:00"),
    ] {
        assert!(found.contains(&format!("{}&by=job", period(from, to))), "{from}: {found:?}");
    }
    assert!(found.contains(&format!("{}&by=node", period("09:00:00", "11:00:00"))), "{found:?}");
    assert!(page.contains("No run in this period") && page.contains("/jobs/new"), "{page}");
    // Typed times get their zone in the address.
    let typed = user.get("/timeline?from=2026-11-18%2009:00&to=2026-11-18%2011:00&by=pool");
    let target = format!("{}&by=pool", period("09:00:00", "11:00:00"));
    assert_eq!(typed.header("location"), Some(target.as_str()));
    for (query, text) in [
        ("?from=yesterday", "is not a time"),
        ("?from=2026-11-18T09:00:00Z&to=2026-11-17T09:00:00Z", "is not after from"),
        ("?from=2026-11-18T09:00:00Z&to=2026-11-28T09:00:00Z", "at most 7 days"),
        ("?by=colour", "is not one of job, pool, node"),
    ] {
        let refused = user.get(&format!("/timeline{query}"));
        assert!(refused.status == 422 && refused.body.contains(text), "{query}: {}", refused.body);
        assert!(refused.body.contains("role=\"alert\"") && refused.body.contains("name=\"from\""));
    }
    let unknown = user.get("/timeline?job=none");
    assert!(unknown.status == 404 && unknown.body.contains("role=\"alert\""), "{}", unknown.body);
}

#[test]
fn axis_is_in_the_zone_of_the_page() {
    let server = Server::start(&[]);
    create(&server, "hello", "20m");
    let user = Browser::local(&server);
    // A future period of a job that always has a run.
    let from = timeline(&server, "")["to"].as_str().unwrap()[..13].to_owned();
    let hour: u32 = from[11..].parse().unwrap();
    let path = format!("/timeline?from={from}:00:00Z&tz=");
    let utc = ticks(&user.get(&format!("{path}UTC")).body);
    assert_eq!(utc[0], format!("{hour:02}:00 UTC"), "{utc:?}");
    let page = user.get(&format!("{path}Asia/Kolkata")).body;
    assert_eq!(ticks(&page)[0], format!("{:02}:30 IST", (hour + 5) % 24), "{page}");
    assert!(page.contains("Asia/Kolkata (UTC+05:30)"), "{page}");
    assert!(links(&page, "/timeline?from=").iter().all(|link| link.ends_with("tz=Asia%2FKolkata")));
}

#[test]
fn period_with_too_many_runs_shows_bars() {
    let server = Server::start(&[]);
    create(&server, "often", "1s");
    let user = Browser::local(&server);
    wait_for("the activity of a run", || {
        let found = timeline(&server, "");
        assert_eq!(found["shows"], "density");
        let steps = found["density"].as_array().unwrap();
        steps.iter().any(|step| step["past"]["completed"].as_u64() > Some(0)).then_some(())
    });
    let page = user.get("/timeline").body;
    assert!(page.contains("too many runs to show each of them"), "{page}");
    assert!(page.contains("in steps of 15 min") && !page.contains("href=\"#mark-"), "{page}");
    assert!(page.contains(" completed, 0 failed or timed out, 0 cancelled, "), "{page}");
    // A bar leads to its own step.
    let steps = links(&page, "/timeline?from=");
    let step = steps
        .iter()
        .find(|link| link.contains("%3A15%3A00Z&to=") && link.contains("%3A30%3A00Z&by"));
    assert!(step.is_some(), "{steps:?}");
    let of_job = user.get("/timeline?job=often").body;
    assert!(of_job.contains("in steps of 60 s"), "{of_job}");
}

#[test]
fn lanes_and_rows_are_shown_in_parts() {
    let server = Server::start(&[]);
    let jobs: Vec<Value> = (0..45)
        .map(|n| json!({"name": format!("job-{n:02}"), "executor_type": "noop", "schedule": "20m"}))
        .collect();
    let jobs = json!({"jobs": jobs}).to_string();
    let created = request(&server.url(), "POST", "/api/v1/jobs/bulk", &server.header(), &jobs);
    assert!(created.0 < 300, "{}", created.1);
    let user = Browser::local(&server);
    let period = timeline(&server, "")["to"].as_str().unwrap().to_owned();
    let page = user.get(&format!("/timeline?from={period}")).body;
    assert!(page.contains("Shown are the lanes 1 to 40 of 45"), "{page}");
    assert!(page.contains(">job-39</a>") && !page.contains("job-40"), "{page}");
    let next =
        links(&page, "/timeline?").into_iter().find(|link| link.contains("lanes=40")).unwrap();
    let rest = user.get(&next).body;
    assert!(rest.contains("Shown are the lanes 41 to 45 of 45"), "{rest}");
    assert!(!rest.contains(">job-39</a>") && rest.contains(">job-40</a>"), "{rest}");
    // Each job has 6 runs in two hours.
    assert!(page.contains("Shown are the runs 1 to 100 of 240"), "{page}");
    let rows =
        links(&page, "/timeline?").into_iter().find(|link| link.contains("rows=100")).unwrap();
    let rows = user.get(&rows).body;
    assert!(rows.contains("Shown are the runs 101 to 200 of 240"), "{rows}");
    assert!(rows.contains("<details open>"), "{rows}");
}
