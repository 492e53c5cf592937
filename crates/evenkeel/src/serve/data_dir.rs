//! The data directory of a server. A lock file ensures that only one server at a time uses a data
//! directory.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use evenkeel_core::chance::Chance;
use evenkeel_core::{JobId, Timestamp};
use evenkeel_engine::Clock;
use uuid::Uuid;

use crate::config::StoreChoice;
use crate::{Failure, Result};

/// Time limit for shell programs of the previous server process to end. When a server dies,
/// supervisors stop its shell programs within one or two seconds.
const BODIES_TIMEOUT: Duration = Duration::from_secs(10);

/// A data directory that this process has locked.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// The operating system releases these file locks when the process ends, even if it is killed.
    _locks: Vec<File>,
}

impl DataDir {
    /// Creates the data directory if necessary and locks it. Also locks a SQLite database file,
    /// because a server with another data directory might use the same file.
    pub fn lock(path: &Path, store: &StoreChoice) -> Result<Self> {
        create(path)?;
        let path = std::fs::canonicalize(path).map_err(|error| unusable(path, &error))?;
        let mut locks = vec![take(&path.join("lock"), &path)?];
        if let StoreChoice::Sqlite(file) = store {
            locks.push(take(&with_ending(file, ".lock"), file)?);
        }
        Ok(Self { path, _locks: locks })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that is locked while shell programs run.
    pub fn bodies_lock(&self) -> PathBuf {
        self.path.join("bodies.lock")
    }

    /// Returns the identity of this node, which survives restarts.
    pub fn identity(&self, now: Timestamp, chance: &dyn Chance) -> Result<Uuid> {
        let file = self.path.join("node-id");
        match std::fs::read_to_string(&file) {
            Ok(text) => text.trim().parse().map_err(|_| {
                Failure::failed(format!("{} does not hold a node's id", file.display()))
                    .or_else("delete it if no other node has a copy of this directory")
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let identity = JobId::new(now, chance.ten_bytes()).0;
                self.write("node-id", &format!("{identity}\n"))?;
                Ok(identity)
            }
            Err(error) => Err(unusable(&file, &error)),
        }
    }

    /// Waits until no shell program of a previous server process is running. Releases the lock on
    /// `bodies.lock` immediately, because this server's supervisors lock the same file.
    pub async fn wait_for_bodies(&self, clock: &dyn Clock) -> Result {
        let path = self.bodies_lock();
        let file = open_private(&path).map_err(|error| unusable(&path, &error))?;
        let deadline = clock.monotonic() + BODIES_TIMEOUT;
        let mut logged = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(unusable(&path, &error)),
                Err(TryLockError::WouldBlock) if clock.monotonic() < deadline => {
                    if !logged {
                        tracing::info!(
                            "waiting until programs that the previous server process started have ended"
                        );
                        logged = true;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(TryLockError::WouldBlock) => {
                    let what = "programs of the previous server process still run";
                    return Err(Failure::failed(what).or_else(format!(
                        "wait for them, or end them: `fuser -v {}` shows what holds them",
                        path.display()
                    )));
                }
            }
        }
    }

    /// Writes a file atomically, readable only for its owner.
    pub fn write(&self, name: &str, text: &str) -> Result {
        let (file, fresh) = (self.path.join(name), self.path.join(format!(".{name}.new")));
        let written = open_private(&fresh)
            .and_then(|mut file| {
                file.set_len(0)?;
                file.write_all(text.as_bytes())?;
                file.sync_all()
            })
            .and_then(|()| std::fs::rename(&fresh, &file));
        written.map_err(|error| unusable(&file, &error))
    }

    pub fn remove(&self, name: &str) {
        let file = self.path.join(name);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    file.name = name,
                    "could not remove a file from the data directory; ignoring it"
                );
            }
            _ => {}
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }
}

/// Name of the file in which a server records the address of its store, without the password.
pub const STORE: &str = "store";

