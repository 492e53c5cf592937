//! `evenkeel import`.

use std::path::Path;
use std::process::Stdio;
use std::sync::LazyLock;

use evenkeel_private_postgres::{Options, PrivatePostgres};
use serde_json::{Value, json};

use crate::stub::{Fault, Stub};
use crate::support::{CommandResult, Server, program, run};

const CSV: &str = "\
id,source_name,url,status,interval_minutes,interval_type,schedule_time,schedule_enabled,metadata
a1,example.com,https://example.com/,scheduled,,,0 */6 * * *,t,\"{\"\"category\"\": \"\"news\"\"}\"
a2,weekdays,https://example.org/,scheduled,,,0 9 * * 1-5,t,
a3,bad,https://example.org/,scheduled,,,0 9 * *,t,
a4,example.com,https://example.com/2,scheduled,30,minutes,,t,
a5,gone,https://example.com/3,cancelled,30,minutes,,t,
a6,halt,https://example.com/4,paused,30,minutes,,t,
";

/// Runs a command that sends its requests to a stub server.
fn with(stub: &Stub, folder: &Path, args: &[&str]) -> CommandResult {
    run(folder, &[args, &["--url", &stub.url, "--token", "x"]].concat())
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn import_preview_needs_no_server_and_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "jobs.csv", CSV);
    let preview = run(folder.path(), &["import", "legacy", "--from", &path, "--json"]).json();
    assert_eq!(preview["dry_run"], true);
    let counts = json!({"interval": 2, "cron": 1, "once": 0, "left_out": 1, "person": 2});
    assert_eq!(preview["counts"], counts);
    let text = run(folder.path(), &["import", "legacy", "--from", &path]).out;
    for expected in [
        "Needs a manual change:", "line 2 has the same name", "9 * *\", character",
        "Use --yes to create 3 jobs",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn import_with_yes_creates_jobs_and_keeps_them_paused() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "jobs.csv", CSV);
    let stub = Stub::start(true);
    let done =
        with(&stub, folder.path(), &["import", "legacy", "--from", &path, "--yes", "--json"]);
    assert_eq!(done.json()["sent"]["created"], 3);
    let again = with(&stub, folder.path(), &["import", "legacy", "--from", &path, "--yes"]);
    assert!(again.out.contains("3 existed already"), "{}", again.out);
    let received = stub.end();
    let names: Vec<_> = received.jobs.iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["example.com", "weekdays", "halt"]);
    assert_eq!(received.jobs[0]["metadata"], json!({"category": "news", "legacy_id": "a1"}));
    assert_eq!(received.paused, ["2"]);
}

#[test]
fn import_repeats_requests_after_temporary_failures() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "jobs.csv", CSV);
    let stub = Stub::start(true);
    stub.fail(&[Fault::InProgress, Fault::StoreUnavailable, Fault::Empty]);
    let done =
        with(&stub, folder.path(), &["import", "legacy", "--from", &path, "--yes", "--json"]);
    assert_eq!(done.json()["sent"]["created"], 3);
    let received = stub.end();
    assert_eq!((received.jobs.len(), received.requests), (3, 5));
    assert!(received.keys[..4].iter().all(|key| *key == received.keys[0]), "{:?}", received.keys);
}

#[test]
fn import_reports_refused_jobs_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let row = json!({"source_name": "x", "url": "https://refused.example/", "interval_minutes": 5});
    let path = file(folder.path(), "jobs.ndjson", &format!("{row}\n\nnonsense\n"));
    let stub = Stub::start(true);
    let result = with(&stub, folder.path(), &["import", "legacy", "--from", &path, "--yes"]);
    assert_eq!(result.code, 1, "{result:?}");
    assert!(result.out.contains("refused: url: is not wanted"), "{}", result.out);
    assert!(result.out.contains("it is not JSON"), "{}", result.out);
}

