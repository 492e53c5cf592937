//! Commands that need no server.

use serde_json::json;

use crate::support::run;

#[test]
fn next_times_have_the_shape_of_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(
        folder.path(),
        &[
            "next",
            "@every 30m",
            "--from",
            "2026-12-01T10:00:00Z",
            "-n",
            "2",
            "--tz",
            "Asia/Tokyo",
            "--json",
        ],
    );
    assert_eq!(
        said.json()["times"],
        json!([
            {"utc": "2026-12-01T10:30:00.000000Z", "local": "2026-12-01T19:30:00.000000+09:00",
             "moved_by": null},
            {"utc": "2026-12-01T11:00:00.000000Z", "local": "2026-12-01T20:00:00.000000+09:00",
             "moved_by": null},
        ])
    );
    let said = run(folder.path(), &["next", "30m", "-n", "1"]);
    assert!(said.out.contains("in 30m"), "{}", said.out);
    for args in [&["next", "whenever"][..], &["next", "30m", "--tz", "Mars/Olympus"]] {
        let said = run(folder.path(), args);
        assert_eq!(said.code, 2, "{said:?}");
    }
}

#[test]
fn the_example_with_five_times_shows_all_five() {
    let folder = tempfile::tempdir().unwrap();
    let help = run(folder.path(), &["next", "--help"]).out;
    let example = help.lines().find(|line| line.contains("next R5/")).unwrap();
    let words: Vec<&str> = example.split_whitespace().skip(1).collect();
    let said = run(folder.path(), &words).json();
    assert_eq!(said["times"].as_array().unwrap().len(), 5, "{said}");
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
        let said = run(folder.path(), &["next", expression, "-n", "3", "--json"]).json();
        assert_eq!(said["times"].as_array().unwrap().len(), 3, "{expression}");
        assert!(said["description"].as_str().unwrap().ends_with('.'), "{expression}");
    }
    let berlin = ["next", "30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-28T12:00:00Z"];
    let said = run(folder.path(), &berlin);
    assert!(said.out.starts_with("At 02:30 every day, Europe/Berlin time."), "{}", said.out);
    assert!(said.out.contains("2026-03-29T03:00:00+02:00"), "{}", said.out);
    assert!(said.out.contains("daylight saving"), "{}", said.out);
    let skips = run(folder.path(), &[&berlin[..], &["--dst-gap", "skip"]].concat());
    assert!(!skips.out.contains("2026-03-29"), "{}", skips.out);
}

#[test]
fn a_fault_in_a_schedule_is_pointed_at() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(folder.path(), &["next", "0 9 * * 8"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("\n    0 9 * * 8\n            ^\n"), "{}", said.err);
    let said = run(folder.path(), &["job", "create", "--noop", "--cron", "0 25 * * *"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("\n    0 25 * * *\n      ^\n"), "{}", said.err);
}

#[test]
fn a_token_is_made_without_a_server_and_printed_alone() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(folder.path(), &["token", "create", "--role", "admin", "--ttl", "30d"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out.lines().count(), 1);
    assert_eq!(said.out.trim().split('.').count(), 3, "{}", said.out);
    let elsewhere = ["token", "create", "--role", "viewer", "--store", "sqlite:x.db", "--json"];
    assert!(run(folder.path(), &elsewhere).json()["token"].is_string());
    assert!(folder.path().join("x.db").exists());
    let said = run(folder.path(), &["token", "create", "--role", "king"]);
    assert_eq!(said.code, 2);
    let said = run(folder.path(), &["token", "create", "--role", "admin", "--ttl", "0s"]);
    assert_eq!(said.code, 2, "{said:?}");
}

#[test]
fn migrating_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let said = run(folder.path(), &["migrate"]);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.out.contains("evenkeel.db are up to date"), "{}", said.out);
    }
}

#[test]
fn completions_know_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let said = run(folder.path(), &["completions", shell]);
        assert!(said.code == 0 && said.out.contains("evenkeel"), "{shell}");
        assert!(!said.out.contains("__supervise"), "{shell}");
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
        let said = run(folder.path(), &[command, &["--help"]].concat());
        assert!(said.code == 0 && said.out.contains("Examples:"), "{command:?}");
    }
    assert_eq!(run(folder.path(), &[]).code, 2);
}
