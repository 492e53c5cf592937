//! The documentation of the API: a list of all operations, all of them on one page, and a form to try
//! each of them.

mod operation;
mod schema;
mod try_it;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Json};
use maud::{Markup, html};
use serde_json::Value;

pub(crate) use try_it::{send, try_it};

use super::items;
use crate::backend::Credential;
use crate::session::Session;
use crate::{Web, layout, text};
use operation::Operation;

const PATH: &str = "/docs/api";
const DOCUMENT: &str = "/api/openapi.json";
/// The parts of a link to a tag.
const TAG: &str = "tag-";

/// The list of all operations.
pub(crate) async fn show(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
) -> Response {
    let document = match web.backend.get(&session.credential, DOCUMENT).await {
        Ok(document) => document,
        Err(refused) => return layout::refused(&session, PATH, &refused),
    };
    let body = html! {
        h1 { "API" }
        p { "Programs call the API with a token or an API key. Here you can try each operation with "
            "the rights of your session." }
        p.commands { a href={ (PATH) "/all" } { "All operations on one page" }
            a href={ (PATH) "/openapi.json" } { "OpenAPI document" } }
        @for (tag, operations) in by_tag(&document) {
            section aria-labelledby={ (TAG) (tag) } {
                h2 id={ (TAG) (tag) } { (tag) }
                (list(&operations))
            }
        }
    };
    layout::page(&session, PATH, "API", &body)
}

fn list(operations: &[Operation<'_>]) -> Markup {
    html! {
        table {
            thead { tr { th scope="col" { "Operation" } th scope="col" { "Does" } th scope="col" { "Role" } } }
            tbody {
                @for operation in operations {
                    tr {
                        th scope="row" { a href=(operation.address()) { (operation.name()) } }
                        td { (text::plain(&operation.spec["summary"])) }
                        td { (text::plain(&operation.spec["x-required-role"])) }
                    }
                }
            }
        }
    }
}

/// The operations of each tag, in the order of the document.
fn by_tag(document: &Value) -> Vec<(&str, Vec<Operation<'_>>)> {
    let names = items(document, "tags").iter().filter_map(|tag| tag["name"].as_str());
    let mut tags: Vec<_> = names.map(|name| (name, Vec::new())).collect();
    for operation in Operation::all(document) {
        let tag = operation.spec["tags"][0].as_str().unwrap_or("other");
        match tags.iter_mut().find(|(name, _)| *name == tag) {
            Some((_, operations)) => operations.push(operation),
            None => tags.push((tag, vec![operation])),
        }
    }
    tags
}

/// All operations and schemas on one page.
pub(crate) async fn all(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
) -> Response {
    match web.backend.get(&session.credential, DOCUMENT).await {
        Ok(document) => layout::page(&session, PATH, "API documentation", &complete(&document)),
        Err(refused) => layout::refused(&session, PATH, &refused),
    }
}

/// `GET /api/docs`: the documentation without a session, if the server shows its OpenAPI document to
/// everybody. Else users must sign in. Paths below `/api/` never read the cookie of a session.
pub(crate) async fn without_session(State(web): State<Web>) -> Response {
    match web.backend.get(&Credential::none(), DOCUMENT).await {
        Ok(document) => layout::bare(StatusCode::OK, "API documentation", &complete(&document)),
        Err(_) => Redirect::to(PATH).into_response(),
    }
}

fn complete(document: &Value) -> Markup {
    let info = &document["info"];
    let tags = by_tag(document);
    let about = |name: &str| {
        let tag = items(document, "tags").iter().find(|tag| tag["name"] == name);
        tag.and_then(|tag| tag["description"].as_str()).unwrap_or_default().to_owned()
    };
    html! {
        // The page does not change while it is shown.
        div data-live="off" {
            h1 { (text::plain(&info["title"])) " API " small { (text::plain(&info["version"])) } }
            p { (text::plain(&info["description"])) }
            p { "Every request except health checks needs " code { "Authorization: Bearer TOKEN" } "; "
                code { "evenkeel token create" } " creates a token." }
            nav.contents aria-label="Operations" {
                @for (tag, operations) in &tags {
                    details {
                        summary { (tag) }
                        ul { @for operation in operations {
                            li { a href={ "#" (operation.id()) } { (operation.name()) } } } }
                    }
                }
                a href="#schemas" { "Schemas" }
            }
            @for (tag, operations) in &tags {
                section {
                    h2 { (tag) }
                    p { (about(tag)) }
                    @for operation in operations { (operation.article(document)) }
                }
            }
            (schema::all(document))
        }
    }
}

/// The OpenAPI document, for a user with a session instead of a token.
pub(crate) async fn document(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
) -> Response {
    match web.backend.get(&session.credential, DOCUMENT).await {
        Ok(document) => Json(&*document).into_response(),
        Err(refused) => layout::refused(&session, PATH, &refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        serde_json::to_value(evenkeel_api::openapi()).unwrap()
    }

    #[test]
    fn page_has_every_operation_and_schema_once() {
        let document = document();
        let page = complete(&document).into_string();
        for operation in Operation::all(&document) {
            let id = format!("<article id=\"{}\"", operation.id());
            assert_eq!(page.matches(&id).count(), 1, "{id}");
        }
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            assert_eq!(page.matches(&format!("id=\"schema-{name}\"")).count(), 1, "{name}");
        }
    }

    #[test]
    fn links_lead_into_the_page_or_to_the_form() {
        let page = complete(&document()).into_string();
        let links: Vec<&str> =
            page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(links.len() > 100, "{}", links.len());
        for link in links {
            match link.strip_prefix('#') {
                Some(id) => assert!(page.contains(&format!("id=\"{id}\"")), "{link} has no target"),
                None => assert!(link.starts_with("/docs/api/try?"), "{link}"),
            }
        }
    }
}