/// Returns an error if the command would use the SQLite store of the data directory but the server
/// uses PostgreSQL. The server would refuse credentials that were created in another store.
pub fn check_server_store(store: &StoreChoice, data_dir: &Path) -> Result {
    if *store != StoreChoice::in_dir(data_dir) {
        return Ok(());
    }
    let used = std::fs::read_to_string(data_dir.join(STORE)).unwrap_or_default();
    if !used.trim().starts_with("postgres") {
        return Ok(());
    }
    let what = format!("the server of {} uses the store {}", data_dir.display(), used.trim());
    Err(Failure::usage(what).or_else("name it with --store, or in EVENKEEL_STORE"))
}

/// Creates the data directory if the store is in it, for commands that run before the first start
/// of a server.
pub fn create_for(store: &StoreChoice, data_dir: &Path) -> Result {
    if *store == StoreChoice::in_dir(data_dir) { create(data_dir) } else { Ok(()) }
}

fn create(path: &Path) -> Result {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.map_err(|error| unusable(path, &error))
}

fn take(lock: &Path, what: &Path) -> Result<File> {
    let mut file = open_private(lock).map_err(|error| unusable(lock, &error))?;
    match file.try_lock() {
        Ok(()) => {
            let note = file
                .set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| writeln!(file, "{}", std::process::id()));
            note.map_err(|error| unusable(lock, &error))?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // The process id in the lock file is only for the error message. Only the lock itself
            // shows whether a server is running.
            let _ = file.read_to_string(&mut holder);
            let holder = match holder.trim() {
                "" => String::new(),
                pid => format!(" (process {pid})"),
            };
            let what = format!("another server{holder} runs on {}", what.display());
            Err(Failure::failed(what).or_else("stop that server, or choose another --data-dir"))
        }
        Err(TryLockError::Error(error)) => Err(unusable(lock, &error)),
    }
}

/// Returns a path with `ending` appended to the file name.
pub fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

fn open_private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn unusable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} can't be used: {error}", path.display()))
        .or_else("choose a folder that you may write to with --data-dir")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use evenkeel_engine::{RandomChance, SystemClock};

    use super::*;

    fn store(path: &Path) -> StoreChoice {
        StoreChoice::in_dir(path)
    }

    #[test]
    fn new_directory_is_private_and_keeps_the_node_identity() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let dir = DataDir::lock(&path, &store(&path)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        let chance = RandomChance::from_seed(1);
        let first = dir.identity(Timestamp::MIN, &chance).unwrap();
        assert_eq!(dir.identity(Timestamp::MIN, &chance).unwrap(), first);
        dir.write("token", "x").unwrap();
        let mode = std::fs::metadata(dir.path().join("token")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn second_server_is_refused_with_the_pid_of_the_first() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path();
        let first = DataDir::lock(path, &store(path)).unwrap();
        let refused = DataDir::lock(path, &store(path)).unwrap_err();
        assert!(refused.what.contains(&format!("(process {})", std::process::id())));
        drop(first);
        assert!(DataDir::lock(path, &store(path)).is_ok());
    }

    #[test]
    fn two_directories_cannot_share_a_file() {
        let parent = tempfile::tempdir().unwrap();
        let shared = StoreChoice::Sqlite(parent.path().join("x.db"));
        let _first = DataDir::lock(&parent.path().join("a"), &shared).unwrap();
        assert!(DataDir::lock(&parent.path().join("b"), &shared).is_err());
    }

    #[tokio::test]
    async fn start_waits_for_bodies_of_the_previous_process() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path();
        let dir = DataDir::lock(path, &store(path)).unwrap();
        let body = open_private(&dir.bodies_lock()).unwrap();
        body.lock_shared().unwrap();
        let clock = SystemClock::default();
        let wait = dir.wait_for_bodies(&clock);
        let end = async {
            tokio::task::yield_now().await;
            drop(body);
        };
        let (waited, ()) = tokio::join!(wait, end);
        waited.unwrap();
        // `wait_for_bodies` has released its lock, so new supervisors can lock the file.
        open_private(&dir.bodies_lock()).unwrap().try_lock_shared().unwrap();
    }
}
