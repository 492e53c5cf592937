//! Checks that HTTP receivers get the value of a secret, and that the value appears nowhere else.

use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::database::Database;
use crate::http_later::report;
use crate::on_both_stores;
use crate::receiver::{ReceivedRequest, Receiver, Reply};
use crate::shell::ENABLED;
use crate::support::{Server, create_from_json, request, wait_for};

on_both_stores!(
    secret_reaches_its_receivers_and_appears_nowhere_else,
    encryption_keys_are_rotated_and_the_old_key_is_removed,
    missing_secret_is_named_at_creation_and_at_run_time,
);

/// The part of the secret value that is the same in every encoding.
const CORE: &str = "cAnArY-7f3a91";
/// A secret value that JSON and URLs encode differently.
const CANARY: &str = "cAnArY-7f3a91\"/&=% {{x}}";

/// A folder for secrets and keys. Secrets are not kept in the server's folder, because the test
/// searches all files of that folder for secret values.
struct Vault(TempDir);

impl Vault {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn set(&self, server: &Server, name: &str, value: &str) -> Value {
        let file = self.write("value", &format!("{value}\n"));
        server.json(&["secret", "set", name, "--from-file", &file])
    }
}

fn key(n: u8) -> String {
    format!("{n:02x}").repeat(32)
}

fn serve(database: &Database, key_file: &str) -> Server {
    let local = ["--allow-network", "127.0.0.0/8", "--secret-key-file", key_file];
    database.serve(&[&local[..], &ENABLED[..]].concat())
}

fn create(server: &Server, name: &str, kind: &str, config: Value, payload: Value) {
    let result = create_from_json(
        server,
        &json!({
            "name": name, "executor_type": kind, "executor_config": config, "payload": payload,
            "max_retries": 0, "unique": true, "dedup_key": name,
            "on_failure": {"action": "dead_letter"},
        }),
    );
    assert_eq!(result.code, 0, "{result:?}");
}

fn secret_reaches_its_receivers_and_appears_nowhere_else(database: &Database) {
    // The HTTP receiver returns the whole request, including the secret, like a careless server.
    let receiver = Receiver::start(|got, _| {
        let all = format!("{} {:?} {}", got.path, got.headers, got.body);
        match got.path.as_str() {
            path if path.starts_with("/fail") => Reply::Now(500, "", all),
            path if path.starts_with("/later") => Reply::Now(202, "", all),
            _ => Reply::ok(all),
        }
    });
    let vault = Vault::new();
    let server = serve(database, &vault.write("key", &key(1)));
    assert_eq!(vault.set(&server, "canary", CANARY)["version"], 1);
    let whole = format!("{}/whole/{CORE}", receiver.url);
    vault.set(&server, "address", &whole);
    let secret = json!({"secret": "canary"});
    let config = |path: &str| {
        json!({
            "url": format!("{}{path}?t={{{{secret.canary}}}}", receiver.url),
            "headers": {"X-Key": secret, "Authorization": "Bearer {{secret.canary}}"},
        })
    };
    create(&server, "good", "http", config("/good"), json!({"deep": [secret]}));
    create(&server, "bad", "http", config("/fail"), Value::Null);
    create(&server, "later", "http", config("/later"), Value::Null);
    let body = json!({"url": {"secret": "address"}, "body": {"token": secret, "n": 1}});
    create(&server, "whole", "http", body, Value::Null);
    let script = "cat; echo \" $K\"; echo \"$K\" >&2; \
                  echo '@evenkeel {\"progress\": {\"message\": \"'$CORE'\"}, \"checkpoint\": [\"'$CORE'\"]}'; \
                  printf %s \"$K\" > got; exit 1";
    vault.set(&server, "core", CORE);
    let shell = json!({
        "argv": ["sh", "-c", script], "cwd": server.folder.path(),
        "env": {"K": secret, "CORE": {"secret": "core"}},
    });
    create(&server, "program", "shell", shell, json!({"k": secret}));

    let call = wait_for("the call", || {
        receiver.requests().into_iter().find(|got| got.path.starts_with("/later"))
    });
    let token = call.header("x-evenkeel-callback-token").to_owned();
    let progress = json!({"message": format!("with {CANARY}"), "checkpoint": {"k": CANARY}});
    assert_eq!(report(&call, "progress", &token, &progress).0, 204);
    let end = json!({"output": format!("used {CANARY}")});
    assert_eq!(report(&call, "complete", &token, &end).0, 204);
    for (job, status) in [
        ("good", "completed"),
        ("bad", "failed"),
        ("later", "completed"),
        ("whole", "completed"),
        ("program", "failed"),
    ] {
        let run = server.wait_for_run(job, status);
        assert!(run["output"].as_str().unwrap_or("***").contains("***"), "{run}");
    }
    assert_all_received_it(&receiver.requests());
    assert_eq!(std::fs::read_to_string(server.folder.path().join("got")).unwrap(), CANARY);
    std::fs::remove_file(server.folder.path().join("got")).unwrap();

    for (place, text) in answers(&server) {
        assert!(!text.contains(CORE), "{place}: {text}");
    }
    assert!(!server.log().contains(CORE), "{}", server.log());
    assert_not_in(&server.data_dir());
    assert_no_row_has_it(database);
}

