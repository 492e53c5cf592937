//! Runs the steps of a task one after another, and prints a headline and the duration of each step.

use crate::ambient;
use anyhow::{Context, Result};
use std::time::Duration;

#[derive(Debug, Default)]
pub struct Steps {
    taken: Vec<(String, Duration)>,
}

impl Steps {
    pub fn take<T>(&mut self, name: &str, act: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("\n==> {name}");
        let begun = ambient::now();
        let outcome = act();
        self.taken.push((name.to_owned(), begun.elapsed()));
        outcome.with_context(|| format!("failed: {name}"))
    }

    pub fn print_times(&self) {
        println!();
        for (name, time) in &self.taken {
            println!("{:>8.1} s  {name}", time.as_secs_f64());
        }
    }
}
