use std::fmt::Write as _;

use serde_json::json;

use super::*;

fn read_with(text: &str, fields: &[Field]) -> Extract {
    let url = Url::parse("http://example.com/dir/page").unwrap();
    html(text, &url, "evenkeel", fields).unwrap()
}

fn read(text: &str) -> Extract {
    read_with(text, &[])
}

#[test]
fn title_text_and_metadata_are_found() {
    let page = read(
        "<!doctype html><html lang=de><head><title> A &amp;\n B </title>\
         <meta name=description content='What it is'><meta property='og:type' content=article>\
         <meta name=Author content=Me><meta property=article:published_time content=2026-01-02>\
         <link rel='x canonical' href='/canon#x'></head>\
         <body><nav>Menu</nav><script>var a = '<p>no';</script><style>p{}</style>\
         <h1>Head</h1><p>One  <b>t</b>wo<p>Three &uuml;<table><tr><td>a<td>b</table>\
         <footer>Foot</footer></body>",
    );
    assert_eq!(page.title.as_deref(), Some("A & B"));
    assert_eq!(page.text, "Head\nOne two\nThree ü\na b");
    let expected = json!({"lang": "de", "description": "What it is", "og:type": "article",
        "author": "Me", "published": "2026-01-02", "canonical": "http://example.com/canon"});
    assert_eq!(Value::Object(page.metadata), expected);
    assert_eq!(page.canonical.unwrap().as_str(), "http://example.com/canon");
}

#[test]
fn links_are_absolute_and_unique() {
    let page = read(
        "<a href=a>1</a><nav><a href='/b#x'>2</a></nav><a href='/b'>3</a><area href=//other/c>\
         <a rel='noopener nofollow' href=/no>4</a><a href='mailto:x@y'>5</a><a>6</a>\
         <meta http-equiv=Refresh content='0; URL=/moved'><iframe src=/frame></iframe>",
    );
    let expected = [
        "http://example.com/dir/a", "http://example.com/b", "http://other/c",
        "http://example.com/moved", "http://example.com/frame",
    ];
    assert_eq!(page.links, expected);
    let page = read("<base href='/deep/down/'><base href=/later/><a href=a>1</a>");
    assert_eq!(page.links, ["http://example.com/deep/down/a"]);
}

#[test]
fn robots_directives_of_a_page_are_read() {
    let directives = |text| read(text).directives;
    let both = RobotsDirectives { noindex: true, nofollow: true };
    assert_eq!(directives("<meta name=ROBOTS content='NoIndex, nofollow'>"), both);
    assert_eq!(directives("<meta name=robots content=none>"), both);
    assert_eq!(directives("<meta name=EvenKeel content=none>"), both);
    assert_eq!(directives("<meta name=otherbot content=none>"), RobotsDirectives::default());
    assert!(read("<meta name=robots content=nofollow><a href=a>").links.is_empty());
    let header = |text: &str| {
        let mut directives = RobotsDirectives::default();
        directives.read_header(text, "evenkeel");
        directives
    };
    assert_eq!(header("noindex, nofollow"), both);
    assert_eq!(header("evenkeel: none"), both);
    assert_eq!(header("otherbot: none"), RobotsDirectives::default());
    assert_eq!(
        header("noindex, unavailable_after: 2026"),
        RobotsDirectives { noindex: true, nofollow: false }
    );
}

#[test]
fn unclosed_menu_does_not_hide_the_page() {
    assert_eq!(read("<nav>Menu<main>Text</main>").text, "Text");
    assert_eq!(read("<nav>Only a menu").text, "Only a menu");
    assert_eq!(
        read("<svg><title>icon</title></svg><title>Real</title>x").title.as_deref(),
        Some("Real")
    );
}

#[test]
fn bad_markup_is_read_as_far_as_possible() {
    let page = read("<p>a<b>b</p>c</b></div></html><a href='x>y</a><p>lost");
    assert!(page.text.starts_with("ab\nc"), "{}", page.text);
    assert_eq!(read("<").text, "<");
    assert_eq!(read("a\u{2}b\u{0}c\u{3}").text, "abc");
    assert_eq!(read("<!-- <p>no -->yes<![CDATA[x]]>").text, "yes");
}

