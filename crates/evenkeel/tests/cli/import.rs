//! Jobs that lived elsewhere.

use std::path::Path;
use std::process::Stdio;
use std::sync::LazyLock;

use evenkeel_private_postgres::{Options, PrivatePostgres};
use serde_json::{Value, json};

use crate::stub::{Stub, Trouble};
use crate::support::{Said, Server, program, run};

const CSV: &str = "\
id,source_name,url,status,interval_minutes,interval_type,schedule_time,schedule_enabled,metadata
a1,example.com,https://example.com/,scheduled,,,0 */6 * * *,t,\"{\"\"category\"\": \"\"news\"\"}\"
a2,weekdays,https://example.org/,scheduled,,,0 9 * * 1-5,t,
a3,bad,https://example.org/,scheduled,,,0 9 * *,t,
a4,example.com,https://example.com/2,scheduled,30,minutes,,t,
a5,gone,https://example.com/3,cancelled,30,minutes,,t,
a6,halt,https://example.com/4,paused,30,minutes,,t,
";

/// Runs a command that talks to a stub.
fn with(stub: &Stub, folder: &Path, args: &[&str]) -> Said {
    run(folder, &[args, &["--url", &stub.url, "--token", "x"]].concat())
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_look_needs_no_server_and_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "jobs.csv", CSV);
    let seen = run(folder.path(), &["import", "legacy", "--from", &path, "--json"]).json();
    assert_eq!(seen["dry_run"], true);
    let counts = json!({"interval": 2, "cron": 1, "once": 0, "left_out": 1, "person": 2});
    assert_eq!(seen["counts"], counts);
    let told = run(folder.path(), &["import", "legacy", "--from", &path]).out;
    for words in
        ["Needs a person:", "line 2 has the same name", "9 * *\", character", "With --yes, 3 jobs"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
fn with_yes_the_jobs_are_made_and_paused_where_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "jobs.csv", CSV);
    let stub = Stub::start(true);
    let done =
        with(&stub, folder.path(), &["import", "legacy", "--from", &path, "--yes", "--json"]);
    assert_eq!(done.json()["sent"]["created"], 3);
    let again = with(&stub, folder.path(), &["import", "legacy", "--from", &path, "--yes"]);
    assert!(again.out.contains("3 were there already"), "{}", again.out);
    let asked = stub.end();
    let names: Vec<_> = asked.jobs.iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["example.com", "weekdays", "halt"]);
    assert_eq!(asked.jobs[0]["metadata"], json!({"category": "news", "legacy_id": "a1"}));
    assert_eq!(asked.paused, ["2"]);
}

#[test]
fn a_server_in_trouble_is_asked_again_and_not_taken_to_have_the_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "jobs.csv", CSV);
    let stub = Stub::start(true);
    stub.fail(&[Trouble::UnderWay, Trouble::Out, Trouble::Silent]);
    let done =
        with(&stub, folder.path(), &["import", "legacy", "--from", &path, "--yes", "--json"]);
    assert_eq!(done.json()["sent"]["created"], 3);
    let asked = stub.end();
    assert_eq!((asked.jobs.len(), asked.requests), (3, 5));
    assert!(asked.keys[..4].iter().all(|key| *key == asked.keys[0]), "{:?}", asked.keys);
}

#[test]
fn what_the_server_refuses_is_told_and_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let row = json!({"source_name": "x", "url": "https://refused.example/", "interval_minutes": 5});
    let path = file(folder.path(), "jobs.ndjson", &format!("{row}\n\nnonsense\n"));
    let stub = Stub::start(true);
    let said = with(&stub, folder.path(), &["import", "legacy", "--from", &path, "--yes"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("refused: url: is not wanted"), "{}", said.out);
    assert!(said.out.contains("it is not JSON"), "{}", said.out);
}

#[test]
fn many_rows_are_sent_in_portions() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..2500)
        .map(|n| format!("{{\"source_name\": \"s{n}\", \"url\": \"https://e.example/{n}\", \"schedule_time\": \"{} 3 * * *\"}}\n", n % 60))
        .collect();
    let path = file(folder.path(), "jobs.ndjson", &rows);
    let stub = Stub::start(true);
    let said = with(&stub, folder.path(), &["import", "legacy", "--from", &path, "--yes"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("… and 2450 more"), "{}", said.out);
    let asked = stub.end();
    assert_eq!((asked.jobs.len(), asked.requests), (2500, 3));
}

#[test]
fn each_job_is_one_that_a_real_server_takes() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "jobs.csv", CSV);
    let seen = run(folder.path(), &["import", "legacy", "--from", &path, "--json"]).json();
    let server = Server::start(&["--enable-shell"]);
    let crontab = "SHELL=/bin/sh\n# Say it\n0 9 * * * cat%{{hello}}%\n0 8 * * * echo '{{x}}'\n\
                   # Whose\n0 7 * * * echo \"$LOGNAME $HOME\"; cd; pwd; echo $SHELL $PATH\n";
    let crontab = file(folder.path(), "crontab", crontab);
    let also = run(folder.path(), &["import", "crontab", &crontab, "--json"]).json();
    for seen in [seen, also] {
        for entry in seen["entries"].as_array().unwrap() {
            let Some(document) = entry.get("document") else { continue };
            let made = crate::support::create_from_json(&server, document).json();
            assert_eq!(made["schedule_time"], entry["was"].clone().take_cron(), "{made}");
        }
    }
    // And it does what cron did with it.
    server.json(&["job", "trigger", "Say it"]);
    assert_eq!(server.wait_for_run("Say it", "completed")["output"], "{{hello}}\n");
    server.json(&["job", "trigger", "Whose"]);
    let whose = server.wait_for_run("Whose", "completed")["output"].as_str().unwrap().to_owned();
    let (user, rest) = whose.split_once(' ').unwrap();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let known = passwd.lines().find(|line| line.starts_with(&format!("{user}:"))).unwrap();
    let home = known.split(':').nth(5).unwrap();
    assert!(rest.starts_with(&format!("{home}\n")), "{whose}");
    assert!(rest.ends_with("\n/bin/sh /usr/bin:/bin\n"), "{whose}");
    server.json(&["job", "trigger", "echo"]);
    assert_eq!(server.wait_for_run("echo", "completed")["output"], "{{x}}\n");
}

