//! Lists of HTTP statuses in a job's configuration.

use evenkeel_core::executor::{ConfigFault, Fields};
use evenkeel_outbound::reqwest::StatusCode;
use serde_json::Value;

/// HTTP statuses and classes of statuses such as `"2xx"`.
#[derive(Debug)]
pub(super) struct Statuses(Vec<Pick>);

#[derive(Debug)]
enum Pick {
    One(u16),
    /// The first digit of the statuses in the class.
    Class(u16),
}

impl Statuses {
    /// Reads the field `name`, which holds one status or class, or a list of statuses and classes.
    pub(super) fn parse(fields: &Fields<'_>, name: &str) -> Result<Option<Self>, ConfigFault> {
        let picks = match fields.get(name) {
            None => return Ok(None),
            Some(Value::Array(list)) => list.iter().map(Pick::parse).collect(),
            Some(one) => Pick::parse(one).map(|pick| vec![pick]),
        };
        match picks {
            Some(picks) if !picks.is_empty() => Ok(Some(Self(picks))),
            _ => {
                let message = "must be a status from 100 to 599, a class like \"2xx\", or a list";
                Err(ConfigFault::new(name, message))
            }
        }
    }

    pub(super) fn contains(&self, status: StatusCode) -> bool {
        self.0.iter().any(|pick| match pick {
            Pick::One(one) => *one == status.as_u16(),
            Pick::Class(class) => *class == status.as_u16() / 100,
        })
    }

    /// True if this status is listed, not only its class such as `2xx`.
    pub(super) fn names(&self, status: StatusCode) -> bool {
        self.0.iter().any(|pick| matches!(pick, Pick::One(one) if *one == status.as_u16()))
    }
}

impl Pick {
    fn parse(value: &Value) -> Option<Self> {
        if let Some(class) = value.as_str() {
            let digit = class.strip_suffix("xx")?;
            return ["1", "2", "3", "4", "5"]
                .contains(&digit)
                .then(|| digit.parse().map(Self::Class).ok())
                .flatten();
        }
        let status = value.as_u64().filter(|n| (100..=599).contains(n))?;
        u16::try_from(status).ok().map(Self::One)
    }
}
