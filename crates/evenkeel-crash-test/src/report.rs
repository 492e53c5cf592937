//! The report.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::plan::Fault;

/// Kinds of violations; the number in parentheses is that of the violated invariant.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ViolationKind {
    /// A scheduled time without a run and without a valid reason to skip it (I1).
    Lost,
    /// A run that ended without success (I1).
    Failed,
    /// A scheduled time with two runs, two completions, or a run and a skip record. An attempt that
    /// started twice also counts as a duplicate (I2).
    Duplicate,
    Overlapping,
    /// An attempt that kept running although its server was lost (I3).
    OutlivedServer,
    /// A stored completion whose fence no probe or receiver recorded (I4).
    Stale,
    /// A start that was more than a second late without a fault (I5).
    Late,
    /// A start before the scheduled time (I6).
    Early,
    /// An attempt that is still running or pending after the end of the test (I7).
    Unfinished,
    /// A run at a time that is not a scheduled time of its job (I11).
    WrongTime,
    /// Attempts of a lost server that started too late on another server.
    SlowTakeover,
    /// An unexpected event, such as a panic or a server that ended unexpectedly or did not end.
    Incident,
}

impl ViolationKind {
    /// All kinds of violations, with their names in the report.
    pub(crate) const ALL: [(Self, &str); 12] = [
        (Self::Lost, "lost"),
        (Self::Failed, "failed"),
        (Self::Duplicate, "doubled"),
        (Self::Overlapping, "overlapping"),
        (Self::OutlivedServer, "outlived their server"),
        (Self::Stale, "stale completions"),
        (Self::Late, "late while healthy"),
        (Self::Early, "early"),
        (Self::Unfinished, "unfinished"),
        (Self::WrongTime, "at wrong times"),
        (Self::SlowTakeover, "slow takeovers"),
        (Self::Incident, "incidents"),
    ];
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    pub kind: ViolationKind,
    pub detail: String,
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub title: String,
    pub seed: u64,
    /// Length of the checked window.
    pub checked: Duration,
    /// Number of scheduled times that were checked.
    pub expected: u64,
    /// Number of scheduled times that ran.
    pub executed: u64,
    /// Number of scheduled times that were recorded as skipped.
    pub skipped: u64,
    /// Number of runs that failed because their server was lost, of jobs whose attempts must not
    /// start twice.
    pub failed_with_server: u64,
    /// Number of started attempts, including repetitions.
    pub starts: u64,
    /// Number of starts that repeated an attempt of a lost server.
    pub repeats: u64,
    pub refused: u64,
    pub faults: BTreeMap<Fault, u64>,
    /// Total time in which the machine was overloaded, so that lateness was not checked.
    pub busy: Duration,
    /// Number of starts whose lateness was checked.
    pub checked_for_lateness: u64,
    /// The largest lateness.
    pub latest: Duration,
    /// Durations from the loss of a server until its attempts ran on other servers, sorted.
    pub takeovers: Vec<Duration>,
    /// Durations from the restart of the database until the next attempt started, sorted.
    pub recoveries: Vec<Duration>,
    pub violations: Vec<Violation>,
}

impl Report {
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    #[must_use]
    pub fn count(&self, kind: ViolationKind) -> usize {
        self.violations.iter().filter(|violation| violation.kind == kind).count()
    }
}

/// Maximum number of violations of each kind that are shown in detail.
const SHOWN: usize = 10;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "crash test: {}, seed {}", self.title, self.seed)?;
        let faults: Vec<String> =
            self.faults.iter().map(|(fault, count)| format!("{fault} {count}")).collect();
        writeln!(f, "  checked               {:.1} s", self.checked.as_secs_f64())?;
        writeln!(f, "  faults                {}", faults.join(", "))?;
        writeln!(f, "  due times             {}", self.expected)?;
        writeln!(f, "  executed              {}", self.executed)?;
        writeln!(f, "  skipped               {}", self.skipped)?;
        writeln!(f, "  failed with a server  {}", self.failed_with_server)?;
        writeln!(f, "  bodies started        {}, {} of them again", self.starts, self.repeats)?;
        writeln!(f, "  stale calls refused   {}", self.refused)?;
        writeln!(
            f,
            "  latest while healthy  {:.3} s of {} starts; machine too busy for {:.1} s",
            self.latest.as_secs_f64(),
            self.checked_for_lateness,
            self.busy.as_secs_f64()
        )?;
        writeln!(f, "  takeover              {}", spread(&self.takeovers))?;
        writeln!(f, "  database back         {}", spread(&self.recoveries))?;
        for (kind, name) in ViolationKind::ALL {
            writeln!(f, "  {name:<22}{}", self.count(kind))?;
        }
        for (kind, name) in ViolationKind::ALL {
            let all = self.violations.iter().filter(|violation| violation.kind == kind);
            for violation in all.take(SHOWN) {
                writeln!(f, "  {name}: {}", violation.detail)?;
            }
        }
        write!(
            f,
            "  {}",
            if self.is_clean() { "all invariants hold" } else { "INVARIANTS VIOLATED" }
        )
    }
}

fn spread(sorted: &[Duration]) -> String {
    match (sorted.last(), sorted.get(sorted.len() / 2)) {
        (Some(most), Some(median)) => format!(
            "at most {:.1} s, median {:.1} s, of {}",
            most.as_secs_f64(),
            median.as_secs_f64(),
            sorted.len()
        ),
        _ => "none".to_owned(),
    }
}
