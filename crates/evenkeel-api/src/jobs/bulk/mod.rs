//! `POST /api/v1/jobs/bulk`: many new jobs, in one document or as a stream of lines.

mod document;
mod lines;
mod stream;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use evenkeel_commands::{CommandError, JobSpec, Registration};
use evenkeel_core::JobId;
use evenkeel_store::{Scope, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::task::JoinHandle;
use utoipa::ToSchema;

use self::document::Documents;
use self::lines::{Batch, Line};
use self::stream::{Prepared, Stream};
use super::JobDocument;
use crate::auth::Caller;
use crate::body::{BODY_BYTES_MAX, BULK_BYTES_MAX, check_weight, receive, says_json, says_ndjson};
use crate::keyed;
use crate::memory::Intake;
use crate::params::NoParams;
use crate::problem::{Problem, ProblemType};
use crate::state::App;
use crate::weight::Weight;

/// Of what is wrong with one job of many, so much is said.
const FAULTS_SHOWN_MAX: usize = 5;
/// And with so many characters each.
const FAULT_CHARS_MAX: usize = 300;

/// Many jobs to be created.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkDocument {
    /// The jobs, at most 10,000.
    #[schema(max_items = 10_000)]
    pub jobs: Vec<JobDocument>,
}

/// What became of one job of many.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct BulkResultView {
    /// Which one, counted from 1: its place in `jobs`, or its line.
    pub line: u64,
    /// As if it had been created alone: 201, 200 if it was there already, 400, 409, 413, 422, or 503
    /// if that is unknown. 408 if a stream did not go on, and 503 of the type `server-busy` if other
    /// requests left no memory for it: neither this line nor any after it was created.
    pub status: u16,
    /// The job that was created, or was there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub id: Option<JobId>,
    /// Why it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
    /// Of a job that is not to be there twice: was it there already?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplicated: Option<bool>,
}

/// What became of many jobs.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct BulkView {
    /// How many were created.
    pub created: u64,
    /// How many were there already, and are not to be there twice.
    pub deduplicated: u64,
    /// How many were neither created nor there.
    pub refused: u64,
    /// Each of them, in order.
    pub results: Vec<BulkResultView>,
}

