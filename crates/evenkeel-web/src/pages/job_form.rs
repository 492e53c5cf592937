//! Creates and edits a job, by form or as JSON, with a preview before saving.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::job_field_list::{Field, GROUPS, Kind, fields};
use super::job_fields::{self, Values, form_field, shown};
use super::{job_json, job_preview};
use crate::backend::{FieldError, Refused, escape};
use crate::session::Session;
use crate::{Web, layout, text};

/// Groups of the form that are open at first.
const OPEN_GROUPS: usize = 3;

#[derive(Deserialize)]
pub(crate) struct Parameters {
    #[serde(rename = "as")]
    form: Option<String>,
}

/// What the form shows.
struct Draft<'a> {
    job: Option<&'a Value>,
    is_json: bool,
    values: Values,
    errors: Vec<FieldError>,
    /// What is wrong with the request as a whole.
    problem: Option<String>,
    preview: Option<Markup>,
}

/// The page for a new job.
pub(crate) async fn create(
    Extension(session): Extension<Session>,
    Query(query): Query<Parameters>,
) -> Response {
    match refuse_viewer(&session) {
        Some(refused) => refused,
        None => Draft::new(None, query.form.as_deref() == Some("json")).show(&session),
    }
}

/// The page for a job that exists.
pub(crate) async fn edit(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Path(id): Path<String>,
    Query(query): Query<Parameters>,
) -> Response {
    if let Some(refused) = refuse_viewer(&session) {
        return refused;
    }
    let path = format!("/api/v1/jobs/{}", escape(&id));
    match web.backend.get(&session.credential, &path).await {
        Ok(job) => Draft::new(Some(&job), query.form.as_deref() == Some("json")).show(&session),
        Err(refused) => layout::refused(&session, "/jobs", &refused),
    }
}

fn refuse_viewer(session: &Session) -> Option<Response> {
    let is_viewer = session.role < evenkeel_store::Role::Operator;
    let detail = "Creating and editing jobs needs the role operator. Sign in with another token.";
    let refused = Refused::new(StatusCode::FORBIDDEN, detail);
    is_viewer.then(|| layout::refused(session, "/jobs", &refused))
}

/// Shows the form again, with a preview of what would be saved.
pub(crate) async fn preview(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Form(values): Form<Values>,
) -> Response {
    submit(&web, &session, values, false).await
}

pub(crate) async fn save(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Form(values): Form<Values>,
) -> Response {
    submit(&web, &session, values, true).await
}

async fn submit(web: &Web, session: &Session, values: Values, is_final: bool) -> Response {
    let value = |name: &str| values.get(name).map_or("", String::as_str);
    if let Some(refused) = session.refuse_form(web, value("token")) {
        return refused;
    }
    let path = format!("/api/v1/jobs/{}", escape(value("id")));
    let job = match value("id") {
        "" => None,
        _ => match web.backend.get(&session.credential, &path).await {
            Ok(job) => Some(job),
            Err(refused) => return layout::refused(session, "/jobs", &refused),
        },
    };
    let job = job.as_deref();
    let is_json = value("as") == "json";
    let read = if is_json { job_json::document } else { job_fields::document };
    let document = read(&values, job);
    let generation = value("generation").parse().unwrap_or(0);
    let mut draft = Draft { values, ..Draft::new(job, is_json) };
    let document = match document {
        Ok(document) => document,
        Err(errors) => {
            draft.errors = errors;
            return draft.show(session);
        }
    };
    let credential = &session.credential;
    let refused = match (is_final, job) {
        (false, _) => match job_preview::load(web, session, &document, job).await {
            Ok(preview) => {
                draft.preview = Some(preview.render(web.now()));
                return draft.show(session);
            }
            Err(refused) => refused,
        },
        (true, None) => match web.backend.post(credential, "/api/v1/jobs", Some(&document)).await {
            Ok(saved) => return saved_page(session, &saved, "create"),
            Err(refused) => refused,
        },
        (true, Some(_)) => match web.backend.put(credential, &path, &document, generation).await {
            Ok(saved) => return saved_page(session, &saved, "edit"),
            Err(refused) => refused,
        },
    };
    if matches!(refused.status, StatusCode::FORBIDDEN | StatusCode::SERVICE_UNAVAILABLE) {
        return layout::refused(session, "/jobs", &refused);
    }
    draft.refuse(refused).show(session)
}

/// Leads to the saved job, or shows first what the API warns about.
fn saved_page(session: &Session, saved: &Value, done: &str) -> Response {
    let target = format!("/jobs/{}?done={done}", escape(&text::plain(&saved["id"])));
    let warnings = super::items(saved, "warnings");
    if warnings.is_empty() {
        return Redirect::to(&target).into_response();
    }
    let body = html! {
        h1 { "Saved, with warnings" }
        ul { @for warning in warnings { li { (text::plain(warning)) } } }
        p { a href=(target) { "To the job" } }
    };
    layout::page(session, "/jobs", "Saved, with warnings", &body)
}

