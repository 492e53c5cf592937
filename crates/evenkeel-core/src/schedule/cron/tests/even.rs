//! Tests for cron expressions that are equivalent to an interval.

use proptest::prelude::*;

use super::{at, cron};
use crate::schedule::Dst;
use crate::time::{Span, Timestamp};
use crate::zone::Zone;

#[test]
fn expression_that_divides_the_day_evenly_is_an_interval() {
    for (expression, minutes) in [
        ("0 * * * *", 60),
        ("0 0 * * *", 1440),
        ("0 */6 * * *", 360),
        ("*/15 * * * *", 15),
        ("7-59/30 * * * *", 30),
        ("* * * * *", 1),
        ("30 1,9,17 * * *", 480),
        ("@daily", 1440),
        ("@hourly", 60),
        ("15 4 ? * *", 1440),
        ("15 4 1-31 1-12 *", 1440),
        ("15 4 * * 0-6", 1440),
        ("0 0 */8 * * *", 480),
    ] {
        assert_eq!(
            cron(expression).even_span(),
            Some(Span::from_secs(minutes * 60)),
            "{expression}"
        );
    }
    assert_eq!(cron("*/20 * * * * *").even_span(), Some(Span::from_secs(20)));
}

#[test]
fn uneven_expression_is_no_interval() {
    for expression in [
        "*/45 * * * *", "0 */5 * * *", "0 9,12 * * *", "0 9-17 * * *", "0 9 * * 1-5", "0 0 1 * *",
        "0 0 */2 * *", "0 0 1-30 * *", "0 0 * 1-11 *", "@weekly", "@monthly", "@yearly",
        "0 0 L * *", "H * * * *",
    ] {
        assert_eq!(cron(expression).even_span(), None, "{expression}");
    }
}

#[test]
fn expression_with_h_is_an_interval_once_resolved() {
    let resolved = cron("H H * * *").resolved(17, true);
    assert_eq!(resolved.even_span(), Some(Span::from_secs(86_400)));
}

proptest! {
    /// Checks for random cron expressions that their run times over two days and around the end of
    /// February have the computed distance.
    #[test]
    fn even_span_agrees_with_the_times(
        minute in "(\\*|[0-9]|[1-5][0-9]|\\*/([2-9]|[1-5][0-9])|[0-9],[1-5][0-9]|[0-9]-[1-5][0-9]/([1-9]|[1-5][0-9]))",
        hour in "(\\*|[0-9]|1[0-9]|2[0-3]|\\*/([2-9]|1[0-9])|[0-9],1[0-9]|[0-9]-1[0-9])",
    ) {
        let cron = cron(&format!("{minute} {hour} * * *"));
        let next = |time: &Timestamp| cron.next_after(*time, &Zone::utc(), Dst::default());
        let first = at("2028-02-28T00:00:00Z");
        let until = at("2028-03-02T00:00:00Z");
        let times: Vec<_> =
            std::iter::successors(next(&first), next).take_while(|time| *time < until).collect();
        let mut gaps: Vec<_> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
        gaps.dedup();
        match cron.even_span() {
            Some(span) => prop_assert_eq!(gaps, vec![span]),
            None => prop_assert!(gaps.len() > 1),
        }
    }
}
