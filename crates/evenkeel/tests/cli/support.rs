//! Helpers that start servers and commands, and wait for expected results.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// Maximum time that a test waits for an expected result, such as a finished run.
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// Returns a command that runs the program with no environment variable except PATH.
pub fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.env_clear().current_dir(folder).stdin(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

#[derive(Debug)]
pub struct CommandResult {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl CommandResult {
    pub fn new(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Parses the output of the command as JSON. Panics if the command failed.
    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

pub fn run(folder: &Path, args: &[&str]) -> CommandResult {
    CommandResult::new(program(folder).args(args).output().unwrap())
}

/// Polls `check` until it returns a value.
#[expect(clippy::disallowed_methods, reason = "polls a condition of another process, in bounds")]
pub fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(began.elapsed() < WAIT_LIMIT, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server in a temporary folder. Dropping it kills the server.
pub struct Server {
    pub folder: TempDir,
    under: Vec<String>,
    args: Vec<String>,
    child: Child,
}

impl Server {
    /// Starts a server and waits until it responds.
    pub fn start(args: &[&str]) -> Self {
        Self::start_under(&[], args)
    }

    /// Starts a server as another user, in a folder of that user. Needs root.
    pub fn start_as(uid: u32, args: &[&str]) -> Self {
        let id = uid.to_string();
        Self::start_under(&["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"], args)
    }

    /// Starts a server through another program such as `setpriv`.
    pub fn start_under(under: &[&str], args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let ["setpriv", "--reuid", uid, ..] = under {
            let uid = uid.parse().ok();
            std::os::unix::fs::chown(folder.path(), uid, uid).unwrap();
        }
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let (under, args): (Vec<String>, Vec<String>) = (owned(under), owned(args));
        let child = spawn(folder.path(), &under, &args);
        let server = Self { folder, under, args, child };
        server.wait_until_ready();
        server
    }

    pub fn restart(&mut self) {
        self.child = spawn(self.folder.path(), &self.under, &self.args);
        self.wait_until_ready();
    }

    /// Kills the server and starts it again in the same folder with other arguments.
    pub fn restart_with(&mut self, args: &[&str]) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self.restart();
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_ready(&self) {
        wait_for("server.json of this server", || {
            self.server_json().filter(|server| server["pid"] == self.child.id())
        });
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("evenkeel-data")
    }

    pub fn server_json(&self) -> Option<Value> {
        let text = std::fs::read_to_string(self.data_dir().join("server.json")).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Returns the header with the local token.
    pub fn header(&self) -> String {
        let token = std::fs::read_to_string(self.data_dir().join("token")).unwrap();
        format!("authorization: Bearer {}", token.trim())
    }

    pub fn url(&self) -> String {
        self.server_json().unwrap()["url"].as_str().unwrap().to_owned()
    }

    pub fn run(&self, args: &[&str]) -> CommandResult {
        run(self.folder.path(), args)
    }

    pub fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).json()
    }

    pub fn wait_for_run(&self, job: &str, status: &str) -> Value {
        wait_for(&format!("a run of {job} that is {status}"), || {
            let list = self.json(&["run", "list", "--job", job]);
            let runs = list["executions"].as_array().unwrap();
            runs.iter().find(|run| run["status"] == status).cloned()
        })
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub fn wait_for_exit(&mut self) -> ExitStatus {
        wait_for("the end of the server", || self.child.try_wait().unwrap())
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the server ---\n{}", self.log());
        }
    }
}

fn spawn(folder: &Path, under: &[String], args: &[String]) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log")).unwrap();
    let any_port = ["--listen".to_owned(), "127.0.0.1:0".to_owned()];
    let listen = if args.contains(&any_port[0]) { &[][..] } else { &any_port };
    let mut command = program(folder);
    if let Some((first, others)) = under.split_first() {
        let mut evenkeel = PathBuf::from(command.get_program());
        if others.iter().any(|other| other == "--reuid") {
            // `evenkeel` is copied, because the other user may have no access to the build folder.
            let copy = folder.join("program");
            if !copy.exists() {
                std::fs::copy(&evenkeel, &copy).unwrap();
            }
            evenkeel = copy;
        }
        command = Command::new(first);
        command.current_dir(folder).args(others).arg(evenkeel).stdin(Stdio::null());
    }
    command
        // Tests check that shell programs cannot read the variable `A_PASSWORD`.
        .env("A_PASSWORD", "a-secret-in-the-environment")
        .arg("serve")
        .args(listen)
        .args(args)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// Sends a request without an HTTP library. Returns the status and the body of the response.
pub fn request(url: &str, method: &str, path: &str, header: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let length = body.len();
    let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{header}\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

pub fn create_from_json(server: &Server, document: &Value) -> CommandResult {
    let path = server.folder.path().join("job.json");
    std::fs::write(&path, document.to_string()).unwrap();
    server.run(&["job", "create", "--json", "--file", path.to_str().unwrap()])
}
