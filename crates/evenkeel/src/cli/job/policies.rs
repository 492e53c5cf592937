//! Flags of policies that `job create` and `job update` share.

use clap::Args;
use evenkeel_core::Span;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::create::whole_seconds;
use crate::Result;

#[derive(Args, Clone)]
pub(super) struct PolicyArgs {
    /// End an attempt after this time without a response, heartbeat or output
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "How")]
    timeout: Option<Span>,
    /// End an attempt that takes longer than this time
    #[arg(long, value_name = "TIME", conflicts_with = "file", help_heading = "How")]
    max_allowed_duration: Option<Span>,
    /// What to do if a run is due while the previous run is active: skip, queue, allow or replace
    #[arg(long, value_name = "POLICY", conflicts_with = "file", help_heading = "How")]
    overlap: Option<String>,
    /// Which missed runs to start after an outage: last, skip or all
    #[arg(long, value_name = "POLICY", conflicts_with = "file", help_heading = "How")]
    misfire: Option<String>,
    /// The lane: critical, standard or batch
    #[arg(long, value_name = "LANE", conflicts_with = "file", help_heading = "How")]
    lane: Option<String>,
    /// The priority within the lane, 0 to 100
    #[arg(long, value_name = "N", conflicts_with = "file", help_heading = "How")]
    priority: Option<u32>,
}

impl PolicyArgs {
    pub(super) fn add_to(&self, job: &mut Map<String, Value>) -> Result {
        put(job, "timeout_sec", whole_seconds("--timeout", self.timeout)?);
        put_same!(job, self, max_allowed_duration, overlap, misfire, lane, priority);
        Ok(())
    }
}

/// Adds a field to a JSON document if its flag was given.
pub(in crate::cli) fn put(
    job: &mut Map<String, Value>,
    field: &str,
    value: Option<impl Serialize>,
) {
    if let Some(value) = value {
        job.insert(field.into(), json!(value));
    }
}

/// Adds a field with the name of the flag to a JSON document, for each flag that was given.
macro_rules! put_same {
    ($document:expr, $args:expr, $($field:ident),+) => {
        $( $crate::cli::job::put($document, stringify!($field), $args.$field.as_ref()); )+
    };
}

pub(in crate::cli) use put_same;
