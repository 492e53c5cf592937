//! Starts servers and commands, and waits for what they do.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// How long anything here may take. It is never waited for in full unless something is broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program, without anything of the environment of whoever runs the tests.
pub fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.env_clear().current_dir(folder).stdin(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// What a command said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    fn new(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Its answer, if it did what it was asked for.
    pub fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

/// Runs a command in a folder to its end.
pub fn run(folder: &Path, args: &[&str]) -> Said {
    Said::new(program(folder).args(args).output().unwrap())
}

/// Waits for something to become so.
#[expect(clippy::disallowed_methods, reason = "polls a condition of another process, in bounds")]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A folder with a server in it. Dropping it kills the server.
pub struct Server {
    pub folder: TempDir,
    under: Vec<String>,
    args: Vec<String>,
    child: Child,
}

impl Server {
    /// Starts one in a new folder and waits until it answers.
    pub fn start(args: &[&str]) -> Self {
        Self::start_under(&[], args)
    }

    /// Starts one as another user, which only root can do, in a folder of that user's.
    pub fn start_as(uid: u32, args: &[&str]) -> Self {
        let id = uid.to_string();
        Self::start_under(&["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"], args)
    }

    /// Starts one by way of another program, as its user if it is `setpriv --reuid`.
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
        server.wait_until_it_runs();
        server
    }

    /// Starts it again in the same folder.
    pub fn restart(&mut self) {
        self.child = spawn(self.folder.path(), &self.under, &self.args);
        self.wait_until_it_runs();
    }

    /// Starts it again in the same folder with other arguments.
    pub fn restart_with(&mut self, args: &[&str]) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self.restart();
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_it_runs(&self) {
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

    pub fn url(&self) -> String {
        self.server_json().unwrap()["url"].as_str().unwrap().to_owned()
    }

    /// Runs a client in the server's folder.
    pub fn run(&self, args: &[&str]) -> Said {
        run(self.folder.path(), args)
    }

    /// Runs a client and reads its JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).json()
    }

    /// Waits for a run of a job that has this status.
    pub fn wait_for_run(&self, job: &str, status: &str) -> Value {
        wait_for(&format!("a run of {job} that is {status}"), || {
            let list = self.json(&["run", "list", "--job", job]);
            let runs = list["executions"].as_array().unwrap();
            runs.iter().find(|run| run["status"] == status).cloned()
        })
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until it has ended.
    pub fn wait_until_it_ends(&mut self) -> ExitStatus {
        wait_for("the end of the server", || self.child.try_wait().unwrap())
    }

    /// What it has logged so far.
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
    let anywhere = ["--listen".to_owned(), "127.0.0.1:0".to_owned()];
    let listen = if args.contains(&anywhere[0]) { &[][..] } else { &anywhere };
    let mut command = program(folder);
    if let Some((first, others)) = under.split_first() {
        let mut evenkeel = PathBuf::from(command.get_program());
        if others.iter().any(|other| other == "--reuid") {
            // Another user may not reach the folder in which it was built.
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
        // For tests of who can read it.
        .env("A_PASSWORD", "a-secret-in-the-environment")
        .arg("serve")
        .args(listen)
        .args(args)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// A request without any client library: its status and body.
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

/// A small job for `--file -`.
pub fn create_from_json(server: &Server, document: &Value) -> Said {
    let path = server.folder.path().join("job.json");
    std::fs::write(&path, document.to_string()).unwrap();
    server.run(&["job", "create", "--json", "--file", path.to_str().unwrap()])
}
