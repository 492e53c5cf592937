//! Draws past distribution scores, one line per day.

use std::collections::BTreeMap;

use super::bars::{clock, hour_of, level};
use super::views::{Score, Scores};

pub(super) fn draw(scores: &Scores) -> String {
    if scores.scores.is_empty() {
        return "There are no scores for this period. A server stores one score per hour.".into();
    }
    let mut days: BTreeMap<String, Vec<Score>> = BTreeMap::new();
    for score in &scores.scores {
        let text = score.hour.to_string();
        days.entry(text.chars().take(10).collect()).or_default().push(*score);
    }
    let mut text = String::from(
        "Distribution score, hour by hour (UTC)\n\n            00    06    12    18\n",
    );
    for (day, scores) in days {
        let mut cells = ['·'; 24];
        for score in &scores {
            // A distribution score of 0 is drawn as a low bar, and a missing score as a dot.
            let shown = level(score.distribution_score.max(0.01), 1.0);
            cells[usize::from(hour_of(score.hour)).min(23)] = shown;
        }
        let sum: f64 = scores.iter().map(|score| score.distribution_score).sum();
        let lowest = scores.iter().fold(scores[0], |low, score| {
            if score.distribution_score < low.distribution_score { *score } else { low }
        });
        let cells: String = cells.into_iter().collect();
        text.push_str(&format!(
            "{day}  {cells}  average {:.2}  lowest {:.2} at {}\n",
            sum / scores.len() as f64,
            lowest.distribution_score,
            clock(hour_of(lowest.hour)),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_has_one_line_per_day() {
        let score = |hour: &str, score: f64| Score {
            hour: format!("2026-12-0{hour}:00:00Z").parse().unwrap(),
            distribution_score: score,
        };
        let scores = vec![score("1T00", 1.0), score("1T01", 0.5), score("2T23", 0.0)];
        let drawn = draw(&Scores { scores });
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(
            lines[3],
            "2026-12-01  █▄······················  average 0.75  lowest 0.50 at 01:00"
        );
        assert_eq!(
            lines[4],
            "2026-12-02  ·······················▁  average 0.00  lowest 0.00 at 23:00"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn empty_history_is_reported() {
        assert!(draw(&Scores { scores: Vec::new() }).starts_with("There are no scores"));
    }
}
