//! Tests messages that programs print while they run, and their exit codes.

use evenkeel_core::TenantNo;
use evenkeel_core::after_attempt::RetryHint;
use evenkeel_core::attempt::Outcome;
use evenkeel_executors::{Executor, Invocation, Report};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::shell::executor;
use crate::support::{eventually, invocation, with};

fn sh(script: &str) -> Invocation {
    invocation("shell", json!({"argv": ["sh", "-c", script]}))
}

#[tokio::test]
async fn messages_are_not_part_of_the_output() {
    let body = sh("echo one
        echo '@evenkeel {\"progress\": {\"done\": 5, \"total\": 20, \"message\": \"pages\"}}'
        echo '@evenkeel {\"items\": {\"crawled\": 2}}'
        echo '@evenkeel {\"items\": {\"crawled\": 3, \"indexed\": 2}, \"checkpoint\": {\"at\": 7}}'
        echo two");
    let live = body.live.clone();
    let report = executor().run(body).await;
    assert_eq!(
        (report.outcome, report.output.as_deref()),
        (Outcome::Completed, Some("one\ntwo\n"))
    );
    assert_eq!((report.items_processed, report.items_saved), (Some(3), Some(2)));
    let progress = live.progress_so_far();
    assert_eq!((progress.done, progress.total), (Some(5), Some(20)));
    assert_eq!(progress.message.as_deref(), Some("pages"));
    assert_eq!((progress.items_processed, progress.items_saved), (Some(3), Some(2)));
    assert_eq!(live.take_unsaved_checkpoint().as_deref(), Some(br#"{"at":7}"#.as_slice()));
    assert_eq!(live.log_so_far().unwrap().text(None), "one\ntwo\n");
}

#[tokio::test]
async fn items_count_even_if_the_program_fails() {
    let report = executor().run(sh("printf '@evenkeel {\"items\":{\"crawled\":9}}'; exit 1")).await;
    assert_eq!((report.outcome, report.items_processed), (Outcome::Failed, Some(9)));
    assert_eq!(report.output, None);
}

#[tokio::test]
async fn invalid_message_stays_in_the_output_and_is_noted_once() {
    let body = sh("echo '@evenkeel {oops}'; echo '@evenkeel {\"item\": {}}'");
    let live = body.live.clone();
    let report = executor().run(body).await;
    let output = "@evenkeel {oops}\n@evenkeel {\"item\": {}}\n";
    assert_eq!(report.output.as_deref(), Some(output));
    let log = live.log_so_far().unwrap().text(None);
    assert_eq!(log.matches("evenkeel: a line that begins with @evenkeel is invalid").count(), 1);
}

#[tokio::test]
async fn output_is_reported_while_the_program_runs() {
    let folder = TempDir::new().unwrap();
    let script = "echo out; echo err >&2; echo '@evenkeel {\"checkpoint\": [1]}'
        while [ ! -e enough ]; do sleep 0.02; done; echo end";
    let config = json!({"argv": ["sh", "-c", script], "cwd": folder.path()});
    let body = invocation("shell", config);
    let live = body.live.clone();
    let run = tokio::spawn(async move { executor().run(body).await });
    let mut news = Vec::new();
    eventually("both streams and the checkpoint are reported", || {
        news.extend(live.take_update());
        let log = live.log_so_far().unwrap_or_default().text(None);
        log.contains("out\n")
            && log.contains("err\n")
            && news.iter().any(|n| n.checkpoint.is_some())
    })
    .await;
    std::fs::write(folder.path().join("enough"), "").unwrap();
    assert_eq!(run.await.unwrap().output.as_deref(), Some("out\nend\n"));
    assert!(live.log_so_far().unwrap().text(None).ends_with("end\n"));
}

#[tokio::test]
async fn checkpoint_reaches_the_next_attempt() {
    let seen = async |checkpoint: Option<&[u8]>| -> Report {
        let checkpoint = checkpoint.map(<[u8]>::to_vec);
        let body = sh("echo ${EVENKEEL_CHECKPOINT-none}");
        executor().run(Invocation { checkpoint, ..body }).await
    };
    let text = r#"{"page":"a b","n":3}"#;
    assert_eq!(seen(Some(text.as_bytes())).await.output.unwrap(), format!("{text}\n"));
    assert_eq!(seen(None).await.output.unwrap(), "none\n");
    // A program does not get a checkpoint that is too long or not JSON; other executors may save
    // such checkpoints.
    let long = format!("\"{}\"", "x".repeat(64 * 1024));
    for strange in [b"\xff".as_slice(), b"not json", b"[1", long.as_bytes()] {
        assert_eq!(seen(Some(strange)).await.output.unwrap(), "none\n");
    }
    // The largest checkpoint that a program can save can also be passed to the next attempt.
    let large = format!("\"{}\"", "x".repeat(64 * 1024 - 2));
    let checkpoint = Some(large.into_bytes());
    let body = Invocation { checkpoint, ..sh("echo ${#EVENKEEL_CHECKPOINT}") };
    assert_eq!(executor().run(body).await.output.as_deref(), Some("65536\n"));
}

#[tokio::test]
async fn exit_codes_decide_the_outcome() {
    let run = async |code: i32, exit_codes: Value| {
        let script = format!("echo why >&2; exit {code}");
        let config = json!({"argv": ["sh", "-c", script], "exit_codes": exit_codes});
        let report = executor().run(invocation("shell", config)).await;
        (report.outcome, report.retry, report.error)
    };
    let error = |text: &str| Some(format!("{text}: why"));
    let (usual, never) = (RetryHint::ByPolicy, RetryHint::Never);
    for (code, codes, expected) in [
        (0, Value::Null, (Outcome::Completed, usual, None)),
        (75, Value::Null, (Outcome::Failed, usual, error("exit code 75"))),
        (100, Value::Null, (Outcome::PartlyFailed, usual, error("exit code 100: partly failed"))),
        (102, Value::Null, (Outcome::Failed, never, error("exit code 102"))),
        (3, json!({"ok": [0, 3]}), (Outcome::Completed, usual, None)),
        (0, json!({"ok": [3]}), (Outcome::Failed, usual, error("exit code 0"))),
        (1, json!({"give_up": [1]}), (Outcome::Failed, never, error("exit code 1"))),
    ] {
        assert_eq!(run(code, codes.clone()).await, expected, "{code} {codes}");
    }
}

#[tokio::test]
async fn payload_is_passed_in_variables_and_run_values_are_filled_in() {
    let config = json!({
        "argv": ["sh", "-c", "printf '%s|' \"$@\" \"$X\" \"$EVENKEEL_PAYLOAD_name\"", "sh",
                 "{{attempt}}", "{{.Names}}"],
        "env": {"X": "<{{fence}}>"},
    });
    let payload = json!({"name": "$(id); `id` \"x\"", "list": [1, "a"]});
    assert_eq!(executor().check(TenantNo(1), &config, &payload), Ok(()));
    let body = with(invocation("shell", config), |d| d.payload = payload);
    let report = executor().run(body).await;
    assert_eq!(report.output.as_deref(), Some("3|{{.Names}}|<5>|$(id); `id` \"x\"|"));
}

#[tokio::test]
async fn stdin_text_passes_the_payload_unchanged() {
    let config = json!({"argv": ["cat"], "stdin": "text"});
    let body = with(invocation("shell", config), |d| d.payload = json!("a \"b\"\n"));
    assert_eq!(executor().run(body).await.output.as_deref(), Some("a \"b\"\n"));
}

/// The job comes from an earlier version of Evenkeel, which filled the payload into arguments.
#[tokio::test]
async fn payload_in_arguments_fails_for_good_with_the_way_out() {
    let body = invocation("shell", json!({"argv": ["sh", "-c", "echo {{payload.x}}"]}));
    let report = executor().run(with(body, |d| d.payload = json!({"x": "$(id)"}))).await;
    assert_eq!((report.outcome, report.retry), (Outcome::Failed, RetryHint::Never));
    let error = report.error.unwrap();
    assert!(error.starts_with("executor_config.argv[2]: has {{payload.x}}"), "{error}");
    assert!(error.contains("$EVENKEEL_PAYLOAD_customer"), "{error}");
}
