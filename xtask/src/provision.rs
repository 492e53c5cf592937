//! Installs the tools that the tests need on a bare Debian machine.

use crate::program::{self, succeed, works};
use crate::workspace;
use anyhow::{Context, Result, bail, ensure};
use evenkeel_private_postgres::PrivatePostgres;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const DOWNLOAD_LIMIT: Duration = Duration::from_secs(20 * 60);

/// This script runs as root. The setting `create_main_cluster` keeps Debian's PostgreSQL package
/// from creating and starting a cluster.
const INSTALL: &str = r#"
set -e
if [ "$1" = postgresql ] && [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf
fi
export DEBIAN_FRONTEND=noninteractive UCF_FORCE_CONFFOLD=1
apt-get -o DPkg::Lock::Timeout=300 update
apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold \
    install -y --no-install-recommends "$1"
"#;

/// Unpacks a Debian package without installing it. The script that unpacks a Debian package needs
/// root rights only if the package lists are missing.
const UNPACK: &str = r#"
set -e
apt-get download "$1" || { apt-get -o DPkg::Lock::Timeout=300 update && apt-get download "$1"; }
dpkg-deb -x "$1"_*.deb .
rm "$1"_*.deb
"#;

pub fn everything() -> Result<()> {
    postgres()?;
    if !is_installed("git") {
        debian_package("git")?;
    }
    component("fmt", "rustfmt")?;
    component("clippy", "clippy")
}

pub fn postgres() -> Result<()> {
    if PrivatePostgres::find_binaries().is_some() {
        return Ok(());
    }
    debian_package("postgresql")?;
    let is_found = PrivatePostgres::find_binaries().is_some();
    ensure!(is_found, "postgresql was installed, but its server programs were not found");
    Ok(())
}

/// Installs Python with the modules for virtual environments.
pub fn python() -> Result<()> {
    if works(Command::new("python3").args(["-c", "import ensurepip, venv"])) {
        return Ok(());
    }
    debian_package("python3-venv")
}

/// Installs Chromium and the program that drives it.
pub fn chromium() -> Result<()> {
    for (program, package) in [("chromium", "chromium"), ("chromedriver", "chromium-driver")] {
        if !is_installed(program) {
            debian_package(package)?;
        }
    }
    Ok(())
}

/// Returns promtool. Debian's package `prometheus` is unpacked but not installed. Installing the
/// package `prometheus` would start a server and add many dependencies.
pub fn promtool() -> Result<PathBuf> {
    let installed = PathBuf::from("promtool");
    if is_installed(&installed) {
        return Ok(installed);
    }
    let folder = workspace::target()?.join("promtool");
    let unpacked = folder.join("usr/bin/promtool");
    if is_installed(&unpacked) {
        return Ok(unpacked);
    }
    let has_apt = is_installed("apt-get");
    ensure!(has_apt, "promtool is missing, and apt-get is not available: please install it");
    println!("promtool is missing: unpacking Debian's prometheus");
    fs::create_dir_all(&folder)?;
    let mut unpack = Command::new("sh");
    unpack.args(["-c", UNPACK, "unpack", "prometheus"]).current_dir(&folder);
    succeed(&mut unpack, DOWNLOAD_LIMIT).context("cannot download Debian's prometheus")?;
    Ok(unpacked)
}

fn is_installed(program: impl AsRef<OsStr>) -> bool {
    works(Command::new(program).arg("--version"))
}

fn debian_package(name: &str) -> Result<()> {
    println!("{name} is missing: installing Debian's");
    let has_apt = is_installed("apt-get");
    ensure!(has_apt, "{name} is missing, and apt-get is not available: please install it");
    let mut install = if rustix::process::geteuid().is_root() {
        Command::new("sh")
    } else if is_installed("sudo") {
        let mut sudo = Command::new("sudo");
        sudo.arg("sh");
        sudo
    } else {
        bail!("{name} is missing; as root, run: apt-get install {name}")
    };
    succeed(install.args(["-c", INSTALL, "install", name]), DOWNLOAD_LIMIT)
}

fn component(subcommand: &str, name: &str) -> Result<()> {
    if works(&mut program::cargo(&[subcommand, "--version"])) {
        return Ok(());
    }
    println!("{name} is missing: installing it with rustup");
    succeed(Command::new("rustup").args(["component", "add", name]), DOWNLOAD_LIMIT)
}

/// True if nextest is installed. nextest is optional and not installed automatically, because
/// building it takes longer than it saves. Without nextest, `cargo test` runs the tests.
pub fn has_nextest() -> bool {
    works(&mut program::cargo(&["nextest", "--version"]))
}
