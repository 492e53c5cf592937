//! Draws a rebalance plan: the load before and after it side by side, and the jobs that move.

use evenkeel_core::Timestamp;

use super::bars::{bar, clock, counted, grouped, hour_of, hours_from, reasons, slot};
use super::views::{Plan, Shape};
use crate::output::{Output, Table, Tone, duration_ms};

/// Draws a rebalance plan and its first `shown` moves, in lines of at most `width` characters.
pub(super) fn draw(
    plan: &Plan,
    now: Timestamp,
    width: usize,
    shown: usize,
    output: Output,
) -> String {
    let mut text = side_by_side(&plan.before, &plan.after, now, width);
    text.push('\n');
    text.push_str(&moves(plan, shown, output));
    if plan.would_skip > 0 {
        let verb = if plan.would_skip == 1 { "stays" } else { "stay" };
        text.push_str(&format!(
            "{} {verb}: {}\n",
            counted(plan.would_skip, "job"),
            reasons(&plan.skipped_by_reason)
        ));
    }
    text
}

/// Draws the load of each hour of a day, before and after a rebalance.
pub(super) fn side_by_side(before: &Shape, after: &Shape, now: Timestamp, width: usize) -> String {
    let counts = |shape: &Shape| {
        let mut hours = [0.0; 24];
        for hour in &shape.hourly_distribution {
            hours[usize::from(hour.hour).min(23)] = hour.job_count;
        }
        hours
    };
    let (was, will) = (counts(before), counts(after));
    let most = was.iter().chain(&will).copied().fold(0.0, f64::max);
    let number = grouped(most).chars().count();
    // Width of a bar in characters, for two bars per line next to the hour and the two numbers.
    let side = width.saturating_sub(2 + 5 + 2 + 2 + 2 * (number + 2)).clamp(16, 100) / 2;
    let column = side + 2 + number;
    let title =
        |title: &str, shape: &Shape| format!("{title}: score {:.2}", shape.distribution_score);
    let peaks = |shape: &Shape, hours: &[f64; 24]| {
        let hour = hours.iter().copied().fold(0.0, f64::max);
        format!("peak {}/h, {}/{}", grouped(hour), grouped(shape.peak), slot(shape.slot_minutes))
    };
    let row = |left: String, right: String| format!("{:9}{left:column$}  {right}\n", "");
    let mut text = row(title("before", before), title("after", after));
    text.push_str(&row(peaks(before, &was), peaks(after, &will)));
    let first = hour_of(now);
    for hour in hours_from(first) {
        let mark = if hour == first { '▸' } else { ' ' };
        let half = |value: f64| {
            let drawn = bar(value, most, side, None);
            let space = " ".repeat(side.saturating_sub(drawn.chars().count()));
            format!("{drawn}{space}  {:>number$}", grouped(value))
        };
        let place = usize::from(hour);
        text.push_str(&format!(
            "{mark} {}  {}  {}\n",
            clock(hour),
            half(was[place]),
            half(will[place])
        ));
    }
    text
}

fn moves(plan: &Plan, shown: usize, output: Output) -> String {
    if plan.would_move == 0 {
        return "No job would be moved.\n".into();
    }
    if shown == 0 {
        return format!("{} would be moved.\n", counted(plan.would_move, "job"));
    }
    let moves = plan.preview.iter().take(shown).map(|one| {
        (one.name.as_deref().unwrap_or(&one.job_id), one.current_time, one.proposed_time)
    });
    let mut text = moves_table(output, moves);
    let left = plan.would_move.saturating_sub(shown.min(plan.preview.len()) as u64);
    if left > 0 {
        text.push_str(&format!("and {} more; -n shows more\n", grouped(left as f64)));
    }
    text.push('\n');
    text
}

/// Draws a table of moved jobs with their next run times before and after the move.
pub(super) fn moves_table<'a>(
    output: Output,
    moves: impl Iterator<Item = (&'a str, Timestamp, Timestamp)>,
) -> String {
    let rows = moves.map(|(job, from, to)| {
        [
            (job.to_owned(), Tone::Plain),
            (short(from), Tone::Quiet),
            (short(to), Tone::Plain),
            (shift(from, to), Tone::Quiet),
        ]
    });
    Table::of(output, ["JOB", "FROM", "TO", "SHIFT"], rows).render()
}

