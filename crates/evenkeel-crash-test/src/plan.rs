//! Which faults there will be, drawn from a seed.

use std::fmt;
use std::time::Duration;

use crate::cluster::StoreKind;

/// Something that goes wrong.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
    /// A server gets SIGKILL, and is started again after a while.
    Kill,
    /// A server gets SIGSTOP, and SIGCONT after more than its lease lasts.
    Freeze,
    /// The database crashes, and is started again after a while.
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

/// Whom it hits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// The server with this number.
    Node(usize),
    /// The server that has the youngest of the long bodies: what is lost with it must neither
    /// live on nor be forgotten. If there is none, the server with this number.
    Holder(usize),
}

impl Target {
    /// The server it means if nobody has a long body.
    pub(crate) fn number(self) -> usize {
        match self {
            Self::Node(number) | Self::Holder(number) => number,
        }
    }
}

/// A fault that is to come.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Planned {
    /// So long after the one before is over.
    pub after: Duration,
    /// Then so many milliseconds after the next time most jobs are due, or before it if negative:
    /// between firing, starting and reporting is where a crash hurts.
    pub aim_ms: Option<i64>,
    /// What happens.
    pub fault: Fault,
    /// To whom.
    pub target: Target,
    /// For how long.
    pub lasts: Duration,
}

/// All faults of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// What they were drawn from.
    pub seed: u64,
    /// In their order.
    pub faults: Vec<Planned>,
    /// How long nothing happens after the last one.
    pub calm: Duration,
}

/// After a fault is over, this long is allowed to catch up; then all must be well again.
pub(crate) const RECOVERY: Duration = Duration::from_secs(15);

impl Plan {
    /// Two kills, a freeze and a crash of the database: what fits into a test of 85 seconds.
    #[must_use]
    pub fn short_on_postgres(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let planned = |after, fault, target, lasts_ms| Planned {
            after: Duration::from_secs(after),
            aim_ms: None,
            fault,
            target,
            lasts: Duration::from_millis(lasts_ms),
        };
        // The first kill is long enough for others to take over, the second is not. The database
        // is away for longer than leases last, so that servers have to end what they run.
        let faults = vec![
            planned(8, Fault::Kill, Target::Holder(0), dice.between(13_500, 14_500)),
            planned(5, Fault::Freeze, Target::Holder(1), dice.between(12_500, 13_500)),
            planned(5, Fault::Database, Target::Node(0), dice.between(8_000, 9_000)),
            planned(6, Fault::Kill, Target::Node(dice.below(3)), dice.between(500, 4_000)),
        ];
        let aimed = |each: Planned| Planned { aim_ms: Some(dice.aim()), ..each };
        let faults = faults.into_iter().map(aimed).collect();
        Self { seed, faults, calm: RECOVERY + Duration::from_secs(4) }
    }

    /// Three kills of the only server.
    #[must_use]
    pub fn short_on_sqlite(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let faults = [6_000, 6_500, 3_000].map(|after| Planned {
            after: Duration::from_millis(after),
            aim_ms: Some(dice.aim()),
            fault: Fault::Kill,
            target: Target::Node(0),
            lasts: Duration::from_millis(dice.between(SHORTEST_KILL_MS, 2_000)),
        });
        Self { seed, faults: faults.to_vec(), calm: RECOVERY + Duration::from_secs(4) }
    }

    /// Faults for so long, with calm in between now and then.
    #[must_use]
    pub fn long(seed: u64, length: Duration, store: StoreKind, nodes: usize) -> Self {
        let mut dice = Dice(seed);
        let calm = RECOVERY + Duration::from_secs(10);
        let mut left = length.saturating_sub(calm);
        let mut faults = Vec::new();
        loop {
            let planned = draw(&mut dice, store, nodes);
            // Aiming takes up to a second.
            let takes = planned.after + Duration::from_secs(1) + planned.lasts;
            if takes > left {
                return Self { seed, faults, calm };
            }
            left -= takes;
            faults.push(planned);
        }
    }
}

/// A receiver's work (at most 120 ms) is over before the next server could send it again.
const SHORTEST_KILL_MS: u64 = 300;

fn draw(dice: &mut Dice, store: StoreKind, nodes: usize) -> Planned {
    // Half of the faults come while the last one is being recovered from, half after a calm in
    // which everything has to be on time.
    let after_ms =
        if dice.below(2) == 0 { dice.between(500, 6_000) } else { dice.between(20_000, 30_000) };
    let fault = match (store, dice.below(10)) {
        (StoreKind::Sqlite, _) | (StoreKind::Postgres, 0..5) => Fault::Kill,
        (StoreKind::Postgres, 5..8) => Fault::Freeze,
        (StoreKind::Postgres, _) => Fault::Database,
    };
    let lasts_ms = match fault {
        Fault::Kill if nodes > 1 && dice.below(2) == 0 => dice.between(11_000, 20_000),
        Fault::Kill => dice.between(SHORTEST_KILL_MS, 5_000),
        Fault::Freeze => dice.between(12_000, 20_000),
        Fault::Database => dice.between(500, 12_000),
    };
    let number = dice.below(nodes);
    let target = if dice.below(2) == 0 { Target::Holder(number) } else { Target::Node(number) };
    Planned {
        after: Duration::from_millis(after_ms),
        aim_ms: (dice.below(2) == 0).then(|| dice.aim()),
        fault,
        target,
        lasts: Duration::from_millis(lasts_ms),
    }
}

/// A small generator (splitmix64): the same faults from the same seed, with any version of any
/// library.
struct Dice(u64);

impl Dice {
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

    /// Around the time jobs are due: before they are fired, or while their bodies run.
    fn aim(&mut self) -> i64 {
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
    fn the_same_seed_gives_the_same_faults_and_another_gives_others() {
        let plan = |seed| Plan::long(seed, HOUR, StoreKind::Postgres, 3);
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7).faults, plan(8).faults);
    }

    #[test]
    fn a_long_plan_has_every_fault_and_hits_every_server() {
        let plan = Plan::long(1, HOUR, StoreKind::Postgres, 3);
        for fault in [Fault::Kill, Fault::Freeze, Fault::Database] {
            assert!(plan.faults.iter().filter(|planned| planned.fault == fault).count() > 5);
        }
        for number in 0..3 {
            assert!(plan.faults.iter().any(|planned| planned.target == Target::Node(number)));
        }
        let total: Duration = plan.faults.iter().map(|each| each.after + each.lasts).sum();
        assert!(total + plan.calm <= HOUR);
    }

    #[test]
    fn the_only_server_on_sqlite_is_only_killed() {
        let plan = Plan::long(1, HOUR, StoreKind::Sqlite, 1);
        assert!(plan.faults.iter().all(|planned| planned.fault == Fault::Kill));
    }
}