/// An expression, as far as it is one.
trait TakeCron {
    fn take_cron(self) -> Value;
}

impl TakeCron for Value {
    fn take_cron(self) -> Value {
        if self.as_str().is_some_and(|text| text.contains('*')) { self } else { Value::Null }
    }
}

#[test]
fn a_crontab_is_not_sent_to_a_server_that_runs_no_programs() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "crontab", "0 9 * * * /bin/true\n@reboot /bin/true\n");
    let stub = Stub::start(false);
    let look = with(&stub, folder.path(), &["import", "crontab", &path, "--json"]).json();
    let remarks = look["remarks"].to_string();
    assert!(
        remarks.contains("--enable-shell, which the one that was asked does not have"),
        "{remarks}"
    );
    assert_eq!(look["counts"]["person"], 1);
    let said = with(&stub, folder.path(), &["import", "crontab", &path, "--yes"]);
    assert!(said.code == 1 && said.err.contains("serve --enable-shell"), "{said:?}");
    assert!(stub.end().jobs.is_empty());

    let stub = Stub::start(true);
    let said =
        with(&stub, folder.path(), &["import", "crontab", &path, "--tz", "Asia/Tokyo", "--yes"]);
    assert_eq!(said.code, 0, "{said:?}");
    let jobs = stub.end().jobs;
    assert_eq!((jobs.len(), &jobs[0]["timezone"]), (1, &json!("Asia/Tokyo")));
}

#[test]
fn a_crontab_comes_from_standard_input_too() {
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
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["counts"]["cron"], 1);
}

#[test]
fn what_cannot_be_read_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let strange = file(folder.path(), "jobs.txt", CSV);
    let empty = file(folder.path(), "other.csv", "a,b\n1,2\n");
    for (args, code, words) in [
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
        let said = run(folder.path(), &[&["import"], args].concat());
        assert_eq!(said.code, code, "{args:?}: {said:?}");
        assert!(said.err.contains(words) && !said.err.contains("s3cret"), "{said:?}");
    }
}

/// A server for this process, unless there is one for all.
static SERVER: LazyLock<PrivatePostgres> =
    LazyLock::new(|| PrivatePostgres::start(Options::unit_test()).unwrap());

#[test]
fn the_table_of_the_predecessor_is_read_and_left_as_it_is() {
    #[expect(clippy::disallowed_methods, reason = "tests have no config of their own")]
    let shared = std::env::var("EVENKEEL_TEST_POSTGRES");
    let url = shared.unwrap_or_else(|_| SERVER.url().to_owned());
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
    let seen = run(folder.path(), &from).json();
    // 2,400 hourly ones, and one of each other kind.
    let counts = json!({"interval": 2402, "cron": 1, "once": 1, "left_out": 1, "person": 1});
    assert_eq!(seen["counts"], counts, "{}", seen["entries"][0]);
    assert_eq!(state(), before);
    let said = run(folder.path(), &["import", "legacy", "--from", &url, "--table", "no_such"]);
    assert_eq!(said.code, 3, "{said:?}");
    runtime.block_on(client.batch_execute(&format!("DROP SCHEMA {schema} CASCADE"))).unwrap();
}

/// The address with another user or another database.
fn elsewhere(url: &str, user: Option<&str>, database: &str) -> String {
    let (_, rest) = url.split_once("://").unwrap();
    let (before, _) = rest.rsplit_once('/').unwrap();
    let (own, host) = before.split_once('@').unwrap();
    format!("postgres://{}@{host}/{database}", user.unwrap_or(own))
}

#[test]
fn a_server_that_lets_nobody_in_is_told_apart_with_the_way_out() {
    #[expect(clippy::disallowed_methods, reason = "tests have no config of their own")]
    let shared = std::env::var("EVENKEEL_TEST_POSTGRES");
    let url = shared.unwrap_or_else(|_| SERVER.url().to_owned());
    let folder = tempfile::tempdir().unwrap();
    for (store, words) in [
        (elsewhere(&url, None, "no_such_database"), "create the database first: createdb -h "),
        (elsewhere(&url, Some("no_such_user"), "postgres"), "create it with createuser"),
        ("postgres://me@127.0.0.1:1/db".into(), "check that the database runs"),
    ] {
        let said = run(folder.path(), &["migrate", "--store", &store]);
        assert_ne!(said.code, 0, "{store}: {said:?}");
        assert!(said.err.contains(words), "{store}: {said:?}");
        assert!(!said.err.contains("rights"), "{store}: {said:?}");
    }
}
