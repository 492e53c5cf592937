//! The timeline: past, running and expected runs on one axis.
//!
//! - `axis`: places of times, ticks, and the line of now
//! - `marks`: one mark for each run, in lanes, and the same as a table
//! - `shapes`: the shape and colour of each status, and the legend
//! - `density`: bars of numbers of runs, if there are too many for marks

mod axis;
mod density;
mod marks;
mod shapes;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::lists::{address, input};
use super::typed_times::{in_full, typed};
use super::{items, job_link, typed_times};
use crate::backend::Refused;
use crate::session::Session;
use crate::{Web, layout, text, zone};
use axis::{Axis, DAY, rfc3339, shown};

const PATH: &str = "/timeline";
/// What lanes can be, as in the API, and how the page calls it.
const LANES: [(&str, &str); 3] = [("job", "job"), ("pool", "pool"), ("node", "node")];
/// Rows of the table on one page.
const ROWS: usize = 100;
/// The shortest and the longest period to which the links of the page zoom.
const LENGTH_MIN: i64 = 60 * 1_000_000;
const LENGTH_MAX: i64 = 7 * DAY;

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
    #[serde(default)]
    by: String,
    #[serde(default)]
    job: String,
    /// Number of lanes before the first one that is shown.
    #[serde(default)]
    lanes: String,
    /// Number of rows before the first one that the table shows.
    #[serde(default)]
    rows: String,
}

/// What the page shows: the answer of the API, and the choices of the user.
struct View<'a> {
    answer: &'a Value,
    axis: Axis,
    choice: Choice<'a>,
    lanes: usize,
    rows: usize,
}

/// The choices of the user that all links of the page keep.
#[derive(Copy, Clone)]
struct Choice<'a> {
    by: &'a str,
    job: &'a str,
}

pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Query(parameters): Query<Parameters>,
) -> Response {
    let Parameters { from, to, by, job, lanes, rows } = parameters;
    let (from_full, to_full) = (in_full(&from), in_full(&to));
    let (by, job) = (if by.is_empty() { "job" } else { by.trim() }, job.trim());
    let choice = Choice { by, job };
    let fields = [("from", from_full.as_str()), ("to", &to_full), ("by", by), ("job", job)];
    if let Some(answer) =
        typed_times::redirect(&[(&from, &from_full), (&to, &to_full)], PATH, &fields)
    {
        return answer;
    }
    let query = address("/api/v1/timeline", &fields);
    let answer = match web.backend.get(&session.credential, &query).await {
        Ok(answer) => answer,
        Err(refused) if refused.status == StatusCode::SERVICE_UNAVAILABLE => {
            return layout::refused(&session, PATH, &refused);
        }
        Err(refused) => return choice.refused(&session, [&from, &to], &refused),
    };
    let time = |name: &str| text::micros(&answer[name]).unwrap_or_default();
    let axis = Axis { from: time("from"), to: time("to"), now: time("as_of") };
    let (lanes, rows) = (lanes.parse().unwrap_or(0), rows.parse().unwrap_or(0));
    let view = View { answer: &answer, axis, choice, lanes, rows };
    layout::page(&session, PATH, "Timeline", &view.render())
}

impl Choice<'_> {
    /// Returns the address of a period with the same choices.
    fn period(&self, from: i64, to: i64, by: &str) -> String {
        self.address(&[("from", &rfc3339(from)), ("to", &rfc3339(to)), ("by", by)])
    }

    fn address(&self, fields: &[(&str, &str)]) -> String {
        let zone = zone::current();
        let zone = zone.iana_name().filter(|name| *name != "UTC").unwrap_or_default();
        let mut all = fields.to_vec();
        all.extend([("job", self.job), ("tz", zone)]);
        address(PATH, &all)
    }

    fn filter(&self, from: &str, to: &str) -> Markup {
        html! {
            form.filter method="get" action=(PATH) {
                input type="hidden" name="by" value=(self.by);
                (input("job", "Job", self.job, "name or id"))
                (input("from", "From", &typed(from), "2026-11-18 09:00"))
                (input("to", "To", &typed(to), "2026-11-18 12:00"))
                button { "Show" }
            }
        }
    }

    /// What is wrong with the request, and the form to correct it.
    fn refused(&self, session: &Session, [from, to]: [&str; 2], refused: &Refused) -> Response {
        let body = html! {
            h1 { "Timeline" }
            p.problem role="alert" { (refused.detail) }
            (self.filter(from, to))
            p { (typed_times::note()) " " a href=(PATH) { "Show all runs around now" } }
        };
        let mut response = layout::page(session, PATH, "Timeline", &body);
        *response.status_mut() = refused.status;
        response
    }
}

