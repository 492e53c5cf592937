//! The horizontal axis: places of times, ticks in the zone of the page, and the line of now.

use jiff::Timestamp as Instant;
use jiff::tz::Offset;
use maud::{Markup, html};

use crate::zone;

/// Width of the axis in pixels.
pub(super) const WIDTH: f64 = 960.0;
/// Room for the halves of marks at both ends, in pixels.
const MARGIN: f64 = 8.0;
/// Labels that begin behind this place end at their tick.
const LAST_LABEL: f64 = WIDTH - 60.0;
/// Height of the labels above the lanes, in pixels.
pub(super) const TOP: f64 = 44.0;
/// Maximum number of ticks.
const TICKS_MAX: i64 = 12;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;
/// Distances between ticks.
const STEPS: [i64; 15] = [
    SECOND,
    5 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
];
/// The offsets of all zones are multiples of a quarter hour.
const QUARTER: i64 = 15 * MINUTE;

/// The period that the axis shows, in microseconds since 1970.
#[derive(Copy, Clone, Debug)]
pub(super) struct Axis {
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) now: i64,
}

#[derive(Debug)]
struct Tick {
    at: i64,
    time: String,
    /// The day, at the first tick and at the first tick of each day.
    day: Option<String>,
}

/// Returns a time in the zone of the page.
pub(super) fn shown(at: i64, format: &str) -> String {
    let instant = Instant::from_microsecond(at).unwrap_or_default();
    instant.to_zoned(zone::current()).strftime(format).to_string()
}

/// Returns a time as the API reads it.
pub(super) fn rfc3339(at: i64) -> String {
    Instant::from_microsecond(at).unwrap_or_default().to_string()
}

impl Axis {
    pub(super) fn length(&self) -> i64 {
        (self.to - self.from).max(1)
    }

    /// Returns the place of a time; times outside the period are at the ends.
    pub(super) fn x(&self, at: i64) -> f64 {
        let share = (at - self.from) as f64 / self.length() as f64;
        MARGIN + share.clamp(0.0, 1.0) * (WIDTH - 2.0 * MARGIN)
    }

    /// Returns the zone of the labels, for example "Asia/Kolkata (UTC+05:30)".
    pub(super) fn zone_name(&self) -> String {
        let offset = |at| shown(at, "UTC%:z");
        let name = zone::current().iana_name().unwrap_or("UTC").to_owned();
        match (offset(self.from), offset(self.to)) {
            (one, _) if name == "UTC" && one == "UTC+00:00" => name,
            (first, last) if first == last => format!("{name} ({first})"),
            (first, last) => format!("{name} ({first}, later {last})"),
        }
    }

    /// Returns the distance between ticks.
    fn step(&self) -> i64 {
        let fits = |step: &&i64| self.length() / **step < TICKS_MAX;
        STEPS.iter().find(fits).copied().unwrap_or(DAY)
    }

    /// Returns ticks at whole steps of the local clock.
    fn ticks(&self) -> Vec<Tick> {
        let step = self.step();
        let stride = step.min(QUARTER);
        let first = self.from.div_euclid(stride) * stride;
        let times = (0..).map(|n| first + n * stride).take_while(|at| *at < self.to);
        let mut ticks = Vec::new();
        let (mut last_day, mut last_offset): (String, Option<Offset>) = (String::new(), None);
        for at in times.filter(|at| *at >= self.from) {
            let Ok(instant) = Instant::from_microsecond(at) else { continue };
            let local = instant.to_zoned(zone::current());
            let of_day = i64::from(local.hour()) * HOUR
                + i64::from(local.minute()) * MINUTE
                + i64::from(local.second()) * SECOND;
            if of_day % step != 0 {
                continue;
            }
            // The clocks repeat or skip an hour; the zone's abbreviation says where.
            let is_changed = last_offset.is_none_or(|last| last != local.offset());
            let format = match (step < MINUTE, is_changed) {
                (true, true) => "%H:%M:%S %Z",
                (true, false) => "%H:%M:%S",
                (false, true) => "%H:%M %Z",
                (false, false) => "%H:%M",
            };
            let day = local.strftime("%a %d %b").to_string();
            let is_new_day = day != last_day;
            ticks.push(Tick {
                at,
                time: local.strftime(format).to_string(),
                day: is_new_day.then(|| day.clone()),
            });
            (last_day, last_offset) = (day, Some(local.offset()));
        }
        ticks
    }

