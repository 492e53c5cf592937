//! A throw-away PostgreSQL server for tests and benchmarks.
//!
//! Everything lives in one temporary folder: the data, the logs and the Unix socket. The server
//! stops and the folder goes when the [`PrivatePostgres`] is dropped, and also when the process
//! that owns it is killed. Blocking throughout: asynchronous callers start it before their
//! runtime, or on a thread of its own.

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

/// For `initdb` and `createdb`, which take a second or two on an idle machine.
const HELPER_LIMIT: Duration = Duration::from_secs(120);
/// For the server to accept connections, after a crash of a benchmark with much to replay.
const READY_LIMIT: Duration = Duration::from_secs(300);
/// For an immediate stop; the postmaster itself kills stragglers after five seconds.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// How often a port may be snatched away between being found free and being used.
const PORT_ATTEMPTS: u32 = 5;

/// A PostgreSQL server of one's own. Dropping it stops the server and removes its folder.
#[derive(Debug)]
pub struct PrivatePostgres {
    /// `None` while stopped.
    postmaster: Option<Child>,
    port: u16,
    url: String,
    tcp_url: String,
    // Dropped in this order: the guard finds its work already done.
    home: Home,
    guard: Guard,
}

impl PrivatePostgres {
    /// The folder of the newest PostgreSQL server's programs, if there is one.
    #[must_use]
    pub fn find_binaries() -> Option<PathBuf> {
        binaries::find()
    }

    /// Makes a new cluster with a superuser and a database `evenkeel`, and starts it on a port of
    /// 127.0.0.1 and a Unix socket. No password is asked for.
    ///
    /// # Errors
    /// When PostgreSQL is not installed, or does not start.
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

    /// A superuser's URL through the Unix socket: the faster way.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A superuser's URL through TCP, for clients without Unix sockets.
    #[must_use]
    pub fn tcp_url(&self) -> &str {
        &self.tcp_url
    }

    /// Where the cluster is stored.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.home.data
    }

    /// Creates an empty database and returns its URL, through the Unix socket.
    ///
    /// # Errors
    /// When the server is stopped, or the name is taken.
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

    /// Stops the server as a crash would: no checkpoint, sessions cut off. Nothing to do when it
    /// is stopped already.
    ///
    /// # Errors
    /// When the server's process cannot be signalled or waited for.
    pub fn stop_immediately(&mut self) -> Result<(), Error> {
        let Some(mut postmaster) = self.postmaster.take() else { return Ok(()) };
        if postmaster.try_wait().map_err(Error::run("postgres"))?.is_some() {
            return Ok(());
        }
        // What `pg_ctl stop -m immediate` sends.
        kill_process(Pid::from_child(&postmaster), Signal::QUIT)
            .map_err(|errno| Error::run("postgres")(errno.into()))?;
        let stopped = bounded::wait(&mut postmaster, STOP_LIMIT).map_err(Error::run("postgres"))?;
        if stopped.is_none() {
            postmaster.kill().and_then(|()| postmaster.wait()).map_err(Error::run("postgres"))?;
        }
        Ok(())
    }

    /// Starts the server again, on the same data and port; a running one is stopped first, as by
    /// [`stop_immediately`](Self::stop_immediately). Every URL stays valid.
    ///
    /// # Errors
    /// When the server does not start.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.stop_immediately()?;
        self.boot()
    }

    /// Processor time the running server has used since it was started: the postmaster, its
    /// children, and the sessions that have ended. 0 while stopped.
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
        // Of its own, so that a Ctrl-C meant for us is not a request to shut down.
        command.process_group(0);
        let mut postmaster = command.spawn().map_err(Error::run("postgres"))?;
        let outcome = self.await_ready(&mut postmaster);
        // Kept even if not ready: whoever drops us stops it.
        self.postmaster = Some(postmaster);
        outcome
    }

    /// As `pg_ctl -w` does: the postmaster writes its state into a file.
    fn await_ready(&self, postmaster: &mut Child) -> Result<(), Error> {
        let state = self.home.data.join("postmaster.pid");
        let pid = postmaster.id().to_string();
        let ready = bounded::poll(READY_LIMIT, || {
            if let Some(status) = postmaster.try_wait().map_err(Error::run("postgres"))? {
                let output = self.home.last_words("postgres");
                return Err(Error::Failed { program: "postgres".to_owned(), status, output });
            }
            let text = fs::read_to_string(&state).unwrap_or_default();
            Ok(is_ready(&text, &pid).then_some(()))
        })?;
        ready.ok_or_else(|| Error::TooSlow {
            program: "postgres".to_owned(),
            limit: READY_LIMIT,
            output: self.home.last_words("postgres"),
        })
    }
}

impl PrivatePostgres {
    /// Leaves the server running and its folder in place, for somebody to look at.
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
    let place = ["-D".as_ref(), home.data.as_os_str()];
    home.run("initdb", arguments.iter().map(AsRef::as_ref).chain(place), HELPER_LIMIT)?;
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

/// Whether a `postmaster.pid` is this postmaster's, and says that it accepts connections.
fn is_ready(state: &str, pid: &str) -> bool {
    let mut lines = state.lines().map(str::trim);
    lines.next() == Some(pid) && lines.nth(6) == Some("ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_file_of_an_earlier_server_does_not_count() {
        let state = "12\n/data\n1700000000\n5432\n/tmp\n127.0.0.1\n  99  0\nready   \n";
        assert!(is_ready(state, "12"));
        assert!(!is_ready(state, "13"));
        assert!(!is_ready(&state.replace("ready", "starting"), "12"));
        assert!(!is_ready("", "12"));
    }
}
