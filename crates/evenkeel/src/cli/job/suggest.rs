//! Suggests names that are similar to an unknown name.

use crate::client::Client;
use crate::output::quoted;

/// Maximum number of job names per request.
const LOOKED_AT: &str = "1000";
/// Maximum number of suggestions.
const SUGGESTED_MAX: usize = 3;

/// Returns job names similar to `name`, the most similar first. Compares `name` with up to 1,000
/// names that share its first half. If no name with the same first half is similar, compares `name`
/// with the first 1,000 names of all jobs.
pub(super) async fn names_like(client: &Client, name: &str) -> Vec<String> {
    let half = name.chars().take(name.chars().count().div_ceil(2)).collect::<String>();
    for prefix in [half.as_str(), ""] {
        let query = [("name_prefix", prefix), ("sort", "name"), ("limit", LOOKED_AT)];
        let query = query.map(|(name, value)| (name, value.to_owned()));
        // If the search for similar names fails, the error message contains no suggestion.
        let Ok(answer) = client.get_with(&["jobs"], &query).await else { return Vec::new() };
        let known = answer.list_of("jobs").iter().filter_map(|job| job["name"].as_str());
        let similar = most_similar(name, known);
        if !similar.is_empty() {
            return similar;
        }
    }
    Vec::new()
}

/// Returns a hint for a user who gave an unknown name.
pub(super) fn way_out(similar: &[String]) -> String {
    match similar {
        [] => "`evenkeel job list` shows the jobs there are".into(),
        similar => {
            let names: Vec<String> = similar.iter().map(|name| quoted(name)).collect();
            format!("did you mean {}?", names.join(" or "))
        }
    }
}

fn most_similar<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let letters = wanted.chars().count();
    // A similar name may differ in one to three characters, depending on the length of the name.
    let far = (letters / 3).clamp(1, 3);
    let mut ranked: Vec<(usize, &str)> = known
        .filter_map(|known| {
            let lower = known.to_lowercase();
            let distance = strsim::osa_distance(&wanted, &lower);
            // Names without a common character are not similar, although short names differ in few
            // characters.
            let is_like = distance <= far && distance < letters.max(lower.chars().count());
            let is_begun = letters >= 3 && lower.starts_with(&wanted);
            let rank = if is_like { distance } else { far + 1 };
            (is_like || is_begun).then_some((rank, known))
        })
        .collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(SUGGESTED_MAX).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn similar(name: &str) -> Vec<String> {
        let known = ["hello", "help", "news-daily", "news-weekly", "report", "Backup DB", "x"];
        most_similar(name, known.into_iter())
    }

    #[test]
    fn typos_lead_to_similar_names() {
        for (typo, meant) in [
            ("helo", "hello"),
            ("ehllo", "hello"),
            ("HELLO", "hello"),
            ("reprot", "report"),
            ("backup-db", "Backup DB"),
            ("news-dialy", "news-daily"),
        ] {
            assert_eq!(similar(typo).first().map(String::as_str), Some(meant), "{typo}");
        }
    }

    #[test]
    fn beginnings_lead_to_the_whole_name() {
        assert_eq!(similar("news"), ["news-daily", "news-weekly"]);
    }

    #[test]
    fn unrelated_names_are_not_suggested() {
        for other in ["invoice", "zz", "reports-of-the-year", ""] {
            assert_eq!(similar(other), Vec::<String>::new(), "{other}");
        }
    }

    #[test]
    fn suggestions_are_quoted_for_the_shell() {
        let names = ["hello".to_owned(), "my job".to_owned()];
        assert_eq!(way_out(&names), "did you mean hello or 'my job'?");
        assert!(way_out(&[]).contains("evenkeel job list"));
    }
}