    /// Draws ticks down to `bottom`, and the line of now if it lies in the period.
    pub(super) fn draw(&self, bottom: f64) -> Markup {
        html! {
            @for Tick { at, time, day } in self.ticks() {
                @let anchor = (self.x(at) > LAST_LABEL).then_some("end");
                @let x = format!("{:.1}", self.x(at));
                path.tick d={ "M" (x) " " (TOP) "V" (bottom) } {}
                text.time x=(x) y=(TOP - 8.0) text-anchor=[anchor] { (time) }
                @if let Some(day) = day { text.day x=(x) y=(TOP - 26.0) text-anchor=[anchor] { (day) } }
            }
        }
    }

    /// Draws the line of now over the marks, if now lies in the period.
    pub(super) fn draw_now(&self, bottom: f64) -> Markup {
        if self.now < self.from || self.now >= self.to {
            return html! {};
        }
        let x = self.x(self.now);
        let anchor = if x > LAST_LABEL { "end" } else { "start" };
        let name = shown(self.now, "now, %Y-%m-%d %H:%M:%S %Z");
        html! {
            g.now {
                title { (name) }
                path d={ "M" (format!("{x:.1}")) " 0V" (bottom) } stroke-width="2" fill="none" {}
                text x=(format!("{:.1}", if anchor == "end" { x - 5.0 } else { x + 5.0 }))
                    y="10" text-anchor=(anchor) { "now" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(time: &str) -> i64 {
        time.parse::<Instant>().unwrap().as_microsecond()
    }

    fn axis(from: &str, to: &str) -> Axis {
        Axis { from: micros(from), to: micros(to), now: 0 }
    }

    #[test]
    fn places_lie_between_the_ends() {
        let axis = axis("2026-11-18T09:00:00Z", "2026-11-18T10:00:00Z");
        let x = |time| axis.x(micros(time));
        assert_eq!(x("2026-11-18T09:30:00Z"), WIDTH / 2.0);
        assert_eq!(x("2026-11-18T08:00:00Z"), MARGIN);
        assert_eq!(x("2026-11-19T08:00:00Z"), WIDTH - MARGIN);
    }

    #[test]
    fn ticks_are_at_whole_steps_and_name_each_day_once() {
        let axis = axis("2026-11-18T22:07:00Z", "2026-11-19T01:59:00Z");
        let ticks = axis.ticks();
        let times: Vec<&str> = ticks.iter().map(|tick| tick.time.as_str()).collect();
        let expected = ["22:30 UTC", "23:00", "23:30", "00:00", "00:30", "01:00", "01:30"];
        assert_eq!(times, expected);
        let days: Vec<_> = ticks.iter().filter_map(|tick| tick.day.as_deref()).collect();
        assert_eq!(days, ["Wed 18 Nov", "Thu 19 Nov"]);
    }

    #[test]
    fn every_period_has_few_ticks() {
        for seconds in [1, 7, 60, 61, 3_600, 7_200, 86_400, 604_800] {
            let from = micros("2026-11-18T09:00:00Z");
            let axis = Axis { from, to: from + seconds * SECOND, now: from };
            let count = axis.ticks().len();
            assert!((1..=13).contains(&count), "{seconds} s: {count} ticks");
        }
    }

    #[test]
    fn now_is_drawn_only_inside_the_period() {
        let axis = axis("2026-11-18T09:00:00Z", "2026-11-18T10:00:00Z");
        let drawn = |now: &str| Axis { now: micros(now), ..axis }.draw_now(100.0).into_string();
        assert!(drawn("2026-11-18T09:59:00Z").contains("text-anchor=\"end\""));
        assert_eq!(drawn("2026-11-18T10:00:00Z"), "");
        assert_eq!(drawn("2026-11-18T08:59:00Z"), "");
    }
}
