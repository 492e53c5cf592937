//! Full-text search in web pages.

use evenkeel_core::SearchQuery;
use evenkeel_core::page::{Kept, PageContent};
use evenkeel_core::search::Term;
use evenkeel_store::{MARK_END, MARK_START, PageFilter, PageRequest};

use super::page_lists::{all_urls, list, list_all, query};
use super::pages::{keep, page};
use crate::Opened;
use crate::fixtures::new_job;
use crate::rig::{Known, Rig};

/// Creates a job whose pages have these URLs, titles and texts.
async fn library(opened: Opened, pages: &[(&str, &str, &str)]) -> (Rig, Known) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let pages: Vec<PageContent> =
        pages.iter().map(|(url, title, text)| page(job, url, title, text)).collect();
    let kept = vec![Kept::New; pages.len()];
    assert_eq!(keep(&rig, job, pages, 1).await, kept);
    (rig, job)
}

/// Asserts for each search query in `searches` that it finds the listed pages.
async fn expect(rig: &Rig, searches: &[(&str, &[&str])]) {
    for (text, expected) in searches {
        let mut found = list_all(rig, text).await;
        found.sort_unstable();
        assert_eq!(found, *expected, "{text}");
    }
}

async fn snippet(rig: &Rig, text: &str) -> String {
    let page = list(rig, &query(text), PageRequest::first(1)).await;
    page.items[0].snippet.replace(MARK_START, "[").replace(MARK_END, "]")
}

const THREE: [(&str, &str, &str); 3] = [
    ("a", "Schedulers", "Rust has a job scheduler. It runs."),
    ("b", "Python", "A scheduler of jobs, in Python; the job is run."),
    ("c", "", "Nothing here is scheduled: job, then scheduler."),
];

pub async fn every_term_must_occur(opened: Opened) {
    let (rig, _) = library(opened, &THREE).await;
    expect(
        &rig,
        &[
            ("job", &["a", "b", "c"]),
            ("job rust", &["a"]),
            ("rust python", &[]),
            ("unheard", &[]),
            // Some terms of a search may be in the title of a page, and other terms in its text.
            ("schedulers", &["a"]),
            ("schedulers rust", &["a"]),
        ],
    )
    .await;
}

pub async fn words_match_without_stemming(opened: Opened) {
    let (rig, _) = library(opened, &THREE).await;
    // The search uses no stemming and no stop words, and matches only whole words.
    expect(&rig, &[("jobs", &["b"]), ("the", &["b"]), ("sched", &[]), ("a", &["a", "b"])]).await;
}

pub async fn a_phrase_matches_consecutive_words(opened: Opened) {
    let (rig, _) = library(opened, &THREE).await;
    expect(
        &rig,
        &[
            ("\"job scheduler\"", &["a"]),
            ("\"scheduler job\"", &[]),
            ("\"job then scheduler\"", &["c"]),
            ("\"scheduler of jobs in python\"", &["b"]),
            // A phrase does not continue from the title into the text.
            ("\"schedulers rust\"", &[]),
            ("\"python a\"", &[]),
        ],
    )
    .await;
}

pub async fn a_prefix_of_a_word_can_be_searched(opened: Opened) {
    let (rig, _) = library(opened, &THREE).await;
    expect(
        &rig,
        &[
            ("sched*", &["a", "b", "c"]),
            ("scheduled*", &["c"]),
            ("rus* run*", &["a"]),
            ("\"job sched*\"", &["a"]),
            ("x*", &[]),
        ],
    )
    .await;
}

pub async fn an_excluded_term_must_not_occur(opened: Opened) {
    let (rig, _) = library(opened, &THREE).await;
    expect(
        &rig,
        &[
            ("job -python", &["a", "c"]),
            ("job -rust -python", &["c"]),
            ("job -schedulers", &["b", "c"]),
            ("job -\"job scheduler\"", &["b", "c"]),
            ("job -sched*", &[]),
            ("job -job", &[]),
            ("job -unheard", &["a", "b", "c"]),
        ],
    )
    .await;
}

pub async fn case_and_accents_make_no_difference(opened: Opened) {
    let pages = [
        ("a", "", "Die Größe der Straße"),
        ("b", "CAFÉ", ""),
        ("c", "", "cafe\u{301} au lait"),
        ("d", "", "ЁЛКА"),
    ];
    let (rig, _) = library(opened, &pages).await;
    expect(
        &rig,
        &[
            ("größe", &["a"]),
            ("GROßE", &["a"]),
            ("\"größe DER straße\"", &["a"]),
            ("gr*", &["a"]),
            ("cafe", &["b", "c"]),
            ("Café", &["b", "c"]),
            // These search queries contain accents as separate Unicode characters.
            ("Cafe\u{301}", &["b", "c"]),
            ("\"GRO\u{308}ßE der\"", &["a"]),
            ("gro\u{308}*", &["a"]),
            ("елка", &["d"]),
            ("Е\u{308}лка", &["d"]),
        ],
    )
    .await;
}

