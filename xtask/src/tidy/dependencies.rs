//! Finds banned crates in `Cargo.lock`, also indirect dependencies.
//!
//! The check for banned crates needs no network and knows only the crates listed in this file.
//! `cargo xtask advisories` checks the whole RustSec database.

use super::Finding;

/// Stands for the first allowed version in the row of a crate that is banned in all versions.
const NEVER: [u64; 3] = [u64::MAX; 3];

/// Banned crates, with the first allowed version and the reason.
const BANNED: [(&str, [u64; 3], &str); 7] = [
    (
        "rsa",
        NEVER,
        "its private-key operations leak through their timing (RUSTSEC-2023-0071); use ring",
    ),
    ("aws-lc-sys", NEVER, "it takes minutes to compile; use ring"),
    ("openssl-sys", NEVER, "it needs the system's library; use rustls"),
    (
        "tracing-subscriber",
        [0, 3, 20],
        "it writes escape sequences of users into logs (RUSTSEC-2025-0055)",
    ),
    ("ring", [0, 17, 12], "some of its functions panic on overflow (RUSTSEC-2025-0009)"),
    ("rustls", [0, 23, 18], "a client can make it panic (RUSTSEC-2024-0399)"),
    ("idna", [1, 0, 0], "it takes different names for the same one (RUSTSEC-2024-0421)"),
];

/// Finds banned crates in the text of a `Cargo.lock`.
pub(super) fn banned(lock: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(" = \"")?.strip_suffix('"')
        };
        let (Some(name), Some(version)) = (field("name"), field("version")) else { continue };
        let Some((_, allowed, why)) = BANNED.iter().find(|banned| banned.0 == name) else {
            continue;
        };
        if numbers(version) < *allowed {
            let text = format!(
                "Cargo.lock has {name} {version}: {why}; `cargo tree -i {name}` shows its dependents"
            );
            findings.push(Finding::Wrong(text));
        }
    }
    findings
}

/// Returns the three numbers of a version, without a suffix.
fn numbers(version: &str) -> [u64; 3] {
    let mut numbers = [0; 3];
    for (part, number) in numbers.iter_mut().zip(version.split(['.', '-', '+'])) {
        *part = number.parse().unwrap_or(0);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(packages: &[(&str, &str)]) -> String {
        let package = |(name, version): &(&str, &str)| {
            format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n\n")
        };
        format!("version = 4\n\n{}", packages.iter().map(package).collect::<String>())
    }

    #[test]
    fn a_banned_crate_is_found_with_its_reason() {
        let findings = banned(&lock(&[("serde", "1.0.0"), ("rsa", "0.9.10")]));
        let [Finding::Wrong(text)] = &findings[..] else { panic!("{findings:?}") };
        assert!(text.contains("rsa 0.9.10") && text.contains("RUSTSEC-2023-0071"), "{text}");
    }

    #[test]
    fn old_versions_are_found_and_allowed_ones_are_not() {
        for (version, allowed) in
            [("0.3.9", false), ("0.3.19", false), ("0.3.20", true), ("0.4.0-rc.1", true)]
        {
            let findings = banned(&lock(&[("tracing-subscriber", version)]));
            assert_eq!(findings.is_empty(), allowed, "{version}");
        }
    }

    #[test]
    fn this_workspace_has_no_banned_crate() {
        let lock = std::fs::read_to_string(crate::workspace::root().join("Cargo.lock")).unwrap();
        assert_eq!(banned(&lock), []);
        assert!(lock.contains("name = \"ring\""), "the lock was not read");
    }
}
