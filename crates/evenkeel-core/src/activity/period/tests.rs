use proptest::prelude::*;

use super::*;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    time("2026-12-01T13:20:00Z")
}

fn bounds(period: ActivityPeriod) -> (String, String) {
    (period.from().start().to_string(), period.until().start().to_string())
}

#[test]
fn default_period_is_the_last_24_hours() {
    for (step, from, until, count) in [
        (ActivityStep::Slot, "2026-11-30T13:30:00Z", "2026-12-01T13:30:00Z", 96),
        (ActivityStep::Hour, "2026-11-30T14:00:00Z", "2026-12-01T14:00:00Z", 24),
        (ActivityStep::Day, "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z", 1),
    ] {
        let period = ActivityPeriod::new(None, None, step, now()).unwrap();
        assert_eq!(bounds(period), (time(from).to_string(), time(until).to_string()), "{step:?}");
        assert_eq!(period.empty_steps().len(), count, "{step:?}");
    }
}

#[test]
fn given_times_are_extended_to_whole_steps() {
    let (from, until) = (Some(time("2026-11-02T10:50:00Z")), Some(time("2026-11-02T12:00:00Z")));
    for (step, starts) in [
        (ActivityStep::Slot, vec!["10:45", "11:00", "11:15", "11:30", "11:45"]),
        (ActivityStep::Hour, vec!["10:00", "11:00"]),
        (ActivityStep::Day, vec!["00:00"]),
    ] {
        let period = ActivityPeriod::new(from, until, step, now()).unwrap();
        let expected: Vec<Timestamp> =
            starts.iter().map(|start| time(&format!("2026-11-02T{start}:00Z"))).collect();
        let found: Vec<Timestamp> = period.empty_steps().iter().map(|step| step.start).collect();
        assert_eq!(found, expected, "{step:?}");
    }
}

#[test]
fn empty_period_is_refused() {
    let at = |text| Some(time(text));
    for (from, until) in [
        (at("2026-12-01T10:00:00Z"), at("2026-12-01T10:00:00Z")),
        (at("2026-12-01T10:00:01Z"), at("2026-12-01T10:00:00Z")),
        (at("2026-12-01T13:21:00Z"), None),
    ] {
        let refused = ActivityPeriod::new(from, until, ActivityStep::Day, now());
        assert_eq!(refused, Err(InvalidPeriod::Empty));
    }
}

#[test]
fn long_period_is_refused_with_the_shortest_step_that_fits() {
    let since = |days: u64| Some(now().saturating_sub(Span::from_secs(days * 86_400)));
    let new = |days, step| ActivityPeriod::new(since(days), None, step, now());
    let steps = |days, step| new(days, step).unwrap().empty_steps().len();
    assert_eq!(steps(20, ActivityStep::Slot), 20 * 96 + 1);
    let long = |days, step| match new(days, step).unwrap_err() {
        InvalidPeriod::TooLong { steps, use_step } => (steps, use_step),
        InvalidPeriod::Empty => panic!("the period is not empty"),
    };
    assert_eq!(long(21, ActivityStep::Slot), (21 * 96 + 1, Some(ActivityStep::Hour)));
    assert_eq!(long(84, ActivityStep::Hour), (84 * 24 + 1, Some(ActivityStep::Day)));
    assert_eq!(long(90, ActivityStep::Slot), (90 * 96 + 1, Some(ActivityStep::Day)));
    assert_eq!(long(3000, ActivityStep::Day), (3001, None));
}

#[test]
fn period_of_exactly_the_maximum_is_accepted() {
    let length = |steps: u32| Slot::LENGTH.saturating_mul(steps.into());
    let until = time("2026-12-01T00:00:00Z");
    let new = |steps| {
        let from = Some(until.saturating_sub(length(steps)));
        ActivityPeriod::new(from, Some(until), ActivityStep::Slot, now())
    };
    assert_eq!(new(STEPS_MAX).unwrap().empty_steps().len(), STEPS_MAX as usize);
    assert!(matches!(new(STEPS_MAX + 1), Err(InvalidPeriod::TooLong { steps: 2001, .. })));
}

#[test]
fn extreme_times_are_refused() {
    let new = |from, until| ActivityPeriod::new(from, until, ActivityStep::Day, now());
    let refused = new(Some(Timestamp::MIN), Some(Timestamp::MAX));
    assert!(matches!(refused, Err(InvalidPeriod::TooLong { use_step: None, .. })), "{refused:?}");
    assert_eq!(new(None, Some(Timestamp::MIN)), Err(InvalidPeriod::Empty));
    assert_eq!(new(None, Some(Timestamp::MAX)).unwrap().empty_steps().len(), 1);
}

proptest! {
    /// Every time slot of the period counts in exactly one step, which contains it.
    #[test]
    fn merge_keeps_every_run_in_its_step(
        slots in prop::collection::vec((1_900_000_i32..1_902_000, 1_u64..100), 0..40),
        step in prop::sample::select(ActivityStep::ALL.to_vec()),
        first in 1_900_000_i32..1_901_000,
        length in 1_i32..1_000,
    ) {
        let (from, until) = (Slot(first).start(), Slot(first + length).start());
        let period = ActivityPeriod::new(Some(from), Some(until), step, now()).unwrap();
        let mut steps = period.empty_steps();
        for (slot, fired) in &slots {
            let counts = ActivityCounts { fired: *fired, ..ActivityCounts::default() };
            period.add(&mut steps, Slot(*slot), &counts);
        }
        for merged in &steps {
            let end = merged.start.saturating_add(step.length());
            let inside = |slot: i32| (merged.start..end).contains(&Slot(slot).start());
            let expected: u64 =
                slots.iter().filter(|(slot, _)| inside(*slot)).map(|(_, fired)| fired).sum();
            prop_assert_eq!(merged.counts.fired, expected);
        }
        let starts = steps.iter().map(|step| step.start);
        prop_assert!(steps[0].start <= from);
        prop_assert!(starts.clone().max().unwrap().saturating_add(step.length()) >= until);
        let sum: u64 = steps.iter().map(|step| step.counts.fired).sum();
        prop_assert_eq!(total_of(&steps).fired, sum);
    }
}
