//! Notifications between nodes through LISTEN and NOTIFY. A notification may be lost, so receivers
//! also poll.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenkeel_store::{Signal, Signals, StoreError};
use tokio::sync::oneshot;
use tokio_postgres::{AsyncMessage, Config};

use super::pool::Connections;
use super::tls::Encryption;
use crate::options::CONNECT_TIMEOUT;

/// Announcements of the same signal within this time are sent as one notification.
const QUIET: Duration = Duration::from_millis(5);
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Passes on the notifications of other nodes until the store is dropped, which aborts this task.
pub(crate) async fn listen(
    config: Config,
    tls: Encryption,
    channel: String,
    origin: String,
    signals: Signals,
) {
    let mut backoff = BACKOFF_FIRST;
    loop {
        let received = receive(&config, &tls, &channel, &origin, &signals, &mut backoff).await;
        signals.set_remote_lost(true);
        if let Err(error) = received {
            tracing::warn!(%error, "lost the database connection that receives notifications; reconnecting");
        }
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(BACKOFF_MAX);
    }
}

/// Passes on the notifications that one connection receives until the connection breaks.
async fn receive(
    config: &Config,
    tls: &Encryption,
    channel: &str,
    origin: &str,
    signals: &Signals,
    backoff: &mut Duration,
) -> Result<(), tokio_postgres::Error> {
    let connect = tokio::time::timeout(CONNECT_TIMEOUT * 2, config.connect(tls.clone()));
    let Ok(connected) = connect.await else { return Ok(()) };
    let (client, mut connection) = connected?;
    let subscribe = format!("LISTEN {channel}");
    let listening = client.batch_execute(&subscribe);
    let mut listening = Some(Box::pin(listening));
    loop {
        let message = poll_fn(|context| {
            if let Some(subscribing) = &mut listening
                && let std::task::Poll::Ready(subscribed) = Pin::new(subscribing).poll(context)
            {
                listening = None;
                return std::task::Poll::Ready(Some(subscribed.map(|()| None)));
            }
            connection
                .poll_message(context)
                .map(|message| message.map(|received| received.map(Some)))
        });
        match message.await {
            None => return Ok(()),
            // Notifications that were sent before this connection listened may be lost, so every
            // signal is raised once.
            Some(Ok(None)) => {
                *backoff = BACKOFF_FIRST;
                signals.set_remote_lost(false);
                Signal::ALL.into_iter().for_each(|signal| signals.send(signal));
            }
            Some(Ok(Some(AsyncMessage::Notification(note)))) => {
                pass_on(note.payload(), origin, signals);
            }
            Some(Ok(Some(_))) => {}
            Some(Err(error)) => return Err(error),
        }
    }
}

fn pass_on(payload: &str, own_origin: &str, signals: &Signals) {
    let (name, origin) = payload.split_once(' ').unwrap_or((payload, ""));
    // The store has already notified receivers on this node directly.
    if origin == own_origin {
        return;
    }
    if let Some(signal) = Signal::ALL.into_iter().find(|signal| signal.as_str() == name) {
        signals.send(signal);
    }
}

/// Sends notifications to other nodes. Each signal is sent at most once per [`QUIET`], and always
/// once after the last announcement.
#[derive(Clone, Debug)]
pub(crate) struct Announcer {
    channel: String,
    pub(crate) origin: String,
    connections: Connections,
    state: Arc<[SignalState; Signal::ALL.len()]>,
}

#[derive(Debug, Default)]
struct SignalState {
    sending: AtomicBool,
    wanted: AtomicBool,
}

impl Announcer {
    pub(crate) fn new(channel: String, origin: String, connections: Connections) -> Self {
        Self { channel, origin, connections, state: Arc::default() }
    }

    pub(crate) async fn announce(&self, signal: Signal) -> Result<(), StoreError> {
        let state = &self.state[signal as usize];
        state.wanted.store(true, Ordering::SeqCst);
        if state.sending.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let (tell, answered) = oneshot::channel();
        let announcer = self.clone();
        // A separate task sends the notification, because a cancelled caller would leave `sending`
        // set.
        tokio::spawn(async move { announcer.send_until_quiet(signal, tell).await });
        answered.await.unwrap_or(Ok(()))
    }

    async fn send_until_quiet(
        &self,
        signal: Signal,
        first: oneshot::Sender<Result<(), StoreError>>,
    ) {
        let state = &self.state[signal as usize];
        let mut first = Some(first);
        loop {
            while state.wanted.swap(false, Ordering::SeqCst) {
                let sent = self.send(signal).await;
                match first.take() {
                    // Sending fails only if the caller has stopped waiting.
                    Some(first) => drop(first.send(sent)),
                    None => drop(
                        sent.inspect_err(|error| tracing::debug!(%error, "notification not sent; receivers also poll")),
                    ),
                }
                tokio::time::sleep(QUIET).await;
            }
            state.sending.store(false, Ordering::SeqCst);
            // An announcement may have arrived between the last check and the reset of `sending`.
            if !state.wanted.load(Ordering::SeqCst) || state.sending.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }

    async fn send(&self, signal: Signal) -> Result<(), StoreError> {
        let payload = format!("{} {}", signal.as_str(), self.origin);
        let params = params![self.channel.clone(), payload];
        self.connections.change(sql!("announce"), params).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_of_this_node_are_not_received_again() {
        let signals = Signals::default();
        let mut received = signals.subscribe();
        pass_on("jobs me", "me", &signals);
        pass_on("nonsense", "me", &signals);
        pass_on("cancel other", "me", &signals);
        pass_on("ready", "me", &signals);
        assert_eq!(received.try_recv(), Ok(Signal::Cancel));
        assert_eq!(received.try_recv(), Ok(Signal::Ready));
        assert!(received.try_recv().is_err());
    }
}