fn assert_all_received_it(all: &[ReceivedRequest]) {
    let find = |path: &str| all.iter().find(|got| got.path.starts_with(path)).unwrap();
    let good = find("/good");
    assert_eq!(good.header("x-key"), CANARY);
    assert_eq!(good.header("authorization"), format!("Bearer {CANARY}"));
    assert_eq!(good.path, format!("/good?t={CORE}%22%2F%26%3D%25%20%7B%7Bx%7D%7D"));
    let body: Value = serde_json::from_str(&good.body).unwrap();
    assert_eq!(body, json!({"deep": [CANARY]}));
    let whole = find("/whole/");
    assert_eq!(whole.path, format!("/whole/{CORE}"));
    let body: Value = serde_json::from_str(&whole.body).unwrap();
    assert_eq!(body, json!({"token": CANARY, "n": 1}));
}

/// Returns the responses of API read requests and the output of commands.
fn answers(server: &Server) -> Vec<(String, String)> {
    let header = server.header();
    let mut paths: Vec<String> = [
        "jobs", "executions", "secrets", "secrets/canary", "audit", "failures", "dead-letters",
        "conditions", "nodes", "targets",
    ]
    .map(|path| format!("/api/v1/{path}"))
    .to_vec();
    paths.extend(["/api/admin/jobs".into(), "/api/admin/scheduled-jobs".into()]);
    for job in server.json(&["job", "list"])["jobs"].as_array().unwrap() {
        let id = job["id"].as_str().unwrap();
        for more in ["", "/explain", "/condition", "/executions", "/stats"] {
            paths.push(format!("/api/v1/jobs/{id}{more}"));
        }
    }
    for run in server.json(&["run", "list"])["executions"].as_array().unwrap() {
        let id = run["id"].as_str().unwrap();
        paths.extend(["", "/logs"].map(|more| format!("/api/v1/executions/{id}{more}")));
    }
    let mut all = Vec::new();
    for path in paths {
        let (status, text) = request(&server.url(), "GET", &path, &header, "");
        assert_eq!(status, 200, "{path}: {text}");
        all.push((path, text));
    }
    for args in [
        &["secret", "list"][..],
        &["job", "list"],
        &["job", "show", "good"],
        &["run", "list"],
        &["failures"],
        &["dead-letters", "list"],
        &["audit"],
    ] {
        let result = server.run(args);
        all.push((args.join(" "), format!("{}{}", result.out, result.err)));
    }
    all
}

/// Asserts that no file of the server contains the secret value.
fn assert_not_in(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_not_in(&path);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        let found = bytes.windows(CORE.len()).any(|part| part == CORE.as_bytes());
        assert!(!found, "{}", path.display());
    }
}

/// Asserts that no row of a PostgreSQL table contains the secret value.
fn assert_no_row_has_it(database: &Database) {
    let args = database.args();
    let Some(store) = args.last() else { return };
    let hex: String = CORE.bytes().map(|byte| format!("{byte:02x}")).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(store, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        let tables = "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables \
                      WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";
        let tables = client.query(tables, &[]).await.unwrap();
        assert!(tables.len() > 10, "{}", tables.len());
        for table in tables {
            let table: String = table.get(0);
            let rows = format!("SELECT t::text FROM {table} AS t");
            for row in client.query(&rows, &[]).await.unwrap() {
                let row: String = row.get(0);
                assert!(!row.contains(CORE) && !row.contains(&hex), "{table}: {row}");
            }
        }
        drop(client);
        let _ = connection.await;
    });
}

