//! Settings of leases.

use evenkeel_core::Span;
use evenkeel_core::lease::LeaseTimings;

use super::Result;
use super::raw::RawEngine;
use super::resolve::{invalid, seconds};

const KEY: &str = "[engine] reset_running_after";
const LONGEST: Span = Span::from_secs(2 * 86_400);

/// Resolves the timings of leases. `reset_running_after` is the time without heartbeats after which
/// other nodes take over a node's attempts: the sum of lease and grace.
pub(super) fn leases(engine: &RawEngine) -> Result<LeaseTimings> {
    let ping = seconds("ping_seconds", engine.ping_seconds, 2)?;
    let grace = seconds("grace_seconds", engine.grace_seconds, 4)?;
    let configured = seconds("lease_seconds", engine.lease_seconds, 6)?;
    let silent_after = match engine.reset_running_after {
        None => configured,
        Some(reset) => silence(reset, engine.lease_seconds.map(|_| configured), ping, grace)?,
    };
    Ok(LeaseTimings { ping, silent_after, grace }.validate()?)
}

/// Returns the lease time: `reset_running_after` minus the grace period.
fn silence(reset: Span, lease: Option<Span>, ping: Span, grace: Span) -> Result<Span> {
    let least = ping.saturating_mul(2).saturating_add(grace);
    if reset < least || reset > LONGEST {
        let message = format!(
            "{reset} is not between {least} and {LONGEST}: a node must be able to miss a ping \
             (ping_seconds, {ping}), and has a grace (grace_seconds, {grace}) after that",
        );
        let way_out = format!("give at least {least}, or leave it out for 10s");
        return Err(invalid(KEY, message, way_out));
    }
    let silent_after = Span::from_micros(reset.as_micros() - grace.as_micros());
    match lease.filter(|lease| *lease != silent_after) {
        None => Ok(silent_after),
        Some(lease) => {
            let message = format!(
                "{reset} contradicts lease_seconds ({lease}) and grace_seconds ({grace}), which \
                 make {} together",
                lease.saturating_add(grace),
            );
            Err(invalid(KEY, message, "omit lease_seconds or reset_running_after"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;

    fn with(reset: u64, lease: Option<u64>, grace: Option<u64>) -> Result<LeaseTimings, Failure> {
        let engine = RawEngine {
            reset_running_after: Some(Span::from_secs(reset)),
            lease_seconds: lease,
            grace_seconds: grace,
            ..RawEngine::default()
        };
        leases(&engine).map_err(Failure::from)
    }

    #[test]
    fn leases_have_defaults_without_reset_running_after() {
        assert_eq!(leases(&RawEngine::default()).unwrap(), LeaseTimings::default());
    }

    #[test]
    fn reset_running_after_is_lease_plus_grace() {
        let leases = with(900, None, None).unwrap();
        assert_eq!((leases.silent_after, leases.grace), (Span::from_secs(896), Span::from_secs(4)));
        let leases = with(900, None, Some(60)).unwrap();
        assert_eq!(leases.silent_after, Span::from_secs(840));
        assert_eq!(with(10, Some(6), None).unwrap(), LeaseTimings::default());
    }

    #[test]
    fn contradicting_leases_are_refused_with_advice() {
        for (reset, lease, text) in [
            (5, None, "5s is not between 8s and"),
            (900, Some(30), "contradicts lease_seconds (30s)"),
            (400_000, None, "is not between"),
        ] {
            let failure = with(reset, lease, None).unwrap_err();
            assert!(failure.what.starts_with(KEY), "{}", failure.what);
            assert!(failure.what.contains(text), "{}", failure.what);
            assert!(failure.way_out.is_some());
        }
    }
}