impl View<'_> {
    fn render(&self) -> Markup {
        let Axis { from, to, .. } = self.axis;
        let is_density = self.answer["shows"] == "density";
        html! {
            h1 { "Timeline" }
            p {
                @if self.answer["job_id"].is_string() {
                    "Runs of the job " (job_link(&self.answer["job_id"], &Value::from(self.choice.job))) " from "
                } @else { "All runs from " }
                strong { (shown(from, "%a %d %b %Y, %H:%M:%S %Z")) } " to "
                strong { (shown(to, "%a %d %b %Y, %H:%M:%S %Z")) } ". "
                @if !is_density { (marks::summary(self.answer)) }
            }
            (self.controls())
            (self.choice.filter(&rfc3339(from), &rfc3339(to)))
            @if is_density {
                (density::render(self))
            } @else if items(self.answer, "marks").is_empty() {
                (self.empty())
            } @else {
                (marks::render(self))
            }
            p { small { "Times are in " (self.axis.zone_name()) ". The address of this page has the period, so a link to it keeps its meaning: "
                a href=(self.choice.period(from, to, self.choice.by)) { "link to this period" } "." } }
        }
    }

    /// Links to other periods and other lanes.
    fn controls(&self) -> Markup {
        let Axis { from, to, now } = self.axis;
        let length = self.axis.length();
        let period = |from: i64, length: i64| {
            // Links have whole seconds.
            let from = (from / 1_000_000).max(0) * 1_000_000;
            self.choice.period(from, from + length / 1_000_000 * 1_000_000, self.choice.by)
        };
        let around = |centre: i64, length: i64| period(centre - length / 2, length);
        let centre = from + length / 2;
        let (inner, outer) = ((length / 2).max(LENGTH_MIN), (length * 2).min(LENGTH_MAX));
        html! {
            div.commands {
                a.button href=(period(from - length, length)) rel="prev" { "◀ Earlier" }
                a.button href=(around(now, length)) { "Now" }
                a.button href=(period(to, length)) rel="next" { "Later ▶" }
                @if inner < length { a.button href=(around(centre, inner)) { "Zoom in" } }
                @if outer > length { a.button href=(around(centre, outer)) { "Zoom out" } }
            }
            @if self.answer["shows"] != "density" {
                p.filter { "Lanes by: "
                    @for (by, name) in LANES {
                        a href=(self.choice.period(from, to, by))
                            aria-current=[(by == self.choice.by).then_some("true")] { (name) }
                    }
                }
            }
        }
    }

    /// What to do if the period has no runs.
    fn empty(&self) -> Markup {
        let Axis { from, to, now } = self.axis;
        html! {
            section.panel {
                h2 { "No run in this period" }
                p {
                    @if to <= now { "Nothing ran in this period, or the history no longer has its runs. " }
                    @else if from >= now { "No run is expected in this period. " }
                    @else { "Nothing ran, and no run is expected. " }
                    (marks::not_kept(self.answer))
                }
                ul {
                    @if !self.choice.job.is_empty() {
                        li { a href=(Choice { job: "", ..self.choice }.period(from, to, self.choice.by)) {
                            "Show the runs of all jobs" } }
                        li { a href={ "/jobs/" (crate::backend::escape(self.choice.job)) } { "Open the job" }
                            " to see when it runs next, or why it does not run." }
                    } @else {
                        li { "Zoom out, or go to another period with the links above." }
                        li { "Open a job in " a href="/jobs" { "Jobs" } " to see when it runs next, or "
                            a href="/jobs/new" { "create a job" } "." }
                    }
                }
            }
        }
    }

    /// Links to the next and the previous part of a list that the page shows in parts. `name` is the
    /// parameter with the number of items before the part.
    fn parts(&self, name: &str, shown: usize, first: usize, count: usize, noun: &str) -> Markup {
        if count <= shown && first == 0 {
            return html! {};
        }
        let target = |first: usize| {
            let (from, to) = (rfc3339(self.axis.from), rfc3339(self.axis.to));
            let (first, lanes) = (first.to_string(), self.lanes.to_string());
            let mut fields =
                vec![("from", from.as_str()), ("to", &to), ("by", self.choice.by), (name, &first)];
            if name != "lanes" && self.lanes > 0 {
                fields.push(("lanes", &lanes));
            }
            self.choice.address(&fields)
        };
        let last = (first + shown).min(count);
        html! {
            p { "Shown are the " (noun) " " (first + 1) " to " (last) " of " (count) ". "
                @if first > 0 { a href=(target(first.saturating_sub(shown))) { "Previous " (noun) } " " }
                @if last < count { a href=(target(last)) { "Next " (noun) } }
            }
        }
    }
}
