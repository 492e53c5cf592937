//! Memory, CPU time and disk writes of this process and of the machine, from `/proc`.

use std::{fmt, fs};

use serde::Serialize;

pub fn rss_mb() -> f64 {
    status_mb("self", "VmRSS:")
}

pub fn peak_rss_mb() -> f64 {
    status_mb("self", "VmHWM:")
}

/// A figure from `/proc/<process>/status`.
pub fn status_mb(process: impl fmt::Display, name: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kb = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}

pub fn cpu_seconds() -> f64 {
    cpu_seconds_of("self")
}

/// CPU time of all threads of a process.
pub fn cpu_seconds_of(process: impl fmt::Display) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: f64 = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    // Linux counts CPU time in ticks of 10 ms on every platform that Evenkeel supports.
    ticks / 100.0
}

/// Bytes that this process has caused to be written to disk.
pub fn bytes_written() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// CPU seconds of all cores since the machine was started.
#[derive(Copy, Clone, Debug, Default)]
pub struct MachineTime {
    busy: f64,
    /// Time in which the host of a virtual machine ran something else.
    stolen: f64,
}

impl MachineTime {
    pub fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let fields = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        let ticks: Vec<f64> = fields.map(|field| field.parse().unwrap_or(0.0)).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal
        let sum = |indexes: &[usize]| -> f64 {
            indexes.iter().filter_map(|index| ticks.get(*index)).sum::<f64>() / 100.0
        };
        Self { busy: sum(&[0, 1, 2, 5, 6]), stolen: sum(&[7]) }
    }
}

/// How many cores other programs and the host of the virtual machine used during a measurement.
#[derive(Copy, Clone, Debug, Default, Serialize)]
pub struct Disturbance {
    pub others_cores: f64,
    pub stolen_cores: f64,
}

impl Disturbance {
    /// `cpu_s` is the CPU time of the measured programs in the `seconds` since `before`.
    pub fn since(before: MachineTime, cpu_s: f64, seconds: f64) -> Self {
        let now = MachineTime::now();
        let cores = |cpu_s: f64| (cpu_s / seconds.max(0.001)).max(0.0);
        Self {
            others_cores: cores(now.busy - before.busy - cpu_s),
            stolen_cores: cores(now.stolen - before.stolen),
        }
    }

    /// True if other programs probably changed the result by more than a few percent.
    pub fn is_high(self) -> bool {
        self.others_cores > 0.2 || self.stolen_cores > 0.1
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { others_cores, stolen_cores } = self;
        let verdict = if self.is_high() { "BUSY, measure again" } else { "quiet" };
        write!(
            f,
            "{verdict}: other programs used {others_cores:.2} cores, the host of this machine \
             took {stolen_cores:.2} cores away"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_machine_is_reported() {
        let quiet = Disturbance { others_cores: 0.1, stolen_cores: 0.05 };
        assert!(quiet.to_string().starts_with("quiet"));
        for busy in
            [Disturbance { others_cores: 0.3, ..quiet }, Disturbance { stolen_cores: 0.2, ..quiet }]
        {
            assert!(busy.to_string().starts_with("BUSY"));
        }
    }
}
