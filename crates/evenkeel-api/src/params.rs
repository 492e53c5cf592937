//! Path and query parameters. Unknown query parameters are refused.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use evenkeel_commands::{Fault, read_time};
use evenkeel_core::{JobId, RunIds, Timestamp};

use crate::call::Call;
use crate::oversight::ResolvedId;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// The id in the path of a request, as text.
pub(crate) struct PathId(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::from_request_parts(parts, state).await;
        let detail = "not found: the id in the path is not readable";
        path.map(|Path(id)| Self(id)).map_err(|_| Problem::new(ProblemType::NotFound, detail))
    }
}

/// Parses the id in the path of a request; `what` names the kind of object in the error.
pub(crate) fn read_id<T: FromStr<Err: Display>>(text: &str, what: &str) -> Result<T, Problem> {
    text.parse().map_err(|error| {
        let detail = format!("there is no such {what}: the id in the path is {error}");
        Problem::new(ProblemType::NotFound, detail)
    })
}

/// The job that the path of a request gives by id or name.
pub(crate) struct PathJob(pub(crate) JobId);

impl FromRequestParts<App> for PathJob {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let PathId(text) = PathId::from_request_parts(parts, app).await?;
        let call = Call::from_request_parts(parts, app).await?;
        let id = call.jobs.resolve_id(call.scope(), &text).await?;
        if let Some(resolved) = parts.extensions.get::<ResolvedId>() {
            resolved.set(id.to_string());
        }
        Ok(Self(id))
    }
}

/// Finds the job that a query parameter gives by id or name; `None` if the parameter is missing.
pub(crate) async fn job_in_query(
    call: &Call,
    text: Option<String>,
) -> Result<Option<JobId>, Problem> {
    match text {
        Some(text) => Ok(Some(call.jobs.resolve_id(call.scope(), &text).await?)),
        None => Ok(None),
    }
}

/// Extractor for operations without query parameters; refuses every parameter.
pub(crate) struct NoParams;

impl FromRequestParts<App> for NoParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &App) -> Result<Self, Problem> {
        Params::from_request_parts(parts, state).await?.finish()?;
        Ok(Self)
    }
}

/// The query parameters of a request; handlers read them one by one.
pub(crate) struct Params {
    left: Vec<(String, String)>,
    known: Vec<&'static str>,
    faults: Vec<Fault>,
    /// Decrypts the job numbers inside page cursors.
    pub(crate) run_ids: RunIds,
}

impl FromRequestParts<App> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &App) -> Result<Self, Problem> {
        let query = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Query(left) = query.map_err(|_| Problem::parameter("", "the query is not readable"))?;
        Ok(Self { left, known: Vec::new(), faults: Vec::new(), run_ids: state.run_ids })
    }
}

impl Params {
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let place = self.left.iter().position(|(key, _)| key == name)?;
        let value = self.left.swap_remove(place).1;
        if value.contains('\0') {
            self.fault(name, "holds a NUL character; remove it");
        }
        Some(value)
    }

    /// Takes all parameters whose names start with `prefix`.
    pub(crate) fn starting(
        &mut self,
        prefix: &str,
        shown_as: &'static str,
    ) -> Vec<(String, String)> {
        self.known.push(shown_as);
        let (taken, left) = std::mem::take(&mut self.left)
            .into_iter()
            .partition(|(name, _)| name.starts_with(prefix));
        self.left = left;
        taken
    }

    /// Reads a parameter with `read`; an error of `read` is reported for this parameter.
    pub(crate) fn parsed<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(name)?;
        read(&text).map_err(|message| self.fault(name, message)).ok()
    }

    /// Reads a parameter whose value is one of `names`.
    pub(crate) fn choice<T: Copy>(&mut self, name: &'static str, names: &[(&str, T)]) -> Option<T> {
        self.parsed(name, |text| {
            let known = names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
            known.ok_or_else(|| {
                let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
                format!("{text:?} is not one of {}", names.join(", "))
            })
        })
    }

    pub(crate) fn time(&mut self, name: &'static str) -> Option<Timestamp> {
        self.parsed(name, read_time)
    }

    pub(crate) fn number(&mut self, name: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        self.parsed(name, |text| {
            let number = text.parse().ok().filter(|number| range.contains(number));
            let (low, high) = range.into_inner();
            number.ok_or_else(|| format!("{text:?} is not a whole number from {low} to {high}"))
        })
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let fault = |text: &str| format!("{text:?} is neither true nor false");
        self.parsed(name, |text| text.parse().map_err(|_| fault(text)))
    }

    pub(crate) fn add_fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(crate) fn fault(&mut self, name: &str, message: impl Into<String>) {
        self.faults.push(Fault::new(name, message));
    }

    /// Fails if a parameter is invalid, unknown or given twice.
    pub(crate) fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.left) {
            let message = if self.known.contains(&name.as_str()) {
                "is given twice; give it once".into()
            } else if self.known.is_empty() {
                "is not known here; this operation has no parameters".into()
            } else {
                format!("is not known here; the parameters are {}", self.known.join(", "))
            };
            self.faults.push(Fault::new(name, message));
        }
        if self.faults.is_empty() {
            Ok(())
        } else {
            self.faults.truncate(50);
            Err(Problem::of_fields(ProblemType::InvalidParameter, self.faults))
        }
    }
}
