//! The lease under which a node may run an attempt.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The lease of the node. All attempts of a node share one channel, so that one write renews the
/// lease for all attempts.
#[derive(Clone, Debug)]
pub struct Lease(Option<watch::Receiver<Instant>>);

/// The duration of a lease that never ends: longer than any process runs, but short enough for
/// timers and `Instant`.
const ENDLESS: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

#[expect(clippy::disallowed_methods, reason = "lease ends are Instants of this very clock")]
fn now() -> Instant {
    Instant::now()
}

impl Lease {
    /// Returns a lease whose end is read from the channel; sending a later end renews the lease.
    pub const fn new(until: watch::Receiver<Instant>) -> Self {
        Self(Some(until))
    }

    /// Returns a lease that never ends, for tests.
    pub const fn endless() -> Self {
        Self(None)
    }

    /// Returns the time at which the lease ends unless the node renews it.
    pub fn until(&self) -> Instant {
        self.0.as_ref().map_or_else(|| now() + ENDLESS, |until| *until.borrow())
    }

    /// Returns the remaining time of the lease, or `None` if the lease never ends.
    pub fn remaining(&self) -> Option<Duration> {
        self.0.as_ref().map(|until| until.borrow().saturating_duration_since(now()))
    }

    /// Completes at the next renewal of the lease, or never if no renewal can follow.
    pub async fn renewed(&mut self) {
        if let Some(until) = &mut self.0
            && until.changed().await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Completes when the lease has ended without a renewal.
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
    async fn lease_ends_unless_it_is_renewed() {
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
    fn endless_lease_has_no_end() {
        let lease = Lease::endless();
        assert!(lease.until() > now() + Duration::from_secs(1_000_000));
        assert_eq!(lease.remaining(), None);
    }
}
