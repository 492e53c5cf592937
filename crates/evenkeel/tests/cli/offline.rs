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
        said.json(),
        json!({"times": [
            {"utc": "2026-12-01T10:30:00.000000Z", "local": "2026-12-01T19:30:00.000000+09:00",
             "moved_by": null},
            {"utc": "2026-12-01T11:00:00.000000Z", "local": "2026-12-01T20:00:00.000000+09:00",
             "moved_by": null},
        ]})
    );
    let said = run(folder.path(), &["next", "30m", "-n", "1"]);
    assert!(said.out.contains("in 30m"), "{}", said.out);
    for args in [&["next", "whenever"][..], &["next", "30m", "--tz", "Mars/Olympus"]] {
        let said = run(folder.path(), args);
        assert_eq!(said.code, 2, "{said:?}");
    }
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
