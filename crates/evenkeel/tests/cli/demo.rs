//! `evenkeel serve --demo`.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::import::{elsewhere, postgres_url};
use crate::support::{Server, request, run, wait_for};

fn get(server: &Server, path: &str) -> Value {
    let (status, body) = request(&server.url(), "GET", path, &server.header(), "");
    assert_eq!(status, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

fn total(server: &Server, path: &str) -> u64 {
    get(server, path)["total"].as_u64().unwrap()
}

fn jobs(server: &Server) -> u64 {
    total(server, "/api/v1/jobs?limit=1")
}

/// Returns the items of a list as soon as it has enough of them.
fn wait_for_items(server: &Server, path: &str, list: &str, enough: usize) -> Vec<Value> {
    wait_for(&format!("{enough} {list} in {path}"), || {
        let found = get(server, path)[list].as_array().unwrap().clone();
        (found.len() >= enough).then_some(found)
    })
}

fn names(items: &[Value]) -> Vec<&str> {
    items.iter().filter_map(|item| item["name"].as_str()).collect()
}

#[test]
fn demo_has_uneven_load_that_a_rebalance_evens_out() {
    let server = Server::start(&["--demo"]);
    assert_eq!(jobs(&server), 500);
    let distribution = get(&server, "/api/v1/scheduler/distribution");
    let score = distribution["distribution_score"].as_f64().unwrap();
    assert!(score < 0.7, "{distribution}");
    // A rebalance does not move jobs that run just now.
    wait_for("a plan that moves 200 jobs", || {
        let plan = server.json(&["rebalance", "--preview"]);
        (plan["would_move"].as_u64().unwrap() >= 200).then_some(())
    });
    let history = get(&server, "/api/v1/scheduler/distribution/history");
    let scores = history["scores"].as_array().unwrap();
    assert!(scores.len() >= 150, "{} scores", scores.len());
    let first = scores[0]["distribution_score"].as_f64().unwrap();
    assert!(first > score, "{first} before {score}: the load was more even a week ago");
}

#[test]
fn demo_has_a_past_and_shows_what_can_go_wrong() {
    let server = Server::start(&["--demo"]);
    let scores = get(&server, "/api/v1/scheduler/distribution/history?limit=1");
    let period = ["--from", scores["from"].as_str().unwrap(), "--step", "1d"];
    let activity = server.json(&[&["activity"], &period[..]].concat());
    let days = activity["slots"].as_array().unwrap();
    assert!(days.len() >= 7, "{activity}");
    // The first and the last day are not complete.
    for day in &days[1..days.len() - 1] {
        let lateness = day["lateness"]["count"].as_u64().unwrap();
        assert!(lateness > 500 && day["failed"].as_u64() > Some(5), "{day}");
    }
    assert!(total(&server, "/api/v1/executions?limit=1") > 3_000);
    let failures = wait_for_items(&server, "/api/v1/failures", "failures", 5);
    assert!(failures.iter().all(|group| group["job_name"].is_string()), "{failures:?}");
    let letters = wait_for_items(&server, "/api/v1/dead-letters", "dead_letters", 2);
    assert_eq!(letters[0]["job_name"], "push-marketplace-orders", "{letters:?}");
    // The condition of a job is known soon after the start, and the scheduler pauses the job that
    // has failed too often.
    let late = wait_for_items(&server, "/api/v1/conditions?condition=ERROR", "jobs", 3);
    assert!(names(&late).contains(&"train-recommendations"), "{late:?}");
    let at_risk = wait_for_items(&server, "/api/v1/conditions?condition=WARNING", "jobs", 1);
    assert!(names(&at_risk).contains(&"report-cash-flow"), "{at_risk:?}");
    let paused = wait_for_items(&server, "/api/v1/jobs?status=paused", "jobs", 2);
    assert!(names(&paused).contains(&"import-legacy-catalog"), "{paused:?}");
    wait_for_items(&server, "/api/v1/jobs?status=pending", "jobs", 3);
    let run = server.wait_for_run("rebuild-product-search", "running");
    let path = format!("/api/v1/executions/{}", run["id"].as_str().unwrap());
    wait_for("progress of a running job", || {
        get(&server, &path)["progress"]["done"].as_u64().filter(|done| *done > 0)
    });
    assert_eq!(total(&server, "/api/v1/targets?limit=1"), 60);
    assert!(total(&server, "/api/v1/pages?limit=1") > 0);
}

#[test]
fn demo_fills_a_store_once_and_one_command_removes_its_jobs() {
    let mut server = Server::start(&["--demo"]);
    assert_eq!(server.run(&["job", "delete", "check-login"]).code, 0);
    stop(&mut server);
    server.restart();
    assert_eq!(jobs(&server), 499, "a restart creates no job");

    let log = server.log();
    let line = log.lines().map(str::trim).find(|line| line.contains("job delete")).unwrap();
    let (_, command) = line.split_once(" job delete").unwrap();
    let command: Vec<&str> = ["job", "delete"].into_iter().chain(command.split(' ')).collect();
    let command: Vec<&str> = command.into_iter().filter(|word| !word.is_empty()).collect();
    let result = server.run(&command);
    assert_eq!(result.code, 0, "{result:?}");
    assert!(result.out.contains("499 of 499"), "{result:?}");
    for path in ["/api/v1/jobs", "/api/v1/jobs?status=paused", "/api/v1/conditions"] {
        wait_for(&format!("an empty list {path}"), || {
            get(&server, path)["jobs"].as_array().unwrap().is_empty().then_some(())
        });
    }

    stop(&mut server);
    server.restart();
    assert_eq!(jobs(&server), 0, "removed samples are not created again");
    let document = json!({"name": "own", "schedule": "1h", "executor_type": "noop"});
    assert_eq!(crate::support::create_from_json(&server, &document).code, 0);
    stop(&mut server);
    let refused = run(server.folder.path(), &["serve", "--demo", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let (needs, way_out) = ("--demo needs an empty store", "--data-dir demo-data");
    assert!(refused.err.contains(needs) && refused.err.contains(way_out), "{refused:?}");
}

#[test]
fn demo_fills_an_empty_database_on_which_no_other_node_runs() {
    let (url, name) = (postgres_url(), format!("demo_{}", std::process::id()));
    let store = elsewhere(&url, None, &name);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let execute = |sql: String| {
        runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            client.batch_execute(&sql).await.unwrap();
        });
    };
    execute(format!("CREATE DATABASE {name}"));
    let mut server = Server::start(&["--store", &store]);
    let other = tempfile::tempdir().unwrap();
    let words = ["serve", "--demo", "--listen", "127.0.0.1:0", "--store", &store];
    let refused = run(other.path(), &words);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("runs on it"), "{refused:?}");
    stop(&mut server);
    server.restart_with(&["--demo", "--store", &store]);
    assert_eq!(jobs(&server), 500);
    let distribution = get(&server, "/api/v1/scheduler/distribution");
    assert!(distribution["distribution_score"].as_f64().unwrap() < 0.7, "{distribution}");
    wait_for_items(&server, "/api/v1/conditions?condition=ERROR", "jobs", 3);
    wait_for_items(&server, "/api/v1/dead-letters", "dead_letters", 2);
    stop(&mut server);
    execute(format!("DROP DATABASE {name}"));
}

fn stop(server: &mut Server) {
    server.signal(Signal::TERM);
    server.wait_for_exit();
}
