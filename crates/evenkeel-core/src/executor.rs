//! The properties that each executor declares about itself, so that no other part of the program
//! needs a list of executors.
//!
//! The declaration of each executor is next to the executor's code. This module contains only the
//! types of executor declarations, so that the crates for commands and API do not depend on the
//! executors. The crates for commands and API need the declarations to redact configurations, to
//! resolve aliases and to find the default deduplication key.

mod config;

use serde_json::{Map, Value};

use crate::job::ExecutorSpec;
pub use config::{ConfigFault, Fields};

/// The constant properties of one kind of executor.
#[derive(Debug)]
pub struct ExecutorDeclaration {
    /// The value of `executor_type`.
    pub kind: &'static str,
    /// Other values of `executor_type` that are stored as `kind`.
    pub aliases: &'static [&'static str],
    /// All fields of `executor_config`. An executor refuses unknown fields.
    pub fields: &'static [ConfigField],
    /// The field of `executor_config` that serves as the deduplication key of a unique job without
    /// `dedup_key`, `target`, `source_id` and `url`.
    pub dedup_field: Option<&'static str>,
    /// Set only for the executor that runs jobs with a `url` and no `executor_type`.
    pub start: Option<StartFields>,
    /// False if the executor reads neither secrets nor the payload.
    pub resolves_secrets: bool,
    /// A hint for the error message if a job names this executor and the server has not enabled the
    /// executor.
    pub disabled_hint: Option<&'static str>,
}

impl ExecutorDeclaration {
    /// Declares an executor without the optional properties.
    pub const fn new(kind: &'static str, fields: &'static [ConfigField]) -> Self {
        Self {
            kind,
            aliases: &[],
            fields,
            dedup_field: None,
            start: None,
            resolves_secrets: true,
            disabled_hint: None,
        }
    }
}

/// A field of `executor_config`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ConfigField {
    pub name: &'static str,
    pub kind: FieldKind,
    /// True if the field may refer to a secret with `{"secret": "name"}` or `{{secret.name}}`.
    pub takes_secrets: bool,
}

/// The kind of data in a field of `executor_config`. The kind determines how much of the field
/// users with the role viewer can see.
///
/// A field that its executor does not declare is [`Hidden`](Self::Hidden).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// Values that are never confidential. Viewers see them.
    Public,
    /// A URL. Viewers do not see the user, password, query values and fragment of the URL.
    Url,
    /// A list of URLs, each redacted like [`Url`](Self::Url).
    UrlList,
    /// An object. Viewers see the keys of the object but not the values.
    HiddenValues,
    /// A program and its arguments. Viewers see the program. Program arguments cannot contain
    /// secrets, because all users of the machine can read program arguments.
    Arguments,
    /// Viewers see only whether the field is set.
    Hidden,
}

impl ConfigField {
    pub const fn new(name: &'static str, kind: FieldKind) -> Self {
        Self { name, kind, takes_secrets: false }
    }

    pub const fn public(name: &'static str) -> Self {
        Self::new(name, FieldKind::Public)
    }

    #[must_use]
    pub const fn with_secrets(self) -> Self {
        Self { takes_secrets: true, ..self }
    }
}

/// The configuration fields in which an executor expects its start URL, for example the first page
/// of a crawl.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct StartFields {
    /// The configuration field that receives the job's `url`.
    pub url: &'static str,
    /// The configuration field with a list of start URLs. The job's `url` is not added to a
    /// configuration that has a list of start URLs.
    pub list: &'static str,
}

