//! What was measured of the queue.

/// How fast a queue is worked off.
#[derive(Clone, Debug, serde::Serialize)]
pub struct QueueReport {
    /// The store.
    pub store: String,
    /// The settings in force that decide what survives a crash.
    pub durability: String,
    /// Registered jobs.
    pub jobs: u64,
    /// Attempts that waited at the beginning.
    pub pending: u64,
    /// Tasks that claimed.
    pub tasks: usize,
    /// Were they under limits?
    pub limits: bool,
    /// Attempts that were claimed, and finished unless they were to go on.
    pub claimed: u64,
    /// Those that still wait.
    pub left: u64,
    /// How long it took.
    pub seconds: f64,
    /// Claims a second.
    pub claims_per_second: f64,
    /// So many came first, in the order of their priorities.
    pub first_in_order: usize,
    /// Where the store was kept, if it was.
    pub kept: Option<String>,
    /// Jobs had keys.
    pub dedup: bool,
    /// What was claimed was not finished.
    pub unfinished: bool,
}

impl QueueReport {
    /// A table for people.
    pub fn table(&self) -> String {
        let mut lines = vec![
            format!("store            {}", self.store),
            format!("durability       {}", self.durability),
            format!("jobs             {}", self.jobs),
            format!("pending          {}", self.pending),
            format!("keys             {}", if self.dedup { "one for each job" } else { "none" }),
            format!("tasks            {}", self.tasks),
            format!(
                "limits           {}",
                if self.limits { "10 at once of each key" } else { "none" }
            ),
            format!(
                "{} {} in {:.1} s",
                if self.unfinished { "only claimed    " } else { "claimed, ended  " },
                self.claimed,
                self.seconds
            ),
            format!("still waiting    {}", self.left),
            format!("first batch      {} in order", self.first_in_order),
            format!("claims per s     {:.0}", self.claims_per_second),
        ];
        lines.extend(self.kept.as_ref().map(|kept| format!("kept in          {kept}")));
        lines.join("\n")
    }
}
