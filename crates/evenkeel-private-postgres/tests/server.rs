//! Starts real PostgreSQL servers. These tests fail if PostgreSQL is not installed; `cargo xtask
//! test` installs PostgreSQL.
#![expect(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

use evenkeel_private_postgres::{Error, Options, PrivatePostgres, bounded};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn start() -> PrivatePostgres {
    PrivatePostgres::start(Options::unit_test()).unwrap()
}

fn ask(url: &str, sql: &str) -> String {
    let psql = PrivatePostgres::find_binaries().unwrap().join("psql");
    let output = Command::new(psql).args(["-XAtq", "-c", sql, url]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn postmaster(server: &PrivatePostgres) -> String {
    let state = std::fs::read_to_string(server.data_dir().join("postmaster.pid")).unwrap();
    state.lines().next().unwrap().to_owned()
}

fn is_running(pid: &str) -> bool {
    // A zombie process has ended, but its parent has not reaped it yet.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
}

#[test]
fn both_urls_connect_as_superuser() {
    let server = start();
    let question = "SELECT current_database() || ' ' || current_setting('is_superuser')";
    assert_eq!(ask(server.url(), question), "evenkeel on");
    assert_eq!(ask(server.tcp_url(), question), "evenkeel on");
    assert_eq!(ask(server.url(), "SHOW fsync"), "off");
    assert_eq!(ask(server.url(), "SHOW max_connections"), "200");
}

#[test]
fn benchmark_server_is_durable() {
    let options = Options { shared_buffers_mb: 256, ..Options::benchmark() };
    let server = PrivatePostgres::start(options).unwrap();
    let expected = [
        ("fsync", "on"),
        ("synchronous_commit", "on"),
        ("full_page_writes", "on"),
        ("shared_buffers", "256MB"),
        ("wal_buffers", "64MB"),
        ("max_wal_size", "16GB"),
        ("checkpoint_timeout", "15min"),
        ("autovacuum_naptime", "10s"),
        ("jit", "off"),
        ("random_page_cost", "1.1"),
    ];
    for (name, value) in expected {
        assert_eq!(ask(server.url(), &format!("SHOW {name}")), value, "{name}");
    }
}

#[test]
fn commits_survive_a_crash_and_a_restart() {
    let mut server = start();
    let url = server.create_database("odd name's").unwrap();
    let settled = "CREATE TABLE t (n int); INSERT INTO t VALUES (42)";
    ask(&url, &format!("SET synchronous_commit = on; {settled}"));
    let before = postmaster(&server);

    server.stop_immediately().unwrap();
    assert!(!is_running(&before));
    assert!(matches!(server.create_database("x"), Err(Error::Stopped)));
    assert_eq!(server.server_cpu_seconds(), 0.0);
    server.stop_immediately().unwrap();

    server.restart().unwrap();
    assert_ne!(postmaster(&server), before);
    assert_eq!(ask(&url, "SELECT n FROM t"), "42");
    server.restart().unwrap();
    assert_eq!(ask(server.tcp_url(), "SELECT 1"), "1");
}

#[test]
fn cpu_time_includes_ended_sessions() {
    let server = start();
    let before = server.server_cpu_seconds();
    ask(server.url(), "SELECT sum(n) FROM generate_series(1, 1000000) n");
    // If a PostgreSQL session ends while `/proc` is read, its CPU time may be missing from the sum.
    let grown = || Ok::<_, ()>((server.server_cpu_seconds() > before).then_some(()));
    assert_eq!(bounded::poll(Duration::from_secs(30), grown), Ok(Some(())));
}

#[test]
fn taken_database_name_is_an_error() {
    let error = start().create_database("evenkeel").unwrap_err();
    assert!(error.to_string().contains("already exists"), "{error}");
}

#[test]
fn unknown_setting_is_an_error() {
    let extra = vec![("no_such_setting".to_owned(), "1".to_owned())];
    let error = PrivatePostgres::start(Options { extra, ..Options::unit_test() }).unwrap_err();
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}

#[test]
fn drop_removes_the_process_and_the_folder() {
    let server = start();
    let pid = postmaster(&server);
    let folder = server.data_dir().parent().unwrap().to_owned();
    assert!(is_running(&pid) && folder.exists());
    drop(server);
    assert!(!is_running(&pid));
    assert!(!folder.exists());
}

/// Runs as a separate process that owns a PostgreSQL server and that the next test kills.
#[test]
#[ignore = "run by killing_the_owner_removes_the_server"]
fn owner_that_waits_to_be_killed() {
    let server = start();
    println!("\nserver {} {}", postmaster(&server), server.data_dir().display());
    // The owner process ends when the test closes the other end of the pipe.
    std::io::stdin().lines().for_each(drop);
}

#[test]
fn killing_the_owner_removes_the_server() {
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "owner_that_waits_to_be_killed", "--nocapture"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(owner.stdout.take().unwrap());
    let line = output.lines().map(Result::unwrap).find(|line| line.starts_with("server ")).unwrap();
    let (pid, data) = line["server ".len()..].split_once(' ').unwrap();
    let folder = Path::new(data).parent().unwrap();
    assert!(is_running(pid) && folder.exists());

    owner.kill().unwrap();
    owner.wait().unwrap();
    let removed = || Ok::<_, ()>((!is_running(pid) && !folder.exists()).then_some(()));
    assert_eq!(bounded::poll(Duration::from_secs(30), removed), Ok(Some(())));
}
