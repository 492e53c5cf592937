//! Jobs that run programs.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::{Value, json};

use crate::database::Database;
use crate::on_both_stores;
use crate::support::{Server, create_from_json, wait_for};

on_both_stores!(
    program_reports_progress_and_results,
    exit_codes_have_the_documented_outcomes,
    silent_program_times_out,
    run_watch_follows_retries,
    cancelled_program_is_killed_with_all_its_children,
    killed_server_leaves_no_processes_and_the_next_attempt_resumes,
);

/// Flags that let programs write to the server's folder. Programs write their process ids to the
/// server's folder, so that the tests can find the processes.
pub const ENABLED: [&str; 2] = ["--enable-shell", "--shell-unconfined"];

fn create(server: &Server, script: &str, more: &Value) {
    let mut job = json!({
        "name": "script", "executor_type": "shell", "max_retries": 0,
        "executor_config": {"argv": ["sh", "-c", script], "cwd": server.folder.path()},
    });
    job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let result = create_from_json(server, &job);
    assert_eq!(result.code, 0, "{result:?}");
}

/// Returns the process ids that scripts have written to a file, oldest first.
fn pids(file: &PathBuf) -> Vec<Pid> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
}

fn is_alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    test_kill_process(pid).is_ok()
        && stat.is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with('Z'))
}

fn program_reports_progress_and_results(database: &Database) {
    let server = database.serve(&ENABLED);
    let script = r#"echo '@evenkeel {"progress": {"done": 1, "total": 2, "message": "on it"}}'
        echo '@evenkeel {"items": {"crawled": 3, "indexed": 2}}'
        echo working; while [ ! -e go ]; do sleep 0.02; done; echo done"#;
    create(&server, script, &json!({}));
    let run = server.wait_for_run("script", "running");
    let id = run["id"].as_str().unwrap();
    let shown = wait_for("the progress", || {
        let shown = server.json(&["run", "show", id]);
        shown["progress"]["message"].is_string().then_some(shown)
    });
    assert_eq!(shown["progress"], json!({"done": 1, "total": 2, "message": "on it"}));
    assert!(shown["output"].as_str().unwrap().contains("working"), "{shown}");
    std::fs::write(server.folder.path().join("go"), "").unwrap();
    let run = server.wait_for_run("script", "completed");
    assert_eq!((&run["items_crawled"], &run["items_indexed"]), (&json!(3), &json!(2)));
    assert_eq!(run["output"], "working\ndone\n");
    assert!(run["cpu_time_ms"].is_u64() && run["memory_peak_mb"].as_i64() > Some(0), "{run}");
    let over = server.json(&["run", "show", id]);
    assert!(over["progress"].is_null(), "{over}");
}

fn exit_codes_have_the_documented_outcomes(database: &Database) {
    let server = database.serve(&ENABLED);
    let retries = json!({"max_retries": 3, "retry_backoff_seconds": 1});
    let named = |name: &str, code: u8| {
        let mut more = retries.clone();
        more["name"] = name.into();
        create(&server, &format!("echo no >&2; exit {code}"), &more);
    };
    named("partly", 100);
    named("hopeless", 102);
    named("bad", 3);
    server.wait_for_run("partly", "partly_failed");
    let hopeless = server.wait_for_run("hopeless", "failed");
    assert!(hopeless["error_message"].as_str().unwrap().contains("no"), "{hopeless}");
    let again = wait_for("a second attempt of the bad one", || {
        let list = server.json(&["run", "list", "--job", "bad"]);
        list["executions"].as_array().unwrap().iter().find(|run| run["attempt"] == 2).cloned()
    });
    assert!(again["run_id"].is_string(), "{again}");
    let attempts = server.json(&["run", "list", "--job", "hopeless"])["executions"].clone();
    assert_eq!(attempts.as_array().unwrap().len(), 1, "{attempts}");
}

fn silent_program_times_out(database: &Database) {
    let server = database.serve(&ENABLED);
    create(&server, "echo $$ >pid; exec sleep 600", &json!({"timeout_sec": 1}));
    let run = server.wait_for_run("script", "timed_out");
    assert!(run["error_message"].as_str().unwrap().contains("no output for 1s"), "{run}");
    let file = server.folder.path().join("pid");
    assert!(!pids(&file).into_iter().any(is_alive));
}

fn run_watch_follows_retries(database: &Database) {
    let server = database.serve(&ENABLED);
    let script = "if [ \"$EVENKEEL_ATTEMPT\" = 1 ]; then exit 75; fi; echo second";
    create(&server, script, &json!({"max_retries": 1, "retry_backoff_seconds": 1}));
    let failed = server.wait_for_run("script", "failed");
    let result = server.run(&["run", "watch", failed["run_id"].as_str().unwrap()]);
    assert_eq!(result.code, 0, "{result:?}");
    assert!(result.out.contains("completed") && result.out.contains("second"), "{}", result.out);
}

/// A script that starts children which ignore TERM and leave the process group and the session. The
/// script writes all process ids to a file.
const FAMILY: &str = "sh -c 'trap \"\" TERM; echo $$ >>pids; while :; do sleep 1; done' &
    setsid sh -c 'trap \"\" TERM HUP; echo $$ >>pids; while :; do sleep 1; done' &
    echo $$ >>pids
    while :; do sleep 1; echo still here; done";

fn cancelled_program_is_killed_with_all_its_children(database: &Database) {
    let server = database.serve(&ENABLED);
    create(&server, FAMILY, &json!({}));
    let file = server.folder.path().join("pids");
    let family = wait_for("the family", || Some(pids(&file)).filter(|pids| pids.len() == 3));
    let run = server.wait_for_run("script", "running");
    assert_eq!(server.json(&["run", "cancel", run["id"].as_str().unwrap()])["running"], true);
    server.wait_for_run("script", "cancelled");
    assert!(!family.into_iter().any(is_alive));
}

fn killed_server_leaves_no_processes_and_the_next_attempt_resumes(database: &Database) {
    let mut server = database.serve(&ENABLED);
    let script = format!(
        "if [ -n \"$EVENKEEL_CHECKPOINT\" ]; then echo \"from $EVENKEEL_CHECKPOINT\"; exit 0; fi
        echo '@evenkeel {{\"checkpoint\": {{\"page\": 7}}}}'
        {FAMILY}"
    );
    create(&server, &script, &json!({}));
    let file = server.folder.path().join("pids");
    let family = wait_for("the family", || Some(pids(&file)).filter(|pids| pids.len() == 3));
    let run = server.wait_for_run("script", "running");
    // The output is stored when the checkpoint is stored.
    wait_for("its output in the store", || {
        let shown = server.json(&["run", "show", run["id"].as_str().unwrap()]);
        shown["output"].as_str().is_some_and(|text| text.contains("still here")).then_some(())
    });
    server.signal(Signal::KILL);
    server.wait_for_exit();
    server.restart();
    assert!(!family.into_iter().any(is_alive));
    let run = server.wait_for_run("script", "completed");
    assert_eq!(run["output"], "from {\"page\":7}\n");
    assert_eq!(run["crashes"], 1);
}
