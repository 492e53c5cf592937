use crate::bounded;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Returns the folder with the programs of the newest PostgreSQL server that Debian's packages
/// installed, or else of the PostgreSQL server in the PATH.
pub fn find() -> Option<PathBuf> {
    newest_under(Path::new("/usr/lib/postgresql")).or_else(|| {
        let in_path = answer("pg_config", &["--bindir"]).map(PathBuf::from);
        in_path.filter(|folder| is_complete(folder)).or_else(|| {
            let program = PathBuf::from(answer("which", &["initdb"])?).canonicalize().ok()?;
            program.parent().filter(|folder| is_complete(folder)).map(Path::to_owned)
        })
    })
}

fn newest_under(root: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(root).ok()?.filter_map(|entry| {
        let entry = entry.ok()?;
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let folder = entry.path().join("bin");
        is_complete(&folder).then_some((version, folder))
    });
    versions.max().map(|(_, folder)| folder)
}

/// An installation of only the PostgreSQL client does not contain all three programs.
fn is_complete(folder: &Path) -> bool {
    ["initdb", "postgres", "createdb"].iter().all(|program| folder.join(program).is_file())
}

/// Runs a program and returns the single line that it prints.
fn answer(program: &str, arguments: &[&str]) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let Some(status) = bounded::wait(&mut child, ANSWER_LIMIT).ok()? else {
        child.kill().and_then(|()| child.wait()).ok()?;
        return None;
    };
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(root: &Path, version: &str, programs: &[&str]) {
        let folder = root.join(version).join("bin");
        fs::create_dir_all(&folder).unwrap();
        for program in programs {
            fs::write(folder.join(program), "").unwrap();
        }
    }

    #[test]
    fn newest_complete_server_is_found() {
        let root = tempfile::tempdir().unwrap();
        let complete = ["initdb", "postgres", "createdb"];
        install(root.path(), "9", &complete);
        install(root.path(), "15", &complete);
        install(root.path(), "17", &["createdb"]);
        assert_eq!(newest_under(root.path()), Some(root.path().join("15/bin")));
    }
}