#[test]
fn import_sends_many_rows_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..2500)
        .map(|n| format!("{{\"source_name\": \"s{n}\", \"url\": \"https://e.example/{n}\", \"schedule_time\": \"{} 3 * * *\"}}\n", n % 60))
        .collect();
    let path = file(folder.path(), "jobs.ndjson", &rows);
    let stub = Stub::start(true);
    let result = with(&stub, folder.path(), &["import", "legacy", "--from", &path, "--yes"]);
    assert_eq!(result.code, 0, "{result:?}");
    assert!(result.out.contains("… and 2450 more"), "{}", result.out);
    let received = stub.end();
    assert_eq!((received.jobs.len(), received.requests), (2500, 3));
}

#[test]
fn imported_jobs_are_accepted_by_a_real_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "jobs.csv", CSV);
    let preview = run(folder.path(), &["import", "legacy", "--from", &path, "--json"]).json();
    let server = Server::start(&["--enable-shell"]);
    let crontab = "SHELL=/bin/sh\n# Say it\n0 9 * * * cat%{{hello}}%\n0 8 * * * echo '{{x}}'\n\
                   # Whose\n0 7 * * * echo \"$LOGNAME $HOME\"; cd; pwd; echo $SHELL $PATH\n";
    let crontab = file(folder.path(), "crontab", crontab);
    let also = run(folder.path(), &["import", "crontab", &crontab, "--json"]).json();
    for preview in [preview, also] {
        for entry in preview["entries"].as_array().unwrap() {
            let Some(document) = entry.get("document") else { continue };
            let created = crate::support::create_from_json(&server, document).json();
            assert_eq!(created["schedule_time"], entry["was"].clone().take_cron(), "{created}");
        }
    }
    // The imported jobs print the same text as under cron.
    server.json(&["job", "trigger", "Say it"]);
    assert_eq!(server.wait_for_run("Say it", "completed")["output"], "{{hello}}\n");
    server.json(&["job", "trigger", "Whose"]);
    let output = server.wait_for_run("Whose", "completed")["output"].as_str().unwrap().to_owned();
    let (user, rest) = output.split_once(' ').unwrap();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let known = passwd.lines().find(|line| line.starts_with(&format!("{user}:"))).unwrap();
    let home = known.split(':').nth(5).unwrap();
    assert!(rest.starts_with(&format!("{home}\n")), "{output}");
    assert!(rest.ends_with("\n/bin/sh /usr/bin:/bin\n"), "{output}");
    server.json(&["job", "trigger", "echo"]);
    assert_eq!(server.wait_for_run("echo", "completed")["output"], "{{x}}\n");
}

/// Returns a cron expression unchanged, and null for any other text.
trait TakeCron {
    fn take_cron(self) -> Value;
}

impl TakeCron for Value {
    fn take_cron(self) -> Value {
        if self.as_str().is_some_and(|text| text.contains('*')) { self } else { Value::Null }
    }
}

#[test]
fn crontab_is_not_sent_to_a_server_without_shell() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "crontab", "0 9 * * * /bin/true\n@reboot /bin/true\n");
    let stub = Stub::start(false);
    let preview = with(&stub, folder.path(), &["import", "crontab", &path, "--json"]).json();
    let remarks = preview["remarks"].to_string();
    assert!(remarks.contains("--enable-shell, which this server does not have"), "{remarks}");
    assert_eq!(preview["counts"]["person"], 1);
    let result = with(&stub, folder.path(), &["import", "crontab", &path, "--yes"]);
    assert!(result.code == 1 && result.err.contains("serve --enable-shell"), "{result:?}");
    assert!(stub.end().jobs.is_empty());

    let stub = Stub::start(true);
    let result =
        with(&stub, folder.path(), &["import", "crontab", &path, "--tz", "Asia/Tokyo", "--yes"]);
    assert_eq!(result.code, 0, "{result:?}");
    let jobs = stub.end().jobs;
    assert_eq!((jobs.len(), &jobs[0]["timezone"]), (1, &json!("Asia/Tokyo")));
}

#[test]
fn crontab_can_come_from_standard_input() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let mut child = program(folder.path())
        .args(["import", "crontab", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"@daily /bin/true").unwrap();
    let output = child.wait_with_output().unwrap();
    let preview: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(preview["counts"]["cron"], 1);
}