impl StartFields {
    /// Returns `config` with `url` as the start URL, unless `config` already has a start URL.
    pub fn add(&self, config: Value, url: Option<&str>) -> Value {
        let mut fields = match config {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let has_start = fields.contains_key(self.url) || fields.contains_key(self.list);
        if let (false, Some(url)) = (has_start, url) {
            fields.insert(self.url.into(), url.into());
        }
        Value::Object(fields)
    }

    /// Undoes [`add`](Self::add): removes the start URL from `config` if it equals `url`.
    pub fn remove(&self, config: &mut Value, url: Option<&str>) {
        if let Some(fields) = config.as_object_mut() {
            let start = fields.get(self.url).and_then(Value::as_str);
            if start.is_some() && start == url && !fields.contains_key(self.list) {
                fields.remove(self.url);
            }
        }
    }
}

/// The declarations of all executors in the program, including those that this server has not
/// enabled.
#[derive(Copy, Clone, Debug)]
pub struct ExecutorCatalog(&'static [&'static ExecutorDeclaration]);

impl ExecutorCatalog {
    pub const EMPTY: Self = Self(&[]);

    pub const fn new(declarations: &'static [&'static ExecutorDeclaration]) -> Self {
        Self(declarations)
    }

    pub fn iter(self) -> impl Iterator<Item = &'static ExecutorDeclaration> {
        self.0.iter().copied()
    }

    pub fn get(self, kind: &str) -> Option<&'static ExecutorDeclaration> {
        self.iter().find(|one| one.kind == kind || one.aliases.contains(&kind))
    }

    /// Returns the executor type that is stored for this `executor_type`; an alias is replaced with
    /// the real name.
    pub fn canonical(self, kind: &str) -> &str {
        self.get(kind).map_or(kind, |declaration| declaration.kind)
    }

    /// Returns the executor for jobs that have a `url` and no `executor_type`.
    pub fn for_urls(self) -> Option<(&'static str, StartFields)> {
        self.iter().find_map(|one| Some((one.kind, one.start?)))
    }

    /// Returns the configuration fields of an executor. An unknown executor has no known fields, so
    /// its whole configuration is redacted. A job whose target has no `url` yet has the fields of
    /// the executor for URLs, which will run the job.
    pub fn fields(self, kind: &str) -> &'static [ConfigField] {
        let kind = match self.for_urls() {
            Some((for_urls, _)) if kind == ExecutorSpec::NONE => for_urls,
            _ => kind,
        };
        self.get(kind).map_or(&[], |declaration| declaration.fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    static CALL: ExecutorDeclaration = ExecutorDeclaration {
        aliases: &["callback"],
        ..ExecutorDeclaration::new("call", &[ConfigField::public("method")])
    };
    static VISIT: ExecutorDeclaration = ExecutorDeclaration {
        start: Some(StartFields { url: "url", list: "start_urls" }),
        ..ExecutorDeclaration::new("visit", &[ConfigField::public("depth")])
    };
    static CATALOG: ExecutorCatalog = ExecutorCatalog::new(&[&CALL, &VISIT]);

    #[test]
    fn catalog_finds_executors_by_name_and_alias() {
        assert_eq!(CATALOG.canonical("callback"), "call");
        assert_eq!(CATALOG.canonical("visit"), "visit");
        assert_eq!(CATALOG.canonical("unknown"), "unknown");
        assert_eq!(CATALOG.for_urls().unwrap().0, "visit");
    }

    #[test]
    fn catalog_has_no_fields_for_unknown_executors() {
        assert_eq!(CATALOG.fields("callback"), CALL.fields);
        assert_eq!(CATALOG.fields(ExecutorSpec::NONE), VISIT.fields);
        assert_eq!(CATALOG.fields("unknown"), []);
    }

    #[test]
    fn start_fields_add_and_remove_the_job_url() {
        let start = VISIT.start.unwrap();
        let url = Some("https://a/");
        let added = start.add(json!({"depth": 1}), url);
        assert_eq!(added, json!({"depth": 1, "url": "https://a/"}));
        let mut removed = added;
        start.remove(&mut removed, url);
        assert_eq!(removed, json!({"depth": 1}));
        for own in [json!({"url": "https://b/"}), json!({"start_urls": []})] {
            assert_eq!(start.add(own.clone(), url), own);
            let mut kept = own.clone();
            start.remove(&mut kept, url);
            assert_eq!(kept, own);
        }
    }
}
