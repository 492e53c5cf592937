use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::About;

const TENANT: TenantNo = TenantNo(1);

fn named(name: &str) -> JobText {
    JobText::of(&About { name: Some(name.into()), ..About::default() }, None)
}

fn is_found(text: &JobText, search: &str) -> bool {
    let search = JobSearch::parse(search).unwrap();
    let grams = text.grams(TENANT);
    let in_index = search.grams(TENANT).iter().all(|gram| grams.contains(gram));
    let matches = search.matches(text);
    assert!(in_index || !matches, "an index does not find {search:?} in {text:?}");
    matches
}

#[test]
fn text_holds_all_fields_and_nothing_that_is_redacted() {
    let about = About {
        name: Some("Nightly".into()),
        configuration: Some("eu".into()),
        description: Some("Reads the\nnews".into()),
        source_id: Some("s-17".into()),
        source_name: Some("The Site".into()),
        url: Some("https://me:pass@Example.com/feed?key=secret#part".into()),
        metadata: json!({"Team": "Red", "deep": {"tier": [1.5, true, null]}}),
        ..About::default()
    };
    let text = JobText::of(&about, Some("Forum 40"));
    assert_eq!(
        text.as_str(),
        "nightly\neu\ns-17\nthe site\nforum 40\nhttps://***@example.com/feed?key=***#***\n\
         reads the\nnews\nteam\nred\ndeep\ntier\n1.5\ntrue\n"
    );
    assert_eq!(JobText::of(&About::default(), None).as_str(), "");
}

#[test]
fn every_word_must_match_in_any_case_and_order() {
    let text = named("Forum-Crawler example.com/News");
    for search in ["forum", "CRAWL", "awler", "m-c", "news forum", "ple.com/n", " news  "] {
        assert!(is_found(&text, search), "{search}");
    }
    for search in ["forums", "news paper", "crawlerexample", "newsforum", "%orum", "forum_crawler"]
    {
        assert!(!is_found(&text, search), "{search}");
    }
}

#[test]
fn no_character_of_a_search_is_special() {
    let text = named("50%_done \"it's\" a\\b (x*y) -z NEAR[1]");
    for search in ["50%", "%_d", "\"it's\"", "a\\b", "(x*y)", "near[1]", "it's\" 50%"] {
        assert!(is_found(&text, search), "{search}");
    }
    for search in ["5_%", "50%%", "x%y", "near*", "-zz"] {
        assert!(!is_found(&text, search), "{search}");
    }
}

#[test]
fn short_words_match_the_beginnings_of_words() {
    let text = named("crawl-de forum2 c#");
    for search in ["c", "cr", "de", "f", "fo", "d crawl", "c#"] {
        assert!(is_found(&text, search), "{search}");
    }
    for search in ["r", "aw", "or", "2", "l-", "e"] {
        assert!(!is_found(&text, search), "{search}");
    }
    let text = named("京都大学 サイト 한국어 東京x");
    for search in ["都大", "学", "イト", "국어", "東京", "京x", "x", "都大学"] {
        assert!(is_found(&text, search), "{search}");
    }
    assert!(!is_found(&text, "大都"));
}

#[test]
fn composition_case_and_invisible_characters_do_not_matter() {
    for (name, search) in [
        ("Café", "CAFE\u{301}"),
        ("Cafe\u{301}", "café"),
        ("ÜBER", "über"),
        ("ΟΔΟΣ", "οδος"),
        ("οδος", "ΟΔΟΣ"),
        ("ΟΔΟΣΑ", "ΟΔΟΣ"),
        ("İstanbul", "i\u{307}stanbul"),
        ("soft\u{ad}ware", "software"),
        ("ＡＢＣ", "ａｂｃ"),
        ("ПРИВЕТ", "приве"),
    ] {
        assert!(is_found(&named(name), search), "{search} in {name}");
    }
    assert!(!is_found(&named("Cafe"), "café"));
}

#[test]
fn searches_that_cannot_match_are_refused() {
    for text in ["", "  \n", "\u{200b}"] {
        assert_eq!(JobSearch::parse(text), Err(JobSearchError::NoWord), "{text:?}");
    }
    for text in ["%", "news -", "\"a", "**"] {
        let error = JobSearch::parse(text).unwrap_err();
        assert!(matches!(error, JobSearchError::NoLetter(_)), "{text}: {error}");
    }
    let long = "x".repeat(SEARCH_CHARS_MAX + 1);
    assert_eq!(JobSearch::parse(&long), Err(JobSearchError::TooLong));
    let many = "w ".repeat(SEARCH_WORDS_MAX + 1);
    assert_eq!(JobSearch::parse(&many), Err(JobSearchError::TooManyWords));
    assert!(JobSearch::parse(&"é".repeat(SEARCH_CHARS_MAX)).is_ok());
}

#[test]
fn long_texts_are_cut_after_the_name() {
    let metadata = json!({"body": "ü".repeat(TEXT_BYTES_MAX), "later": "unseen"});
    let about = About { name: Some("first".into()), metadata, ..About::default() };
    let text = JobText::of(&about, None);
    assert!((TEXT_BYTES_MAX - 3..=TEXT_BYTES_MAX).contains(&text.as_str().len()));
    assert!(is_found(&text, "first üüü") && !is_found(&text, "unseen"));
}

#[test]
fn grams_of_two_tenants_differ_and_never_change() {
    let text = named("abc");
    assert_eq!(text.grams(TENANT).len(), 3);
    let others = text.grams(TenantNo(2));
    assert!(text.grams(TENANT).iter().all(|gram| !others.contains(gram)));
    assert_eq!(gram(TENANT, &['a', 'b', 'c']), STORED_GRAM);
    assert_eq!(JobSearch::parse("abc").unwrap().grams(TENANT), [STORED_GRAM]);
}

/// The gram `abc` of tenant 1, as stores contain it.
const STORED_GRAM: i32 = -1_962_258_295;

proptest! {
    /// An index that holds the grams of a text finds every part of the text.
    #[test]
    fn every_part_of_a_text_is_found(name in "[a-cA-C .é京ß%]{1,20}", from in 0..20_usize, len in 3..9_usize) {
        let text = named(&name);
        let part: String = text.as_str().chars().skip(from).take(len).collect();
        for word in part.split_whitespace().filter(|word| word.chars().count() >= 3) {
            prop_assert!(is_found(&text, word), "{word} in {name}");
        }
    }

    #[test]
    fn no_search_panics(name in any::<String>(), search in any::<String>()) {
        if JobSearch::parse(&search).is_ok() {
            is_found(&named(&name), &search);
        }
    }
}
