//! Start windows and conditions, compared with a second, slow implementation of the rules and with
//! two examples played minute by minute.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod by_the_minute;
mod laws;
mod slow_rules;
mod strategies;
