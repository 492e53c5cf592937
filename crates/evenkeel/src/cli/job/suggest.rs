//! Names that a user may have meant by one that no job has.

use crate::client::Client;
use crate::output::quoted;

/// Names that are looked at in one request.
const LOOKED_AT: &str = "1000";
/// Names that are suggested at most.
const SUGGESTED_MAX: usize = 3;

/// Names like `name`, the most similar first. The search is bounded: the first names that begin
/// like it, and if none of those is similar, the first names of all. That finds every typo where
/// there are up to a thousand jobs, and those in the second half of the name where there are more.
pub(super) async fn names_like(client: &Client, name: &str) -> Vec<String> {
    let half = name.chars().take(name.chars().count().div_ceil(2)).collect::<String>();
    for prefix in [half.as_str(), ""] {
        let query = [("name_prefix", prefix), ("sort", "name"), ("limit", LOOKED_AT)];
        // The name is refused anyway; a suggestion that can't be had is no failure of its own.
        let Ok(answer) = client.get(&["jobs"], &query).await else { return Vec::new() };
        let known = answer.list_of("jobs").iter().filter_map(|job| job["name"].as_str());
        let similar = most_similar(name, known);
        if !similar.is_empty() {
            return similar;
        }
    }
    Vec::new()
}

/// What to do about a name that no job has.
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
    // A typo or two, not another word.
    let far = (letters / 3).clamp(1, 3);
    let mut ranked: Vec<(usize, &str)> = known
        .filter_map(|known| {
            let lower = known.to_lowercase();
            let distance = strsim::osa_distance(&wanted, &lower);
            // Of a word of one letter, one typo leaves nothing.
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
    fn typos_lead_to_the_name_that_was_meant() {
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
    fn the_beginning_of_a_name_leads_to_it() {
        assert_eq!(similar("news"), ["news-daily", "news-weekly"]);
    }

    #[test]
    fn other_words_lead_nowhere() {
        for other in ["invoice", "zz", "reports-of-the-year", ""] {
            assert_eq!(similar(other), Vec::<String>::new(), "{other}");
        }
    }

    #[test]
    fn the_way_out_can_be_copied_into_a_shell() {
        let names = ["hello".to_owned(), "my job".to_owned()];
        assert_eq!(way_out(&names), "did you mean hello or 'my job'?");
        assert!(way_out(&[]).contains("evenkeel job list"));
    }
}
