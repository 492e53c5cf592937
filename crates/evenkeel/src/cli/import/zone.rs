//! Time zones of the import.

use evenkeel_commands::import;
use evenkeel_core::Zone;

use crate::{Failure, Result};

pub(super) fn named(name: &str) -> Result<Zone> {
    import::zone(name).map_err(|error| Failure::usage(format!("--tz {name} is {error}")))
}

/// Returns the time zone of this machine, or UTC if the machine's configuration names no zone. The
/// report names it.
pub(super) fn of_this_machine() -> Zone {
    let link = std::fs::read_link("/etc/localtime").unwrap_or_default();
    let link = link.to_string_lossy();
    let linked = link.split_once("zoneinfo/").map(|(_, name)| name.to_owned());
    let written = || std::fs::read_to_string("/etc/timezone").ok();
    let name = linked.or_else(written).unwrap_or_default();
    import::zone(name.trim()).unwrap_or_default()
}
