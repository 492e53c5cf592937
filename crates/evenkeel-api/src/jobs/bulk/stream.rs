//! Creates jobs from a stream of lines, and answers with a stream of result lines.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use evenkeel_commands::{Jobs, Registration};
use evenkeel_store::Scope;
use futures::stream;
use tokio::sync::mpsc;
use tracing::Instrument as _;

use super::lines::{Batch, Broken, IDLE_MAX, Line, Lines};
use super::{BulkResultView, Read, create, off_the_async_threads, read, status_of, too_long};
use crate::call::Call;
use crate::idempotency::{self, Beginning};
use crate::problem::{Problem, ProblemType};

/// State of a bulk request that is handled batch by batch.
pub(super) struct Stream {
    pub call: Call,
    pub key: Option<String>,
    pub uri: Uri,
}

/// A batch whose JSON documents are already parsed.
pub(super) struct Prepared {
    pub batch: Batch,
    pub reads: Vec<Read>,
}

/// The result of storing a batch.
struct Stored {
    bytes: Bytes,
    /// True if the store is unavailable, so the next batch would fail as well.
    is_out: bool,
    /// True if some jobs of the batch got a server error and none succeeded, so the client can
    /// repeat the batch.
    is_void: bool,
}

/// Streams one result line per job, at the speed at which the client reads.
pub(super) fn answer(stream: Stream, body: Body) -> Response {
    let (sender, receiver) = mpsc::channel::<Bytes>(1);
    let lines = Lines::new(body, stream.call.memory().clone());
    let work = stream.work(lines, sender).instrument(tracing::Span::current());
    tokio::spawn(work);
    let lines = stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|bytes| (Ok::<_, Infallible>(bytes), receiver))
    });
    let content_type = [(header::CONTENT_TYPE, "application/x-ndjson")];
    (content_type, Body::from_stream(lines)).into_response()
}

impl Stream {
    async fn work(self, lines: Lines, sender: mpsc::Sender<Bytes>) {
        // The next batch is received and parsed while the present batch is stored.
        let (ready, mut prepared) = mpsc::channel(1);
        let preparing =
            tokio::spawn(prepare(self.call.jobs.clone(), *self.call.scope(), lines, ready));
        let mut nth = 0;
        while let Some(Prepared { batch, reads }) = prepared.recv().await {
            nth += 1;
            let answered = self.batch(nth, &batch, reads).await;
            let (bytes, is_available) =
                answered.unwrap_or_else(|problem| (refused(&batch, &problem), false));
            if sender.send(bytes).await.is_err() || !is_available {
                preparing.abort();
                return;
            }
        }
        if let Ok(Some((line, problem))) = preparing.await.map(|broken| broken?.problem()) {
            let line = Line { number: line, place: None };
            // Sending the result line fails if the client has disconnected; the error is ignored.
            let _ = sender.send(written([(&line, Err(problem))].into_iter())).await;
        }
    }

    /// Returns the result lines of a batch, and whether the store is available. Fails if the
    /// idempotency key of the batch cannot be claimed.
    pub(super) async fn batch(
        &self,
        nth: u64,
        batch: &Batch,
        reads: Vec<Read>,
    ) -> Result<(Bytes, bool), Problem> {
        let Some(key) = &self.key else {
            let stored = self.create(batch, reads).await;
            return Ok((stored.bytes, !stored.is_out));
        };
        // The key of a batch contains a space, so it cannot collide with a client's idempotency
        // key, which contains none.
        let key = format!("{key} #{nth}");
        let claim = match idempotency::begin(
            &self.call,
            *self.call.scope(),
            key,
            &self.uri,
            &batch.bytes,
        )
        .await?
        {
            Beginning::New(claim) => claim,
            Beginning::Repeated(answer) if answer.status == StatusCode::OK => {
                return Ok((Bytes::from(answer.body), true));
            }
            Beginning::Repeated(_) => {
                let detail = "this line was handled when it was first sent; the answer to its batch \
                              was too long to be stored";
                let problem = Problem::new(ProblemType::AnswerNotKept, detail);
                return Ok((refused(batch, &problem), true));
            }
        };
        let Stored { bytes, is_out, is_void } = self.create(batch, reads).await;
        // The results are stored under the batch's key, so that a repeated request does not create
        // the same jobs again.
        let status = if is_void { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
        claim.end(idempotency::stored_answer(status, &HeaderMap::new(), &bytes, false)).await;
        Ok((bytes, !is_out))
    }

    async fn create(&self, batch: &Batch, reads: Vec<Read>) -> Stored {
        let answers = create(&self.call, reads).await;
        let any = |is: fn(u16) -> bool| answers.iter().any(|answer| is(status_of(answer)));
        let is_out = any(|status| status == 503);
        let is_void = any(|status| status >= 500) && !any(|status| matches!(status, 200 | 201));
        Stored { bytes: written(batch.lines.iter().zip(answers)), is_out, is_void }
    }
}

impl Broken {
    /// Returns the problem and the first line that it affects; `None` if the connection is lost.
    fn problem(self) -> Option<(u64, Problem)> {
        let rest = "this line and all after it were not created; send them again";
        let (line, kind, why) = match self {
            Self::Off => return None,
            Self::Idle { line } => {
                let why = format!("no bytes arrived for {} seconds", IDLE_MAX.as_secs());
                (line, ProblemType::RequestTimeout, why)
            }
            Self::Busy { line } => {
                let why = "other requests use all the memory".into();
                (line, ProblemType::ServerBusy, why)
            }
        };
        Some((line, Problem::new(kind, format!("{why}: {rest}"))))
    }
}

/// Returns result lines that report the same problem for every line of a batch.
pub(super) fn refused(batch: &Batch, problem: &Problem) -> Bytes {
    written(batch.lines.iter().map(|line| (line, Err(problem.clone()))))
}

/// Receives and parses batches while earlier batches are stored. Returns the reason if the request
/// body stopped before its end.
async fn prepare(
    jobs: Jobs,
    scope: Scope,
    mut lines: Lines,
    ready: mpsc::Sender<Prepared>,
) -> Option<Broken> {
    loop {
        let batch = match lines.batch().await {
            Ok(batch) if batch.lines.is_empty() => return None,
            Ok(batch) => batch,
            Err(broken) => return Some(broken),
        };
        let jobs = jobs.clone();
        let reading = move || {
            let one = |line: &Line| match &line.place {
                Some(place) => read(&jobs, scope, &batch.bytes[place.clone()]),
                None => Err(too_long()),
            };
            let reads = batch.lines.iter().map(one).collect();
            Prepared { batch, reads }
        };
        let prepared = off_the_async_threads(reading).await.ok()?;
        ready.send(prepared).await.ok()?;
    }
}

fn written<'a>(answers: impl Iterator<Item = (&'a Line, Result<Registration, Problem>)>) -> Bytes {
    let mut text = Vec::new();
    for (line, answer) in answers {
        let view = BulkResultView::new(line.number, answer);
        // Serializing strings and numbers cannot fail.
        if serde_json::to_writer(&mut text, &view).is_ok() {
            text.push(b'\n');
        }
    }
    Bytes::from(text)
}