/// Creates many jobs; none keeps another from being created.
///
/// As `application/json`: `{"jobs": […]}`, up to 10,000 of up to 1 MiB in 64 MiB, all answered at once.
/// As `application/x-ndjson`: a job on each line, any number of lines of up to 1 MiB; they are created
/// up to 2,500 at a time, and each is answered with a line as soon as it is: read the answer while
/// you send. A stream of which nothing more comes for 30 seconds is over, and so is one for which other
/// requests leave no memory; its last line says so. At most 5 errors are listed for each job.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/bulk",
    operation_id = "create_jobs",
    tag = "jobs",
    request_body(content(
        (BulkDocument = "application/json", example = json!({"jobs": [
            {"name": "one", "executor_type": "noop", "interval_minutes": 30},
            {"name": "two", "executor_type": "noop", "interval_minutes": 60},
        ]})),
        (String = "application/x-ndjson"),
    )),
    responses(
        (status = 200, description = "What became of each", content(
            (BulkView = "application/json"),
            (BulkResultView = "application/x-ndjson"),
        )),
        (status = 409, description = "A request with the same Idempotency-Key is under way, or was \
         done before and what was answered is not kept"),
        (status = 422, description = "There is no list of jobs, or it is too long"),
        (status = 503, description = "None is known to be created: the database does not answer, or \
         there was no time left; sent again under the same Idempotency-Key, it is not done twice"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn bulk(
    State(app): State<App>,
    caller: Caller,
    _: NoParams,
    headers: HeaderMap,
    uri: Uri,
    request: Request,
) -> Result<Response, Problem> {
    let key = keyed::read_key(&headers)?;
    if says_ndjson(&headers) {
        return Ok(stream::answer(app, caller.scope, key, uri, request.into_body()));
    }
    if !says_json(&headers) {
        let detail = "send the header Content-Type: application/json, or application/x-ndjson";
        return Err(Problem::new(ProblemType::UnsupportedMediaType, detail));
    }
    let intake = Intake::of(&request)?;
    let body = receive(request.into_body(), &intake, BULK_BYTES_MAX).await?;
    let batches = off_the_async_threads(move || document::batches(&body)).await??;
    intake.reserve(document::memory(&batches))?;
    // The whole request has the key itself.
    let key = key.map(|key| format!("{key} jobs"));
    let stream = Stream { app, scope: caller.scope, key, uri };
    Ok(create_all(&stream, batches).await?.into_response())
}

/// A [`BulkView`] whose results are written.
#[derive(Default, Serialize)]
struct Answers {
    created: u64,
    deduplicated: u64,
    refused: u64,
    results: Vec<Box<RawValue>>,
    /// Some may be others when they are asked for again.
    #[serde(skip)]
    is_unsettled: bool,
    /// Why no more batches were begun.
    #[serde(skip)]
    halt: Option<Problem>,
    /// Why the database took none of those that it might have, if it is known that it did not.
    #[serde(skip)]
    unwritable: Option<Problem>,
    /// Of some nobody knows whether they were created.
    #[serde(skip)]
    is_doubtful: bool,
}

/// What counts of a result.
#[derive(Deserialize)]
struct Told {
    status: u16,
    error: Option<ToldError>,
}

#[derive(Deserialize)]
struct ToldError {
    #[serde(rename = "type")]
    kind: String,
    detail: String,
}

impl Answers {
    /// Adds the lines of a batch.
    fn add(&mut self, lines: &[u8]) -> Result<(), serde_json::Error> {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Told { status, error } = serde_json::from_slice(line)?;
            self.created += u64::from(status == 201);
            self.deduplicated += u64::from(status == 200);
            self.refused += u64::from(!matches!(status, 200 | 201));
            self.is_unsettled |= status == 503;
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

    fn into_response(self) -> Response {
        if !self.is_unsettled {
            return Json(self).into_response();
        }
        let marked = Extension(keyed::Unsettled);
        if self.created + self.deduplicated > 0 {
            return (marked, Json(self)).into_response();
        }
        let unwritable = self.unwritable.filter(|_| !self.is_doubtful);
        let problem = self.halt.or(unwritable).unwrap_or_else(|| {
            let detail = "whether any job was created is unknown; look before repeating it";
            Problem::new(ProblemType::StoreUnavailable, detail)
        });
        (marked, problem).into_response()
    }
}

/// Creates all, batch by batch. With a key each batch has its own, as in a stream: what some of them
/// could not do is done when the request is sent again, and what the others did is not done twice.
async fn create_all(stream: &Stream, batches: Vec<Documents>) -> Result<Answers, Problem> {
    let app = &stream.app;
    let until = (app.clock)().saturating_add(keyed::WORKING_TIME);
    let mut batches = batches.into_iter();
    let mut answers = Answers::default();
    let mut reading = stream.begin_reading(batches.next().unwrap_or_default());
    for nth in 1.. {
        let Prepared { batch, reads } = reading.await.map_err(panicked)?;
        if batch.lines.is_empty() {
            break;
        }
        // The next ones are read while these are stored.
        reading = stream.begin_reading(batches.next().unwrap_or_default());
        if answers.halt.is_none() && (app.clock)() >= until {
            let detail = "there was no time left for it, and it was not created; send it again";
            answers.halt = Some(Problem::new(ProblemType::Timeout, detail));
        }
        let answered = match answers.halt.take() {
            Some(problem) => Err(problem),
            None => stream.batch(nth, &batch, reads).await,
        };
        let lines = match answered {
            Ok((lines, _)) => lines,
            Err(problem) => {
                let lines = stream::refused(&batch, &problem);
                (answers.is_unsettled, answers.halt) = (true, Some(problem));
                lines
            }
        };
        answers.add(&lines).map_err(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "a result can't be read");
            Problem::new(ProblemType::Internal, "the log of the server says more")
        })?;
    }
    Ok(answers)
}

/// What was read of a document.
type Read = Result<JobSpec, Problem>;

impl Stream {
    /// Reads the documents of a batch.
    fn begin_reading(&self, documents: Documents) -> JoinHandle<Prepared> {
        let (jobs, scope) = (self.app.jobs.clone(), self.scope);
        tokio::task::spawn_blocking(move || {
            let mut batch = Batch::default();
            let mut reads = Vec::with_capacity(documents.texts.len());
            for (number, text) in (documents.first..).zip(&documents.texts) {
                let begin = batch.bytes.len();
                batch.bytes.extend_from_slice(text);
                batch.lines.push(Line { number, place: Some(begin..batch.bytes.len()) });
                batch.bytes.push(b'\n');
                reads.push(read(&jobs, scope, text));
            }
            Prepared { batch, reads }
        })
    }
}

/// Reads one document.
fn read(jobs: &evenkeel_commands::Jobs, scope: Scope, text: &[u8]) -> Read {
    if text.len() > BODY_BYTES_MAX {
        return Err(too_long());
    }
    check_weight(Weight::of(text))?;
    let document: Value = serde_json::from_slice(text)
        .map_err(|error| Problem::new(ProblemType::MalformedJson, error.to_string()))?;
    jobs.read(&scope, &document).map_err(|mut faults| {
        // The answers for all jobs are in memory at once.
        faults.truncate(FAULTS_SHOWN_MAX);
        for fault in &mut faults {
            if let Some((end, _)) = fault.message.char_indices().nth(FAULT_CHARS_MAX) {
                fault.message.truncate(end);
                fault.message.push('…');
            }
        }
        CommandError::Invalid(faults).into()
    })
}

/// One job of many is as long as a request that brings a single one may be.
fn too_long() -> Problem {
    let detail = format!("a job may have {BODY_BYTES_MAX} bytes at most");
    Problem::new(ProblemType::BodyTooLarge, detail)
}

/// Creates what could be read, and answers for all in order, each with its status.
async fn create(
    app: &App,
    scope: Scope,
    reads: Vec<Read>,
) -> Vec<(u16, Result<Registration, Problem>)> {
    let mut specs = Vec::with_capacity(reads.len());
    let mut answers: Vec<Result<(), Problem>> = Vec::with_capacity(reads.len());
    for read in reads {
        answers.push(read.map(|spec| specs.push(spec)));
    }
    let mut created = if specs.is_empty() {
        Vec::new().into_iter()
    } else {
        let count = specs.len();
        let created = app.jobs.create_each(&scope, specs).await;
        created.unwrap_or_else(|error| unknown(&error, count)).into_iter()
    };
    let answers = answers.into_iter().map(|read| match read {
        Ok(()) => match created.next() {
            Some(created) => created.map_err(Problem::from),
            None => Err(Problem::new(ProblemType::Internal, "the store gave no answer")),
        },
        Err(problem) => Err(problem),
    });
    answers
        .map(|answer| match answer {
            Ok(made) => (status_of(made), Ok(made)),
            Err(problem) => (problem.status, Err(problem)),
        })
        .collect()
}

/// As if it had been created alone.
fn status_of(made: Registration) -> u16 {
    if made.deduplicated == Some(true) { 200 } else { 201 }
}

/// The store failed for all of a batch.
fn unknown(error: &StoreError, count: usize) -> Vec<Result<Registration, CommandError>> {
    (0..count).map(|_| Err(error.for_another().into())).collect()
}

impl BulkResultView {
    fn new(line: u64, answer: Result<Registration, Problem>) -> Self {
        match answer {
            Ok(made) => {
                let Registration { id, deduplicated } = made;
                Self { line, status: status_of(made), id: Some(id), error: None, deduplicated }
            }
            Err(problem) => {
                let status = problem.status;
                Self { line, status, id: None, error: Some(problem), deduplicated: None }
            }
        }
    }
}

async fn off_the_async_threads<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(panicked)
}

fn panicked(panic: tokio::task::JoinError) -> Problem {
    tracing::error!(error = &panic as &dyn std::error::Error, "reading jobs panicked");
    Problem::new(ProblemType::Internal, "the log of the server says more")
}

/// A body of lines.
fn ndjson(body: Body) -> Response {
    ([(axum::http::header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}
