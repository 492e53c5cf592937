//! Parameters and results of a simulation.

use std::time::Duration;

use evenkeel_core::Span;
use evenkeel_core::lease::LeaseTimings;
use evenkeel_core::limit::Limits;

/// Kinds of faults.
#[derive(Copy, Clone, Debug)]
pub struct Faults {
    pub crashes: bool,
    pub store: bool,
    pub time: bool,
    /// Full disks.
    pub full: bool,
}

impl Faults {
    pub const NONE: Self = Self { crashes: false, store: false, time: false, full: false };
    pub const CRASHES: Self = Self { crashes: true, ..Self::NONE };
    pub const STORE: Self = Self { store: true, ..Self::NONE };
    pub const TIME: Self = Self { time: true, ..Self::NONE };
    pub const FULL: Self = Self { full: true, ..Self::NONE };
    pub const ALL: Self = Self { crashes: true, store: true, time: true, full: false };

    /// True if the store can refuse or lose writes of a node.
    pub const fn delay_changes(self) -> bool {
        self.store || self.full
    }
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub hours: u64,
    pub nodes: usize,
    /// Slots per node.
    pub workers: usize,
    pub jobs: usize,
    /// The shortest interval of a job, in seconds. The longest interval of a job is sixty times
    /// `shortest`.
    pub shortest: u64,
    pub faults: Faults,
    /// True if clients pause, resume, change and cancel jobs.
    pub commands: bool,
    /// Average seconds between faults.
    pub fault_every: u64,
    pub leases: LeaseTimings,
    pub poll: Duration,
    /// True if clients override outcomes and requeue attempts.
    pub overrides: bool,
    /// True if some jobs have a concurrency key.
    pub limits: bool,
    /// Maximum numbers of active runs of the tenant and of its lane.
    pub shared_limits: Option<(u32, u32)>,
}

impl Scenario {
    /// Returns a scenario of one hour with many events and default timings.
    pub fn dense(seed: u64, faults: Faults) -> Self {
        Self {
            seed,
            hours: 1,
            nodes: 3,
            workers: 64,
            jobs: 24,
            shortest: 1,
            faults,
            commands: false,
            fault_every: 90,
            leases: LeaseTimings::default(),
            poll: Duration::from_secs(1),
            overrides: false,
            limits: false,
            shared_limits: None,
        }
    }

    /// Returns a scenario of 40 hours with long leases.
    pub fn long(seed: u64, faults: Faults) -> Self {
        Self {
            hours: 40,
            jobs: 12,
            shortest: 300,
            fault_every: 1800,
            leases: LeaseTimings {
                ping: Span::from_secs(30),
                silent_after: Span::from_secs(90),
                grace: Span::from_secs(30),
            },
            poll: Duration::from_secs(20),
            ..Self::dense(seed, faults)
        }
    }
}

impl Scenario {
    pub fn limits(&self) -> Limits {
        let (tenant, lane) = self.shared_limits.unzip();
        Limits { tenant, lanes: [None, lane, None], ..Limits::default() }
    }
}

#[derive(Debug, Default)]
pub struct Outcome {
    pub simulated_hours: u64,
    pub bodies: u64,
    pub faults: u64,
    pub skipped_times: u64,
    pub latest_ms: u64,
    pub fingerprint: u64,
    pub violations: Vec<String>,
}

impl Outcome {
    pub fn add(&mut self, other: &Self) {
        self.simulated_hours += other.simulated_hours;
        self.bodies += other.bodies;
        self.faults += other.faults;
        self.skipped_times += other.skipped_times;
        self.latest_ms = self.latest_ms.max(other.latest_ms);
    }
}
