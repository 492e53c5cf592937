//! Answers HTTP, within limits, and stops in order.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt as _;

/// More than this many connections wait to be accepted.
const CONNECTIONS_MAX: usize = 4096;

/// A client that sends its request more slowly than this, or leaves a connection unused for so
/// long, is not worth waiting for.
const HEADER_TIME: Duration = Duration::from_secs(30);

/// After the word to stop, requests that are under way may go on for this long.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Answers until `stop`, then finishes what is under way.
///
/// Each request is answered by what `current` is at that moment.
pub async fn serve(
    listener: TcpListener,
    current: watch::Receiver<Router>,
    mut stop: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let (stream, place) = accepted;
        let current = current.clone();
        let service = TowerToHyperService::new(tower::service_fn(move |request| {
            let router = current.borrow().clone();
            router.oneshot(request)
        }));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // How a connection ends is the client's business.
            if let Err(error) = connection.await {
                tracing::debug!(error = &error as &dyn std::error::Error, "a connection broke");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were not answered to the end");
    }
}

/// The next connection and its place among those that are open.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (TcpStream, Option<tokio::sync::OwnedSemaphorePermit>) {
    // It is never closed, so there is always a permit in the end.
    let place = Arc::clone(room).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Small answers must not wait for company.
                let _ = stream.set_nodelay(true);
                return (stream, place);
            }
            Err(error) => {
                // Out of file descriptors, most likely. Trying at once would only burn the CPU.
                tracing::warn!(error = &error as &dyn std::error::Error, "accepting failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
