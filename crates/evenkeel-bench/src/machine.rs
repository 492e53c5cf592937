//! Memory, CPU time and disk writes of this process, from `/proc`.

use std::fs;

pub fn rss_mb() -> f64 {
    status_mb("VmRSS:")
}

pub fn peak_rss_mb() -> f64 {
    status_mb("VmHWM:")
}

fn status_mb(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kb = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kb.unwrap_or(0.0) / 1024.0
}

/// Of all threads.
pub fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
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