pub async fn invisible_characters_make_no_difference(opened: Opened) {
    let pages = [("a", "soft\u{ad}ware", ""), ("b", "", "zero\u{200b}width\u{200d} software")];
    let (rig, _) = library(opened, &pages).await;
    expect(
        &rig,
        &[
            ("software", &["a", "b"]),
            ("so\u{ad}ftware", &["a", "b"]),
            ("\"zerowidth soft\u{200c}ware\"", &["b"]),
            ("ware", &[]),
        ],
    )
    .await;
}

pub async fn words_are_found_in_any_script(opened: Opened) {
    let pages = [("a", "", "これは日本語です。"), ("b", "", "日曜と本"), ("c", "한국어", "हिन्दी")];
    let (rig, _) = library(opened, &pages).await;
    expect(
        &rig,
        &[
            ("日本", &["a"]),
            ("日", &["a", "b"]),
            ("日 本", &["a", "b"]),
            ("日本*", &["a"]),
            ("한국어", &["c"]),
            ("한국*", &["c"]),
            ("हिन्दी", &["c"]),
        ],
    )
    .await;
}

pub async fn a_word_does_not_depend_on_its_neighbours(opened: Opened) {
    let pages = [
        ("a", "", "mail to me@example.com or see http://example.com/some_path/file.html?x=1"),
        ("b", "", "up-to-date, version 3.14.15, -7, 1e5, /usr/lib/x.so <b>&amp;"),
    ];
    let (rig, _) = library(opened, &pages).await;
    expect(
        &rig,
        &[
            ("example", &["a"]),
            ("me@example.com", &["a"]),
            ("example.com", &["a"]),
            ("path", &["a"]),
            ("file.html", &["a"]),
            ("date", &["b"]),
            ("up-to-date", &["b"]),
            ("3.14", &["b"]),
            ("7", &["b"]),
            ("1e5", &["b"]),
            ("usr", &["b"]),
            ("amp", &["b"]),
        ],
    )
    .await;
}

pub async fn no_search_term_is_syntax(opened: Opened) {
    let (rig, _) = library(opened, &THREE).await;
    for text in [
        "job'", "job\"", "job AND", "NEAR(job)", "title:job", "job & ! | <->", "job:*", "(job",
        "^job",
    ] {
        let found = list(&rig, &query(text), PageRequest::first(9)).await;
        assert!(found.total <= 3, "{text}");
    }
    expect(&rig, &[("job & | !", &["a", "b", "c"]), ("(job)", &["a", "b", "c"])]).await;
    // Words that are operators in a query language are searched as text.
    let words = ["not", "or", "and", "near", "null"].map(String::from).to_vec();
    let term = Term { words, prefix: true };
    let query = Some(SearchQuery { wanted: vec![term.clone()], unwanted: vec![term] });
    assert_eq!(all_urls(&rig, PageFilter { query, ..PageFilter::default() }).await.len(), 0);
}

pub async fn an_empty_folded_search_finds_nothing(opened: Opened) {
    let (rig, _) = library(opened, &THREE).await;
    // Unicode classifies this character as a letter, but it folds to an accent only.
    expect(&rig, &[("\u{37a}", &[]), ("job -\u{37a}", &["a", "b", "c"])]).await;
}

pub async fn pages_with_all_terms_in_the_title_come_first(opened: Opened) {
    let often = "job scheduler ".repeat(100);
    let pages = [
        ("often", "", often.as_str()),
        ("part", "A job", "scheduler scheduler scheduler"),
        ("title", "The job of a scheduler", "Something else is on this page, and much of it."),
    ];
    let (rig, _) = library(opened, &pages).await;
    assert_eq!(list_all(&rig, "job scheduler").await[0], "title");
    assert_eq!(list_all(&rig, "sched* jo*").await[0], "title");
}

pub async fn more_occurrences_rank_higher_at_equal_length(opened: Opened) {
    let pages = [
        ("once", "", "rust and then five other words"),
        ("thrice", "", "rust and rust and more rust"),
        ("never", "", "something else that has seven words altogether"),
    ];
    let (rig, _) = library(opened, &pages).await;
    assert_eq!(list_all(&rig, "rust").await, ["thrice", "once"]);
}

pub async fn equal_ranks_come_by_number_and_paging_is_complete(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let pages = (0..25).map(|n| {
        let title = if n % 5 == 0 { "The same" } else { "" };
        page(job, &format!("{n:02}"), title, "the same words on each")
    });
    keep(&rig, job, pages.collect(), 1).await;
    let (first, rest): (Vec<i32>, Vec<i32>) = (0..25).partition(|n| n % 5 == 0);
    let expected: Vec<String> = first.iter().chain(&rest).map(|n| format!("{n:02}")).collect();
    assert_eq!(list_all(&rig, "same").await, expected);
    for limit in [1, 4, 25] {
        let mut seen = Vec::new();
        for offset in (0..30).step_by(limit as usize) {
            let request = PageRequest { limit, offset, after: None };
            let page = list(&rig, &query("same"), request).await;
            assert_eq!((page.total, page.total_is_estimate, page.next), (25, false, None));
            seen.extend(page.items.into_iter().map(|hit| hit.url));
        }
        assert_eq!(seen, expected, "by {limit}");
    }
}