#[test]
fn fields_are_found_by_selectors() {
    let fields = [
        Field::new("price", ".price", None, false).unwrap(),
        Field::new("tags", "ul.tags > li", None, true).unwrap(),
        Field::new("image", "img#main", Some("SRC"), false).unwrap(),
        Field::new("second", "tr:nth-child(2) td", None, false).unwrap(),
        Field::new("nothing", "blink", None, false).unwrap(),
    ];
    let page = read_with(
        "<div class='a price'> 12 <b>EUR</b> </div><ul class=tags><li>x<li>y<ul><li>z</ul></ul>\
         <img id=main src='a.png'><table><tr><td>1<tr><td>2</table>",
        &fields,
    );
    let expected = json!({"price": "12 EUR", "tags": ["x", "yz"], "image": "a.png",
        "second": "2", "nothing": null});
    assert_eq!(Value::Object(page.fields), expected);
}

#[test]
fn page_nested_a_hundred_thousand_deep_is_read() {
    let depth = 100_000;
    let page = format!("{}<p class=x>deep{}", "<div>".repeat(depth), "</div>".repeat(depth));
    let fields = [Field::new("deep", "div div .x", None, false).unwrap()];
    let read = read_with(&page, &fields);
    assert_eq!(read.text, "deep");
    assert_eq!(read.fields["deep"], "deep");
}

#[test]
fn page_with_too_many_nodes_is_refused_only_with_fields() {
    let url = Url::parse("http://example.com/").unwrap();
    let fields = [Field::new("x", "b", None, false).unwrap()];
    let tags = "<a>".repeat(tree::NODES_MAX + 1);
    let attributes = "<a b c d e f g>".repeat(tree::NODES_MAX / 6);
    for page in [tags, attributes] {
        assert_eq!(html(&page, &url, "evenkeel", &fields), Err(TooHard));
        assert!(html(&page, &url, "evenkeel", &[]).is_ok());
    }
}

#[test]
fn fields_of_a_page_share_a_size_limit() {
    let field = |name: u8| Field::new(&name.to_string(), "p", None, true).unwrap();
    let fields: Vec<Field> = (0..50).map(field).collect();
    let page = format!("<p>{}", "word ".repeat(800)).repeat(100);
    let read = read_with(&page, &fields);
    let bytes = Value::Object(read.fields).to_string().len();
    assert!(bytes > 100 * 1024 && bytes < 130 * 1024, "{bytes}");
}

#[test]
fn tag_with_endless_attributes_is_given_up() {
    let mut page = String::from("<p ");
    for number in 0..200_000 {
        write!(page, "a{number} ").unwrap();
    }
    let url = Url::parse("http://example.com/").unwrap();
    // The result depends on the machine's speed, so the test only checks that parsing ends.
    if let Ok(read) = html(&page, &url, "evenkeel", &[]) {
        assert_eq!(read.text, "");
    }
}

#[test]
fn unclosed_formatting_does_not_multiply() {
    let mut page = String::new();
    for number in 0..2000 {
        write!(page, "<font size={number}>").unwrap();
    }
    page.push_str(&"<p>x".repeat(20_000));
    let fields = [Field::new("p", "p", None, true).unwrap()];
    assert_eq!(read_with(&page, &fields).fields["p"].as_array().unwrap().len(), 100);
}

#[test]
fn content_hash_covers_readable_text_only() {
    let hash = |text| read(text).content_hash([1; 4]);
    let page = hash("<title>T</title><p>Text");
    assert_eq!(page, hash("<title>T</title><script>now=7</script><div data-x=9>Text</div>"));
    assert_eq!(page, hash("<title>T</title><a href=/ad?7>Text</a>"));
    assert_ne!(page, hash("<title>T</title><p>Text!"));
    assert_ne!(page, hash("<title>U</title><p>Text"));
    assert_ne!(page, read("<title>T</title><p>Text").content_hash([2; 4]));
}