/// `2026-12-01 14:15:00`
pub(super) fn short(time: Timestamp) -> String {
    time.to_string().chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

/// `2h 15m later`
pub(super) fn shift(from: Timestamp, to: Timestamp) -> String {
    let (later, earlier) = (to.since(from), from.since(to));
    if later >= earlier {
        format!("{} later", duration_ms(later.as_millis()))
    } else {
        format!("{} earlier", duration_ms(earlier.as_millis()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::views::{Hour, PlannedMove};
    use super::*;

    fn shape(score: f64, of: impl Fn(u8) -> f64) -> Shape {
        let hour = |hour: u8| Hour { hour, job_count: of(hour), cost_seconds: 0.0 };
        Shape {
            distribution_score: score,
            slot_minutes: 15.0,
            peak: 12.0,
            hourly_distribution: (0..24).map(hour).collect(),
        }
    }

    fn sample() -> Plan {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let one = |name: Option<&str>| PlannedMove {
            job_id: "019a8000-0000-7000-8000-000000000000".into(),
            name: name.map(String::from),
            current_time: at("2026-12-01T14:00:07Z"),
            proposed_time: at("2026-12-01T16:15:07Z"),
        };
        Plan {
            plan_id: "p".into(),
            expires_at: at("2026-12-01T13:35:00Z"),
            would_move: 23,
            would_skip: 3,
            preview: vec![one(Some("news")), one(None)],
            skipped_by_reason: [("job_running".into(), 1), ("protection_window".into(), 2)].into(),
            before: shape(0.04, |hour| if hour == 14 { 24.0 } else { 0.0 }),
            after: shape(1.0, |_| 1.0),
        }
    }

    fn drawn(plan: &Plan, width: usize) -> Vec<String> {
        let now = "2026-12-01T13:20:00Z".parse().unwrap();
        let text = draw(plan, now, width, 2, Output::new(false));
        text.lines().map(String::from).collect()
    }

    #[test]
    fn before_and_after_are_side_by_side() {
        let lines = drawn(&sample(), 80);
        assert!(lines[0].contains("before: score 0.04 "), "{}", lines[0]);
        assert!(lines[0].ends_with("after: score 1.00"), "{}", lines[0]);
        assert!(lines[1].contains("peak 24/h, 12/15m "), "{}", lines[1]);
        assert!(lines[1].ends_with("peak 1/h, 12/15m"), "{}", lines[1]);
        assert!(lines[2].starts_with("▸ 13:00  "), "{}", lines[2]);
        let bars: Vec<&str> = lines[3].split_whitespace().collect();
        assert_eq!((bars[0], bars[2], bars[4]), ("14:00", "24", "1"), "{}", lines[3]);
    }

    #[test]
    fn no_bar_is_wider_than_the_terminal() {
        for width in [80, 120] {
            for line in drawn(&sample(), width).iter().take(26) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn moves_and_skipped_jobs_are_listed() {
        let text = drawn(&sample(), 120).join("\n");
        for part in [
            "news",
            "019a8000-0000-7000-8000-000000000000",
            "2026-12-01 14:00:07",
            "2h 15m later",
            "and 21 more; -n shows more",
            "3 jobs stay: 2 protection_window, 1 job_running",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn empty_plan_is_reported() {
        let mut plan = sample();
        (plan.would_move, plan.would_skip) = (0, 0);
        assert!(drawn(&plan, 80).join("\n").contains("No job would be moved."));
    }

    #[test]
    fn shift_has_a_sign() {
        let (early, late): (Timestamp, Timestamp) =
            ("2026-12-01T14:00:00Z".parse().unwrap(), "2026-12-01T14:45:00Z".parse().unwrap());
        assert_eq!(
            (shift(early, late), shift(late, early)),
            ("45m later".into(), "45m earlier".into())
        );
    }
}
