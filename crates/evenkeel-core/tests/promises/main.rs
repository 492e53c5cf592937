//! Compares start windows and conditions with a second, slow implementation of the rules, and with
//! two examples that are simulated minute by minute.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod by_the_minute;
mod laws;
mod slow_rules;
mod strategies;
