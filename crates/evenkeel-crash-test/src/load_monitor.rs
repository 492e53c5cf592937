//! Detects when the machine is overloaded.
//!
//! Runs must start at most one second late (I5), but only while the machine has capacity. The
//! monitor starts a small program four times per second, as the server does for a shell job. While
//! the small program starts slowly, the lateness of runs is not checked. The report shows for how
//! long lateness was not checked.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::{Moment, ns, pass};
use crate::evidence::Window;

const EVERY: Duration = Duration::from_millis(250);
/// If the monitor's small program takes longer than this, the machine counts as overloaded.
/// Normally the small program takes a few milliseconds.
const SLOW: Duration = Duration::from_millis(150);
/// Time before and after a slow start of the monitor's small program in which the lateness of runs
/// is not checked.
const AROUND_US: i64 = 1_000_000;

pub struct LoadMonitor {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Window>>,
}

impl LoadMonitor {
    /// Starts the monitor with `program`, which must end at once when it is started.
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

    /// Stops the monitor. Returns the periods in which the machine was overloaded.
    pub fn stop(self) -> Vec<Window> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}
