//! Parses sitemaps.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::GzDecoder;

/// Maximum number of bytes of a decompressed sitemap; further bytes are ignored.
pub(crate) const SITEMAP_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Maximum number of sitemaps that one crawl reads.
pub(crate) const SITEMAPS_MAX: usize = 50;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sitemap {
    pub(crate) pages: Vec<String>,
    pub(crate) sitemaps: Vec<String>,
}

/// Reads a sitemap, a sitemap index or a plain list of URLs, compressed or not. Returns at most
/// `urls_max` URLs.
pub(crate) fn read(bytes: &[u8], urls_max: usize) -> Sitemap {
    let unpacked = unpack(bytes);
    let text = String::from_utf8_lossy(&unpacked);
    if !text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        let lines = text.lines().map(str::trim).filter(|line| line.starts_with("http"));
        let pages = lines.take(urls_max).map(String::from).collect();
        return Sitemap { pages, ..Sitemap::default() };
    }
    let is_index = text.contains("<sitemapindex");
    let places = places(&text).take(urls_max).collect();
    if is_index {
        Sitemap { sitemaps: places, ..Sitemap::default() }
    } else {
        Sitemap { pages: places, ..Sitemap::default() }
    }
}

fn unpack(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes.into();
    }
    let mut unpacked = Vec::new();
    // The part of a sitemap that was decompressed before an error or the size limit is used.
    let _ = GzDecoder::new(bytes).take(SITEMAP_BYTES_MAX as u64).read_to_end(&mut unpacked);
    unpacked.into()
}

/// Returns the texts of all `<loc>` elements of a sitemap. The locations of images and videos have
/// other element names (`<image:loc>`) and are skipped.
fn places(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (_, after) = rest.split_once("<loc")?;
            rest = after;
            let Some(after) = after.strip_prefix('>') else { continue };
            let (place, after) = after.split_once('<').map(|(place, _)| {
                if place.trim().is_empty()
                    && let Some(data) = after.trim_start().strip_prefix("<![CDATA[")
                    && let Some((data, rest)) = data.split_once("]]>")
                {
                    return (data, rest);
                }
                (place, &after[place.len()..])
            })?;
            rest = after;
            return Some(unescape(place.trim()));
        }
    })
}

fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let named = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    let named = named.replace("&apos;", "'").replace("&#39;", "'").replace("&#38;", "&");
    named.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    const PAGES: &str = "<?xml version='1.0'?><urlset><url><loc>\n http://a/1?x=1&amp;y=2 </loc>\
        <lastmod>2026</lastmod><image:image><image:loc>http://a/i.png</image:loc></image:image></url>\
        <url><loc><![CDATA[http://a/2]]></loc></url><url><loc>http://a/3";

    #[test]
    fn pages_are_found_compressed_or_not() {
        let expected = ["http://a/1?x=1&y=2", "http://a/2"];
        assert_eq!(read(PAGES.as_bytes(), 100).pages, expected);
        assert_eq!(read(&pack(PAGES.as_bytes()), 100).pages, expected);
        assert_eq!(read(PAGES.as_bytes(), 1).pages, expected[..1]);
    }

    #[test]
    fn index_names_sitemaps_and_list_names_pages() {
        let index = b"<sitemapindex><sitemap><loc>http://a/s.xml.gz</loc></sitemap></sitemapindex>";
        let expected = Sitemap { sitemaps: vec!["http://a/s.xml.gz".into()], pages: vec![] };
        assert_eq!(read(index, 100), expected);
        assert_eq!(
            read(b"http://a/1\r\n#x\nhttps://a/2\n", 9).pages,
            ["http://a/1", "https://a/2"]
        );
        assert_eq!(read(b"<html>not found</html>", 9), Sitemap::default());
    }

    #[test]
    fn decompression_bomb_ends_at_the_limit() {
        let bomb = pack(&vec![b' '; 4 * SITEMAP_BYTES_MAX]);
        assert!(bomb.len() < SITEMAP_BYTES_MAX / 50);
        assert_eq!(unpack(&bomb).len(), SITEMAP_BYTES_MAX);
        let broken = pack(PAGES.as_bytes());
        read(&broken[..broken.len() / 2], 100);
    }
}
