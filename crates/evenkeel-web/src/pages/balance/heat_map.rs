//! The heat map: the runs of past days and of the forecast, by day and hour, or by quarter hour.

use std::collections::BTreeMap;

use evenkeel_core::Timestamp;
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp as Instant, ToSpan as _, Zoned};
use maud::{Markup, html};
use serde_json::Value;

use crate::backend::escape;
use crate::chart::number;
use crate::pages::items;
use crate::{text, zone};

/// Days before today that the map shows.
pub(super) const PAST_DAYS: i64 = 6;
const QUARTER: SignedDuration = SignedDuration::from_mins(15);
const QUARTER_SECONDS: i64 = 900;

/// What the user chose to see.
pub(super) struct Choice<'a> {
    pub(super) by_cost: bool,
    /// The day that is shown by quarters.
    pub(super) day: Option<Date>,
    pub(super) now: Timestamp,
    pub(super) past: &'a Value,
    pub(super) forecast: &'a Value,
}

/// A part of a day: an hour or a quarter hour.
#[derive(Clone)]
struct Cell {
    start: Zoned,
    end: Instant,
    load: f64,
    is_forecast: bool,
}

/// A column: the hour, and 1 for an hour that the clocks repeat.
type Column = (i8, usize);

/// Returns the first instant that the map shows: the start of a day.
pub(super) fn first_instant(now: Timestamp) -> Option<Instant> {
    let today = Instant::from_microsecond(now.as_micros()).ok()?.to_zoned(zone::current()).date();
    start_of(today.checked_sub(PAST_DAYS.days()).ok()?)
}

fn start_of(day: Date) -> Option<Instant> {
    Some(day.to_zoned(zone::current()).ok()?.timestamp())
}

/// Returns the load of each quarter hour, by its number since 1970.
fn quarters(choice: &Choice<'_>) -> BTreeMap<i64, f64> {
    let [ran, expected] =
        if choice.by_cost { ["busy_seconds", "cost_seconds"] } else { ["fired", "job_count"] };
    let minutes = choice.forecast["listed_minutes"].as_f64().unwrap_or(15.0);
    let mut loads = BTreeMap::new();
    for (quarter, load) in loads_of(items(choice.past, "slots"), ran, 15.0) {
        loads.insert(quarter, load);
    }
    for (quarter, load) in loads_of(items(choice.forecast, "slots"), expected, minutes) {
        // The forecast of the present quarter hour includes the runs that have started in it.
        let known: &mut f64 = loads.entry(quarter).or_default();
        *known = known.max(load);
    }
    loads
}

/// Returns the load of each quarter hour of these slots. Slots of a server can be longer than a
/// quarter hour; their load is spread evenly.
fn loads_of<'a>(
    slots: &'a [Value],
    field: &'a str,
    minutes: f64,
) -> impl Iterator<Item = (i64, f64)> + 'a {
    let parts = ((minutes / 15.0).round() as i64).max(1);
    let starts = slots.iter().filter_map(|slot| Some((slot, text::micros(&slot["start"])?)));
    starts.flat_map(move |(slot, start)| {
        let load = slot[field].as_f64().unwrap_or(0.0) / parts as f64;
        let first = start.div_euclid(QUARTER_SECONDS * 1_000_000);
        (first..first + parts).map(move |quarter| (quarter, load))
    })
}

/// Returns the quarter hours of a day, which has 23 or 25 hours when the clocks change.
fn cells_of(day: Date, loads: &BTreeMap<i64, f64>, now: Timestamp) -> Vec<Cell> {
    let tomorrow = day.tomorrow().ok().and_then(start_of);
    let (Some(mut at), Some(end)) = (start_of(day), tomorrow) else { return Vec::new() };
    let mut cells = Vec::new();
    while at < end {
        let next = at + QUARTER;
        let load = loads.get(&at.as_second().div_euclid(QUARTER_SECONDS)).copied().unwrap_or(0.0);
        let is_forecast = next.as_microsecond() > now.as_micros();
        cells.push(Cell { start: at.to_zoned(zone::current()), end: next, load, is_forecast });
        at = next;
    }
    cells
}

