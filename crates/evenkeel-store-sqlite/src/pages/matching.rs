//! Queries for FTS5.

use evenkeel_core::{JobNo, TenantNo};
use evenkeel_store::text::{Needle, Needles};

/// The tenant or job whose pages are searched.
#[derive(Copy, Clone)]
pub(super) enum Home {
    Tenant(TenantNo),
    Job(JobNo),
}

/// Returns the FTS5 query for pages that contain all wanted words in these columns and no unwanted
/// word in any column.
///
/// Search words consist of letters and digits, so they need no quoting.
pub(super) fn matching(home: Home, columns: &str, needles: &Needles) -> String {
    let home = match home {
        Home::Tenant(tenant) => format!("t{}", tenant.0),
        Home::Job(job) => format!("j{}", job.0),
    };
    let wanted = join(&needles.wanted, " AND ");
    let found = format!("(home : \"{home}\" AND {columns} : ({wanted}))");
    if needles.unwanted.is_empty() {
        return found;
    }
    format!("{found} NOT {{title text}} : ({})", join(&needles.unwanted, " OR "))
}

fn join(needles: &[Needle], by: &str) -> String {
    needles.iter().map(phrase).collect::<Vec<_>>().join(by)
}

fn phrase(needle: &Needle) -> String {
    let star = if needle.prefix { " *" } else { "" };
    format!("\"{}\"{star}", needle.words.join(" "))
}

#[cfg(test)]
mod tests {
    use evenkeel_core::SearchQuery;

    use super::*;

    #[test]
    fn words_phrases_prefixes_and_exclusions_become_a_query() {
        let query = SearchQuery::parse("rust \"job scheduler\" sched* -python -\"a b\"").unwrap();
        assert_eq!(
            matching(Home::Job(JobNo(7)), "{title text}", &Needles::of(&query)),
            "(home : \"j7\" AND {title text} : (\"rust\" AND \"job scheduler\" AND \"sched\" *)) \
             NOT {title text} : (\"python\" OR \"a b\")"
        );
    }
}
