//! Determines the role that each operation requires. The required roles come from the OpenAPI
//! document, so the document and the check always agree.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::MatchedPath;
use axum::http::{Extensions, Method};
use evenkeel_store::Role;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::Operation;

/// OpenAPI extension with the required role: `viewer`, `operator`, `admin`, or `none` if the
/// operation needs no token or the token of an attempt.
pub(crate) const EXTENSION: &str = "x-required-role";

/// The requirement of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rule {
    /// `operationId` of the operation.
    pub(crate) operation: Arc<str>,
    /// Lowest role that may call the operation; `None` if no role is required.
    pub(crate) role: Option<Role>,
}

impl Rule {
    /// True if the operation can change stored data.
    pub(crate) fn changes(&self, method: &Method) -> bool {
        !matches!(*method, Method::GET | Method::HEAD) && self.role >= Some(Role::Operator)
    }
}

/// The required roles of all operations, by path template.
pub(crate) struct Rules(HashMap<String, Vec<(Method, Rule)>>);

impl Rules {
    /// Reads the required roles from the OpenAPI document. An operation without a declared role
    /// requires `admin`.
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

    /// Returns the required role of the operation that a request calls.
    pub(crate) fn find(&self, method: &Method, extensions: &Extensions) -> Rule {
        // HEAD requires the same role as GET.
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        let path = extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let found = self.0.get(path).and_then(|rules| rules.iter().find(|(own, _)| own == method));
        let unknown = || Rule { operation: "unknown".into(), role: Some(Role::Admin) };
        found.map_or_else(unknown, |(_, rule)| rule.clone())
    }
}

fn rule_of(operation: &Operation) -> Rule {
    let role = operation.extensions.as_ref().and_then(|extensions| extensions.get(EXTENSION));
    let role = match role.and_then(|value| value.as_str()) {
        Some("none") => None,
        name => {
            let known = Role::ALL.into_iter().find(|role| Some(role.as_str()) == name);
            Some(known.unwrap_or(Role::Admin))
        }
    };
    Rule { operation: operation.operation_id.clone().unwrap_or_default().into(), role }
}
