//! Tests that a job whose start time the balancer chose keeps its load profile after downtime.

use evenkeel_core::advance::{DueTime, advance};
use evenkeel_core::balance::{
    BalanceSettings, Horizon, JobToPlace, LoadProfile, Loads, NodeTurn, Policy, first_time,
};
use evenkeel_core::misfire::MisfirePolicy;
use evenkeel_core::schedule::Interval;
use evenkeel_core::{Definition, Schedule, Span, Timestamp};
use proptest::prelude::*;

proptest! {
    #[test]
    fn rhythm_holds_through_random_downtimes(
        secs in prop_oneof![1_u64..4000, prop::sample::select(vec![900, 1200, 3600, 25_200, 86_400, 604_800])],
        seed in any::<u64>(),
        policy in prop::sample::select(vec![Policy::Next, Policy::Projected]),
        misfire in prop::sample::select(vec![
            MisfirePolicy::Last, MisfirePolicy::Skip, MisfirePolicy::All,
        ]),
        downtimes in prop::collection::vec(0_u64..3_000_000_000_000, 1..20),
    ) {
        let created: Timestamp = "2026-03-02T10:07:03.25Z".parse().unwrap();
        let every = Span::from_secs(secs);
        let schedule = Schedule::Interval(Interval::new(every, None).unwrap());
        let definition = Definition { misfire, ..Definition::noop(schedule) };
        let settings = BalanceSettings { policy, ..BalanceSettings::default() };
        let loads = Loads::new(Horizon::new(&settings, created));
        let job = JobToPlace { definition: &definition, seed, cost: Span::ZERO, after: created };
        let first = first_time(&settings, job, &loads, &loads, NodeTurn::ALONE).unwrap();
        let profile = LoadProfile::of(&definition, first);

        let mut next = first;
        for downtime in downtimes {
            // The scheduler notices the scheduled time late, by any delay.
            let now = next.saturating_add(Span::from_micros(downtime));
            let at = DueTime { due: next, now, waited: false, average: Span::ZERO, fired: 0 };
            let later = advance(&definition, at).next.unwrap();
            prop_assert!(later > next);
            prop_assert_eq!(later.since(first).as_micros() % every.as_micros(), 0);
            prop_assert_eq!(LoadProfile::of(&definition, later), profile.clone());
            next = later;
        }
    }
}
