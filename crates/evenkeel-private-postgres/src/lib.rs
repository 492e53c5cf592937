//! A temporary PostgreSQL server for tests and benchmarks.
//!
//! One temporary folder contains the data, the logs and the Unix socket of the server. When the
//! [`PrivatePostgres`] is dropped or the owning process is killed, the server stops and the folder
//! is removed. All functions of [`PrivatePostgres`] block the calling thread. Asynchronous programs
//! start the server before their runtime, or on a separate thread.

mod account;
mod address;
mod binaries;
pub mod bounded;
mod cpu;
mod error;
mod guard;
mod home;
mod options;

pub use error::Error;
pub use options::Options;

use guard::Guard;
use home::Home;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

/// Time limit for `initdb` and `createdb`, which take 1 to 2 s on an idle machine.
const HELPER_LIMIT: Duration = Duration::from_secs(120);
/// Time limit for the PostgreSQL server to accept connections. After a crash, the PostgreSQL server
/// of a benchmark may have to replay much WAL.
const READY_LIMIT: Duration = Duration::from_secs(300);
/// Time limit for an immediate stop; PostgreSQL kills remaining sessions after 5 s.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// Maximum number of tries to start PostgreSQL, each on a new port. A try fails if another process
/// takes the port first.
const PORT_ATTEMPTS: u32 = 5;

/// Dropping a `PrivatePostgres` stops the server and removes its folder.
#[derive(Debug)]
pub struct PrivatePostgres {
    /// `None` while stopped.
    postmaster: Option<Child>,
    port: u16,
    url: String,
    tcp_url: String,
    // Rust drops `home` before `guard`, so the folder is removed before the guard process exits.
    home: Home,
    guard: Guard,
}

impl PrivatePostgres {
    /// Returns the folder with the programs of the newest PostgreSQL server.
    #[must_use]
    pub fn find_binaries() -> Option<PathBuf> {
        binaries::find()
    }

    /// Creates a PostgreSQL cluster with a superuser and a database, both named `evenkeel`. Starts
    /// the server on a port of 127.0.0.1 and on a Unix socket. No password is needed.
    ///
    /// # Errors
    /// If PostgreSQL is not installed or does not start.
    pub fn start(options: Options) -> Result<Self, Error> {
        let binaries = Self::find_binaries().ok_or(Error::NoBinaries)?;
        let home = Home::create(binaries)?;
        let guard = Guard::watch(home.folder())?;
        init(&home, &options)?;
        let mut server = Self {
            postmaster: None,
            port: 0,
            url: String::new(),
            tcp_url: String::new(),
            home,
            guard,
        };
        server.boot_on_free_port()?;
        server.url = server.create_database(address::NAME)?;
        server.tcp_url = address::tcp_url(server.port, address::NAME);
        Ok(server)
    }

