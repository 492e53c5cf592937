use std::path::Path;
use std::time::Duration;

use evenkeel_core::attempt::Outcome;
use evenkeel_core::{LogStream, RunLog, Span, TenantNo, Timestamp};
use evenkeel_executors::{
    Executor, LOG_BYTES_DEFAULT, Report, SandboxSettings, ShellExecutor, ShellSettings,
    SupervisorCommand,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{invocation, with};

pub fn supervisor() -> SupervisorCommand {
    SupervisorCommand {
        program: env!("CARGO_BIN_EXE_evenkeel-supervisor-test").into(),
        args: Vec::new(),
    }
}

pub fn executor() -> ShellExecutor {
    let settings = ShellSettings::new(supervisor());
    executor_with(ShellSettings { kill_grace: Duration::from_millis(200), ..settings })
}

pub fn executor_with(settings: ShellSettings) -> ShellExecutor {
    ShellExecutor::new(settings).unwrap()
}

/// Adds a sandbox that hides a directory; if the test runs as root, programs run as the user
/// nobody.
pub fn in_a_sandbox(settings: ShellSettings, hidden: &Path) -> ShellSettings {
    let sandbox = Some(SandboxSettings { hidden: vec![hidden.to_owned()] });
    let user = rustix::process::geteuid().is_root().then(|| "nobody".to_owned());
    ShellSettings { sandbox, user, ..settings }
}

async fn run(argv: &[&str]) -> Report {
    executor().run(invocation("shell", json!({"argv": argv}))).await
}

async fn sh(script: &str) -> Report {
    run(&["sh", "-c", script]).await
}

#[tokio::test]
async fn exit_code_zero_is_success() {
    let report = sh("echo out; echo noise >&2").await;
    assert_eq!((report.outcome, report.error.as_deref()), (Outcome::Completed, None));
    assert_eq!(report.output.as_deref(), Some("out\n"));
}

#[tokio::test]
async fn other_exit_codes_fail_with_the_last_line_of_standard_error() {
    let report = sh("echo out; echo alas >&2; exit 3").await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert_eq!(report.error.as_deref(), Some("exit code 3: alas"));
    assert_eq!(report.output.as_deref(), Some("out\n"));
    // The exit codes of the supervisor have no special meaning if a program exits with them.
    assert_eq!(sh("exit 198").await.error.as_deref(), Some("exit code 198"));
}

#[tokio::test]
async fn signal_is_a_failure() {
    let report = sh("kill -9 $$").await;
    assert_eq!(report.error.as_deref(), Some("ended by signal 9"));
}

#[tokio::test]
async fn missing_program_is_a_failure() {
    let report = run(&["/no/such/program"]).await;
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error.unwrap();
    assert!(error.starts_with("exit code 127: evenkeel: /no/such/program can't be"), "{error}");
}

#[tokio::test]
async fn missing_directory_is_a_failure() {
    let config = json!({"argv": ["true"], "cwd": "/no/such/folder"});
    let report = executor().run(invocation("shell", config)).await;
    let error = "exit code 125: evenkeel: cwd /no/such/folder can't be entered: ";
    assert!(report.error.as_deref().unwrap().starts_with(error), "{report:?}");
}

#[tokio::test]
async fn missing_supervisor_is_a_failure() {
    let program = "/no/such/supervisor".into();
    let settings = ShellSettings::new(SupervisorCommand { program, args: Vec::new() });
    let config = json!({"argv": ["true"]});
    let report = executor_with(settings).run(invocation("shell", config)).await;
    assert!(report.error.unwrap().starts_with("the supervisor can't be started: "));
}

#[tokio::test]
async fn no_shell_reads_the_arguments() {
    let report = run(&["printf", "%s|", "$HOME", "a b", ";", "`id`", "*", "--exec", "--"]).await;
    assert_eq!(report.output.as_deref(), Some("$HOME|a b|;|`id`|*|--exec|--|"));
}

#[tokio::test]
async fn payload_is_on_standard_input() {
    // The payload is longer than a pipe can hold, and a program need not read it.
    let payload = json!({"text": "x".repeat(300_000)});
    for (argv, output) in [(json!(["wc", "-c"]), Some("300011\n")), (json!(["true"]), None)] {
        let invocation = invocation("shell", json!({"argv": argv}));
        let report = executor().run(with(invocation, |d| d.payload = payload.clone())).await;
        assert_eq!((report.outcome, report.output.as_deref()), (Outcome::Completed, output));
    }
}

#[tokio::test]
async fn null_payload_gives_no_input() {
    assert_eq!(run(&["wc", "-c"]).await.output.as_deref(), Some("0\n"));
}

#[tokio::test]
async fn environment_has_only_declared_variables() {
    let config = json!({"argv": ["env"], "cwd": "/", "env": {"COLOUR": "blue"}});
    let invocation = invocation("shell", config);
    let id = invocation.id;
    let output = executor().run(invocation).await.output.unwrap();
    // The program inherits the first four of these environment variables from the node, and the
    // last three describe its user.
    const OTHERS: [&str; 7] = ["PATH", "LANG", "LC_ALL", "TZ", "HOME", "USER", "LOGNAME"];
    let is_inherited = |line: &&str| OTHERS.contains(&line.split('=').next().unwrap());
    let mut seen: Vec<&str> = output.lines().filter(|line| !is_inherited(line)).collect();
    seen.sort_unstable();
    let scheduled_at: Timestamp = "2026-12-01T09:00:00Z".parse().unwrap();
    let expected = [
        "COLOUR=blue".to_owned(),
        "EVENKEEL_ATTEMPT=3".to_owned(),
        format!("EVENKEEL_EXECUTION_ID={id}"),
        "EVENKEEL_FENCE=5".to_owned(),
        format!("EVENKEEL_RUN_ID={}", id.run_id()),
        format!("EVENKEEL_SCHEDULED_AT={scheduled_at}"),
    ];
    assert_eq!(seen, expected);
    assert!(output.lines().any(|line| line.starts_with("PATH=")), "{output}");
}

#[tokio::test]
async fn program_runs_in_the_jobs_directory() {
    let report = run(&["sh", "-c", "cd; pwd"]).await;
    let home = report.output.unwrap();
    for (cwd, folder) in [(json!("/usr"), "/usr\n"), (json!("~"), &home), (Value::Null, "/\n")] {
        let config = json!({"argv": ["pwd"], "cwd": cwd});
        let report = executor().run(invocation("shell", config)).await;
        assert_eq!(report.output.as_deref(), Some(folder), "{cwd}");
    }
}

#[tokio::test]
async fn program_is_searched_in_the_jobs_own_path() {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink("/bin/echo", folder.path().join("own-program")).unwrap();
    let config = json!({"argv": ["own-program", "here"], "env": {"PATH": folder.path()}});
    let report = executor().run(invocation("shell", config)).await;
    assert_eq!(report.output.as_deref(), Some("here\n"), "{:?}", report.error);
}

#[tokio::test]
async fn long_output_keeps_its_beginning_and_its_end() {
    let body = invocation(
        "shell",
        json!({"argv": ["sh", "-c",
        "echo begin; head -c 300000 /dev/zero | tr '\\0' x; echo done"]}),
    );
    let live = body.live.clone();
    let output = executor().run(body).await.output.unwrap();
    assert!(output.starts_with("begin\nxxx") && output.ends_with("xdone\n"));
    assert!(output.contains("x\n… ") && output.contains(" bytes left out\nx"));
    assert!(output.len() <= LOG_BYTES_DEFAULT + 100, "{}", output.len());
    let log = RunLog::decode(&live.take_log().unwrap());
    assert_eq!((log.total, log.text(None)), (300_011, output));
}

/// The log of a successful attempt includes standard error. Each log line has its stream and time,
/// and the lines are in the order in which they were printed.
#[tokio::test]
async fn both_streams_are_logged_in_order() {
    let script = "echo one; sleep 0.1; echo two >&2; sleep 0.1; echo three; sleep 0.1; \
                  printf four >&2; sleep 0.1; echo five; sleep 0.1; echo ' more' >&2";
    let body = invocation("shell", json!({"argv": ["sh", "-c", script]}));
    let live = body.live.clone();
    assert_eq!(executor().run(body).await.outcome, Outcome::Completed);
    let log = RunLog::decode(&live.take_log().unwrap());
    let lines = log.lines(0, None).lines;
    let told: Vec<_> = lines.iter().map(|line| (line.stream, line.text.as_str())).collect();
    let (out, err) = (LogStream::Stdout, LogStream::Stderr);
    assert_eq!(
        told,
        [(out, "one"), (err, "two"), (out, "three"), (err, "four more"), (out, "five")]
    );
    assert!(lines.is_sorted_by_key(|line| line.at.unwrap()), "{lines:?}");
}

#[tokio::test]
async fn failure_names_the_last_line_of_standard_error() {
    let error = sh("echo first >&2; echo 'disk full' >&2; echo >&2; exit 1").await.error.unwrap();
    assert_eq!(error, "exit code 1: disk full\nfirst\ndisk full\n\n");
    let long = sh("seq 1 9999 >&2; exit 1").await.error.unwrap();
    let (first, rest) = long.split_once('\n').unwrap();
    assert_eq!(first, "exit code 1: 9999");
    assert!(rest.ends_with("\n9998\n9999\n") && rest.len() <= 4096, "{rest}");
    assert!(rest.starts_with(char::is_numeric) && rest.find('\n') == Some(4), "{rest}");
    assert_eq!(sh("echo to stdout; exit 1").await.error.as_deref(), Some("exit code 1"));
}

#[tokio::test]
async fn resource_usage_is_measured() {
    let report = sh("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done").await;
    assert!(report.cpu_time.unwrap() > Span::from_micros(100), "{report:?}");
    assert!(report.memory_peak_kb.unwrap() > 100, "{report:?}");
}

#[test]
fn bad_configuration_is_refused() {
    let fault =
        executor().check(TenantNo(1), &json!({"argv": "echo hello"}), &Value::Null).unwrap_err();
    assert_eq!(fault.field, "executor_config.argv");
    assert_eq!(
        executor().check(TenantNo(1), &Value::Null, &Value::Null).unwrap_err().message,
        "is required"
    );
}
