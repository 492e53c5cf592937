//! Shell jobs: `enable_shell`, and the keys `shell_…` of the table `[executors]` of the config
//! file.

use std::path::PathBuf;
use std::str::FromStr;

use evenkeel_access::DEFAULT_TENANT;
use evenkeel_executors::CgroupUse;
use serde::{Deserialize, Deserializer, de};

use super::Result;
use super::executors::workers;
use super::raw::{boolean, settings};
use super::resolve::{choice, invalid};

settings! {
    (hide_short_help = true, help_heading = "Executors")
    /// Unresolved settings of programs.
    pub struct RawShell {
        /// Maximum number of programs that run at the same time [default: 256]
        #[arg(env = "EVENKEEL_SHELL_WORKERS", value_name = "N")]
        pub shell_workers: Option<u32>,

        /// Environment variables of the server that programs also receive, besides PATH, LANG,
        /// LC_ALL and TZ
        #[arg(env = "EVENKEEL_SHELL_ENV", value_delimiter = ',', value_name = "NAMES")]
        pub shell_env: Option<Vec<String>>,

        /// User that runs the programs; TENANT/USER for one tenant; repeatable. A user other than
        /// the server's user needs a server that runs as root [default: nobody if the server runs
        /// as root, else the server's user]
        #[arg(env = "EVENKEEL_SHELL_USER", value_delimiter = ',', value_name = "USER")]
        pub shell_user: Option<Vec<String>>,

        /// Additional users that shell jobs may choose; the server must run as root
        #[arg(env = "EVENKEEL_SHELL_USERS", value_delimiter = ',', value_name = "USERS")]
        pub shell_users: Option<Vec<String>>,

        /// Allowed programs, as absolute paths [default: any]
        #[arg(env = "EVENKEEL_SHELL_PROGRAMS", value_delimiter = ',', value_name = "PATHS")]
        pub shell_programs: Option<Vec<PathBuf>>,

        /// Additional files and folders to hide from programs, besides the data directory, the
        /// config file and the server's keys
        #[arg(env = "EVENKEEL_SHELL_HIDE", value_delimiter = ',', value_name = "PATHS")]
        pub shell_hide: Option<Vec<PathBuf>>,

        /// Run programs as the server's user, even as root, without hiding files: the programs can
        /// read the data directory and get administrator rights for every tenant
        #[arg(env = "EVENKEEL_SHELL_UNCONFINED", value_name = "BOOL", value_parser = boolean())]
        #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub shell_unconfined: Option<bool>,

        /// Run each program in a separate control group: auto, off or required [default: auto]
        #[arg(env = "EVENKEEL_SHELL_CGROUP", value_name = "MODE")]
        pub shell_cgroup: Option<String>,
    }
}

/// The tenants whose jobs may run programs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum EnableShell {
    #[default]
    Off,
    Tenants(Vec<String>),
    All,
}

impl EnableShell {
    /// True if any tenant may run programs.
    pub fn is_on(&self) -> bool {
        *self != Self::Off
    }

    fn of(names: Vec<String>) -> Result<Self, String> {
        if names.iter().any(|name| name == "*") {
            return Ok(Self::All);
        }
        if names.is_empty() || names.iter().any(String::is_empty) {
            return Err("name the tenants, like default,acme; * is all".into());
        }
        Ok(Self::Tenants(names))
    }
}

impl From<bool> for EnableShell {
    fn from(on: bool) -> Self {
        if on { Self::Tenants(vec![DEFAULT_TENANT.into()]) } else { Self::Off }
    }
}

impl FromStr for EnableShell {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" | "t" | "y" => Ok(true.into()),
            "false" | "no" | "off" | "0" | "f" | "n" => Ok(false.into()),
            _ => Self::of(text.split(',').map(|name| name.trim().to_owned()).collect()),
        }
    }
}

