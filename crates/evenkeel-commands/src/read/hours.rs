//! Reads the local hours in which a job must not run (blackouts), and those that it prefers.

use evenkeel_core::blackout::{Blackout, Blackouts, LocalHours};
use evenkeel_core::{Timestamp, Zone};
use jiff::civil::Time;
use serde_json::Value;

use super::fields::Fields;
use super::limits::BLACKOUTS_MAX;
use crate::fault::shown;

/// Reads the local hours in which the job neither starts nor runs.
pub(super) fn blackouts(fields: &mut Fields<'_>) -> Vec<Blackout> {
    let name = "blackout_periods";
    let faults_before = fields.faults.count();
    let periods = fields.each(name, BLACKOUTS_MAX, |item| local_hours(item, "a blackout"));
    if fields.faults.count() == faults_before
        && let Err(error) = Blackouts::check(&periods)
    {
        fields.fault(name, error.to_string());
    }
    periods
}

/// Reads the preferred local hours. At least one minute of the preferred hours must be outside of
/// all blackouts.
pub(super) fn preferred(fields: &mut Fields<'_>, blackouts: &[Blackout]) -> Option<LocalHours> {
    let name = "prefer_window";
    let item = fields.value(name)?;
    let window = fields.valid(name, local_hours(item, "a pair of hours"))?;
    if window.start == window.end {
        let message =
            format!("starts and ends at {}; choose an end other than the start", window.start);
        return fields.refuse(name, message);
    }
    if is_in_blackout(window, blackouts) {
        let message =
            "lies in blackout_periods, in which the job never starts; choose hours outside of them";
        return fields.refuse(name, message);
    }
    Some(window)
}

/// True if every minute of the preferred hours is in a blackout.
fn is_in_blackout(window: LocalHours, blackouts: &[Blackout]) -> bool {
    let utc = Zone::default();
    let (wanted, blackouts) =
        (Blackouts::new(std::slice::from_ref(&window), &utc), Blackouts::new(blackouts, &utc));
    let minutes = (0..24 * 60).map(|minute| Timestamp::from_micros(minute * 60_000_000));
    let mut wanted = minutes.filter(|minute| wanted.is_in_blackout(*minute)).peekable();
    // Preferred hours that contain no start of a minute are accepted without a check.
    wanted.peek().is_some() && wanted.all(|minute| blackouts.is_in_blackout(minute))
}

fn local_hours(item: &Value, what: &str) -> Result<LocalHours, String> {
    let right = "write it like {\"start\": \"22:00\", \"end\": \"06:00\"}";
    let Some(object) = item.as_object() else {
        return Err(format!("{} is not {what}; {right}", shown(item)));
    };
    if let Some(other) = object.keys().find(|key| !["start", "end"].contains(&key.as_str())) {
        return Err(format!("{} is not known here; {right}", shown(&other.as_str().into())));
    }
    let edge = |name: &str| match object.get(name).filter(|value| !value.is_null()) {
        None => Err(format!("its {name} is missing; {right}")),
        Some(value) => value
            .as_str()
            .and_then(time_of_day)
            .ok_or_else(|| format!("its {name}, {}, is not a time of day; {right}", shown(value))),
    };
    Ok(LocalHours { start: edge("start")?, end: edge("end")? })
}

/// Parses a time of day such as `22:00` or `22:00:00`. `24:00` means midnight.
fn time_of_day(text: &str) -> Option<Time> {
    let parts: Vec<i8> = text
        .split(':')
        .map(|part| {
            let plain = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            if plain { part.parse().ok() } else { None }
        })
        .collect::<Option<_>>()?;
    match parts[..] {
        [24, 0] | [24, 0, 0] => Some(Time::midnight()),
        [hour, minute] => Time::new(hour, minute, 0, 0).ok(),
        [hour, minute, second] => Time::new(hour, minute, second, 0).ok(),
        _ => None,
    }
}
