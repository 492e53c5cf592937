//! Waiting for other processes, never for ever.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Short beside everything waited for here, long beside the cost of asking.
const PAUSE: Duration = Duration::from_millis(5);

/// Asks `ready` again and again until it has an answer. `None` when `limit` passes without one.
///
/// # Errors
/// The first error of `ready`.
#[expect(
    clippy::disallowed_methods,
    reason = "another process's progress is a condition that can only be polled, in real time"
)]
pub fn poll<T, E>(
    limit: Duration,
    mut ready: impl FnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ready()? {
            return Ok(Some(answer));
        }
        if begun.elapsed() >= limit {
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Waits for `child` to end. `None` when it is still running after `limit`.
///
/// # Errors
/// When the system cannot say how the child is doing.
pub fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    poll(limit, || child.try_wait())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_that_ends_is_reported_with_its_status() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let status = wait(&mut child, Duration::from_secs(20)).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn a_child_that_dawdles_is_given_up_on() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(wait(&mut child, Duration::from_millis(20)).unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
