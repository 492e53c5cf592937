//! `evenkeel distribution` and `evenkeel rebalance`.

use serde_json::json;

use crate::support::Server;

/// Starts a server whose jobs all run in the same time slot, and whose rebalances may move new jobs
/// at once.
fn clustered() -> Server {
    let server = Server::start(&["--balance-cooldown", "0s", "--balance-protection", "0s"]);
    // All jobs prefer to run between 03:00 and 03:15.
    let lines: String = (0..12)
        .map(|n| {
            let job = json!({"name": format!("job {n}"), "executor_type": "noop", "schedule": "24h",
                             "prefer_window": {"start": "03:00:00", "end": "03:15:00"}});
            format!("{job}\n")
        })
        .collect();
    std::fs::write(server.folder.path().join("jobs.ndjson"), lines).unwrap();
    assert_eq!(server.run(&["job", "create", "--file", "jobs.ndjson"]).code, 0);
    // Jobs without a preferred window keep their start times until a rebalance moves them.
    for n in 0..12 {
        let name = format!("job {n}");
        let result = server.run(&["job", "update", &name, "--set", "prefer_window=null"]);
        assert_eq!(result.code, 0, "{result:?}");
    }
    server
}

#[test]
fn distribution_is_drawn_and_printed_as_json() {
    let server = Server::start(&[]);
    let empty = server.run(&["distribution"]);
    assert!(empty.code == 0 && empty.out.contains("There are no scheduled jobs."), "{empty:?}");
    server.json(&["job", "create", "--name", "hourly", "--every", "1h", "--noop"]);
    let drawn = server.run(&["distribution"]);
    assert!(
        drawn.out.starts_with("1 job over the next 24 hours (UTC), by runs\nscore 1.00"),
        "{drawn:?}"
    );
    assert!(
        drawn.out.lines().filter(|line| line.contains('█') || line.contains('│')).count() >= 24
    );
    assert!(drawn.out.lines().all(|line| line.chars().count() <= 80), "{}", drawn.out);
    assert_eq!(server.json(&["distribution", "--by", "next"])["by"], "next");
    assert!(server.json(&["distribution", "--history"])["scores"].is_array());
    assert_eq!(server.run(&["distribution", "--by", "luck"]).code, 2);
    assert_eq!(server.run(&["distribution", "--from", "2026-12-01T00:00:00Z"]).code, 2);
}

#[test]
fn rebalance_moves_jobs_as_previewed_and_undoes_it() {
    let server = clustered();
    let before = server.json(&["distribution"])["distribution_score"].as_f64().unwrap();
    let shown = server.run(&["rebalance", "--preview"]);
    assert!(
        shown.out.contains("before: score") && shown.out.contains("rebalance --plan"),
        "{shown:?}"
    );
    let plan = server.json(&["rebalance", "--preview"]);
    assert!(plan["would_move"].as_u64().unwrap() > 5, "{plan}");
    let id = plan["plan_id"].as_str().unwrap();
    let refused = server.run(&["rebalance", "--plan", id]);
    assert!(refused.code == 2 && refused.err.contains("without a terminal"), "{refused:?}");
    let done = server.json(&["rebalance", "--plan", id, "--yes"]);
    assert_eq!((&done["state"], &done["moved_total"]), (&json!("done"), &plan["would_move"]));
    let after = server.json(&["distribution"])["distribution_score"].as_f64().unwrap();
    assert_eq!(json!(after), plan["projected_score"]);
    assert!(after > before);
    assert_eq!(server.run(&["rebalance", "--plan", id, "--yes"]).code, 4);
    let refused = server.run(&["rebalance", "--undo", id]);
    assert!(refused.code == 2 && refused.err.contains("without a terminal"), "{refused:?}");
    let result = server.run(&["rebalance", "--undo", id, "--yes"]);
    assert!(result.code == 0 && result.out.contains("back."), "{result:?}");
    assert_eq!(server.json(&["distribution"])["distribution_score"].as_f64(), Some(before));
    assert_eq!(server.run(&["rebalance", "--undo", id, "--yes"]).code, 4);
    let list = server.run(&["rebalance", "--list"]);
    assert!(list.out.contains("undone") && list.out.contains(id), "{list:?}");
    assert!(server.run(&["rebalance", "--show", id]).out.contains("Undone by"));
    let log = server.run(&["audit"]);
    assert!(log.out.contains("undo_rebalance"), "{log:?}");
}

#[test]
fn wrong_rebalance_arguments_are_refused_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["rebalance", "--preview", "--filter", "nme=x"][..],
        &["rebalance", "--preview", "--target-score", "2"],
        &["rebalance", "--preview", "--list"],
        &["rebalance", "--plan", "x", "--max-moves", "3"],
        &["rebalance"],
    ] {
        assert_eq!(crate::support::run(folder.path(), args).code, 2, "{args:?}");
    }
    let help = crate::support::run(folder.path(), &["rebalance", "--help"]);
    assert!(help.out.contains("evenkeel rebalance --undo"), "{help:?}");
}
