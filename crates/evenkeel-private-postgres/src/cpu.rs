//! CPU time of a PostgreSQL server's processes, from `/proc`.

use std::fs;

/// Fields of `/proc/PID/stat`. CPU times are in clock ticks.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// CPU time of the process and of its children that were reaped.
    ticks: u64,
}

/// Returns the CPU seconds that process `root` and its direct children have used, including exited
/// children. The CPU time of an exited child process is counted once, because the operating system
/// adds it to the parent's total.
pub fn seconds(root: u32) -> f64 {
    let Ok(processes) = fs::read_dir("/proc") else { return 0.0 };
    let ticks: u64 = processes
        .filter_map(|entry| {
            let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            // A process may exit before its file in `/proc` is read.
            let stat = parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
            (pid == root || stat.parent == root).then_some(stat.ticks)
        })
        .sum();
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

fn parse(stat: &str) -> Option<Stat> {
    // The second field of `/proc/PID/stat` is the program's name in parentheses, which may contain
    // any character, even `)`.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let times = fields.get(11..15)?;
    let ticks = times.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(Stat { parent, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_time_and_reaped_children_add_up() {
        let line = "42 (odd) name) S 7 42 42 0 -1 4194560 9 9 0 0 1 20 300 4000 20 0 1 0 99";
        assert_eq!(parse(line), Some(Stat { parent: 7, ticks: 4321 }));
    }

    #[test]
    fn truncated_line_is_rejected() {
        assert_eq!(parse("42 (name) S 7 42"), None);
    }
}
