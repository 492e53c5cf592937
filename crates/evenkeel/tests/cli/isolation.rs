//! Tests that shell programs cannot read the server's files or signal its processes, and that only
//! allowed tenants may run programs.

use std::path::Path;

use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::support::{Server, create_from_json, request, wait_for};

/// A user id without a name, a home directory or permissions.
const UNKNOWN_UID: u32 = 54_321;

/// A script that prints one line for each resource of the server that it can access, and its user
/// id.
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

/// Runs the attack script as a job and returns the resources of the server that it could access.
fn accessed(server: &Server) -> Vec<String> {
    let job = json!({
        "name": "attack", "executor_type": "shell", "max_retries": 0,
        "executor_config": {"argv": ["sh", "-c", attack(server)]},
    });
    let result = create_from_json(server, &job);
    assert_eq!(result.code, 0, "{result:?}");
    let run = server.wait_for_run("attack", "completed");
    let output = run["output"].as_str().unwrap_or_default();
    // The attack script also prints the server's token; the line with the token is removed here.
    output.lines().filter(|line| !line.contains('.')).map(String::from).collect()
}

/// Restarts the server with a configuration file.
fn with_a_config(mut server: Server) -> Server {
    let file = server.folder.path().join("config.toml");
    std::fs::write(&file, "drain_grace = '1s'\n").unwrap();
    server.signal(rustix::process::Signal::TERM);
    server.wait_for_exit();
    server.restart_with(&["--enable-shell", "--config", file.to_str().unwrap()]);
    server
}

#[test]
fn program_of_a_root_server_runs_as_nobody_without_access() {
    if !geteuid().is_root() {
        return println!("skipped: the server has to run as root");
    }
    let server = with_a_config(Server::start(&["--enable-shell"]));
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(server.folder.path(), open).unwrap();
    assert_eq!(accessed(&server), ["uid 65534"]);
}

#[test]
fn program_of_a_non_root_server_has_no_access() {
    let enabled = ["--enable-shell"];
    let is_root = geteuid().is_root();
    let server =
        if is_root { Server::start_as(UNKNOWN_UID, &enabled) } else { Server::start(&enabled) };
    let server = with_a_config(server);
    let uid = if is_root { UNKNOWN_UID } else { geteuid().as_raw() };
    assert_eq!(accessed(&server), [format!("uid {uid}")]);
}

/// Shows that the attack script works if programs are not isolated.
#[test]
fn unconfined_program_has_access_to_the_server() {
    let unconfined = ["--enable-shell", "--shell-unconfined"];
    let server = Server::start(&unconfined);
    let got = accessed(&server);
    for spoil in ["token", "store", "signal"] {
        assert!(got.iter().any(|line| line == spoil), "{got:?}");
    }
    if geteuid().is_root() {
        let server = Server::start_as(UNKNOWN_UID, &unconfined);
        let got = accessed(&server);
        // Even an unconfined program cannot read the server's memory and environment.
        assert_eq!(got, ["token", "store", "signal", &format!("uid {UNKNOWN_UID}")]);
    }
}

/// Command that starts a server which may switch users but not create namespaces, like root in many
/// containers.
const NO_NAMESPACES: [&str; 2] = ["setpriv", "--bounding-set=-sys_admin"];

#[test]
fn server_without_namespaces_refuses_shell_for_all_tenants() {
    if !geteuid().is_root() {
        return println!("skipped: only root can drop a capability");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = refusal(folder.path(), "--enable-shell=*");
    assert!(error.contains("programs can't be isolated from the server's files"), "{error}");
    assert!(error.contains("--shell-unconfined"), "{error}");
    // For a single tenant, it is enough that programs run as another user who cannot read the data
    // directory.
    let data = folder.path().join("evenkeel-data");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&data, open).unwrap();
    let error = refusal(folder.path(), "--enable-shell");
    assert!(error.contains("chmod o-rx") && error.contains("evenkeel-data"), "{error}");
}

/// Returns the error of a server that refuses to start.
fn refusal(folder: &Path, shell: &str) -> String {
    let result = std::process::Command::new(NO_NAMESPACES[0])
        .args(&NO_NAMESPACES[1..])
        .arg(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["serve", "--listen", "127.0.0.1:0", shell])
        .current_dir(folder)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&result.stderr).into_owned();
    assert!(!result.status.success(), "{error}");
    error
}

#[test]
fn program_of_another_user_has_no_access_without_namespaces() {
    if !geteuid().is_root() {
        return println!("skipped: only root can drop a capability");
    }
    let server = Server::start_under(&NO_NAMESPACES, &["--enable-shell"]);
    assert!(server.log().contains("this machine allows no namespaces"), "{}", server.log());
    assert_eq!(accessed(&server), ["uid 65534"]);
}

#[test]
fn unusable_shell_user_is_refused_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let result = crate::support::run(
        folder.path(),
        &["serve", "--listen", "127.0.0.1:0", "--enable-shell", "--shell-user", "no-such-user"],
    );
    let expected = if geteuid().is_root() { "there is no such user" } else { "only root can run" };
    assert!(result.code == 2 && result.err.contains(expected), "{result:?}");
}

/// Sends a request as an operator of the tenant acme.
fn as_acme(server: &Server, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let args = ["token", "create", "--role", "operator", "--tenant", "acme", "--json"];
    let token = server.run(&args).json();
    let header = format!("authorization: Bearer {}", token["token"].as_str().unwrap());
    let (status, body) = request(&server.url(), method, path, &header, &body.to_string());
    (status, serde_json::from_str(&body).unwrap())
}

#[test]
fn shell_is_enabled_only_for_listed_tenants() {
    let mut server = Server::start(&["--enable-shell=default,acme"]);
    let job = json!({
        "name": "say", "executor_type": "shell", "schedule": {"kind": "interval", "every": "1s"},
        "executor_config": {"argv": ["echo", "hello"]}, "max_retries": 0,
    });
    let (status, created) = as_acme(&server, "POST", "/api/v1/jobs", &job);
    assert_eq!(status, 201, "{created}");
    let runs = |server: &Server, status: &str| {
        let path = format!("/api/v1/executions?status={status}");
        let (_, list) = as_acme(server, "GET", &path, &Value::Null);
        list["executions"].as_array().and_then(|runs| runs.first().cloned())
    };
    wait_for("a run of acme", || runs(&server, "completed"));
    server.signal(rustix::process::Signal::TERM);
    server.wait_for_exit();
    // Without a list of tenants, `--enable-shell` applies to the tenant `default`. Runs of jobs
    // that acme created earlier fail with an error message.
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