/// Joins the quarters of each hour. An hour that the clocks repeat is two hours.
fn hours_of(quarters: &[Cell]) -> Vec<(Column, Cell)> {
    let mut hours: Vec<(Column, Cell)> = Vec::new();
    for quarter in quarters {
        let hour = quarter.start.hour();
        match hours.last_mut() {
            Some((column, cell))
                if column.0 == hour && cell.start.offset() == quarter.start.offset() =>
            {
                cell.end = quarter.end;
                cell.load += quarter.load;
                cell.is_forecast = quarter.is_forecast;
            }
            _ => {
                let earlier = hours.iter().filter(|(column, _)| column.0 == hour).count();
                hours.push(((hour, earlier), quarter.clone()));
            }
        }
    }
    hours
}

fn peak_of<'a>(cells: impl Iterator<Item = &'a Cell>) -> f64 {
    cells.map(|cell| cell.load).fold(0.0, f64::max)
}

/// Returns the step of the colour scale, 0 to 5.
fn step(load: f64, peak: f64) -> u8 {
    if load <= 0.0 || peak <= 0.0 { 0 } else { (load / peak * 5.0).ceil().clamp(1.0, 5.0) as u8 }
}

impl Choice<'_> {
    fn unit(&self) -> &'static str {
        if self.by_cost { "seconds of work" } else { "runs" }
    }

    fn address(&self, day: Option<Date>, by_cost: bool) -> String {
        let zone = zone::current();
        let mut address = format!("/balance?by={}", if by_cost { "cost" } else { "runs" });
        if let Some(day) = day {
            address.push_str(&format!("&day={day}"));
        }
        if let Some(name) = zone.iana_name() {
            address.push_str(&format!("&tz={}", escape(name)));
        }
        address + "#heat-map"
    }

    pub(super) fn render(&self) -> Markup {
        let loads = quarters(self);
        let Some(first) = first_instant(self.now) else { return html! {} };
        let first = first.to_zoned(zone::current()).date();
        // The forecast of 24 hours ends tomorrow.
        let days = (0..PAST_DAYS + 2).filter_map(|nth| first.checked_add(nth.days()).ok());
        let days: Vec<_> =
            days.map(|day| (day, hours_of(&cells_of(day, &loads, self.now)))).collect();
        html! {
            section.panel id="heat-map" {
                h2 { "Heat map" }
                (self.summary(&days))
                p.filter { "Count: "
                    @for (by_cost, name) in [(false, "runs"), (true, "cost")] {
                        a href=(self.address(self.day, by_cost))
                            aria-current=[(by_cost == self.by_cost).then_some("true")] { (name) }
                    }
                }
                (self.by_hour(&days))
                p { small { "Stronger colours mean more " (self.unit()) "; each cell shows its number. Cells in italics are a "
                    "forecast. A day links to its quarter hours, a past hour to its runs, a future hour to its timeline." } }
                @if let Some(day) = self.day { (self.by_quarter(day, &cells_of(day, &loads, self.now))) }
            }
        }
    }

    fn summary(&self, days: &[(Date, Vec<(Column, Cell)>)]) -> Markup {
        let busiest = |is_forecast: bool| {
            let cells = days.iter().flat_map(|(_, hours)| hours).map(|(_, cell)| cell);
            let cells = cells.filter(|cell| cell.is_forecast == is_forecast && cell.load > 0.0);
            cells.max_by(|a, b| a.load.total_cmp(&b.load))
        };
        let name = |cell: &Cell| cell.start.strftime("%a %d %b %Y, %H:%M %Z").to_string();
        html! {
            p {
                @match busiest(false) {
                    Some(cell) => { "The busiest hour since " (days.first().map(|(day, _)| day.to_string()).unwrap_or_default())
                        " began at " (name(cell)) " with " (number(cell.load)) " " (self.unit()) ". " }
                    None => "Nothing ran in the past days. ",
                }
                @match busiest(true) {
                    Some(cell) => { "The busiest hour to come begins at " strong { (name(cell)) } " with "
                        (number(cell.load)) " " (self.unit()) "." }
                    None => "No run is expected in the next 24 hours.",
                }
            }
        }
    }

    fn by_hour(&self, days: &[(Date, Vec<(Column, Cell)>)]) -> Markup {
        let mut columns: Vec<Column> = (0..24).map(|hour| (hour, 0)).collect();
        columns.extend(days.iter().flat_map(|(_, hours)| hours).map(|(column, _)| *column));
        columns.sort_unstable();
        columns.dedup();
        let peak = peak_of(days.iter().flat_map(|(_, hours)| hours).map(|(_, cell)| cell));
        let mut is_first = true;
        html! {
            table.heat data-grid="" {
                caption { "Days and hours, " (zone_name()) }
                thead { tr { th scope="col" { "Day" }
                    @for (hour, again) in &columns {
                        th scope="col" { (format!("{hour:02}")) @if *again > 0 { " again" } }
                    } } }
                tbody {
                    @for (day, hours) in days {
                        tr {
                            th scope="row" { a href=(self.address(Some(*day), self.by_cost)) { (day.strftime("%a %d %b").to_string()) }
                                @if hours.len() != 24 { " (" (hours.len()) " hours)" } }
                            @for column in &columns {
                                @match hours.iter().find(|(found, _)| found == column) {
                                    Some((_, cell)) => (self.cell(cell, peak, std::mem::take(&mut is_first))),
                                    // The clocks skip this hour, or repeat it on another day only.
                                    None => td { "–" },
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn by_quarter(&self, day: Date, quarters: &[Cell]) -> Markup {
        let peak = peak_of(quarters.iter());
        let mut is_first = true;
        html! {
            h3 { (day.strftime("%A %d %B %Y").to_string()) " by quarter hours" }
            table.heat data-grid="" {
                caption { "Quarter hours, " (zone_name()) }
                thead { tr { th scope="col" { "Hour" } @for minute in ["00", "15", "30", "45"] { th scope="col" { ":" (minute) } } } }
                tbody {
                    @for hour in quarters.chunk_by(|a, b| a.start.hour() == b.start.hour() && a.start.offset() == b.start.offset()) {
                        tr {
                            th scope="row" { (hour[0].start.strftime("%H %Z").to_string()) }
                            @for minute in [0, 15, 30, 45] {
                                @match hour.iter().find(|cell| cell.start.minute() == minute) {
                                    Some(cell) => (self.cell(cell, peak, std::mem::take(&mut is_first))),
                                    None => td { "–" },
                                }
                            }
                        }
                    }
                }
            }
            p { a href=(self.address(None, self.by_cost)) { "Show hours only" } }
        }
    }

    fn cell(&self, cell: &Cell, peak: f64, is_first: bool) -> Markup {
        let share = if peak > 0.0 { (cell.load / peak * 100.0).round() } else { 0.0 };
        let end = cell.end.to_zoned(zone::current());
        let kind = if cell.is_forecast { ", forecast" } else { "" };
        let name = format!(
            "{} to {}: {} {}, {share} % of the peak{kind}",
            cell.start.strftime("%a %d %b %Y, %H:%M"),
            end.strftime("%H:%M %Z"),
            number(cell.load),
            self.unit(),
        );
        let (from, to) =
            (escape(&cell.start.timestamp().to_string()), escape(&cell.end.to_string()));
        let target = if cell.is_forecast {
            format!("/timeline?from={from}&to={to}")
        } else {
            format!("/runs?since={from}&until={to}")
        };
        html! {
            td class={ "heat-" (step(cell.load, peak)) @if cell.is_forecast { " forecast" } } {
                a href=(target) aria-label=(name) title=(name) tabindex=(if is_first { "0" } else { "-1" }) {
                    (number(cell.load)) @if cell.load >= peak && peak > 0.0 { "▲" }
                }
            }
        }
    }
}

fn zone_name() -> String {
    zone::current().iana_name().unwrap_or("UTC").to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn choice<'a>(past: &'a Value, forecast: &'a Value) -> Choice<'a> {
        let now = "2026-11-18T09:05:00Z".parse().unwrap();
        Choice { by_cost: false, day: None, now, past, forecast }
    }

    #[test]
    fn runs_of_the_present_quarter_hour_count_once() {
        let past = json!({"slots": [
            {"start": "2026-11-18T08:45:00Z", "fired": 7},
            {"start": "2026-11-18T09:00:00Z", "fired": 2},
        ]});
        let forecast = json!({"listed_minutes": 15, "slots": [
            {"start": "2026-11-18T09:00:00Z", "job_count": 5},
            {"start": "2026-11-18T09:15:00Z", "job_count": 3},
        ]});
        let loads: Vec<f64> = quarters(&choice(&past, &forecast)).into_values().collect();
        assert_eq!(loads, [7.0, 5.0, 3.0]);
    }

    #[test]
    fn longer_slots_are_spread_over_quarter_hours() {
        let forecast = json!({"listed_minutes": 60, "slots": [
            {"start": "2026-11-18T10:00:00Z", "job_count": 8},
        ]});
        let loads: Vec<f64> = quarters(&choice(&json!({}), &forecast)).into_values().collect();
        assert_eq!(loads, [2.0; 4]);
    }
}
