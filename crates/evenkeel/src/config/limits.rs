//! Concurrency limits: the table `[limits]` of the config file.

use std::collections::BTreeMap;
use std::str::FromStr;

use evenkeel_core::limit::SHARED_LIMIT_MAX;
use evenkeel_core::order::Lane;
use serde::Deserialize;

use super::Result;
use super::raw::settings;
use super::resolve::invalid;

/// Concurrency limits by name. In the config file, the limits are a table. In a flag, the limits
/// are a list such as `news=50,shop=20`.
#[derive(Deserialize, Clone, PartialEq, Eq, Default, Debug)]
#[serde(transparent)]
pub struct Named(BTreeMap<String, u32>);

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = |part: &str| {
            let (name, number) = part.split_once('=').ok_or_else(|| bad_part(part))?;
            let number = number.trim().parse().map_err(|_| bad_part(part))?;
            Ok((name.trim().to_owned(), number))
        };
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        parts.map(read).collect::<Result<_, String>>().map(Self)
    }
}

fn bad_part(part: &str) -> String {
    format!("{part:?} is not a name with its limit, like news=50")
}

settings! {
    (hide_short_help = true, help_heading = "Limits")
    /// Unresolved settings of limits.
    pub struct RawLimits {
        /// Maximum number of active runs of each tenant in the cluster [default: no limit]
        #[arg(long = "limit-tenant", env = "EVENKEEL_LIMIT_TENANT", value_name = "N")]
        pub tenant: Option<u32>,

        /// Maximum number of active runs of individual tenants, like news=50,shop=20
        #[arg(long = "limit-tenants", env = "EVENKEEL_LIMIT_TENANTS", value_name = "LIMITS")]
        pub tenants: Option<Named>,

        /// Maximum number of active runs of a lane over all tenants, like batch=200
        #[arg(long = "limit-lanes", env = "EVENKEEL_LIMIT_LANES", value_name = "LIMITS")]
        pub lanes: Option<Named>,
    }
}

/// Resolved settings of limits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LimitsConfig {
    /// Concurrency limit of each tenant that has no limit of its own in `tenants`.
    pub tenant: Option<u32>,
    pub tenants: BTreeMap<String, u32>,
    pub lanes: [Option<u32>; Lane::ALL.len()],
}

pub(super) fn resolve(raw: &RawLimits) -> Result<LimitsConfig> {
    let mut lanes = [None; Lane::ALL.len()];
    for (name, limit) in raw.lanes.iter().flat_map(|lanes| &lanes.0) {
        let lane = Lane::ALL.into_iter().find(|lane| lane.as_str() == name).ok_or_else(|| {
            let message = format!("{name:?} is not a lane");
            invalid("[limits] lanes", message, "the lanes are critical, standard and batch")
        })?;
        lanes[lane as usize] = Some(checked("[limits] lanes", *limit)?);
    }
    let mut tenants = BTreeMap::new();
    for (name, limit) in raw.tenants.iter().flat_map(|tenants| &tenants.0) {
        if name.is_empty() {
            let way_out = "write them like news = 50";
            return Err(invalid("[limits] tenants", "a tenant needs a name".to_owned(), way_out));
        }
        tenants.insert(name.clone(), checked("[limits] tenants", *limit)?);
    }
    let tenant = raw.tenant.map(|limit| checked("[limits] tenant", limit)).transpose()?;
    Ok(LimitsConfig { tenant, tenants, lanes })
}

fn checked(key: &'static str, limit: u32) -> Result<u32> {
    if (1..=SHARED_LIMIT_MAX).contains(&limit) {
        return Ok(limit);
    }
    let message = format!("{limit} is not between 1 and {SHARED_LIMIT_MAX}");
    Err(invalid(key, message, "leave it out for no limit"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    #[test]
    fn omitted_keys_set_no_limit() {
        assert_eq!(resolve(&RawLimits::default()).unwrap(), LimitsConfig::default());
    }

    #[test]
    fn all_keys_are_read_from_file_and_flags() {
        let file = "tenant = 500\ntenants = { news = 50 }\nlanes = { batch = 200, critical = 1 }";
        let file: RawLimits = toml::from_str(file).unwrap();
        let flags = RawLimits {
            tenant: Some(500),
            tenants: Some("news=50".parse().unwrap()),
            lanes: Some(" batch = 200, critical=1,".parse().unwrap()),
        };
        let limits = LimitsConfig {
            tenant: Some(500),
            tenants: [("news".to_owned(), 50)].into(),
            lanes: [Some(1), None, Some(200)],
        };
        assert_eq!(resolve(&file).unwrap(), limits);
        assert_eq!(resolve(&flags.or(&RawLimits::default())).unwrap(), limits);
        assert!("news".parse::<Named>().is_err());
        assert!("news=many".parse::<Named>().is_err());
    }

    #[test]
    fn each_error_names_the_key_and_the_way_out() {
        let named = |text: &str| Some(text.parse::<Named>().unwrap());
        let default = RawLimits::default;
        for (raw, key) in [
            (RawLimits { tenant: Some(0), ..default() }, "tenant"),
            (RawLimits { tenant: Some(100_001), ..default() }, "tenant"),
            (RawLimits { tenants: named("news=0"), ..default() }, "tenants"),
            (RawLimits { tenants: named("=7"), ..default() }, "tenants"),
            (RawLimits { lanes: named("slow=7"), ..default() }, "lanes"),
            (RawLimits { lanes: named("batch=0"), ..default() }, "lanes"),
        ] {
            let failure = Failure::from(resolve(&raw).unwrap_err());
            assert!(failure.what.starts_with(&format!("[limits] {key}: ")), "{}", failure.what);
            assert!(failure.way_out.is_some_and(|advice| advice.len() > 10));
        }
    }
}
