//! Parameters of a query, none of them ignored.

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use evenkeel_commands::{Fault, read_time};
use evenkeel_core::{JobId, RunIds, Timestamp};

use crate::auth::Caller;
use crate::oversight::Meant;
use crate::problem::{Problem, ProblemType};
use crate::state::App;

/// The id in a path, as it is written there.
pub(crate) struct PathId(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(Self(id)),
            Err(_) => {
                let detail = "there is no such thing: the id in the path is not readable";
                Err(Problem::new(ProblemType::NotFound, detail))
            }
        }
    }
}

/// The job in a path, by its id or its name.
pub(crate) struct PathJob(pub(crate) JobId);

impl FromRequestParts<App> for PathJob {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let PathId(text) = PathId::from_request_parts(parts, app).await?;
        let caller = Caller::from_request_parts(parts, app).await?;
        let id = app.jobs.id_meant(&caller.scope, &text).await?;
        if let Some(meant) = parts.extensions.get::<Meant>() {
            meant.set(id.to_string());
        }
        Ok(Self(id))
    }
}

/// The job in a query, by its id or its name, if there is one.
pub(crate) async fn job_in_query(
    app: &App,
    caller: &Caller,
    text: Option<String>,
) -> Result<Option<JobId>, Problem> {
    match text {
        Some(text) => Ok(Some(app.jobs.id_meant(&caller.scope, &text).await?)),
        None => Ok(None),
    }
}

/// Refuses every query parameter, for operations that have none.
pub(crate) struct NoParams;

impl FromRequestParts<App> for NoParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &App) -> Result<Self, Problem> {
        Params::from_request_parts(parts, state).await?.finish()?;
        Ok(Self)
    }
}

/// The parameters of a query, taken one by one.
pub(crate) struct Params {
    left: Vec<(String, String)>,
    known: Vec<&'static str>,
    faults: Vec<Fault>,
    /// Decrypts the job numbers in page cursors.
    pub(crate) run_ids: RunIds,
}

impl FromRequestParts<App> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &App) -> Result<Self, Problem> {
        let query = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        match query {
            Ok(Query(left)) => {
                let run_ids = state.run_ids;
                Ok(Self { left, known: Vec::new(), faults: Vec::new(), run_ids })
            }
            Err(_) => Err(Problem::parameter("", "the query of the address is not readable")),
        }
    }
}

impl Params {
    /// A text.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        let place = self.left.iter().position(|(key, _)| key == name)?;
        let value = self.left.swap_remove(place).1;
        if value.contains('\0') {
            self.fault(name, "holds a NUL character; take it out");
        }
        Some(value)
    }

    /// All parameters whose names start with `prefix`.
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

    /// One of some words.
    pub(crate) fn choice<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        let known = words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant);
        if known.is_none() {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.fault(name, format!("{text:?} is not one of {}", words.join(", ")));
        }
        known
    }

    /// A moment.
    pub(crate) fn time(&mut self, name: &'static str) -> Option<Timestamp> {
        let text = self.text(name)?;
        match read_time(&text) {
            Ok(moment) => Some(moment),
            Err(message) => {
                self.fault(name, message);
                None
            }
        }
    }

    /// Notes a fault that was found elsewhere.
    pub(crate) fn add_fault(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    /// A whole number in a range.
    pub(crate) fn number(
        &mut self,
        name: &'static str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Option<u32> {
        let text = self.text(name)?;
        let number = text.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            let (low, high) = range.into_inner();
            self.fault(name, format!("{text:?} is not a whole number from {low} to {high}"));
        }
        number
    }

    /// `true` or `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let text = self.text(name)?;
        let flag = text.parse().ok();
        if flag.is_none() {
            self.fault(name, format!("{text:?} is neither true nor false"));
        }
        flag
    }

    /// Notes what is wrong with a parameter.
    pub(crate) fn fault(&mut self, name: &str, message: impl Into<String>) {
        self.faults.push(Fault::new(name, message));
    }

    /// Every parameter must have been asked for, and once.
    pub(crate) fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.left) {
            let message = if self.known.contains(&name.as_str()) {
                "is there twice; give it once".into()
            } else if self.known.is_empty() {
                "is not known here; this takes no parameters".into()
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
