//! Until when the node may run a body.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Until when the node's lease covers a body. All bodies of a node share one channel, so a renewal
/// costs one write however many there are.
#[derive(Clone, Debug)]
pub struct Lease(Option<watch::Receiver<Instant>>);

/// Further away than any process lives; timers and `Instant` can still hold it.
const ENDLESS: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

#[expect(clippy::disallowed_methods, reason = "lease ends are Instants of this very clock")]
fn now() -> Instant {
    Instant::now()
}

impl Lease {
    /// A lease that ends when the channel says, renewed by sending a later end.
    pub const fn new(until: watch::Receiver<Instant>) -> Self {
        Self(Some(until))
    }

    /// A lease that never ends, for tests and single nodes without one.
    pub const fn endless() -> Self {
        Self(None)
    }

    /// When it ends, unless renewed.
    pub fn until(&self) -> Instant {
        self.0.as_ref().map_or_else(|| now() + ENDLESS, |until| *until.borrow())
    }

    /// How much of it is left; `None` if it is endless.
    pub fn remaining(&self) -> Option<Duration> {
        self.0.as_ref().map(|until| until.borrow().saturating_duration_since(now()))
    }

    /// Waits for a new end. Forever, if nobody can send one any more.
    pub async fn renewed(&mut self) {
        if let Some(until) = &mut self.0
            && until.changed().await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Waits until it has ended unrenewed.
    pub async fn expired(&mut self) {
        if self.0.is_none() {
            return std::future::pending().await;
        }
        loop {
            let until = self.until();
            tokio::select! {
                () = tokio::time::sleep_until(until) => {
                    if self.until() <= until {
                        return;
                    }
                }
                () = self.renewed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_ends_unless_it_is_renewed() {
        let start = now();
        let (sender, receiver) = watch::channel(start + Duration::from_secs(5));
        let mut lease = Lease::new(receiver);
        let renewal = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            sender.send(start + Duration::from_secs(9)).unwrap();
        };
        tokio::join!(lease.expired(), renewal);
        assert_eq!(now() - start, Duration::from_secs(9));
        assert_eq!(lease.remaining(), Some(Duration::ZERO));
    }

    #[test]
    fn an_endless_lease_has_no_end_in_sight() {
        let lease = Lease::endless();
        assert!(lease.until() > now() + Duration::from_secs(1_000_000));
        assert_eq!(lease.remaining(), None);
    }
}
