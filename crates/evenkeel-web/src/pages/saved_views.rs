//! Saved views: filters of the list of jobs to which a user has given a name.
//!
//! The browser keeps them in a cookie. The cookie names its user, so that another user of the same
//! browser does not see them.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::jobs::{Filter, PATH};
use super::lists::{Fields, address};
use crate::session::Session;
use crate::{Web, cookies, layout};

const COOKIE: &str = "evenkeel_views";
const VIEWS_MAX: usize = 10;
const NAME_CHARS_MAX: usize = 60;
/// Browsers refuse cookies of more than 4,096 bytes.
const COOKIE_BYTES_MAX: usize = 3000;

#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
struct View {
    name: String,
    /// The query of the list.
    query: String,
}

#[derive(Serialize, Deserialize, Default, PartialEq, Eq, Debug)]
struct Views {
    /// Tenant and subject of the user.
    of: (String, String),
    views: Vec<View>,
}

impl Views {
    fn of(session: &Session, headers: &HeaderMap) -> Self {
        let of = (session.tenant.clone(), session.subject.clone());
        let kept = cookies::find(headers, COOKIE).and_then(Self::read);
        kept.filter(|kept| kept.of == of).unwrap_or(Self { of, views: Vec::new() })
    }

    fn read(cookie: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(cookie).ok()?;
        let mut views: Self = serde_json::from_slice(&bytes).ok()?;
        views.views.truncate(VIEWS_MAX);
        Some(views)
    }

    fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Adds a view, or replaces the one with the same name. Returns why this is not possible.
    fn add(&mut self, view: View) -> Result<(), String> {
        if view.name.is_empty() || view.name.chars().count() > NAME_CHARS_MAX {
            return Err(format!("Give the view a name of 1 to {NAME_CHARS_MAX} characters."));
        }
        match self.views.iter_mut().find(|known| known.name == view.name) {
            Some(known) => *known = view,
            None => self.views.push(view),
        }
        if self.views.len() > VIEWS_MAX || self.text().len() > COOKIE_BYTES_MAX {
            return Err(format!(
                "The browser keeps up to {VIEWS_MAX} views of {COOKIE_BYTES_MAX} bytes in all. Remove a view \
                 first, or keep the address as a bookmark."
            ));
        }
        Ok(())
    }
}

/// The saved views as links, and a form to save the filter that the page shows.
pub(super) fn list(session: &Session, headers: &HeaderMap, shown: &Fields<'_>) -> Markup {
    let Views { views, .. } = Views::of(session, headers);
    let query = query_of(shown);
    let is_saved = views.iter().any(|view| view.query == query);
    html! {
        @if !views.is_empty() {
            nav.views aria-label="Saved views" {
                "Saved views: "
                @for view in &views {
                    span.view {
                        a href={ (PATH) "?" (view.query) } aria-current=[(view.query == query).then_some("page")] { (view.name) }
                        " " (layout::button(session, "/ui/views/remove", &[("name", &view.name)], &format!("Remove {}", view.name)))
                    }
                }
            }
        }
        @if !query.is_empty() && !is_saved {
            details {
                summary { "Save this view" }
                form.filter method="post" action="/ui/views/save" {
                    input type="hidden" name="token" value=(session.form_token);
                    @for (name, value) in shown.iter().filter(|(_, value)| !value.is_empty()) {
                        input type="hidden" name=(name) value=(value);
                    }
                    label for="view" { "Name of the view" }
                    input id="view" name="view" required maxlength=(NAME_CHARS_MAX) aria-describedby="view-help";
                    small id="view-help" { "This browser keeps it for you. Signing out removes it." }
                    button { "Save" }
                }
            }
        }
    }
}

fn query_of(fields: &Fields<'_>) -> String {
    address("", fields).trim_start_matches('?').to_owned()
}

pub(super) fn notice(done: &str) -> Option<String> {
    match done {
        "save-view" => Some("The view is saved.".into()),
        "remove-view" => Some("The view is removed.".into()),
        _ => None,
    }
}

#[derive(Deserialize)]
pub(crate) struct NewView {
    #[serde(default)]
    token: String,
    #[serde(default)]
    view: String,
    #[serde(default)]
    sort: String,
    #[serde(flatten)]
    filter: Filter,
}

pub(crate) async fn save(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    headers: HeaderMap,
    Form(form): Form<NewView>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &form.token) {
        return refused;
    }
    let mut fields = form.filter.fields().to_vec();
    fields.push(("sort", &form.sort));
    let query = query_of(&fields);
    let mut views = Views::of(&session, &headers);
    let view = View { name: form.view.trim().to_owned(), query };
    if let Err(detail) = views.add(view) {
        return layout::error(StatusCode::UNPROCESSABLE_ENTITY, "The view is not saved", &detail);
    }
    fields.push(("done", "save-view"));
    answer(&web, &views, &address(PATH, &fields))
}

#[derive(Deserialize)]
pub(crate) struct Removal {
    #[serde(default)]
    token: String,
    #[serde(default)]
    name: String,
}

pub(crate) async fn remove(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    headers: HeaderMap,
    Form(Removal { token, name }): Form<Removal>,
) -> Response {
    if let Some(refused) = session.refuse_form(&web, &token) {
        return refused;
    }
    let mut views = Views::of(&session, &headers);
    views.views.retain(|view| view.name != name);
    answer(&web, &views, &address(PATH, &[("done", "remove-view")]))
}

fn answer(web: &Web, views: &Views, target: &str) -> Response {
    let mut response = Redirect::to(target).into_response();
    cookies::set(&mut response, COOKIE, &views.text(), web.is_tls);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, query: &str) -> View {
        View { name: name.to_owned(), query: query.to_owned() }
    }

    #[test]
    fn views_survive_in_their_cookie() {
        let mut views = Views { of: ("t".into(), "s".into()), ..Views::default() };
        views.add(view("mine é", "q=a")).unwrap();
        views.add(view("mine é", "q=b")).unwrap();
        assert_eq!(views.views, [view("mine é", "q=b")]);
        assert_eq!(Views::read(&views.text()), Some(views));
        for broken in ["", "!", "e30"] {
            assert_eq!(Views::read(broken), None, "{broken}");
        }
    }

    #[test]
    fn number_and_size_of_views_are_bounded() {
        let mut views = Views::default();
        for nth in 0..VIEWS_MAX {
            views.add(view(&nth.to_string(), "q=a")).unwrap();
        }
        assert!(views.add(view("one more", "q=a")).is_err());
        let mut views = Views::default();
        assert!(views.add(view("long", &"x".repeat(COOKIE_BYTES_MAX))).is_err());
        for name in ["", &"x".repeat(NAME_CHARS_MAX + 1)] {
            assert!(Views::default().add(view(name, "q=a")).is_err(), "{name}");
        }
    }
}