fn encryption_keys_are_rotated_and_the_old_key_is_removed(database: &Database) {
    let receiver = Receiver::start(|_, _| Reply::ok(""));
    let vault = Vault::new();
    let mut server = serve(database, &vault.write("key", &key(1)));
    let old = vault.set(&server, "token", "v1")["key_id"].clone();
    let restart = |server: &mut Server, keys: &str| {
        vault.write("key", keys);
        server.signal(Signal::TERM);
        server.wait_for_exit();
        server.restart();
    };
    restart(&mut server, &format!("{}\n{}\n", key(2), key(1)));
    let rotated = server.json(&["secret", "rotate"]);
    assert_eq!((&rotated["rotated"], &rotated["unreadable"]), (&json!(1), &json!([])));
    let shown = &server.json(&["secret", "list"])["secrets"][0];
    assert_eq!((&shown["key_id"], &shown["version"]), (&rotated["key_id"], &json!(1)));
    assert_ne!(shown["key_id"], old);
    restart(&mut server, &key(2));
    let headers = json!({"X-Key": {"secret": "token"}});
    let config = json!({"url": receiver.url, "headers": headers});
    create(&server, "call", "http", config.clone(), Value::Null);
    server.wait_for_run("call", "completed");
    assert_eq!(receiver.requests()[0].header("x-key"), "v1");
    // The restarted server does not have the key that encrypted the secret, so attempts fail with
    // an error that names the missing key.
    restart(&mut server, &key(3));
    create(&server, "again", "http", config, Value::Null);
    let failed = server.wait_for_run("again", "failed");
    let message = failed["error_message"].as_str().unwrap();
    assert!(message.contains(rotated["key_id"].as_str().unwrap()), "{message}");
    let result = server.run(&["secret", "rotate"]);
    assert!(result.code == 1 && result.err.contains("token"), "{result:?}");
}

fn missing_secret_is_named_at_creation_and_at_run_time(database: &Database) {
    let vault = Vault::new();
    let server = serve(database, &vault.write("key", &key(1)));
    let config = json!({"url": "https://example.com/", "headers": {"A": {"secret": "token"}}});
    let job = json!({"name": "call", "executor_type": "http", "executor_config": config,
                     "max_retries": 0});
    let result = create_from_json(&server, &job);
    assert!(result.code != 0 && result.err.contains("executor_config.headers.A"), "{result:?}");
    assert!(result.err.contains("evenkeel secret set token"), "{result:?}");
    vault.set(&server, "token", "v1");
    vault.set(&server, "token", "v2");
    assert_eq!(server.json(&["secret", "delete", "token"])["deleted"], true);
    assert_eq!(server.run(&["secret", "delete", "token"]).code, 3);
    vault.set(&server, "token", "v1");
    let later = json!({"schedule_enabled": true, "interval_minutes": 60});
    let mut periodic = job;
    periodic.as_object_mut().unwrap().extend(later.as_object().unwrap().clone());
    assert_eq!(create_from_json(&server, &periodic).code, 0);
    server.json(&["secret", "delete", "token"]);
    server.json(&["job", "trigger", "call"]);
    let failed = server.wait_for_run("call", "failed");
    let message = failed["error_message"].as_str().unwrap();
    assert!(message.contains("evenkeel secret set token"), "{message}");
}

#[test]
fn sqlite_store_creates_a_private_key_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Database::sqlite().serve(&[]);
    Vault::new().set(&server, "token", "v1");
    let file = std::fs::metadata(server.data_dir().join("secret-key")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[test]
fn shared_store_without_a_key_refuses_secrets() {
    let server = Database::postgres().serve(&[]);
    let file = Vault::new();
    let file_name = file.write("value", "v1");
    let result = server.run(&["secret", "set", "token", "--from-file", &file_name]);
    assert!(result.code == 4 && result.err.contains("--secret-key-file"), "{result:?}");
    assert!(!server.data_dir().join("secret-key").exists());
}
