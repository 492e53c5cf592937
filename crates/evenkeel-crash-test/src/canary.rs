//! Notices when the machine is too busy for anybody to be on time.
//!
//! The promise of at most a second of lateness holds "while there is capacity". Four times a second
//! the canary starts a small program, as the server does for a shell job. While that is slow, no
//! lateness is blamed on the server, and the report says for how long that was.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::{Moment, ns, pass};
use crate::evidence::Window;

const EVERY: Duration = Duration::from_millis(250);
/// A program that does nothing takes a few milliseconds.
const SLOW: Duration = Duration::from_millis(150);
/// How far around a slow moment others may have been slow.
const AROUND_US: i64 = 1_000_000;

/// Measures until it is stopped.
pub struct Canary {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Window>>,
}

impl Canary {
    /// Begins to measure with `program`, which must end at once.
    pub fn start(program: PathBuf) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut slow = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let from = Moment::now();
                pass(EVERY);
                let ran = Command::new(&program).stdin(Stdio::null()).status();
                let to = Moment::now();
                let took = to.mono_ns - from.mono_ns;
                if ran.is_err() || took > ns(EVERY + SLOW) {
                    slow.push(Window {
                        from_us: from.wall_us - AROUND_US,
                        to_us: to.wall_us + AROUND_US,
                    });
                }
            }
            slow
        });
        Self { stop, thread }
    }

    /// When the machine was too busy.
    pub fn stop(self) -> Vec<Window> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}
