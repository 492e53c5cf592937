//! Commands that need no server.

use serde_json::json;

use crate::support::run;

#[test]
fn next_times_match_the_documented_fields() {
    let folder = tempfile::tempdir().unwrap();
    let result = run(
        folder.path(),
        &[
            "next", "@every 30m", "--from", "2026-12-01T10:00:00Z", "-n", "2", "--tz",
            "Asia/Tokyo", "--json",
        ],
    );
    assert_eq!(
        result.json()["times"],
        json!([
            {"utc": "2026-12-01T10:30:00.000000Z", "local": "2026-12-01T19:30:00.000000+09:00",
             "moved_by": null},
            {"utc": "2026-12-01T11:00:00.000000Z", "local": "2026-12-01T20:00:00.000000+09:00",
             "moved_by": null},
        ])
    );
    let result = run(folder.path(), &["next", "30m", "-n", "1"]);
    assert!(result.out.contains("in 30m"), "{}", result.out);
    for args in [&["next", "whenever"][..], &["next", "30m", "--tz", "Mars/Olympus"]] {
        let result = run(folder.path(), args);
        assert_eq!(result.code, 2, "{result:?}");
    }
}

#[test]
fn schedule_with_five_times_shows_all_five() {
    let folder = tempfile::tempdir().unwrap();
    let help = run(folder.path(), &["next", "--help"]).out;
    let example = help.lines().find(|line| line.contains("next R5/")).unwrap();
    let arguments: Vec<&str> = example.split_whitespace().skip(1).collect();
    let result = run(folder.path(), &arguments).json();
    assert_eq!(result["times"].as_array().unwrap().len(), 5, "{result}");
}

#[test]
fn every_form_of_a_schedule_has_next_times() {
    let folder = tempfile::tempdir().unwrap();
    for expression in [
        "0 9 * * 1-5",
        "30 0 9 * * *",
        "@daily",
        "@every 30m",
        "30m",
        "PT30M",
        "P1M",
        "R/2026-12-01T00:00:00Z/PT30M",
        "R5/PT30M",
        "{\"kind\": \"periodic\", \"period\": \"24h\"}",
    ] {
        let result = run(folder.path(), &["next", expression, "-n", "3", "--json"]).json();
        assert_eq!(result["times"].as_array().unwrap().len(), 3, "{expression}");
        assert!(result["description"].as_str().unwrap().ends_with('.'), "{expression}");
    }
    let berlin = ["next", "30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-28T12:00:00Z"];
    let result = run(folder.path(), &berlin);
    assert!(result.out.starts_with("At 02:30 every day, Europe/Berlin time."), "{}", result.out);
    assert!(result.out.contains("2026-03-29T03:00:00+02:00"), "{}", result.out);
    assert!(result.out.contains("daylight saving"), "{}", result.out);
    let skips = run(folder.path(), &[&berlin[..], &["--dst-gap", "skip"]].concat());
    assert!(!skips.out.contains("2026-03-29"), "{}", skips.out);
}

#[test]
fn error_in_a_schedule_is_marked_with_a_caret() {
    let folder = tempfile::tempdir().unwrap();
    let result = run(folder.path(), &["next", "0 9 * * 8"]);
    assert_eq!(result.code, 2);
    assert!(result.err.contains("\n    0 9 * * 8\n            ^\n"), "{}", result.err);
    let result = run(folder.path(), &["job", "create", "--noop", "--cron", "0 25 * * *"]);
    assert_eq!(result.code, 2);
    assert!(result.err.contains("\n    0 25 * * *\n      ^\n"), "{}", result.err);
}

#[test]
fn token_is_created_without_a_server_and_printed_alone() {
    let folder = tempfile::tempdir().unwrap();
    let result = run(folder.path(), &["token", "create", "--role", "admin", "--ttl", "30d"]);
    assert_eq!(result.code, 0, "{result:?}");
    assert_eq!(result.out.lines().count(), 1);
    assert_eq!(result.out.trim().split('.').count(), 3, "{}", result.out);
    let elsewhere = ["token", "create", "--role", "viewer", "--store", "sqlite:x.db", "--json"];
    assert!(run(folder.path(), &elsewhere).json()["token"].is_string());
    assert!(folder.path().join("x.db").exists());
    let result = run(folder.path(), &["token", "create", "--role", "king"]);
    assert_eq!(result.code, 2);
    let result = run(folder.path(), &["token", "create", "--role", "admin", "--ttl", "0s"]);
    assert_eq!(result.code, 2, "{result:?}");
}

#[test]
fn migrate_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let result = run(folder.path(), &["migrate"]);
        assert_eq!(result.code, 0, "{result:?}");
        assert!(result.out.contains("evenkeel.db are up to date"), "{}", result.out);
    }
}

#[test]
fn completions_contain_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let result = run(folder.path(), &["completions", shell]);
        assert!(result.code == 0 && result.out.contains("evenkeel"), "{shell}");
        assert!(!result.out.contains("__supervise"), "{shell}");
    }
}

#[test]
fn help_has_examples_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for command in [
        &["serve"][..],
        &["job", "create"],
        &["job", "list"],
        &["job", "show"],
        &["job", "explain"],
        &["job", "conditions"],
        &["job", "trigger"],
        &["job", "delete"],
        &["run", "list"],
        &["run", "show"],
        &["next"],
        &["token", "create"],
        &["migrate"],
        &["completions"],
    ] {
        let result = run(folder.path(), &[command, &["--help"]].concat());
        assert!(result.code == 0 && result.out.contains("Examples:"), "{command:?}");
    }
    assert_eq!(run(folder.path(), &[]).code, 2);
}

#[test]
fn bench_restart_measures_a_server_that_fires() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["bench", "restart", "--jobs", "500", "--rate", "50", "--seconds", "3", "--json"];
    let report = run(folder.path(), &args).json();
    assert_eq!((report["jobs"].as_u64(), report["rate"].as_u64()), (Some(500), Some(50)));
    assert!(report["firings"].as_u64().unwrap() > 0, "{report}");
    assert!(report["first_start_s"].as_f64().unwrap() > 0.0, "{report}");
    let memory = |name: &str| report[name].as_f64().unwrap();
    assert!(0.0 < memory("memory_mb") && memory("memory_mb") < memory("rss_mb"), "{report}");
    assert!(memory("rss_mb") <= memory("peak_rss_mb"), "{report}");
}
