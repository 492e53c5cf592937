//! What the judge has to say.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::plan::Fault;

/// What can be wrong.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wrong {
    /// A time that neither ran nor was skipped by right (I1).
    Lost,
    /// A chain that ended without its body ever coming to its end (I1).
    Failed,
    /// A time with two chains, two completions or a skip besides, or an attempt started twice (I2).
    Doubled,
    /// Two bodies of one job at once (I3).
    Overlapping,
    /// A body that went on after its server's work was no longer its own (I3).
    Survived,
    /// A completion that no body with its fence reported (I4).
    Stale,
    /// A start more than a second late while all was well (I5).
    Late,
    /// A start before its time (I6).
    Early,
    /// An attempt that is still going on, or waiting, after the end (I7).
    Unfinished,
    /// A time that is not one of its job's (I11).
    OffRhythm,
    /// Work of a lost server that waited too long for another.
    SlowTakeover,
    /// A panic, a server that ended by itself or did not end, and the like.
    Incident,
}

impl Wrong {
    /// All of them, with the words the report has for them.
    pub(crate) const ALL: [(Self, &str); 12] = [
        (Self::Lost, "lost"),
        (Self::Failed, "failed"),
        (Self::Doubled, "doubled"),
        (Self::Overlapping, "overlapping"),
        (Self::Survived, "outlived their server"),
        (Self::Stale, "stale completions"),
        (Self::Late, "late while healthy"),
        (Self::Early, "early"),
        (Self::Unfinished, "unfinished"),
        (Self::OffRhythm, "off rhythm"),
        (Self::SlowTakeover, "slow takeovers"),
        (Self::Incident, "incidents"),
    ];
}

/// A broken promise, with what shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which promise.
    pub wrong: Wrong,
    /// What shows it.
    pub detail: String,
}

/// The verdict, with figures.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many servers on which store.
    pub title: String,
    /// What the faults were drawn from.
    pub seed: u64,
    /// Between the first and the last time that were judged.
    pub judged: Duration,
    /// Scheduled times that had to be accounted for.
    pub expected: u64,
    /// Of those, the ones that ran.
    pub executed: u64,
    /// Of those, the ones that were recorded as skipped.
    pub skipped: u64,
    /// Of those, the ones that failed with their server because their job runs once at most.
    pub given_up: u64,
    /// Bodies that started.
    pub starts: u64,
    /// Of those, the ones that repeated what a lost server had begun.
    pub repeats: u64,
    /// Calls with an old fence that the receiver refused.
    pub refused: u64,
    /// Faults by kind.
    pub faults: BTreeMap<Fault, u64>,
    /// How long the machine was too busy to judge lateness.
    pub busy: Duration,
    /// Starts whose lateness was judged.
    pub judged_for_lateness: u64,
    /// The latest of those.
    pub latest: Duration,
    /// From the loss of a server until its work ran elsewhere, in order of size.
    pub takeovers: Vec<Duration>,
    /// From the return of the database until a body started, in order of size.
    pub recoveries: Vec<Duration>,
    /// What is wrong.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Is nothing wrong?
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// How often a promise was broken.
    #[must_use]
    pub fn count(&self, wrong: Wrong) -> usize {
        self.violations.iter().filter(|violation| violation.wrong == wrong).count()
    }
}

/// So many violations of each kind are shown in full.
const SHOWN: usize = 10;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "crash test: {}, seed {}", self.title, self.seed)?;
        let faults: Vec<String> =
            self.faults.iter().map(|(fault, count)| format!("{fault} {count}")).collect();
        writeln!(f, "  judged                {:.1} s", self.judged.as_secs_f64())?;
        writeln!(f, "  faults                {}", faults.join(", "))?;
        writeln!(f, "  slots expected        {}", self.expected)?;
        writeln!(f, "  executed              {}", self.executed)?;
        writeln!(f, "  skipped by right      {}", self.skipped)?;
        writeln!(f, "  failed with a server  {}", self.given_up)?;
        writeln!(f, "  bodies started        {}, {} of them again", self.starts, self.repeats)?;
        writeln!(f, "  stale calls refused   {}", self.refused)?;
        writeln!(
            f,
            "  latest while healthy  {:.3} s of {} starts; machine too busy for {:.1} s",
            self.latest.as_secs_f64(),
            self.judged_for_lateness,
            self.busy.as_secs_f64()
        )?;
        writeln!(f, "  takeover              {}", spread(&self.takeovers))?;
        writeln!(f, "  database back         {}", spread(&self.recoveries))?;
        for (wrong, words) in Wrong::ALL {
            writeln!(f, "  {words:<22}{}", self.count(wrong))?;
        }
        for (wrong, words) in Wrong::ALL {
            let all = self.violations.iter().filter(|violation| violation.wrong == wrong);
            for violation in all.take(SHOWN) {
                writeln!(f, "  {words}: {}", violation.detail)?;
            }
        }
        write!(f, "  {}", if self.is_clean() { "all promises kept" } else { "PROMISES BROKEN" })
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
