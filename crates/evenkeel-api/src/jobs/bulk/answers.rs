//! Collects the results of all batches of one bulk request.

use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::idempotency;
use crate::problem::{Problem, ProblemType};

/// The response of a bulk request: a [`BulkView`] whose results are already serialized.
#[derive(Default, Serialize)]
pub(super) struct Answers {
    created: u64,
    deduplicated: u64,
    refused: u64,
    results: Vec<Box<RawValue>>,
    /// True if repeating the request may give other results.
    #[serde(skip)]
    pub(super) is_not_final: bool,
    /// Problem that kept the server from starting further batches.
    #[serde(skip)]
    pub(super) halt: Option<Problem>,
    /// Problem of the first job that was not created because the database is not writable.
    #[serde(skip)]
    unwritable: Option<Problem>,
    /// True if it is unknown whether some jobs were created.
    #[serde(skip)]
    is_doubtful: bool,
}

/// The fields of one job's serialized result that the counters of the response need.
#[derive(Deserialize)]
struct ResultLine {
    status: u16,
    error: Option<ResultError>,
}

#[derive(Deserialize)]
struct ResultError {
    #[serde(rename = "type")]
    kind: String,
    detail: String,
}

impl Answers {
    /// Adds the results of a batch, given as one JSON text per line.
    pub(super) fn add(&mut self, lines: &[u8]) -> Result<(), serde_json::Error> {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let ResultLine { status, error } = serde_json::from_slice(line)?;
            self.created += u64::from(status == 201);
            self.deduplicated += u64::from(status == 200);
            self.refused += u64::from(!matches!(status, 200 | 201));
            self.is_not_final |= status == 503;
            match error.filter(|_| status == 503) {
                Some(error) if error.kind == "/problems/store-not-writable" => {
                    let problem = || Problem::new(ProblemType::StoreNotWritable, error.detail);
                    self.unwritable.get_or_insert_with(problem);
                }
                other => self.is_doubtful |= other.is_some(),
            }
            self.results.push(serde_json::from_slice(line)?);
        }
        Ok(())
    }

    pub(super) fn into_response(self) -> Response {
        if !self.is_not_final {
            return Json(self).into_response();
        }
        let marked = Extension(idempotency::NotFinal);
        if self.created + self.deduplicated > 0 {
            return (marked, Json(self)).into_response();
        }
        let unwritable = self.unwritable.filter(|_| !self.is_doubtful);
        let problem = self.halt.or(unwritable).unwrap_or_else(|| {
            let detail =
                "whether any job was created is unknown; check before repeating the request";
            Problem::new(ProblemType::StoreUnavailable, detail)
        });
        (marked, problem).into_response()
    }
}
