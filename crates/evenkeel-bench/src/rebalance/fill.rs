//! Registers unevenly placed jobs.

use evenkeel_core::{Span, Timestamp};

use crate::workload::{Registrar, noop_every};

const HOUR: Span = Span::from_secs(3600);
const DAY: Span = Span::from_secs(24 * 3600);
/// Minimum time from now to the first run of the jobs to move: longer than the measurement and the
/// setting `protection`, so that the rebalance may move all these jobs.
const LEAD: Span = Span::from_secs(6 * 3600);
/// Length in seconds of the part of the day in which all daily jobs start.
const DAILY_WITHIN: u64 = 3 * 3600;
/// All hourly jobs start within this many seconds after the full hour.
const HOURLY_WITHIN: u64 = 15 * 60;
/// One job in 4 is hourly; the remaining jobs are daily.
const HOURLY_ONE_IN: u64 = 4;

/// Registers `count` jobs: daily jobs that all start within the same 3 hours, and hourly jobs that
/// start in the first 15 minutes of each hour. The start times depend only on the current hour, so
/// that two rebalance plans made in the same hour can be compared.
pub(super) async fn uneven(
    registrar: &Registrar<'_>,
    count: u64,
    now: Timestamp,
) -> anyhow::Result<()> {
    let (daily, hourly) = (noop_every(DAY)?, noop_every(HOUR)?);
    let job = |n| {
        let (definition, within) = match n % HOURLY_ONE_IN {
            0 => (&hourly, HOURLY_WITHIN),
            _ => (&daily, DAILY_WITHIN),
        };
        Ok(registrar.job(definition.clone(), time_of(n, within, now), now))
    };
    registrar.register(count, job).await.map(drop)
}

/// Returns a start time in the first `within` seconds of the first full hour that is at least
/// [`LEAD`] from now.
fn time_of(n: u64, within: u64, now: Timestamp) -> Timestamp {
    let earliest = now.saturating_add(LEAD);
    let hour = HOUR.as_micros().cast_signed();
    let full = earliest
        .saturating_sub(Span::from_micros(earliest.as_micros().rem_euclid(hour).cast_unsigned()));
    // Jobs with consecutive numbers get start times that are far apart.
    let second = n.wrapping_mul(7919) % within;
    full.saturating_add(HOUR).saturating_add(Span::from_secs(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_within_the_span_after_the_next_full_hour() {
        let now = Timestamp::from_micros(10 * 3_600_000_000 + 5);
        let full = Timestamp::from_micros(17 * 3_600_000_000);
        for n in 0..10_000 {
            let time = time_of(n, HOURLY_WITHIN, now);
            assert!(time >= full && time.since(full) < Span::from_secs(HOURLY_WITHIN));
        }
    }
}
