//! Describes schedules in English.

mod cron;
mod days;
mod items;
mod words;

#[cfg(test)]
mod tests;

use evenkeel_core::blackout::LocalHours;
use evenkeel_core::schedule::{CalendarInterval, CronSchedule, Gap, Once, Overlap};
use evenkeel_core::{Definition, Schedule, Timestamp, Zone};

pub(crate) use words::{capitalised, counted, listed, span_words};

/// Describes in English when a job runs. `exact` is false for a cron schedule whose runs start up
/// to a minute after the scheduled time.
pub fn describe(definition: &Definition, exact: bool) -> String {
    let mut text = rule(definition);
    if !exact {
        text.push_str(", some seconds later than others with the same expression");
    }
    text.push_str(&limits(definition));
    let mut sentences = vec![format!("{}.", capitalised(&text))];
    sentences.extend(promise(&definition.schedule));
    sentences.extend(clock_changes(definition));
    sentences.extend(blackout_hours(definition));
    sentences.extend(preferred_hours(definition));
    sentences.join(" ")
}

fn rule(definition: &Definition) -> String {
    let zone = &definition.timezone;
    match &definition.schedule {
        Schedule::Once(Once { at: None, .. }) => "once, now".into(),
        Schedule::Once(Once { at: Some(at), .. }) => format!("once, at {}", moment(*at, zone)),
        Schedule::Interval(interval) => {
            let mut every = words::every(interval.every());
            if interval.is_exact() {
                every.push_str(", with the start of its slot");
            }
            match interval.anchor() {
                Some(anchor) => format!("{every}, counted from {}", moment(anchor, zone)),
                None => every,
            }
        }
        Schedule::Calendar(CalendarInterval { every, anchor, .. }) => {
            let every = words::every_of_calendar(*every);
            match anchor {
                Some(anchor) => format!("{every}, counted from {}", moment(*anchor, zone)),
                None => format!("{every} by the clocks of {zone}"),
            }
        }
        Schedule::Cron(CronSchedule { cron, .. }) => {
            format!("{}, {}", cron::describe(cron.expression()), zone_words(zone))
        }
        Schedule::Periodic(periodic) => format!(
            "as often as it takes for a successful run to have started in the last {}, and not \
             sooner than {} after the end of the previous run",
            span_words(periodic.period()),
            span_words(periodic.cooldown()),
        ),
    }
}

fn zone_words(zone: &Zone) -> String {
    if zone.is_utc() { "UTC".into() } else { format!("{zone} time") }
}

pub(crate) fn moment(moment: Timestamp, zone: &Zone) -> String {
    let local = zone.local_text(moment);
    let (date, time) = local.split_once('T').unwrap_or((&local, ""));
    let time = time.get(..8).unwrap_or(time);
    let time = time.strip_suffix(":00").unwrap_or(time);
    format!("{date} {time} {}", zone_words(zone))
}

fn limits(definition: &Definition) -> String {
    let bounds = definition.bounds;
    let zone = &definition.timezone;
    let mut text = String::new();
    if let Some(start) = bounds.start_at {
        text.push_str(&format!(", from {} on", moment(start, zone)));
    }
    if let Some(end) = bounds.end_at {
        text.push_str(&format!(", until {}", moment(end, zone)));
    }
    match bounds.max_runs {
        None => {}
        Some(1) => text.push_str(", one time at most"),
        Some(n) => text.push_str(&format!(", {n} times at most")),
    }
    text
}

/// Describes the deadline of each run, unless the deadline is the default.
fn promise(schedule: &Schedule) -> Option<String> {
    let over = |span| format!("Each run must be over {} after its time.", span_words(span));
    match schedule {
        Schedule::Once(once) => once
            .tolerance
            .map(|span| format!("It must have started {} after that.", span_words(span))),
        Schedule::Interval(interval) => interval.stated_tolerance().map(over),
        Schedule::Calendar(every) => every.tolerance.map(over),
        Schedule::Cron(by) => by.max_duration.map(over),
        Schedule::Periodic(_) => None,
    }
}

/// Describes the job's policy for daylight saving changes, unless the policy is the default.
fn clock_changes(definition: &Definition) -> Vec<String> {
    let (has_policy, may_run_twice) = match &definition.schedule {
        Schedule::Cron(by) => (!by.cron.keeps_rhythm(), true),
        Schedule::Calendar(_) => (true, false),
        Schedule::Once(_) | Schedule::Interval(_) | Schedule::Periodic(_) => (false, false),
    };
    if !has_policy || definition.timezone.is_utc() {
        return Vec::new();
    }
    let mut sentences = Vec::new();
    if definition.dst.gap == Gap::Skip {
        sentences.push("Times that the clocks jump over are left out.".into());
    }
    match definition.dst.overlap {
        Overlap::First => {}
        Overlap::Both if !may_run_twice => {}
        Overlap::Last => {
            sentences.push("Of times that the clocks show twice, the second one counts.".into());
        }
        Overlap::Both => sentences.push("Times that the clocks show twice run twice.".into()),
    }
    sentences
}

fn blackout_hours(definition: &Definition) -> Option<String> {
    if definition.blackout_periods.is_empty() {
        return None;
    }
    let hours = definition.blackout_periods.iter().map(hours).collect::<Vec<_>>();
    let hours = listed(&hours, "and");
    Some(format!("Never {hours}, {}.", zone_words(&definition.timezone)))
}

fn preferred_hours(definition: &Definition) -> Option<String> {
    let hours = hours(&definition.prefer_window?);
    Some(format!("Best {hours}, {}.", zone_words(&definition.timezone)))
}

fn hours(hours: &LocalHours) -> String {
    let shown = |time: jiff::civil::Time| {
        let text = time.strftime("%H:%M:%S").to_string();
        text.strip_suffix(":00").unwrap_or(&text).to_owned()
    };
    format!("from {} to {}", shown(hours.start), shown(hours.end))
}
