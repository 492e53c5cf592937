//! Checks that the commands of the README and of the server's banner can be pasted unchanged.
//!
//! The `sh` blocks of the README run in order. One shell, in the folder of a server, runs all
//! commands of a block. Blocks that need a terminal or a database, or that take minutes, are
//! skipped ([`Block::of`]). Jobs that call example.com are created; whether their calls succeed
//! does not matter.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Server, wait_for};

const README: &str = include_str!("../../../../README.md");

enum Block {
    /// A block that stops the running server, if any, and starts a server with these arguments.
    Serve(Vec<&'static str>),
    Paste(&'static str),
    Skip,
}

impl Block {
    fn of(block: &'static str) -> Self {
        let commands = || block.lines().map(str::trim).filter(|line| !line.is_empty());
        let serve = |line: &'static str| {
            line.strip_prefix("cargo run --release -- serve")
                .or(line.strip_prefix("evenkeel serve"))
        };
        let is_elsewhere = |line: &str| {
            // The test skips commands that build and test everything, need a database, or take
            // minutes.
            line.starts_with("cargo xtask")
                || line.contains("postgres://")
                || line.starts_with("evenkeel bench")
        };
        if commands().all(is_elsewhere) {
            return Self::Skip;
        }
        if let Some(args) = commands().find_map(serve) {
            let alone = commands().all(|line| serve(line).is_some() || is_elsewhere(line));
            assert!(alone, "a server needs its own terminal: {block}");
            return Self::Serve(args.split_whitespace().take_while(|it| *it != "#").collect());
        }
        Self::Paste(block)
    }
}

fn blocks() -> Vec<&'static str> {
    let mut blocks = Vec::new();
    let mut rest = README;
    while let Some((_, begun)) = rest.split_once("```sh\n") {
        let (block, behind) = begun.split_once("```").unwrap();
        blocks.push(block);
        rest = behind;
    }
    blocks
}

/// Runs the commands of a README block in a shell in the server's folder. The PATH contains the
/// folder of the program, as the README assumes after `cargo run --release`.
fn paste(server: &Server, block: &str) {
    let built = server.folder.path().join("target/release");
    std::fs::create_dir_all(&built).unwrap();
    let program = built.join("evenkeel");
    if !program.exists() {
        symlink(env!("CARGO_BIN_EXE_evenkeel"), &program).unwrap();
    }
    // The test server has another port than the default port that the README uses.
    let address = server.url().replace("http://", "");
    let block = block.replace("localhost:8060", &address);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(built).chain(std::env::split_paths(&path));
    shell(server.folder.path(), &block, Some(std::env::join_paths(folders).unwrap()));
}

fn shell(folder: &Path, text: &str, path: Option<std::ffi::OsString>) {
    let path = path.or(std::env::var_os("PATH")).unwrap_or_default();
    let output = Command::new("bash")
        .args(["-e", "-u", "-o", "pipefail", "-c", text])
        .env_clear()
        .env("PATH", path)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let result = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n--- output ---\n{result}{err}");
}

#[test]
fn readme_blocks_can_be_pasted() {
    let mut server: Option<Server> = None;
    let mut pasted = 0;
    // The README creates the job `ping` with `curl`, which succeeds even if the server refuses the
    // job.
    let mut names = vec!["ping"];
    for block in blocks() {
        match (Block::of(block), &mut server) {
            (Block::Skip, _) => {}
            (Block::Serve(args), Some(server)) => server.restart_with(&args),
            (Block::Serve(args), none) => *none = Some(Server::start(&args)),
            (Block::Paste(block), Some(server)) => {
                pasted += 1;
                paste(server, block);
                let result = block.split("--name ").skip(1);
                names.extend(result.filter_map(|rest| rest.split_whitespace().next()));
            }
            (Block::Paste(block), None) => panic!("no server was started before: {block}"),
        }
    }
    assert!(pasted >= 5 && names.len() >= 8, "the README shows less than it did: {names:?}");
    let server = server.unwrap();
    for name in names {
        assert_eq!(server.json(&["job", "show", name])["name"], name);
    }
    assert!(!README.contains("| jq"), "not every machine has jq");
}

#[test]
fn banner_commands_work_unchanged() {
    let server = Server::start(&["--data-dir", "evenkeel-data"]);
    let commands = wait_for("the banner", || {
        let log = server.log();
        let (_, commands) = log.split_once("in this folder:\n")?;
        commands.split_once("\n\n").map(|(commands, _)| commands.to_owned())
    });
    assert_eq!(commands.lines().count(), 2, "{commands}");
    shell(server.folder.path(), &commands, None);
    assert_eq!(server.json(&["job", "show", "hello"])["name"], "hello");
}
