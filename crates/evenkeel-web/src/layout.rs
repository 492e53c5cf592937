//! The frame of all pages.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

use crate::backend::Refused;
use crate::session::Session;
use crate::zone;

/// The main pages in the navigation: path and name.
const PAGES: &[(&str, &str)] = &[
    ("/", "Overview"),
    ("/jobs", "Jobs"),
    ("/runs", "Runs"),
    ("/timeline", "Timeline"),
    ("/queue", "Queue"),
    ("/at-risk", "At risk"),
    ("/failures", "Failures"),
    ("/balance", "Balance"),
    ("/nodes", "Nodes"),
];
/// Pages in the group "More" of the navigation.
const MORE: &[(&str, &str)] = &[
    ("/dead-letters", "Dead letters"),
    ("/pauses", "Pauses"),
    ("/pages", "Crawled pages"),
    ("/targets", "Targets"),
    ("/docs/api", "API"),
];
/// Pages of the group "More" that only administrators may read.
const ADMIN: &[(&str, &str)] = &[("/audit", "Audit"), ("/access", "Access")];

/// Renders a page for a signed-in user.
pub(crate) fn page(session: &Session, path: &str, title: &str, body: &Markup) -> Response {
    let navigation = html! {
        nav aria-label="Pages" {
            (links(PAGES, path))
            details.menu.more.current[MORE.iter().chain(ADMIN).any(|(target, _)| *target == path)] {
                summary { "More" }
                div {
                    (links(MORE, path))
                    @if session.role == evenkeel_store::Role::Admin { (links(ADMIN, path)) }
                }
            }
        }
        // Shown by the script, because without JavaScript there are no live updates.
        div.live id="live" hidden {
            span role="status" {}
            button type="button" { span { "Pause" } span { " live updates" } }
        }
        (zone::switch())
        details.menu {
            summary { span { (session.subject) " · " (session.role.as_str()) " · " (session.tenant) } }
            div {
                button type="button" data-keys="" aria-haspopup="dialog" hidden { "Keyboard shortcuts" }
                form method="post" action="/ui/sign-out" {
                    input type="hidden" name="token" value=(session.form_token);
                    button { "Sign out" }
                }
            }
        }
    };
    Html(frame(title, &navigation, body).into_string()).into_response()
}

fn links(pages: &[(&str, &str)], path: &str) -> Markup {
    html! {
        @for (target, name) in pages {
            a href=(target) aria-current=[(*target == path).then_some("page")] { (name) }
        }
    }
}

/// Renders a page without navigation.
pub(crate) fn bare(status: StatusCode, title: &str, body: &Markup) -> Response {
    (status, Html(frame(title, &html! {}, body).into_string())).into_response()
}

pub(crate) fn error(status: StatusCode, title: &str, detail: &str) -> Response {
    let body = html! {
        h1 { (title) }
        p role="alert" { (detail) }
        p { a href="/" { "To the overview" } }
    };
    bare(status, title, &body)
}

/// Renders what the API refused: what is wrong, and what to do.
pub(crate) fn refused(session: &Session, path: &str, refused: &Refused) -> Response {
    let title = match refused.status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::FORBIDDEN => "Your role does not allow this",
        StatusCode::CONFLICT => "Not possible now",
        StatusCode::SERVICE_UNAVAILABLE => "The server can't answer now",
        _ => "The request was refused",
    };
    let body = html! {
        h1 { (title) }
        p role="alert" { (refused.detail) }
        @if refused.status == StatusCode::FORBIDDEN {
            p { "You are signed in with the role " strong { (session.role.as_str()) } ". Ask an administrator of the tenant "
                (session.tenant) " for a token or key with more rights, sign out, and sign in with it." }
        }
        @if refused.status == StatusCode::SERVICE_UNAVAILABLE {
            p { "Reload the page in a few seconds. The page " a href="/readyz" { "/readyz" }
                " says which part of the server is not ready." }
        }
    };
    let mut response = page(session, path, title, &body);
    *response.status_mut() = refused.status;
    response
}

/// A button that sends a form to `action`.
pub(crate) fn button(
    session: &Session,
    action: &str,
    fields: &[(&str, &str)],
    label: &str,
) -> Markup {
    form(session, action, fields, &html! { button { (label) } })
}

/// The button for what most users of a page want to do.
pub(crate) fn primary_button(
    session: &Session,
    action: &str,
    fields: &[(&str, &str)],
    label: &str,
) -> Markup {
    form(session, action, fields, &html! { button.primary { (label) } })
}

fn form(session: &Session, action: &str, fields: &[(&str, &str)], button: &Markup) -> Markup {
    html! {
        form.inline method="post" action=(action) {
            input type="hidden" name="token" value=(session.form_token);
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            (button)
        }
    }
}

/// A boat on an even keel.
fn mark() -> Markup {
    html! {
        svg viewBox="0 0 24 24" aria-hidden="true" {
            path d="M2 15h20l-3.2 6H5.2zM11 2v12H3.4zM13 4v10h7.6z" fill="currentColor" {}
        }
    }
}

fn frame(title: &str, navigation: &Markup, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // With the header's "no-referrer", browsers send "Origin: null" with forms, which the
                // guard refuses.
                meta name="referrer" content="same-origin";
                title { (title) " · Evenkeel" }
                link rel="stylesheet" href="/assets/style.css";
                link rel="icon" href="/assets/icon.svg" type="image/svg+xml";
                script src="/assets/app.js" defer {}
                script src="/assets/keyboard.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header { a.brand href="/" { (mark()) span { "Evenkeel" } } (navigation) }
                main id="main" { (body) }
            }
        }
    }
}
