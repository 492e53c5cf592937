//! Thousands of spellings of private IP addresses; every test run uses the same spellings.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The first and last addresses of IPv4 ranges that are not public.
const RANGES: [(&str, &str); 18] = [
    ("0.0.0.0", "0.255.255.255"),
    ("10.0.0.0", "10.255.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"),
    ("169.254.0.0", "169.254.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"),
    ("192.0.2.0", "192.0.2.255"),
    ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"),
    ("224.0.0.0", "239.255.255.255"),
    ("240.0.0.0", "255.255.255.255"),
    // Single addresses that the tests must include.
    ("127.0.0.1", "127.0.0.1"),
    ("0.0.0.0", "0.0.0.0"),
    ("168.63.129.16", "168.63.129.16"),
];

/// IP addresses of metadata services of large cloud platforms, and similar IP addresses.
const METADATA: [&str; 8] = [
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.169.253", "169.254.0.23",
    "100.100.100.200", "192.0.0.192", "168.63.129.16",
];

/// Private IPv6 addresses in common spellings.
const V6: [&str; 30] = [
    "::",
    "::1",
    "0:0:0:0:0:0:0:1",
    "0000:0000:0000:0000:0000:0000:0000:0001",
    "::0.0.0.1",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b:1::127.0.0.1",
    "64:ff9b:1:fffe::a00:1",
    "100::1",
    "100:0:0:1::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:a9fe:a9fe::1",
    "3fff:fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fdff:ffff::1",
    "fe80::1",
    "fe80::a9fe:a9fe",
    "febf::1",
    "fec0::1",
    "ff02::1",
];

/// Returns some addresses of every private IPv4 range: both ends, and addresses between them.
pub fn inner_v4() -> Vec<Ipv4Addr> {
    let mut addresses = BTreeSet::new();
    for (first, last) in RANGES {
        let first = u32::from(first.parse::<Ipv4Addr>().unwrap());
        let last = u32::from(last.parse::<Ipv4Addr>().unwrap());
        addresses.extend([first, last]);
        let step = (last - first) / 13;
        if step > 0 {
            // `n` is added to each address, so that not all its octets are round numbers.
            addresses.extend((1..13).map(|n| first + n * step + n));
        }
    }
    addresses.extend(METADATA.map(|text| u32::from(text.parse::<Ipv4Addr>().unwrap())));
    addresses.into_iter().map(Ipv4Addr::from).collect()
}

/// Returns the spellings of an IPv4 address as the host of a URL.
fn spellings(ip: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = ip.octets();
    let n = u32::from(ip);
    let dotted = ip.to_string();
    let low_24 = n & 0x00ff_ffff;
    let low_16 = n & 0xffff;
    vec![
        dotted.clone(),
        format!("{dotted}."),
        n.to_string(),
        format!("{n:#x}"),
        format!("0X{n:X}"),
        format!("0{n:o}"),
        format!("000000{n:o}"),
        format!("{n}."),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("0{a:03o}.0{b:03o}.0{c:03o}.0{d:03o}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("{a:#04x}.{b}.0{c:o}.{d:#x}"),
        format!("{a}.{low_24}"),
        format!("{a:#x}.{low_24:#x}"),
        format!("0{a:o}.{low_24}"),
        format!("{a}.{b}.{low_16}"),
        format!("{a:#x}.0{b:o}.{low_16:#x}"),
        percent_encoded(&dotted),
        dotted.replace('.', "%2e"),
        full_width(&dotted),
        circled(&dotted),
        dotted.replace('.', "\u{3002}"),
        dotted.replace('.', "\u{ff0e}"),
        format!("{}.", full_width(&n.to_string())),
        dotted.replacen('.', ".\t", 1),
        dotted.replacen('.', "\n.", 1),
        format!("[::ffff:{dotted}]"),
        format!("[::ffff:{:x}:{:x}]", n >> 16, low_16),
        format!("[0:0:0:0:0:ffff:{:x}:{:x}]", n >> 16, low_16),
        format!("[::FFFF:{:X}:{:04X}]", n >> 16, low_16),
        format!("[::{dotted}]"),
        format!("[::ffff:0:{dotted}]"),
        format!("[64:ff9b::{dotted}]"),
        format!("[64:ff9b::{:x}:{:x}]", n >> 16, low_16),
        format!("[64:ff9b:1::{dotted}]"),
        format!("[2002:{:x}:{:x}::]", n >> 16, low_16),
        format!("[2002:{:x}:{:x}::1]", n >> 16, low_16),
        format!("[2001:0:808:808:0:0:{:x}:{:x}]", !n >> 16, !n & 0xffff),
        format!("[fe80::5efe:{dotted}]"),
        format!("[2606:4700::200:5efe:{dotted}]"),
    ]
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// Writes `127` as `１２７`, which browsers and resolvers read as `127`.
fn full_width(text: &str) -> String {
    let wide = |c: char| char::from_u32(u32::from(c) - u32::from('0') + 0xff10);
    text.chars().map(|c| if c.is_ascii_digit() { wide(c).unwrap() } else { c }).collect()
}

/// Writes `127` as `①②⑦`, which URL parsers normalise to `127`.
fn circled(text: &str) -> String {
    let circle = |c: char| match c {
        '0' => '\u{24ea}',
        '1'..='9' => char::from_u32(u32::from(c) - u32::from('1') + 0x2460).unwrap(),
        other => other,
    };
    text.chars().map(circle).collect()
}

/// Returns URLs whose host is `host` but that look as if they had another host.
fn disguises(host: &str, port: u16) -> Vec<String> {
    vec![
        format!("http://1.1.1.1@{host}:{port}/"),
        format!("http://1.1.1.1:80@{host}:{port}/"),
        format!("http://example.com%2f@{host}:{port}/"),
        format!("http://example.com@@{host}:{port}/"),
        format!("http://a:b@c@{host}:{port}/?@example.com"),
        format!("http://{host}:{port}\\@example.com/"),
        format!("http://{host}:{port}#@example.com/"),
        format!("http://{host}:{port}?@example.com/"),
        format!("http:\\\\{host}:{port}\\"),
        format!("http:/{host}:{port}/"),
        format!("http:{host}:{port}/"),
        format!("http:////{host}:{port}/"),
        format!(" \thTTp://{host}:{port}/ "),
        format!("ht\ntp://{host}:{port}/../../"),
        format!("https://{host}:{port}/"),
    ]
}

/// Returns URLs with private IP addresses in all spellings, for servers that listen on `port`.
pub fn urls(port: u16) -> Vec<String> {
    let mut urls = Vec::new();
    for ip in inner_v4() {
        urls.extend(spellings(ip).iter().map(|host| format!("http://{host}:{port}/")));
        urls.extend(disguises(&ip.to_string(), port));
        urls.extend(disguises(&format!("[::ffff:{ip}]"), port));
    }
    for text in V6 {
        let ip: Ipv6Addr = text.parse().unwrap();
        let spelt_out: Vec<_> = ip.segments().iter().map(|part| format!("{part:04X}")).collect();
        for host in [text, &ip.to_string(), &text.to_uppercase(), &spelt_out.join(":")] {
            urls.push(format!("http://[{host}]:{port}/"));
            urls.extend(disguises(&format!("[{host}]"), port));
            // URLs cannot contain IPv6 zone ids, so a zone id must not make a call succeed.
            urls.push(format!("http://[{host}%25lo]:{port}/"));
            urls.push(format!("http://[{host}%lo]:{port}/"));
        }
    }
    urls
}
