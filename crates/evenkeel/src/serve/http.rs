//! Answers HTTP, within limits, and stops in order.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use evenkeel_api::ClientAddress;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt as _;

use super::tls::Tls;

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
    tls: Option<Arc<Tls>>,
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
        let Accepted { stream, from, place } = accepted;
        let (watcher, current, tls) = (graceful.watcher(), current.clone(), tls.clone());
        tokio::spawn(async move {
            match tls {
                None => answer(stream, current, from, watcher).await,
                // Within the task: a slow client must not keep others from being accepted.
                Some(tls) => {
                    match tokio::time::timeout(HEADER_TIME, tls.acceptor().accept(stream)).await {
                        Ok(Ok(stream)) => answer(stream, current, from, watcher).await,
                        Ok(Err(error)) => {
                            let source = &error as &dyn std::error::Error;
                            tracing::debug!(error = source, "a client and TLS did not agree");
                        }
                        Err(_) => tracing::debug!("a client was too slow for TLS"),
                    }
                }
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests were not answered to the end");
    }
}

/// Answers what comes over one connection.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    current: watch::Receiver<Router>,
    from: ClientAddress,
    watcher: Watcher,
) {
    let service = tower::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(from);
        let router = current.borrow().clone();
        router.oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    // How a connection ends is the client's business.
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(error = &error as &dyn std::error::Error, "a connection broke");
    }
}

/// A connection, whose it is, and its place among those that are open.
struct Accepted {
    stream: TcpStream,
    from: ClientAddress,
    place: Option<OwnedSemaphorePermit>,
}

/// The next connection.
async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> Accepted {
    // It is never closed, so there is always a permit in the end.
    let place = Arc::clone(room).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Small answers must not wait for company.
                let _ = stream.set_nodelay(true);
                // From one of its own addresses to itself: that is this machine, as loopback is.
                let own = stream.local_addr().is_ok_and(|own| own.ip() == peer.ip());
                let from = if own { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { peer.ip() };
                return Accepted { stream, from: ClientAddress(from), place };
            }
            Err(error) => {
                // Out of file descriptors, most likely. Trying at once would only burn the CPU.
                tracing::warn!(error = &error as &dyn std::error::Error, "accepting failed");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
