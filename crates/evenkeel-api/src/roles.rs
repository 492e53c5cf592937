//! What each operation asks of those who want it: the document says so, and the guard reads it
//! there, so that the two can't differ.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::MatchedPath;
use axum::http::{Extensions, Method};
use evenkeel_store::Role;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::Operation;

/// The extension of an operation that names the role: `viewer`, `operator`, `admin`, or `none` if
/// everybody may, or another kind of token is asked for.
pub(crate) const EXTENSION: &str = "x-required-role";

/// What an operation asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// Its name.
    pub(crate) operation: Arc<str>,
    /// Who may; anybody if it is none.
    pub(crate) role: Option<Role>,
}

impl Rule {
    /// Does it change something, for a user?
    pub(crate) fn changes(&self, method: &Method) -> bool {
        !matches!(*method, Method::GET | Method::HEAD) && self.role >= Some(Role::Operator)
    }
}

/// What each operation asks for.
pub(crate) struct Rules(HashMap<String, Vec<(Method, Rule)>>);

impl Rules {
    /// As the document says. Where it says nothing, only administrators may.
    pub(crate) fn of(document: &OpenApi) -> Self {
        let mut rules: HashMap<String, Vec<(Method, Rule)>> = HashMap::new();
        for (path, item) in &document.paths.paths {
            for (method, operation) in [
                (Method::GET, &item.get),
                (Method::POST, &item.post),
                (Method::PUT, &item.put),
                (Method::PATCH, &item.patch),
                (Method::DELETE, &item.delete),
            ] {
                if let Some(operation) = operation {
                    rules.entry(path.clone()).or_default().push((method, rule_of(operation)));
                }
            }
        }
        Self(rules)
    }

    /// What is asked of a request.
    pub(crate) fn find(&self, method: &Method, extensions: &Extensions) -> Rule {
        // Whoever may have the whole may have its head.
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let path = extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let found = self.0.get(path).and_then(|rules| rules.iter().find(|(own, _)| own == method));
        let unknown = || Rule { operation: "unknown".into(), role: Some(Role::Admin) };
        found.map_or_else(unknown, |(_, rule)| rule.clone())
    }
}

fn rule_of(operation: &Operation) -> Rule {
    let said = operation.extensions.as_ref().and_then(|extensions| extensions.get(EXTENSION));
    let said = said.and_then(|value| value.as_str());
    let role = match said {
        Some("none") => None,
        said => {
            let known = Role::ALL.into_iter().find(|role| Some(role.as_str()) == said);
            Some(known.unwrap_or(Role::Admin))
        }
    };
    Rule { operation: operation.operation_id.clone().unwrap_or_default().into(), role }
}
