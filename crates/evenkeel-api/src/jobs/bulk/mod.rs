//! `POST /api/v1/jobs/bulk`: creates many jobs, from one JSON document or from a stream of lines.

mod answers;
mod document;
mod lines;
mod stream;

use axum::extract::Request;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use evenkeel_commands::{CommandError, JobSpec, Registration};
use evenkeel_core::JobId;
use evenkeel_store::{Scope, StoreError};
use serde::Serialize;
use serde_json::Value;
use tokio::task::JoinHandle;
use utoipa::ToSchema;

use self::answers::Answers;
use self::document::Documents;
use self::lines::{Batch, Line};
use self::stream::{Prepared, Stream};
use super::JobDocument;
use crate::body::{BODY_BYTES_MAX, BULK_BYTES_MAX, check_weight, is_json, is_ndjson, receive};
use crate::call::Call;
use crate::idempotency;
use crate::memory::Intake;
use crate::params::NoParams;
use crate::problem::{Problem, ProblemType};
use crate::weight::Weight;

/// Maximum number of errors reported for one job.
const FAULTS_SHOWN_MAX: usize = 5;
/// Maximum length of one error message, in characters.
const FAULT_CHARS_MAX: usize = 300;

/// A list of jobs to create.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkDocument {
    /// The jobs to create, at most 10,000.
    #[schema(max_items = 10_000)]
    pub jobs: Vec<JobDocument>,
}

/// The result for one job of a bulk request.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct BulkResultView {
    /// Position of the job in `jobs`, or its line number in a stream, counted from 1.
    pub line: u64,
    /// HTTP status that a request for this job alone would have: 201, 200 if the job already
    /// exists, 400, 409, 413 or 422. Status 503 means that the job was not created, or that the
    /// outcome is unknown; `error` says which. In a stream, 408 means that no bytes arrived in
    /// time, and 503 with the type `server-busy` means that other requests use all the memory. A
    /// line with 408 or `server-busy` and all lines after it created no jobs.
    pub status: u16,
    /// Id of the new or existing job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>)]
    pub id: Option<JobId>,
    /// The reason why the job was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Problem>,
    /// For jobs with a deduplication key: true if the job already existed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deduplicated: Option<bool>,
}

/// The results of a bulk request.
#[derive(Clone, PartialEq, Debug, Serialize, ToSchema)]
pub struct BulkView {
    /// Number of jobs that were created.
    pub created: u64,
    /// Number of jobs that already existed with the same deduplication key.
    pub deduplicated: u64,
    /// Number of jobs that were refused.
    pub refused: u64,
    /// One result for each job, in the order of the request.
    pub results: Vec<BulkResultView>,
}

/// Creates many jobs; each job is created or refused independently of the others.
///
/// With `application/json`, the body is `{"jobs": […]}` with up to 10,000 jobs of up to 1 MiB each
/// and 64 MiB in total; one response contains all results. With `application/x-ndjson`, the body
/// has one job per line, any number of lines of up to 1 MiB each. Lines are processed in batches of
/// up to 2,500, and the response has one line per job. Clients must read the response while they
/// send the request. A stream ends if no bytes arrive for 30 seconds or if other requests use all
/// the memory; the last line of the response tells the reason. At most 5 errors are listed for each
/// job.
#[utoipa::path(
    post, path = "/api/v1/jobs/bulk", tag = "jobs",
    request_body(content(
        (BulkDocument = "application/json", example = json!({"jobs": [
            {"name": "one", "executor_type": "noop", "interval_minutes": 30},
            {"name": "two", "executor_type": "noop", "interval_minutes": 60},
        ]})),
        (String = "application/x-ndjson"),
    )),
    responses(
        (status = 200, description = "The result for each item", content(
            (BulkView = "application/json"),
            (BulkResultView = "application/x-ndjson"),
        )),
        (status = 409, description = "A request with the same Idempotency-Key is in progress, or was \
         carried out before and its answer is not kept"),
        (status = 422, description = "The list of jobs is missing or too long"),
        (status = 503, description = "None is known to be created: the database is unavailable, or \
         there was no time left. Repeating the request with the same Idempotency-Key is safe"),
    ),
    extensions(("x-required-role" = json!("operator"))),
)]
pub(crate) async fn create_jobs(
    call: Call,
    _: NoParams,
    headers: HeaderMap,
    uri: Uri,
    request: Request,
) -> Result<Response, Problem> {
    let key = idempotency::read_key(&headers)?;
    if is_ndjson(&headers) {
        return Ok(stream::answer(Stream { call, key, uri }, request.into_body()));
    }
    if !is_json(&headers) {
        let detail = "send the header Content-Type: application/json, or application/x-ndjson";
        return Err(Problem::new(ProblemType::UnsupportedMediaType, detail));
    }
    let intake = Intake::of(&request)?;
    let body = receive(request.into_body(), &intake, BULK_BYTES_MAX).await?;
    let batches = off_the_async_threads(move || document::batches(&body)).await??;
    intake.reserve(document::memory(&batches))?;
    // The idempotency key itself already belongs to the whole request, so the batches use the key
    // with a suffix.
    let key = key.map(|key| format!("{key} jobs"));
    Ok(create_all(&Stream { call, key, uri }, batches).await?.into_response())
}

