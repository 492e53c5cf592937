//! Windows and conditions: held against rules written down a second time, slowly and plainly, and
//! against two examples played by the minute.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accounts;
mod by_the_minute;
mod laws;
mod slow_rules;
mod strategies;
