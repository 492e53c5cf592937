//! The time zone in which a page shows times: of the URL, else of the user's choice, else UTC.

use axum::extract::{Query, Request};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde::Deserialize;

use crate::backend::escape;
use crate::cookies;
use crate::session::local_path;

const COOKIE: &str = "evenkeel_zone";
/// The parameter of all pages that names a time zone.
const PARAMETER: &str = "tz";

/// What all parts of a page need to know of its request.
#[derive(Clone)]
struct View {
    zone: TimeZone,
    /// Path and query of the page, without the zone.
    path: String,
}

tokio::task_local! {
    // Nearly every function of a page shows a time. As a parameter, the zone would pass through all
    // of them.
    static VIEW: View;
}

/// Path and query of the page that is being rendered, without the zone.
pub(crate) fn address() -> String {
    VIEW.try_with(|view| view.path.clone()).unwrap_or_default()
}

/// The zone of the page that is being rendered.
pub(crate) fn current() -> TimeZone {
    VIEW.try_with(|view| view.zone.clone()).unwrap_or(TimeZone::UTC)
}

/// Sets the zone for the page of a request.
pub(crate) async fn choose(request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let zone = named_in(query).or_else(|| cookies::find(request.headers(), COOKIE).and_then(zone));
    let path = without_zone(request.uri().path(), query);
    let view = View { zone: zone.unwrap_or(TimeZone::UTC), path };
    VIEW.scope(view, next.run(request)).await
}

#[derive(Deserialize)]
pub(crate) struct Choice {
    tz: String,
    #[serde(default)]
    next: String,
}

/// Remembers the zone that the user has chosen, and returns to the page with the zone in its URL.
pub(crate) async fn remember(Query(Choice { tz, next }): Query<Choice>) -> Response {
    let next = local_path(&next);
    let Some(zone) = zone(&tz) else { return Redirect::to(next).into_response() };
    let name = zone.iana_name().unwrap_or("UTC");
    let sign = if next.contains('?') { '&' } else { '?' };
    let target = format!("{next}{sign}{PARAMETER}={}", escape(name));
    let cookie = format!("{COOKIE}={name}; Path=/; HttpOnly; SameSite=Lax; Max-Age=31536000");
    let mut response = Redirect::to(&target).into_response();
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// A form to choose the zone. The script adds the zone of the browser.
pub(crate) fn switch() -> Markup {
    let Ok(View { zone, path }) = VIEW.try_with(Clone::clone) else { return html! {} };
    let name = zone.iana_name().unwrap_or("UTC").to_owned();
    html! {
        details.menu {
            // The header has room for "Berlin", but not for "Europe/Berlin".
            summary { span title=(name) { span.hidden-text { "Times in " } (name.rsplit('/').next().unwrap_or_default().replace('_', " ")) } }
            div {
                form.zone method="get" action="/ui/zone" {
                    input type="hidden" name="next" value=(path);
                    label for="tz" { "Times in" }
                    select id="tz" name=(PARAMETER) data-zone="" {
                        option value="UTC" selected[name == "UTC"] { "UTC" }
                        @if name != "UTC" { option value=(name) selected { (name) } }
                    }
                    button { "Set" }
                }
            }
        }
    }
}

/// Zones have names such as `Europe/Berlin`; other texts, such as file names, name no zone.
fn zone(name: &str) -> Option<TimeZone> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte);
    let is_plausible = name.len() <= 64 && name.bytes().all(is_name);
    is_plausible.then(|| TimeZone::get(name).ok()).flatten()
}

fn named_in(query: &str) -> Option<TimeZone> {
    let mut values = query.split('&').filter_map(|pair| pair.strip_prefix("tz="));
    zone(&values.next()?.replace("%2F", "/").replace("%2f", "/").replace("%2B", "+"))
}

fn without_zone(path: &str, query: &str) -> String {
    let rest: Vec<&str> =
        query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("tz=")).collect();
    if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) }
}

/// Renders a part of a page in a zone.
#[cfg(test)]
pub(crate) fn rendered_in(name: &str, render: impl FnOnce() -> String) -> String {
    let zone = TimeZone::get(name).unwrap();
    VIEW.sync_scope(View { zone, path: "/".to_owned() }, render)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_names_a_zone() {
        let name = |query: &str| Some(named_in(query)?.iana_name()?.to_owned());
        assert_eq!(name("q=a&tz=Asia%2FKolkata").as_deref(), Some("Asia/Kolkata"));
        assert_eq!(name("tz=Europe/Berlin").as_deref(), Some("Europe/Berlin"));
        for query in ["", "q=tz", "tz=", "tz=Nowhere/Here", "tz=../../etc/passwd", "tz=<b>"] {
            assert_eq!(name(query), None, "{query}");
        }
    }

    #[test]
    fn zone_is_removed_from_the_address_of_a_page() {
        assert_eq!(without_zone("/jobs", "q=a&tz=UTC&status=failed"), "/jobs?q=a&status=failed");
        assert_eq!(without_zone("/jobs", "tz=UTC"), "/jobs");
        assert_eq!(without_zone("/", ""), "/");
    }
}