/// Creates all jobs of a bulk request, batch by batch. With an Idempotency-Key, each batch gets its
/// own key. A repeated request therefore skips the batches that succeeded and repeats those that
/// failed.
async fn create_all(stream: &Stream, batches: Vec<Documents>) -> Result<Answers, Problem> {
    let clock = &stream.call.clock;
    let until = clock().saturating_add(idempotency::WORKING_TIME);
    let mut batches = batches.into_iter();
    let mut answers = Answers::default();
    let mut reading = stream.begin_reading(batches.next().unwrap_or_default());
    for nth in 1.. {
        let Prepared { batch, reads } = reading.await.map_err(panicked)?;
        if batch.lines.is_empty() {
            break;
        }
        // The next batch is parsed while the present batch is stored.
        reading = stream.begin_reading(batches.next().unwrap_or_default());
        if answers.halt.is_none() && clock() >= until {
            let detail = "no time was left, so this job was not created; send it again";
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
                (answers.is_not_final, answers.halt) = (true, Some(problem));
                lines
            }
        };
        answers.add(&lines).map_err(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "result of a batch of new jobs cannot be read; answering 500"
            );
            Problem::internal()
        })?;
    }
    Ok(answers)
}

type Read = Result<JobSpec, Problem>;

impl Stream {
    fn begin_reading(&self, documents: Documents) -> JoinHandle<Prepared> {
        let (jobs, scope) = (self.call.jobs.clone(), *self.call.scope());
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

fn read(jobs: &evenkeel_commands::Jobs, scope: Scope, text: &[u8]) -> Read {
    if text.len() > BODY_BYTES_MAX {
        return Err(too_long());
    }
    check_weight(Weight::of(text))?;
    let document: Value = serde_json::from_slice(text)
        .map_err(|error| Problem::new(ProblemType::MalformedJson, error.to_string()))?;
    jobs.read(&scope, &document).map_err(|mut faults| {
        // Errors are shortened, because the results of all jobs are in memory at the same time.
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

/// The limit for one job in a bulk request is the body limit of a request with a single job.
fn too_long() -> Problem {
    let detail = format!("a job may have at most {BODY_BYTES_MAX} bytes");
    Problem::new(ProblemType::BodyTooLarge, detail)
}

/// Creates the valid jobs of a batch; returns the result of each job, in order.
async fn create(call: &Call, reads: Vec<Read>) -> Vec<Result<Registration, Problem>> {
    let mut specs = Vec::with_capacity(reads.len());
    let reads: Vec<Result<(), Problem>> =
        reads.into_iter().map(|read| read.map(|spec| specs.push(spec))).collect();
    let created = if specs.is_empty() {
        Vec::new()
    } else {
        let count = specs.len();
        let created = call.jobs.create_each(call.scope(), specs).await;
        // Every job of the batch gets the same store error.
        let same = |error: StoreError| (0..count).map(move |_| Err(error.for_another().into()));
        created.unwrap_or_else(|error| same(error).collect())
    };
    let mut created = created.into_iter();
    let no_result = || Problem::new(ProblemType::Internal, "the store returned no result");
    let results = reads.into_iter().map(|read| {
        read?;
        created.next().ok_or_else(no_result)?.map_err(Problem::from)
    });
    results.collect()
}

/// Returns the HTTP status that a request for this job alone would have.
fn status_of(answer: &Result<Registration, Problem>) -> u16 {
    match answer {
        Ok(registered) if registered.deduplicated == Some(true) => 200,
        Ok(_) => 201,
        Err(problem) => problem.status,
    }
}

impl BulkResultView {
    fn new(line: u64, answer: Result<Registration, Problem>) -> Self {
        let status = status_of(&answer);
        match answer {
            Ok(Registration { id, deduplicated }) => {
                Self { line, status, id: Some(id), error: None, deduplicated }
            }
            Err(problem) => {
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
    tracing::error!(
        error = &panic as &dyn std::error::Error,
        "parsing new jobs panicked; answering 500"
    );
    Problem::internal()
}
