//! Programs that jobs run against the server that runs them: what they can't read, and whom they
//! can't touch. And whose jobs may run programs at all.

use std::path::Path;

use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::support::{Server, create_from_json, request, wait_for};

/// A user that has no name, no home and no rights.
const STRANGER: u32 = 54_321;

/// Prints one line for each thing that it gets hold of, and at last whose process it is.
fn attack(server: &Server) -> String {
    let (pid, data) = (server.pid(), server.data_dir());
    let folder = server.folder.path().display();
    format!(
        "exec 2>/dev/null; cd /
         cat {data}/token && echo token
         grep -q SQLite {data}/evenkeel.db* && echo store
         cat {folder}/config.toml | grep -q drain && echo config
         grep -qz secret /proc/{pid}/environ && echo environ
         cat /proc/{pid}/maps | grep -q heap && echo maps
         ls /proc/{pid}/fd | grep -q 0 && echo descriptors
         ls {pid_root} && echo root
         perl -e 'exit !(open my $m, q(+<), q(/proc/{pid}/mem))' && echo memory
         perl -e 'my $n = `uname -m` =~ /x86_64/ ? 101 : 117; exit !(syscall($n, 0x4206, {pid}, 0, 0) == 0)' && echo ptrace
         kill -0 {pid} && echo signal
         env | grep -q SECRET && echo variables
         echo uid $(id -u)",
        data = data.display(),
        pid_root = format_args!("/proc/{pid}/cwd/evenkeel-data"),
    )
}

/// What the attack got hold of.
fn spoils(server: &Server) -> Vec<String> {
    let job = json!({
        "name": "attack", "executor_type": "shell", "max_retries": 0,
        "executor_config": {"argv": ["sh", "-c", attack(server)]},
    });
    let said = create_from_json(server, &job);
    assert_eq!(said.code, 0, "{said:?}");
    let run = server.wait_for_run("attack", "completed");
    let output = run["output"].as_str().unwrap_or_default();
    // The token itself is a line, too.
    output.lines().filter(|line| !line.contains('.')).map(String::from).collect()
}

/// The same server with a configuration file.
fn with_a_config(mut server: Server) -> Server {
    let file = server.folder.path().join("config.toml");
    std::fs::write(&file, "drain_grace = '1s'\n").unwrap();
    server.signal(rustix::process::Signal::TERM);
    server.wait_until_it_ends();
    server.restart_with(&["--enable-shell", "--config", file.to_str().unwrap()]);
    server
}

#[test]
fn a_program_of_a_root_server_is_nobodys_and_gets_hold_of_nothing() {
    if !geteuid().is_root() {
        return println!("skipped: the server has to run as root");
    }
    let server = with_a_config(Server::start(&["--enable-shell"]));
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(server.folder.path(), open).unwrap();
    assert_eq!(spoils(&server), ["uid 65534"]);
}

#[test]
fn a_program_of_any_other_server_gets_hold_of_nothing() {
    let enabled = ["--enable-shell"];
    let is_root = geteuid().is_root();
    let server =
        if is_root { Server::start_as(STRANGER, &enabled) } else { Server::start(&enabled) };
    let server = with_a_config(server);
    let uid = if is_root { STRANGER } else { geteuid().as_raw() };
    assert_eq!(spoils(&server), [format!("uid {uid}")]);
}

/// What the wall is for; and that the attack is one.
#[test]
fn a_program_without_a_wall_gets_hold_of_the_server() {
    let unconfined = ["--enable-shell", "--shell-unconfined"];
    let server = Server::start(&unconfined);
    let got = spoils(&server);
    for spoil in ["token", "store", "signal"] {
        assert!(got.iter().any(|line| line == spoil), "{got:?}");
    }
    if geteuid().is_root() {
        let server = Server::start_as(STRANGER, &unconfined);
        let got = spoils(&server);
        // Memory and environment are safe even so.
        assert_eq!(got, ["token", "store", "signal", &format!("uid {STRANGER}")]);
    }
}

/// As root in many containers: it may become another user, and make no namespaces.
const NO_NAMESPACES: [&str; 2] = ["setpriv", "--bounding-set=-sys_admin"];

