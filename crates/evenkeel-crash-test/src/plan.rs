//! Plans the faults of the crash test and their times, from a seed.

use std::fmt;
use std::time::Duration;

use crate::cluster::StoreKind;

#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// A server is killed with SIGKILL and started again later.
    Kill,
    /// A server is suspended with SIGSTOP, and continues with SIGCONT after its lease has ended.
    Freeze,
    /// The database crashes and is started again later.
    Database,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill",
            Self::Freeze => "freeze",
            Self::Database => "database crash",
        })
    }
}

/// The server that a fault hits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Target {
    Node(usize),
    /// The server on which the newest attempt of a long job runs. An attempt of a long job must
    /// stop when its server is lost. If no long job runs, the fault hits the server with the given
    /// number.
    LongBodyOwner(usize),
}

impl Target {
    /// Returns the number of the server that the fault hits if no long job runs.
    pub(crate) fn number(self) -> usize {
        match self {
            Self::Node(number) | Self::LongBodyOwner(number) => number,
        }
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct PlannedFault {
    /// Delay between the end of the previous fault and this fault.
    pub after: Duration,
    /// If set, the fault begins at this offset in milliseconds from the next scheduled time of most
    /// jobs. A crash between the firing of a job and the storing of its result is the hardest case.
    pub offset_ms: Option<i64>,
    pub fault: Fault,
    pub target: Target,
    pub lasts: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    pub seed: u64,
    pub faults: Vec<PlannedFault>,
    /// Time without faults after the last fault.
    pub quiet_after: Duration,
}

/// Maximum time that the servers may take to recover from a fault. After the recovery, all
/// invariants must hold again.
pub(crate) const RECOVERY: Duration = Duration::from_secs(15);

impl Plan {
    /// Returns a plan of about 80 s with two killed servers, a suspended server and a crash of the
    /// database.
    #[must_use]
    pub fn short_on_postgres(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let planned = |after, fault, target, lasts_ms| PlannedFault {
            after: Duration::from_secs(after),
            offset_ms: None,
            fault,
            target,
            lasts: Duration::from_millis(lasts_ms),
        };
        // The first killed server is down long enough for a takeover, the second is not. The
        // database is down for longer than a lease, so servers must cancel their running attempts.
        let faults = vec![
            planned(8, Fault::Kill, Target::LongBodyOwner(0), rng.between(13_500, 14_500)),
            planned(5, Fault::Freeze, Target::LongBodyOwner(1), rng.between(12_500, 13_500)),
            planned(5, Fault::Database, Target::Node(0), rng.between(8_000, 9_000)),
            planned(6, Fault::Kill, Target::Node(rng.below(3)), rng.between(500, 4_000)),
        ];
        let with_offset =
            |each: PlannedFault| PlannedFault { offset_ms: Some(rng.offset_ms()), ..each };
        let faults = faults.into_iter().map(with_offset).collect();
        Self { seed, faults, quiet_after: RECOVERY + Duration::from_secs(4) }
    }

    #[must_use]
    pub fn short_on_sqlite(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let faults = [6_000, 6_500, 3_000].map(|after| PlannedFault {
            after: Duration::from_millis(after),
            offset_ms: Some(rng.offset_ms()),
            fault: Fault::Kill,
            target: Target::Node(0),
            lasts: Duration::from_millis(rng.between(SHORTEST_KILL_MS, 2_000)),
        });
        Self { seed, faults: faults.to_vec(), quiet_after: RECOVERY + Duration::from_secs(4) }
    }

    /// Returns a plan of the given length with random faults. The cluster can recover completely
    /// between some of the faults.
    #[must_use]
    pub fn long(seed: u64, length: Duration, store: StoreKind, nodes: usize) -> Self {
        let mut rng = Rng(seed);
        let quiet_after = RECOVERY + Duration::from_secs(10);
        let mut left = length.saturating_sub(quiet_after);
        let mut faults = Vec::new();
        loop {
            let planned = draw(&mut rng, store, nodes);
            // A fault with an offset waits up to a second for the next scheduled time.
            let takes = planned.after + Duration::from_secs(1) + planned.lasts;
            if takes > left {
                return Self { seed, faults, quiet_after };
            }
            left -= takes;
            faults.push(planned);
        }
    }
}

/// Minimum time for which a killed server stays down. An HTTP call takes at most 120 ms, so it ends
/// before the restarted server can repeat it.
const SHORTEST_KILL_MS: u64 = 300;

fn draw(rng: &mut Rng, store: StoreKind, nodes: usize) -> PlannedFault {
    // Half of the faults begin during the recovery from the previous fault. The other faults begin
    // after a period in which all runs must be on time.
    let after_ms =
        if rng.below(2) == 0 { rng.between(500, 6_000) } else { rng.between(20_000, 30_000) };
    let fault = match (store, rng.below(10)) {
        (StoreKind::Sqlite, _) | (StoreKind::Postgres, 0..5) => Fault::Kill,
        (StoreKind::Postgres, 5..8) => Fault::Freeze,
        (StoreKind::Postgres, _) => Fault::Database,
    };
    let lasts_ms = match fault {
        Fault::Kill if nodes > 1 && rng.below(2) == 0 => rng.between(11_000, 20_000),
        Fault::Kill => rng.between(SHORTEST_KILL_MS, 5_000),
        Fault::Freeze => rng.between(12_000, 20_000),
        Fault::Database => rng.between(500, 12_000),
    };
    let number = rng.below(nodes);
    let target =
        if rng.below(2) == 0 { Target::LongBodyOwner(number) } else { Target::Node(number) };
    PlannedFault {
        after: Duration::from_millis(after_ms),
        offset_ms: (rng.below(2) == 0).then(|| rng.offset_ms()),
        fault,
        target,
        lasts: Duration::from_millis(lasts_ms),
    }
}

/// A small random number generator (splitmix64), so that a seed gives the same faults with all
/// versions of all libraries.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    /// Returns a random offset from the scheduled time of most jobs, from 50 ms before to 100 ms
    /// after it.
    fn offset_ms(&mut self) -> i64 {
        i64::try_from(self.between(0, 150)).unwrap_or(0) - 50
    }

    fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap_or(1);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn same_seed_gives_the_same_faults() {
        let plan = |seed| Plan::long(seed, HOUR, StoreKind::Postgres, 3);
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7).faults, plan(8).faults);
    }

    #[test]
    fn long_plan_has_every_fault_and_hits_every_server() {
        let plan = Plan::long(1, HOUR, StoreKind::Postgres, 3);
        for fault in [Fault::Kill, Fault::Freeze, Fault::Database] {
            assert!(plan.faults.iter().filter(|planned| planned.fault == fault).count() > 5);
        }
        for number in 0..3 {
            assert!(plan.faults.iter().any(|planned| planned.target == Target::Node(number)));
        }
        let total: Duration = plan.faults.iter().map(|each| each.after + each.lasts).sum();
        assert!(total + plan.quiet_after <= HOUR);
    }

    #[test]
    fn sqlite_server_is_only_killed() {
        let plan = Plan::long(1, HOUR, StoreKind::Sqlite, 1);
        assert!(plan.faults.iter().all(|planned| planned.fault == Fault::Kill));
    }
}