#[test]
fn unreadable_sources_are_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let strange = file(folder.path(), "jobs.txt", CSV);
    let empty = file(folder.path(), "other.csv", "a,b\n1,2\n");
    for (args, code, text) in [
        (&["legacy", "--from", &strange][..], 2, "--format"),
        (&["legacy", "--from", "missing.csv"], 2, "existing file"),
        (&["legacy", "--from", &empty], 1, "CSV HEADER"),
        (&["legacy", "--from", &strange, "--format", "csv", "--tz", "Mars/Olympus"], 2, "Mars"),
        (
            &["legacy", "--from", "postgres://me:s3cret@127.0.0.1:1/db"],
            5,
            "postgres://127.0.0.1:1/db",
        ),
        (&["crontab", "missing"], 2, "crontab -l"),
        (&["crontab", &strange, "--yes"], 5, "evenkeel serve"),
    ] {
        let result = run(folder.path(), &[&["import"], args].concat());
        assert_eq!(result.code, code, "{args:?}: {result:?}");
        assert!(result.err.contains(text) && !result.err.contains("s3cret"), "{result:?}");
    }
}

/// A PostgreSQL server for this process, used if no shared server is configured.
static SERVER: LazyLock<PrivatePostgres> =
    LazyLock::new(|| PrivatePostgres::start(Options::unit_test()).unwrap());

pub(crate) fn postgres_url() -> String {
    #[expect(clippy::disallowed_methods, reason = "tests have no config of their own")]
    let shared = std::env::var("EVENKEEL_TEST_POSTGRES");
    shared.unwrap_or_else(|_| SERVER.url().to_owned())
}

#[test]
fn legacy_table_is_read_and_not_changed() {
    let url = postgres_url();
    let schema = format!("legacy_{}", std::process::id());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let client = runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let statements = include_str!("legacy.sql").replace("legacy_schema", &schema);
        client.batch_execute(&statements).await.unwrap();
        client
    });
    let sum =
        format!("SELECT md5(string_agg(j::text, ',' ORDER BY id)), count(*) FROM {schema}.jobs j");
    let state = || {
        let row = runtime.block_on(client.query_one(&sum, &[])).unwrap();
        (row.get::<_, String>(0), row.get::<_, i64>(1))
    };
    let before = state();
    let folder = tempfile::tempdir().unwrap();
    let table = format!("{schema}.jobs");
    let from = ["import", "legacy", "--from", &url, "--table", &table, "--json"];
    let preview = run(folder.path(), &from).json();
    // `legacy.sql` creates 2,400 hourly jobs and six other jobs.
    let counts = json!({"interval": 2402, "cron": 1, "once": 1, "left_out": 1, "person": 1});
    assert_eq!(preview["counts"], counts, "{}", preview["entries"][0]);
    assert_eq!(state(), before);
    let result = run(folder.path(), &["import", "legacy", "--from", &url, "--table", "no_such"]);
    assert_eq!(result.code, 3, "{result:?}");
    runtime.block_on(client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE"))).unwrap();
}

/// Replaces the user, if given, and the database in a PostgreSQL URL.
pub(crate) fn elsewhere(url: &str, user: Option<&str>, database: &str) -> String {
    let (_, rest) = url.split_once("://").unwrap();
    let (before, _) = rest.rsplit_once('/').unwrap();
    let (own, host) = before.split_once('@').unwrap();
    format!("postgres://{}@{host}/{database}", user.unwrap_or(own))
}

#[test]
fn connection_errors_are_distinguished_with_advice() {
    let url = postgres_url();
    let folder = tempfile::tempdir().unwrap();
    for (store, text) in [
        (elsewhere(&url, None, "no_such_database"), "create the database first: createdb -h "),
        (elsewhere(&url, Some("no_such_user"), "postgres"), "create it with createuser"),
        ("postgres://me@127.0.0.1:1/db".into(), "check that the database runs"),
    ] {
        let result = run(folder.path(), &["migrate", "--store", &store]);
        assert_ne!(result.code, 0, "{store}: {result:?}");
        assert!(result.err.contains(text), "{store}: {result:?}");
        assert!(!result.err.contains("rights"), "{store}: {result:?}");
    }
}
