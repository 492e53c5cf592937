//! `evenkeel activity`.

use crate::support::{Server, wait_for};

#[test]
fn activity_shows_finished_runs() {
    let server = Server::start(&[]);
    let empty = server.run(&["activity"]);
    assert!(empty.code == 0 && empty.out.contains("Nothing ran"), "{empty:?}");
    server.json(&["job", "create", "--name", "often", "--every", "1s", "--noop"]);
    let counted = wait_for("the first report of the node", || {
        let found = server.json(&["activity"]);
        (found["totals"]["completed"].as_u64()? > 0).then_some(found)
    });
    assert_eq!(counted["slots"].as_array().unwrap().len(), 96);
    assert!(counted["totals"]["fired"].as_u64() >= counted["totals"]["completed"].as_u64());
    let drawn = server.run(&["activity", "--step", "1h"]);
    assert!(drawn.code == 0 && drawn.out.contains('█'), "{drawn:?}");
    assert!(drawn.out.lines().all(|line| line.chars().count() <= 80), "{}", drawn.out);
}

#[test]
fn activity_says_which_step_a_long_period_needs() {
    let server = Server::start(&[]);
    let period = ["--from", "2026-06-01T00:00:00Z", "--until", "2026-07-01T00:00:00Z"];
    let refused = server.run(&[&["activity"], &period[..]].concat());
    assert!(refused.code == 1 && refused.err.contains("use step=1h"), "{refused:?}");
    let days = server.json(&[&["activity", "--step", "1d"], &period[..]].concat());
    assert_eq!(days["slots"].as_array().unwrap().len(), 30);
    assert_eq!(server.run(&["activity", "--step", "5m"]).code, 2);
}