    /// Returns the superuser's database URL for the Unix socket, which is faster than TCP.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the superuser's database URL for TCP, for clients that do not support Unix sockets.
    #[must_use]
    pub fn tcp_url(&self) -> &str {
        &self.tcp_url
    }

    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.home.data
    }

    /// Creates an empty database and returns its URL for the Unix socket.
    ///
    /// # Errors
    /// If the PostgreSQL server is stopped or the database exists already.
    pub fn create_database(&self, name: &str) -> Result<String, Error> {
        if self.postmaster.is_none() {
            return Err(Error::Stopped);
        }
        let port = self.port.to_string();
        let folder = self.home.folder().as_os_str();
        let options = ["--host".as_ref(), folder, "--port".as_ref(), port.as_ref()];
        let rest = ["--username", address::NAME, "--maintenance-db", "postgres", "--", name];
        let arguments = options.into_iter().chain(rest.iter().map(AsRef::as_ref));
        self.home.run("createdb", arguments, HELPER_LIMIT)?;
        Ok(address::socket_url(self.home.folder(), self.port, name))
    }

    /// Stops the PostgreSQL server without a checkpoint and disconnects open sessions, as in a
    /// crash. Has no effect if the PostgreSQL server is already stopped.
    ///
    /// # Errors
    /// If the operating system cannot signal the PostgreSQL server or wait for its end.
    pub fn stop_immediately(&mut self) -> Result<(), Error> {
        let Some(mut postmaster) = self.postmaster.take() else { return Ok(()) };
        if postmaster.try_wait().map_err(Error::run("postgres"))?.is_some() {
            return Ok(());
        }
        // `pg_ctl stop -m immediate` also sends SIGQUIT.
        kill_process(Pid::from_child(&postmaster), Signal::QUIT)
            .map_err(|errno| Error::run("postgres")(errno.into()))?;
        let stopped = bounded::wait(&mut postmaster, STOP_LIMIT).map_err(Error::run("postgres"))?;
        if stopped.is_none() {
            postmaster.kill().and_then(|()| postmaster.wait()).map_err(Error::run("postgres"))?;
        }
        Ok(())
    }

    /// Restarts the PostgreSQL server with the same data, port and URLs. If the PostgreSQL server
    /// is running, calls [`stop_immediately`](Self::stop_immediately) first.
    ///
    /// # Errors
    /// If the server does not start.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop_immediately()?;
        self.boot()
    }

    /// Returns the CPU seconds that PostgreSQL's postmaster and its child processes, including
    /// ended sessions, have used since the start. Returns 0 while the server is stopped.
    #[must_use]
    pub fn server_cpu_seconds(&self) -> f64 {
        self.postmaster.as_ref().map_or(0.0, |postmaster| cpu::seconds(postmaster.id()))
    }

    fn boot_on_free_port(&mut self) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            self.port = address::free_port()?;
            match self.boot() {
                Err(error) if error.is_port_taken() && attempt < PORT_ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    fn boot(&mut self) -> Result<(), Error> {
        let mut command = self.home.command("postgres")?;
        command.arg("-D").arg(&self.home.data).arg("-p").arg(self.port.to_string());
        // PostgreSQL has its own process group, so that Ctrl-C in the terminal does not stop it.
        command.process_group(0);
        let mut postmaster = command.spawn().map_err(Error::run("postgres"))?;
        let outcome = self.await_ready(&mut postmaster);
        // A PostgreSQL process that did not become ready is stored too, so that drop stops it.
        self.postmaster = Some(postmaster);
        outcome
    }

    /// Polls the file into which PostgreSQL's postmaster writes its state, as `pg_ctl -w` does.
    fn await_ready(&self, postmaster: &mut Child) -> Result<(), Error> {
        let state = self.home.data.join("postmaster.pid");
        let pid = postmaster.id().to_string();
        let ready = bounded::poll(READY_LIMIT, || {
            if let Some(status) = postmaster.try_wait().map_err(Error::run("postgres"))? {
                let output = self.home.last_output("postgres");
                return Err(Error::Failed { program: "postgres".to_owned(), status, output });
            }
            let text = fs::read_to_string(&state).unwrap_or_default();
            Ok(is_ready(&text, &pid).then_some(()))
        })?;
        ready.ok_or_else(|| Error::TooSlow {
            program: "postgres".to_owned(),
            limit: READY_LIMIT,
            output: self.home.last_output("postgres"),
        })
    }
}

impl PrivatePostgres {
    /// Leaves the PostgreSQL server running, so that a developer can inspect its data.
    pub fn leave_running(mut self) -> Result<(), Error> {
        self.guard.stand_down()?;
        std::mem::forget(self);
        Ok(())
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        if let Err(error) = self.stop_immediately() {
            eprintln!("a private PostgreSQL server did not stop: {error}");
        }
    }
}

fn init(home: &Home, options: &Options) -> Result<(), Error> {
    let mut arguments = vec!["--auth=trust", "-E", "UTF8", "--locale=C", "-U", address::NAME];
    if !options.durable {
        arguments.push("--no-sync");
    }
    let data = ["-D".as_ref(), home.data.as_os_str()];
    home.run("initdb", arguments.iter().map(AsRef::as_ref).chain(data), HELPER_LIMIT)?;
    let sockets = home.folder().to_string_lossy().into_owned();
    let own = [
        ("listen_addresses".to_owned(), "127.0.0.1".to_owned()),
        ("unix_socket_directories".to_owned(), sockets),
    ];
    let settings = own.into_iter().chain(options.settings());
    let lines: String = settings.map(|(name, value)| options::line(&name, &value)).collect();
    let path = home.data.join("postgresql.conf");
    let file = OpenOptions::new().append(true).open(&path);
    file.and_then(|mut file| file.write_all(lines.as_bytes())).map_err(Error::file(path))
}

/// True if `state`, the text of a `postmaster.pid`, belongs to process `pid` and says that
/// PostgreSQL accepts connections.
fn is_ready(state: &str, pid: &str) -> bool {
    let mut lines = state.lines().map(str::trim);
    lines.next() == Some(pid) && lines.nth(6) == Some("ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_file_of_an_earlier_server_is_not_ready() {
        let state = "12\n/data\n1700000000\n5432\n/tmp\n127.0.0.1\n  99  0\nready   \n";
        assert!(is_ready(state, "12"));
        assert!(!is_ready(state, "13"));
        assert!(!is_ready(&state.replace("ready", "starting"), "12"));
        assert!(!is_ready("", "12"));
    }
}
