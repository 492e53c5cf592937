//! What plans are like.

use super::samples::{DAY, HOUR, Sample};
use super::*;

#[test]
fn a_thousand_daily_jobs_in_one_slot_are_spread_over_the_day() {
    let mut sample = Sample::new();
    (0..1000).for_each(|n| sample.add(DAY, 3 * HOUR + n % 900, 60));
    let plan = sample.plan(Wanted::default());
    println!("{:?} {:?} {}", plan.before, plan.after, plan.moves.len());
    assert!(plan.before.score < 0.1);
    assert!(plan.after.score > 0.999);
}