impl<'de> Deserialize<'de> for EnableShell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = EnableShell;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("true, false or a list of tenants")
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<EnableShell, E> {
                Ok(on.into())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<EnableShell, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<EnableShell, A::Error> {
                let mut names = Vec::new();
                while let Some(name) = seq.next_element()? {
                    names.push(name);
                }
                EnableShell::of(names).map_err(de::Error::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// Resolved settings of programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShellConfig {
    pub enabled: EnableShell,
    pub workers: usize,
    pub env: Vec<String>,
    pub user: Option<String>,
    pub tenant_users: Vec<(String, String)>,
    pub users: Vec<String>,
    /// The programs that shell jobs may run; an empty list allows all programs.
    pub programs: Vec<PathBuf>,
    pub hide: Vec<PathBuf>,
    pub unconfined: bool,
    pub cgroup: CgroupUse,
}

pub(super) fn resolve(enabled: Option<EnableShell>, raw: RawShell) -> Result<ShellConfig> {
    let (mut user, mut tenant_users) = (None, Vec::new());
    for text in raw.shell_user.unwrap_or_default() {
        match text.split_once('/') {
            None if !text.is_empty() && user.is_none() => user = Some(text),
            Some((tenant, user)) if !tenant.is_empty() && !user.is_empty() => {
                tenant_users.push((tenant.to_owned(), user.to_owned()));
            }
            _ => {
                let message =
                    format!("{text:?} is not a user, or is a second user for all tenants");
                let way_out = "write nobody, or acme/reports for the tenant acme";
                return Err(invalid("[executors] shell_user", message, way_out));
            }
        }
    }
    let programs = raw.shell_programs.unwrap_or_default();
    let relative =
        programs.iter().chain(raw.shell_hide.iter().flatten()).find(|p| !p.is_absolute());
    if let Some(path) = relative {
        let message = format!("{} is not an absolute path", path.display());
        let way_out = "write it like /usr/bin/find";
        return Err(invalid("[executors] shell_programs, shell_hide", message, way_out));
    }
    Ok(ShellConfig {
        enabled: enabled.unwrap_or_default(),
        workers: workers("[executors] shell_workers", raw.shell_workers, 256)?,
        env: raw.shell_env.unwrap_or_default(),
        user,
        tenant_users,
        users: raw.shell_users.unwrap_or_default(),
        programs,
        hide: raw.shell_hide.unwrap_or_default(),
        unconfined: raw.shell_unconfined == Some(true),
        cgroup: choice(
            ("[executors] shell_cgroup", "mode", "the modes are auto, off and required"),
            raw.shell_cgroup.as_deref(),
            &[
                ("auto", CgroupUse::Auto),
                ("off", CgroupUse::Off),
                ("required", CgroupUse::Required),
            ],
        )?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    fn resolved(raw: RawShell) -> Result<ShellConfig, String> {
        resolve(None, raw).map_err(|error| {
            let failure = Failure::from(error);
            format!("{} | {}", failure.what, failure.way_out.unwrap_or_default())
        })
    }

    #[test]
    fn defaults_allow_nothing_dangerous() {
        let config = resolved(RawShell::default()).unwrap();
        assert_eq!((config.enabled, config.cgroup), (EnableShell::Off, CgroupUse::Auto));
        assert!(config.users.is_empty() && config.user.is_none() && !config.unconfined);
    }

    #[test]
    fn enable_shell_alone_applies_to_the_default_tenant() {
        let named = |names: &[&str]| {
            EnableShell::Tenants(names.iter().map(|name| (*name).to_owned()).collect())
        };
        for (text, expected) in [
            ("true", named(&["default"])),
            ("1", named(&["default"])),
            ("off", EnableShell::Off),
            ("acme, b", named(&["acme", "b"])),
            ("*", EnableShell::All),
        ] {
            assert_eq!(text.parse::<EnableShell>().unwrap(), expected, "{text}");
        }
        assert!("a,,b".parse::<EnableShell>().is_err());
    }

    #[test]
    fn shell_users_apply_to_all_or_to_one_tenant() {
        let users = |texts: &[&str]| {
            let shell_user = Some(texts.iter().map(|text| (*text).to_owned()).collect());
            resolved(RawShell { shell_user, ..RawShell::default() })
        };
        let config = users(&["jobs", "acme/reports"]).unwrap();
        assert_eq!(config.user.as_deref(), Some("jobs"));
        assert_eq!(config.tenant_users, [("acme".to_owned(), "reports".to_owned())]);
        for wrong in [&["a", "b"][..], &["/a"], &["a/"], &[""]] {
            let refusal = users(wrong).unwrap_err();
            assert!(refusal.contains("acme/reports for the tenant acme"), "{refusal}");
        }
    }

    #[test]
    fn each_error_names_the_key_and_the_way_out() {
        let cgroup = RawShell { shell_cgroup: Some("on".into()), ..RawShell::default() };
        assert!(resolved(cgroup).unwrap_err().contains("auto, off and required"));
        let shell_programs = Some(vec!["find".into()]);
        let refusal = resolved(RawShell { shell_programs, ..RawShell::default() }).unwrap_err();
        assert!(refusal.contains("find is not an absolute path"), "{refusal}");
    }
}
