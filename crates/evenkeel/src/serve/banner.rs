//! Prints the first lines that a user sees when the server has started.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use crate::config::ServeConfig;
use crate::output::quoted;

/// Prints the address of the server and, at the first start, the next steps.
pub fn show(config: &ServeConfig, url: &str, is_first: bool) {
    if config.log.json {
        // With JSON logs, the server's address is logged and no banner is printed.
        tracing::info!(server.url = url, "Evenkeel is running at {url}");
        return;
    }
    // A failed write to standard error is ignored.
    let _ =
        write!(std::io::stderr().lock(), "{}", text(config, url, is_first, &own_name(), bold()));
}

/// Returns the shell command with which the user can run this program from the current folder.
fn own_name() -> String {
    let program = std::env::current_exe().ok().filter(|program| program.exists());
    let folder = std::env::current_dir().ok();
    match program {
        Some(program) => called(&program, folder.as_deref(), on_path().as_deref()),
        // An update replaced the program file while the program was running, so its path is
        // unknown.
        None => "evenkeel".into(),
    }
}

/// Returns the path of the program that a shell runs for the command `evenkeel`.
fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|folder| folder.join("evenkeel"));
    found.filter_map(|program| program.canonicalize().ok()).next()
}

/// Returns the shell command that runs `program` from `folder`. If the PATH contains the program,
/// the command is its name, otherwise its path.
fn called(program: &Path, folder: Option<&Path>, on_path: Option<&Path>) -> String {
    if on_path == Some(program) {
        return "evenkeel".into();
    }
    let inside = folder.and_then(|folder| program.strip_prefix(folder).ok());
    let name = match inside {
        // A shell searches the PATH for a command without a slash, so the path starts with `./`.
        Some(inside) if inside.components().count() == 1 => Path::new(".").join(inside),
        Some(inside) => inside.to_owned(),
        None => program.to_owned(),
    };
    quoted(&name.to_string_lossy())
}

fn bold() -> (&'static str, &'static str) {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if std::io::stderr().is_terminal() && !plain { ("\x1b[1m", "\x1b[0m") } else { ("", "") }
}

fn text(
    config: &ServeConfig,
    url: &str,
    is_first: bool,
    program: &str,
    bold: (&str, &str),
) -> String {
    let (on, off) = bold;
    let mut text = format!(
        "\n  {on}Evenkeel is running at {url}{off}\n  data in  {}\n",
        config.data_dir.display()
    );
    let in_dir = crate::config::StoreChoice::in_dir(&config.data_dir);
    if config.store != in_dir {
        text.push_str(&format!("  store    {}\n", config.store));
    }
    // A command needs no flag for the default data directory.
    let dir = if config.data_dir == Path::new("evenkeel-data") {
        String::new()
    } else {
        format!(" --data-dir {}", quoted(&config.data_dir.to_string_lossy()))
    };
    if config.demo {
        let removal = super::demo::removal();
        text.push_str(&format!(
            "\n  The jobs are samples. Remove all of them with\n    {program} {removal}{dir}\n"
        ));
    }
    if is_first && config.roles.api && !config.demo {
        text.push_str(&format!(
            "\n  Try this in another terminal, in this folder:\n    \
             {program} job create --name hello --every 10s --noop{dir}\n    \
             {program} run list --job hello{dir}\n"
        ));
        if !config.shell.enabled.is_on() {
            text.push_str(
                "\n  Jobs call public addresses; --enable-shell lets them run programs.\n",
            );
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RawTables;
    use crate::config::raw::{RawGlobal, RawServer, RawStore};

    #[test]
    fn first_start_shows_next_steps_and_later_starts_are_short() {
        let config = crate::config::resolve(
            &RawGlobal { data_dir: Some("d".into()), ..RawGlobal::default() },
            &RawStore::default(),
            RawServer::default(),
            RawTables::default(),
            "box",
        )
        .unwrap();
        let first = text(&config, "http://a", true, "target/evenkeel", ("", ""));
        let command =
            "    target/evenkeel job create --name hello --every 10s --noop --data-dir d\n";
        assert!(first.contains(command), "{first}");
        let later = text(&config, "http://a", false, "target/evenkeel", ("", ""));
        assert_eq!(later, "\n  Evenkeel is running at http://a\n  data in  d\n\n");
        let config = ServeConfig { demo: true, ..config };
        for is_first in [true, false] {
            let demo = text(&config, "http://a", is_first, "evenkeel", ("", ""));
            let command = "    evenkeel job delete --all --metadata demo=true --yes --data-dir d\n";
            assert!(demo.contains(command) && !demo.contains("job create"), "{demo}");
        }
    }

    #[test]
    fn program_is_named_as_in_the_shell() {
        let program = Path::new("/home/ann/my code/target/release/evenkeel");
        let from = |folder: &str, on_path: Option<&str>| {
            called(program, Some(Path::new(folder)), on_path.map(Path::new))
        };
        assert_eq!(from("/home/ann/my code", None), "target/release/evenkeel");
        assert_eq!(from("/home/ann/my code", Some("/usr/bin/evenkeel")), "target/release/evenkeel");
        assert_eq!(from("/home/ann/my code/target/release", None), "./evenkeel");
        assert_eq!(from("/", None), "'home/ann/my code/target/release/evenkeel'");
        assert_eq!(from("/tmp", None), "'/home/ann/my code/target/release/evenkeel'");
        assert_eq!(from("/tmp", Some(&program.to_string_lossy())), "evenkeel");
    }
}