#[test]
fn a_server_that_can_build_no_wall_between_tenants_does_not_start() {
    if !geteuid().is_root() {
        return println!("skipped: only root can give up a right");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = refusal(folder.path(), "--enable-shell=*");
    assert!(error.contains("programs can't be kept from the server's files"), "{error}");
    assert!(error.contains("--shell-unconfined"), "{error}");
    // For one tenant it is enough that the programs are another user's, if that one can't read on.
    let data = folder.path().join("evenkeel-data");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&data, open).unwrap();
    let error = refusal(folder.path(), "--enable-shell");
    assert!(error.contains("chmod o-rx") && error.contains("evenkeel-data"), "{error}");
}

/// What a server says that does not start.
fn refusal(folder: &Path, shell: &str) -> String {
    let said = std::process::Command::new(NO_NAMESPACES[0])
        .args(&NO_NAMESPACES[1..])
        .arg(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["serve", "--listen", "127.0.0.1:0", shell])
        .current_dir(folder)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(!said.status.success(), "{error}");
    error
}

#[test]
fn a_program_of_another_user_gets_hold_of_nothing_without_namespaces_too() {
    if !geteuid().is_root() {
        return println!("skipped: only root can give up a right");
    }
    let server = Server::start_under(&NO_NAMESPACES, &["--enable-shell"]);
    assert!(server.log().contains("they can't have namespaces here"), "{}", server.log());
    assert_eq!(spoils(&server), ["uid 65534"]);
}

#[test]
fn users_that_a_server_cannot_become_are_refused_when_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let said = crate::support::run(
        folder.path(),
        &["serve", "--listen", "127.0.0.1:0", "--enable-shell", "--shell-user", "no-such-user"],
    );
    let expected = if geteuid().is_root() { "there is no such user" } else { "only root can run" };
    assert!(said.code == 2 && said.err.contains(expected), "{said:?}");
}

/// A request of an operator of the tenant acme.
fn as_acme(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let args = ["token", "create", "--role", "operator", "--tenant", "acme", "--json"];
    let token = server.run(&args).json();
    let header = format!("authorization: Bearer {}", token["token"].as_str().unwrap());
    let (status, body) = request(&server.url(), method, path, &header, &body.to_string());
    (status, serde_json::from_str(&body).unwrap())
}

#[test]
fn shell_is_for_the_tenants_that_are_named() {
    let mut server = Server::start(&["--enable-shell=default,acme"]);
    let job = json!({
        "name": "say", "executor_type": "shell", "schedule": {"kind": "interval", "every": "1s"},
        "executor_config": {"argv": ["echo", "hello"]}, "max_retries": 0,
    });
    let (status, made) = as_acme(&server, "POST", "/api/v1/jobs", &job);
    assert_eq!(status, 201, "{made}");
    let runs = |server: &Server, status: &str| {
        let path = format!("/api/v1/executions?status={status}");
        let (_, list) = as_acme(server, "GET", &path, &Value::Null);
        list["executions"].as_array().and_then(|runs| runs.first().cloned())
    };
    wait_for("a run of acme", || runs(&server, "completed"));
    server.signal(rustix::process::Signal::TERM);
    server.wait_until_it_ends();
    // Alone, it is for the tenant default. What acme has made meanwhile fails and says why.
    server.restart_with(&["--enable-shell"]);
    let failed = wait_for("a run that is refused", || runs(&server, "failed"));
    let error = failed["error_message"].as_str().unwrap();
    assert!(error.contains("shell is off for this tenant"), "{error}");
    let other = json!({"name": "other", "executor_type": "shell",
                       "executor_config": {"argv": ["echo"]}});
    let (status, problem) = as_acme(&server, "POST", "/api/v1/jobs", &other);
    assert_eq!(status, 422, "{problem}");
    let error = &problem["errors"][0];
    assert_eq!(error["field"], "executor_type", "{problem}");
    assert!(
        error["message"].as_str().unwrap().contains("--enable-shell=default,acme"),
        "{problem}"
    );
    assert_eq!(create_from_json(&server, &other).code, 0);
}

#[test]
fn only_listed_programs_run() {
    let server = Server::start(&["--enable-shell", "--shell-programs", "/bin/echo"]);
    let create = |argv: &[&str]| {
        let config = json!({"argv": argv});
        let job =
            json!({"name": argv.join(" "), "executor_type": "shell", "executor_config": config});
        create_from_json(&server, &job)
    };
    assert_eq!(create(&["echo", "listed"]).code, 0);
    assert_eq!(server.wait_for_run("echo listed", "completed")["output"], "listed\n");
    let refused = create(&["sh", "-c", "echo"]);
    assert!(refused.code == 1 && refused.err.contains("--shell-programs"), "{refused:?}");
}
