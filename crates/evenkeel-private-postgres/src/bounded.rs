//! Waits for other processes, with a time limit.

use std::io;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Time between two polls.
const PAUSE: Duration = Duration::from_millis(5);

/// Polls `ready` until it returns a value. Returns `None` after `limit`.
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

/// Waits for `child` to end. Returns `None` if the child process is still running after `limit`.
///
/// # Errors
/// If the operating system cannot report the state of the child process.
pub fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    poll(limit, || child.try_wait())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn wait_returns_the_status_of_an_ended_child() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let status = wait(&mut child, Duration::from_secs(20)).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(3));
    }

    #[test]
    fn wait_gives_up_after_the_limit() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert_eq!(wait(&mut child, Duration::from_millis(20)).unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
