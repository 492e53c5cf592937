//! Converts `~` in crontabs, which means a random value within a range.

/// Minimum and maximum value of each cron field.
const RANGES: [(u32, u32); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];

/// Replaces `~` with `H`; returns `None` if the cron expression contains no `~`. `~` and `H` both
/// mean one random value in a range. Cron chooses the random value when it reads the crontab, and
/// Evenkeel when the job is created.
pub(super) fn with_h(expression: &str) -> Option<String> {
    let fields: Vec<&str> = expression.split(' ').collect();
    if fields.len() != RANGES.len() || !expression.contains('~') {
        return None;
    }
    let field = |(field, range): (&&str, (u32, u32))| {
        let items: Vec<String> = field.split(',').map(|item| item_with_h(item, range)).collect();
        items.join(",")
    };
    let fields: Vec<String> = fields.iter().zip(RANGES).map(field).collect();
    Some(fields.join(" "))
}

/// Replaces `~` in an item of a cron field. An invalid item stays unchanged, so that the cron
/// parser reports it.
fn item_with_h(item: &str, (low, high): (u32, u32)) -> String {
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, format!("/{step}")),
        None => (item, String::new()),
    };
    let Some((from, to)) = range.split_once('~') else { return item.to_owned() };
    let bound =
        |text: &str, default: u32| if text.is_empty() { Some(default) } else { text.parse().ok() };
    match (bound(from, low), bound(to, high)) {
        (Some(from), Some(to)) if (from, to) == (low, high) => format!("H{step}"),
        // The weekdays 0 and 7 both mean Sunday, which must not be twice in the range.
        (Some(0), Some(7)) if high == 6 => format!("H{step}"),
        (Some(from), Some(to)) if from == to => format!("{from}{step}"),
        (Some(from), Some(to)) => format!("H({from}-{to}){step}"),
        _ => item.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_cron;

    #[test]
    fn random_times_become_hashed_times() {
        for (was, becomes) in [
            ("0~59 * * * *", "H * * * *"),
            ("~ ~ * * *", "H H * * *"),
            ("0~29 9 * * 1-5", "H(0-29) 9 * * 1-5"),
            ("30~ 1~5 * * *", "H(30-59) H(1-5) * * *"),
            ("~15 0 1~7 * *", "H(0-15) 0 H(1-7) * *"),
            ("5,20~40 * * * 0~7", "5,H(20-40) * * * H"),
            ("~/10 * * * *", "H/10 * * * *"),
            ("7~7 * * * *", "7 * * * *"),
        ] {
            assert_eq!(with_h(was).as_deref(), Some(becomes), "{was}");
            assert!(read_cron(becomes).is_ok(), "{becomes}");
        }
        for refused in ["a~b * * * *", "0~99 * * * *", "9~3 * * * *"] {
            assert!(read_cron(&with_h(refused).unwrap()).is_err(), "{refused}");
        }
        for other in ["0 9 * * *", "@daily", "@every 5m"] {
            assert_eq!(with_h(other), None);
        }
    }
}
