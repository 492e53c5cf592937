//! Chooses the user that runs the PostgreSQL server, because PostgreSQL refuses to run as root.

use crate::Error;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user that runs the PostgreSQL server if this process is root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// Returns `None` if this process is not root, because PostgreSQL then runs as the current
    /// user.
    pub fn for_server() -> Result<Option<Self>, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let users = fs::read_to_string("/etc/passwd").map_err(Error::file("/etc/passwd"))?;
        let account = ["postgres", "nobody"].iter().find_map(|name| find(&users, name));
        account.map(Some).ok_or(Error::NoAccount)
    }

    pub fn give(self, path: &Path) -> Result<(), Error> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(Error::file(path))
    }

    pub fn run(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }
}

/// Returns the folder in which temporary folders are created. Uses `/tmp` if PostgreSQL's user
/// cannot access the system's temporary folder, or if the path of that folder is too long. The path
/// of a Unix socket has at most 108 bytes, of which the file name takes up to 40.
pub fn temporary_root(account: Option<Account>) -> PathBuf {
    let usual = std::env::temp_dir();
    let usual = usual.canonicalize().unwrap_or(usual);
    let open = |folder: &Path| {
        fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
    };
    let reachable = account.is_none() || usual.ancestors().all(open);
    if reachable && usual.as_os_str().len() <= 60 { usual } else { PathBuf::from("/tmp") }
}

fn find(users: &str, name: &str) -> Option<Account> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Account { uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/bash\n\
                         postgresql:x:7:7::/:/bin/sh\n\
                         postgres:x:101:104:PostgreSQL administrator,,,:/var/lib:/bin/bash\n";

    #[test]
    fn user_is_found_by_its_full_name() {
        assert_eq!(find(USERS, "postgres"), Some(Account { uid: 101, gid: 104 }));
        assert_eq!(find(USERS, "nobody"), None);
    }
}