pub async fn a_search_returns_at_most_a_hundred_results(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    let pages = (0..130).map(|n| page(job, &format!("{n:03}"), "", "the same words on each"));
    keep(&rig, job, pages.collect(), 1).await;
    let shown = |offset| PageRequest { limit: 1_000, offset, after: None };
    for (offset, expected) in [(0, 100), (100, 30)] {
        let page = list(&rig, &query("same"), shown(offset)).await;
        assert_eq!((page.total, page.items.len()), (130, expected));
    }
    assert_eq!(list(&rig, &PageFilter::default(), shown(0)).await.items.len(), 130);
}

pub async fn a_snippet_shows_the_matches(opened: Opened) {
    let far = format!("{}the needle, at last, {}", "hay ".repeat(2_000), "straw ".repeat(500));
    let pages = [("near", "", "A Job\n scheduler."), ("far", "", &far), ("top", "Top", "Below.")];
    let (rig, _) = library(opened, &pages).await;
    assert_eq!(snippet(&rig, "job").await, "A [Job] scheduler.");
    assert_eq!(snippet(&rig, "\"job sched*\"").await, "A [Job scheduler].");
    assert_eq!(snippet(&rig, "top").await, "Below.");
    let shown = snippet(&rig, "needle").await;
    assert!(shown.contains("hay the [needle], at last, straw"), "{shown}");
    assert!((100..=210).contains(&shown.chars().count()), "{shown}");
}

pub async fn a_changed_page_is_found_only_by_its_new_words(opened: Opened) {
    let (rig, job) = library(opened, &[("a", "Old title", "old words"), ("b", "", "others")]).await;
    keep(&rig, job, vec![page(job, "a", "New title", "new words")], 2).await;
    expect(&rig, &[("old", &[]), ("new", &["a"]), ("title words", &["a"]), ("others", &["b"])])
        .await;
    keep(&rig, job, vec![page(job, "a", "", "old words")], 3).await;
    expect(&rig, &[("old", &["a"]), ("new", &[]), ("title", &[])]).await;
}

pub async fn a_search_can_be_confined_to_a_job(opened: Opened) {
    let (rig, job) = library(opened, &THREE).await;
    let other = rig.add(new_job("other").build()).await;
    keep(&rig, other, vec![page(other, "d", "", "another job")], 1).await;
    let of = |job: Known| PageFilter { job: Some(job.id), ..query("job") };
    assert_eq!(all_urls(&rig, of(other)).await, ["d"]);
    assert_eq!(all_urls(&rig, of(job)).await.len(), 3);
    let never_was = PageFilter { job: Some(crate::fixtures::fresh_id()), ..query("job") };
    assert_eq!(all_urls(&rig, never_was).await, Vec::<String>::new());
}

pub async fn huge_pages_are_stored_and_their_beginnings_found(opened: Opened) {
    let rig = Rig::new(opened).await;
    let job = rig.add(new_job("crawl").build()).await;
    // All words of this page differ, so that the index cannot save space by repetition. The last
    // word is beyond the part of a page that is indexed.
    let words: Vec<String> = (0..300_000).map(|n| format!("w{n:x}")).collect();
    let varied = format!("first {} beyond", words.join(" "));
    let blob = format!("{} after", "x".repeat(3 << 20));
    let unfolding = "\u{fdfa} ".repeat(100_000);
    let short: String = (0..200_000)
        .filter_map(|n| char::from_u32(0x4e00 + n % 20_000))
        .flat_map(|c| [c, ' '])
        .collect();
    let pages = vec![
        page(job, "varied", &varied, &varied),
        page(job, "blob", "", &blob),
        page(job, "unfolding", "", &unfolding),
        page(job, "short", "", &short),
    ];
    assert_eq!(keep(&rig, job, pages, 1).await, [Kept::New; 4]);
    expect(
        &rig,
        &[
            ("first", &["varied"]),
            ("\"first w0 w1\"", &["varied"]),
            ("beyond", &[]),
            ("after", &["blob"]),
            ("xxxx*", &["blob"]),
            ("一", &["short"]),
        ],
    )
    .await;
    // Words of any length can be searched.
    expect(&rig, &[(&"x".repeat(3_000), &["blob"]), (&"y".repeat(3_000), &[])]).await;
    let stored = rig.store.get_page(&rig.scope, page(job, "varied", "", "").id).await.unwrap();
    assert_eq!(stored.unwrap().content.text, varied);
}