impl<'a> Draft<'a> {
    fn new(job: Option<&'a Value>, is_json: bool) -> Self {
        let mut values = Values::new();
        if is_json {
            values.insert("json".into(), job_json::text_of(job));
        } else if let Some(job) = job {
            values.extend(fields().map(|it| (it.name.to_owned(), shown(job, it.name))));
        } else {
            values.insert("schedule.value".into(), "1h".into());
            values.insert("timezone".into(), "UTC".into());
        }
        if let Some(job) = job {
            values.insert("generation".into(), job["generation"].to_string());
        }
        Self { job, is_json, values, errors: Vec::new(), problem: None, preview: None }
    }

    fn refuse(mut self, refused: Refused) -> Self {
        let is_shown = |error: &FieldError| self.is_json || form_field(&error.field).is_some();
        if !refused.fields.iter().any(is_shown) || !refused.fields.iter().all(is_shown) {
            self.problem = Some(refused.detail);
        }
        self.errors = refused.fields;
        self
    }

    fn value(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    fn show(&self, session: &Session) -> Response {
        let title = match self.job {
            Some(job) => format!("Edit {}", text::job_name(&job["name"], &job["id"])),
            None => "New job".to_owned(),
        };
        let is_refused = self.problem.is_some() || !self.errors.is_empty();
        let body = html! {
            h1 { (title) }
            (self.other_form())
            @if let Some(problem) = &self.problem { p.problem role="alert" { (problem) } }
            @else if is_refused {
                p.problem role="alert" { "The job is not saved. " (self.errors.len())
                    " field(s) need a change." }
            }
            form.job method="post" action="/ui/jobs/save" data-live="off" {
                input type="hidden" name="token" value=(session.form_token);
                @if self.is_json { input type="hidden" name="as" value="json"; }
                @if let Some(job) = self.job {
                    input type="hidden" name="id" value=(text::plain(&job["id"]));
                    input type="hidden" name="generation" value=(self.value("generation"));
                }
                @if self.is_json { (job_json::render(&self.values, &self.errors, self.job.is_none())) }
                @else { (self.groups()) }
                // The first button is the one that the Enter key presses.
                div.commands {
                    button formaction="/ui/jobs/preview" { "Preview" }
                    button.primary { @if self.job.is_some() { "Save" } @else { "Create" } }
                }
            }
            @if let Some(preview) = &self.preview { (preview) }
            @else { p { "The preview shows the next ten times in the zone of the job"
                @if self.job.is_some() { " and what would change" } "." } }
        };
        let mut response = layout::page(session, "/jobs", &title, &body);
        if is_refused {
            *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
        }
        response
    }

    /// Links to the other form of the page, and back to the job.
    fn other_form(&self) -> Markup {
        let path = match self.job {
            Some(job) => format!("/jobs/{}", escape(&text::plain(&job["id"]))),
            None => "/jobs".to_owned(),
        };
        let form = if self.job.is_some() { format!("{path}/edit") } else { "/jobs/new".into() };
        html! {
            p {
                @if self.is_json { a href=(form) { "As a form" } }
                @else { a href={ (form) "?as=json" } { "As JSON, with all fields" } }
                " · " a href=(path) { "Cancel" }
            }
        }
    }

    fn groups(&self) -> Markup {
        html! {
            @for (nth, (title, fields)) in GROUPS.iter().enumerate() {
                @let has_error = fields.iter().any(|field| self.errors_of(field).next().is_some());
                details.group open[nth < OPEN_GROUPS || has_error] {
                    summary { (title) }
                    @for field in *fields { (self.field(field)) }
                }
            }
        }
    }

    fn errors_of<'b>(&'b self, field: &'b Field) -> impl Iterator<Item = &'b FieldError> {
        self.errors.iter().filter(|error| form_field(&error.field) == Some(field.name))
    }

    fn field(&self, field: &Field) -> Markup {
        let (name, value) = (field.name, self.value(field.name));
        let is_invalid = self.errors_of(field).next().is_some().then_some("true");
        let described = format!("{name}-help");
        html! {
            div.field {
                label for=(name) { (field.label) }
                @match &field.kind {
                    Kind::Area => textarea id=(name) name=(name) rows="3" cols="60" spellcheck="false"
                        aria-describedby=(described) aria-invalid=[is_invalid] { "\n" (value) },
                    Kind::Choice(choices) => select id=(name) name=(name)
                        aria-describedby=(described) aria-invalid=[is_invalid] {
                        @if !matches!(name, "schedule.kind" | "executor_type") {
                            option value="" { "default" }
                        }
                        @for choice in *choices {
                            option value=(choice) selected[*choice == value] { (choice) }
                        }
                        // A job may have an executor that the form does not offer.
                        @if !value.is_empty() && !choices.contains(&value) {
                            option value=(value) selected { (value) }
                        }
                    },
                    Kind::Number | Kind::Text => input id=(name) name=(name) value=(value)
                        inputmode=[matches!(field.kind, Kind::Number).then_some("numeric")]
                        autocomplete="off" aria-describedby=(described) aria-invalid=[is_invalid];,
                }
                small id=(described) {
                    (field.help)
                    @for error in self.errors_of(field) { span.field-error { " ✕ " (error.message) } }
                }
            }
        }
    }
}
